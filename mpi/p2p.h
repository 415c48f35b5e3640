/* p2p.h - the point-to-point engine: what its files share.
 *
 *   match.c  which receive a message belongs to
 *   p2p.c    requests of both kinds, completion, the blocking forms, what happens when a peer dies
 *   p2p_send.c / p2p_recv.c  how a message leaves and how it comes in
 *   send.c, recv.c, probe.c, bsend.c  the MPI_ calls
 *
 * The way of a message depends on its length alone:
 *   up to peer->am_max        EAGER, one message; the send is complete at once
 *   up to dz_set.eager        EAGER with the first bytes, PIECEs with the rest, nothing else to that peer in between;
 *                             complete when the last is handed to the transport
 *   longer                    RTS. The receiver fetches the bytes from the sender's memory where the transport can
 *                             (get) and says FIN. Where it cannot, it says CTS, with a place for the bytes if the
 *                             transport has such (expose): then the sender puts them there and says so with an empty
 *                             DATA; else, or if it cannot, it streams DATA
 * A synchronous send that went eagerly asks for an ACK, which the receiver says when it matches.
 *
 * Always: messages to one peer leave in order of their sends; what finds no room waits in the peer's queue (peer.c)
 * and everything after it too. A request's bytes are read or written only between its start and its completion.
 *
 * What a program does most costs least: a short send that finds room needs no request (dz_p2p_send_at_once; a
 * nonblocking one gets a finished request that all share), a blocking call has its request on the stack, a persistent
 * one starts without allocation, and a request that is complete when its call returns holds no references. */
#ifndef DZ_P2P_H
#define DZ_P2P_H

#include "mpi/core.h"
#include "mpi/match.h"

#pragma GCC visibility push(hidden)

/* What MPI_Mprobe hands out (256 bytes for the predefined ones in the ABI). */
enum { DZ_MAGIC_MSG = 0x444e4d53 };
struct ompi_message_t {
    uint32_t magic;
    struct dz_msg *msg;
    struct dz_comm *comm;
};

/* Nothing to complain of, seen in one look; what this does not pass is looked at one by one, and may still be right. */
static inline bool dz_p2p_args_usual(const void *buf, int count, const struct dz_type *type, int rank, int tag,
                                     const struct dz_comm *comm)
{
    return dz_comm_ok(comm) && dz_type_ok(type) && type->committed && count >= 0 && tag >= 0 && rank >= 0 &&
           rank < comm->size && buf && buf != MPI_IN_PLACE;
}
/* Arguments of the calls, checked. */
int dz_check_send(const char *call, const void *buf, int count, struct dz_type *, int dest, int tag, struct dz_comm *);
int dz_check_recv(const char *call, const void *buf, int count, struct dz_type *, int src, int tag, struct dz_comm *);

/* A message that has arrived in part or whole. For a matched one it is a part of the receive request. */
struct dz_msg {
    struct dz_got got;
    struct dz_p2p *recv;   /* whose it is; NULL: unexpected so far */
    struct dz_peer *peer;
    uint64_t bytes, have;  /* length; how much of it has arrived */
    uint64_t cookie;       /* the sender's request: of an RTS, or to be acknowledged; else 0 */
    uint64_t raddr;        /* RTS: where the bytes lie in the sender; 0: it must send them */
    bool rts;
    bool allocated;
    char *data;            /* unexpected: the bytes so far, behind this record */
};

struct dz_p2p {
    struct dz_request req;
    struct dz_link busy;   /* active, not complete and not a posted receive */
    struct dz_view view;
    struct dz_type *type;
    const void *buf;
    size_t count;
    int peer, tag;         /* as given; peer is a rank of the communicator */
    uint8_t coll, mode;
    bool held;             /* has references to comm and type */
    bool buffered;         /* send: a copy travels, by a request of its own */
    char *copy;            /* send: of a buffered one's bytes, or NULL */
    bool posted;           /* receive: in its mq */
    bool queued;           /* send: in the peer's queue */
    bool acked;            /* send: no ACK is to come (any more) */
    struct dz_out out;
    enum { DZ_STEP_HEAD, DZ_STEP_PIECES, DZ_STEP_PUT, DZ_STEP_PUT_SAY, DZ_STEP_PUT_SAID, DZ_STEP_DATA } step;
    bool put_over;         /* PUT_SAY on: the bytes have been read */
    struct dz_landing at;  /* PUT: where to */
    uint64_t off, limit;   /* bytes handed to the transport; bytes to hand */
    uint64_t rcookie;      /* DATA: the receiver's request */
    struct dz_want want;   /* receive */
    struct dz_msg in;      /* receive: its message */
    void *exposed;         /* receive: its buffer is open to the sender, by the transport's handle */
};

/* What CTS carries. */
struct dz_cts {
    uint64_t bytes;
    struct dz_landing at;
};
enum { DZ_CTS_AT = 1, DZ_DATA_PUT = 1 }; /* flags of CTS: `at` is given; of DATA: all bytes are there */

static inline bool dz_msg_whole(const struct dz_msg *m) { return !m->rts && m->have == m->bytes; }

extern const struct dz_request_ops dz_p2p_send_ops, dz_p2p_recv_ops;

/* Counts an event; lock held, so no other thread writes. */
#define dz_p2p_count(name)                                                                                           \
    atomic_store_explicit(&dz_counters[DZ_CTR_##name],                                                               \
                          atomic_load_explicit(&dz_counters[DZ_CTR_##name], memory_order_relaxed) + 1,              \
                          memory_order_relaxed)

/* Fills in a request with its arguments: one that its caller keeps until it is complete, and the references too. */
void dz_p2p_prepare(struct dz_p2p *, int kind, bool persistent, const void *buf, size_t count, struct dz_type *, int peer,
                    int tag, struct dz_comm *, int coll, int mode);
/* A new one that holds comm and type; NULL: no memory. */
struct dz_p2p *dz_p2p_create(int kind, bool persistent, const void *buf, size_t count, struct dz_type *, int peer,
                             int tag, struct dz_comm *, int coll, int mode);
void dz_p2p_destroy(struct dz_p2p *);
void dz_p2p_busy(struct dz_p2p *);                /* to be failed when its peer dies */
void dz_p2p_complete(struct dz_p2p *, int error); /* takes it out of `busy`; frees it if nobody waits */

/* A standard or ready send that is over before it returns. False: nothing happened, it needs a request. */
bool dz_p2p_send_at_once(const void *buf, size_t count, struct dz_type *, int dest, int tag, struct dz_comm *, int coll);
/* A blocking send; takes the lock itself. 0, an MPI class, or -errno if it did not begin. */
int dz_p2p_send_wait(const void *buf, size_t count, struct dz_type *, int dest, int tag, struct dz_comm *, int coll,
                     enum dz_send_mode);
/* Begin an operation whose request is set up; 0 or -errno (then it is not active). */
int dz_p2p_send_begin(struct dz_p2p *);
int dz_p2p_recv_begin(struct dz_p2p *);
/* A receive of a message that a matched probe has taken. */
int dz_p2p_recv_message(struct dz_p2p *, struct dz_msg *);
void dz_msg_destroy(struct dz_msg *);

void dz_p2p_peer_gone(struct dz_peer *); /* fails what needs it */
bool dz_p2p_any_gone(const struct dz_comm *); /* is the death of a member known? */
void dz_p2p_fini(void);                  /* at MPI_Finalize */

void dz_p2p_send_deliver(struct dz_peer *, const struct dz_am *, const void *payload); /* CTS, FIN, ACK */
void dz_p2p_recv_deliver(struct dz_peer *, const struct dz_am *, const void *payload); /* EAGER, PIECE, RTS, DATA */

/* bsend.c: gives the send a copy of its bytes to read; -ENOBUFS: the attached buffer has no room. Done: the copy goes. */
int dz_bsend_copy(struct dz_p2p *);
void dz_bsend_done(struct dz_p2p *);

#pragma GCC visibility pop

#endif
