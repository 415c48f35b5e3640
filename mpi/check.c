/* check.c - the argument checks that many calls share. Each raises what it finds, with the call, the argument's name and
 * its value, through the handler of the communicator; comm may be NULL where there is none to ask. */
#include "mpi/core.h"

int dz_check_ptr(const char *call, struct dz_comm *comm, const void *p, const char *arg)
{
    return p ? MPI_SUCCESS : dz_raise(comm, MPI_ERR_ARG, call, "%s is NULL", arg);
}

int dz_check_comm(const char *call, struct dz_comm *comm)
{
    if (dz_comm_ok(comm))
        return MPI_SUCCESS;
    if (comm == MPI_COMM_NULL)
        return dz_raise(NULL, MPI_ERR_COMM, call, "comm is MPI_COMM_NULL");
    return dz_raise(NULL, MPI_ERR_COMM, call, "comm is %p: no communicator, or one that was freed", (void *)comm);
}

int dz_check_type(const char *call, struct dz_comm *comm, struct dz_type *type, const char *arg)
{
    if (!dz_type_ok(type)) {
        if (type == MPI_DATATYPE_NULL)
            return dz_raise(comm, MPI_ERR_TYPE, call, "%s is MPI_DATATYPE_NULL", arg);
        return dz_raise(comm, MPI_ERR_TYPE, call, "%s is %p: no datatype, or one that was freed", arg, (void *)type);
    }
    if (!type->committed)
        return dz_raise(comm, MPI_ERR_TYPE, call, "%s ('%s', %zu bytes) is not committed", arg, type->name, type->size);
    return MPI_SUCCESS;
}

int dz_check_count(const char *call, struct dz_comm *comm, MPI_Count count, const char *arg)
{
    return count >= 0 ? MPI_SUCCESS : dz_raise(comm, MPI_ERR_COUNT, call, "%s is %lld", arg, (long long)count);
}

int dz_check_buf(const char *call, struct dz_comm *comm, const void *buf, MPI_Count count, struct dz_type *type)
{
    /* a type whose bytes lie this far from its origin has absolute addresses: then NULL is MPI_BOTTOM */
    enum { FIRST_PAGE = 4096 };
    if (!count || !type->size)
        return MPI_SUCCESS;
    if (!buf && type->true_lb < FIRST_PAGE)
        return dz_raise(comm, MPI_ERR_BUFFER, call, "the buffer is NULL, but count is %lld", (long long)count);
    if (buf == MPI_IN_PLACE)
        return dz_raise(comm, MPI_ERR_BUFFER, call, "MPI_IN_PLACE has no meaning for this buffer");
    return MPI_SUCCESS;
}

static int check_rank(const char *call, struct dz_comm *comm, int rank, const char *arg)
{
    if (rank == MPI_PROC_NULL || (rank >= 0 && rank < comm->size))
        return MPI_SUCCESS;
    return dz_raise(comm, MPI_ERR_RANK, call, "%s is %d%s; the communicator has ranks 0 to %d", arg, rank,
                    rank == MPI_ANY_SOURCE ? " (MPI_ANY_SOURCE)" : "", comm->size - 1);
}

int dz_check_dest(const char *call, struct dz_comm *comm, int rank, const char *arg)
{
    return check_rank(call, comm, rank, arg);
}

int dz_check_source(const char *call, struct dz_comm *comm, int rank)
{
    return rank == MPI_ANY_SOURCE ? MPI_SUCCESS : check_rank(call, comm, rank, "source");
}

int dz_check_root(const char *call, struct dz_comm *comm, int root)
{
    if (root >= 0 && root < comm->size)
        return MPI_SUCCESS;
    return dz_raise(comm, MPI_ERR_ROOT, call, "root is %d; the communicator has ranks 0 to %d", root, comm->size - 1);
}

int dz_check_tag(const char *call, struct dz_comm *comm, int tag, bool any_allowed)
{
    if (tag >= 0 || (any_allowed && tag == MPI_ANY_TAG)) /* DZ_TAG_UB is the largest int */
        return MPI_SUCCESS;
    return dz_raise(comm, MPI_ERR_TAG, call, "tag is %d%s", tag, tag == MPI_ANY_TAG ? " (MPI_ANY_TAG)" : "");
}
