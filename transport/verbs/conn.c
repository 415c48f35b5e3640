/* conn.c - how two processes come to have a connection: each tells the other the numbers of its queue pair by datagram.
 *
 * Both may begin, at the same time or not; each has one queue pair for the other, whoever began. A datagram says what
 * its sender has (`knows`: it has our numbers, so its queue pair receives) and what it lacks (`asks`). Whoever is asked
 * answers; whoever lacks something asks again after a while. So datagrams may be lost or doubled. A process sends on a
 * connection only once it has read `knows` from its peer.
 *
 * A peer that computes answers when it next calls MPI: asking ends only after DENIZEN_CONNECT_TIMEOUT. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum { SLOTS = 128, GRH = 40, QKEY = 0x444e5a31, MIN_RNR_TIMER = 12, RETRIES = 6 };
#define FIRST_PAUSE_NS 20000000u
#define LONGEST_PAUSE_NS 500000000u

struct hello {
    uint64_t to, from;     /* nonces */
    uint64_t credit_addr;
    uint32_t credit_key;
    uint32_t rank, qpn, psn;
    uint32_t knows, asks;
};
_Static_assert(sizeof(struct hello) == 48, "struct hello is a wire format");
enum { SLOT = GRH + sizeof(struct hello) };

static struct dz_region in, out;
static unsigned out_next;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int post_slot(uint64_t index)
{
    struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)in.base + index * SLOT, .length = SLOT, .lkey = in.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;
    return -ibv_post_recv(dz_v.ud, &wr, &bad);
}

static int make_ud(void)
{
    struct ibv_qp_init_attr init = {.send_cq = dz_v.send_cq, .recv_cq = dz_v.recv_cq, .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    dz_v.ud = dz_ibv.create_qp(dz_v.pd, &init);
    if (!dz_v.ud)
        return -ENOMEM;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)dz_v.port, .qkey = QKEY};
    if (dz_ibv.modify_qp(dz_v.ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        return -EIO;
    attr.qp_state = IBV_QPS_RTR;
    if (dz_ibv.modify_qp(dz_v.ud, &attr, IBV_QP_STATE))
        return -EIO;
    attr.qp_state = IBV_QPS_RTS;
    return dz_ibv.modify_qp(dz_v.ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -EIO : 0;
}

static uint64_t draw_nonce(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t x = (uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)getpid() << 40 ^ dz_boot.host_id;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 27;
}

int dz_conn_open(void)
{
    int rc = dz_region_alloc(SLOTS * SLOT, &in);
    if (!rc)
        rc = dz_region_alloc(SLOTS * sizeof(struct hello), &out);
    if (!rc)
        rc = make_ud();
    for (uint64_t i = 0; !rc && i < SLOTS; i++)
        rc = post_slot(i);
    if (rc) {
        dz_conn_close();
        return rc;
    }
    dz_v.blob.nonce = draw_nonce();
    dz_v.blob.ud_qpn = dz_v.ud->qp_num;
    return 0;
}

void dz_conn_close(void)
{
    if (dz_v.ud)
        dz_ibv.destroy_qp(dz_v.ud);
    dz_v.ud = NULL;
    dz_region_free(&in);
    dz_region_free(&out);
}

static struct ibv_ah_attr route(const struct dz_verbs_blob *to)
{
    struct ibv_ah_attr attr = {.port_num = (uint8_t)dz_v.port, .dlid = to->lid};
    /* InfiniBand within one subnet needs no global header; another subnet shows in the upper half of the GID */
    if (dz_v.blob.ethernet || to->gid.global.subnet_prefix != dz_v.blob.gid.global.subnet_prefix) {
        attr.is_global = 1;
        attr.grh.dgid = to->gid;
        attr.grh.sgid_index = (uint8_t)dz_v.gid_index;
        attr.grh.hop_limit = 64;
    }
    return attr;
}

/* Lost is as good as late: errors here show up as no answer. */
static void say(struct dz_ep *ep)
{
    struct ibv_ah_attr way = route(&ep->remote);
    if (!ep->ah && !(ep->ah = dz_ibv.create_ah(dz_v.pd, &way)))
        return;
    struct hello *h = (struct hello *)(void *)(out.base + out_next * sizeof *h);
    out_next = (out_next + 1) % SLOTS;
    *h = (struct hello){.to = ep->remote.nonce, .from = dz_v.blob.nonce, .rank = (uint32_t)dz_boot.rank,
                        .qpn = ep->qp->qp_num, .psn = ep->psn, .knows = ep->has_remote,
                        .asks = atomic_load_explicit(&ep->state, memory_order_relaxed) != DZ_EP_READY,
                        .credit_addr = (uint64_t)(uintptr_t)ep->credit, .credit_key = ep->ring.mr->rkey};
    struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)h, .length = sizeof *h, .lkey = out.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ep->ah, .remote_qpn = ep->remote.ud_qpn, .remote_qkey = QKEY}}, *bad;
    if (!ibv_post_send(dz_v.ud, &wr, &bad))
        atomic_fetch_add_explicit(&dz_v.signaled, 1, memory_order_relaxed);
}

static int accept_numbers(struct dz_ep *ep, const struct hello *h)
{
    uint8_t mtu = ep->remote.mtu < dz_v.blob.mtu ? ep->remote.mtu : dz_v.blob.mtu;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)mtu, .dest_qp_num = h->qpn,
                               .rq_psn = h->psn, .max_dest_rd_atomic = 1, .min_rnr_timer = MIN_RNR_TIMER,
                               .ah_attr = route(&ep->remote)};
    if (dz_ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return -EIO;
    /* never 7, which is for ever */
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = (uint8_t)dz_set.ib_timeout, .retry_cnt = RETRIES,
                                .rnr_retry = RETRIES, .sq_psn = ep->psn, .max_rd_atomic = 1};
    if (dz_ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
        return -EIO;
    ep->credit_addr = h->credit_addr;
    ep->credit_key = h->credit_key;
    ep->has_remote = true;
    return 0;
}

static int begin(struct dz_ep *ep)
{
    int rc = dz_ep_prepare(ep);
    if (rc)
        return rc;
    atomic_store_explicit(&ep->state, DZ_EP_CONNECTING, memory_order_relaxed);
    ep->since_ns = now_ns();
    ep->again_ns = ep->since_ns + FIRST_PAUSE_NS;
    dz_v.connecting = true;
    return 0;
}

int dz_ep_connect(struct dz_ep *ep)
{
    switch (atomic_load_explicit(&ep->state, memory_order_relaxed)) {
    case DZ_EP_READY:
        return 0;
    case DZ_EP_FAILED:
        return -EHOSTDOWN;
    case DZ_EP_IDLE: {
        int rc = begin(ep);
        if (rc)
            return rc;
        say(ep);
        break;
    }
    default:
        break;
    }
    return -EAGAIN;
}

static void heard(const struct hello *h)
{
    struct dz_ep *ep = h->rank < (uint32_t)dz_boot.size && h->to == dz_v.blob.nonce ? dz_v.eps[h->rank] : NULL;
    if (!ep || ep->remote.nonce != h->from)
        return;
    int state = atomic_load_explicit(&ep->state, memory_order_relaxed);
    if (state == DZ_EP_FAILED)
        return;
    if (state == DZ_EP_IDLE && begin(ep))
        return; /* no memory: it will ask again */
    bool first = !ep->has_remote;
    if (first && accept_numbers(ep, h)) {
        dz_ep_fail(ep);
        return;
    }
    if (h->knows && state != DZ_EP_READY) {
        atomic_store_explicit(&ep->state, DZ_EP_READY, memory_order_release); /* acquire: dz_ep_room */
        atomic_store_explicit(&ep->limit, ep->depth - DZ_CONTROL_ROOM, memory_order_release); /* acquire: post_eight */
    }
    if (h->asks || first)
        say(ep);
}

void dz_conn_arrived(uint64_t index)
{
    struct hello h;
    memcpy(&h, in.base + index * SLOT + GRH, sizeof h);
    heard(&h);
    if (post_slot(index))
        dz_count(post_failed); /* one buffer less for datagrams: they are asked for again */
}

static void ask_again(struct dz_ep *ep, uint64_t now)
{
    if (now - ep->since_ns > (uint64_t)dz_set.connect_timeout * 1000000000u) {
        dz_ep_fail(ep);
        return;
    }
    say(ep);
    uint64_t pause = (uint64_t)FIRST_PAUSE_NS << (ep->asked < 5 ? ep->asked : 5);
    ep->asked++;
    ep->again_ns = now + (pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS);
}

int dz_conn_poll(void)
{
    static unsigned calls;
    if (!dz_v.connecting || ++calls % 64)
        return 0;
    uint64_t now = now_ns();
    dz_v.connecting = false;
    for (int r = 0; r < dz_boot.size; r++) {
        struct dz_ep *ep = dz_v.eps[r];
        if (!ep || atomic_load_explicit(&ep->state, memory_order_relaxed) != DZ_EP_CONNECTING)
            continue;
        dz_v.connecting = true;
        if (now >= ep->again_ns)
            ask_again(ep, now);
    }
    return 0;
}
