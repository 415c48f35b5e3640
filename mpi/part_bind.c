/* part_bind.c - who belongs to whom, and how a pair ends (part.h tells the whole life).
 *
 * Two tables. `keys`: per (context, peer, tag) the offers and the receive requests that wait, each in order of init;
 * never both non-empty at once, and a key without either does not exist. `offers`: every offer of this process by
 * (peer, address of its send request), until the peer withdraws it. An offer is in one of these states:
 *   WAITING  in its key
 *   BOUND    has a receive request
 *   TOMB     its receive request is gone; only PART_CLOSE is still to come
 *
 * Everything here runs with the lock held. The context of a message need not be known: an offer for a communicator
 * that this process is still making waits in its key like any other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/part.h"

enum state { WAITING, BOUND, TOMB };
enum { EARLY = 1, REFUSED = 1 }; /* am.flags of PART_CLOSED and PART_BIND */
enum { BUCKETS = 1024 };

struct key {
    struct key *next;
    uint64_t ctx;
    struct dz_peer *peer;
    int tag;
    struct dz_offer *offers; /* by seq */
    struct dz_precv *recvs;  /* by seq */
};

struct dz_offer {
    struct dz_offer *next;  /* in its key */
    struct dz_offer *chain; /* in its bucket */
    struct dz_peer *peer;
    uint64_t cookie, seq, ctx;
    uint64_t part_bytes;
    struct dz_precv *recv;  /* BOUND */
    uint64_t last;          /* no epoch after this one; UINT64_MAX while its request lives */
    uint32_t parts;
    int tag;
    enum state state;
    struct dz_bind *last_bind; /* TOMB, and its sender may still write: closed when it says PART_CLOSE */
    size_t blob_bytes;
    char blob[DZ_BLOB_MAX];
};

/* Payload of PART_INIT; the blob follows. */
struct init {
    uint64_t part_bytes;
    uint32_t parts, blob_bytes;
};

static struct key *keys[BUCKETS];
static struct dz_offer *offers[BUCKETS];
static struct dz_psend *psends;
static struct dz_precv *precvs;
static uint64_t last_seq;

static unsigned hash(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15u;
    return (unsigned)(h >> 54) % BUCKETS;
}

/* ---- keys */
static struct key **key_place(uint64_t ctx, const struct dz_peer *peer, int tag)
{
    struct key **at = &keys[hash(ctx * 31 + (uint64_t)peer->rank, (uint32_t)tag)];
    while (*at && ((*at)->ctx != ctx || (*at)->peer != peer || (*at)->tag != tag))
        at = &(*at)->next;
    return at;
}

static struct key *key_get(uint64_t ctx, struct dz_peer *peer, int tag)
{
    struct key **at = key_place(ctx, peer, tag);
    if (!*at && (*at = calloc(1, sizeof **at)))
        **at = (struct key){.ctx = ctx, .peer = peer, .tag = tag};
    return *at;
}

static void key_put(struct key *k)
{
    if (k->offers || k->recvs)
        return;
    *key_place(k->ctx, k->peer, k->tag) = k->next;
    free(k);
}

static void key_add_offer(struct key *k, struct dz_offer *o)
{
    struct dz_offer **at = &k->offers;
    while (*at && (*at)->seq < o->seq)
        at = &(*at)->next;
    o->next = *at;
    *at = o;
    o->state = WAITING;
    o->recv = NULL;
}

static void key_add_recv(struct key *k, struct dz_precv *r)
{
    struct dz_precv **at = &k->recvs;
    while (*at && (*at)->seq < r->seq)
        at = &(*at)->wait_next;
    r->wait_next = *at;
    *at = r;
}

/* ---- offers */
static struct dz_offer **offer_place(const struct dz_peer *peer, uint64_t cookie)
{
    struct dz_offer **at = &offers[hash(cookie, (uint64_t)peer->rank)];
    while (*at && ((*at)->peer != peer || (*at)->cookie != cookie))
        at = &(*at)->chain;
    return at;
}

static void offer_free(struct dz_offer *o)
{
    struct dz_offer **at = offer_place(o->peer, o->cookie);
    *at = o->chain;
    if (o->last_bind) {
        o->peer->t->recv_close(o->last_bind->chan);
        free(o->last_bind);
    }
    free(o);
}

static int say(struct dz_peer *peer, int kind, uint64_t cookie, int flags, uint64_t b, const void *data, size_t bytes)
{
    struct dz_am am = {.kind = (uint16_t)kind, .flags = (uint16_t)flags, .src = dz_boot.rank, .a = cookie, .b = b};
    return dz_post(peer, &am, data, bytes);
}

static void offer_close(struct dz_offer *o)
{
    say(o->peer, DZ_AM_PART_CLOSED, o->cookie, 0, 0, NULL, 0);
    offer_free(o);
}

static int bind_pair(struct dz_offer *o, struct dz_precv *r)
{
    char reply[DZ_BLOB_MAX];
    size_t reply_bytes = 0;
    struct dz_bind *b = calloc(1, sizeof *b + o->parts * sizeof b->arrived[0]);
    if (!b)
        return -ENOMEM;
    b->map = (struct dz_part_map){.send_bytes = o->part_bytes, .send_parts = o->parts,
                                  .recv_bytes = r->part_bytes, .recv_parts = r->parts};
    b->offer = o;
    struct dz_chan_desc own = {.view = r->view, .part_bytes = r->part_bytes, .parts = r->parts};
    struct dz_chan_desc remote = {.part_bytes = o->part_bytes, .parts = o->parts};
    int rc = r->t->recv_open(r->peer, &own, &remote, o->blob, o->blob_bytes, &b->chan, reply, &reply_bytes);
    if (rc) {
        free(b);
        return rc;
    }
    o->state = BOUND;
    o->recv = r;
    atomic_store_explicit(&r->send_last, o->last, memory_order_relaxed);
    dz_precv_attach(r, b);
    return say(o->peer, DZ_AM_PART_BIND, o->cookie, 0, 0, reply, reply_bytes);
}

static void match(struct key *k)
{
    while (k->offers && k->recvs) {
        struct dz_offer *o = k->offers;
        struct dz_precv *r = k->recvs;
        k->offers = o->next;
        k->recvs = r->wait_next;
        int rc = bind_pair(o, r);
        if (rc) {
            atomic_store_explicit(&r->fail, dz_class_of_errno(rc), memory_order_relaxed);
            say(o->peer, DZ_AM_PART_BIND, o->cookie, REFUSED, (uint64_t)-rc, NULL, 0);
            if (o->state != BOUND)
                o->state = TOMB;
        }
    }
    key_put(k);
}

/* The receive request has no use for its offer any more, or the other way round. */
static void unbind(struct dz_precv *r, struct dz_offer *o)
{
    dz_precv_detach(r);
    o->recv = NULL;
    o->state = TOMB;
}

/* ---- the sender's side */
static void psend_destroy(struct dz_psend *s)
{
    s->t->send_close(s->chan);
    if (s->next)
        s->next->prev = s->prev;
    *(s->prev ? &s->prev->next : &psends) = s->next;
    dz_type_put(s->type);
    free(s);
}

int dz_part_offer(struct dz_psend *s, int tag, const struct dz_chan_desc *d, const void *blob, size_t bytes)
{
    char payload[sizeof(struct init) + DZ_BLOB_MAX];
    struct init in = {.part_bytes = d->part_bytes, .parts = d->parts, .blob_bytes = (uint32_t)bytes};
    memcpy(payload, &in, sizeof in);
    memcpy(payload + sizeof in, blob, bytes);
    struct dz_am am = {.kind = DZ_AM_PART_INIT, .src = s->req.comm->rank, .tag = tag,
                       .ctx = s->ctx, .a = (uint64_t)(uintptr_t)s};
    int rc = dz_post(s->peer, &am, payload, sizeof in + bytes);
    if (rc)
        return rc;
    s->recv_last = UINT64_MAX;
    s->prev = NULL;
    s->next = psends;
    if (psends)
        psends->prev = s;
    psends = s;
    return 0;
}

void dz_part_withdraw(struct dz_psend *s)
{
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    dz_comm_put(s->req.comm);
    s->req.comm = NULL;
    s->req.magic = 0;
    s->zombie = true;
    if (s->peer->gone)
        psend_destroy(s);
    else
        say(s->peer, DZ_AM_PART_CLOSE, (uint64_t)(uintptr_t)s, 0, epoch, NULL, 0); /* out of memory: goes at the end */
}

/* ---- the receiver's side */
int dz_part_want(struct dz_precv *r)
{
    struct key *k = key_get(r->ctx, r->peer, r->tag);
    if (!k)
        return -ENOMEM;
    r->seq = ++last_seq;
    atomic_init(&r->send_last, UINT64_MAX);
    r->prev = NULL;
    r->next = precvs;
    if (precvs)
        precvs->prev = r;
    precvs = r;
    key_add_recv(k, r);
    match(k);
    return 0;
}

static void wait_again(struct dz_offer *o)
{
    struct key *k = key_get(o->ctx, o->peer, o->tag);
    if (!k)
        return; /* out of memory: a tomb, its sender will hear nothing more */
    key_add_offer(k, o);
    match(k);
}

static void leave_key(struct dz_precv *r)
{
    struct key *k = *key_place(r->ctx, r->peer, r->tag);
    for (struct dz_precv **at = k ? &k->recvs : NULL; at && *at; at = &(*at)->wait_next) {
        if (*at == r) {
            *at = r->wait_next;
            key_put(k);
            return;
        }
    }
}

static void bury_binds(struct dz_precv *r)
{
    while (r->over) {
        struct dz_bind *b = r->over;
        r->over = b->older;
        r->t->recv_close(b->chan);
        free(b);
    }
}

void dz_part_unwant(struct dz_precv *r)
{
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_relaxed);
    uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
    if (r->next)
        r->next->prev = r->prev;
    *(r->prev ? &r->prev->next : &precvs) = r->next;
    if (b) {
        struct dz_offer *o = b->offer;
        unbind(r, o);
        if (epoch && o->last == UINT64_MAX) { /* the sender may be ahead of us, in memory of this end */
            r->over = b->older;
            o->last_bind = b;
        }
        bury_binds(r);
        if (!epoch)
            wait_again(o);
        else if (o->last != UINT64_MAX)
            offer_close(o);
        else
            say(o->peer, DZ_AM_PART_CLOSED, o->cookie, EARLY, epoch, NULL, 0);
        return;
    }
    leave_key(r);
    bury_binds(r);
}

void dz_part_taken(struct dz_precv *r)
{
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_relaxed);
    if (!b || atomic_load_explicit(&r->done, memory_order_seq_cst) < b->offer->last)
        return; /* another thread was here first */
    struct dz_offer *o = b->offer;
    unbind(r, o);
    offer_close(o);
}

/* ---- messages */
static void arrived_init(struct dz_peer *peer, const struct dz_am *am, const char *payload)
{
    struct init in;
    memcpy(&in, payload, sizeof in);
    struct dz_offer *o = calloc(1, sizeof *o);
    struct key *k = o ? key_get(am->ctx, peer, am->tag) : NULL;
    if (!k || in.blob_bytes > sizeof o->blob || am->bytes != sizeof in + in.blob_bytes) {
        free(o);
        say(peer, DZ_AM_PART_BIND, am->a, REFUSED, o ? EPROTO : ENOMEM, NULL, 0);
        return;
    }
    *o = (struct dz_offer){.peer = peer, .cookie = am->a, .seq = ++last_seq, .ctx = am->ctx, .tag = am->tag,
                           .part_bytes = in.part_bytes, .parts = in.parts, .last = UINT64_MAX,
                           .blob_bytes = in.blob_bytes};
    memcpy(o->blob, payload + sizeof in, in.blob_bytes);
    *offer_place(peer, am->a) = o; /* at the end of its chain: it is not there yet */
    key_add_offer(k, o);
    match(k);
}

static void arrived_close(struct dz_peer *peer, const struct dz_am *am)
{
    struct dz_offer *o = *offer_place(peer, am->a);
    if (!o) { /* an offer that was refused for want of memory */
        say(peer, DZ_AM_PART_CLOSED, am->a, 0, 0, NULL, 0);
        return;
    }
    o->last = am->b;
    if (o->state == TOMB) {
        offer_close(o);
    } else if (o->state == WAITING) {
        if (o->last)
            return; /* what it has sent is still to be received */
        struct key *k = *key_place(o->ctx, peer, o->tag);
        struct dz_offer **at = &k->offers;
        while (*at != o)
            at = &(*at)->next;
        *at = o->next;
        key_put(k);
        offer_close(o);
    } else {
        struct dz_precv *r = o->recv;
        if (!o->last) {
            unbind(r, o);
            offer_close(o);
            atomic_store_explicit(&r->send_last, UINT64_MAX, memory_order_relaxed);
            struct key *k = key_get(r->ctx, r->peer, r->tag);
            if (!k) {
                atomic_store_explicit(&r->fail, MPI_ERR_NO_MEM, memory_order_relaxed);
                return;
            }
            key_add_recv(k, r);
            match(k);
            return;
        }
        atomic_store_explicit(&r->send_last, o->last, memory_order_seq_cst); /* crosswise with end_epoch */
        dz_part_taken(r);
        if (atomic_load_explicit(&r->epoch, memory_order_relaxed) > am->b)
            atomic_store_explicit(&r->fail, MPI_ERR_REQUEST, memory_order_relaxed);
    }
}

static void arrived_bind(struct dz_psend *s, const struct dz_am *am, const void *payload)
{
    if (s->zombie)
        return;
    int rc = am->flags & REFUSED ? -(int)am->b : s->t->send_bind(s->chan, payload, am->bytes);
    if (rc)
        atomic_store_explicit(&s->fail, dz_class_of_errno(rc), memory_order_relaxed);
}

static void arrived_closed(struct dz_psend *s, const struct dz_am *am)
{
    if (!(am->flags & EARLY)) {
        psend_destroy(s);
        return;
    }
    s->recv_last = am->b;
    if (atomic_load_explicit(&s->epoch, memory_order_relaxed) > am->b)
        atomic_store_explicit(&s->fail, MPI_ERR_REQUEST, memory_order_relaxed);
}

void dz_part_deliver(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_psend *s = (struct dz_psend *)(uintptr_t)am->a;
    if (peer->buried)
        return; /* its requests are gone, and with them what `a` names */
    switch (am->kind) {
    case DZ_AM_PART_INIT:
        arrived_init(peer, am, payload);
        break;
    case DZ_AM_PART_CLOSE:
        arrived_close(peer, am);
        break;
    case DZ_AM_PART_BIND:
        arrived_bind(s, am, payload);
        break;
    default:
        arrived_closed(s, am);
    }
}

/* ---- ends */
void dz_part_peer_gone(struct dz_peer *peer)
{
    for (struct dz_psend *s = psends, *next; s; s = next) {
        next = s->next;
        if (s->peer != peer)
            continue;
        if (s->zombie)
            psend_destroy(s);
        else
            atomic_store_explicit(&s->fail, MPI_ERR_PROC_FAILED, memory_order_relaxed);
    }
    for (struct dz_precv *r = precvs; r; r = r->next)
        if (r->peer == peer)
            atomic_store_explicit(&r->fail, MPI_ERR_PROC_FAILED, memory_order_relaxed);
}

_Atomic bool dz_part_closing;

static void close_taken(void)
{
    for (struct dz_precv *r = precvs; r; r = r->next)
        dz_part_taken(r);
}

int dz_part_progress(void)
{
    if (__builtin_expect(atomic_load_explicit(&dz_part_closing, memory_order_relaxed), 0) &&
        atomic_exchange_explicit(&dz_part_closing, false, memory_order_acquire)) /* release: end_epoch */
        close_taken();
    return dz_psend_progress() + dz_precv_progress();
}

void dz_part_fini(void)
{
    while (precvs) {
        struct dz_precv *r = precvs;
        struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_relaxed);
        precvs = r->next;
        if (b)
            dz_precv_detach(r);
        bury_binds(r);
        dz_comm_put(r->req.comm);
        dz_type_put(r->type);
        free(r);
    }
    while (psends) {
        struct dz_psend *s = psends;
        if (!s->zombie)
            dz_comm_put(s->req.comm);
        dz_psend_unattend(s);
        psend_destroy(s);
    }
    for (int i = 0; i < BUCKETS; i++) {
        while (offers[i])
            offer_free(offers[i]);
        for (struct key *k; (k = keys[i]); keys[i] = k->next, free(k))
            ;
    }
}
