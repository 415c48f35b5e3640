/* chan.c - channels over RDMA: what a partition costs is one posted write.
 *
 * The receiver decides at bind how partitions come (struct grant, in its reply), the sender follows:
 *
 *   landing  SLOT    library memory of the receiver: a ring of `depth` epochs, epoch e in set e % depth; copied out
 *            BUFFER  the receive buffer itself, registered; one epoch at a time (depth 1)
 *   notice   PACKED  (SLOT, short partitions) each 8-byte word of the slot carries 4 bytes of the partition, in its
 *                    lower half, and the low half of the epoch, in its upper: one write, nothing else. Sound where the
 *                    device places aligned words whole, in any order, and where it places bytes in ascending order.
 *            IMM     the write carries immediate data, imm_base + partition; its completion at the receiver counts that
 *                    partition's arrivals, which are epochs, since one queue pair keeps order. Sound everywhere.
 *            WORD    a second write of the epoch into the partition's own word, in the same post. Sound where writes of
 *                    one queue pair are placed in order, which InfiniBand and RoCE promise.
 *
 * Receiver-ready tokens: the receiver writes the epoch it has started into the sender's word `started`. An epoch e may
 * be sent when started > 0 and e < started + depth: never before the receiver's first Start, since until then it may
 * hand its place on to another request. When it does, the first token of the new place may be here before the grant
 * that belongs to it is read: so the first token is preceded by the number of its bind, which has to be the grant's.
 * With depth > 1 the token is written every depth / 2 epochs.
 *
 * A strided send buffer is gathered by the device where each partition is a few spans of some length (GATHER_MAX and
 * GATHER_MEAN), else packed into registered memory by MPI_Pready. Strided receives land in slots and are copied out.
 *
 * The send buffer may be reused when nothing of it is to be read any more: at once where the bytes were copied into the
 * work request (inline), else with the completion of the epoch's last write, which is asked for.
 *
 * Work requests are prepared at bind, LIST of them per channel, chained; a post sets addresses and epoch, with ep.lock. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

enum { LIST = 16, PACKED_MAX = 64, RING_BYTES = 256 << 10, DEPTH_MAX = 64, PIECES_MAX = 256, GATHER_MAX = 16,
       GATHER_MEAN = 256 };
enum landing { SLOT, BUFFER };
enum notice { PACKED, IMM, WORD };

struct offer {
    uint64_t started_addr;   /* of two words: the token, and the bind that it belongs to */
    uint32_t started_key;
    uint32_t max_inline;
};
struct grant {
    uint64_t data_addr, word_addr;
    uint64_t bind;           /* no other grant of this process has the number */
    uint64_t bytes;          /* of the receive buffer's packed stream, as far as it may be written */
    uint64_t stride;         /* SLOT: from partition to partition */
    uint32_t data_key, word_key;
    uint32_t imm_base, depth;
    uint8_t landing, notice;
};
_Static_assert(sizeof(struct grant) <= DZ_BLOB_MAX && sizeof(struct offer) <= DZ_BLOB_MAX, "blobs fit");

/* One partition's work requests. */
struct prepared {
    struct ibv_send_wr data, word;
    struct ibv_sge data_sge, word_sge;
    uint64_t epoch;                       /* WORD: what is written */
    uint64_t packed[PACKED_MAX / 4];
};

struct dz_schan {
    struct dz_ep *ep;
    struct dz_view view;
    uint64_t part_bytes;
    uint32_t parts;
    struct dz_region token;
    _Atomic uint64_t *started, *bind;     /* the peer writes them */
    _Atomic bool bound;
    struct grant g;
    uint64_t set_bytes;
    const char *from;                     /* the packed stream in memory: the user's, or stage */
    struct ibv_mr *mr;                    /* of the user's memory */
    struct dz_region stage;
    const char *eight;                    /* PACKED partitions of 8 bytes without gaps: their first; else NULL */
    struct ibv_sge *sges;                 /* sges_stride for each partition; NULL: `from` has it in one piece */
    uint32_t sges_stride;
    bool at_once;                         /* the device has its copy when the post returns */
    uint32_t lkey;
    uint32_t given;                       /* with ep.lock: partitions of the running epoch posted */
    uint64_t end_epoch, end_pos;          /* the last epoch that was posted whole, and its last write */
    struct prepared *wr;                  /* LIST of them */
};

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

/* ---- the sender's end */
int dz_verbs_send_open(struct dz_peer *peer, const struct dz_chan_desc *d, struct dz_schan **out, void *blob,
                       size_t *bytes)
{
    struct dz_schan *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    int rc = dz_region_alloc(16, &s->token);
    if (rc) {
        free(s);
        return rc;
    }
    s->ep = peer->ep;
    s->view = d->view;
    s->part_bytes = d->part_bytes;
    s->parts = d->parts;
    s->started = (_Atomic uint64_t *)(void *)s->token.base;
    s->bind = s->started + 1;
    struct offer o = {.started_addr = (uint64_t)(uintptr_t)s->token.base, .started_key = s->token.mr->rkey,
                      .max_inline = dz_v.max_inline};
    memcpy(blob, &o, sizeof o);
    *bytes = sizeof o;
    *out = s;
    return 0;
}

static uint64_t packed_words(uint64_t part_bytes)
{
    return part_bytes ? (part_bytes + 3) / 4 : 1;
}

/* The spans of every partition, as the device can gather them, and one registration over all; -ENOTSUP: pack. */
static int prepare_gather(struct dz_schan *s)
{
    struct dz_span span[GATHER_MAX];
    uint32_t most = dz_v.max_sge < GATHER_MAX ? dz_v.max_sge : GATHER_MAX;
    uint64_t total = s->part_bytes * s->parts;
    const char *low = NULL, *high = NULL;
    size_t n = s->view.layout->spans(s->view.layout->ctx, s->view.base, 0, s->part_bytes, span, most);
    if (n > most || s->part_bytes / n < GATHER_MEAN || s->part_bytes > dz_v.port_attr.max_msg_sz || s->g.bytes < total)
        return -ENOTSUP;
    s->sges_stride = most;
    s->sges = calloc((size_t)s->parts * most, sizeof *s->sges);
    if (!s->sges)
        return -ENOMEM;
    for (uint32_t p = 0; p < s->parts; p++) {
        struct ibv_sge *sge = &s->sges[(size_t)p * most];
        n = s->view.layout->spans(s->view.layout->ctx, s->view.base, p * s->part_bytes, s->part_bytes, span, most);
        if (n > most)
            goto pack;
        for (size_t i = 0; i < n; i++) {
            sge[i].addr = (uint64_t)(uintptr_t)span[i].base;
            sge[i].length = (uint32_t)span[i].bytes;
            low = !low || span[i].base < low ? span[i].base : low;
            high = !high || span[i].base + span[i].bytes > high ? span[i].base + span[i].bytes : high;
        }
    }
    if (dz_user_reg(low, (size_t)(high - low), false, &s->mr)) /* the gaps may be nobody's memory */
        goto pack;
    for (size_t i = 0; i < (size_t)s->parts * most; i++)
        s->sges[i].lkey = s->mr->lkey;
    return 0;
pack:
    free(s->sges);
    s->sges = NULL;
    return -ENOTSUP;
}

/* Where the device reads the partitions from. */
static int prepare_source(struct dz_schan *s)
{
    if (s->g.notice == PACKED || !s->part_bytes) {
        s->at_once = true;
        s->eight = s->part_bytes == 8 && !s->view.layout ? s->view.base : NULL;
        return 0;
    }
    if (!s->view.layout) {
        s->from = s->view.base;
        s->at_once = s->part_bytes <= dz_v.max_inline;
        if (s->at_once || s->mr)
            return 0;
        int rc = dz_user_reg(s->view.base, s->view.bytes, false, &s->mr);
        if (rc != -ENOTSUP) {
            s->lkey = rc ? 0 : s->mr->lkey;
            return rc;
        }
    }
    s->at_once = s->part_bytes <= dz_v.max_inline;
    if (s->view.layout && !s->at_once && !s->stage.base && !s->sges) {
        int rc = prepare_gather(s);
        if (rc != -ENOTSUP)
            return rc;
    }
    if (s->sges)
        return 0;
    int rc = s->stage.base ? 0 : dz_region_alloc(s->view.bytes, &s->stage);
    if (rc)
        return rc;
    s->from = s->stage.base;
    s->lkey = s->stage.mr->lkey;
    return 0;
}

static void prepare_one(struct dz_schan *s, struct prepared *w)
{
    const struct grant *g = &s->g;
    *w = (struct prepared){0};
    w->data.sg_list = &w->data_sge;
    w->data.num_sge = 1;
    w->data.opcode = g->notice == IMM ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    w->data.wr.rdma.rkey = g->data_key;
    w->data_sge.lkey = s->lkey;
    w->data.wr_id = dz_ep_id(s->ep, 0); /* of an error, whose else; who asks for a completion sets the position */
    if (g->notice == PACKED) {
        w->data_sge.addr = (uint64_t)(uintptr_t)w->packed;
        w->data_sge.length = (uint32_t)packed_words(s->part_bytes) * 8;
    }
    w->word.sg_list = &w->word_sge;
    w->word.num_sge = 1;
    w->word.opcode = IBV_WR_RDMA_WRITE;
    w->word.wr.rdma.rkey = g->word_key;
    w->word_sge.addr = (uint64_t)(uintptr_t)&w->epoch;
    w->word_sge.length = 8;
    w->word.wr_id = w->data.wr_id;
}

int dz_verbs_send_bind(struct dz_schan *s, const void *reply, size_t bytes)
{
    if (bytes != sizeof s->g)
        return -EPROTO;
    memcpy(&s->g, reply, sizeof s->g);
    const struct grant *g = &s->g;
    if (!g->depth || (g->depth & (g->depth - 1)) || (g->notice == PACKED && s->part_bytes > PACKED_MAX))
        return -EPROTO;
    if (s->part_bytes > (uint64_t)dz_v.port_attr.max_msg_sz * PIECES_MAX)
        return -EMSGSIZE;
    s->set_bytes = g->stride * s->parts;
    int rc = prepare_source(s);
    if (rc)
        return rc;
    if (!s->wr && !(s->wr = malloc(LIST * sizeof *s->wr)))
        return -ENOMEM;
    for (unsigned i = 0; i < LIST; i++)
        prepare_one(s, &s->wr[i]);
    atomic_store_explicit(&s->bound, true, memory_order_release); /* acquire: send_start */
    return 0;
}

int dz_verbs_send_start(struct dz_schan *s, uint64_t epoch)
{
    if (atomic_load_explicit(&s->ep->state, memory_order_relaxed) == DZ_EP_FAILED)
        return -EHOSTDOWN;
    if (!atomic_load_explicit(&s->bound, memory_order_acquire)) /* release: send_bind */
        return -EAGAIN;
    /* acquire: the peer's token, and with it everything it did before its Start */
    uint64_t started = atomic_load_explicit(s->started, memory_order_acquire);
    return started && epoch < started + s->g.depth &&
                   atomic_load_explicit(s->bind, memory_order_relaxed) == s->g.bind
               ? 0 : -EAGAIN;
}

/* Bytes of a partition that the receive buffer has room for. */
static uint64_t room_for(const struct dz_schan *s, uint32_t part)
{
    uint64_t off = part * s->part_bytes;
    if (off >= s->g.bytes)
        return 0;
    return s->g.bytes - off < s->part_bytes ? s->g.bytes - off : s->part_bytes;
}

static void pack_words(const struct dz_schan *s, uint32_t part, uint64_t epoch, uint64_t *words)
{
    uint32_t half[PACKED_MAX / 4] = {0};
    uint64_t n = packed_words(s->part_bytes);
    if (s->part_bytes)
        dz_view_read(&s->view, part * s->part_bytes, s->part_bytes, half);
    for (uint64_t i = 0; i < n; i++)
        words[i] = epoch << 32 | half[i];
}

/* Fills in what a partition changes, chains it to the next; returns the number of work requests. */
static unsigned fill(struct dz_schan *s, struct prepared *w, uint32_t part, uint64_t epoch)
{
    const struct grant *g = &s->g;
    w->data.wr.rdma.remote_addr = g->data_addr + (g->landing == BUFFER ? part * s->part_bytes
                                                      : (epoch & (g->depth - 1)) * s->set_bytes + part * g->stride);
    if (g->notice == PACKED) {
        pack_words(s, part, epoch, w->packed);
        w->data.send_flags = IBV_SEND_INLINE;
        return 1;
    }
    w->data.send_flags = s->at_once ? IBV_SEND_INLINE : 0;
    w->data_sge.length = (uint32_t)room_for(s, part);
    w->data_sge.addr = (uint64_t)(uintptr_t)s->from + part * s->part_bytes;
    w->data.num_sge = w->data_sge.length != 0;
    if (s->sges) {
        w->data.sg_list = &s->sges[(size_t)part * s->sges_stride];
        w->data.num_sge = 0;
        while (w->data.num_sge < (int)s->sges_stride && w->data.sg_list[w->data.num_sge].length)
            w->data.num_sge++;
    }
    if (g->notice == IMM) {
        w->data.imm_data = htonl(g->imm_base + part);
        return 1;
    }
    w->data.next = &w->word;
    w->epoch = epoch;
    w->word.send_flags = IBV_SEND_INLINE;
    w->word.wr.rdma.remote_addr = g->word_addr + part * 8;
    return 2;
}

/* ep.lock held: n partitions that each fit into one work request. */
static int post_some(struct dz_schan *s, const uint32_t *parts, uint32_t n, uint64_t epoch)
{
    unsigned each = s->g.notice == WORD ? 2 : 1;
    int rc = dz_ep_room(s->ep, n * each, DZ_CONTROL_ROOM);
    if (rc)
        return rc;
    struct ibv_send_wr *last = NULL;
    for (uint32_t i = 0; i < n; i++) {
        fill(s, &s->wr[i], parts[i], epoch);
        if (last)
            last->next = &s->wr[i].data;
        last = each == 2 ? &s->wr[i].word : &s->wr[i].data;
    }
    last->next = NULL;
    bool whole = s->given + n >= s->parts;
    uint64_t pos;
    rc = dz_ep_post(s->ep, &s->wr[0].data, last, n * each, whole && !s->at_once, &pos);
    if (rc)
        return rc;
    s->given = whole ? 0 : s->given + n;
    if (whole) {
        s->end_epoch = epoch;
        s->end_pos = pos;
    }
    dz_count_n(data_writes, n);
    if (s->at_once)
        dz_count_n(inline_posts, n);
    if (s->sges)
        dz_count_n(gathers, n);
    return 0;
}

/* ep.lock held: one partition that is longer than the device's messages. */
static int post_pieces(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    uint64_t most = dz_v.port_attr.max_msg_sz, left = room_for(s, part);
    unsigned pieces = left ? (unsigned)((left + most - 1) / most) : 1;
    int rc = dz_ep_room(s->ep, pieces + 1, DZ_CONTROL_ROOM);
    if (rc)
        return rc;
    struct prepared *w = &s->wr[0];
    uint64_t end = s->g.landing == BUFFER ? part * s->part_bytes : part * s->g.stride, pos = 0;
    bool whole = s->given + 1 >= s->parts;
    for (unsigned i = 0; i + 1 < pieces; i++, left -= most) {
        struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)s->from + part * s->part_bytes + i * most,
                              .length = (uint32_t)most, .lkey = s->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = {.remote_addr = s->g.data_addr + end + i * most, .rkey = s->g.data_key}};
        rc = dz_ep_post(s->ep, &wr, &wr, 1, false, NULL);
        if (rc) /* those posted will be posted again, to the same place, before anybody is told */
            return rc;
    }
    unsigned n = fill(s, w, part, epoch);
    w->data.wr.rdma.remote_addr = s->g.data_addr + end + (pieces - 1) * most;
    w->data_sge.addr += (pieces - 1) * most;
    w->data_sge.length = (uint32_t)left;
    struct ibv_send_wr *last = n == 2 ? &w->word : &w->data;
    last->next = NULL;
    rc = dz_ep_post(s->ep, &w->data, last, n, whole, &pos);
    if (rc)
        return rc;
    s->given = whole ? 0 : s->given + 1;
    if (whole) {
        s->end_epoch = epoch;
        s->end_pos = pos;
    }
    dz_count_n(data_writes, pieces);
    return 0;
}

/* The shortest partition, alone: false when anything is not as usual, which post_some then looks at. */
static inline bool post_eight(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    struct dz_ep *ep = s->ep;
    struct prepared *w = s->wr;
    struct ibv_send_wr *bad;
    uint64_t end = ep->posted + 1, bytes;
    /* acquire: the connection is there */
    if (end > atomic_load_explicit(&ep->limit, memory_order_acquire) || end - ep->signaled_at >= DZ_SIGNAL_EVERY)
        return false;
    memcpy(&bytes, s->eight + (size_t)part * 8, 8);
    w->packed[0] = epoch << 32 | (uint32_t)bytes;
    w->packed[1] = epoch << 32 | bytes >> 32;
    w->data.next = NULL;
    w->data.send_flags = IBV_SEND_INLINE;
    w->data.wr.rdma.remote_addr = s->g.data_addr + (epoch & (s->g.depth - 1)) * s->set_bytes + (uint64_t)part * 16;
    if (__builtin_expect(ibv_post_send(ep->qp, &w->data, &bad) != 0, 0))
        return false;
    ep->posted = end;
    dz_count(data_writes);
    dz_count(inline_posts);
    dz_count(doorbells);
    return true;
}

static void stage_part(struct dz_schan *s, uint32_t part)
{
    if (s->stage.base && s->part_bytes)
        dz_view_read(&s->view, part * s->part_bytes, s->part_bytes, s->stage.base + part * s->part_bytes);
}

static __attribute__((noinline)) int send_part_slow(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    if (s->stage.base)
        stage_part(s, part);
    dz_ep_lock(s->ep);
    int rc = s->part_bytes > dz_v.port_attr.max_msg_sz ? post_pieces(s, part, epoch) : post_some(s, &part, 1, epoch);
    dz_ep_unlock(s->ep);
    return rc;
}

int dz_verbs_send_part(struct dz_schan *s, uint32_t part, uint64_t epoch)
{
    if (__builtin_expect(s->eight != NULL, 1)) {
        dz_ep_lock(s->ep);
        bool usual = post_eight(s, part, epoch);
        dz_ep_unlock(s->ep);
        if (__builtin_expect(usual, 1))
            return 0;
    }
    return send_part_slow(s, part, epoch);
}

uint32_t dz_verbs_send_list(struct dz_schan *s, const uint32_t *parts, uint32_t n, uint64_t epoch, int *rc)
{
    uint32_t done = 0;
    *rc = 0;
    if (s->part_bytes > dz_v.port_attr.max_msg_sz) {
        while (done < n && !(*rc = dz_verbs_send_part(s, parts[done], epoch)))
            done++;
        return done;
    }
    for (uint32_t i = 0; s->stage.base && i < n; i++)
        stage_part(s, parts[i]);
    dz_ep_lock(s->ep);
    while (done < n) {
        uint32_t some = n - done < LIST ? n - done : LIST;
        while ((*rc = post_some(s, parts + done, some, epoch)) == -EAGAIN && some > 1)
            some /= 2;
        if (*rc)
            break;
        done += some;
    }
    dz_ep_unlock(s->ep);
    return done;
}

bool dz_verbs_send_done(struct dz_schan *s, uint64_t epoch)
{
    if (s->at_once)
        return true;
    /* acquire: the device has read the buffer (release: sent, in ep.c). A failed connection reads nothing more; the
     * engine hears of it from the next operation. */
    return atomic_load_explicit(&s->ep->state, memory_order_relaxed) != DZ_EP_FAILED && s->end_epoch == epoch &&
           atomic_load_explicit(&s->ep->done, memory_order_acquire) >= s->end_pos;
}

void dz_verbs_send_close(struct dz_schan *s)
{
    dz_user_unreg(s->mr);
    dz_region_free(&s->stage);
    dz_region_free(&s->token);
    free(s->sges);
    free(s->wr);
    free(s);
}

/* ---- the receiver's end */
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
