/* core.h - what every file of mpi/ shares: the objects behind the handles, errors, requests, progress.
 *
 * A handle is the address of its object. Predefined objects are exported data with the sizes of Open MPI's ABI and
 * may live in the executable (COPY relocation), so they are always named through their symbols, their first bytes
 * are free of pointers, and they are filled in at MPI_Init. Every object starts with a magic word: a handle that does
 * not carry it is reported as a bad argument instead of being followed.
 *
 * Locking: one lock (dz_lock) guards everything but the partitioned hot path (MPI_Pready, MPI_Parrived, and the
 * partitions of Start, Test and Wait), which lives on atomics of its own (part.h). Taken only at MPI_THREAD_MULTIPLE,
 * and beside a progress thread; dz_threaded says so. Entry points take it; engine functions named here expect it held
 * unless they say otherwise. */
#ifndef DZ_MPI_CORE_H
#define DZ_MPI_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h" /* ours: Open MPI's and what it lacks */
#include "transport/transport.h"

#pragma GCC visibility push(hidden) /* what is ours is called and read directly, without the linker's tables */

/* The ABI's incomplete structs are our structs. */
#define dz_comm ompi_communicator_t
#define dz_type ompi_datatype_t
#define dz_op ompi_op_t
#define dz_group ompi_group_t
#define dz_info ompi_info_t
#define dz_errhandler ompi_errhandler_t
#define dz_request ompi_request_t

/* MPI_X as a weak alias of PMPI_X, so that profiling tools can put themselves in between. Below a definition:
 * int PMPI_Send(...) {...}  then  DZ_WEAK(PI_Send) */
#define DZ_STRING(x) #x
#define DZ_WEAK(name)                                                                                                \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")                   \
    extern __typeof__(PM##name) M##name __attribute__((weak, alias(DZ_STRING(PM##name)), visibility("default")));     \
    _Pragma("GCC diagnostic pop")

enum dz_magic { /* never 0 */
    DZ_MAGIC_COMM = 0x444e434d,
    DZ_MAGIC_TYPE = 0x444e5459,
    DZ_MAGIC_OP = 0x444e4f50,
    DZ_MAGIC_GROUP = 0x444e4752,
    DZ_MAGIC_INFO = 0x444e494e,
    DZ_MAGIC_ERRH = 0x444e4548,
    DZ_MAGIC_REQ = 0x444e5251,
};

/* ---------------------------------------------------------------- process state (init.c) */
enum dz_phase { DZ_BEFORE_INIT, DZ_RUNNING, DZ_FINALIZED };
extern _Atomic int dz_phase;
extern bool dz_threaded; /* MPI_THREAD_MULTIPLE, or a progress thread; constant after MPI_Init */
extern bool dz_running;  /* what dz_phase says, to be read without order on the shortest path */
void dz_lock_slow(void);
void dz_unlock_slow(void);
bool dz_trylock_slow(void);
static inline void dz_lock(void) { if (dz_threaded) dz_lock_slow(); }
static inline void dz_unlock(void) { if (dz_threaded) dz_unlock_slow(); }
static inline bool dz_trylock(void) { return !dz_threaded || dz_trylock_slow(); }

/* ---------------------------------------------------------------- errors (errors.c) */
/* Reports errclass for `call` through comm's error handler (NULL or a bad handle: MPI_COMM_WORLD's; before MPI_Init
 * and after MPI_Finalize: fatal). The text names argument and value. Returns errclass; does not return when fatal.
 * Call without dz_lock held. The text is kept per thread: MPI_Error_string of the class appends it. */
int dz_raise(struct dz_comm *comm, int errclass, const char *call, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int dz_raise_errno(struct dz_comm *comm, int err, const char *call, struct dz_peer *peer); /* err < 0 */
int dz_class_of_errno(int err);
/* Prints one line "denizen: rank R: text" on stderr and ends the job. */
_Noreturn void dz_fatal(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* First statement of every entry point but the few that may be called at any time. */
#define DZ_ENTER(call)                                                                                               \
    do {                                                                                                             \
        if (__builtin_expect(atomic_load_explicit(&dz_phase, memory_order_relaxed) != DZ_RUNNING, 0))                \
            return dz_raise_phase(call);                                                                             \
    } while (0)
int dz_raise_phase(const char *call);

/* An info object, MPI_INFO_NULL included: all of them carry the magic word (info.c). */
static inline bool dz_info_ok(const struct dz_info *i) { return i && *(const uint32_t *)i == DZ_MAGIC_INFO; }

struct dz_errhandler { /* 1024 bytes in the ABI */
    uint32_t magic;
    int kind; /* enum dz_errh_kind */
    MPI_Comm_errhandler_function *fn;
    _Atomic int refs;
};
enum dz_errh_kind { DZ_ERRH_FATAL, DZ_ERRH_RETURN, DZ_ERRH_ABORT, DZ_ERRH_USER };

/* ---------------------------------------------------------------- communicators (comm.c) */
struct dz_mq; /* matching queues, match.c */
struct dz_group {
    uint32_t magic;
    _Atomic int refs;
    int size, rank;   /* rank: own, or MPI_UNDEFINED */
    int *world;       /* world rank of each member; NULL: identity */
};
struct dz_comm { /* 512 bytes in the ABI */
    uint32_t magic;
    _Atomic int refs; /* handle + pending operations */
    int rank, size;
    uint64_t ctx;     /* point-to-point and partitioned; ctx + 1 is the collectives' */
    int *world;       /* world rank of each member; NULL: identity (MPI_COMM_WORLD) */
    struct dz_group *group;
    struct dz_errhandler *errh;
    struct dz_mq *mq[2]; /* of ctx and ctx + 1 */
    uint32_t coll_seq;   /* collectives done; tags of the collective context */
    void *resident;      /* short collectives that keep coming (coll_resident.c), NULL: none */
    bool predefined;
    char name[MPI_MAX_OBJECT_NAME];
    void *attrs;         /* attribute list (T1), NULL: none */
    void *topo;          /* topology (T1), NULL: none */
};
static inline int dz_world_rank(const struct dz_comm *c, int rank) { return c->world ? c->world[rank] : rank; }
static inline struct dz_peer *dz_comm_peer(const struct dz_comm *c, int rank)
{
    return &dz_peers[dz_world_rank(c, rank)];
}
static inline bool dz_comm_ok(const struct dz_comm *c)
{
    return c && c != MPI_COMM_NULL && c->magic == DZ_MAGIC_COMM;
}
int dz_comm_init(void); /* fills the predefined communicators, groups, error handlers, info objects */
void dz_comm_fini(void);
void dz_comm_get(struct dz_comm *);
void dz_comm_put(struct dz_comm *); /* last reference frees */

/* ---------------------------------------------------------------- datatypes (type.c, type_pack.c) */
enum dz_kind { /* what reduction kernels tell apart; 0 for derived types */
    DZ_K_NONE,
    DZ_K_INT8, DZ_K_INT16, DZ_K_INT32, DZ_K_INT64,
    DZ_K_UINT8, DZ_K_UINT16, DZ_K_UINT32, DZ_K_UINT64,
    DZ_K_FLOAT, DZ_K_DOUBLE, DZ_K_LDOUBLE, DZ_K_FLOAT128,
    DZ_K_CFLOAT, DZ_K_CDOUBLE, DZ_K_CLDOUBLE, DZ_K_CFLOAT128,
    DZ_K_BOOL, DZ_K_LOGICAL1, DZ_K_LOGICAL2, DZ_K_LOGICAL4, DZ_K_LOGICAL8,
    DZ_K_BYTE, DZ_K_CHAR, /* byte: bit operations only; char: printable, no reductions */
    DZ_K_FLOAT_INT, DZ_K_DOUBLE_INT, DZ_K_LDOUBLE_INT, DZ_K_LONG_INT, DZ_K_SHORT_INT, DZ_K_2INT,
    DZ_K_2REAL, DZ_K_2DBLPREC, DZ_K_2CPLEX, DZ_K_2DBLCPLEX,
    DZ_K_COUNT
};
struct dz_block { /* a run of bytes of one element, in pack order */
    ptrdiff_t disp;
    size_t len;
    size_t packed; /* offset of this run in the packed element */
};
struct dz_grid { /* runs of one length, in rows of per_row (the last may be shorter), `stride` apart within a row */
    size_t run; /* 0: they do not lie like that */
    size_t per_row;
    ptrdiff_t stride;
};
struct dz_type { /* 512 bytes in the ABI */
    uint32_t magic;
    _Atomic int refs;
    int kind;       /* enum dz_kind */
    int combiner;
    bool committed, predefined;
    bool contig;    /* one run at disp 0 and extent == size: elements follow without a gap */
    size_t size;    /* packed bytes of one element */
    ptrdiff_t lb, extent, true_lb, true_extent;
    uint32_t nblocks;           /* adjacent runs merged; 0 for an empty type */
    struct dz_block *blocks;    /* NULL for predefined types that are contig */
    struct dz_grid grid;
    int align;                  /* of the strictest predefined type inside */
    bool lb_set, ub_set;        /* by MPI_Type_create_resized somewhere inside: no other entry moves them */
    struct dz_layout layout;    /* gather/scatter with ctx = this type; filled by commit and at init */
    const struct dz_type *elem; /* the one predefined type in it (of a predefined one itself), or NULL */
    void *envelope;             /* what MPI_Type_get_contents needs, or NULL */
    char name[MPI_MAX_OBJECT_NAME];
};
static inline bool dz_type_ok(const struct dz_type *t)
{
    return t && t != MPI_DATATYPE_NULL && t->magic == DZ_MAGIC_TYPE;
}
int dz_type_init(void);
void dz_type_fini(void);
void dz_type_get(struct dz_type *); /* no effect on predefined types */
void dz_type_put(struct dz_type *);
/* The stream of count elements of t at buf. Contiguous types give a view without layout (base = buf + lb rules:
 * contig implies true_lb 0). The view refers to t: hold a reference while it lives. */
static inline struct dz_view dz_type_view(const struct dz_type *t, const void *buf, size_t count)
{
    return (struct dz_view){.base = (char *)buf, .bytes = count * t->size, .layout = t->contig ? NULL : &t->layout};
}

/* ---------------------------------------------------------------- operations (op.c) */
struct dz_op { /* 2048 bytes in the ABI */
    uint32_t magic;
    int index;      /* of a predefined operation, else -1 */
    bool commute, predefined;
    _Atomic int refs;
    MPI_User_function *fn; /* user operations */
};
static inline bool dz_op_ok(const struct dz_op *o) { return o && o != MPI_OP_NULL && o->magic == DZ_MAGIC_OP; }
int dz_op_init(void);
void dz_op_get(struct dz_op *); /* no effect on predefined operations */
void dz_op_put(struct dz_op *);
/* Is op defined on type (MPI 3.1 section 5.9.2)? User operations: always. */
bool dz_op_valid(const struct dz_op *op, const struct dz_type *type);
/* inout[i] = in[i] op inout[i], count elements of type laid out as type says. Valid pairs only. */
void dz_op_apply(struct dz_op *op, struct dz_type *type, const void *in, void *inout, size_t count);

/* ---------------------------------------------------------------- requests (request.c) */
enum dz_req_kind { DZ_REQ_NULL, DZ_REQ_SEND, DZ_REQ_RECV, DZ_REQ_PSEND, DZ_REQ_PRECV, DZ_REQ_COLL };
struct dz_request;
struct dz_request_ops {
    const char *name;
    /* persistent: inactive -> active. Called without the lock. 0 or an MPI class already raised. */
    int (*start)(struct dz_request *, const char *call);
    /* May move this request alone. True: complete. Without the lock, from any thread. NULL: `complete` says it. */
    bool (*poll)(struct dz_request *);
    /* Gives the request's memory back (lock held, unless free_locks; request inactive or complete). */
    void (*free)(struct dz_request *);
    bool free_locks; /* it takes the lock itself */
    /* 0: will end cancelled or completed; else -errno (lock held, request active) */
    int (*cancel)(struct dz_request *);
};
struct dz_request { /* request_null has 256 bytes in the ABI; others are allocated by their engine */
    uint32_t magic;
    uint8_t kind;          /* enum dz_req_kind */
    bool persistent;
    bool freed;            /* MPI_Request_free on an active plain request: free on completion */
    _Atomic bool active;   /* persistent: between Start and completion; plain: from birth to completion */
    _Atomic bool complete; /* release by who completes, acquire by who waits; status is valid then */
    const struct dz_request_ops *ops;
    struct dz_comm *comm;
    struct dz_peer *peer;  /* at the other end, for messages about failures; NULL: none, or any */
    MPI_Status status;     /* MPI_ERROR carries the result of the operation */
};
static inline bool dz_request_ok(const struct dz_request *r) { return r && r->magic == DZ_MAGIC_REQ; }
static inline bool dz_request_done(struct dz_request *r)
{
    return r->ops->poll ? r->ops->poll(r) : atomic_load_explicit(&r->complete, memory_order_acquire);
}
void dz_request_init(struct dz_request *, int kind, bool persistent, const struct dz_request_ops *, struct dz_comm *);
/* Waits until done(arg) is true, moving everything; spins, then yields, then naps. Without the lock. */
void dz_wait_until(bool (*done)(void *), void *arg);
/* Internal wait on one plain request: completes, returns its error class, and frees it. Without the lock. */
int dz_request_wait(struct dz_request *);
/* It is complete: gives it up as MPI_Wait does, and returns its error class. Without the lock. */
int dz_request_finish(struct dz_request *);
extern const MPI_Status dz_status_empty; /* source ANY_SOURCE, tag ANY_TAG, count 0 */

/* ---------------------------------------------------------------- progress (progress.c) */
/* Moves everything once; > 0 when anything moved. Without the lock; a second thread gets 0 at once. */
int dz_progress(void);
struct dz_backoff { unsigned polls; uint64_t since; };
void dz_backoff_pause(struct dz_backoff *); /* one step of waiting; looks after dead peers now and then */
#define DZ_BACKOFF_INIT {0, 0}
/* A test of any kind found nothing: gives the core away now and then, so that a loop of tests alone lets ranks and
 * threads that share it go on, and hears of dead peers. */
void dz_idle_test(void);
/* DENIZEN_PROGRESS_THREAD (progress_thread.c). 0 or -errno; stop: without the lock, does nothing where none runs. */
int dz_progress_thread_start(void);
void dz_progress_thread_stop(void);

/* ---------------------------------------------------------------- point-to-point engine (p2p.c), lock held */
enum dz_am_kind { DZ_AM_EAGER = 1, DZ_AM_PIECE, DZ_AM_RTS, DZ_AM_CTS, DZ_AM_FIN, DZ_AM_ACK, DZ_AM_GET, DZ_AM_DATA,
                  DZ_AM_PART_INIT, DZ_AM_PART_BIND, DZ_AM_PART_CLOSE, DZ_AM_PART_CLOSED, DZ_AM_KINDS };
enum dz_send_mode { DZ_SEND_STANDARD, DZ_SEND_SYNC, DZ_SEND_READY };
/* coll: 0 for the user's context, 1 for the collectives'. dest/src are ranks of comm, or MPI_PROC_NULL /
 * MPI_ANY_SOURCE. Arguments are already checked. The request is active; 0 or -errno (-ENOMEM). */
int dz_isend(const void *buf, size_t count, struct dz_type *, int dest, int tag, struct dz_comm *, int coll,
             enum dz_send_mode, struct dz_request **);
int dz_irecv(void *buf, size_t count, struct dz_type *, int src, int tag, struct dz_comm *, int coll,
             struct dz_request **);
/* Blocking forms for collectives; take the lock themselves. Return an MPI class, not raised. */
int dz_send(const void *buf, size_t count, struct dz_type *, int dest, int tag, struct dz_comm *, int coll);
int dz_recv(void *buf, size_t count, struct dz_type *, int src, int tag, struct dz_comm *, int coll, MPI_Status *);
int dz_sendrecv(const void *sbuf, size_t scount, struct dz_type *, int dest, int stag, void *rbuf, size_t rcount,
                struct dz_type *, int src, int rtag, struct dz_comm *, int coll, MPI_Status *);
#define DZ_TAG_UB 0x7fffffff

/* Messages that found no room wait here, per peer and in order (peer.c). push: true when it is all sent. */
struct dz_out {
    struct dz_out *next;
    bool (*push)(struct dz_out *, struct dz_peer *);
};
void dz_out_append(struct dz_peer *, struct dz_out *);
int dz_out_progress(void);
void dz_out_fini(void);
/* Sends a control message with a small payload, now or later, in order. 0 or -ENOMEM, -EHOSTDOWN. */
int dz_post(struct dz_peer *, const struct dz_am *, const void *payload, size_t bytes);

/* ---------------------------------------------------------------- argument checks (check.c) */
/* Each returns MPI_SUCCESS or raises through the right handler, naming call, argument and value. */
int dz_check_comm(const char *call, struct dz_comm *);
int dz_check_type(const char *call, struct dz_comm *, struct dz_type *, const char *arg); /* also uncommitted */
int dz_check_count(const char *call, struct dz_comm *, MPI_Count count, const char *arg);
int dz_check_buf(const char *call, struct dz_comm *, const void *buf, MPI_Count count, struct dz_type *);
int dz_check_dest(const char *call, struct dz_comm *, int rank, const char *arg);  /* rank or PROC_NULL */
int dz_check_source(const char *call, struct dz_comm *, int rank);                 /* also ANY_SOURCE */
int dz_check_root(const char *call, struct dz_comm *, int root);
int dz_check_tag(const char *call, struct dz_comm *, int tag, bool any_allowed);
int dz_check_ptr(const char *call, struct dz_comm *, const void *p, const char *arg); /* NULL: MPI_ERR_ARG */

#pragma GCC visibility pop

#endif
