/* type_pack.c - copies any sub-range of a packed stream between user memory and a linear buffer.
 *
 * The stream is element after element, `extent` apart in user memory; an element is its runs, one after the other. A
 * sub-range is cut into the rest of a first element, whole elements, and the beginning of a last one; each of them into
 * the rest of a run, whole runs, the beginning of a run. Where the start lies is found by division (elements, runs of a
 * grid) or by bisection (other runs), then nothing is searched any more.
 *
 * Gather and scatter are one code with a constant direction; `user` is only written when the direction is in. */
#include "mpi/type.h"

enum dir { OUT, IN }; /* of user memory, into user memory */
#define INLINE static inline __attribute__((always_inline))

INLINE void copy(enum dir d, char *user, char *pack, size_t n)
{
    if (d == OUT)
        memcpy(pack, user, n);
    else
        memcpy(user, pack, n);
}

INLINE void copy_run(enum dir d, char *user, char *pack, size_t n)
{
    switch (n) { /* a call of memcpy costs more than these */
    case 4:
        copy(d, user, pack, 4);
        break;
    case 8:
        copy(d, user, pack, 8);
        break;
    case 16:
        copy(d, user, pack, 16);
        break;
    default:
        copy(d, user, pack, n);
    }
}

INLINE void copy_equal(enum dir d, char *user, ptrdiff_t stride, char *pack, size_t n, size_t run)
{
    for (size_t i = 0; i < n; i++, user += stride, pack += run)
        copy(d, user, pack, run);
}

INLINE void copy_strided(enum dir d, char *user, ptrdiff_t stride, char *pack, size_t n, size_t run)
{
    switch (run) {
    case 1:
        copy_equal(d, user, stride, pack, n, 1);
        break;
    case 2:
        copy_equal(d, user, stride, pack, n, 2);
        break;
    case 4:
        copy_equal(d, user, stride, pack, n, 4);
        break;
    case 8:
        copy_equal(d, user, stride, pack, n, 8);
        break;
    case 12:
        copy_equal(d, user, stride, pack, n, 12);
        break;
    case 16:
        copy_equal(d, user, stride, pack, n, 16);
        break;
    case 24:
        copy_equal(d, user, stride, pack, n, 24);
        break;
    case 32:
        copy_equal(d, user, stride, pack, n, 32);
        break;
    default:
        copy_equal(d, user, stride, pack, n, run);
    }
}

/* Runs [first, first + n) of the element at `user`. */
INLINE void copy_runs(enum dir d, const struct dz_type *t, char *user, char *pack, size_t first, size_t n)
{
    const struct dz_grid *g = &t->grid;
    if (!g->run) {
        for (const struct dz_block *b = t->blocks + first, *end = b + n; b < end; b++) {
            copy_run(d, user + b->disp, pack, b->len);
            pack += b->len;
        }
        return;
    }
    for (size_t row = n ? g->per_row - first % g->per_row : 0; n; row = g->per_row) {
        row = row < n ? row : n;
        copy_strided(d, user + t->blocks[first].disp, g->stride, pack, row, g->run);
        pack += row * g->run;
        first += row;
        n -= row;
    }
}

/* The run that holds byte off of the packed element. */
INLINE size_t find_run(const struct dz_type *t, size_t off)
{
    if (t->grid.run)
        return off / t->grid.run;
    size_t lo = 0, hi = t->nblocks;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->blocks[mid].packed <= off)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Bytes [off, off + len) of the packed element at `user`; len > 0. */
INLINE void copy_part(enum dir d, const struct dz_type *t, char *user, char *pack, size_t off, size_t len)
{
    size_t i = find_run(t, off), end = off + len;
    const struct dz_block *b = &t->blocks[i];
    if (off > b->packed) {
        size_t skip = off - b->packed, n = b->len - skip < len ? b->len - skip : len;
        copy(d, user + b->disp + skip, pack, n);
        pack += n;
        if (n == len)
            return;
        b = &t->blocks[++i];
    }
    size_t last = end == t->size ? t->nblocks : find_run(t, end);
    size_t whole = last - i, at = b->packed;
    copy_runs(d, t, user, pack, i, whole);
    if (end == t->size)
        return;
    b = &t->blocks[last];
    if (end > b->packed)
        copy(d, user + b->disp, pack + (b->packed - at), end - b->packed);
}

INLINE void copy_elements(enum dir d, const struct dz_type *t, char *user, char *pack, size_t n)
{
    if (t->nblocks == 1) {
        copy_strided(d, user + t->blocks[0].disp, t->extent, pack, n, t->size);
        return;
    }
    for (size_t i = 0; i < n; i++, user += t->extent, pack += t->size)
        copy_runs(d, t, user, pack, 0, t->nblocks);
}

INLINE void walk(enum dir d, const struct dz_type *t, char *user, size_t off, size_t len, char *pack)
{
    if (!len)
        return;
    size_t element = off / t->size, skip = off % t->size;
    user += (ptrdiff_t)element * t->extent;
    if (skip) {
        size_t n = t->size - skip < len ? t->size - skip : len;
        copy_part(d, t, user, pack, skip, n);
        user += t->extent;
        pack += n;
        len -= n;
    }
    size_t whole = len / t->size, rest = len % t->size;
    copy_elements(d, t, user, pack, whole);
    if (rest)
        copy_part(d, t, user + (ptrdiff_t)whole * t->extent, pack + whole * t->size, 0, rest);
}

static void gather(const void *ctx, const char *base, size_t off, size_t len, void *dst)
{
    walk(OUT, ctx, (char *)base, off, len, dst);
}

static void scatter(const void *ctx, char *base, size_t off, size_t len, const void *src)
{
    walk(IN, ctx, base, off, len, (char *)src);
}

static size_t spans(const void *ctx, const char *base, size_t off, size_t len, struct dz_span *out, size_t max)
{
    const struct dz_type *t = ctx;
    size_t n = 0;
    while (len) {
        size_t element = off / t->size, skip = off % t->size;
        const struct dz_block *b = &t->blocks[find_run(t, skip)];
        size_t inner = skip - b->packed, bytes = b->len - inner < len ? b->len - inner : len;
        const char *at = base + (ptrdiff_t)element * t->extent + b->disp + (ptrdiff_t)inner;
        if (n && out[n - 1].base + out[n - 1].bytes == at) {
            out[n - 1].bytes += bytes;
        } else if (n == max) {
            return max + 1;
        } else {
            out[n++] = (struct dz_span){at, bytes};
        }
        off += bytes;
        len -= bytes;
    }
    return n;
}

/* ---- what the copies above rely on, from the runs of a type */
static struct dz_grid grid_of(const struct dz_block *b, size_t n)
{
    struct dz_grid g = {.run = b[0].len, .per_row = 1, .stride = n > 1 ? b[1].disp - b[0].disp : 0};
    while (g.per_row < n && b[g.per_row].disp - b[g.per_row - 1].disp == g.stride)
        g.per_row++;
    for (size_t i = 0, column = 0; i < n; i++, column++) {
        if (column == g.per_row)
            column = 0;
        if (b[i].len != g.run || (column && b[i].disp - b[i - 1].disp != g.stride))
            return (struct dz_grid){0};
    }
    return g;
}

void dz_type_layout(struct dz_type *t)
{
    bool from_zero = !t->blocks || t->blocks[0].disp == 0;
    t->contig = t->nblocks == 1 && from_zero && t->lb == 0 && t->extent == (ptrdiff_t)t->size;
    t->grid = t->blocks && t->nblocks ? grid_of(t->blocks, t->nblocks) : (struct dz_grid){0};
    t->layout = (struct dz_layout){gather, scatter, spans, t};
}
