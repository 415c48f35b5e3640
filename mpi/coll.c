/* coll.c - the ground of the collective operations (coll.h), and the two that move no result: barrier and broadcast.
 *
 * Algorithms are chosen from what all ranks know alike: the number of ranks and the bytes of the message, never the
 * datatype, which may differ between them as long as its signature is the same. */
#include <errno.h>
#include <string.h>

#include "mpi/coll.h"

/* ---- one operation */
int dz_coll_end(struct dz_coll *c, int errclass)
{
    if (!errclass)
        return MPI_SUCCESS;
    if (c->peer < 0)
        return dz_raise(c->comm, errclass, c->call, "failed on rank %d", c->comm->rank);
    return dz_raise(c->comm, errclass, c->call, "the exchange with rank %d (rank %d of MPI_COMM_WORLD) failed", c->peer,
                    dz_world_rank(c->comm, c->peer));
}

static int note(struct dz_coll *c, int errclass, int peer)
{
    if (errclass)
        c->peer = peer;
    return errclass;
}

int dz_coll_send(struct dz_coll *c, const void *buf, size_t count, struct dz_type *type, int dest)
{
    return note(c, dz_send(buf, count, type, dest, c->tag, c->comm, 1), dest);
}

int dz_coll_recv(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int src)
{
    return note(c, dz_recv(buf, count, type, src, c->tag, c->comm, 1, MPI_STATUS_IGNORE), src);
}

int dz_coll_swap(struct dz_coll *c, const void *sbuf, size_t scount, struct dz_type *stype, int dest, void *rbuf,
                 size_t rcount, struct dz_type *rtype, int src)
{
    if (dest == MPI_PROC_NULL)
        return src == MPI_PROC_NULL ? MPI_SUCCESS : dz_coll_recv(c, rbuf, rcount, rtype, src);
    if (src == MPI_PROC_NULL)
        return dz_coll_send(c, sbuf, scount, stype, dest);
    return note(c, dz_sendrecv(sbuf, scount, stype, dest, c->tag, rbuf, rcount, rtype, src, c->tag, c->comm, 1,
                               MPI_STATUS_IGNORE), src);
}

int dz_coll_copy(const void *src, size_t scount, const struct dz_type *stype, void *dst, size_t rcount,
                 const struct dz_type *rtype)
{
    struct dz_view s = dz_type_view(stype, src, scount), d = dz_type_view(rtype, dst, rcount);
    size_t n = s.bytes < d.bytes ? s.bytes : d.bytes;
    char piece[4096];
    if (!n)
        return s.bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    if (!s.layout) {
        if (d.layout || s.base != d.base)
            dz_view_write(&d, 0, n, s.base);
    } else if (!d.layout) {
        dz_view_read(&s, 0, n, d.base);
    } else {
        for (size_t off = 0; off < n; off += sizeof piece) {
            size_t len = n - off < sizeof piece ? n - off : sizeof piece;
            dz_view_read(&s, off, len, piece);
            dz_view_write(&d, off, len, piece);
        }
    }
    return s.bytes > n ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int dz_scratch_open(struct dz_scratch *s, size_t count, const struct dz_type *t)
{
    ptrdiff_t far = count ? (ptrdiff_t)(count - 1) * t->extent : 0;
    ptrdiff_t lo = t->true_lb + (far < 0 ? far : 0);
    ptrdiff_t hi = t->true_lb + t->true_extent + (far > 0 ? far : 0);
    s->mem = malloc(hi > lo ? (size_t)(hi - lo) : 1);
    s->at = s->mem ? (char *)s->mem - lo : NULL;
    return s->mem ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

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

/* ---- barrier: in round k everybody hears from the rank 2^k before it; after the last, from all */
int dz_coll_barrier(struct dz_coll *c)
{
    int rank = c->comm->rank, size = c->comm->size, rc = MPI_SUCCESS;
    for (int step = 1; !rc && step < size; step *= 2)
        rc = dz_coll_swap(c, NULL, 0, MPI_BYTE, (rank + step) % size, NULL, 0, MPI_BYTE, (rank - step + size) % size);
    return rc;
}

int PMPI_Barrier(MPI_Comm comm)
{
    DZ_ENTER("MPI_Barrier");
    int rc = dz_check_comm("MPI_Barrier", comm);
    if (rc)
        return rc;
    struct dz_coll c = dz_coll_begin("MPI_Barrier", comm);
    return dz_coll_end(&c, dz_coll_barrier(&c));
}
DZ_WEAK(PI_Barrier)

/* ---- broadcast. Short messages go down a binomial tree; long ones along a chain of ranks in segments, so that all
 * links work at once and every byte is sent once a link. */
enum { SEGMENT = DZ_COLL_SEGMENT };

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

/* One posted receive; *req stays NULL on failure. */
static int post_recv(struct dz_coll *c, char *buf, size_t bytes, int src, struct dz_request **req)
{
    dz_lock();
    int rc = dz_irecv(buf, bytes, MPI_BYTE, src, c->tag, c->comm, 1, req);
    dz_unlock();
    return note(c, rc ? dz_class_of_errno(rc) : MPI_SUCCESS, src);
}

/* The receive of the next segment is posted while this one is passed on. */
static int bcast_chain(struct dz_coll *c, char *buf, size_t bytes, int root)
{
    int size = c->comm->size, me = (c->comm->rank - root + size) % size, rc = MPI_SUCCESS;
    int from = me ? (me - 1 + root) % size : MPI_PROC_NULL, to = me + 1 < size ? (me + 1 + root) % size : MPI_PROC_NULL;
    struct dz_request *next = NULL;
    if (me)
        rc = post_recv(c, buf, bytes < SEGMENT ? bytes : SEGMENT, from, &next);
    for (size_t off = 0; !rc && off < bytes; off += SEGMENT) {
        size_t len = bytes - off < SEGMENT ? bytes - off : SEGMENT, after = off + len;
        struct dz_request *now = next;
        next = NULL;
        if (me && after < bytes)
            rc = post_recv(c, buf + after, bytes - after < SEGMENT ? bytes - after : SEGMENT, from, &next);
        int got = now ? note(c, dz_request_wait(now), from) : MPI_SUCCESS;
        rc = rc ? rc : got;
        if (!rc && to != MPI_PROC_NULL)
            rc = dz_coll_send(c, buf + off, len, MPI_BYTE, to);
    }
    if (next) { /* something failed on the way: the buffer must not be written after the return */
        int got = dz_request_wait(next);
        rc = rc ? rc : got;
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

int dz_coll_bcast(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int root)
{
    size_t bytes = count * type->size;
    if (c->comm->size == 1 || !bytes)
        return MPI_SUCCESS;
    if (!chain_is_faster(bytes, c->comm->size))
        return bcast_tree(c, buf, count, type, root);
    if (type->contig)
        return bcast_chain(c, buf, bytes, root);
    char *packed = malloc(bytes);
    if (!packed)
        return MPI_ERR_NO_MEM;
    struct dz_view v = dz_type_view(type, buf, count);
    if (c->comm->rank == root)
        dz_view_read(&v, 0, bytes, packed);
    int rc = bcast_chain(c, packed, bytes, root);
    if (!rc && c->comm->rank != root)
        dz_view_write(&v, 0, bytes, packed);
    free(packed);
    return rc;
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    DZ_ENTER("MPI_Bcast");
    int rc = dz_check_comm("MPI_Bcast", comm);
    if (!rc)
        rc = dz_check_root("MPI_Bcast", comm, root);
    if (!rc)
        rc = dz_check_data("MPI_Bcast", comm, buffer, count, datatype, "count");
    if (rc)
        return rc;
    struct dz_coll c = dz_coll_begin("MPI_Bcast", comm);
    return dz_coll_end(&c, dz_coll_bcast(&c, buffer, (size_t)count, datatype, root));
}
DZ_WEAK(PI_Bcast)
