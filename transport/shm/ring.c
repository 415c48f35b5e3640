/* ring.c - messages between two processes of one node.
 *
 * Each ordered pair that talks has a ring of LINES cache lines in the sender's memory, made at the first message and
 * told to the receiver through its control segment's door. A message takes one line (header and up to 16 bytes) or
 * several (56 bytes in each further one); a longer one puts its payload into a piece, a block of dz_set.chunk bytes
 * of the sender's, and the line tells where.
 *
 *   line: [ word | header 40 | payload 16 ]   further lines: [ word, untouched | payload 56 ]
 *
 * word is (position + 1) << 8 | kind, position counting lines since the ring was made. It is stored last (release)
 * and is the only thing the receiver polls (acquire); payload never touches a word, so a word only grows and a line
 * needs no clearing. The receiver tells how far it has read in `consumed` (release), rarely, for the sender (acquire)
 * to reuse lines and pieces.
 *
 * Pieces are taken last in, first out, so that they stay in the cache. OWN of them are kept for each pair that talks:
 * a receiver that does not look at its messages for long can not starve the traffic with others. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/shm/copy.h"
#include "transport/shm/shm.h"

enum { LINES = 256, HEAD_BYTES = 16, TAIL_BYTES = 56, MAX_LINES = 8, OWN = 2, DOORS = 4096, BURST = 32 };
enum { INLINE_MAX = HEAD_BYTES + (MAX_LINES - 1) * TAIL_BYTES };
enum { KIND_INLINE = 0, KIND_PIECE = 1 };

struct line {
    alignas(DZ_LINE) _Atomic uint64_t word;
    struct dz_am am;
    unsigned char payload[HEAD_BYTES];
};
struct tail {
    alignas(DZ_LINE) uint64_t word;
    unsigned char payload[TAIL_BYTES];
};
_Static_assert(sizeof(struct line) == DZ_LINE && sizeof(struct tail) == DZ_LINE, "lines are cache lines");

struct ring {
    alignas(DZ_LINE) _Atomic uint64_t consumed; /* receiver writes */
    struct line lines[LINES];
};

/* A sender knocks: it fills its door, then counts up `knocks`. */
struct door {
    alignas(DZ_LINE) _Atomic uint32_t open; /* 1: ring is valid */
    struct dz_ref ring;
};
struct ctrl {
    alignas(DZ_LINE) _Atomic uint64_t knocks;
    uint64_t nonce;
    struct door doors[DOORS];
};

/* A block that carries one long payload; private descriptor. */
struct piece {
    struct piece *next;
    char *data;
    struct dz_ref ref;
    uint64_t pos; /* ring position after its line: free again when the receiver has consumed up to it */
    bool own;
};

struct in_ring {
    struct dz_shm_ep *ep;
    struct ring *ring;
    struct dz_map *map;
    uint64_t pos, told;
};

static struct ctrl *ctrl;
static uint64_t knocks_seen;
static struct in_ring **in_rings;
static int n_in;
static struct piece *free_pieces;
static long pieces_made;

int dz_ring_open(struct dz_shm_blob *blob)
{
    ctrl = dz_arena_alloc(sizeof *ctrl, &blob->ctrl);
    if (!ctrl)
        return -ENOMEM;
    if (!blob->ctrl.gen) { /* no memfd: private memory only */
        dz_arena_free(ctrl);
        ctrl = NULL;
        return -ENODEV;
    }
    atomic_init(&ctrl->knocks, 0);
    /* the doors are zero: this is the first block that the process takes, and segments start as zeros */
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &blob->nonce, sizeof blob->nonce) != (ssize_t)sizeof blob->nonce)
        blob->nonce = (uint64_t)getpid() * 0x9e3779b97f4a7c15u ^ (uintptr_t)ctrl;
    if (fd >= 0)
        close(fd);
    ctrl->nonce = blob->nonce;
    blob->probe = (uint64_t)(uintptr_t)&ctrl->nonce;
    knocks_seen = 0;
    return 0;
}

static void drop_list(struct piece **list)
{
    while (*list) {
        struct piece *p = *list;
        *list = p->next;
        free(p);
    }
}

void dz_ring_drop_pieces(struct dz_shm_ep *ep)
{
    drop_list(&ep->own);
    drop_list(&ep->flight_head);
}

void dz_ring_close(void)
{
    for (int i = 0; i < n_in; i++)
        free(in_rings[i]);
    free(in_rings);
    in_rings = NULL;
    n_in = 0;
    drop_list(&free_pieces);
    pieces_made = 0;
    ctrl = NULL;
}

static int ep_reach_ctrl(struct dz_shm_ep *ep)
{
    if (ep->ctrl)
        return 0;
    struct dz_map *map;
    int rc = dz_map_get(&ep->maps, ep->blob.pid, &ep->blob.ctrl, &map);
    if (rc)
        return rc;
    struct ctrl *c = (struct ctrl *)(map->base + ep->blob.ctrl.off);
    if (c->nonce != ep->blob.nonce) { /* the pid names another process by now */
        dz_map_put(&ep->maps, map);
        return -EHOSTDOWN;
    }
    ep->ctrl = c;
    return 0;
}

static struct piece *piece_create(bool own)
{
    struct piece *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->data = dz_arena_alloc((size_t)dz_set.chunk, &p->ref);
    if (!p->data || !p->ref.gen) {
        dz_arena_free(p->data);
        free(p);
        return NULL;
    }
    p->own = own;
    return p;
}

static int connect_out(struct dz_shm_ep *ep)
{
    int rc = ep_reach_ctrl(ep);
    if (rc)
        return rc;
    struct dz_ref ref;
    struct ring *r = dz_arena_alloc(sizeof *r, &ref);
    if (!r)
        return -ENOMEM;
    memset((void *)r, 0, sizeof *r);
    for (int i = 0; i < OWN; i++) {
        struct piece *p = piece_create(true);
        if (!p)
            break; /* fewer are slower, not wrong: the common pool serves */
        p->next = ep->own;
        ep->own = p;
    }
    ep->flight_tail = &ep->flight_head;
    struct door *d = &ep->ctrl->doors[dz_shm.self_slot];
    d->ring = ref;
    atomic_store_explicit(&d->open, 1, memory_order_release);               /* acquire: answer_door */
    atomic_fetch_add_explicit(&ep->ctrl->knocks, 1, memory_order_release); /* acquire: dz_ring_poll */
    ep->out = r;
    return 0;
}

static void reclaim(struct dz_shm_ep *ep)
{
    ep->seen = atomic_load_explicit(&ep->out->consumed, memory_order_acquire); /* release: tell_consumed */
    while (ep->flight_head && ep->flight_head->pos <= ep->seen) {
        struct piece *p = ep->flight_head;
        if (!(ep->flight_head = p->next))
            ep->flight_tail = &ep->flight_head;
        struct piece **list = p->own ? &ep->own : &free_pieces;
        p->next = *list;
        *list = p;
    }
}

static struct piece *piece_take(struct dz_shm_ep *ep)
{
    for (int again = 0; again < 2; again++) {
        struct piece **list = ep->own ? &ep->own : &free_pieces;
        struct piece *p = *list;
        if (p) {
            *list = p->next;
            return p;
        }
        if (!again)
            reclaim(ep);
    }
    if (pieces_made >= dz_set.pool / dz_set.chunk)
        return NULL;
    struct piece *p = piece_create(false);
    if (p)
        pieces_made++;
    return p;
}

int dz_ring_post(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len)
{
    struct dz_shm_ep *ep = peer->ep;
    if (__builtin_expect(!ep->out, 0)) {
        int rc = connect_out(ep);
        if (rc)
            return rc;
    }
    struct ring *r = ep->out;
    uint64_t pos = ep->pos;
    bool big = len > INLINE_MAX;
    unsigned n = len <= HEAD_BYTES || big ? 1 : 1 + (unsigned)((len - HEAD_BYTES + TAIL_BYTES - 1) / TAIL_BYTES);
    if (pos + n - ep->seen > LINES) {
        reclaim(ep);
        if (pos + n - ep->seen > LINES)
            return -EAGAIN;
    }
    struct line *l = &r->lines[pos % LINES];
    struct dz_am head = *am;
    head.bytes = (uint32_t)len;
    if (big) {
        struct piece *p = piece_take(ep);
        if (!p)
            return -EAGAIN;
        dz_copy_in(v, off, len, p->data);
        p->pos = pos + 1;
        p->next = NULL;
        *ep->flight_tail = p;
        ep->flight_tail = &p->next;
        /* gen and offset fit the line; the rest of the place is the same for all pooled segments but fd */
        struct { uint64_t gen_fd, off; } where = {p->ref.gen << 32 | (uint32_t)p->ref.fd, p->ref.off};
        _Static_assert(sizeof where == HEAD_BYTES, "a piece's place fits the line");
        memcpy(l->payload, &where, sizeof where);
    } else if (len) {
        size_t first = len < HEAD_BYTES ? len : HEAD_BYTES;
        if (!v->layout && first == 8)
            memcpy(l->payload, v->base + off, 8);
        else
            dz_view_read(v, off, first, l->payload);
        for (unsigned i = 1; i < n; i++) {
            size_t at = HEAD_BYTES + (size_t)(i - 1) * TAIL_BYTES;
            struct tail *t = (struct tail *)&r->lines[(pos + i) % LINES];
            dz_view_read(v, off + at, len - at < TAIL_BYTES ? len - at : TAIL_BYTES, t->payload);
        }
    }
    l->am = head;
    /* acquire: in_ring_next */
    atomic_store_explicit(&l->word, (pos + 1) << 8 | (big ? KIND_PIECE : KIND_INLINE), memory_order_release);
    ep->pos = pos + n;
    return 0;
}

/* ---- receiving */
static int answer_door(struct dz_shm_ep *ep, struct door *d)
{
    struct in_ring **bigger = realloc(in_rings, (size_t)(n_in + 1) * sizeof *in_rings);
    if (!bigger)
        return -ENOMEM;
    in_rings = bigger;
    struct in_ring *in = calloc(1, sizeof *in);
    if (!in)
        return -ENOMEM;
    int rc = dz_map_get(&ep->maps, ep->blob.pid, &d->ring, &in->map);
    if (rc) {
        free(in);
        return rc;
    }
    in->ep = ep;
    in->ring = (struct ring *)(in->map->base + d->ring.off);
    ep->in = in_rings[n_in++] = in;
    return 0;
}

static void answer_doors(void)
{
    uint64_t knocks = atomic_load_explicit(&ctrl->knocks, memory_order_acquire); /* release: connect_out */
    bool all = true;
    for (int i = 0; i < dz_shm.local; i++) {
        struct dz_shm_ep *ep = dz_shm.eps[i];
        struct door *d = &ctrl->doors[i];
        if (ep && !ep->in && !ep->peer->gone && atomic_load_explicit(&d->open, memory_order_acquire)) {
            int rc = answer_door(ep, d);
            if (rc == -EHOSTDOWN)
                ep->peer->gone = true;
            else if (rc)
                all = false; /* try again at the next poll */
        }
    }
    if (all)
        knocks_seen = knocks;
}

static void tell_consumed(struct in_ring *in)
{
    in->told = in->pos;
    atomic_store_explicit(&in->ring->consumed, in->pos, memory_order_release); /* acquire: reclaim */
}

static void deliver_piece(struct in_ring *in, const struct line *l)
{
    struct { uint64_t gen_fd, off; } where;
    memcpy(&where, l->payload, sizeof where);
    struct dz_ref ref = {.gen = where.gen_fd >> 32, .off = where.off, .fd = (int32_t)(uint32_t)where.gen_fd,
                         .pooled = 1, .seg_bytes = in->map->bytes};
    struct dz_map *map;
    /* every pooled segment has one size, the ring's; a mapping of it stays for good */
    if (in->map->gen == ref.gen) {
        dz_am_deliver(in->ep->peer, &l->am, in->map->base + ref.off);
    } else if (!dz_map_get(&in->ep->maps, in->ep->blob.pid, &ref, &map)) {
        dz_am_deliver(in->ep->peer, &l->am, map->base + ref.off);
        map->refs--; /* pooled: stays mapped */
    } else {
        in->ep->peer->gone = true;
    }
}

static int in_ring_poll(struct in_ring *in)
{
    int n = 0;
    for (; n < BURST; n++) {
        struct line *l = &in->ring->lines[in->pos % LINES];
        uint64_t word = atomic_load_explicit(&l->word, memory_order_acquire); /* release: dz_ring_post */
        if (word >> 8 != in->pos + 1)
            break;
        size_t len = l->am.bytes;
        if ((word & 0xff) == KIND_PIECE) {
            in->pos++;
            deliver_piece(in, l);
            tell_consumed(in);
            continue;
        }
        if (len <= HEAD_BYTES) {
            in->pos++;
            dz_am_deliver(in->ep->peer, &l->am, l->payload);
        } else {
            unsigned char whole[INLINE_MAX];
            memcpy(whole, l->payload, HEAD_BYTES);
            size_t at = HEAD_BYTES;
            uint64_t p = in->pos + 1;
            for (; at < len; at += TAIL_BYTES, p++) {
                const struct tail *t = (const struct tail *)&in->ring->lines[p % LINES];
                memcpy(whole + at, t->payload, len - at < TAIL_BYTES ? len - at : TAIL_BYTES);
            }
            in->pos = p;
            dz_am_deliver(in->ep->peer, &l->am, whole);
        }
        if (in->pos - in->told >= LINES / 4)
            tell_consumed(in);
    }
    return n;
}

int dz_ring_poll(void)
{
    if (__builtin_expect(atomic_load_explicit(&ctrl->knocks, memory_order_relaxed) != knocks_seen, 0))
        answer_doors();
    int n = 0;
    for (int i = 0; i < n_in; i++)
        n += in_ring_poll(in_rings[i]);
    return n;
}
