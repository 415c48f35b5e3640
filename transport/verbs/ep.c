/* ep.c - a connection: its send queue, messages, completions, and how its end is found.
 *
 * The send queue is counted in work requests: `posted` goes up with each, `done` follows with completions, of which one
 * in DZ_SIGNAL_EVERY is asked for, and those that somebody waits for. A completion says that everything posted before
 * it is over as well. wr_id is the peer's rank and the low bits of the position.
 *
 * Messages are SENDs of at most DZ_MSG_BYTES from a ring of DZ_CREDITS buffers. The receiver counts what it has taken and
 * writes that count into our credit word now and then; a ring buffer is used again only when its message was taken, so
 * neither its completion nor the receiver's queue can be in the way. Immediate data takes receive work requests too:
 * channels get as many as are set aside for them (dz_recv_post), so the shared queue never runs dry.
 *
 * A peer's end shows as an error completion. Who only waits posts nothing, so dz_ep_dead, asked once in a while, posts
 * an empty write and looks for its completion. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

enum { BATCH = 16 };
#define POSITION(id) ((id) & (((uint64_t)1 << DZ_RANK_SHIFT) - 1))
#define UD_ID UINT64_MAX

struct wire {
    uint32_t rank, unused;
    struct dz_am am;
};
enum { RING_BYTES = DZ_CREDITS * DZ_MSG_BYTES };

struct chunk { /* receive buffers, added when needed */
    struct chunk *next;
    struct dz_region mem;
};
static struct chunk *chunks;
static unsigned recvs;

/* ---- receive work requests */
static int post_recv(uint64_t addr, uint32_t lkey)
{
    struct ibv_sge sge = {.addr = addr, .length = DZ_MSG_BYTES, .lkey = lkey};
    /* the buffer's address names its chunk when it comes back */
    struct ibv_recv_wr wr = {.wr_id = addr, .sg_list = &sge, .num_sge = 1}, *bad;
    return -ibv_post_srq_recv(dz_v.srq, &wr, &bad);
}

int dz_recv_post(unsigned n)
{
    if (recvs + n > dz_v.srq_max)
        return -ENOSPC;
    struct chunk *c = malloc(sizeof *c);
    int rc = c ? dz_region_alloc((size_t)n * DZ_MSG_BYTES, &c->mem) : -ENOMEM;
    if (rc) {
        free(c);
        return rc;
    }
    c->next = chunks;
    chunks = c;
    for (unsigned i = 0; !rc && i < n; i++)
        rc = post_recv((uint64_t)(uintptr_t)c->mem.base + (uint64_t)i * DZ_MSG_BYTES, c->mem.mr->lkey);
    recvs += n;
    return rc;
}

static uint32_t key_of(uint64_t addr)
{
    const struct chunk *c = chunks;
    while (addr - (uint64_t)(uintptr_t)c->mem.base >= c->mem.mr->length)
        c = c->next;
    return c->mem.mr->lkey;
}

void dz_recv_fini(void)
{
    for (struct chunk *c; (c = chunks);) {
        chunks = c->next;
        dz_region_free(&c->mem);
        free(c);
    }
    recvs = 0;
}

/* ---- birth and end */
struct dz_ep *dz_ep_create(struct dz_peer *peer, const struct dz_verbs_blob *remote)
{
    struct dz_ep *ep = calloc(1, sizeof *ep);
    if (ep) {
        ep->peer = peer;
        ep->remote = *remote;
        ep->depth = dz_v.sq_depth;
        ep->puts_tail = &ep->puts;
    }
    return ep;
}

static struct ibv_qp *make_qp(struct dz_ep *ep)
{
    struct ibv_qp_init_attr init = {.send_cq = dz_v.send_cq, .recv_cq = dz_v.recv_cq, .srq = dz_v.srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = ep->depth, .max_send_sge = dz_v.max_sge,
                                            .max_inline_data = dz_v.max_inline}};
    struct ibv_qp *qp;
    while (!(qp = dz_ibv.create_qp(dz_v.pd, &init)) && init.cap.max_send_wr / 2 >= 2 * DZ_CONTROL_ROOM)
        init.cap.max_send_wr /= 2; /* the limits of a device do not all hold together */
    if (qp && init.cap.max_send_wr < ep->depth)
        ep->depth = init.cap.max_send_wr;
    return qp;
}

int dz_ep_prepare(struct dz_ep *ep)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)dz_v.port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    int rc = dz_region_alloc(RING_BYTES + 64, &ep->ring);
    if (rc)
        return rc;
    ep->credit = (_Atomic uint64_t *)(void *)(ep->ring.base + RING_BYTES);
    ep->qp = make_qp(ep);
    rc = -ENOMEM;
    if (!ep->qp)
        goto free_ring;
    rc = -EIO;
    if (dz_ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        goto destroy_qp;
    rc = dz_recv_post(DZ_CREDITS);
    if (rc && rc != -ENOSPC) /* with a short queue the receiver-not-ready retries hold senders back */
        goto destroy_qp;
    ep->psn = ep->qp->qp_num & 0xffffff;
    return 0;
destroy_qp:
    dz_ibv.destroy_qp(ep->qp);
    ep->qp = NULL;
free_ring:
    dz_region_free(&ep->ring);
    return rc;
}

void dz_ep_destroy(struct dz_ep *ep)
{
    if (ep->qp)
        dz_ibv.destroy_qp(ep->qp);
    dz_puts_drop(ep);
    if (ep->ah)
        dz_ibv.destroy_ah(ep->ah);
    dz_region_free(&ep->ring);
    free(ep);
}

void dz_ep_fail(struct dz_ep *ep)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (atomic_exchange_explicit(&ep->state, DZ_EP_FAILED, memory_order_relaxed) == DZ_EP_FAILED)
        return;
    dz_count(ep_failed);
    atomic_store_explicit(&ep->limit, 0, memory_order_relaxed);
    if (ep->qp) /* so that the peer finds out as well: what it posts now fails */
        dz_ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE);
}

/* ---- the send queue */
int dz_ep_room(struct dz_ep *ep, unsigned n, unsigned reserve)
{
    /* release: heard, in conn.c */
    if (__builtin_expect(atomic_load_explicit(&ep->state, memory_order_acquire) != DZ_EP_READY, 0))
        return atomic_load_explicit(&ep->state, memory_order_relaxed) == DZ_EP_FAILED ? -EHOSTDOWN : -EAGAIN;
    uint64_t used = ep->posted - atomic_load_explicit(&ep->done, memory_order_relaxed);
    return used + n + reserve <= ep->depth ? 0 : -EAGAIN;
}

int dz_ep_post(struct dz_ep *ep, struct ibv_send_wr *first, struct ibv_send_wr *last, unsigned n, bool signal,
               uint64_t *pos)
{
    struct ibv_send_wr *bad;
    uint64_t end = ep->posted + n;
    last->wr_id = dz_ep_id(ep, end); /* the others of a chain: of the same rank */
    if (signal || end - ep->signaled_at >= DZ_SIGNAL_EVERY || end - ep->signaled_at >= ep->depth / 2) {
        if (atomic_fetch_add_explicit(&dz_v.signaled, 1, memory_order_relaxed) >= dz_v.signaled_max) {
            atomic_fetch_sub_explicit(&dz_v.signaled, 1, memory_order_relaxed);
            return -EAGAIN;
        }
        last->send_flags |= IBV_SEND_SIGNALED;
        signal = true;
    }
    int rc = ibv_post_send(ep->qp, first, &bad);
    if (__builtin_expect(rc != 0, 0)) {
        if (signal)
            atomic_fetch_sub_explicit(&dz_v.signaled, 1, memory_order_relaxed);
        if (rc == ENOMEM && bad == first)
            return -EAGAIN;
        dz_count(post_failed);
        dz_ep_fail(ep); /* a part of a chain may be on its way: nothing can be said about it any more */
        return -EHOSTDOWN;
    }
    ep->posted = end;
    if (signal) {
        ep->signaled_at = end;
        dz_count(signaled);
    }
    dz_count(doorbells);
    if (pos)
        *pos = end;
    return 0;
}

/* bytes: 8 or 0. Lock held. */
static int write_word(struct dz_ep *ep, uint64_t value, unsigned bytes, uint64_t raddr, uint32_t rkey, bool signal,
                      uint64_t *pos)
{
    struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)&value, .length = bytes};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = bytes != 0, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_INLINE, .wr.rdma = {.remote_addr = raddr, .rkey = rkey}};
    int rc = dz_ep_room(ep, 1, 0);
    return rc ? rc : dz_ep_post(ep, &wr, &wr, 1, signal, pos);
}

int dz_ep_write_word(struct dz_ep *ep, uint64_t value, uint64_t raddr, uint32_t rkey)
{
    dz_ep_lock(ep);
    int rc = write_word(ep, value, 8, raddr, rkey, false, NULL);
    dz_ep_unlock(ep);
    return rc;
}

/* An empty write: its completion says that all before it has arrived. */
static int probe(struct dz_ep *ep, uint64_t *pos)
{
    dz_ep_lock(ep);
    int rc = write_word(ep, 0, 0, ep->credit_addr, ep->credit_key, true, pos);
    dz_ep_unlock(ep);
    return rc;
}

/* ---- messages */
int dz_ep_am_post(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len)
{
    struct dz_ep *ep = peer->ep;
    int rc = dz_ep_connect(ep);
    if (rc)
        return rc;
    /* acquire: the peer has taken the message, so its buffer is ours again */
    if (ep->sent - atomic_load_explicit(ep->credit, memory_order_acquire) >= DZ_CREDITS)
        return -EAGAIN;
    char *buf = ep->ring.base + ep->sent % DZ_CREDITS * DZ_MSG_BYTES;
    struct wire w = {.rank = (uint32_t)dz_boot.rank, .am = *am};
    w.am.bytes = (uint32_t)len;
    struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)buf, .length = (uint32_t)(sizeof w + len),
                          .lkey = ep->ring.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    dz_ep_lock(ep);
    rc = dz_ep_room(ep, 1, DZ_CONTROL_ROOM / 2);
    if (!rc) {
        memcpy(buf, &w, sizeof w);
        if (len)
            dz_view_read(v, off, len, buf + sizeof w);
        if (sge.length <= dz_v.max_inline)
            wr.send_flags = IBV_SEND_INLINE;
        rc = dz_ep_post(ep, &wr, &wr, 1, false, NULL);
    }
    dz_ep_unlock(ep);
    if (!rc)
        ep->sent++;
    return rc;
}

/* Tells the peer what has been taken, when it may be short of credits. */
static void tell_credit(struct dz_ep *ep)
{
    if (ep->taken - ep->told < DZ_CREDITS / 2)
        return;
    if (!dz_ep_write_word(ep, ep->taken, ep->credit_addr, ep->credit_key))
        ep->told = ep->taken; /* else with the next message: control words have room of their own */
}

static void deliver(uint64_t addr, uint32_t bytes)
{
    const struct wire *w = (const struct wire *)(uintptr_t)addr;
    struct dz_ep *ep = bytes >= sizeof *w && w->rank < (uint32_t)dz_boot.size ? dz_v.eps[w->rank] : NULL;
    if (!ep || bytes != sizeof *w + w->am.bytes)
        return;
    ep->taken++;
    dz_am_deliver(ep->peer, &w->am, w + 1);
    tell_credit(ep);
}

/* ---- completions */
static void received(const struct ibv_wc *wc)
{
    if (wc->qp_num == dz_v.ud->qp_num) {
        if (wc->status == IBV_WC_SUCCESS)
            dz_conn_arrived(wc->wr_id);
        return;
    }
    if (wc->status == IBV_WC_SUCCESS) {
        if (wc->wc_flags & IBV_WC_WITH_IMM)
            dz_chan_imm(ntohl(wc->imm_data));
        else
            deliver(wc->wr_id, wc->byte_len);
    }
    if (post_recv(wc->wr_id, key_of(wc->wr_id)))
        dz_count(post_failed);
}

static int poll_received(void)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(dz_v.recv_cq, BATCH, wc);
    for (int i = 0; i < n; i++)
        received(&wc[i]);
    return n;
}

static void sent(const struct ibv_wc *wc)
{
    if (wc->wr_id == UD_ID) {
        atomic_fetch_sub_explicit(&dz_v.signaled, 1, memory_order_relaxed);
        return;
    }
    struct dz_ep *ep = dz_v.eps[wc->wr_id >> DZ_RANK_SHIFT];
    if (wc->status != IBV_WC_SUCCESS) {
        dz_ep_fail(ep);
        return;
    }
    atomic_fetch_sub_explicit(&dz_v.signaled, 1, memory_order_relaxed);
    uint64_t done = atomic_load_explicit(&ep->done, memory_order_relaxed);
    done += POSITION(wc->wr_id - done);
    atomic_store_explicit(&ep->done, done, memory_order_release); /* acquire: send_done */
    atomic_store_explicit(&ep->limit, done + ep->depth - DZ_CONTROL_ROOM, memory_order_relaxed);
    if (ep->alive_at && done >= ep->alive_at)
        ep->alive_at = 0;
    dz_puts_over(ep);
}

static void poll_sent(void)
{
    struct ibv_wc wc[BATCH];
    if (!atomic_load_explicit(&dz_v.signaled, memory_order_relaxed))
        return;
    int n = ibv_poll_cq(dz_v.send_cq, BATCH, wc);
    for (int i = 0; i < n; i++)
        sent(&wc[i]);
}

int dz_ep_poll(void)
{
    poll_sent();
    return poll_received();
}

/* ---- is it there? */
bool dz_ep_dead(struct dz_peer *peer)
{
    struct dz_ep *ep = peer->ep;
    int state = atomic_load_explicit(&ep->state, memory_order_relaxed);
    if (state == DZ_EP_READY && !ep->alive_at)
        probe(ep, &ep->alive_at);
    if (state == DZ_EP_FAILED)
        dz_puts_drop(ep);
    return state == DZ_EP_FAILED;
}

int dz_ep_flush(void)
{
    int rc = 0;
    for (int r = 0; r < dz_boot.size; r++) {
        struct dz_ep *ep = dz_v.eps[r];
        if (!ep || atomic_load_explicit(&ep->state, memory_order_relaxed) != DZ_EP_READY)
            continue;
        if (atomic_load_explicit(&ep->done, memory_order_acquire) == ep->posted)
            continue;
        if (ep->signaled_at != ep->posted)
            probe(ep, NULL);
        rc = -EAGAIN;
    }
    return rc;
}
