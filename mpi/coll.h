/* coll.h - what the collective operations share: one running operation, its transfers, its scratch memory.
 *
 * Everything here runs on the communicator's second context, without dz_lock, and returns an MPI class that nobody has
 * raised yet; the entry point raises it once, by dz_coll_end, which knows the peer that failed. All messages of an
 * operation carry one tag, drawn from comm->coll_seq: all ranks draw in the same order, and between two ranks messages
 * of one tag keep their order, so no other agreement is needed. */
#ifndef DZ_MPI_COLL_H
#define DZ_MPI_COLL_H

#include <stdlib.h>

#include "mpi/core.h"

struct dz_coll {
    struct dz_comm *comm;
    const char *call;
    int tag;
    int peer; /* rank at the other end of a transfer that failed, or -1 */
};

/* Bytes at a time of long messages that several ranks pass on. More than is sent eagerly by default: a fast sender then
 * waits for its receiver, who would else have to keep what comes too early, and every byte is copied once. Measured. */
#define DZ_COLL_SEGMENT 524288

/* Tags of MPI_Comm_create_group, which not all ranks take part in, lie above those of coll_seq. */
#define DZ_COLL_TAGS 0x40000000

static inline struct dz_coll dz_coll_begin(const char *call, struct dz_comm *comm)
{
    int tag = (int)(comm->coll_seq++ % DZ_COLL_TAGS);
    return (struct dz_coll){.comm = comm, .call = call, .tag = tag, .peer = -1};
}
int dz_coll_end(struct dz_coll *, int errclass); /* raises errclass unless it is MPI_SUCCESS, and returns it */

/* Blocking transfers. A rank of MPI_PROC_NULL leaves that half out. */
int dz_coll_send(struct dz_coll *, const void *buf, size_t count, struct dz_type *, int dest);
int dz_coll_recv(struct dz_coll *, void *buf, size_t count, struct dz_type *, int src);
int dz_coll_swap(struct dz_coll *, const void *sbuf, size_t scount, struct dz_type *stype, int dest, void *rbuf,
                 size_t rcount, struct dz_type *rtype, int src);

/* dst <- src, each laid out as its type says. MPI_ERR_TRUNCATE when src is the longer one. */
int dz_coll_copy(const void *src, size_t scount, const struct dz_type *stype, void *dst, size_t rcount,
                 const struct dz_type *rtype);

static inline void *dz_coll_at(const void *buf, ptrdiff_t i, const struct dz_type *t)
{
    return (char *)buf + i * t->extent;
}

/* Memory for count elements as t lays them out; `at` is what to use as their address. free(mem) ends it. */
struct dz_scratch {
    void *mem;
    void *at;
};
int dz_scratch_open(struct dz_scratch *, size_t count, const struct dz_type *t);

/* Element range of block b when count elements are cut into n blocks of nearly the same size. */
static inline size_t dz_block_at(size_t count, int n, int b)
{
    size_t q = count / (size_t)n, r = count % (size_t)n;
    return q * (size_t)b + ((size_t)b < r ? (size_t)b : r);
}

/* The operations themselves, arguments checked, MPI_IN_PLACE resolved by the caller where it is not named. */
int dz_coll_barrier(struct dz_coll *);
int dz_coll_bcast(struct dz_coll *, void *buf, size_t count, struct dz_type *, int root);
/* own may be rbuf (in place) */
int dz_coll_reduce(struct dz_coll *, const void *own, void *rbuf, size_t count, struct dz_type *, struct dz_op *,
                   int root);
int dz_coll_allreduce(struct dz_coll *, const void *own, void *rbuf, size_t count, struct dz_type *, struct dz_op *);
/* Ring: on return buf's block `rank` of blocks first[0..size] (elements) holds the reduction. Must commute. */
int dz_coll_ring_reduce(struct dz_coll *, void *buf, const size_t *first, struct dz_type *, struct dz_op *);
/* Ring: each rank's block of buf to all ranks. */
int dz_coll_ring_gather(struct dz_coll *, void *buf, const size_t *first, struct dz_type *);
/* all[r * bytes] <- rank r's own; own may lie in place. Few bytes. */
int dz_coll_allgather_bytes(struct dz_coll *, const void *own, void *all, size_t bytes);

/* Argument checks that only collectives need. */
int dz_check_op(const char *call, struct dz_comm *, struct dz_op *, struct dz_type *);
int dz_check_data(const char *call, struct dz_comm *, const void *buf, MPI_Count count, struct dz_type *,
                  const char *what);

#endif
