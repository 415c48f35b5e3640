/* part.h - the partition engine: what its files share.
 *
 *   part_entry.c  the MPI_ calls: check, then call
 *   part_send.c   the sender's half: ready words, epochs, early Pready
 *   part_recv.c   the receiver's half: arrival words, landing, completion
 *   part_bind.c   which send request belongs to which receive request, and how the pair ends
 *
 * The life of a pair. MPI_Psend_init opens the sender's end of a channel and offers it to the receiver in a message
 * (PART_INIT). The receiver keeps offers and receive requests that wait for each other in order of their init calls,
 * per (context, peer, tag); when two meet it opens its end and answers (PART_BIND). From then on no message passes
 * between them: Start, Pready, Parrived, Wait only touch the channel. MPI_Request_free of the send request says
 * PART_CLOSE with the last epoch it has started; once the receiver has taken that epoch it closes its end and says
 * PART_CLOSED, and only then the sender's end goes. A receive request that is freed first leaves its offer to the
 * next one if it never started, else it says PART_CLOSED at once, marked as early, and the offer stays as a tombstone
 * until PART_CLOSE. In all of these `a` is the address of the send request in its process.
 *
 * Always:
 *   epochs count from 1 and only grow; so do all words.
 *   A word of a send partition (psend.ready) of epoch e is KEPT when Pready came before its epoch might go, GIVING while
 *   one thread hands it to the transport, GIVEN once the transport has it. The usual Pready goes to GIVEN in one store;
 *   a send is complete when all words are GIVEN and the transport says so.
 *   A word of an arrived partition (bind.arrived) is ARRIVED once the partition is in the receive buffer. With several
 *   threads, who takes it holds a claim: on the word (BUSY) where a partition is large, so that threads copy different
 *   ones at once; on the whole bind where partitions are small, so that a run of them costs one claim.
 *   Partition words are the receiver's per send partition, the sender's too: arrival is per send partition. */
#ifndef DZ_PART_H
#define DZ_PART_H

#include "mpi/core.h"
#include "mpi/part_map.h"

#pragma GCC visibility push(hidden)

struct dz_bind;
struct dz_offer;

struct dz_psend {
    struct dz_request req;
    const struct dz_transport *t; /* NULL: MPI_PROC_NULL */
    struct dz_schan *chan;
    struct dz_peer *peer;
    uint32_t parts;
    _Atomic uint64_t epoch;  /* of the last Start */
    _Atomic uint64_t go;     /* highest epoch whose partitions may be given to the transport */
    _Atomic uint64_t usual;  /* the same once it is this epoch's; stays 0 where Pready claims its word first */
    _Atomic uint64_t given;  /* epoch << 32 | all below this were seen GIVEN: where the next look begins */
    _Atomic int fail;        /* MPI class: what cannot complete ends with it */
    uint64_t ctx;            /* what it is matched in */
    uint64_t recv_last;      /* the receiver has closed its end after this epoch; UINT64_MAX: it has not */
    uint32_t kept_from;      /* lock: what progress has to give lies at or above this, once the epoch may go */
    bool claims;             /* MPI_THREAD_MULTIPLE and partitions of DZ_PART_LARGE: Pready claims its word first */
    bool zombie;             /* freed, waits for PART_CLOSED */
    _Atomic bool attending;  /* in the list of requests that progress has to help */
    struct dz_psend *prev, *next;  /* all send requests and zombies of this process */
    struct dz_psend *attend_next;
    struct dz_type *type;
    _Atomic uint64_t ready[]; /* per partition */
};

#define DZ_PART_LARGE 4096 /* bytes of a partition whose copy costs more than a claim */

/* Words of psend.ready */
#define DZ_KEPT(e) (4 * (e) + 1)
#define DZ_GIVING(e) (4 * (e) + 2)
#define DZ_GIVEN(e) (4 * (e) + 3)

/* One receiver's end and the arrivals in it. Stays until its receive request is freed, because another thread may
 * still be looking at it when it ends. */
struct dz_bind {
    struct dz_bind *older; /* those that are over */
    struct dz_rchan *chan;
    struct dz_offer *offer;
    struct dz_part_map map;
    bool must_take;
    bool runs;                  /* taken in runs: one thread, or small partitions under one claim */
    _Atomic bool claimed;       /* runs, and MPI_THREAD_MULTIPLE: one thread takes */
    _Atomic uint64_t arrived[]; /* per send partition */
};

struct dz_precv {
    struct dz_request req;
    const struct dz_transport *t; /* NULL: MPI_PROC_NULL */
    struct dz_peer *peer;
    _Atomic(struct dz_bind *) bind; /* NULL: not matched */
    uint32_t parts;
    _Atomic uint64_t epoch;  /* of the last Start */
    _Atomic uint64_t done;   /* epochs that have arrived whole */
    _Atomic uint64_t landed; /* send partitions taken, of this bind */
    _Atomic uint64_t cursor; /* epoch << 32 | partitions below this have arrived */
    _Atomic int fail;
    _Atomic uint64_t send_last; /* no epoch beyond this will come; UINT64_MAX: not known */
    uint64_t seq;            /* order of init */
    uint64_t ctx;            /* what it is matched in */
    int tag;
    int source;
    uint64_t part_bytes;
    struct dz_view view;
    struct dz_type *type;
    struct dz_bind *over;
    struct dz_precv *prev, *next;  /* all receive requests of this process */
    struct dz_precv *wait_next;    /* unmatched ones of one key */
    struct dz_precv *take_next;    /* those that progress takes partitions for */
    bool taking;                   /* in that list */
};

/* What an init call says, checked. */
struct dz_part_args {
    const char *call;
    const void *buf;
    int parts;
    MPI_Count count;       /* of one partition */
    struct dz_type *type;
    int peer, tag;
    struct dz_comm *comm;
    int coll;              /* 0: the user's; 1: a collective's, which matches its like only */
};
/* part_entry.c, lock held: a new inactive request. 0 or -errno. */
int dz_psend_create(const struct dz_part_args *, struct dz_request **);
int dz_precv_create(const struct dz_part_args *, struct dz_request **);

/* A release that another thread may look at crosswise (Dekker's way): with one thread there is nobody to cross. */
static inline void dz_store_crosswise(_Atomic uint64_t *word, uint64_t value)
{
    if (dz_threaded)
        atomic_store_explicit(word, value, memory_order_seq_cst);
    else
        atomic_store_explicit(word, value, memory_order_release);
}

/* part_send.c. lock: the caller holds it. */
extern const struct dz_request_ops dz_psend_ops, dz_precv_ops;
/* 0, or -EEXIST: already ready in this epoch. No lock. */
int dz_psend_ready(struct dz_psend *, uint32_t part, uint64_t epoch);
/* The same for many. Returns one that was already ready, or -1. */
int64_t dz_psend_ready_list(struct dz_psend *, const int *parts, uint32_t first, uint32_t n, uint64_t epoch);
/* The transport did not take a partition. */
void dz_psend_not_given(struct dz_psend *, uint32_t part, uint64_t epoch, int rc);

/* The usual case: the epoch may go and nobody has marked this partition. False: dz_psend_ready has to look closer.
 * Two threads that mark one partition at once (an error of theirs) may both come through; both then give the same
 * bytes, which is why nothing is counted. acquire: what the receiver read of the old epochs happened before we
 * overwrite it (release: raise_go). */
static inline bool dz_psend_usual(const struct dz_psend *s, uint32_t part, uint64_t epoch)
{
    return atomic_load_explicit(&s->usual, memory_order_acquire) == epoch &&
           atomic_load_explicit(&s->ready[part], memory_order_relaxed) < DZ_KEPT(epoch);
}
static inline void dz_psend_give(struct dz_psend *s, uint32_t part, uint64_t epoch)
{
    int rc = s->t->send_part(s->chan, part, epoch);
    if (__builtin_expect(rc != 0, 0))
        dz_psend_not_given(s, part, epoch, rc);
    else
        atomic_store_explicit(&s->ready[part], DZ_GIVEN(epoch), memory_order_release); /* acquire: all_given */
}
void dz_psend_attend(struct dz_psend *); /* lock */
void dz_psend_unattend(struct dz_psend *); /* lock */
int dz_psend_progress(void);             /* lock: requests that could not go on by themselves; > 0: something moved */

/* part_recv.c */
bool dz_precv_arrived(struct dz_precv *, uint32_t part, uint64_t epoch); /* tries to take what has come; no lock */
void dz_precv_attach(struct dz_precv *, struct dz_bind *); /* lock */
void dz_precv_detach(struct dz_precv *);                   /* lock: unbinds; nobody is inside the transport after it */
int dz_precv_progress(void);                               /* lock: takes for those whose senders wait for it */
/* An offer that is closing may have been taken to its end: dz_part_progress looks. */
extern _Atomic bool dz_part_closing;

/* part_bind.c, all with the lock */
int dz_part_offer(struct dz_psend *, int tag, const struct dz_chan_desc *, const void *blob, size_t bytes);
void dz_part_withdraw(struct dz_psend *);   /* the request is freed; takes it over */
int dz_part_want(struct dz_precv *);        /* a new receive request looks for its offer */
void dz_part_unwant(struct dz_precv *);     /* it is freed; the caller gives the memory back */
void dz_part_taken(struct dz_precv *);      /* it may have finished the last epoch of a closing offer */
void dz_part_deliver(struct dz_peer *, const struct dz_am *, const void *payload);
void dz_part_peer_gone(struct dz_peer *);
int dz_part_progress(void);
/* At MPI_Finalize, when no message can come any more: everything left goes. */
void dz_part_fini(void);

#pragma GCC visibility pop

#endif
