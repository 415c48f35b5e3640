/* copy.h - a copy into memory that another core is about to read.
 *
 * Its lines are the other core's, so every store first has to fetch the line it will overwrite whole. The processor's
 * string instruction, where it is a fast one (ERMS), takes the lines over without fetching them: 2 to 8 KiB into a slot
 * cost up to a third less than with memcpy's loop, which knows nothing of who has the lines. */
#ifndef DZ_SHM_COPY_H
#define DZ_SHM_COPY_H

#include <stdbool.h>

#include "transport/mem.h"

#define DZ_COPY_STRING_MIN 1024 /* below, starting the instruction costs more than it gains */

extern bool dz_copy_string; /* set by dz_copy_init */
void dz_copy_init(void);

static inline void dz_copy_in(const struct dz_view *v, size_t off, size_t len, void *dst)
{
#if defined __x86_64__
    if (len >= DZ_COPY_STRING_MIN && dz_copy_string && !v->layout) {
        const void *src = v->base + off;
        __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
        return;
    }
#endif
    dz_view_read(v, off, len, dst);
}

#endif
