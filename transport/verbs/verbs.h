/* verbs.h - RDMA between two processes: what the files of this transport share.
 *
 *   lib.c     libibverbs, found at run time
 *   device.c  device, port and GID; the objects of a process; limits
 *   conn.c    one reliable connection a peer, made when it is first needed, by datagrams
 *   ep.c      the connection: posting, its send queue, messages, completions, death
 *   mem.c     registered memory
 *   put.c     long plain messages, written straight into the receive buffer
 *   chan.h    channels: the resident pair of a partitioned send (chan_send.c) and its receive (chan_recv.c)
 *   verbs.c   the table of operations
 *
 * One queue pair (RC) serves a peer for everything, so that what is posted in order arrives in order: messages (SEND
 * into the process's shared receive queue, as many in flight as the receiver has given credits for), partitions and
 * words (RDMA WRITE). All receive work requests of a process are one shared queue, all completions two queues.
 *
 * Words that a peer writes here (credits, receiver-ready tokens, epoch words) are 8 aligned bytes in registered memory,
 * only grow, and are read with acquire: the device has written everything that was posted before them by then
 * (memory that is polled is registered without relaxed ordering).
 *
 * Threads: everything runs under the engine's lock, but for send_part, send_list, recv_start, recv_ready and recv_part
 * (transport.h). Those only touch their channel and post; ep.lock guards the send queue's counts, the queue itself and
 * the prepared work requests of channels. No lock is taken while it is held. */
#ifndef DZ_VERBS_H
#define DZ_VERBS_H

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>

#include "transport/transport.h"
#include "transport/verbs/lib.h"

#pragma GCC visibility push(hidden)

enum {
    DZ_MSG_BYTES = 4096,   /* of a message with its header: one packet where the MTU is 4096 */
    DZ_CREDITS = 32,       /* messages to one peer that it has not taken yet, at most */
    DZ_SIGNAL_EVERY = 64,  /* work requests of one connection without a completion, at most */
    DZ_IMM_STEP = 256,     /* receive work requests that are added at a time for writes with immediate data */
    DZ_IMM_MAX = 4096,     /* partitions in flight to a process that may be announced by immediate data */
    DZ_CONTROL_ROOM = 32,  /* work requests of a send queue that partitions leave to tokens and messages */
};

/* What a process says of itself at start (at most 128 bytes). */
struct dz_verbs_blob {
    uint64_t nonce;      /* of this process: a datagram for another one that had the same queue pair is not heard */
    union ibv_gid gid;
    uint32_t ud_qpn;
    uint16_t lid;
    uint8_t mtu;         /* enum ibv_mtu */
    uint8_t ethernet;
};

/* The process's own. */
struct dz_verbs {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp *ud;
    struct ibv_port_attr port_attr;
    int port, gid_index;
    uint32_t max_inline, max_sge, sq_depth, srq_max;
    uint64_t reg_max;                 /* bytes of one registration */
    _Atomic int64_t signaled;         /* completions to come, of all connections: the queue's room */
    int64_t signaled_max;
    struct dz_verbs_blob blob;
    struct dz_ep **eps;               /* by rank; NULL: that peer is not reached this way */
    bool connecting;                  /* some connection is being made */
};
extern struct dz_verbs dz_v;

/* ---- registered memory (mem.c) */
struct dz_region {
    struct ibv_mr *mr;
    char *base;
};
/* Zeroed memory that peers may write; small pieces share a registration. 0 or -errno. */
int dz_region_alloc(size_t bytes, struct dz_region *);
void dz_region_free(struct dz_region *);
/* The user's memory, for as long as a request needs it; users of one range share its registration. -ENOTSUP: the
 * device refuses it, go through memory of the library's own. */
int dz_user_reg(const void *base, size_t bytes, bool remote_write, struct ibv_mr **);
void dz_user_unreg(struct ibv_mr *);
void dz_mem_fini(void);

/* ---- a connection (ep.c, conn.c) */
enum dz_ep_state { DZ_EP_IDLE, DZ_EP_CONNECTING, DZ_EP_READY, DZ_EP_FAILED };
struct dz_ep {
    struct dz_peer *peer;
    struct dz_verbs_blob remote;
    _Atomic int state;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    uint32_t psn;
    bool has_remote;             /* we have the peer's numbers: our queue pair can receive and send */
    uint64_t again_ns, since_ns; /* connecting: when to ask again; since when */
    unsigned asked;

    /* the send queue */
    _Atomic int lock;
    uint64_t posted;             /* work requests, with the lock */
    _Atomic uint64_t done;       /* all up to this one are complete */
    uint64_t signaled_at;        /* the last that asks for a completion */
    uint32_t depth;
    _Atomic uint64_t limit;      /* a partition may be posted while `posted` is below; a hint: 0 until there is a connection */

    /* messages */
    struct dz_region ring;       /* DZ_CREDITS message buffers, then the word that the peer writes */
    _Atomic uint64_t *credit;    /* in ring: messages of ours that it has taken */
    uint64_t sent, taken, told;  /* messages: sent by us; taken from it; taken as it knows */
    uint64_t credit_addr;        /* where it wants to be told */
    uint32_t credit_key;
    struct dz_put *puts, **puts_tail; /* under way, in order of their last work request */
    uint64_t alive_at;           /* the work request that shows whether the peer lives; 0: none in flight */
};

struct dz_ep *dz_ep_create(struct dz_peer *, const struct dz_verbs_blob *);
void dz_ep_destroy(struct dz_ep *);
int dz_ep_prepare(struct dz_ep *);   /* ring and queue pair, up to where the peer's numbers are needed */
void dz_ep_fail(struct dz_ep *);     /* from now on every operation says -EHOSTDOWN */

static inline void dz_ep_lock(struct dz_ep *ep)
{
    while (atomic_exchange_explicit(&ep->lock, 1, memory_order_acquire)) /* release: dz_ep_unlock */
        while (atomic_load_explicit(&ep->lock, memory_order_relaxed))
            sched_yield(); /* its holder may have lost its core */
}
static inline void dz_ep_unlock(struct dz_ep *ep)
{
    atomic_store_explicit(&ep->lock, 0, memory_order_release);
}
enum { DZ_RANK_SHIFT = 40 };
static inline uint64_t dz_ep_id(const struct dz_ep *ep, uint64_t position)
{
    return (uint64_t)ep->peer->rank << DZ_RANK_SHIFT | (position & (((uint64_t)1 << DZ_RANK_SHIFT) - 1));
}
/* ep.lock held: is there room for n work requests beside `reserve` others? 0, -EAGAIN or -EHOSTDOWN. */
int dz_ep_room(struct dz_ep *, unsigned n, unsigned reserve);
/* ep.lock held and room: posts the chain of n. signal: its completion is asked for, *pos (may be NULL) is what
 * ep.done will reach. 0 or -errno; -EAGAIN: the device's queue is full, nothing is posted. */
int dz_ep_post(struct dz_ep *, struct ibv_send_wr *first, struct ibv_send_wr *last, unsigned n, bool signal,
               uint64_t *pos);
/* Writes one 8-byte word into the peer's memory, in the order of everything posted. */
int dz_ep_write_word(struct dz_ep *, uint64_t value, uint64_t raddr, uint32_t rkey);
int dz_ep_connect(struct dz_ep *);   /* 0: ready; -EAGAIN: on its way; -EHOSTDOWN */
int dz_ep_am_post(struct dz_peer *, const struct dz_am *, const struct dz_view *, size_t off, size_t len);
bool dz_ep_dead(struct dz_peer *);
int dz_ep_flush(void);               /* 0: all that was posted has arrived, or never will; -EAGAIN */
int dz_ep_poll(void);
/* rendezvous (put.c) */
int dz_verbs_expose(struct dz_peer *, const struct dz_view *, size_t, struct dz_landing *, void **);
void dz_verbs_unexpose(struct dz_peer *, void *);
int dz_verbs_put(struct dz_peer *, const struct dz_landing *, const struct dz_view *, size_t, void *cookie);
void dz_puts_over(struct dz_ep *);   /* those that ep.done has reached */
void dz_puts_drop(struct dz_ep *);   /* the connection has failed: nobody is told */

int dz_recv_post(unsigned n);        /* adds n receive work requests to the shared queue */
void dz_recv_fini(void);

int dz_conn_open(void);
void dz_conn_close(void);
void dz_conn_arrived(uint64_t index);/* a datagram lies in that buffer */
int dz_conn_poll(void);              /* asks again where no answer came */

int dz_device_open(void);
void dz_device_close(void);

/* ---- channels (chan.h) */
void dz_chan_imm(uint32_t imm);      /* a write with immediate data has arrived */
void dz_chan_fini(void);
int dz_chan_poll(void);              /* tokens that found no room */

int dz_verbs_send_open(struct dz_peer *, const struct dz_chan_desc *, struct dz_schan **, void *, size_t *);
int dz_verbs_send_bind(struct dz_schan *, const void *, size_t);
int dz_verbs_send_start(struct dz_schan *, uint64_t);
int dz_verbs_send_part(struct dz_schan *, uint32_t, uint64_t);
uint32_t dz_verbs_send_list(struct dz_schan *, const uint32_t *, uint32_t, uint64_t, int *);
bool dz_verbs_send_done(struct dz_schan *, uint64_t);
void dz_verbs_send_close(struct dz_schan *);
int dz_verbs_recv_open(struct dz_peer *, const struct dz_chan_desc *, const struct dz_chan_desc *, const void *, size_t,
                       struct dz_rchan **, void *, size_t *);
void dz_verbs_recv_start(struct dz_rchan *, uint64_t);
bool dz_verbs_recv_ready(struct dz_rchan *, uint32_t, uint64_t);
int dz_verbs_recv_part(struct dz_rchan *, uint32_t, uint64_t);
uint32_t dz_verbs_recv_run(struct dz_rchan *, uint32_t, uint32_t, uint64_t);
bool dz_verbs_recv_must_take(struct dz_rchan *);
void dz_verbs_recv_done(struct dz_rchan *, uint64_t);
void dz_verbs_recv_stop(struct dz_rchan *);
void dz_verbs_recv_close(struct dz_rchan *);

#pragma GCC visibility pop

#endif
