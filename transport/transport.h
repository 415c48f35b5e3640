/* transport.h - the contract between the MPI engines (mpi/) and what moves bytes (self, shm, verbs).
 *
 * A transport offers two services to each peer it reaches:
 *
 *   messages   small, reliable, in order per peer: a fixed header (struct dz_am) and up to peer->am_max bytes.
 *              Everything that is not a partition travels so: plain sends, binding, closing, rendezvous requests.
 *   channels   the resident pair of one partitioned send request and one receive request. Opened once; from then on
 *              an epoch costs one send_part a partition and one poll a partition. No allocation, no lock, no system
 *              call on a small partition.
 *
 * The life of a channel (S: sender's engine, R: receiver's engine):
 *   S  send_open      makes the sender's end and a blob that describes it; S ships the blob in a message
 *   R  recv_open      with that blob, makes the receiver's end and a reply blob; R ships the reply back
 *   S  send_bind      with the reply. A transport whose send_part needs the receiver's addresses says -EAGAIN from
 *                     send_start until then; one that lands data in the sender's own memory (shm) goes at once.
 *   R  recv_start(e)  the receiver-ready token of epoch e: from now on the receive buffer may be written
 *   S  send_start(e)  0: send_part may be called for e; -EAGAIN: not yet (ask again from progress)
 *   S  send_part(p,e) partition p of epoch e is ready: moves it, or promises to. Never blocks on the receiver.
 *   R  recv_part(p,e) 1: partition p of epoch e is in the receive buffer, 0: not yet. Copies out where it must.
 *   S  send_done(e)   true: the send buffer of epoch e may be reused
 *   S/R close         both ends agree through the engine (messages): the sender's end goes when the receiver's end is
 *                     not used any more. recv_close comes when the sender will write no more, and touches nothing of its.
 *
 * Threads: send_part, send_list, recv_ready and recv_part on different partitions run concurrently with anything else on the channel. The
 * engine never calls recv_part twice at once for one partition, and send_part twice only when the program marks one
 * partition ready in two threads at once; then both give the same bytes of the same epoch. recv_start and recv_done are
 * called once an epoch, each after everything of the epoch before. All other calls on one channel and all message
 * calls are serialised by the engine's lock.
 *
 * Errors: 0 or a positive result, else -errno. -EAGAIN: nothing happened, try later. -EHOSTDOWN: the peer is gone. */
#ifndef DZ_TRANSPORT_H
#define DZ_TRANSPORT_H

#include <stdatomic.h>

#include "boot.h"
#include "mem.h"

#pragma GCC visibility push(hidden)

struct dz_peer;
struct dz_schan; /* sender's end; each transport defines its own */
struct dz_rchan; /* receiver's end */

/* Header of a message. 40 bytes on the wire, the same on both sides (one architecture per job). */
struct dz_am {
    uint16_t kind;  /* the engine's (enum dz_am_kind in mpi/core.h) */
    uint16_t flags; /* the engine's */
    int32_t src;    /* sender's rank in the communicator */
    int32_t tag;
    uint32_t bytes; /* of payload in this message; set by the transport */
    uint64_t ctx;   /* communicator context */
    uint64_t a, b;  /* the engine's: lengths, cookies */
};
_Static_assert(sizeof(struct dz_am) == 40, "struct dz_am is a wire format");

/* Where a message may be put: in a message of the receiver's. */
struct dz_landing {
    uint64_t addr;
    uint32_t key, unused;
};

#define DZ_BLOB_MAX 128 /* bytes of a channel or reply blob at most */

/* What a channel end is about: parts partitions of part_bytes packed bytes each; partition p is stream bytes
 * [p * part_bytes, (p + 1) * part_bytes) of view. */
struct dz_chan_desc {
    struct dz_view view;
    uint64_t part_bytes;
    uint32_t parts;
};

struct dz_transport {
    const char *name;
    /* Called once before the exchange: prepare, and append at most 128 bytes that peers need to *blob.
     * -ENODEV: not usable here, silently skipped. */
    int (*open)(void *blob, size_t *bytes);
    void (*close)(void);
    /* After the exchange: can this peer be talked to, given its blob? Fills peer->ep. 0 or -errno. */
    int (*reach)(struct dz_peer *peer, const void *blob, size_t bytes);

    /* 0: sent (payload copied, view reusable); -EAGAIN: no room; -EHOSTDOWN. len <= peer->am_max. */
    int (*am_post)(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len);
    /* Delivers what has arrived through dz_am_deliver; returns the number of messages. */
    int (*poll)(void);
    /* view[off, off+len) <- peer's memory at raddr (contiguous). -ENOTSUP: this pair cannot; stream instead. */
    int (*get)(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len);
    /* The other way round, for peers whose memory only they can write to: the receiver exposes view[0, len), a message
     * carries *at to the sender, which puts its bytes there. put returns at once (-EAGAIN: no room); dz_put_done follows
     * with its cookie, unless the peer dies. What is posted to the peer after put arrives after the bytes. -ENOTSUP from
     * either: stream instead. */
    int (*expose)(struct dz_peer *peer, const struct dz_view *v, size_t len, struct dz_landing *at, void **handle);
    void (*unexpose)(struct dz_peer *peer, void *handle);
    int (*put)(struct dz_peer *peer, const struct dz_landing *at, const struct dz_view *v, size_t len, void *cookie);
    /* Is the peer's process known to be gone? Cheap enough for a slow path only. */
    bool (*dead)(struct dz_peer *peer);
    /* 0: what was posted to all peers has arrived there, or never will; -EAGAIN: not yet (ask again after poll). */
    int (*flush)(void);

    int (*send_open)(struct dz_peer *, const struct dz_chan_desc *, struct dz_schan **, void *blob, size_t *bytes);
    int (*send_bind)(struct dz_schan *, const void *reply, size_t bytes);
    int (*send_start)(struct dz_schan *, uint64_t epoch);
    int (*send_part)(struct dz_schan *, uint32_t part, uint64_t epoch);
    /* send_part of n partitions, in one go where the device can. Returns how many were given, from the first on; when
     * they are fewer than n, *rc says why the next one was not. */
    uint32_t (*send_list)(struct dz_schan *, const uint32_t *parts, uint32_t n, uint64_t epoch, int *rc);
    bool (*send_done)(struct dz_schan *, uint64_t epoch);
    void (*send_close)(struct dz_schan *); /* the receiver's end is closed, or never was opened */

    int (*recv_open)(struct dz_peer *, const struct dz_chan_desc *own, const struct dz_chan_desc *remote,
                     const void *blob, size_t bytes, struct dz_rchan **, void *reply, size_t *reply_bytes);
    void (*recv_start)(struct dz_rchan *, uint64_t epoch);
    int (*recv_part)(struct dz_rchan *, uint32_t part, uint64_t epoch);
    /* Would recv_part find something? No effect, cheap, and harmless until recv_close. */
    bool (*recv_ready)(struct dz_rchan *, uint32_t part, uint64_t epoch);
    /* recv_part of first, first + 1, ... as long as it says 1, below end; how many. Never beside recv_part. An error
     * ends the run: recv_part on the next one tells it. */
    uint32_t (*recv_run)(struct dz_rchan *, uint32_t first, uint32_t end, uint64_t epoch);
    /* True: a send on this channel completes only when its partitions are taken, so the engine takes them whenever it
     * makes progress, not only for whoever waits for the receive. */
    bool (*recv_must_take)(struct dz_rchan *);
    void (*recv_done)(struct dz_rchan *, uint64_t epoch); /* all partitions of epoch have arrived */
    /* The bind is over, recv_close comes later: from now on nothing is written to the sender. recv_ready stays harmless. */
    void (*recv_stop)(struct dz_rchan *);
    void (*recv_close)(struct dz_rchan *);
};

/* One per rank of the job, made at start, index = rank. */
struct dz_peer {
    int rank;
    uint64_t host_id;             /* dz_boot.host_id of that process */
    bool gone;                    /* found dead; every operation on it fails */
    bool buried;                  /* engine: the requests that needed it have been failed */
    size_t am_max;                /* payload bytes of one message at most, 256 or more; set by reach */
    const struct dz_transport *t; /* NULL: unreachable */
    void *ep;                     /* the transport's */
    struct dz_out *out_head, **out_tail; /* engine: messages that found no room, in order */
    struct dz_msg *partial;              /* engine: long messages of which pieces have arrived */
};
extern struct dz_peer *dz_peers;

/* Ranks of this host, and whether they have fewer CPUs than they are (then a waiting rank gives its core away at
 * once). By host id and affinity masks at start. */
extern int dz_local_ranks;
extern bool dz_crowded;

/* Implemented by the engine: one message has arrived. payload is valid during the call only. */
void dz_am_deliver(struct dz_peer *src, const struct dz_am *am, const void *payload);

/* Implemented by the engine: a put is over, its bytes may be changed. Lock held. */
void dz_put_done(void *cookie);

/* Opens the transports that the settings allow, exchanges blobs, chooses one transport a peer. */
int dz_transport_init(void);
void dz_transport_fini(void);
int dz_transport_poll(void); /* all open transports; returns messages delivered */
int dz_transport_flush(void); /* all open transports */
extern const struct dz_transport dz_transport_self, dz_transport_shm, dz_transport_verbs;

/* Faults for tests (fault.c): reads DENIZEN_FAULT; wraps a transport in what it asks for, or returns t. */
int dz_fault_init(void);
const struct dz_transport *dz_fault_wrap(const struct dz_transport *t);
void dz_fault_fini(void);

/* Counters, one per event that a test or a user may want to see. Relaxed atomics; summed per process. */
#define DZ_COUNTERS(X)                                                                                               \
    X(am_full, "messages that found no room and waited")                                                             \
    X(part_direct, "partitions stored or written straight into the receive buffer")                                  \
    X(part_pull, "partitions fetched by the receiver")                                                               \
    X(part_deferred, "partitions that were ready before they could be sent")                                         \
    X(eager, "plain messages sent eagerly")                                                                          \
    X(rendezvous, "plain messages sent by rendezvous")                                                               \
    X(unexpected, "plain messages that arrived before their receive")                                                \
    X(puts, "RDMA: plain messages written straight into the receive buffer")                                        \
    X(data_writes, "RDMA: writes that carry a partition")                                                            \
    X(inline_posts, "RDMA: of those, writes whose bytes were copied into the work request")                          \
    X(gathers, "RDMA: of those, writes that the device gathered from strided memory")                                \
    X(ready_writes, "RDMA: receiver-ready tokens written")                                                           \
    X(doorbells, "RDMA: posts to a send queue, each a chain of one or more work requests")                           \
    X(signaled, "RDMA: work requests whose completion was asked for")                                                \
    X(reg, "RDMA: registrations of user memory")                                                                     \
    X(reg_refused, "RDMA: registrations that the device refused; that memory is copied")                             \
    X(post_failed, "RDMA: posts that the device refused")                                                            \
    X(ep_failed, "RDMA: connections that ended in an error")
enum dz_counter {
#define DZ_X(name, help) DZ_CTR_##name,
    DZ_COUNTERS(DZ_X)
#undef DZ_X
        DZ_CTR_COUNT
};
extern _Atomic uint64_t dz_counters[DZ_CTR_COUNT];
#define dz_count_n(name, n) atomic_fetch_add_explicit(&dz_counters[DZ_CTR_##name], n, memory_order_relaxed)
#define dz_count(name) dz_count_n(name, 1)

#pragma GCC visibility pop

#endif
