/* chan_send.c - the sender's end of a channel (chan.h tells the whole life). */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/chan.h"

enum { LIST = 16, PIECES_MAX = 256, GATHER_MAX = 16, GATHER_MEAN = 256 };

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
