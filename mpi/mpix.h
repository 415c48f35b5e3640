/* mpix.h - what Denizen has beyond the standard. Nothing yet but a way to tell that it is Denizen. */
#ifndef DENIZEN_MPIX_H
#define DENIZEN_MPIX_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The version of the library that runs, as in DENIZEN_VERSION ("0.1.0"). Any thread, at any time. */
const char *MPIX_Denizen_version(void);
#ifdef __cplusplus
}
#endif

#endif
