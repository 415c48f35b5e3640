/* coll.h - what the collective operations share: how one is written down once and carried out in three ways.
 *
 * A collective is a function that calls dz_coll_send, dz_coll_recv, dz_coll_copy, dz_coll_apply and their like, in
 * order, on one struct dz_coll. What these do depends on how the operation was asked for:
 *
 *   MPI_X        they do it, and return when it is done
 *   MPI_IX       they write it down as a step; the list of steps runs as a request (coll_sched.c)
 *   MPI_X_init   the same, and every transfer of the list gets a channel of its own, bound once (coll_resident.c): from
 *                then on a round costs a token a transfer. Short blocking calls of a shape that keeps coming get such
 *                a list too
 *
 * So what is to be done must follow from the arguments alone, never from the bytes; memory that is needed on the way
 * comes from dz_coll_alloc or dz_scratch_open and lives as long as the operation.
 *
 * All of this runs on the communicator's second context, without dz_lock, and returns an MPI class that nobody has raised
 * yet; the entry point raises it once. All messages of an operation carry one tag, drawn from comm->coll_seq: all ranks
 * draw in the same order, and between two ranks messages of one tag keep their order, as the channels of one tag do, so
 * no other agreement is needed. */
#ifndef DZ_MPI_COLL_H
#define DZ_MPI_COLL_H

#include <stdlib.h>

#include "mpi/core.h"

#pragma GCC visibility push(hidden)

enum dz_coll_mode { DZ_COLL_BLOCKING, DZ_COLL_IMMEDIATE, DZ_COLL_INIT };
struct dz_how { /* an operation was asked for */
    const char *call;
    enum dz_coll_mode mode;
    struct dz_info *info;  /* INIT */
    MPI_Request *request;  /* IMMEDIATE, INIT */
};

enum dz_step_kind { DZ_STEP_SEND, DZ_STEP_RECV, DZ_STEP_COPY, DZ_STEP_APPLY, DZ_STEP_FENCE };
struct dz_step {
    uint8_t kind;          /* enum dz_step_kind; FENCE: every transfer before it is over */
    bool done;             /* a transfer of this round that is over */
    int peer;              /* a rank of the communicator */
    const void *from;
    void *to;
    size_t count, room;    /* elements of type; COPY: elements of rtype at `to` */
    struct dz_type *type, *rtype;
    struct dz_op *op;
    struct dz_request *transfer; /* under way; resident: its channel, as long as the list lives */
};

struct dz_coll {
    struct dz_request req; /* IMMEDIATE, INIT */
    struct dz_comm *comm;
    const char *call;
    int tag;
    int peer;              /* rank at the other end of a transfer that failed, or -1 */
    enum dz_coll_mode mode;
    int fail;              /* MPI class of this round, first come */
    int broken;            /* INIT: a round has failed with this class, and no more can be */
    uint32_t nsteps, room; /* BLOCKING: transfers under way */
    uint32_t at, open;     /* the step that is next; transfers before `open` are over */
    struct dz_step *steps;
    struct dz_piece *pieces;   /* memory of the operation */
    _Atomic bool claimed;      /* a thread is carrying it out */
    bool listed;               /* where progress finds it */
    struct dz_coll *prev, *next;
};

/* Bytes at a time of long messages that several ranks pass on. More than is sent eagerly by default: a fast sender then
 * waits for its receiver, who would else have to keep what comes too early, and every byte is copied once. Measured. */
#define DZ_COLL_SEGMENT 524288

/* Tags of MPI_Comm_create_group, which not all ranks take part in, lie above those of coll_seq. */
#define DZ_COLL_TAGS 0x40000000

/* ---- one operation (coll_sched.c) */
/* Phase, comm, and what else a call of any mode needs; raises. */
int dz_coll_check(const struct dz_how *, struct dz_comm *);
/* Begins it. `now` is used where the call blocks. NULL: no memory, MPI_ERR_NO_MEM has been raised. */
struct dz_coll *dz_coll_open(const struct dz_how *, struct dz_comm *, struct dz_coll *now);
/* rc: what describing it came to. Ends a blocking one, starts an immediate one, binds a persistent one. Raises. */
int dz_coll_go(const struct dz_how *, struct dz_coll *, int rc);
/* For calls that only block. */
void dz_coll_begin(struct dz_coll *, const char *call, struct dz_comm *);
int dz_coll_end(struct dz_coll *, int errclass); /* raises errclass unless it is MPI_SUCCESS, and returns it */
/* What failed, and with which rank (-1: on this one). Returns errclass. */
int dz_coll_raise(struct dz_comm *, const char *call, int errclass, int peer);
/* All persistent and immediate ones that are active, once; > 0 when something moved. Without the lock. */
int dz_coll_progress(void);
/* Starts a bound list and waits for it. An MPI class, not raised; c->peer says whose fault. */
int dz_coll_round(struct dz_coll *);
void dz_coll_destroy(struct dz_coll *); /* not active; without the lock */
void dz_coll_fini(void);

/* ---- what it consists of. A rank of MPI_PROC_NULL leaves a transfer out. */
int dz_coll_send(struct dz_coll *, const void *buf, size_t count, struct dz_type *, int dest);
int dz_coll_recv(struct dz_coll *, void *buf, size_t count, struct dz_type *, int src);
int dz_coll_swap(struct dz_coll *, const void *sbuf, size_t scount, struct dz_type *stype, int dest, void *rbuf,
                 size_t rcount, struct dz_type *rtype, int src);
/* Begun only; over at the next fence. */
int dz_coll_isend(struct dz_coll *, const void *buf, size_t count, struct dz_type *, int dest);
int dz_coll_irecv(struct dz_coll *, void *buf, size_t count, struct dz_type *, int src);
int dz_coll_fence(struct dz_coll *);
/* dst <- src, each laid out as its type says. MPI_ERR_TRUNCATE when src is the longer one. */
int dz_coll_copy(struct dz_coll *, const void *src, size_t scount, struct dz_type *stype, void *dst, size_t rcount,
                 struct dz_type *rtype);
/* inout <- in op inout */
int dz_coll_apply(struct dz_coll *, struct dz_op *, struct dz_type *, const void *in, void *inout, size_t count);
void *dz_coll_alloc(struct dz_coll *, size_t bytes); /* NULL: no memory */
/* Memory for count elements as t lays them out; *at is what to use as their address. */
int dz_scratch_open(struct dz_coll *, void **at, size_t count, const struct dz_type *t);

static inline bool dz_coll_blocking(const struct dz_coll *c) { return c->mode == DZ_COLL_BLOCKING; }
/* Its transfers are channels: many at once cost little. */
static inline bool dz_coll_resident(const struct dz_coll *c) { return c->mode == DZ_COLL_INIT; }

static inline void *dz_coll_at(const void *buf, ptrdiff_t i, const struct dz_type *t)
{
    return (char *)buf + i * t->extent;
}

/* Element range of block b when count elements are cut into n blocks of nearly the same size. */
static inline size_t dz_block_at(size_t count, int n, int b)
{
    size_t q = count / (size_t)n, r = count % (size_t)n;
    return q * (size_t)b + ((size_t)b < r ? (size_t)b : r);
}

/* ---- channels for its transfers (coll_resident.c) */
int dz_coll_bind(struct dz_coll *);     /* 0 or -errno: then nothing is bound, c->peer says whose fault */
void dz_coll_unbind(struct dz_coll *);

/* Short blocking calls that keep coming. A shape is what all ranks know alike. */
enum dz_shape_kind { DZ_SHAPE_BARRIER, DZ_SHAPE_BCAST, DZ_SHAPE_REDUCE, DZ_SHAPE_ALLREDUCE, DZ_SHAPE_ALLGATHER,
                     DZ_SHAPE_GATHER, DZ_SHAPE_SCATTER, DZ_SHAPE_ALLTOALL };
struct dz_shape {
    enum dz_shape_kind kind;
    int root;
    size_t bytes;         /* of one rank's part */
    const struct dz_op *op;
    int type;             /* enum dz_kind, with op */
};
struct dz_resident {
    struct dz_shape shape;
    uint64_t last_use;
    unsigned uses;
    struct dz_coll *c;    /* NULL: not bound yet */
    void *in, *out;       /* memory of c that it works on */
};
/* NULL: this call goes the usual way. Else r->c may have to be made (dz_resident_open). All ranks get the same answer. */
struct dz_resident *dz_resident_find(const struct dz_how *, struct dz_comm *, const struct dz_shape *);
/* A list to be described, with in and out of so many bytes. NULL: no memory; raised. */
struct dz_coll *dz_resident_open(struct dz_resident *, const struct dz_how *, struct dz_comm *, size_t in, size_t out);
int dz_resident_bind(struct dz_resident *, struct dz_coll *, int rc); /* raises */
int dz_resident_run(struct dz_resident *, const char *call);          /* raises */
void dz_resident_clear(struct dz_comm *);                             /* the communicator ends */

/* ---- the operations themselves, arguments checked, MPI_IN_PLACE resolved by the caller where it is not named. */
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

/* The three calls of one collective, from a function fn(struct dz_how, parameters), and the names that the persistent
 * one had before MPI 4.0 (Open MPI's). */
#define DZ_LIST(...) __VA_ARGS__
#define DZ_COLLECTIVE(Name, Iname, fn, PARAMETERS, ARGUMENTS)                                                        \
    int PMPI_##Name(PARAMETERS)                                                                                      \
    {                                                                                                                \
        return fn((struct dz_how){"MPI_" #Name, DZ_COLL_BLOCKING, NULL, NULL}, ARGUMENTS);                           \
    }                                                                                                                \
    DZ_WEAK(PI_##Name)                                                                                               \
    int PMPI_##Iname(PARAMETERS, MPI_Request *request)                                                               \
    {                                                                                                                \
        return fn((struct dz_how){"MPI_" #Iname, DZ_COLL_IMMEDIATE, NULL, request}, ARGUMENTS);                      \
    }                                                                                                                \
    DZ_WEAK(PI_##Iname)                                                                                              \
    int PMPI_##Name##_init(PARAMETERS, MPI_Info info, MPI_Request *request)                                          \
    {                                                                                                                \
        return fn((struct dz_how){"MPI_" #Name "_init", DZ_COLL_INIT, info, request}, ARGUMENTS);                    \
    }                                                                                                                \
    DZ_WEAK(PI_##Name##_init)                                                                                        \
    extern __typeof__(PMPI_##Name##_init) PMPIX_##Name##_init                                                        \
        __attribute__((alias("PMPI_" #Name "_init"), visibility("default")));                                        \
    extern __typeof__(PMPI_##Name##_init) MPIX_##Name##_init                                                         \
        __attribute__((weak, alias("PMPI_" #Name "_init"), visibility("default")));

#pragma GCC visibility pop

#endif
