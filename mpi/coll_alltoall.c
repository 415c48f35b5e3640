/* coll_alltoall.c - everybody sends a block to everybody: one engine for the three forms of the call.
 *
 * In step s a rank sends to the rank s after it and receives from the rank s before it, so that ranks are met evenly;
 * AT_ONCE steps are under way together. In place, blocks are exchanged pair by pair, in the order of the pairs (lower rank first, then higher),
 * which no two ranks can wait for in a circle; the outgoing block is packed aside first.
 *
 * Blocks of no bytes are not sent: both ends know. */
#include "mpi/coll.h"

enum { AT_ONCE = 16 }; /* peers that a rank has transfers under way with */

/* One side of the exchange: the form of the call says which arrays there are. */
struct side {
    void *buf;
    const int *counts, *displs;        /* NULL: `count` each, one behind the other */
    const MPI_Datatype *types;         /* w: displacements are bytes; else NULL */
    int count;
    struct dz_type *type;
};

struct block {
    void *at;
    size_t count;
    struct dz_type *type;
};

static struct block block_of(const struct side *s, int r)
{
    struct dz_type *type = s->types ? s->types[r] : s->type;
    int count = s->counts ? s->counts[r] : s->count;
    char *at = s->buf;
    if (s->types)
        at += s->displs[r];
    else
        at = dz_coll_at(s->buf, s->displs ? s->displs[r] : (ptrdiff_t)r * s->count, type);
    return (struct block){at, (size_t)count, type};
}

static int peer_of(const struct block *b, int rank)
{
    return b->count && b->type->size ? rank : MPI_PROC_NULL;
}

static int exchange(struct dz_coll *c, const struct side *send, const struct side *recv)
{
    int size = c->comm->size, rank = c->comm->rank;
    struct block out = block_of(send, rank), in = block_of(recv, rank);
    int rc = dz_coll_copy(c, out.at, out.count, out.type, in.at, in.count, in.type);
    for (int s = 1; !rc && s < size; s++) {
        int to = (rank + s) % size, from = (rank - s + size) % size;
        out = block_of(send, to);
        in = block_of(recv, from);
        rc = dz_coll_irecv(c, in.at, in.count, in.type, peer_of(&in, from));
        if (!rc)
            rc = dz_coll_isend(c, out.at, out.count, out.type, peer_of(&out, to));
        if (!rc && s % AT_ONCE == 0)
            rc = dz_coll_fence(c);
    }
    return rc ? rc : dz_coll_fence(c);
}

static int exchange_in_place(struct dz_coll *c, const struct side *both)
{
    size_t longest = 0;
    for (int r = 0; r < c->comm->size; r++) {
        struct block b = block_of(both, r);
        if (b.count * b.type->size > longest)
            longest = b.count * b.type->size;
    }
    char *aside = dz_coll_alloc(c, longest);
    int rc = aside ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int r = 0; !rc && r < c->comm->size; r++) {
        struct block b = block_of(both, r);
        size_t bytes = b.count * b.type->size;
        if (r == c->comm->rank || !bytes)
            continue;
        rc = dz_coll_copy(c, b.at, b.count, b.type, aside, bytes, MPI_BYTE);
        if (!rc)
            rc = dz_coll_swap(c, aside, bytes, MPI_BYTE, r, b.at, b.count, b.type, r);
    }
    return rc;
}

static int check_side(const char *call, struct dz_comm *comm, const struct side *s, const char *what)
{
    if (!s->counts)
        return dz_check_data(call, comm, s->buf, s->count, s->type, what);
    int rc = dz_check_ptr(call, comm, s->displs, "displs");
    for (int r = 0; !rc && r < comm->size; r++)
        rc = dz_check_data(call, comm, s->buf, s->counts[r], s->types ? s->types[r] : s->type, what);
    return rc;
}

static int all_to_all(const struct dz_how *how, struct dz_comm *comm, const struct side *send, const struct side *recv)
{
    struct dz_coll now, *c;
    bool in_place = send->buf == MPI_IN_PLACE;
    int rc = in_place ? MPI_SUCCESS : check_side(how->call, comm, send, "the send count");
    if (!rc)
        rc = check_side(how->call, comm, recv, "the receive count");
    if (rc || !(c = dz_coll_open(how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    return dz_coll_go(how, c, in_place ? exchange_in_place(c, recv) : exchange(c, send, recv));
}

static int alltoall(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                    int recvcount, struct dz_type *recvtype, struct dz_comm *comm)
{
    int rc = dz_coll_check(&how, comm);
    if (rc)
        return rc;
    struct side send = {.buf = (void *)sendbuf, .count = sendcount, .type = sendtype};
    struct side recv = {.buf = recvbuf, .count = recvcount, .type = recvtype};
    return all_to_all(&how, comm, &send, &recv);
}
DZ_COLLECTIVE(Alltoall, Ialltoall, alltoall,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))

/* comm, and the arrays that a rank not in place must give */
static int check_arrays(const struct dz_how *how, struct dz_comm *comm, const void *sendbuf, const void *sendcounts,
                        const void *recvcounts)
{
    int rc = dz_coll_check(how, comm);
    if (!rc && sendbuf != MPI_IN_PLACE)
        rc = dz_check_ptr(how->call, comm, sendcounts, "sendcounts");
    return rc ? rc : dz_check_ptr(how->call, comm, recvcounts, "recvcounts");
}

static int alltoallv(struct dz_how how, const void *sendbuf, const int sendcounts[], const int sdispls[],
                     struct dz_type *sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
                     struct dz_type *recvtype, struct dz_comm *comm)
{
    int rc = check_arrays(&how, comm, sendbuf, sendcounts, recvcounts);
    if (rc)
        return rc;
    struct side send = {.buf = (void *)sendbuf, .counts = sendcounts, .displs = sdispls, .type = sendtype};
    struct side recv = {.buf = recvbuf, .counts = recvcounts, .displs = rdispls, .type = recvtype};
    return all_to_all(&how, comm, &send, &recv);
}
DZ_COLLECTIVE(Alltoallv, Ialltoallv, alltoallv,
              DZ_LIST(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                      void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))

static int alltoallw(struct dz_how how, const void *sendbuf, const int sendcounts[], const int sdispls[],
                     const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[],
                     const MPI_Datatype recvtypes[], struct dz_comm *comm)
{
    int rc = check_arrays(&how, comm, sendbuf, sendcounts, recvcounts);
    if (!rc && sendbuf != MPI_IN_PLACE)
        rc = dz_check_ptr(how.call, comm, sendtypes, "sendtypes");
    if (!rc)
        rc = dz_check_ptr(how.call, comm, recvtypes, "recvtypes");
    if (rc)
        return rc;
    struct side send = {.buf = (void *)sendbuf, .counts = sendcounts, .displs = sdispls, .types = sendtypes};
    struct side recv = {.buf = recvbuf, .counts = recvcounts, .displs = rdispls, .types = recvtypes};
    return all_to_all(&how, comm, &send, &recv);
}
DZ_COLLECTIVE(Alltoallw, Ialltoallw, alltoallw,
              DZ_LIST(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                      void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
                      MPI_Comm comm),
              DZ_LIST(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
