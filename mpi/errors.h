/* errors.h - error handlers as objects, for those who keep one (communicators). */
#ifndef DZ_MPI_ERRORS_H
#define DZ_MPI_ERRORS_H

#include "mpi/core.h"

/* Fills the predefined handlers. Before anything that may raise. */
int dz_errors_init(void);

/* One more, one less reference; the last frees. No effect on predefined handlers and NULL. Any thread. */
void dz_errh_get(struct dz_errhandler *);
void dz_errh_put(struct dz_errhandler *);
static inline bool dz_errh_ok(const struct dz_errhandler *h) { return h && h->magic == DZ_MAGIC_ERRH; }

/* Highest error code in use: the value of the attribute MPI_LASTUSEDCODE. */
extern int dz_error_last_code;

/* MPI_X of a class, or NULL */
const char *dz_class_name(int errclass);

#endif
