/* put.c - long plain messages: the receiver registers its buffer and says where it lies, the sender registers its own and
 * writes. Both registrations last for this message (mem.c says why), so this pays from some hundred KiB on, which is
 * where DENIZEN_EAGER puts it. */
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

struct dz_put {
    struct dz_put *next;
    struct ibv_mr *mr;
    uint64_t pos;
    void *cookie;
};

int dz_verbs_expose(struct dz_peer *peer, const struct dz_view *v, size_t len, struct dz_landing *at, void **handle)
{
    struct ibv_mr *mr;
    (void)peer;
    if (v->layout || !len)
        return -ENOTSUP;
    int rc = dz_user_reg(v->base, len, true, &mr);
    if (rc)
        return rc;
    *at = (struct dz_landing){.addr = (uint64_t)(uintptr_t)v->base, .key = mr->rkey};
    *handle = mr;
    return 0;
}

void dz_verbs_unexpose(struct dz_peer *peer, void *handle)
{
    (void)peer;
    dz_user_unreg(handle);
}

/* ep.lock held. */
static int post(struct dz_ep *ep, const struct dz_landing *at, const struct dz_put *p, const char *from, size_t len,
                uint64_t *pos)
{
    size_t most = dz_v.port_attr.max_msg_sz, pieces = (len + most - 1) / most;
    int rc = pieces > ep->depth / 2 ? -ENOTSUP : dz_ep_room(ep, (unsigned)pieces, DZ_CONTROL_ROOM);
    for (size_t off = 0; !rc && off < len; off += most) {
        size_t n = len - off < most ? len - off : most;
        struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)from + off, .length = (uint32_t)n, .lkey = p->mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = {.remote_addr = at->addr + off, .rkey = at->key}};
        rc = dz_ep_post(ep, &wr, &wr, 1, off + n == len, pos);
    }
    return rc; /* -EAGAIN after some pieces: they will be written again */
}

int dz_verbs_put(struct dz_peer *peer, const struct dz_landing *at, const struct dz_view *v, size_t len, void *cookie)
{
    struct dz_ep *ep = peer->ep;
    if (v->layout)
        return -ENOTSUP;
    struct dz_put *p = malloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct dz_put){.cookie = cookie};
    int rc = dz_user_reg(v->base, len, false, &p->mr);
    if (!rc) {
        dz_ep_lock(ep);
        rc = post(ep, at, p, v->base, len, &p->pos);
        dz_ep_unlock(ep);
        if (rc)
            dz_user_unreg(p->mr);
    }
    if (rc) {
        free(p);
        return rc;
    }
    dz_count(puts);
    *ep->puts_tail = p;
    ep->puts_tail = &p->next;
    return 0;
}

static void *take_first(struct dz_ep *ep)
{
    struct dz_put *p = ep->puts;
    void *cookie = p->cookie;
    if (!(ep->puts = p->next))
        ep->puts_tail = &ep->puts;
    dz_user_unreg(p->mr);
    free(p);
    return cookie;
}

void dz_puts_over(struct dz_ep *ep)
{
    while (ep->puts && ep->puts->pos <= atomic_load_explicit(&ep->done, memory_order_relaxed))
        dz_put_done(take_first(ep));
}

void dz_puts_drop(struct dz_ep *ep)
{
    while (ep->puts)
        take_first(ep);
}
