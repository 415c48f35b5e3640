/* type.h - the inside of datatypes: how one is built, and what MPI_Type_get_contents gives back.
 *
 * A builder collects copies of older types at displacements, in pack order, into runs of bytes and bounds. Its first
 * error stays in `err` and turns the rest into no-ops, so that constructors need to look only once, at the end. */
#ifndef DZ_MPI_TYPE_H
#define DZ_MPI_TYPE_H

#include "mpi/core.h"

struct dz_contents { /* what envelope points to: the arguments of the constructor */
    int nints, naddrs, ntypes;
    int *ints;
    MPI_Aint *addrs;
    struct dz_type **types; /* each with a reference */
    size_t elems;           /* predefined elements in one element */
};

struct dz_build {
    struct dz_block *blocks;
    size_t nblocks, room;
    size_t size, elems;
    ptrdiff_t lb, ub;           /* as set by markers, else natural; no meaning before lb_any, ub_any */
    ptrdiff_t true_lb, true_ub; /* no meaning while size is 0 */
    bool lb_any, ub_any, lb_set, ub_set, mixed;
    const struct dz_type *elem;
    int align;
    int err; /* 0; -ENOMEM; -EOVERFLOW: beyond the address space */
};

/* What no built type exceeds: more runs than this cost more memory than any layout is worth. */
#define DZ_MAX_BLOCKS ((size_t)1 << 26)

void dz_build_init(struct dz_build *);
/* n copies of old, `stride` bytes apart, the first at disp */
void dz_build_add(struct dz_build *, const struct dz_type *old, size_t n, ptrdiff_t disp, ptrdiff_t stride);
/* One copy at n * unit, and so on: `len` copies side by side. The product is checked. */
void dz_build_add_at(struct dz_build *, const struct dz_type *old, size_t len, ptrdiff_t n, ptrdiff_t unit);
void dz_build_bounds(struct dz_build *, ptrdiff_t lb, ptrdiff_t ub); /* markers */
/* Makes t what was built; the builder is empty afterwards. Returns err, t is untouched then. */
int dz_build_close(struct dz_build *, struct dz_type *t);
/* The same for a temporary without handle, to be used as `old`; ends with free(t->type.blocks). */
struct dz_temp_type {
    struct dz_type type;
    struct dz_contents contents;
};
int dz_build_temp(struct dz_build *, struct dz_temp_type *);

/* A new handle with room for the constructor's arguments, which the caller fills in: types without references yet.
 * NULL: no memory, or more integers than MPI_Type_get_envelope can count. dz_type_finish takes the references, closes
 * the builder into it and stores the handle, or raises what went wrong and frees everything. Returns an MPI class. */
struct dz_type *dz_type_create(int combiner, size_t nints, size_t naddrs, size_t ntypes);
int dz_type_finish(const char *call, struct dz_build *, struct dz_type *, MPI_Datatype *newtype);

static inline struct dz_contents *dz_type_contents(const struct dz_type *t)
{
    return t->envelope;
}

/* Predefined elements in one element of t. */
static inline size_t dz_type_elems(const struct dz_type *t)
{
    return t->predefined ? t->size != 0 : dz_type_contents(t)->elems;
}

/* Sets size, bounds, layout of one that needs no builder (predefined types). */
void dz_type_layout(struct dz_type *);

/* oldtype of a constructor: valid, committed or not; newtype not NULL. Raise. */
int dz_check_old(const char *call, struct dz_type *, const char *arg);
int dz_check_make(const char *call, int count, struct dz_type *oldtype, const MPI_Datatype *newtype);

/* Constructors that MPI-1 has under other names. */
int dz_make_hvector(const char *call, int count, int blocklength, MPI_Aint stride, MPI_Datatype, MPI_Datatype *newtype);
int dz_make_hindexed(const char *call, int count, const int *blocklengths, const MPI_Aint *disps, MPI_Datatype,
                     MPI_Datatype *newtype);
int dz_make_struct(const char *call, int count, const int *blocklengths, const MPI_Aint *disps,
                   const MPI_Datatype *types, MPI_Datatype *newtype);

#endif
