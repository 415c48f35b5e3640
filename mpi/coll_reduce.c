/* coll_reduce.c - reductions whose result is one vector: reduce, allreduce, and the ring that the long ones share.
 *
 * An operation's left operand always comes from the lower ranks: what is combined are results of neighbouring ranges of
 * ranks, so trees are right for operations that do not commute, and both ends of an exchange compute the very same
 * expression on the very same operands: results of allreduce are equal bit for bit on all ranks, NaNs and signed zeros
 * included. Rings rotate the order of ranks and serve commutative operations only; there each block is reduced along
 * one path and then copied.
 *
 * dz_op_apply(in, inout) leaves "in op inout" in inout: the operand that comes from the higher ranks is overwritten, so
 * trees hold two vectors and swap their roles. */
#include <string.h>

#include "mpi/coll.h"

enum { RING_BYTES = 65536, RING_BLOCK = 4096, ONE_SHOT_BYTES = 32768, ONE_SHOT_RANKS = 32 }; /* shorter messages or blocks are bound by the number of steps */

static bool ring_pays(const struct dz_coll *c, size_t count, const struct dz_type *type, const struct dz_op *op)
{
    size_t bytes = count * type->size, size = (size_t)c->comm->size;
    return op->commute && count >= size && bytes >= RING_BYTES && bytes >= size * RING_BLOCK;
}

/* ---- one shot: with channels, a vector to every other rank costs less than the second round of anything else. What has
 * arrived is reduced in the order of ranks: any operation will do, and all ranks compute the same expression. */
static bool one_shot_pays(const struct dz_coll *c, size_t count, const struct dz_type *type)
{
    size_t others = (size_t)c->comm->size - 1, bytes = count * type->size;
    return dz_coll_resident(c) && others && bytes && bytes * others <= ONE_SHOT_BYTES && others < ONE_SHOT_RANKS;
}

/* part[r]: what rank r has given, overwritten but for the first; the result goes to rbuf. */
static int reduce_in_order(struct dz_coll *c, void **part, void *rbuf, size_t count, struct dz_type *type,
                           struct dz_op *op)
{
    int size = c->comm->size, rc = MPI_SUCCESS;
    for (int r = 1; !rc && r < size; r++)
        rc = dz_coll_apply(c, op, type, part[r - 1], part[r], count);
    return rc || part[size - 1] == rbuf ? rc : dz_coll_copy(c, part[size - 1], count, type, rbuf, count, type);
}

/* Where each rank's vector is to be; the last one's in rbuf, where the result is wanted, unless the own one lies there. */
static void **places(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type)
{
    int size = c->comm->size, rank = c->comm->rank;
    void **part = dz_coll_alloc(c, (size_t)size * sizeof *part);
    for (int r = 0; part && r < size; r++) {
        if ((r == size - 1 && (own != rbuf || r == rank)))
            part[r] = rbuf;
        else if (r == rank && r == 0)
            part[r] = (void *)own; /* the first is only read */
        else if (dz_scratch_open(c, &part[r], count, type))
            return NULL;
    }
    return part;
}

static int allreduce_one_shot(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type,
                              struct dz_op *op)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    void **part = places(c, own, rbuf, count, type);
    if (!part)
        return MPI_ERR_NO_MEM;
    for (int s = 1; !rc && s < size; s++)
        rc = dz_coll_isend(c, own, count, type, (rank + s) % size);
    for (int s = 1; !rc && s < size; s++)
        rc = dz_coll_irecv(c, part[(rank + s) % size], count, type, (rank + s) % size);
    if (!rc && part[rank] != own) /* while the others' are on the way */
        rc = dz_coll_copy(c, own, count, type, part[rank], count, type);
    if (!rc)
        rc = dz_coll_fence(c);
    return rc ? rc : reduce_in_order(c, part, rbuf, count, type, op);
}

static int reduce_at_root(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type,
                          struct dz_op *op, int root)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    if (rank != root)
        return dz_coll_send(c, own, count, type, root);
    void **part = places(c, own, rbuf, count, type);
    if (!part)
        return MPI_ERR_NO_MEM;
    for (int r = 0; !rc && r < size; r++)
        if (r != root)
            rc = dz_coll_irecv(c, part[r], count, type, r);
    if (!rc && part[rank] != own)
        rc = dz_coll_copy(c, own, count, type, part[rank], count, type);
    if (!rc)
        rc = dz_coll_fence(c);
    return rc ? rc : reduce_in_order(c, part, rbuf, count, type, op);
}

/* ---- rings. In step s of a reduction block b is sent by rank b + 1 + s: each rank adds its part and passes on. */
int dz_coll_ring_reduce(struct dz_coll *c, void *buf, const size_t *first, struct dz_type *type, struct dz_op *op)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    size_t longest = 0;
    for (int b = 0; b < size; b++)
        if (first[b + 1] - first[b] > longest)
            longest = first[b + 1] - first[b];
    void *aside;
    if (dz_scratch_open(c, &aside, longest, type))
        return MPI_ERR_NO_MEM;
    for (int s = 1; !rc && s < size; s++) {
        int out = (rank - s + size) % size, mine = (rank - s - 1 + size) % size;
        size_t n = first[mine + 1] - first[mine];
        rc = dz_coll_swap(c, dz_coll_at(buf, (ptrdiff_t)first[out], type), first[out + 1] - first[out], type, to, aside,
                          n, type, from);
        if (!rc)
            rc = dz_coll_apply(c, op, type, aside, dz_coll_at(buf, (ptrdiff_t)first[mine], type), n);
    }
    return rc;
}

int dz_coll_ring_gather(struct dz_coll *c, void *buf, const size_t *first, struct dz_type *type)
{
    int size = c->comm->size, rank = c->comm->rank, rc = MPI_SUCCESS;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int s = 0; !rc && s < size - 1; s++) {
        int out = (rank - s + size) % size, in = (out - 1 + size) % size;
        rc = dz_coll_swap(c, dz_coll_at(buf, (ptrdiff_t)first[out], type), first[out + 1] - first[out], type, to,
                          dz_coll_at(buf, (ptrdiff_t)first[in], type), first[in + 1] - first[in], type, from);
    }
    return rc;
}

static size_t *equal_blocks(size_t count, int size)
{
    size_t *first = malloc(((size_t)size + 1) * sizeof *first);
    for (int b = 0; first && b <= size; b++)
        first[b] = dz_block_at(count, size, b);
    return first;
}

/* ---- reduce */
/* What a rank of a tree works with. One of two vectors holds what has been reduced so far (at first the own part, which
 * may not be written to); the other one receives. The second is made when it is needed: with few children it is not. */
struct node {
    struct dz_coll *c;
    struct dz_type *type;
    struct dz_op *op;
    size_t count;
    const void *acc;
    int held;       /* which vector acc is; -1: the own part, elsewhere */
    void *spare[2]; /* the vectors; at the top the first is the user's buffer */
    void *made[2];
};

static int take_child(struct node *n, int child, size_t count)
{
    int i = n->held == 0, rc = MPI_SUCCESS;
    if (!n->spare[i]) {
        rc = dz_scratch_open(n->c, &n->made[i], n->count, n->type);
        n->spare[i] = n->made[i];
    }
    if (!rc)
        rc = dz_coll_recv(n->c, n->spare[i], count, n->type, child);
    if (rc)
        return rc;
    if (n->op->commute && n->held == 0)
        return dz_coll_apply(n->c, n->op, n->type, n->spare[1], n->spare[0], count);
    rc = dz_coll_apply(n->c, n->op, n->type, n->acc, n->spare[i], count);
    n->acc = n->spare[i];
    n->held = i;
    return rc;
}

/* One segment, up a binomial tree over ranks counted from top. At top the result is at n->acc. */
static int reduce_segment(struct node *n, size_t count, int top)
{
    int size = n->c->comm->size, me = (n->c->comm->rank - top + size) % size, rc = MPI_SUCCESS;
    for (int bit = 1; !rc && bit < size; bit *= 2) {
        if (me & bit)
            return dz_coll_send(n->c, n->acc, count, n->type, (me - bit + top) % size);
        if (me + bit < size)
            rc = take_child(n, (me + bit + top) % size, count);
    }
    return rc;
}

/* The operation may be applied to any part of the vectors alone: long ones go in segments, so that levels of the tree
 * work at the same time and scratch memory stays in the cache. Ranks are counted from root where the operation
 * commutes, else from 0, from where the result goes to root. */
static int reduce_by_tree(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type,
                          struct dz_op *op, int root)
{
    size_t most = type->size < DZ_COLL_SEGMENT ? DZ_COLL_SEGMENT / type->size : 1;
    int rank = c->comm->rank, top = op->commute ? root : 0, rc = MPI_SUCCESS;
    struct node n = {.c = c, .type = type, .op = op, .count = count < most ? count : most};
    for (size_t at = 0; !rc && at < count; at += most) {
        size_t len = count - at < most ? count - at : most;
        void *to = rank == root ? dz_coll_at(rbuf, (ptrdiff_t)at, type) : NULL;
        n.acc = dz_coll_at(own, (ptrdiff_t)at, type);
        n.spare[0] = rank == root && top == root ? to : n.made[0];
        n.held = rank == root && top == root && own == rbuf ? 0 : -1;
        rc = reduce_segment(&n, len, top);
        if (!rc && rank == top && top != root)
            rc = dz_coll_send(c, n.acc, len, type, root);
        if (!rc && rank == root && top != root)
            rc = dz_coll_recv(c, to, len, type, top);
        if (!rc && rank == root && top == root && n.held != 0)
            rc = dz_coll_copy(c, n.acc, len, type, to, len, type);
    }
    return rc;
}

/* The reduced blocks go to root one by one. */
static int collect(struct dz_coll *c, void *work, const size_t *first, struct dz_type *type, int root)
{
    int rank = c->comm->rank, rc = MPI_SUCCESS;
    if (rank != root)
        return dz_coll_send(c, dz_coll_at(work, (ptrdiff_t)first[rank], type), first[rank + 1] - first[rank], type,
                            root);
    for (int b = 0; !rc && b < c->comm->size; b++)
        if (b != root)
            rc = dz_coll_recv(c, dz_coll_at(work, (ptrdiff_t)first[b], type), first[b + 1] - first[b], type, b);
    return rc;
}

static int reduce_by_ring(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type,
                          struct dz_op *op, int root)
{
    void *work = rbuf;
    size_t *first = equal_blocks(count, c->comm->size);
    int rc = first ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (!rc && c->comm->rank != root)
        rc = dz_scratch_open(c, &work, count, type);
    if (!rc && work != own)
        rc = dz_coll_copy(c, own, count, type, work, count, type);
    if (!rc)
        rc = dz_coll_ring_reduce(c, work, first, type, op);
    if (!rc)
        rc = collect(c, work, first, type, root);
    free(first);
    return rc;
}

int dz_coll_reduce(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type, struct dz_op *op,
                   int root)
{
    if (!count || !type->size)
        return MPI_SUCCESS;
    if (c->comm->size == 1)
        return own == rbuf ? MPI_SUCCESS : dz_coll_copy(c, own, count, type, rbuf, count, type);
    if (one_shot_pays(c, count, type))
        return reduce_at_root(c, own, rbuf, count, type, op, root);
    if (c->comm->size > 3 && ring_pays(c, count, type, op)) /* fewer ranks: the tree moves less */
        return reduce_by_ring(c, own, rbuf, count, type, op, root);
    return reduce_by_tree(c, own, rbuf, count, type, op, root);
}

/* ---- allreduce */
/* acc and in hold neighbouring ranges of ranks; leaves their reduction in acc and swaps the two if need be. */
static int combine(struct dz_coll *c, struct dz_op *op, struct dz_type *type, size_t count, void **acc, void **in,
                   bool in_is_lower)
{
    if (in_is_lower)
        return dz_coll_apply(c, op, type, *in, *acc, count);
    void *t = *acc;
    *acc = *in;
    *in = t;
    return dz_coll_apply(c, op, type, *in, *acc, count);
}

/* Recursive doubling over a power of two of ranks; those beyond it hand their part to a neighbour first, and get the
 * result in the end. *acc holds the own part, *in is scratch; the result is at *acc. */
static int double_up(struct dz_coll *c, size_t count, struct dz_type *type, struct dz_op *op, void **acc, void **in)
{
    int size = c->comm->size, rank = c->comm->rank, power = 1, rc = MPI_SUCCESS;
    while (power * 2 <= size)
        power *= 2;
    int extra = size - power; /* the first 2 * extra ranks are folded in pairs */
    if (rank < 2 * extra && !(rank % 2)) {
        rc = dz_coll_send(c, *acc, count, type, rank + 1);
        return rc ? rc : dz_coll_recv(c, *acc, count, type, rank + 1);
    }
    if (rank < 2 * extra) {
        rc = dz_coll_recv(c, *in, count, type, rank - 1);
        if (!rc)
            rc = combine(c, op, type, count, acc, in, true);
    }
    int me = rank < 2 * extra ? rank / 2 : rank - extra;
    for (int bit = 1; !rc && bit < power; bit *= 2) {
        int other = me ^ bit, peer = other < extra ? other * 2 + 1 : other + extra;
        rc = dz_coll_swap(c, *acc, count, type, peer, *in, count, type, peer);
        if (!rc)
            rc = combine(c, op, type, count, acc, in, other < me);
    }
    if (!rc && rank < 2 * extra)
        rc = dz_coll_send(c, *acc, count, type, rank - 1);
    return rc;
}

static int allreduce_doubling(struct dz_coll *c, void *rbuf, size_t count, struct dz_type *type, struct dz_op *op)
{
    void *acc = rbuf, *in;
    int rc = dz_scratch_open(c, &in, count, type);
    if (!rc)
        rc = double_up(c, count, type, op, &acc, &in);
    if (!rc && acc != rbuf)
        rc = dz_coll_copy(c, acc, count, type, rbuf, count, type);
    return rc;
}

static int allreduce_ring(struct dz_coll *c, void *rbuf, size_t count, struct dz_type *type, struct dz_op *op)
{
    size_t *first = equal_blocks(count, c->comm->size);
    int rc = first ? dz_coll_ring_reduce(c, rbuf, first, type, op) : MPI_ERR_NO_MEM;
    if (!rc)
        rc = dz_coll_ring_gather(c, rbuf, first, type);
    free(first);
    return rc;
}

int dz_coll_allreduce(struct dz_coll *c, const void *own, void *rbuf, size_t count, struct dz_type *type,
                      struct dz_op *op)
{
    int rc = MPI_SUCCESS;
    if (one_shot_pays(c, count, type))
        return allreduce_one_shot(c, own, rbuf, count, type, op);
    if (count && own != rbuf)
        rc = dz_coll_copy(c, own, count, type, rbuf, count, type);
    if (rc || !count || !type->size || c->comm->size == 1)
        return rc;
    return ring_pays(c, count, type, op) ? allreduce_ring(c, rbuf, count, type, op)
                                         : allreduce_doubling(c, rbuf, count, type, op);
}

/* ---- calls */
static int check_reduction(const char *call, struct dz_comm *comm, const void *sendbuf, const void *recvbuf, int count,
                           struct dz_type *type, struct dz_op *op, bool receives)
{
    int rc = dz_check_count(call, comm, count, "count");
    if (!rc)
        rc = dz_check_type(call, comm, type, "datatype");
    if (!rc)
        rc = dz_check_op(call, comm, op, type);
    if (!rc && !(receives && sendbuf == MPI_IN_PLACE))
        rc = dz_check_buf(call, comm, sendbuf, count, type);
    if (!rc && receives)
        rc = dz_check_buf(call, comm, recvbuf, count, type);
    return rc;
}

static int resident_reduction(const struct dz_how *how, struct dz_comm *comm, struct dz_resident *r, const void *own,
                              void *rbuf, size_t count, struct dz_type *type, struct dz_op *op)
{
    size_t bytes = r->shape.bytes;
    int root = r->shape.root, rc = MPI_SUCCESS;
    if (!r->c) {
        struct dz_coll *c = dz_resident_open(r, how, comm, bytes, bytes);
        rc = !c ? MPI_ERR_NO_MEM
                : dz_resident_bind(r, c, root < 0 ? dz_coll_allreduce(c, r->in, r->out, count, type, op)
                                                  : dz_coll_reduce(c, r->in, r->out, count, type, op, root));
    }
    if (rc)
        return rc;
    memcpy(r->in, own, bytes);
    rc = dz_resident_run(r, how->call);
    if (!rc && (root < 0 || root == comm->rank))
        memcpy(rbuf, r->out, bytes);
    return rc;
}

static int reduce(struct dz_how how, const void *sendbuf, void *recvbuf, int count, struct dz_type *datatype,
                  struct dz_op *op, int root, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    struct dz_resident *r;
    int rc = dz_coll_check(&how, comm);
    if (!rc)
        rc = dz_check_root(how.call, comm, root);
    if (!rc)
        rc = check_reduction(how.call, comm, sendbuf, recvbuf, count, datatype, op, comm->rank == root);
    if (rc)
        return rc;
    const void *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    size_t bytes = (size_t)count * datatype->size;
    struct dz_shape shape = {DZ_SHAPE_REDUCE, root, bytes, op, datatype->kind};
    if (bytes && datatype->contig && (r = dz_resident_find(&how, comm, &shape)))
        return resident_reduction(&how, comm, r, own, recvbuf, (size_t)count, datatype, op);
    c = dz_coll_open(&how, comm, &now);
    return c ? dz_coll_go(&how, c, dz_coll_reduce(c, own, recvbuf, (size_t)count, datatype, op, root))
             : MPI_ERR_NO_MEM;
}
DZ_COLLECTIVE(Reduce, Ireduce, reduce,
              DZ_LIST(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                      MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, count, datatype, op, root, comm))

static int allreduce(struct dz_how how, const void *sendbuf, void *recvbuf, int count, struct dz_type *datatype,
                     struct dz_op *op, struct dz_comm *comm)
{
    struct dz_coll now, *c;
    struct dz_resident *r;
    int rc = dz_coll_check(&how, comm);
    if (!rc)
        rc = check_reduction(how.call, comm, sendbuf, recvbuf, count, datatype, op, true);
    if (rc)
        return rc;
    const void *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    size_t bytes = (size_t)count * datatype->size;
    struct dz_shape shape = {DZ_SHAPE_ALLREDUCE, -1, bytes, op, datatype->kind};
    if (bytes && datatype->contig && (r = dz_resident_find(&how, comm, &shape)))
        return resident_reduction(&how, comm, r, own, recvbuf, (size_t)count, datatype, op);
    c = dz_coll_open(&how, comm, &now);
    return c ? dz_coll_go(&how, c, dz_coll_allreduce(c, own, recvbuf, (size_t)count, datatype, op)) : MPI_ERR_NO_MEM;
}
DZ_COLLECTIVE(Allreduce, Iallreduce, allreduce,
              DZ_LIST(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
              DZ_LIST(sendbuf, recvbuf, count, datatype, op, comm))
