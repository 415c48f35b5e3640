/* self.c - the transport of a rank to itself, and the one to read first: what transport.h asks for with nothing else.
 *
 * A message is queued as a private copy and delivered at the next poll.
 *
 * A channel is one object that both ends hold. Each partition has one word, epoch << 3 | state, that only grows:
 *
 *   READY   the bytes are in the send buffer; recv_part copies them, or send_done sets them aside
 *   BUSY    one thread is copying (either of the two)
 *   ASIDE   the bytes are in the channel's stage: the send buffer is free, the receiver has not come yet
 *   TAKEN   in the receive buffer
 *
 * A send completes when no partition of its epoch is READY or BUSY, so it never waits for a receiver that the same
 * thread would have to start later. The next epoch may begin when the receiver has taken what was set aside.
 *
 * Every change of a word is a compare-and-swap with acquire and release: whoever moves a word from READY sees the
 * sender's bytes, whoever finds TAKEN or ASIDE sees the copy done. */
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"

enum state { READY = 1, BUSY = 2, ASIDE = 3, TAKEN = 4 };
#define WORD(epoch, state) ((epoch) << 3 | (uint64_t)(state))
enum { AM_MAX = 64 << 10 };

/* ---- messages */
struct message {
    struct message *next;
    struct dz_am am;
    char payload[];
};
static struct message *head, **tail = &head;

static int self_open(void *blob, size_t *bytes)
{
    (void)blob;
    *bytes = 0;
    return 0;
}

static void self_close(void)
{
    while (head) {
        struct message *m = head;
        head = m->next;
        free(m);
    }
    tail = &head;
}

static int self_reach(struct dz_peer *peer, const void *blob, size_t bytes)
{
    (void)blob;
    (void)bytes;
    if (peer->rank != dz_boot.rank)
        return -ENOTSUP;
    peer->am_max = AM_MAX;
    return 0;
}

static int self_am_post(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len)
{
    (void)peer;
    struct message *m = malloc(sizeof *m + len);
    if (!m)
        return -ENOMEM;
    m->next = NULL;
    m->am = *am;
    m->am.bytes = (uint32_t)len;
    if (len)
        dz_view_read(v, off, len, m->payload);
    *tail = m;
    tail = &m->next;
    return 0;
}

static int self_poll(void)
{
    int n = 0;
    if (!head)
        return 0;
    struct message *m = head; /* what is posted by these deliveries waits for the next poll */
    head = NULL;
    tail = &head;
    while (m) {
        struct message *next = m->next;
        dz_am_deliver(&dz_peers[dz_boot.rank], &m->am, m->payload);
        free(m);
        m = next;
        n++;
    }
    return n;
}

static int self_get(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    (void)peer;
    if (len)
        dz_view_write(v, off, len, (const void *)(uintptr_t)raddr);
    return 0;
}

static bool self_dead(struct dz_peer *peer)
{
    (void)peer;
    return false;
}

/* ---- channels */
struct dz_schan {
    struct dz_view from;
    uint64_t part_bytes;
    uint32_t parts;
    _Atomic uint64_t aside; /* highest epoch of which something was set aside */
    _Atomic uint64_t done;  /* highest epoch that the receiver has whole */
    char *stage;
    _Atomic uint64_t words[];
};
struct dz_rchan {
    struct dz_schan *s;
    struct dz_view to;
};

static int send_open(struct dz_peer *peer, const struct dz_chan_desc *d, struct dz_schan **out, void *blob, size_t *bytes)
{
    (void)peer;
    struct dz_schan *s = calloc(1, sizeof *s + d->parts * sizeof s->words[0]);
    if (!s)
        return -ENOMEM;
    s->from = d->view;
    s->part_bytes = d->part_bytes;
    s->parts = d->parts;
    memcpy(blob, &s, sizeof s);
    *bytes = sizeof s;
    *out = s;
    return 0;
}

static int send_bind(struct dz_schan *s, const void *reply, size_t bytes)
{
    (void)s;
    (void)reply;
    (void)bytes;
    return 0;
}

static int send_start(struct dz_schan *s, uint64_t epoch)
{
    /* acquire: the receiver's copies out of the stage are done (release: recv_done) */
    uint64_t aside = atomic_load_explicit(&s->aside, memory_order_relaxed);
    (void)epoch;
    return aside <= atomic_load_explicit(&s->done, memory_order_acquire) ? 0 : -EAGAIN;
}

static int send_part(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    atomic_store_explicit(&s->words[part], WORD(epoch, READY), memory_order_release); /* acquire: grab */
    return 0;
}

static bool grab(struct dz_schan *s, uint32_t part, uint64_t epoch, enum state from)
{
    uint64_t expected = WORD(epoch, from);
    return atomic_compare_exchange_strong_explicit(&s->words[part], &expected, WORD(epoch, BUSY), memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool send_done(struct dz_schan *s, uint64_t epoch)
{
    bool busy = false;
    for (uint32_t p = 0; p < s->parts; p++) {
        uint64_t word = atomic_load_explicit(&s->words[p], memory_order_acquire); /* release: recv_part */
        if (word == WORD(epoch, BUSY)) {
            busy = true;
        } else if (word == WORD(epoch, READY)) {
            if (!s->stage && !(s->stage = malloc(s->from.bytes ? s->from.bytes : 1)))
                return false; /* then the receiver must come */
            if (!grab(s, p, epoch, READY)) {
                busy = true;
                continue;
            }
            dz_view_read(&s->from, p * s->part_bytes, s->part_bytes, s->stage + p * s->part_bytes);
            atomic_store_explicit(&s->aside, epoch, memory_order_relaxed);
            atomic_store_explicit(&s->words[p], WORD(epoch, ASIDE), memory_order_release); /* acquire: grab */
        }
    }
    return !busy;
}

static void send_close(struct dz_schan *s)
{
    free(s->stage);
    free(s);
}

static int recv_open(struct dz_peer *peer, const struct dz_chan_desc *own, const struct dz_chan_desc *remote,
                     const void *blob, size_t bytes, struct dz_rchan **out, void *reply, size_t *reply_bytes)
{
    (void)peer;
    (void)remote;
    (void)reply;
    struct dz_rchan *r = calloc(1, sizeof *r);
    if (!r || bytes != sizeof r->s) {
        free(r);
        return r ? -EPROTO : -ENOMEM;
    }
    memcpy(&r->s, blob, sizeof r->s);
    r->to = own->view;
    *reply_bytes = 0;
    *out = r;
    return 0;
}

static void recv_start(struct dz_rchan *r, uint64_t epoch)
{
    (void)r; /* the receiver itself copies, so it needs no token */
    (void)epoch;
}

static bool recv_ready(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    uint64_t word = atomic_load_explicit(&r->s->words[part], memory_order_relaxed);
    return word == WORD(epoch, READY) || word == WORD(epoch, ASIDE);
}

/* The two views may both have gaps: the bytes go through a small buffer. */
static void copy_part(struct dz_rchan *r, size_t off, size_t len, const char *stage)
{
    char bounce[1024];
    if (off >= r->to.bytes)
        return;
    if (len > r->to.bytes - off)
        len = r->to.bytes - off;
    if (stage || !r->s->from.layout) {
        if (len)
            dz_view_write(&r->to, off, len, (stage ? stage : r->s->from.base) + off);
        return;
    }
    for (size_t n; len; off += n, len -= n) {
        n = len < sizeof bounce ? len : sizeof bounce;
        dz_view_read(&r->s->from, off, n, bounce);
        dz_view_write(&r->to, off, n, bounce);
    }
}

static int recv_part(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    struct dz_schan *s = r->s;
    const char *stage = NULL;
    if (!grab(s, part, epoch, READY)) {
        if (!grab(s, part, epoch, ASIDE))
            return 0;
        stage = s->stage;
    }
    copy_part(r, part * s->part_bytes, s->part_bytes, stage);
    atomic_store_explicit(&s->words[part], WORD(epoch, TAKEN), memory_order_release); /* acquire: send_done */
    return 1;
}

static uint32_t recv_run(struct dz_rchan *r, uint32_t first, uint32_t end, uint64_t epoch)
{
    uint32_t p = first;
    while (p < end && recv_part(r, p, epoch) == 1)
        p++;
    return p - first;
}

static bool recv_must_take(struct dz_rchan *r)
{
    (void)r;
    return false; /* what is not taken is set aside */
}

static void recv_done(struct dz_rchan *r, uint64_t epoch)
{
    atomic_store_explicit(&r->s->done, epoch, memory_order_release); /* acquire: send_start */
}

static void recv_close(struct dz_rchan *r)
{
    free(r);
}

static uint32_t send_list(struct dz_schan *s, const uint32_t *parts, uint32_t n, uint64_t epoch, int *rc)
{
    uint32_t done = 0;
    *rc = 0;
    while (done < n && !(*rc = send_part(s, parts[done], epoch)))
        done++;
    return done;
}

static void recv_stop(struct dz_rchan *r)
{
    (void)r; /* it writes only in recv_start and recv_done, which are not called any more */
}

static int expose(struct dz_peer *peer, const struct dz_view *v, size_t len, struct dz_landing *at, void **handle)
{
    (void)peer, (void)v, (void)len, (void)at, (void)handle;
    return -ENOTSUP; /* get does it */
}

static void unexpose(struct dz_peer *peer, void *handle)
{
    (void)peer, (void)handle;
}

static int put(struct dz_peer *peer, const struct dz_landing *at, const struct dz_view *v, size_t len, void *cookie)
{
    (void)peer, (void)at, (void)v, (void)len, (void)cookie;
    return -ENOTSUP;
}

static int flush(void)
{
    return 0; /* a peer's memory is written when an operation returns */
}

const struct dz_transport dz_transport_self = {
    .name = "self",
    .open = self_open,
    .close = self_close,
    .reach = self_reach,
    .am_post = self_am_post,
    .poll = self_poll,
    .get = self_get,
    .dead = self_dead,
    .send_open = send_open,
    .send_bind = send_bind,
    .send_start = send_start,
    .send_part = send_part,
    .send_list = send_list,
    .flush = flush,
    .expose = expose,
    .unexpose = unexpose,
    .put = put,
    .send_done = send_done,
    .send_close = send_close,
    .recv_open = recv_open,
    .recv_start = recv_start,
    .recv_ready = recv_ready,
    .recv_part = recv_part,
    .recv_run = recv_run,
    .recv_must_take = recv_must_take,
    .recv_done = recv_done,
    .recv_stop = recv_stop,
    .recv_close = recv_close,
};
