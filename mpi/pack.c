/* pack.c - MPI_Pack, MPI_Unpack, MPI_Pack_size: packed data is the bytes of the elements in pack order, without a
 * header, so any mixture of pack and receive calls with the same signature fits together. */
#include <limits.h>

#include "mpi/type.h"

struct args {
    const char *call;
    const void *data; /* what the datatype lays out */
    int count;
    MPI_Datatype type;
    const void *packed;
    int size;
    int *position;
    MPI_Comm comm;
};

/* Checks all of it, and that `bytes` bytes from position on lie within the packed buffer. */
static int check(const struct args *a, size_t *bytes)
{
    int rc = dz_check_comm(a->call, a->comm);
    if (!rc)
        rc = dz_check_count(a->call, a->comm, a->count, "count");
    if (!rc)
        rc = dz_check_type(a->call, a->comm, a->type, "datatype");
    if (!rc)
        rc = dz_check_buf(a->call, a->comm, a->data, a->count, a->type);
    if (!rc)
        rc = dz_check_ptr(a->call, a->comm, a->position, "position");
    if (rc)
        return rc;
    if (a->size < 0 || *a->position < 0 || *a->position > a->size)
        return dz_raise(a->comm, MPI_ERR_ARG, a->call, "position is %d in a packed buffer of %d bytes", *a->position,
                        a->size);
    if (__builtin_mul_overflow((size_t)a->count, a->type->size, bytes) || *bytes > (size_t)(a->size - *a->position))
        return dz_raise(a->comm, MPI_ERR_TRUNCATE, a->call,
                        "%d elements of %zu bytes do not fit from position %d on in a packed buffer of %d bytes",
                        a->count, a->type->size, *a->position, a->size);
    return *bytes ? dz_check_ptr(a->call, a->comm, a->packed, "the packed buffer") : MPI_SUCCESS;
}

int PMPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position,
              MPI_Comm comm)
{
    DZ_ENTER("MPI_Pack");
    size_t bytes;
    int rc = check(&(struct args){"MPI_Pack", inbuf, incount, datatype, outbuf, outsize, position, comm}, &bytes);
    if (rc || !bytes)
        return rc;
    struct dz_view v = dz_type_view(datatype, inbuf, (size_t)incount);
    dz_view_read(&v, 0, bytes, (char *)outbuf + *position);
    *position += (int)bytes;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Pack)

int PMPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype,
                MPI_Comm comm)
{
    DZ_ENTER("MPI_Unpack");
    size_t bytes;
    int rc = check(&(struct args){"MPI_Unpack", outbuf, outcount, datatype, inbuf, insize, position, comm}, &bytes);
    if (rc || !bytes)
        return rc;
    struct dz_view v = dz_type_view(datatype, outbuf, (size_t)outcount);
    dz_view_write(&v, 0, bytes, (const char *)inbuf + *position);
    *position += (int)bytes;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Unpack)

int PMPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size)
{
    static const char call[] = "MPI_Pack_size";
    DZ_ENTER(call);
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_count(call, comm, incount, "incount");
    if (!rc)
        rc = dz_check_type(call, comm, datatype, "datatype");
    if (!rc)
        rc = dz_check_ptr(call, comm, size, "size");
    size_t bytes;
    if (!rc && (__builtin_mul_overflow((size_t)incount, datatype->size, &bytes) || bytes > INT_MAX))
        rc = dz_raise(comm, MPI_ERR_COUNT, call, "%d elements of %zu bytes: more than an int can say", incount,
                      datatype->size);
    if (!rc)
        *size = (int)bytes;
    return rc;
}
DZ_WEAK(PI_Pack_size)
