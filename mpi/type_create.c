/* type_create.c - the constructors of MPI 3.1 section 4.1.2, MPI_Type_create_resized, and what undoes them:
 * MPI_Type_get_envelope and MPI_Type_get_contents.
 *
 * Each constructor checks, keeps its arguments, lets a builder lay copies of the older types down, and finishes. */
#include <errno.h>

#include "mpi/type.h"

static int check_length(const char *call, int blocklength)
{
    return blocklength >= 0 ? MPI_SUCCESS : dz_raise(NULL, MPI_ERR_ARG, call, "blocklength is %d", blocklength);
}

static int check_lengths(const char *call, int count, const int *lengths, const char *arg)
{
    int rc = count ? dz_check_ptr(call, NULL, lengths, arg) : MPI_SUCCESS;
    for (int i = 0; !rc && i < count; i++)
        if (lengths[i] < 0)
            rc = dz_raise(NULL, MPI_ERR_ARG, call, "%s[%d] is %d", arg, i, lengths[i]);
    return rc;
}

static int check_list(const char *call, int count, const void *list, const char *arg)
{
    return count ? dz_check_ptr(call, NULL, list, arg) : MPI_SUCCESS;
}

static struct dz_type *create(int combiner, size_t nints, size_t naddrs, MPI_Datatype oldtype, int first_int)
{
    struct dz_type *t = dz_type_create(combiner, nints, naddrs, 1);
    if (t) {
        dz_type_contents(t)->types[0] = oldtype;
        if (nints)
            dz_type_contents(t)->ints[0] = first_int;
    }
    return t;
}

static void keep_ints(struct dz_type *t, int at, const int *values, int n)
{
    if (t && n)
        memcpy(dz_type_contents(t)->ints + at, values, (size_t)n * sizeof values[0]);
}

static void keep_addrs(struct dz_type *t, const MPI_Aint *values, int n)
{
    if (t && n)
        memcpy(dz_type_contents(t)->addrs, values, (size_t)n * sizeof values[0]);
}

/* ---- contiguous and vectors */
int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_contiguous");
    int rc = dz_check_make("MPI_Type_contiguous", count, oldtype, newtype);
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_CONTIGUOUS, 1, 0, oldtype, count);
    struct dz_build b;
    dz_build_init(&b);
    dz_build_add(&b, oldtype, (size_t)count, 0, oldtype->extent);
    return dz_type_finish("MPI_Type_contiguous", &b, t, newtype);
}
DZ_WEAK(PI_Type_contiguous)

/* count blocks of blocklength, n * unit bytes from one to the next */
static void lay_vector(struct dz_build *b, MPI_Datatype old, int count, int blocklength, ptrdiff_t n, ptrdiff_t unit)
{
    ptrdiff_t stride;
    dz_build_init(b);
    if (__builtin_mul_overflow(n, unit, &stride))
        stride = PTRDIFF_MAX; /* too far for a second block */
    if (blocklength == 1 || count == 1) {
        dz_build_add(b, old, (size_t)count * (size_t)blocklength, 0, count == 1 ? old->extent : stride);
        return;
    }
    ptrdiff_t block;
    if (!__builtin_mul_overflow((ptrdiff_t)blocklength, old->extent, &block) && block == stride) {
        dz_build_add(b, old, (size_t)count * (size_t)blocklength, 0, old->extent);
        return;
    }
    if (old->contig && (size_t)count > DZ_MAX_BLOCKS)
        b->err = -ENOMEM; /* rather than after filling that much of it */
    for (int i = 0; blocklength && !b->err && i < count; i++)
        dz_build_add_at(b, old, (size_t)blocklength, i, stride);
}

int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_vector");
    int rc = dz_check_make("MPI_Type_vector", count, oldtype, newtype);
    if (!rc)
        rc = check_length("MPI_Type_vector", blocklength);
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_VECTOR, 3, 0, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, (int[]){blocklength, stride}, 2);
    lay_vector(&b, oldtype, count, blocklength, stride, oldtype->extent);
    return dz_type_finish("MPI_Type_vector", &b, t, newtype);
}
DZ_WEAK(PI_Type_vector)

int dz_make_hvector(const char *call, int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                    MPI_Datatype *newtype)
{
    int rc = dz_check_make(call, count, oldtype, newtype);
    if (!rc)
        rc = check_length(call, blocklength);
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_HVECTOR, 2, 1, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, &blocklength, 1);
    keep_addrs(t, &stride, 1);
    lay_vector(&b, oldtype, count, blocklength, stride, 1);
    return dz_type_finish(call, &b, t, newtype);
}

int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_create_hvector");
    return dz_make_hvector("MPI_Type_create_hvector", count, blocklength, stride, oldtype, newtype);
}
DZ_WEAK(PI_Type_create_hvector)

/* ---- lists of blocks */
int PMPI_Type_indexed(int count, const int blocklengths[], const int displacements[], MPI_Datatype oldtype,
                      MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_indexed";
    DZ_ENTER(call);
    int rc = dz_check_make(call, count, oldtype, newtype);
    if (!rc)
        rc = check_lengths(call, count, blocklengths, "array_of_blocklengths");
    if (!rc)
        rc = check_list(call, count, displacements, "array_of_displacements");
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_INDEXED, 1 + 2 * (size_t)count, 0, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, blocklengths, count);
    keep_ints(t, 1 + count, displacements, count);
    dz_build_init(&b);
    for (int i = 0; !b.err && i < count; i++)
        dz_build_add_at(&b, oldtype, (size_t)blocklengths[i], displacements[i], oldtype->extent);
    return dz_type_finish(call, &b, t, newtype);
}
DZ_WEAK(PI_Type_indexed)

int dz_make_hindexed(const char *call, int count, const int *blocklengths, const MPI_Aint *displacements,
                     MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    int rc = dz_check_make(call, count, oldtype, newtype);
    if (!rc)
        rc = check_lengths(call, count, blocklengths, "array_of_blocklengths");
    if (!rc)
        rc = check_list(call, count, displacements, "array_of_displacements");
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_HINDEXED, 1 + (size_t)count, (size_t)count, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, blocklengths, count);
    keep_addrs(t, displacements, count);
    dz_build_init(&b);
    for (int i = 0; !b.err && i < count; i++)
        dz_build_add_at(&b, oldtype, (size_t)blocklengths[i], displacements[i], 1);
    return dz_type_finish(call, &b, t, newtype);
}

int PMPI_Type_create_hindexed(int count, const int blocklengths[], const MPI_Aint displacements[], MPI_Datatype oldtype,
                              MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_create_hindexed");
    return dz_make_hindexed("MPI_Type_create_hindexed", count, blocklengths, displacements, oldtype, newtype);
}
DZ_WEAK(PI_Type_create_hindexed)

int PMPI_Type_create_indexed_block(int count, int blocklength, const int displacements[], MPI_Datatype oldtype,
                                   MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_indexed_block";
    DZ_ENTER(call);
    int rc = dz_check_make(call, count, oldtype, newtype);
    if (!rc)
        rc = check_length(call, blocklength);
    if (!rc)
        rc = check_list(call, count, displacements, "array_of_displacements");
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_INDEXED_BLOCK, 2 + (size_t)count, 0, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, &blocklength, 1);
    keep_ints(t, 2, displacements, count);
    dz_build_init(&b);
    for (int i = 0; !b.err && i < count; i++)
        dz_build_add_at(&b, oldtype, (size_t)blocklength, displacements[i], oldtype->extent);
    return dz_type_finish(call, &b, t, newtype);
}
DZ_WEAK(PI_Type_create_indexed_block)

int PMPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_hindexed_block";
    DZ_ENTER(call);
    int rc = dz_check_make(call, count, oldtype, newtype);
    if (!rc)
        rc = check_length(call, blocklength);
    if (!rc)
        rc = check_list(call, count, displacements, "array_of_displacements");
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_HINDEXED_BLOCK, 2, (size_t)count, oldtype, count);
    struct dz_build b;
    keep_ints(t, 1, &blocklength, 1);
    keep_addrs(t, displacements, count);
    dz_build_init(&b);
    for (int i = 0; !b.err && i < count; i++)
        dz_build_add_at(&b, oldtype, (size_t)blocklength, displacements[i], 1);
    return dz_type_finish(call, &b, t, newtype);
}
DZ_WEAK(PI_Type_create_hindexed_block)

/* ---- struct */
static int check_struct(const char *call, int count, const int *blocklengths, const MPI_Aint *displacements,
                        const MPI_Datatype *types, const MPI_Datatype *newtype)
{
    int rc = dz_check_count(call, NULL, count, "count");
    if (!rc)
        rc = check_lengths(call, count, blocklengths, "array_of_blocklengths");
    if (!rc)
        rc = check_list(call, count, displacements, "array_of_displacements");
    if (!rc)
        rc = check_list(call, count, types, "array_of_types");
    for (int i = 0; !rc && i < count; i++) {
        if (!dz_type_ok(types[i]))
            rc = dz_raise(NULL, MPI_ERR_TYPE, call, "array_of_types[%d] is %p: no datatype%s", i, (void *)types[i],
                          types[i] == MPI_DATATYPE_NULL ? " (MPI_DATATYPE_NULL)" : "");
    }
    return rc ? rc : dz_check_ptr(call, NULL, newtype, "newtype");
}

int dz_make_struct(const char *call, int count, const int *blocklengths, const MPI_Aint *displacements,
                   const MPI_Datatype *types, MPI_Datatype *newtype)
{
    int rc = check_struct(call, count, blocklengths, displacements, types, newtype);
    if (rc)
        return rc;
    struct dz_type *t = dz_type_create(MPI_COMBINER_STRUCT, 1 + (size_t)count, (size_t)count, (size_t)count);
    struct dz_build b;
    if (t) {
        dz_type_contents(t)->ints[0] = count;
        keep_ints(t, 1, blocklengths, count);
        keep_addrs(t, displacements, count);
        if (count)
            memcpy(dz_type_contents(t)->types, types, (size_t)count * sizeof types[0]);
    }
    dz_build_init(&b);
    for (int i = 0; !b.err && i < count; i++)
        dz_build_add_at(&b, types[i], (size_t)blocklengths[i], displacements[i], 1);
    return dz_type_finish(call, &b, t, newtype);
}

int PMPI_Type_create_struct(int count, const int blocklengths[], const MPI_Aint displacements[],
                            const MPI_Datatype types[], MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_create_struct");
    return dz_make_struct("MPI_Type_create_struct", count, blocklengths, displacements, types, newtype);
}
DZ_WEAK(PI_Type_create_struct)

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_resized";
    DZ_ENTER(call);
    MPI_Aint ub;
    int rc = dz_check_make(call, 0, oldtype, newtype);
    if (!rc && __builtin_add_overflow(lb, extent, &ub))
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "lb is %td, extent is %td: beyond the address space", lb, extent);
    if (rc)
        return rc;
    struct dz_type *t = create(MPI_COMBINER_RESIZED, 0, 2, oldtype, 0);
    struct dz_build b;
    keep_addrs(t, (MPI_Aint[]){lb, extent}, 2);
    dz_build_init(&b);
    dz_build_add(&b, oldtype, 1, 0, 0);
    dz_build_bounds(&b, lb, ub);
    return dz_type_finish(call, &b, t, newtype);
}
DZ_WEAK(PI_Type_create_resized)

/* ---- what a type was made of */
int PMPI_Type_get_envelope(MPI_Datatype type, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner)
{
    static const char call[] = "MPI_Type_get_envelope";
    DZ_ENTER(call);
    int rc = dz_check_old(call, type, "datatype");
    if (!rc && (!num_integers || !num_addresses || !num_datatypes || !combiner))
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "a pointer to a result is NULL");
    if (rc)
        return rc;
    const struct dz_contents none = {0}, *c = type->predefined ? &none : dz_type_contents(type);
    *num_integers = c->nints;
    *num_addresses = c->naddrs;
    *num_datatypes = c->ntypes;
    *combiner = type->combiner;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_envelope)

int PMPI_Type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_datatypes, int integers[],
                           MPI_Aint addresses[], MPI_Datatype datatypes[])
{
    static const char call[] = "MPI_Type_get_contents";
    DZ_ENTER(call);
    int rc = dz_check_old(call, type, "datatype");
    if (!rc && type->predefined)
        rc = dz_raise(NULL, MPI_ERR_TYPE, call, "datatype is the predefined %s", type->name);
    if (rc)
        return rc;
    const struct dz_contents *c = dz_type_contents(type);
    if (max_integers < c->nints || max_addresses < c->naddrs || max_datatypes < c->ntypes)
        return dz_raise(NULL, MPI_ERR_ARG, call,
                        "there is room for %d integers, %d addresses, %d datatypes; the type has %d, %d, %d",
                        max_integers, max_addresses, max_datatypes, c->nints, c->naddrs, c->ntypes);
    if ((c->nints && !integers) || (c->naddrs && !addresses) || (c->ntypes && !datatypes))
        return dz_raise(NULL, MPI_ERR_ARG, call, "an array for results is NULL");
    if (c->nints)
        memcpy(integers, c->ints, (size_t)c->nints * sizeof integers[0]);
    if (c->naddrs)
        memcpy(addresses, c->addrs, (size_t)c->naddrs * sizeof addresses[0]);
    for (int i = 0; i < c->ntypes; i++) {
        datatypes[i] = c->types[i];
        dz_type_get(datatypes[i]); /* the caller frees derived ones */
    }
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_contents)
