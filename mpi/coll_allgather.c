/* coll_allgather.c - every rank's block to all ranks, also with blocks of different sizes.
 *
 * Short equal blocks double in each round (Bruck), others go round a ring; over channels short ones go to everybody at
 * once. In place means at the own block of the receive buffer. */
#include <string.h>

#include "mpi/coll.h"

enum { BRUCK_BYTES = 2048, DIRECT_BYTES = 32768, DIRECT_RANKS = 32 };

struct side { /* one end as the user gave it */
    void *buf;
    size_t count; /* of one block */
    struct dz_type *type;
};

static void *block_at(const struct side *s, int rank)
{
    return dz_coll_at(s->buf, (ptrdiff_t)rank * (ptrdiff_t)s->count, s->type);
}

int dz_coll_allgather_bytes(struct dz_coll *c, const void *own, void *all, size_t bytes)
{
    int size = c->comm->size, rank = c->comm->rank;
    char *turned = dz_coll_alloc(c, (size_t)size * bytes); /* block i is rank (rank + i) % size's */
    if (!turned)
        return MPI_ERR_NO_MEM;
    int rc = dz_coll_copy(c, own, bytes, MPI_BYTE, turned, bytes, MPI_BYTE);
    for (int have = 1; !rc && have < size; have *= 2) {
        size_t n = (size_t)(have < size - have ? have : size - have) * bytes;
        rc = dz_coll_swap(c, turned, n, MPI_BYTE, (rank - have + size) % size, turned + (size_t)have * bytes, n,
                          MPI_BYTE, (rank + have) % size);
    }
    size_t tail = (size_t)(size - rank) * bytes, head = (size_t)rank * bytes;
    if (!rc)
        rc = dz_coll_copy(c, turned, tail, MPI_BYTE, (char *)all + head, tail, MPI_BYTE);
    return rc ? rc : dz_coll_copy(c, turned + tail, head, MPI_BYTE, all, head, MPI_BYTE);
}

/* Own block packed, exchanged, unpacked. */
static int allgather_short(struct dz_coll *c, const struct side *all, size_t block)
{
    int size = c->comm->size;
    char *own = dz_coll_alloc(c, block), *packed = dz_coll_alloc(c, (size_t)size * block);
    if (!own || !packed)
        return MPI_ERR_NO_MEM;
    int rc = dz_coll_copy(c, block_at(all, c->comm->rank), all->count, all->type, own, block, MPI_BYTE);
    if (!rc)
        rc = dz_coll_allgather_bytes(c, own, packed, block);
    for (int r = 0; !rc && r < size; r++)
        if (r != c->comm->rank)
            rc = dz_coll_copy(c, packed + (size_t)r * block, block, MPI_BYTE, block_at(all, r), all->count, all->type);
    return rc;
}

static int allgather_direct(struct dz_coll *c, const struct side *all)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    for (int s = 1; !rc && s < size; s++)
        rc = dz_coll_isend(c, block_at(all, rank), all->count, all->type, (rank + s) % size);
    for (int s = 1; !rc && s < size; s++)
        rc = dz_coll_irecv(c, block_at(all, (rank + s) % size), all->count, all->type, (rank + s) % size);
    return rc ? rc : dz_coll_fence(c);
}

static int gather_to_all(struct dz_coll *c, const struct side *own, const struct side *all)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    size_t block = all->count * all->type->size, *first;
    if (own->type)
        rc = dz_coll_copy(c, own->buf, own->count, own->type, block_at(all, rank), all->count, all->type);
    if (rc || !block || size == 1)
        return rc;
    if (dz_coll_resident(c) && size <= DIRECT_RANKS && block * ((size_t)size - 1) <= DIRECT_BYTES)
        return allgather_direct(c, all);
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

static int check(const struct dz_how *how, struct dz_comm *comm, const void *sendbuf, int sendcount,
                 struct dz_type *sendtype)
{
    int rc = dz_coll_check(how, comm);
    return rc || sendbuf == MPI_IN_PLACE ? rc
                                         : dz_check_data(how->call, comm, sendbuf, sendcount, sendtype, "sendcount");
}

static int resident_allgather(const struct dz_how *how, struct dz_comm *comm, struct dz_resident *r,
                              const struct side *own, const struct side *all)
{
    size_t block = r->shape.bytes, total = block * (size_t)comm->size;
    int rc = MPI_SUCCESS;
    if (!r->c) {
        struct dz_coll *c = dz_resident_open(r, how, comm, block, total);
        struct side in = {c ? r->in : NULL, block, MPI_BYTE}, out = {c ? r->out : NULL, block, MPI_BYTE};
        rc = c ? dz_resident_bind(r, c, gather_to_all(c, &in, &out)) : MPI_ERR_NO_MEM;
    }
    if (rc)
        return rc;
    struct dz_view from = own->type ? dz_type_view(own->type, own->buf, own->count)
                                    : dz_type_view(all->type, block_at(all, comm->rank), all->count);
    dz_view_read(&from, 0, block, r->in);
    rc = dz_resident_run(r, how->call);
    struct dz_view to = dz_type_view(all->type, all->buf, all->count * (size_t)comm->size);
    if (!rc)
        dz_view_write(&to, 0, total, r->out);
    return rc;
}

static int allgather(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                     int recvcount, struct dz_type *recvtype, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    struct dz_resident *r;
    int rc = check(&how, comm, sendbuf, sendcount, sendtype);
    if (!rc)
        rc = dz_check_data(how.call, comm, recvbuf, recvcount, recvtype, "recvcount");
    if (rc)
        return rc;
    struct side own = {(void *)sendbuf, (size_t)sendcount, sendtype}, all = {recvbuf, (size_t)recvcount, recvtype};
    if (sendbuf == MPI_IN_PLACE)
        own.type = NULL;
    size_t block = all.count * recvtype->size;
    struct dz_shape shape = {.kind = DZ_SHAPE_ALLGATHER, .bytes = block};
    if (block && (!own.type || own.count * own.type->size == block) && (r = dz_resident_find(&how, comm, &shape)))
        return resident_allgather(&how, comm, r, &own, &all);
    c = dz_coll_open(&how, comm, &now);
    return c ? dz_coll_go(&how, c, gather_to_all(c, &own, &all)) : MPI_ERR_NO_MEM;
}
DZ_COLLECTIVE(Allgather, Iallgather, allgather,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))

/* ---- blocks of different sizes. Those that are empty are not sent: everybody knows. */
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

static int allgatherv(struct dz_how how, const void *sendbuf, int sendcount, struct dz_type *sendtype, void *recvbuf,
                      const int recvcounts[], const int displs[], struct dz_type *recvtype, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    int rc = check(&how, comm, sendbuf, sendcount, sendtype);
    if (!rc)
        rc = dz_check_ptr(how.call, comm, recvcounts, "recvcounts");
    if (!rc)
        rc = dz_check_ptr(how.call, comm, displs, "displs");
    for (int r = 0; !rc && r < comm->size; r++)
        rc = dz_check_data(how.call, comm, recvbuf, recvcounts[r], recvtype, "recvcounts");
    if (rc || !(c = dz_coll_open(&how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    if (sendbuf != MPI_IN_PLACE)
        rc = dz_coll_copy(c, sendbuf, (size_t)sendcount, sendtype, dz_coll_at(recvbuf, displs[comm->rank], recvtype),
                          (size_t)recvcounts[comm->rank], recvtype);
    return dz_coll_go(&how, c, rc ? rc : ring_of_blocks(c, recvbuf, recvcounts, displs, recvtype));
}
DZ_COLLECTIVE(Allgatherv, Iallgatherv, allgatherv,
              DZ_LIST(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                      const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
              DZ_LIST(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
