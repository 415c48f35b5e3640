/* chan_recv.c - the receiver's end of a channel (chan.h tells the whole life): where partitions land and how they are
 * announced, ready tokens, and what the numbers of immediate data mean. */
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/chan.h"

enum { RING_BYTES = 256 << 10, DEPTH_MAX = 64 };

struct dz_rchan {
    struct dz_ep *ep;
    struct dz_view view;
    uint64_t part_bytes, stride, set_bytes;
    uint32_t parts, depth;
    enum landing landing;
    enum notice notice;
    struct dz_region slots, words;
    _Atomic uint64_t *arrived;            /* epochs, per partition */
    _Atomic uint64_t *counts;             /* IMM: its memory */
    struct ibv_mr *mr;
    uint32_t imm_base;
    struct offer o;
    uint64_t bind;
    bool named;                           /* the peer has been told bind */
    uint64_t told;
    uint64_t want;                        /* with pending_lock: the token to be told */
    bool pending;                         /* with pending_lock */
    struct dz_rchan *next_pending;
};

/* ---- immediate data: which partition a number means */
static _Atomic uint64_t **imms;
static uint32_t imms_size, imm_used, imm_posted;

static int imm_take(uint32_t n, uint32_t in_flight, _Atomic uint64_t *words, uint32_t *base)
{
    uint32_t at = 0, run = 0;
    if (imm_used + in_flight > DZ_IMM_MAX)
        return -ENOSPC;
    while (imm_posted < imm_used + in_flight) {
        int rc = dz_recv_post(DZ_IMM_STEP);
        if (rc)
            return rc;
        imm_posted += DZ_IMM_STEP;
    }
    for (; at < imms_size && run < n; at++)
        run = imms[at] ? 0 : run + 1;
    at -= run;
    if (run < n) {
        _Atomic uint64_t **more = realloc(imms, (at + n) * sizeof *imms);
        if (!more)
            return -ENOMEM;
        imms = more;
        imms_size = at + n;
    }
    for (uint32_t i = 0; i < n; i++)
        imms[at + i] = &words[i];
    imm_used += in_flight;
    *base = at;
    return 0;
}

static void imm_give(uint32_t base, uint32_t n, uint32_t in_flight)
{
    for (uint32_t i = 0; i < n; i++)
        imms[base + i] = NULL;
    imm_used -= in_flight;
}

void dz_chan_imm(uint32_t imm)
{
    _Atomic uint64_t *word = imm < imms_size ? imms[imm] : NULL;
    if (word) /* release: the device has written the partition. acquire: recv_part */
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + 1, memory_order_release);
}

void dz_chan_fini(void)
{
    free(imms);
    imms = NULL;
    imms_size = imm_used = imm_posted = 0;
}

/* ---- opening */
static uint32_t ring_depth(uint64_t set_bytes)
{
    uint32_t depth = 1;
    while (depth < DEPTH_MAX && 2 * depth * set_bytes <= RING_BYTES)
        depth *= 2;
    return depth;
}

static bool wanted(const char *notice)
{
    return !strcmp(dz_set.ib_notice, notice);
}

/* Chooses landing and notice and allocates what they need. */
static int plan(struct dz_rchan *r, const struct offer *o, struct grant *g)
{
    uint64_t n = r->part_bytes, total = n * r->parts, words = packed_words(n);
    int rc = -ENOTSUP;
    *g = (struct grant){.bytes = total, .depth = 1, .notice = IMM, .landing = SLOT, .bind = r->bind};
    if (n <= (uint64_t)dz_set.ib_packed && n <= PACKED_MAX && words * 8 <= o->max_inline) {
        g->notice = PACKED;
        r->stride = words * 8;
    } else {
        r->stride = (n + 63) & ~(uint64_t)63;
        if (n > (uint64_t)dz_set.ib_slot && !r->view.layout && r->view.bytes)
            rc = dz_user_reg(r->view.base, r->view.bytes, true, &r->mr);
    }
    r->set_bytes = r->stride * r->parts;
    if (!rc) {
        g->landing = BUFFER;
        g->data_addr = (uint64_t)(uintptr_t)r->view.base;
        g->data_key = r->mr->rkey;
        g->bytes = r->view.bytes < total ? r->view.bytes : total;
    } else if (rc != -ENOTSUP) {
        return rc;
    } else {
        g->depth = ring_depth(r->set_bytes);
        rc = dz_region_alloc(r->set_bytes * g->depth + 8, &r->slots);
        if (rc)
            return rc;
        g->data_addr = (uint64_t)(uintptr_t)r->slots.base;
        g->data_key = r->slots.mr->rkey;
    }
    g->stride = r->stride;
    r->landing = g->landing;
    r->depth = g->depth;
    if (g->notice == PACKED)
        goto done;
    if (!wanted("word")) {
        r->counts = calloc(r->parts, sizeof *r->counts);
        rc = r->counts ? imm_take(r->parts, r->parts * r->depth, r->counts, &r->imm_base) : -ENOMEM;
        r->arrived = r->counts;
        g->imm_base = r->imm_base;
        if (!rc)
            goto done;
        free(r->counts);
        r->counts = NULL;
    }
    g->notice = WORD;
    rc = dz_region_alloc(r->parts * 8, &r->words);
    if (rc)
        return rc;
    r->arrived = (_Atomic uint64_t *)(void *)r->words.base;
    g->word_addr = (uint64_t)(uintptr_t)r->words.base;
    g->word_key = r->words.mr->rkey;
done:
    r->notice = g->notice;
    return 0;
}

int dz_verbs_recv_open(struct dz_peer *peer, const struct dz_chan_desc *own, const struct dz_chan_desc *remote,
                       const void *blob, size_t bytes, struct dz_rchan **out, void *reply, size_t *reply_bytes)
{
    struct grant g;
    struct dz_rchan *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    if (bytes != sizeof r->o) {
        free(r);
        return -EPROTO;
    }
    memcpy(&r->o, blob, sizeof r->o);
    static uint64_t binds;
    r->bind = ++binds;
    r->ep = peer->ep;
    r->view = own->view;
    r->part_bytes = remote->part_bytes;
    r->parts = remote->parts;
    int rc = plan(r, &r->o, &g);
    if (rc) {
        dz_verbs_recv_close(r);
        return rc;
    }
    memcpy(reply, &g, sizeof g);
    *reply_bytes = sizeof g;
    *out = r;
    return 0;
}

/* Tokens that found no room in the send queue, or no connection yet. */
static struct dz_rchan *pending;
static _Atomic int pendings;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

static int tell(struct dz_rchan *r, uint64_t epoch)
{
    int rc = r->named ? 0 : dz_ep_write_word(r->ep, r->bind, r->o.started_addr + 8, r->o.started_key);
    if (!rc) {
        r->named = true;
        rc = dz_ep_write_word(r->ep, epoch, r->o.started_addr, r->o.started_key);
    }
    if (!rc)
        dz_count(ready_writes);
    return rc;
}

void dz_verbs_recv_start(struct dz_rchan *r, uint64_t epoch)
{
    uint64_t step = r->depth > 1 ? r->depth / 2 : 1;
    if (r->told && epoch - r->told < step)
        return;
    r->told = epoch;
    if (tell(r, epoch) != -EAGAIN)
        return; /* a dead peer shows when it is looked after */
    pthread_mutex_lock(&pending_lock);
    r->want = epoch;
    if (!r->pending) {
        r->pending = true;
        r->next_pending = pending;
        pending = r;
        atomic_fetch_add_explicit(&pendings, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pending_lock);
}

int dz_chan_poll(void)
{
    int n = 0;
    if (!atomic_load_explicit(&pendings, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&pending_lock);
    for (struct dz_rchan **at = &pending, *r; (r = *at);) {
        if (tell(r, r->want) == -EAGAIN) {
            at = &r->next_pending;
            continue;
        }
        *at = r->next_pending;
        r->pending = false;
        atomic_fetch_sub_explicit(&pendings, 1, memory_order_relaxed);
        n++;
    }
    pthread_mutex_unlock(&pending_lock);
    return n;
}

static char *slot(const struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    return r->slots.base + (epoch & (r->depth - 1)) * r->set_bytes + part * r->stride;
}

static bool word_there(const char *at, uint64_t i, uint64_t epoch, uint32_t *half)
{
    /* acquire: the words of one partition may come in any order, each is whole */
    uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)(const void *)at + i, memory_order_acquire);
    *half = (uint32_t)word;
    return word >> 32 == (epoch & UINT32_MAX);
}

static void take(struct dz_rchan *r, uint32_t part, const void *from)
{
    uint64_t off = part * r->part_bytes, len = r->part_bytes;
    if (off >= r->view.bytes || !len)
        return;
    if (len > r->view.bytes - off)
        len = r->view.bytes - off; /* a receive shorter than the send: its engine reports the truncation */
    dz_view_write(&r->view, off, len, from);
}

static int take_packed(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    const char *at = slot(r, part, epoch);
    uint32_t half[PACKED_MAX / 4];
    for (uint64_t i = packed_words(r->part_bytes); i-- > 0;)
        if (!word_there(at, i, epoch, &half[i]))
            return 0;
    take(r, part, half);
    return 1;
}

bool dz_verbs_recv_ready(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    uint32_t half;
    if (r->notice == PACKED)
        return word_there(slot(r, part, epoch), packed_words(r->part_bytes) - 1, epoch, &half);
    return atomic_load_explicit(&r->arrived[part], memory_order_relaxed) >= epoch;
}

int dz_verbs_recv_part(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    if (r->notice == PACKED)
        return take_packed(r, part, epoch);
    /* release: dz_chan_imm; or the device, which writes a word after what was posted before it */
    if (atomic_load_explicit(&r->arrived[part], memory_order_acquire) < epoch)
        return 0;
    if (r->landing == SLOT)
        take(r, part, slot(r, part, epoch));
    return 1;
}

uint32_t dz_verbs_recv_run(struct dz_rchan *r, uint32_t first, uint32_t end, uint64_t epoch)
{
    uint32_t p = first;
    while (p < end && dz_verbs_recv_part(r, p, epoch) == 1)
        p++;
    return p - first;
}

bool dz_verbs_recv_must_take(struct dz_rchan *r)
{
    (void)r;
    return false;
}

void dz_verbs_recv_done(struct dz_rchan *r, uint64_t epoch)
{
    (void)r, (void)epoch;
}

void dz_verbs_recv_stop(struct dz_rchan *r)
{
    pthread_mutex_lock(&pending_lock);
    for (struct dz_rchan **at = &pending; r->pending; at = &(*at)->next_pending) {
        if (*at == r) {
            *at = r->next_pending;
            r->pending = false;
            atomic_fetch_sub_explicit(&pendings, 1, memory_order_relaxed);
            break;
        }
    }
    pthread_mutex_unlock(&pending_lock);
}

void dz_verbs_recv_close(struct dz_rchan *r)
{
    dz_verbs_recv_stop(r);
    if (r->counts)
        imm_give(r->imm_base, r->parts, r->parts * r->depth);
    free(r->counts);
    dz_region_free(&r->words);
    dz_region_free(&r->slots);
    dz_user_unreg(r->mr);
    free(r);
}
