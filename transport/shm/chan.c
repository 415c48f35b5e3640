/* chan.c - channels between two processes of one node: the resident slots of one partitioned request pair.
 *
 * One block in the sender's memory, made at MPI_Psend_init and mapped by the receiver when it matches:
 *
 *   head                      receiver-ready token, bind number, done word (receiver writes, sender reads)
 *   ring of `depth` epochs    each: parts x units; epoch e uses set e % depth
 *
 * A unit is [ payload ... | word ], its word in the last 8 bytes, so that payload and word share a cache line where
 * they fit; a large unit is [ word, alone in its line | payload ... ]. A small partition is one unit; a larger one is
 * cut into units of dz_set.chunk bytes, so that the receiver copies the first out while the sender copies the next in.
 * Where an epoch is too large for slots, units are words alone.
 *
 * word = epoch << 2 | mode, stored last (release; acquire in recv_part). It only grows: nothing is cleared. mode says
 * where the bytes are:
 *   SLOT    in the unit
 *   DIRECT  in the receive buffer already (whole partition): the sender stored it through a mapping of memory from
 *           MPI_Alloc_mem, or wrote it with process_vm_writev; only after the token of this epoch and this bind
 *   PULL    in the send buffer: the receiver fetches it (process_vm_readv); the send completes with the done word
 *
 * Run-ahead: the sets of epochs [rx, rx + depth) may be written when the receiver has started rx, since it has
 * finished everything before. A send of epoch e completes only when e + 1 may be written (depth > 1), so that a
 * started epoch never waits and MPI_Pready needs no help later. The sender looks at the token only when what it has
 * seen does not suffice: once in depth - 1 epochs, so the line stays with its writer. A ring that is larger than a
 * core's own cache has a second use: its lines have left the receiver's cache when their turn comes again, and the
 * sender need not take them from there, which costs it a third of a 4 KiB partition's time. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "transport/shm/copy.h"
#include "transport/shm/shm.h"

enum mode { SLOT = 1, DIRECT = 2, PULL = 3 };
#define WORD(epoch, mode) ((epoch) << 2 | (uint64_t)(mode))
#define SMALL_PART 256           /* bytes of a partition that always has a slot, whatever the epoch's size */
#define RING_BYTES ((size_t)1280 << 10) /* of all sets, up to dz_set.slot_ring of them, but two at least */
#define WORD_FIRST 512           /* bytes of a unit from which its word has a line of its own, ahead of the payload */
#define DIRECT_MIN 2048          /* bytes of a partition from which a direct store beats the slot's shared line */

struct head {
    alignas(DZ_LINE) _Atomic uint64_t started; /* receiver: highest epoch it has started */
    _Atomic uint64_t bind;                     /* receiver: number of the bind that `started` belongs to */
    alignas(DZ_LINE) _Atomic uint64_t done;    /* receiver: highest epoch that has arrived whole, when it pulled */
};

/* How the block is laid out; the same on both sides, in the blob. */
struct geometry {
    uint64_t part_bytes;
    uint64_t unit_bytes;  /* payload of a full unit; 0: words alone */
    uint64_t stride;      /* bytes from unit to unit */
    uint64_t set_bytes;   /* bytes from epoch to epoch */
    uint32_t parts, units; /* units of a partition */
    uint32_t depth;
    uint32_t data_at, word_at, unused; /* in a unit */
};
struct send_blob {
    struct dz_ref block;
    struct geometry g;
    uint64_t pull_addr; /* of stream byte 0 in the sender */
};
struct recv_blob {
    struct dz_ref buf;  /* of the receive buffer, when it came from MPI_Alloc_mem */
    uint64_t addr;      /* of the receive buffer; 0: not contiguous, never write there */
    uint64_t bytes;
    uint64_t bind;
};
_Static_assert(sizeof(struct send_blob) <= DZ_BLOB_MAX && sizeof(struct recv_blob) <= DZ_BLOB_MAX, "blobs fit");

struct dz_schan {
    struct head *head; /* the block */
    char *sets;
    uint64_t set_mask, part_stride; /* where a partition of an epoch lies, without a division or a look at g */
    const char *eight;              /* partitions of 8 bytes without gaps: their first; else NULL */
    struct geometry g;
    _Atomic uint64_t seen;   /* started, as last read */
    _Atomic uint64_t pulled; /* highest epoch of which a partition is to be pulled */
    struct dz_view view;
    struct dz_shm_ep *ep;
    char *stage;             /* packed copy for the receiver to pull, when the view is not contiguous */
    /* the receiver's buffer, by the last bind */
    _Atomic uint64_t bind;   /* 0: none, or not to be written */
    char *direct;            /* mapping of it, or NULL: process_vm_writev */
    uint64_t raddr, rbytes;
    struct dz_map *rmap;
};

struct dz_rchan {
    struct head *head;
    char *sets;
    struct geometry g;
    struct dz_view view;
    struct dz_shm_ep *ep;
    struct dz_map *map;
    uint64_t pull_addr;
    _Atomic uint64_t pulled; /* highest epoch in which something was pulled */
    uint64_t *next;          /* units > 1: of each partition, epoch << 24 | units taken */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* A unit and its word never straddle more lines than they must. */
static size_t stride_of(size_t payload)
{
    size_t need = round_up(payload, 8) + 8;
    if (need <= 8)
        return 8;
    if (need <= 16)
        return 16;
    return need <= 32 ? 32 : round_up(need, DZ_LINE);
}

static uint32_t power_of_two_below(long n)
{
    uint32_t p = 1;
    while (2 * (long)p <= n)
        p *= 2;
    return p;
}

static void plan(struct geometry *g, const struct dz_chan_desc *d, size_t limit, bool can_pull)
{
    size_t chunk = (size_t)dz_set.chunk, total = d->part_bytes * d->parts;
    *g = (struct geometry){.part_bytes = d->part_bytes, .parts = d->parts, .units = 1};
    if (total <= limit || d->part_bytes <= SMALL_PART || !can_pull) {
        g->unit_bytes = d->part_bytes < chunk ? d->part_bytes : chunk;
        g->units = d->part_bytes > chunk ? (uint32_t)((d->part_bytes + chunk - 1) / chunk) : 1;
    }
    g->stride = stride_of(g->unit_bytes);
    g->word_at = (uint32_t)g->stride - 8;
    if (g->unit_bytes >= WORD_FIRST) { /* then the receiver reads the unit from its first line to its last */
        g->stride = round_up(g->unit_bytes, DZ_LINE) + DZ_LINE;
        g->word_at = 0;
        g->data_at = DZ_LINE;
    }
    g->set_bytes = round_up((size_t)g->parts * g->units * g->stride, DZ_LINE);
    long fit = (long)(RING_BYTES / g->set_bytes);
    g->depth = power_of_two_below(fit < 2 ? 2 : fit < dz_set.slot_ring ? fit : dz_set.slot_ring);
    if (g->unit_bytes && total > limit && d->part_bytes > SMALL_PART)
        g->depth = 1; /* no other way than a set for all of it: then one set */
}

/* Word and payload of unit 0 of a partition. */
static inline char *unit_at(char *sets, const struct geometry *g, uint32_t part, uint64_t epoch)
{
    return sets + (epoch & (g->depth - 1)) * g->set_bytes + (size_t)part * g->units * g->stride;
}
static inline _Atomic uint64_t *word_of(char *unit, const struct geometry *g)
{
    return (_Atomic uint64_t *)(unit + g->word_at);
}

/* The block, its words cleared: blocks are recycled, and old words must not be seen. */
static int make_block(struct dz_schan *s, struct dz_ref *ref)
{
    const struct geometry *g = &s->g;
    size_t sets = 0, all = 0;
    if (__builtin_mul_overflow(g->set_bytes, g->depth, &sets) || __builtin_add_overflow(sets, sizeof *s->head, &all))
        return -ENOMEM;
    s->head = dz_arena_alloc(all, ref);
    if (!s->head)
        return -ENOMEM;
    if (!ref->gen) { /* private memory: no more segments to be had */
        dz_arena_free(s->head);
        return -ENOMEM;
    }
    s->sets = (char *)(s->head + 1);
    memset((void *)s->head, 0, sizeof *s->head);
    for (uint32_t k = 0; k < g->depth; k++)
        for (size_t i = 0; i < (size_t)g->parts * g->units; i++)
            atomic_init(word_of(s->sets + k * g->set_bytes + i * g->stride, g), 0);
    return 0;
}

int dz_shm_send_open(struct dz_peer *peer, const struct dz_chan_desc *d, struct dz_schan **out, void *blob,
                     size_t *bytes)
{
    struct dz_shm_ep *ep = peer->ep;
    bool can_pull = dz_cma_usable(ep);
    struct dz_schan *s = calloc(1, sizeof *s);
    struct send_blob b = {0};
    if (!s)
        return -ENOMEM;
    s->ep = ep;
    s->view = d->view;
    plan(&s->g, d, (size_t)dz_set.slot_limit, can_pull);
    int rc = make_block(s, &b.block);
    if (rc && s->g.unit_bytes && can_pull) { /* what slots have no memory for may still be pulled */
        plan(&s->g, d, 0, can_pull);
        rc = make_block(s, &b.block);
    }
    if (rc)
        goto free_chan;
    rc = -ENOMEM;
    if (d->view.layout && !s->g.unit_bytes && d->part_bytes && !(s->stage = malloc(d->view.bytes)))
        goto free_block;
    s->set_mask = s->g.depth - 1;
    s->part_stride = s->g.units * s->g.stride;
    s->eight = d->part_bytes == 8 && s->g.unit_bytes && !d->view.layout ? d->view.base : NULL;
    b.pull_addr = (uint64_t)(uintptr_t)(s->stage ? s->stage : d->view.base);
    b.g = s->g;
    memcpy(blob, &b, sizeof b);
    *bytes = sizeof b;
    *out = s;
    return 0;
free_block:
    dz_arena_free(s->head);
free_chan:
    free(s);
    return rc;
}

int dz_shm_send_bind(struct dz_schan *s, const void *reply, size_t bytes)
{
    struct recv_blob b;
    if (bytes != sizeof b)
        return -EPROTO;
    memcpy(&b, reply, sizeof b);
    if (s->rmap)
        dz_map_put(&s->ep->maps, s->rmap);
    s->rmap = NULL;
    s->direct = NULL;
    s->raddr = b.addr;
    s->rbytes = b.bytes;
    if (s->g.part_bytes < DIRECT_MIN || !b.addr)
        return 0;
    if (b.buf.gen && !dz_map_get(&s->ep->maps, s->ep->blob.pid, &b.buf, &s->rmap))
        s->direct = s->rmap->base + b.buf.off;
    else if (s->g.unit_bytes || !dz_cma_usable(s->ep))
        return 0;
    /* acquire: may_write. A rebind only follows an end that never started an epoch, so nobody uses the old buffer. */
    atomic_store_explicit(&s->bind, b.bind, memory_order_release);
    return 0;
}

static inline bool may_start(struct dz_schan *s, uint64_t epoch)
{
    uint64_t depth = s->g.depth;
    if (epoch < atomic_load_explicit(&s->seen, memory_order_relaxed) + depth)
        return true;
    /* release: recv_start. What the receiver read from the old sets happened before. */
    uint64_t now = atomic_load_explicit(&s->head->started, memory_order_acquire);
    atomic_store_explicit(&s->seen, now, memory_order_relaxed);
    return epoch < now + depth;
}

int dz_shm_send_start(struct dz_schan *s, uint64_t epoch)
{
    return may_start(s, epoch) ? 0 : -EAGAIN;
}

/* Has the receiver that we are bound to started this epoch? Then its buffer is ours to write. */
static bool may_write(struct dz_schan *s, uint64_t epoch)
{
    uint64_t bind = atomic_load_explicit(&s->bind, memory_order_acquire);
    if (!bind)
        return false;
    uint64_t now = atomic_load_explicit(&s->head->started, memory_order_acquire); /* release: recv_start */
    return now >= epoch && atomic_load_explicit(&s->head->bind, memory_order_relaxed) == bind;
}

static bool store_direct(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    size_t off = part * s->g.part_bytes, len = s->g.part_bytes;
    if (!may_write(s, epoch))
        return false;
    if (off >= s->rbytes)
        len = 0;
    else if (len > s->rbytes - off)
        len = s->rbytes - off; /* a receive shorter than the send: its engine reports the truncation */
    if (s->direct)
        dz_copy_in(&s->view, off, len, s->direct + off);
    else if (s->view.layout || dz_cma_write(s->ep, s->raddr + off, s->view.base + off, len))
        return false;
    return true;
}

static void raise_to(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak_explicit(word, &old, value, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

static int send_large(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    const struct geometry *g = &s->g;
    char *unit = unit_at(s->sets, g, part, epoch);
    size_t off = part * g->part_bytes;
    if (g->part_bytes >= DIRECT_MIN && store_direct(s, part, epoch)) {
        dz_count(part_direct);
        atomic_store_explicit(word_of(unit, g), WORD(epoch, DIRECT), memory_order_release); /* acquire: recv_part */
        return 0;
    }
    if (!g->unit_bytes) {
        if (s->stage)
            dz_view_read(&s->view, off, g->part_bytes, s->stage + off);
        raise_to(&s->pulled, epoch);
        dz_count(part_pull);
        atomic_store_explicit(word_of(unit, g), WORD(epoch, PULL), memory_order_release); /* acquire: recv_part */
        return 0;
    }
    for (uint32_t i = 0; i < g->units; i++, unit += g->stride) {
        size_t at = i * g->unit_bytes, len = g->part_bytes - at < g->unit_bytes ? g->part_bytes - at : g->unit_bytes;
        dz_copy_in(&s->view, off + at, len, unit + g->data_at);
        atomic_store_explicit(word_of(unit, g), WORD(epoch, SLOT), memory_order_release); /* acquire: recv_part */
    }
    return 0;
}

/* Out of line: the registers it saves are not the common case's business. */
static __attribute__((noinline)) int send_other(struct dz_schan *s, uint32_t part, uint64_t epoch, char *unit)
{
    const struct geometry *g = &s->g;
    if (g->part_bytes < DIRECT_MIN && g->units == 1 && g->unit_bytes)
        dz_copy_in(&s->view, part * g->part_bytes, g->part_bytes, unit + g->data_at);
    else if (g->part_bytes)
        return send_large(s, part, epoch);
    atomic_store_explicit(word_of(unit, g), WORD(epoch, SLOT), memory_order_release); /* acquire: recv_part */
    return 0;
}

int dz_shm_send_part(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    char *unit = s->sets + (epoch & s->set_mask) * s->g.set_bytes + part * s->part_stride;
    if (__builtin_expect(!s->eight, 0))
        return send_other(s, part, epoch, unit);
    memcpy(unit, s->eight + (size_t)part * 8, 8);
    /* acquire: recv_part */
    atomic_store_explicit((_Atomic uint64_t *)(void *)(unit + 8), WORD(epoch, SLOT), memory_order_release);
    return 0;
}

bool dz_shm_send_done(struct dz_schan *s, uint64_t epoch)
{
    if (atomic_load_explicit(&s->pulled, memory_order_relaxed) == epoch &&
        atomic_load_explicit(&s->head->done, memory_order_acquire) < epoch) /* release: recv_done */
        return false;
    return s->g.depth == 1 || may_start(s, epoch + 1);
}

void dz_shm_send_close(struct dz_schan *s)
{
    if (s->rmap)
        dz_map_put(&s->ep->maps, s->rmap);
    free(s->stage);
    dz_arena_free(s->head);
    free(s);
}

/* ---- the receiver's end */
int dz_shm_recv_open(struct dz_peer *peer, const struct dz_chan_desc *own, const struct dz_chan_desc *remote,
                     const void *blob, size_t bytes, struct dz_rchan **out, void *reply, size_t *reply_bytes)
{
    struct dz_shm_ep *ep = peer->ep;
    struct send_blob b;
    if (bytes != sizeof b)
        return -EPROTO;
    memcpy(&b, blob, sizeof b);
    const struct geometry *g = &b.g;
    if (g->parts != remote->parts || g->part_bytes != remote->part_bytes || !g->depth || (g->depth & (g->depth - 1)) ||
        b.block.off + sizeof(struct head) + g->depth * g->set_bytes > b.block.seg_bytes)
        return -EPROTO;
    struct dz_rchan *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    int rc = -ENOMEM;
    if (g->units > 1 && !(r->next = calloc(g->parts, sizeof *r->next)))
        goto free_chan;
    rc = dz_map_get(&ep->maps, ep->blob.pid, &b.block, &r->map);
    if (rc)
        goto free_next;
    r->head = (struct head *)(r->map->base + b.block.off);
    r->sets = (char *)(r->head + 1);
    r->g = *g;
    r->view = own->view;
    r->ep = ep;
    r->pull_addr = b.pull_addr;
    /* the sender compares this number with the one in the reply it has: a token never serves an older bind */
    uint64_t bind = atomic_load_explicit(&r->head->bind, memory_order_relaxed) + 1;
    atomic_store_explicit(&r->head->bind, bind, memory_order_relaxed);
    struct recv_blob answer = {.bytes = own->view.bytes, .bind = bind};
    if (!own->view.layout && own->view.bytes) {
        answer.addr = (uint64_t)(uintptr_t)own->view.base;
        if (dz_arena_find(own->view.base, own->view.bytes, &answer.buf))
            answer.buf.gen = 0;
    }
    memcpy(reply, &answer, sizeof answer);
    *reply_bytes = sizeof answer;
    *out = r;
    return 0;
free_next:
    free(r->next);
free_chan:
    free(r);
    return rc;
}

void dz_shm_recv_start(struct dz_rchan *r, uint64_t epoch)
{
    atomic_store_explicit(&r->head->started, epoch, memory_order_release); /* acquire: may_start, may_write */
}

/* Copies stream bytes [off, off + len) from a slot to the receive buffer, as far as that reaches. */
static inline void take(struct dz_rchan *r, size_t off, size_t len, const char *from)
{
    if (__builtin_expect(off + len > r->view.bytes, 0)) {
        if (off >= r->view.bytes)
            return;
        len = r->view.bytes - off;
    }
    if (len == 8 && !r->view.layout)
        memcpy(r->view.base + off, from, 8);
    else
        dz_view_write(&r->view, off, len, from);
}

static int pull(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    size_t off = part * r->g.part_bytes, len = r->g.part_bytes;
    if (off >= r->view.bytes)
        len = 0;
    else if (len > r->view.bytes - off)
        len = r->view.bytes - off;
    raise_to(&r->pulled, epoch);
    int rc = len ? dz_cma_read(r->ep, r->pull_addr + off, &r->view, off, len) : 0;
    return rc ? rc : 1;
}

static int take_units(struct dz_rchan *r, uint32_t part, uint64_t epoch, char *unit)
{
    const struct geometry *g = &r->g;
    uint64_t taken = r->next[part] >> 24 == (epoch & 0xffffffffff) ? r->next[part] & 0xffffff : 0;
    size_t off = part * g->part_bytes;
    for (unit += taken * g->stride; taken < g->units; taken++, unit += g->stride) {
        uint64_t word = atomic_load_explicit(word_of(unit, g), memory_order_acquire); /* release: send_large */
        if (word >> 2 != epoch)
            break;
        size_t at = taken * g->unit_bytes, len = g->part_bytes - at;
        take(r, off + at, len < g->unit_bytes ? len : g->unit_bytes, unit + g->data_at);
    }
    r->next[part] = (epoch & 0xffffffffff) << 24 | taken;
    return taken == g->units;
}

bool dz_shm_recv_ready(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    char *unit = unit_at(r->sets, &r->g, part, epoch);
    return atomic_load_explicit(word_of(unit, &r->g), memory_order_relaxed) >> 2 == epoch;
}

int dz_shm_recv_part(struct dz_rchan *r, uint32_t part, uint64_t epoch)
{
    const struct geometry *g = &r->g;
    char *unit = unit_at(r->sets, g, part, epoch);
    uint64_t word = atomic_load_explicit(word_of(unit, g), memory_order_acquire); /* release: send_part, send_large */
    if (word >> 2 != epoch)
        return 0;
    __builtin_prefetch(unit + DZ_LINE);
    switch (word & 3) {
    case DIRECT:
        return 1;
    case PULL:
        return pull(r, part, epoch);
    default:
        if (g->units > 1)
            return take_units(r, part, epoch, unit);
        if (g->part_bytes)
            take(r, part * g->part_bytes, g->part_bytes, unit + g->data_at);
        return 1;
    }
}

uint32_t dz_shm_recv_run(struct dz_rchan *r, uint32_t first, uint32_t end, uint64_t epoch)
{
    const struct geometry *g = &r->g;
    uint32_t p = first;
    if (g->part_bytes == 8 && !r->view.layout && (uint64_t)end * 8 <= r->view.bytes) {
        const char *unit = unit_at(r->sets, g, p, epoch);
        for (; p < end; p++, unit += g->stride) { /* acquire: send_part */
            if (atomic_load_explicit(word_of((char *)unit, g), memory_order_acquire) != WORD(epoch, SLOT))
                break;
            memcpy(r->view.base + (size_t)p * 8, unit, 8);
        }
        return p - first;
    }
    while (p < end && dz_shm_recv_part(r, p, epoch) == 1)
        p++;
    return p - first;
}

bool dz_shm_recv_must_take(struct dz_rchan *r)
{
    return !r->g.unit_bytes && r->g.part_bytes; /* pulled */
}

void dz_shm_recv_done(struct dz_rchan *r, uint64_t epoch)
{
    if (atomic_load_explicit(&r->pulled, memory_order_relaxed) == epoch)
        atomic_store_explicit(&r->head->done, epoch, memory_order_release); /* acquire: send_done */
}

void dz_shm_recv_close(struct dz_rchan *r)
{
    dz_map_put(&r->ep->maps, r->map);
    free(r->next);
    free(r);
}
