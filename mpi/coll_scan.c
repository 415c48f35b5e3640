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
static int take_lower(struct dz_coll *c, struct scan *s)
{
    int rc;
    if (s->has_prefix)
        rc = dz_coll_apply(c, s->op, s->type, s->in, s->prefix, s->count);
    else
        rc = dz_coll_copy(c, s->in, s->count, s->type, s->prefix, s->count, s->type);
    s->has_prefix = true;
    return rc ? rc : dz_coll_apply(c, s->op, s->type, s->in, s->run, s->count);
}

static int take_higher(struct dz_coll *c, struct scan *s)
{
    void *t = s->run;
    s->run = s->in;
    s->in = t;
    return dz_coll_apply(c, s->op, s->type, s->in, s->run, s->count);
}

static int scan_rounds(struct dz_coll *c, struct scan *s)
{
    int rc = MPI_SUCCESS;
    for (int bit = 1; !rc && bit < c->comm->size; bit *= 2) {
        int peer = c->comm->rank ^ bit;
        if (peer >= c->comm->size)
            continue;
        rc = dz_coll_swap(c, s->run, s->count, s->type, peer, s->in, s->count, s->type, peer);
        if (!rc)
            rc = peer < c->comm->rank ? take_lower(c, s) : take_higher(c, s);
    }
    return rc;
}

/* inclusive: the own part counts as prefix from the beginning */
static int scan(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type, struct dz_op *op,
                bool inclusive)
{
    void *run = NULL, *in = NULL;
    if (!count)
        return MPI_SUCCESS;
    int rc = dz_scratch_open(c, &run, count, type);
    if (!rc)
        rc = dz_scratch_open(c, &in, count, type);
    struct scan s = {type, op, count, rbuf, inclusive, run, in};
    if (!rc)
        rc = dz_coll_copy(c, own, count, type, run, count, type);
    if (!rc && inclusive && own != rbuf)
        rc = dz_coll_copy(c, own, count, type, rbuf, count, type);
    return rc ? rc : scan_rounds(c, &s);
}

static int prefix(const struct dz_how *how, const void *sendbuf, void *recvbuf, int count, struct dz_type *type,
                  struct dz_op *op, struct dz_comm *comm, bool inclusive)
{
    struct dz_coll now, *c;
    int rc = dz_coll_check(how, comm);
    if (rc)
        return rc;
    /* the first rank of an exclusive scan receives nothing: its receive buffer may be anything, unless it sends from it */
    bool receives = inclusive || comm->rank || sendbuf == MPI_IN_PLACE;
    rc = dz_check_data(how->call, comm, receives ? recvbuf : sendbuf, count, type, "count");
    if (!rc)
        rc = dz_check_op(how->call, comm, op, type);
    if (!rc && sendbuf != MPI_IN_PLACE)
        rc = dz_check_buf(how->call, comm, sendbuf, count, type);
    if (rc || !(c = dz_coll_open(how, comm, &now)))
        return rc ? rc : MPI_ERR_NO_MEM;
    const void *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    return dz_coll_go(how, c, scan(c, own, recvbuf, (size_t)count, type, op, inclusive));
}

static int scan_call(struct dz_how how, const void *sendbuf, void *recvbuf, int count, struct dz_type *datatype,
                     struct dz_op *op, struct dz_comm *comm)
{
    return prefix(&how, sendbuf, recvbuf, count, datatype, op, comm, true);
}
DZ_COLLECTIVE(Scan, Iscan, scan_call,
              DZ_LIST(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, count, datatype, op, comm))

static int exscan_call(struct dz_how how, const void *sendbuf, void *recvbuf, int count, struct dz_type *datatype,
                       struct dz_op *op, struct dz_comm *comm)
{
    return prefix(&how, sendbuf, recvbuf, count, datatype, op, comm, false);
}
DZ_COLLECTIVE(Exscan, Iexscan, exscan_call,
              DZ_LIST(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, count, datatype, op, comm))

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
    return rc ? rc : dz_coll_copy(c, whole, mine, type, rbuf, mine, type);
}

static int scatter_reduce(struct dz_coll *c, const void *own, void *rbuf, const size_t *first, struct dz_type *type,
                          struct dz_op *op)
{
    int size = c->comm->size, rank = c->comm->rank;
    size_t count = first[size], mine = first[rank + 1] - first[rank];
    void *all;
    if (!count)
        return MPI_SUCCESS;
    int rc = dz_scratch_open(c, &all, count, type);
    if (rc)
        return rc;
    if (size > 1 && op->commute && count * type->size >= RING_BYTES) {
        rc = dz_coll_copy(c, own, count, type, all, count, type);
        if (!rc)
            rc = dz_coll_ring_reduce(c, all, first, type, op);
        if (!rc)
            rc = dz_coll_copy(c, dz_coll_at(all, (ptrdiff_t)first[rank], type), mine, type, rbuf, mine, type);
    } else {
        rc = dz_coll_reduce(c, own, all, count, type, op, 0);
        if (!rc)
            rc = deal(c, all, first, rbuf, type);
    }
    return rc;
}

/* counts: NULL for `each` everywhere. comm is checked. */
static int scattered(const struct dz_how *how, const void *sendbuf, void *recvbuf, const int *counts, int each,
                     struct dz_type *type, struct dz_op *op, struct dz_comm *comm)
{
    const char *call = how->call;
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
        struct dz_coll now, *c = dz_coll_open(how, comm, &now);
        rc = c ? dz_coll_go(how, c, scatter_reduce(c, in_place ? recvbuf : sendbuf, recvbuf, first, type, op))
               : MPI_ERR_NO_MEM;
    }
    free(first);
    return rc;
}

static int reduce_scatter(struct dz_how how, const void *sendbuf, void *recvbuf, const int recvcounts[],
                          struct dz_type *datatype, struct dz_op *op, struct dz_comm *comm)
{
    int rc = dz_coll_check(&how, comm);
    if (!rc)
        rc = dz_check_ptr(how.call, comm, recvcounts, "recvcounts");
    return rc ? rc : scattered(&how, sendbuf, recvbuf, recvcounts, 0, datatype, op, comm);
}
DZ_COLLECTIVE(Reduce_scatter, Ireduce_scatter, reduce_scatter,
              DZ_LIST(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, recvcounts, datatype, op, comm))

static int reduce_scatter_block(struct dz_how how, const void *sendbuf, void *recvbuf, int recvcount,
                                struct dz_type *datatype, struct dz_op *op, struct dz_comm *comm)
{
    int rc = dz_coll_check(&how, comm);
    return rc ? rc : scattered(&how, sendbuf, recvbuf, NULL, recvcount, datatype, op, comm);
}
DZ_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block,
              DZ_LIST(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, recvcount, datatype, op, comm))
