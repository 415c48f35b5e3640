/* coll.c - the two collectives that compute nothing, barrier and broadcast, and the argument checks that all share.
 *
 * Algorithms are chosen from what all ranks know alike: the number of ranks and the bytes of the message, never the
 * datatype, which may differ between them as long as its signature is the same. */
#include "mpi/coll.h"

/* ---- checks */
int dz_check_op(const char *call, struct dz_comm *comm, struct dz_op *op, struct dz_type *type)
{
    if (op == MPI_OP_NULL)
        return dz_raise(comm, MPI_ERR_OP, call, "op is MPI_OP_NULL");
    if (!dz_op_ok(op))
        return dz_raise(comm, MPI_ERR_OP, call, "op is %p: no operation, or one that was freed", (void *)op);
    if (!dz_op_valid(op, type))
        return dz_raise(comm, MPI_ERR_OP, call, "the predefined operation is not defined on the datatype '%s'",
                        type->name);
    return MPI_SUCCESS;
}

int dz_check_data(const char *call, struct dz_comm *comm, const void *buf, MPI_Count count, struct dz_type *type,
                  const char *what)
{
    int rc = dz_check_count(call, comm, count, what);
    if (!rc)
        rc = dz_check_type(call, comm, type, "datatype");
    return rc ? rc : dz_check_buf(call, comm, buf, count, type);
}

/* ---- barrier: in round k everybody hears from the rank 2^k before it; after the last, from all. With channels and few
 * ranks everybody tells everybody at once. */
enum { ALL_PAIRS = 8 };

static int tell_all(struct dz_coll *c)
{
    int rank = c->comm->rank, size = c->comm->size, rc = MPI_SUCCESS;
    for (int s = 1; !rc && s < size; s++) {
        rc = dz_coll_isend(c, NULL, 0, MPI_BYTE, (rank + s) % size);
        if (!rc)
            rc = dz_coll_irecv(c, NULL, 0, MPI_BYTE, (rank - s + size) % size);
    }
    return rc ? rc : dz_coll_fence(c);
}

int dz_coll_barrier(struct dz_coll *c)
{
    int rank = c->comm->rank, size = c->comm->size, rc = MPI_SUCCESS;
    if (dz_coll_resident(c) && size <= ALL_PAIRS)
        return tell_all(c);
    for (int step = 1; !rc && step < size; step *= 2)
        rc = dz_coll_swap(c, NULL, 0, MPI_BYTE, (rank + step) % size, NULL, 0, MPI_BYTE, (rank - step + size) % size);
    return rc;
}

static int resident_barrier(const struct dz_how *how, struct dz_comm *comm, struct dz_resident *r)
{
    if (!r->c) {
        struct dz_coll *c = dz_resident_open(r, how, comm, 0, 0);
        int rc = c ? dz_resident_bind(r, c, dz_coll_barrier(c)) : MPI_ERR_NO_MEM;
        if (rc)
            return rc;
    }
    return dz_resident_run(r, how->call);
}

static int barrier(struct dz_how how, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    struct dz_resident *r;
    int rc = dz_coll_check(&how, comm);
    if (rc)
        return rc;
    if ((r = dz_resident_find(&how, comm, &(struct dz_shape){.kind = DZ_SHAPE_BARRIER})))
        return resident_barrier(&how, comm, r);
    c = dz_coll_open(&how, comm, &now);
    return c ? dz_coll_go(&how, c, dz_coll_barrier(c)) : MPI_ERR_NO_MEM;
}
DZ_COLLECTIVE(Barrier, Ibarrier, barrier, DZ_LIST(MPI_Comm comm), DZ_LIST(comm))

/* ---- broadcast. Short messages go down a binomial tree; long ones along a chain of ranks in segments, so that all
 * links work at once and every byte is sent once a link. */
enum { SEGMENT = DZ_COLL_SEGMENT, SEGMENTS_MAX = 64, FLAT = 8, FLAT_BYTES = 8192 };

static int bcast_tree(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int root)
{
    int size = c->comm->size, me = (c->comm->rank - root + size) % size, rc = MPI_SUCCESS;
    int bit = 1;
    while (bit < size && !(me & bit))
        bit *= 2;
    if (me)
        rc = dz_coll_recv(c, buf, count, type, (me - bit + root) % size);
    for (bit /= 2; !rc && bit; bit /= 2)
        if (me + bit < size)
            rc = dz_coll_send(c, buf, count, type, (me + bit + root) % size);
    return rc;
}

/* The receive of the next segment is posted while this one is passed on. */
static int bcast_chain(struct dz_coll *c, char *buf, size_t bytes, int root)
{
    int size = c->comm->size, me = (c->comm->rank - root + size) % size, rc = MPI_SUCCESS;
    int from = me ? (me - 1 + root) % size : MPI_PROC_NULL, to = me + 1 < size ? (me + 1 + root) % size : MPI_PROC_NULL;
    size_t most = dz_coll_resident(c) && bytes / SEGMENTS_MAX > SEGMENT ? bytes / SEGMENTS_MAX : SEGMENT, before = 0;
    for (size_t off = 0; !rc && off < bytes + most; off += most) {
        size_t len = off >= bytes ? 0 : bytes - off < most ? bytes - off : most;
        if (len)
            rc = dz_coll_irecv(c, buf + off, len, MPI_BYTE, from);
        if (!rc && before)
            rc = dz_coll_isend(c, buf + off - most, before, MPI_BYTE, to);
        if (!rc)
            rc = dz_coll_fence(c);
        before = len;
    }
    return rc;
}

/* In units of one segment on one link: a chain fills, then all links work; a tree sends the whole message a level. */
static bool chain_is_faster(size_t bytes, int size)
{
    size_t segments = (bytes + SEGMENT - 1) / SEGMENT, levels = 0;
    while ((1 << levels) < size)
        levels++;
    return size > 2 && segments + (size_t)size - 2 < segments * levels;
}

/* With channels a root's tokens cost less than the second level of a tree. */
static int bcast_flat(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int root)
{
    int rc = MPI_SUCCESS;
    if (c->comm->rank != root)
        return dz_coll_recv(c, buf, count, type, root);
    for (int r = 0; !rc && r < c->comm->size; r++)
        if (r != root)
            rc = dz_coll_isend(c, buf, count, type, r);
    return rc ? rc : dz_coll_fence(c);
}

int dz_coll_bcast(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int root)
{
    size_t bytes = count * type->size;
    if (c->comm->size == 1 || !bytes)
        return MPI_SUCCESS;
    if (dz_coll_resident(c) && c->comm->size <= FLAT && bytes <= FLAT_BYTES)
        return bcast_flat(c, buf, count, type, root);
    if (!chain_is_faster(bytes, c->comm->size))
        return bcast_tree(c, buf, count, type, root);
    if (type->contig)
        return bcast_chain(c, buf, bytes, root);
    char *packed = dz_coll_alloc(c, bytes);
    if (!packed)
        return MPI_ERR_NO_MEM;
    int rc = MPI_SUCCESS;
    if (c->comm->rank == root)
        rc = dz_coll_copy(c, buf, count, type, packed, bytes, MPI_BYTE);
    if (!rc)
        rc = bcast_chain(c, packed, bytes, root);
    if (!rc && c->comm->rank != root)
        rc = dz_coll_copy(c, packed, bytes, MPI_BYTE, buf, count, type);
    return rc;
}

static int resident_bcast(const struct dz_how *how, struct dz_comm *comm, struct dz_resident *r, void *buf,
                          size_t count, struct dz_type *type)
{
    size_t bytes = r->shape.bytes;
    int root = r->shape.root, rc = MPI_SUCCESS;
    if (!r->c) {
        struct dz_coll *c = dz_resident_open(r, how, comm, bytes, 0);
        rc = c ? dz_resident_bind(r, c, dz_coll_bcast(c, r->in, bytes, MPI_BYTE, root)) : MPI_ERR_NO_MEM;
    }
    struct dz_view v = dz_type_view(type, buf, count);
    if (!rc && comm->rank == root)
        dz_view_read(&v, 0, bytes, r->in);
    if (!rc)
        rc = dz_resident_run(r, how->call);
    if (!rc && comm->rank != root)
        dz_view_write(&v, 0, bytes, r->in);
    return rc;
}

static int bcast(struct dz_how how, void *buffer, int count, struct dz_type *datatype, int root, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    struct dz_resident *r;
    int rc = dz_coll_check(&how, comm);
    if (!rc)
        rc = dz_check_root(how.call, comm, root);
    if (!rc)
        rc = dz_check_data(how.call, comm, buffer, count, datatype, "count");
    if (rc)
        return rc;
    size_t bytes = (size_t)count * datatype->size;
    if (bytes && (r = dz_resident_find(&how, comm, &(struct dz_shape){DZ_SHAPE_BCAST, root, bytes, NULL, 0})))
        return resident_bcast(&how, comm, r, buffer, (size_t)count, datatype);
    c = dz_coll_open(&how, comm, &now);
    return c ? dz_coll_go(&how, c, dz_coll_bcast(c, buffer, (size_t)count, datatype, root)) : MPI_ERR_NO_MEM;
}
DZ_COLLECTIVE(Bcast, Ibcast, bcast, DZ_LIST(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm),
              DZ_LIST(buffer, count, datatype, root, comm))
