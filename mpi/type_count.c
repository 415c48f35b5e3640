/* type_count.c - from the bytes in a status to elements, and back.
 *
 * A status knows bytes only. MPI_Get_count wants whole elements of the type; MPI_Get_elements wants predefined ones,
 * also those of an element that did not arrive in full. A type of one kind of predefined type answers by division; a
 * mixed one goes down the tree of constructors along its packed bytes: all constructors but struct repeat one older
 * type. */
#include <limits.h>

#include "mpi/type.h"

struct part { /* `copies` of a type, one after the other in the packed element */
    const struct dz_type *type;
    size_t copies;
};

static int part_count(const struct dz_type *t)
{
    return t->combiner == MPI_COMBINER_STRUCT ? dz_type_contents(t)->ntypes : 1;
}

static struct part part_of(const struct dz_type *t, int i)
{
    const struct dz_contents *c = dz_type_contents(t);
    size_t size = c->types[i]->size;
    if (t->combiner == MPI_COMBINER_STRUCT)
        return (struct part){c->types[i], size ? (size_t)c->ints[1 + i] : 0};
    return (struct part){c->types[i], size ? t->size / size : 0};
}

/* Predefined elements in the first `bytes` bytes of the packed t, bytes <= t->size; SIZE_MAX: they end inside one. */
static size_t elements_in(const struct dz_type *t, size_t bytes)
{
    size_t n = 0;
    while (bytes && !t->elem) {
        const struct dz_type *into = NULL;
        for (int i = 0; !into && i < part_count(t); i++) {
            struct part p = part_of(t, i);
            size_t all = p.copies * p.type->size, whole = bytes < all ? bytes / p.type->size : p.copies;
            n += whole * dz_type_elems(p.type);
            if (bytes < all)
                into = p.type;
            bytes -= whole * p.type->size;
            if (!bytes)
                return n;
        }
        t = into; /* bytes <= size: the loop above ended inside a part */
    }
    if (!bytes)
        return n;
    return bytes % t->elem->size ? SIZE_MAX : n + bytes / t->elem->size;
}

/* The reverse: bytes that n predefined elements of the packed t have, n <= those of t. */
static size_t bytes_of(const struct dz_type *t, size_t n)
{
    size_t bytes = 0;
    while (n && !t->elem) {
        const struct dz_type *into = NULL;
        for (int i = 0; !into && i < part_count(t); i++) {
            struct part p = part_of(t, i);
            size_t each = dz_type_elems(p.type), all = p.copies * each, whole = n < all ? n / each : p.copies;
            bytes += whole * p.type->size;
            if (n < all)
                into = p.type;
            n -= whole * each;
            if (!n)
                return bytes;
        }
        t = into;
    }
    return n ? bytes + n * t->elem->size : bytes;
}

static int check(const char *call, const MPI_Status *status, struct dz_type *type, const void *result)
{
    int rc = dz_check_ptr(call, NULL, status, "status");
    if (!rc)
        rc = dz_check_old(call, type, "datatype");
    return rc ? rc : dz_check_ptr(call, NULL, result, "count");
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    DZ_ENTER("MPI_Get_count");
    int rc = check("MPI_Get_count", status, datatype, count);
    if (rc)
        return rc;
    size_t bytes = status->_ucount, size = datatype->size;
    if (!size)
        *count = bytes ? MPI_UNDEFINED : 0;
    else
        *count = bytes % size || bytes / size > INT_MAX ? MPI_UNDEFINED : (int)(bytes / size);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Get_count)

/* Predefined elements in `bytes` bytes of a stream of t, or MPI_UNDEFINED. */
static MPI_Count elements(const struct dz_type *t, size_t bytes)
{
    if (!t->size)
        return bytes ? MPI_UNDEFINED : 0;
    size_t n, rest = elements_in(t, bytes % t->size);
    bool fits = !__builtin_mul_overflow(bytes / t->size, dz_type_elems(t), &n);
    return rest == SIZE_MAX || !fits || n + rest > LLONG_MAX ? MPI_UNDEFINED : (MPI_Count)(n + rest);
}

int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    DZ_ENTER("MPI_Get_elements");
    int rc = check("MPI_Get_elements", status, datatype, count);
    if (rc)
        return rc;
    MPI_Count n = elements(datatype, status->_ucount);
    *count = n > INT_MAX ? MPI_UNDEFINED : (int)n;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Get_elements)

int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    DZ_ENTER("MPI_Get_elements_x");
    int rc = check("MPI_Get_elements_x", status, datatype, count);
    if (!rc)
        *count = elements(datatype, status->_ucount);
    return rc;
}
DZ_WEAK(PI_Get_elements_x)

static int set_elements(const char *call, MPI_Status *status, struct dz_type *t, MPI_Count count)
{
    int rc = check(call, status, t, status);
    if (!rc)
        rc = dz_check_count(call, NULL, count, "count");
    if (rc)
        return rc;
    size_t each = dz_type_elems(t), bytes = 0;
    if (!each && count)
        return dz_raise(NULL, MPI_ERR_COUNT, call, "count is %lld, but the datatype is empty", (long long)count);
    if (each && __builtin_mul_overflow((size_t)count / each, t->size, &bytes))
        return dz_raise(NULL, MPI_ERR_COUNT, call, "count is %lld: no status can say so", (long long)count);
    status->_ucount = each ? bytes + bytes_of(t, (size_t)count % each) : 0;
    return MPI_SUCCESS;
}

int PMPI_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, int count)
{
    DZ_ENTER("MPI_Status_set_elements");
    return set_elements("MPI_Status_set_elements", status, datatype, count);
}
DZ_WEAK(PI_Status_set_elements)

int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    DZ_ENTER("MPI_Status_set_elements_x");
    return set_elements("MPI_Status_set_elements_x", status, datatype, count);
}
DZ_WEAK(PI_Status_set_elements_x)
