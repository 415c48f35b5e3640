/* coll_gather.c - collectives in which a rank's block stays whole: gather, scatter, allgather, each also with blocks of
 * different sizes.
 *
 * To and from a root, short equal blocks travel packed down or up a binomial tree, where the subtree of a rank is a run
 * of ranks counted from the root; all other blocks go straight. For all ranks, short equal blocks double in each round
 * (Bruck), others go round a ring. In place means at the own block of the receive buffer. */
#include <string.h>

#include "mpi/coll.h"

enum { TREE_BYTES = 4096, BRUCK_BYTES = 2048 }; /* blocks up to which fewer steps win over fewer copies */

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
    char *packed = malloc((size_t)span(me, lowest_bit(me, size), size) * block);
    if (!packed)
        return MPI_ERR_NO_MEM;
    if (own->type)
        rc = dz_coll_copy(own->buf, own->count, own->type, packed, block, MPI_BYTE);
    else
        rc = dz_coll_copy(block_at(all, rank), all->count, all->type, packed, block, MPI_BYTE);
    if (!rc)
        rc = gather_up(c, packed, block, root);
    for (int i = own->type ? 0 : 1; !rc && rank == root && i < size; i++)
        rc = dz_coll_copy(packed + (size_t)i * block, block, MPI_BYTE, block_at(all, (i + root) % size), all->count,
                          all->type);
    free(packed);
    return rc;
}

static int gather_straight(struct dz_coll *c, const struct side *own, const struct side *all, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return dz_coll_send(c, own->buf, own->count, own->type, root);
    for (int r = 0; !rc && r < c->comm->size; r++) {
        if (r != root)
            rc = dz_coll_recv(c, block_at(all, r), all->count, all->type, r);
        else if (own->type)
            rc = dz_coll_copy(own->buf, own->count, own->type, block_at(all, r), all->count, all->type);
    }
    return rc;
}

static int gather(struct dz_coll *c, const struct side *own, const struct side *all, int root)
{
    const struct side *known = own->type ? own : all; /* block sizes are the same on all ranks */
    size_t block = known->count * known->type->size;
    if (!block)
        return MPI_SUCCESS;
    return block <= TREE_BYTES && c->comm->size > 2 ? gather_tree(c, own, all, block, root)
                                                    : gather_straight(c, own, all, root);
}

/* Checks comm and root, and the one block that every rank has, unless a root leaves it in place. */
static int check_own(const char *call, struct dz_comm *comm, int root, const void *buf, int count, struct dz_type *type,
                     const char *what)
{
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_root(call, comm, root);
    if (!rc && !(buf == MPI_IN_PLACE && comm->rank == root))
        rc = dz_check_data(call, comm, buf, count, type, what);
    return rc;
}

static struct side side_of(const void *buf, int count, struct dz_type *type)
{
    if (buf == MPI_IN_PLACE)
        return (struct side){0};
    return (struct side){(void *)buf, (size_t)count, type};
}

int PMPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char call[] = "MPI_Gather";
    DZ_ENTER(call);
    int rc = check_own(call, comm, root, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc && comm->rank == root)
        rc = dz_check_data(call, comm, recvbuf, recvcount, recvtype, "recvcount");
    if (rc)
        return rc;
    struct side own = side_of(sendbuf, sendcount, sendtype), all = {0};
    if (comm->rank == root)
        all = side_of(recvbuf, recvcount, recvtype);
    struct dz_coll c = dz_coll_begin(call, comm);
    return dz_coll_end(&c, gather(&c, &own, &all, root));
}
DZ_WEAK(PI_Gather)

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
    char *packed = malloc((size_t)span(me, lowest_bit(me, size), size) * block);
    if (!packed)
        return MPI_ERR_NO_MEM;
    for (int i = 0; !rc && rank == root && i < size; i++)
        rc = dz_coll_copy(block_at(all, (i + root) % size), all->count, all->type, packed + (size_t)i * block, block,
                          MPI_BYTE);
    if (!rc)
        rc = scatter_down(c, packed, block, root);
    if (!rc && own->type)
        rc = dz_coll_copy(packed, block, MPI_BYTE, own->buf, own->count, own->type);
    free(packed);
    return rc;
}

static int scatter_straight(struct dz_coll *c, const struct side *all, const struct side *own, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return dz_coll_recv(c, own->buf, own->count, own->type, root);
    for (int r = 0; !rc && r < c->comm->size; r++) {
        if (r != root)
            rc = dz_coll_send(c, block_at(all, r), all->count, all->type, r);
        else if (own->type)
            rc = dz_coll_copy(block_at(all, r), all->count, all->type, own->buf, own->count, own->type);
    }
    return rc;
}

static int scatter(struct dz_coll *c, const struct side *all, const struct side *own, int root)
{
    const struct side *known = c->comm->rank == root ? all : own;
    size_t block = known->count * known->type->size;
    if (!block)
        return MPI_SUCCESS;
    return block <= TREE_BYTES && c->comm->size > 2 ? scatter_tree(c, all, own, block, root)
                                                    : scatter_straight(c, all, own, root);
}

int PMPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char call[] = "MPI_Scatter";
    DZ_ENTER(call);
    int rc = check_own(call, comm, root, recvbuf, recvcount, recvtype, "recvcount");
    if (!rc && comm->rank == root)
        rc = dz_check_data(call, comm, sendbuf, sendcount, sendtype, "sendcount");
    if (rc)
        return rc;
    struct side own = side_of(recvbuf, recvcount, recvtype), all = {0};
    if (comm->rank == root)
        all = side_of(sendbuf, sendcount, sendtype);
    struct dz_coll c = dz_coll_begin(call, comm);
    return dz_coll_end(&c, scatter(&c, &all, &own, root));
}
DZ_WEAK(PI_Scatter)

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

int PMPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char call[] = "MPI_Gatherv";
    DZ_ENTER(call);
    int rc = check_own(call, comm, root, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc && comm->rank == root)
        rc = check_blocks(call, comm, recvbuf, recvcounts, displs, recvtype, "recvcounts");
    if (rc)
        return rc;
    struct dz_coll c = dz_coll_begin(call, comm);
    if (comm->rank != root)
        return dz_coll_end(&c, sendcount ? dz_coll_send(&c, sendbuf, (size_t)sendcount, sendtype, root) : MPI_SUCCESS);
    for (int r = 0; !rc && r < comm->size; r++) {
        void *at = dz_coll_at(recvbuf, displs[r], recvtype);
        if (r == root && sendbuf != MPI_IN_PLACE)
            rc = dz_coll_copy(sendbuf, (size_t)sendcount, sendtype, at, (size_t)recvcounts[r], recvtype);
        else if (r != root && recvcounts[r])
            rc = dz_coll_recv(&c, at, (size_t)recvcounts[r], recvtype, r);
    }
    return dz_coll_end(&c, rc);
}
DZ_WEAK(PI_Gatherv)

int PMPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char call[] = "MPI_Scatterv";
    DZ_ENTER(call);
    int rc = check_own(call, comm, root, recvbuf, recvcount, recvtype, "recvcount");
    if (!rc && comm->rank == root)
        rc = check_blocks(call, comm, sendbuf, sendcounts, displs, sendtype, "sendcounts");
    if (rc)
        return rc;
    struct dz_coll c = dz_coll_begin(call, comm);
    if (comm->rank != root)
        return dz_coll_end(&c, recvcount ? dz_coll_recv(&c, recvbuf, (size_t)recvcount, recvtype, root) : MPI_SUCCESS);
    for (int r = 0; !rc && r < comm->size; r++) {
        const void *at = dz_coll_at(sendbuf, displs[r], sendtype);
        if (r == root && recvbuf != MPI_IN_PLACE)
            rc = dz_coll_copy(at, (size_t)sendcounts[r], sendtype, recvbuf, (size_t)recvcount, recvtype);
        else if (r != root && sendcounts[r])
            rc = dz_coll_send(&c, at, (size_t)sendcounts[r], sendtype, r);
    }
    return dz_coll_end(&c, rc);
}
DZ_WEAK(PI_Scatterv)

/* ---- to all ranks */
int dz_coll_allgather_bytes(struct dz_coll *c, const void *own, void *all, size_t bytes)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    char *turned = malloc((size_t)size * bytes + 1); /* block i is rank (rank + i) % size's */
    if (!turned)
        return MPI_ERR_NO_MEM;
    memcpy(turned, own, bytes);
    for (int have = 1; !rc && have < size; have *= 2) {
        size_t n = (size_t)(have < size - have ? have : size - have) * bytes;
        rc = dz_coll_swap(c, turned, n, MPI_BYTE, (rank - have + size) % size, turned + (size_t)have * bytes, n,
                          MPI_BYTE, (rank + have) % size);
    }
    size_t tail = (size_t)(size - rank) * bytes;
    memcpy((char *)all + (size_t)rank * bytes, turned, tail);
    memcpy(all, turned + tail, (size_t)rank * bytes);
    free(turned);
    return rc;
}

/* Own block packed, exchanged, unpacked. */
static int allgather_short(struct dz_coll *c, const struct side *all, size_t block)
{
    int size = c->comm->size, rc = MPI_SUCCESS;
    char *own = malloc(block), *packed = malloc((size_t)size * block);
    if (!own || !packed)
        rc = MPI_ERR_NO_MEM;
    if (!rc)
        rc = dz_coll_copy(block_at(all, c->comm->rank), all->count, all->type, own, block, MPI_BYTE);
    if (!rc)
        rc = dz_coll_allgather_bytes(c, own, packed, block);
    for (int r = 0; !rc && r < size; r++)
        if (r != c->comm->rank)
            rc = dz_coll_copy(packed + (size_t)r * block, block, MPI_BYTE, block_at(all, r), all->count, all->type);
    free(own);
    free(packed);
    return rc;
}

static int allgather(struct dz_coll *c, const struct side *own, const struct side *all)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    size_t block = all->count * all->type->size, *first;
    if (own->type)
        rc = dz_coll_copy(own->buf, own->count, own->type, block_at(all, rank), all->count, all->type);
    if (rc || !block || size == 1)
        return rc;
    if (block <= BRUCK_BYTES)
        return allgather_short(c, all, block);
    if (!(first = malloc(((size_t)size + 1) * sizeof *first)))
        return MPI_ERR_NO_MEM;
    for (int r = 0; r <= size; r++)
        first[r] = (size_t)r * all->count;
    rc = dz_coll_ring_gather(c, all->buf, first, all->type);
    free(first);
    return rc;
}

int PMPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm)
{
    static const char call[] = "MPI_Allgather";
    DZ_ENTER(call);
    int rc = dz_check_comm(call, comm);
    if (!rc && sendbuf != MPI_IN_PLACE)
        rc = dz_check_data(call, comm, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc)
        rc = dz_check_data(call, comm, recvbuf, recvcount, recvtype, "recvcount");
    if (rc)
        return rc;
    struct side own = side_of(sendbuf, sendcount, sendtype), all = side_of(recvbuf, recvcount, recvtype);
    struct dz_coll c = dz_coll_begin(call, comm);
    return dz_coll_end(&c, allgather(&c, &own, &all));
}
DZ_WEAK(PI_Allgather)

/* Blocks that are empty for everybody are not sent: both ends know. */
static int ring_of_blocks(struct dz_coll *c, void *buf, const int counts[], const int displs[], struct dz_type *type)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int s = 0; !rc && s < size - 1; s++) {
        int out = (rank - s + size) % size, in = (out - 1 + size) % size;
        rc = dz_coll_swap(c, dz_coll_at(buf, displs[out], type), (size_t)counts[out], type,
                          counts[out] ? to : MPI_PROC_NULL, dz_coll_at(buf, displs[in], type), (size_t)counts[in], type,
                          counts[in] ? from : MPI_PROC_NULL);
    }
    return rc;
}

int PMPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    static const char call[] = "MPI_Allgatherv";
    DZ_ENTER(call);
    int rc = dz_check_comm(call, comm);
    if (!rc && sendbuf != MPI_IN_PLACE)
        rc = dz_check_data(call, comm, sendbuf, sendcount, sendtype, "sendcount");
    if (!rc)
        rc = check_blocks(call, comm, recvbuf, recvcounts, displs, recvtype, "recvcounts");
    if (rc)
        return rc;
    struct dz_coll c = dz_coll_begin(call, comm);
    if (sendbuf != MPI_IN_PLACE)
        rc = dz_coll_copy(sendbuf, (size_t)sendcount, sendtype, dz_coll_at(recvbuf, displs[comm->rank], recvtype),
                          (size_t)recvcounts[comm->rank], recvtype);
    if (!rc)
        rc = ring_of_blocks(&c, recvbuf, recvcounts, displs, recvtype);
    return dz_coll_end(&c, rc);
}
DZ_WEAK(PI_Allgatherv)
