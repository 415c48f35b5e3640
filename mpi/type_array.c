/* type_array.c - parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray.
 *
 * Both are built from the fastest dimension outwards. `inner` is always the part of a whole slice of the dimensions
 * done so far, with the extent of that slice, so that the next dimension only has to say which slices it takes: runs
 * of [start, start + len) of its indices. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/type.h"

struct array {
    const struct dz_type *inner;
    ptrdiff_t slice;              /* bytes from one slice to the next */
    struct dz_temp_type temp[2];  /* inner, and the one in the making */
    int at, err;
};

static void array_open(struct array *a, const struct dz_type *old)
{
    *a = (struct array){.inner = old, .slice = old->extent};
}

/* Ends a dimension of `size` indices; b holds copies of inner. */
static void array_wrap(struct array *a, struct dz_build *b, int size)
{
    struct dz_temp_type *next = &a->temp[a->at];
    if (__builtin_mul_overflow(a->slice, (ptrdiff_t)size, &a->slice) && !b->err)
        b->err = -EOVERFLOW;
    dz_build_bounds(b, 0, a->slice);
    a->err = dz_build_temp(b, next);
    a->at ^= 1;
    free(a->temp[a->at].type.blocks);
    a->temp[a->at].type.blocks = NULL;
    if (!a->err)
        a->inner = &next->type;
}

static void array_add(struct array *a, struct dz_build *b, int start, int len)
{
    ptrdiff_t disp;
    if (__builtin_mul_overflow(a->slice, (ptrdiff_t)start, &disp))
        b->err = b->err ? b->err : -EOVERFLOW;
    else
        dz_build_add(b, a->inner, (size_t)len, disp, a->slice);
}

static int array_close(const char *call, struct array *a, struct dz_type *t, MPI_Datatype *newtype)
{
    struct dz_build b;
    dz_build_init(&b);
    b.err = a->err;
    if (!a->err)
        dz_build_add(&b, a->inner, 1, 0, 0);
    free(a->temp[0].type.blocks);
    free(a->temp[1].type.blocks);
    return dz_type_finish(call, &b, t, newtype);
}

static int check_dims(const char *call, int ndims, int order, MPI_Datatype oldtype, const MPI_Datatype *newtype)
{
    int rc = dz_check_make(call, 0, oldtype, newtype);
    if (!rc && ndims < 1)
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "ndims is %d", ndims);
    if (!rc && order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "order is %d, neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    return rc;
}

/* The k-th fastest dimension. */
static int dimension(int k, int ndims, int order)
{
    return order == MPI_ORDER_C ? ndims - 1 - k : k;
}

/* The integers of the contents: single ones, lists of ndims, the order. */
static void keep(struct dz_type *t, const int *first, int nfirst, const int *const *lists, int nlists, int ndims,
                 int order)
{
    int *ints = dz_type_contents(t)->ints;
    memcpy(ints, first, (size_t)nfirst * sizeof ints[0]);
    ints += nfirst;
    for (int i = 0; i < nlists; i++, ints += ndims)
        memcpy(ints, lists[i], (size_t)ndims * sizeof ints[0]);
    *ints = order;
}

/* ---- subarray */
static int check_subarray(const char *call, int ndims, const int *sizes, const int *subsizes, const int *starts)
{
    if (!sizes || !subsizes || !starts)
        return dz_raise(NULL, MPI_ERR_ARG, call, "%s is NULL",
                        !sizes ? "array_of_sizes" : !subsizes ? "array_of_subsizes" : "array_of_starts");
    for (int i = 0; i < ndims; i++) {
        bool fits = sizes[i] >= 1 && subsizes[i] >= 1 && subsizes[i] <= sizes[i] && starts[i] >= 0 &&
                    starts[i] <= sizes[i] - subsizes[i];
        if (!fits)
            return dz_raise(NULL, MPI_ERR_ARG, call, "dimension %d: %d indices from %d do not lie in an array of %d", i,
                            subsizes[i], starts[i], sizes[i]);
    }
    return MPI_SUCCESS;
}

int PMPI_Type_create_subarray(int ndims, const int sizes[], const int subsizes[], const int starts[], int order,
                              MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_subarray";
    DZ_ENTER(call);
    int rc = check_dims(call, ndims, order, oldtype, newtype);
    if (!rc)
        rc = check_subarray(call, ndims, sizes, subsizes, starts);
    if (rc)
        return rc;
    struct dz_type *t = dz_type_create(MPI_COMBINER_SUBARRAY, 2 + 3 * (size_t)ndims, 0, 1);
    if (t) {
        const int *lists[] = {sizes, subsizes, starts};
        dz_type_contents(t)->types[0] = oldtype;
        keep(t, &ndims, 1, lists, 3, ndims, order);
    }
    struct array a;
    array_open(&a, oldtype);
    for (int k = 0; !a.err && k < ndims; k++) {
        int d = dimension(k, ndims, order);
        struct dz_build b;
        dz_build_init(&b);
        array_add(&a, &b, starts[d], subsizes[d]);
        array_wrap(&a, &b, sizes[d]);
    }
    return array_close(call, &a, t, newtype);
}
DZ_WEAK(PI_Type_create_subarray)

/* ---- darray */
struct share { int size, distrib, darg, procs; }; /* one dimension's */

static const char *bad_share(const struct share *s)
{
    if (s->size < 1)
        return "its size is not positive";
    if (s->procs < 1)
        return "it has no processes";
    if (s->distrib != MPI_DISTRIBUTE_BLOCK && s->distrib != MPI_DISTRIBUTE_CYCLIC && s->distrib != MPI_DISTRIBUTE_NONE)
        return "its distribution is none that exists";
    if (s->distrib == MPI_DISTRIBUTE_NONE)
        return s->procs == 1 ? NULL : "it is not distributed, but has several processes";
    if (s->darg != MPI_DISTRIBUTE_DFLT_DARG && s->darg < 1)
        return "its block is not positive";
    if (s->distrib == MPI_DISTRIBUTE_BLOCK && s->darg != MPI_DISTRIBUTE_DFLT_DARG &&
        (long long)s->darg * s->procs < s->size)
        return "its blocks do not cover it";
    return NULL;
}

static struct share share_of(int d, const int *gsizes, const int *distribs, const int *dargs, const int *psizes)
{
    return (struct share){gsizes[d], distribs[d], dargs[d], psizes[d]};
}

static int check_darray(const char *call, int size, int rank, int ndims, const int *gsizes, const int *distribs,
                        const int *dargs, const int *psizes)
{
    long long grid = 1;
    if (!gsizes || !distribs || !dargs || !psizes)
        return dz_raise(NULL, MPI_ERR_ARG, call, "%s is NULL", !gsizes ? "array_of_gsizes" : !distribs ?
                        "array_of_distribs" : !dargs ? "array_of_dargs" : "array_of_psizes");
    if (size < 1 || rank < 0 || rank >= size)
        return dz_raise(NULL, MPI_ERR_ARG, call, "rank is %d, size is %d", rank, size);
    for (int i = 0; i < ndims; i++) {
        struct share s = share_of(i, gsizes, distribs, dargs, psizes);
        const char *why = bad_share(&s);
        if (why)
            return dz_raise(NULL, MPI_ERR_ARG, call,
                            "dimension %d of size %d, distribution %d, argument %d, %d processes: %s", i, s.size,
                            s.distrib, s.darg, s.procs, why);
        grid = grid > size ? grid : grid * s.procs;
    }
    if (grid != size)
        return dz_raise(NULL, MPI_ERR_ARG, call, "size is %d, but array_of_psizes is a grid of other size", size);
    return MPI_SUCCESS;
}

/* Adds the indices of one dimension that belong to process `me` of it. */
static void array_share(struct array *a, struct dz_build *b, const struct share *s, int me)
{
    long long block = s->darg, step;
    if (s->distrib == MPI_DISTRIBUTE_NONE)
        block = s->size;
    else if (s->darg == MPI_DISTRIBUTE_DFLT_DARG)
        block = s->distrib == MPI_DISTRIBUTE_CYCLIC ? 1 : (s->size + (long long)s->procs - 1) / s->procs;
    step = block * s->procs;
    for (long long at = block * me; at < s->size && !b->err; at += step)
        array_add(a, b, (int)at, (int)(s->size - at < block ? s->size - at : block));
}

int PMPI_Type_create_darray(int size, int rank, int ndims, const int gsizes[], const int distribs[], const int dargs[],
                            const int psizes[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_darray";
    DZ_ENTER(call);
    int rc = check_dims(call, ndims, order, oldtype, newtype);
    if (!rc)
        rc = check_darray(call, size, rank, ndims, gsizes, distribs, dargs, psizes);
    if (rc)
        return rc;
    struct dz_type *t = dz_type_create(MPI_COMBINER_DARRAY, 4 + 4 * (size_t)ndims, 0, 1);
    if (t) {
        const int *lists[] = {gsizes, distribs, dargs, psizes};
        dz_type_contents(t)->types[0] = oldtype;
        keep(t, (const int[]){size, rank, ndims}, 3, lists, 4, ndims, order);
    }
    struct array a;
    array_open(&a, oldtype);
    int *coords = malloc((size_t)ndims * sizeof(int)); /* the grid of processes is row-major, whatever order says */
    if (!coords)
        a.err = -ENOMEM;
    for (int d = ndims - 1; coords && d >= 0; d--) {
        coords[d] = rank % psizes[d];
        rank /= psizes[d];
    }
    for (int k = 0; !a.err && k < ndims; k++) {
        int d = dimension(k, ndims, order);
        struct share s = share_of(d, gsizes, distribs, dargs, psizes);
        struct dz_build b;
        dz_build_init(&b);
        array_share(&a, &b, &s, coords[d]);
        array_wrap(&a, &b, s.size);
    }
    free(coords);
    return array_close(call, &a, t, newtype);
}
DZ_WEAK(PI_Type_create_darray)
