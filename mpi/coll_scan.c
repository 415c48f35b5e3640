/* coll_scan.c - reductions whose result differs from rank to rank: prefixes (scan, exscan), and the scattered ones.
 *
 * Prefixes double: after round k a rank knows the reduction of its own aligned run of 2^k ranks (`run`), and of those
 * of it that come before the rank itself (`prefix`). Left operands come from lower ranks, so any operation will do.
 *
 * A scattered reduction is a ring (coll_reduce.c) for commutative operations on enough bytes, else a reduction to rank
 * 0 that is then dealt out. */
#include <errno.h>

#include "mpi/coll.h"

enum { RING_BYTES = 16384 };

/* ---- prefixes. Four vectors: prefix, run, what has arrived, and one to compute a new run in. */
struct scan {
    struct dz_type *type;
    struct dz_op *op;
    size_t count;
    void *prefix; /* the user's receive buffer; meaningful once has_prefix */
    bool has_prefix;
    void *run, *in;
};

/* in comes from the run before mine: it precedes all I have. */
static int take_lower(struct scan *s)
{
    int rc = MPI_SUCCESS;
    if (s->has_prefix)
        dz_op_apply(s->op, s->type, s->in, s->prefix, s->count);
    else
        rc = dz_coll_copy(s->in, s->count, s->type, s->prefix, s->count, s->type);
    s->has_prefix = true;
    dz_op_apply(s->op, s->type, s->in, s->run, s->count);
    return rc;
}

static void take_higher(struct scan *s)
{
    dz_op_apply(s->op, s->type, s->run, s->in, s->count);
    void *t = s->run;
    s->run = s->in;
    s->in = t;
}

static int scan_rounds(struct dz_coll *c, struct scan *s)
{
    int rc = MPI_SUCCESS;
    for (int bit = 1; !rc && bit < c->comm->size; bit *= 2) {
        int peer = c->comm->rank ^ bit;
        if (peer >= c->comm->size)
            continue;
        rc = dz_coll_swap(c, s->run, s->count, s->type, peer, s->in, s->count, s->type, peer);
        if (rc)
            break;
        if (peer < c->comm->rank)
            rc = take_lower(s);
        else
            take_higher(s);
    }
    return rc;
}

/* inclusive: the own part counts as prefix from the beginning */
static int scan(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type, struct dz_op *op,
                bool inclusive)
{
    struct dz_scratch run, in;
    if (!count)
        return MPI_SUCCESS;
    if (dz_scratch_open(&run, count, type))
        return MPI_ERR_NO_MEM;
    int rc = dz_scratch_open(&in, count, type);
    struct scan s = {type, op, count, rbuf, inclusive, run.at, in.at};
    if (!rc)
        rc = dz_coll_copy(own, count, type, run.at, count, type);
    if (!rc && inclusive && own != rbuf)
        rc = dz_coll_copy(own, count, type, rbuf, count, type);
    if (!rc)
        rc = scan_rounds(c, &s);
    free(run.mem);
    free(in.mem);
    return rc;
}

static int check_prefix(const char *call, struct dz_comm *comm, const void *sendbuf, void *recvbuf, int count,
                        struct dz_type *type, struct dz_op *op)
{
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_data(call, comm, recvbuf, count, type, "count");
    if (!rc)
        rc = dz_check_op(call, comm, op, type);
    return rc || sendbuf == MPI_IN_PLACE ? rc : dz_check_buf(call, comm, sendbuf, count, type);
}

int PMPI_Scan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    DZ_ENTER("MPI_Scan");
    int rc = check_prefix("MPI_Scan", comm, sendbuf, recvbuf, count, datatype, op);
    if (rc)
        return rc;
    const void *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    struct dz_coll c = dz_coll_begin("MPI_Scan", comm);
    return dz_coll_end(&c, scan(&c, own, recvbuf, (size_t)count, datatype, op, true));
}
DZ_WEAK(PI_Scan)

int PMPI_Exscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    DZ_ENTER("MPI_Exscan");
    int rc = dz_check_comm("MPI_Exscan", comm);
    if (!rc) /* the first rank receives nothing: its receive buffer may be anything, unless it sends from there */
        rc = check_prefix("MPI_Exscan", comm, sendbuf,
                          comm->rank || sendbuf == MPI_IN_PLACE ? recvbuf : (void *)sendbuf, count, datatype, op);
    if (rc)
        return rc;
    const void *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    struct dz_coll c = dz_coll_begin("MPI_Exscan", comm);
    return dz_coll_end(&c, scan(&c, own, recvbuf, (size_t)count, datatype, op, false));
}
DZ_WEAK(PI_Exscan)

/* ---- scattered reductions. Block r of the vector, elements first[r] to first[r + 1], goes to rank r. */
static int deal(struct dz_coll *c, const void *whole, const size_t *first, void *rbuf, struct dz_type *type)
{
    int rank = c->comm->rank, rc = MPI_SUCCESS;
    size_t mine = first[rank + 1] - first[rank];
    if (rank)
        return mine ? dz_coll_recv(c, rbuf, mine, type, 0) : MPI_SUCCESS;
    for (int r = 1; !rc && r < c->comm->size; r++)
        if (first[r + 1] > first[r])
            rc = dz_coll_send(c, dz_coll_at(whole, (ptrdiff_t)first[r], type), first[r + 1] - first[r], type, r);
    return rc ? rc : dz_coll_copy(whole, mine, type, rbuf, mine, type);
}

static int scatter_reduce(struct dz_coll *c, const void *own, void *rbuf, const size_t *first, struct dz_type *type,
                          struct dz_op *op)
{
    int size = c->comm->size, rank = c->comm->rank;
    size_t count = first[size], mine = first[rank + 1] - first[rank];
    struct dz_scratch all;
    if (!count)
        return MPI_SUCCESS;
    int rc = dz_scratch_open(&all, count, type);
    if (rc)
        return rc;
    if (size > 1 && op->commute && count * type->size >= RING_BYTES) {
        rc = dz_coll_copy(own, count, type, all.at, count, type);
        if (!rc)
            rc = dz_coll_ring_reduce(c, all.at, first, type, op);
        if (!rc)
            rc = dz_coll_copy(dz_coll_at(all.at, (ptrdiff_t)first[rank], type), mine, type, rbuf, mine, type);
    } else {
        rc = dz_coll_reduce(c, own, all.at, count, type, op, 0);
        if (!rc)
            rc = deal(c, all.at, first, rbuf, type);
    }
    free(all.mem);
    return rc;
}

/* counts: NULL for `each` everywhere. comm is checked. */
static int reduce_scatter(const char *call, const void *sendbuf, void *recvbuf, const int *counts, int each,
                          struct dz_type *type, struct dz_op *op, struct dz_comm *comm)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    size_t *first = calloc((size_t)comm->size + 1, sizeof *first);
    int rc = first ? MPI_SUCCESS : dz_raise_errno(comm, -ENOMEM, call, NULL);
    for (int r = 0; !rc && r < comm->size; r++) {
        int n = counts ? counts[r] : each;
        rc = dz_check_count(call, comm, n, counts ? "recvcounts" : "recvcount");
        first[r + 1] = first[r] + (size_t)n;
    }
    if (!rc)
        rc = dz_check_type(call, comm, type, "datatype");
    if (!rc)
        rc = dz_check_op(call, comm, op, type);
    if (!rc && !in_place)
        rc = dz_check_buf(call, comm, sendbuf, (MPI_Count)first[comm->size], type);
    if (!rc)
        rc = dz_check_buf(call, comm, recvbuf,
                          (MPI_Count)(in_place ? first[comm->size] : first[comm->rank + 1] - first[comm->rank]), type);
    if (!rc) {
        struct dz_coll c = dz_coll_begin(call, comm);
        rc = dz_coll_end(&c, scatter_reduce(&c, in_place ? recvbuf : sendbuf, recvbuf, first, type, op));
    }
    free(first);
    return rc;
}

int PMPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm)
{
    DZ_ENTER("MPI_Reduce_scatter");
    int rc = dz_check_comm("MPI_Reduce_scatter", comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Reduce_scatter", comm, recvcounts, "recvcounts");
    return rc ? rc : reduce_scatter("MPI_Reduce_scatter", sendbuf, recvbuf, recvcounts, 0, datatype, op, comm);
}
DZ_WEAK(PI_Reduce_scatter)

int PMPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm)
{
    DZ_ENTER("MPI_Reduce_scatter_block");
    int rc = dz_check_comm("MPI_Reduce_scatter_block", comm);
    return rc ? rc : reduce_scatter("MPI_Reduce_scatter_block", sendbuf, recvbuf, NULL, recvcount, datatype, op, comm);
}
DZ_WEAK(PI_Reduce_scatter_block)
