/* mem.h - how bytes of user memory are described to a transport, and memory that other processes can map.
 *
 * A view is a packed byte stream of fixed length laid over user memory: byte i of the stream is byte i of the MPI
 * pack order. Contiguous memory has no layout; anything else carries a layout whose two functions copy any
 * sub-range of the stream. Transports see views only, never MPI datatypes.
 *
 * Always: 0 <= off, off + len <= view->bytes in every call below. Views do not own the memory they describe. */
#ifndef DZ_TRANSPORT_MEM_H
#define DZ_TRANSPORT_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dz_span {
    const char *base;
    size_t bytes;
};

struct dz_layout {
    /* copies bytes [off, off + len) of the packed stream between user memory at base and a linear buffer */
    void (*gather)(const void *ctx, const char *base, size_t off, size_t len, void *dst);
    void (*scatter)(const void *ctx, char *base, size_t off, size_t len, const void *src);
    /* Where bytes [off, off + len) lie: fills spans, in stream order, adjacent ones joined. Their number; max + 1: more. */
    size_t (*spans)(const void *ctx, const char *base, size_t off, size_t len, struct dz_span *spans, size_t max);
    const void *ctx; /* what describes the layout; owned by whoever made the view */
};

struct dz_view {
    char *base;                     /* may be NULL when bytes is 0 */
    size_t bytes;                   /* length of the packed stream */
    const struct dz_layout *layout; /* NULL: contiguous from base */
};

/* dst <- stream [off, off + len) */
static inline void dz_view_read(const struct dz_view *v, size_t off, size_t len, void *dst)
{
    if (!v->layout)
        memcpy(dst, v->base + off, len);
    else
        v->layout->gather(v->layout->ctx, v->base, off, len, dst);
}

/* stream [off, off + len) <- src */
static inline void dz_view_write(const struct dz_view *v, size_t off, size_t len, const void *src)
{
    if (!v->layout)
        memcpy(v->base + off, src, len);
    else
        v->layout->scatter(v->layout->ctx, v->base, off, len, src);
}

/* Memory that every process of this node can map (MPI_Alloc_mem). Zero bytes give a valid, unique pointer.
 * Falls back to private memory where no shared segment can be had. Threads: any.
 * dz_mem_alloc returns NULL with errno; dz_mem_free returns -EINVAL for a pointer it did not hand out. */
void *dz_mem_alloc(size_t bytes);
int dz_mem_free(void *p);

#endif
