/* coll_gather.c - collectives in which every rank's block goes to one rank, or comes from it: gather and scatter, also
 * with blocks of different sizes.
 *
 * Short equal blocks travel packed down or up a binomial tree, where the subtree of a rank is a run of ranks counted from
 * the root; all others go straight, as all do over channels. In place means at the own block of the root's buffer. */
#include "mpi/coll.h"

enum { TREE_BYTES = 4096 }; /* blocks up to which fewer steps win over fewer copies */

static int lowest_bit(int rank, int size) /* of rank; for 0 the first power of two not below size */
{
    int bit = 1;
    while (bit < size && !(rank & bit))
        bit *= 2;
    return bit;
}

static int span(int me, int bit, int size) /* ranks in the subtree of me */
{
    return me + bit < size ? bit : size - me;
}

/* ---- gather */
/* all: packed blocks of me, me + 1, ... counted from the root; the first is filled. */
static int gather_up(struct dz_coll *c, char *all, size_t block, int root)
{
    int size = c->comm->size, me = (c->comm->rank - root + size) % size, top = lowest_bit(me, size), rc = MPI_SUCCESS;
    for (int bit = 1; !rc && bit < top; bit *= 2)
        if (me + bit < size)
            rc = dz_coll_recv(c, all + (size_t)bit * block, (size_t)span(me + bit, bit, size) * block, MPI_BYTE,
                              (me + bit + root) % size);
    if (!rc && me)
        rc = dz_coll_send(c, all, (size_t)span(me, top, size) * block, MPI_BYTE, (me - top + root) % size);
    return rc;
}

struct side { /* one end of a transfer as the user gave it */
    void *buf;
    size_t count; /* of one block */
    struct dz_type *type;
};

static void *block_at(const struct side *s, int rank)
{
    return dz_coll_at(s->buf, (ptrdiff_t)rank * (ptrdiff_t)s->count, s->type);
}

/* own.buf is NULL at a root in place. all is meaningful at the root. */
static int gather_tree(struct dz_coll *c, const struct side *own, const struct side *all, size_t block, int root)
{
    int size = c->comm->size, rank = c->comm->rank, me = (rank - root + size) % size, rc;
    char *packed = dz_coll_alloc(c, (size_t)span(me, lowest_bit(me, size), size) * block);
    if (!packed)
        return MPI_ERR_NO_MEM;
    if (own->type)
        rc = dz_coll_copy(c, own->buf, own->count, own->type, packed, block, MPI_BYTE);
    else
        rc = dz_coll_copy(c, block_at(all, rank), all->count, all->type, packed, block, MPI_BYTE);
    if (!rc)
        rc = gather_up(c, packed, block, root);
    for (int i = own->type ? 0 : 1; !rc && rank == root && i < size; i++)
        rc = dz_coll_copy(c, packed + (size_t)i * block, block, MPI_BYTE, block_at(all, (i + root) % size), all->count,
                          all->type);
    return rc;
}

static int gather_straight(struct dz_coll *c, const struct side *own, const struct side *all, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return dz_coll_send(c, own->buf, own->count, own->type, root);
    for (int r = 0; !rc && r < c->comm->size; r++) {
        if (r != root)
            rc = dz_coll_irecv(c, block_at(all, r), all->count, all->type, r);
        else if (own->type)
            rc = dz_coll_copy(c, own->buf, own->count, own->type, block_at(all, r), all->count, all->type);
    }
    return rc ? rc : dz_coll_fence(c);
}

static int gather(struct dz_coll *c, const struct side *own, const struct side *all, int root)
{
    const struct side *known = own->type ? own : all; /* block sizes are the same on all ranks */
    size_t block = known->count * known->type->size;
    if (!block)
        return MPI_SUCCESS;
    return block <= TREE_BYTES && c->comm->size > 2 && !dz_coll_resident(c) ? gather_tree(c, own, all, block, root)
                                                    : gather_straight(c, own, all, root);
}

/* Checks comm and root, and the one block that every rank has, unless a root leaves it in place. */
static int check_own(const struct dz_how *how, struct dz_comm *comm, int root, const void *buf, int count,
                     struct dz_type *type, const char *what)
{
    int rc = dz_coll_check(how, comm);
    if (!rc)
        rc = dz_check_root(how->call, comm, root);
    if (!rc && !(buf == MPI_IN_PLACE && comm->rank == root))
        rc = dz_check_data(how->call, comm, buf, count, type, what);
    return rc;
}

static struct side side_of(const void *buf, int count, struct dz_type *type)
{
    if (buf == MPI_IN_PLACE)
        return (struct side){0};
    return (struct side){(void *)buf, (size_t)count, type};
}

static int gather_call(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                       int recvcount, struct dz_type *recvtype, int root, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    int rc = check_own(&how, comm, root, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc && comm->rank == root)
        rc = dz_check_data(how.call, comm, recvbuf, recvcount, recvtype, "recvcount");
    if (rc || !(c = dz_coll_open(&how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    struct side own = side_of(sendbuf, sendcount, sendtype), all = {0};
    if (comm->rank == root)
        all = side_of(recvbuf, recvcount, recvtype);
    return dz_coll_go(&how, c, gather(c, &own, &all, root));
}
DZ_COLLECTIVE(Gather, Igather, gather_call,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))

/* ---- scatter */
static int scatter_down(struct dz_coll *c, char *all, size_t block, int root)
{
    int size = c->comm->size, me = (c->comm->rank - root + size) % size, bit = lowest_bit(me, size), rc = MPI_SUCCESS;
    if (me)
        rc = dz_coll_recv(c, all, (size_t)span(me, bit, size) * block, MPI_BYTE, (me - bit + root) % size);
    for (bit /= 2; !rc && bit; bit /= 2)
        if (me + bit < size)
            rc = dz_coll_send(c, all + (size_t)bit * block, (size_t)span(me + bit, bit, size) * block, MPI_BYTE,
                              (me + bit + root) % size);
    return rc;
}

static int scatter_tree(struct dz_coll *c, const struct side *all, const struct side *own, size_t block, int root)
{
    int size = c->comm->size, rank = c->comm->rank, me = (rank - root + size) % size, rc = MPI_SUCCESS;
    char *packed = dz_coll_alloc(c, (size_t)span(me, lowest_bit(me, size), size) * block);
    if (!packed)
        return MPI_ERR_NO_MEM;
    for (int i = 0; !rc && rank == root && i < size; i++)
        rc = dz_coll_copy(c, block_at(all, (i + root) % size), all->count, all->type, packed + (size_t)i * block, block,
                          MPI_BYTE);
    if (!rc)
        rc = scatter_down(c, packed, block, root);
    if (!rc && own->type)
        rc = dz_coll_copy(c, packed, block, MPI_BYTE, own->buf, own->count, own->type);
    return rc;
}

static int scatter_straight(struct dz_coll *c, const struct side *all, const struct side *own, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return dz_coll_recv(c, own->buf, own->count, own->type, root);
    for (int r = 0; !rc && r < c->comm->size; r++) {
        if (r != root)
            rc = dz_coll_isend(c, block_at(all, r), all->count, all->type, r);
        else if (own->type)
            rc = dz_coll_copy(c, block_at(all, r), all->count, all->type, own->buf, own->count, own->type);
    }
    return rc ? rc : dz_coll_fence(c);
}

static int scatter(struct dz_coll *c, const struct side *all, const struct side *own, int root)
{
    const struct side *known = c->comm->rank == root ? all : own;
    size_t block = known->count * known->type->size;
    if (!block)
        return MPI_SUCCESS;
    return block <= TREE_BYTES && c->comm->size > 2 && !dz_coll_resident(c) ? scatter_tree(c, all, own, block, root)
                                                    : scatter_straight(c, all, own, root);
}

static int scatter_call(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                        int recvcount, struct dz_type *recvtype, int root, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    int rc = check_own(&how, comm, root, recvbuf, recvcount, recvtype, "recvcount");
    if (!rc && comm->rank == root)
        rc = dz_check_data(how.call, comm, sendbuf, sendcount, sendtype, "sendcount");
    if (rc || !(c = dz_coll_open(&how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    struct side own = side_of(recvbuf, recvcount, recvtype), all = {0};
    if (comm->rank == root)
        all = side_of(sendbuf, sendcount, sendtype);
    return dz_coll_go(&how, c, scatter(c, &all, &own, root));
}
DZ_COLLECTIVE(Scatter, Iscatter, scatter_call,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))

/* ---- blocks of different sizes */
static int check_blocks(const char *call, struct dz_comm *comm, const void *buf, const int counts[], const int displs[],
                        struct dz_type *type, const char *what)
{
    int rc = dz_check_ptr(call, comm, counts, what);
    if (!rc)
        rc = dz_check_ptr(call, comm, displs, "displs");
    for (int r = 0; !rc && r < comm->size; r++)
        rc = dz_check_data(call, comm, buf, counts[r], type, what);
    return rc;
}

static int gather_blocks(struct dz_coll *c, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                         const int recvcounts[], const int displs[], struct dz_type *recvtype, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return sendcount ? dz_coll_send(c, sendbuf, (size_t)sendcount, sendtype, root) : MPI_SUCCESS;
    for (int r = 0; !rc && r < c->comm->size; r++) {
        void *at = dz_coll_at(recvbuf, displs[r], recvtype);
        if (r == root && sendbuf != MPI_IN_PLACE)
            rc = dz_coll_copy(c, sendbuf, (size_t)sendcount, sendtype, at, (size_t)recvcounts[r], recvtype);
        else if (r != root && recvcounts[r])
            rc = dz_coll_irecv(c, at, (size_t)recvcounts[r], recvtype, r);
    }
    return rc ? rc : dz_coll_fence(c);
}

static int gatherv(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                   const int recvcounts[], const int displs[], struct dz_type *recvtype, int root, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    int rc = check_own(&how, comm, root, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc && comm->rank == root)
        rc = check_blocks(how.call, comm, recvbuf, recvcounts, displs, recvtype, "recvcounts");
    if (rc || !(c = dz_coll_open(&how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    return dz_coll_go(&how, c, gather_blocks(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                                             root));
}
DZ_COLLECTIVE(Gatherv, Igatherv, gatherv,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                      const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))

static int scatter_blocks(struct dz_coll *c, const void *sendbuf, const int sendcounts[], const int displs[],
                          struct dz_type *sendtype, void *recvbuf, int recvcount, struct dz_type *recvtype, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return recvcount ? dz_coll_recv(c, recvbuf, (size_t)recvcount, recvtype, root) : MPI_SUCCESS;
    for (int r = 0; !rc && r < c->comm->size; r++) {
        const void *at = dz_coll_at(sendbuf, displs[r], sendtype);
        if (r == root && recvbuf != MPI_IN_PLACE)
            rc = dz_coll_copy(c, at, (size_t)sendcounts[r], sendtype, recvbuf, (size_t)recvcount, recvtype);
        else if (r != root && sendcounts[r])
            rc = dz_coll_isend(c, at, (size_t)sendcounts[r], sendtype, r);
    }
    return rc ? rc : dz_coll_fence(c);
}

static int scatterv(struct dz_how how, const void *sendbuf, const int sendcounts[], const int displs[],
                    struct dz_type *sendtype, void *recvbuf, int recvcount, struct dz_type *recvtype, int root,
                    struct dz_comm *comm)
{
    struct dz_coll now, *c;
    int rc = check_own(&how, comm, root, recvbuf, recvcount, recvtype, "recvcount");
    if (!rc && comm->rank == root)
        rc = check_blocks(how.call, comm, sendbuf, sendcounts, displs, sendtype, "sendcounts");
    if (rc || !(c = dz_coll_open(&how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    return dz_coll_go(&how, c, scatter_blocks(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype,
                                              root));
}
DZ_COLLECTIVE(Scatterv, Iscatterv, scatterv,
              DZ_LIST(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
                      void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))
