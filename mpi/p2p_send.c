/* p2p_send.c - how a message leaves (p2p.h has the ways).
 *
 * A send is pushed from where it stands (step, off) until the transport has no room; then it waits in its peer's queue
 * and is pushed from there. It is on the busy list from its first wait to its completion. Lock held throughout. */
#include <errno.h>

#include "mpi/p2p.h"

static int post(struct dz_p2p *p, struct dz_peer *peer, int kind, uint64_t a, uint64_t b, uint64_t room)
{
    struct dz_am am = {.kind = (uint16_t)kind, .src = p->req.comm->rank, .tag = p->tag,
                       .ctx = p->req.comm->ctx + p->coll, .a = a, .b = b};
    uint64_t n = p->limit - p->off < room ? p->limit - p->off : room;
    int rc = peer->t->am_post(peer, &am, &p->view, p->off, n);
    if (!rc)
        p->off += n;
    return rc;
}

static int push_rts(struct dz_p2p *p, struct dz_peer *peer)
{
    /* where the receiver finds the bytes, if they lie as they are sent */
    uint64_t raddr = p->view.layout ? 0 : (uint64_t)(uintptr_t)p->view.base;
    struct dz_view v = {.base = (char *)&raddr, .bytes = sizeof raddr};
    struct dz_am am = {.kind = DZ_AM_RTS, .src = p->req.comm->rank, .tag = p->tag, .ctx = p->req.comm->ctx + p->coll,
                       .a = p->view.bytes, .b = (uint64_t)(uintptr_t)p};
    return peer->t->am_post(peer, &am, &v, 0, sizeof raddr);
}

static bool is_long(const struct dz_p2p *p)
{
    return p->view.bytes > (uint64_t)dz_set.eager;
}

/* 0: all that can be handed over has been; else the transport's word */
static int push(struct dz_p2p *p, struct dz_peer *peer)
{
    uint64_t self = (uint64_t)(uintptr_t)p;
    int rc = 0;
    if (peer->gone)
        return -EHOSTDOWN;
    if (p->step == DZ_STEP_HEAD) {
        rc = is_long(p) ? push_rts(p, peer)
                        : post(p, peer, DZ_AM_EAGER, p->view.bytes, p->acked ? 0 : self, peer->am_max);
        if (!rc)
            p->step = DZ_STEP_PIECES;
        if (!rc && is_long(p))
            return 0;
    }
    if (p->step == DZ_STEP_PUT) {
        rc = peer->t->put(peer, &p->at, &p->view, p->limit, p);
        if (rc && rc != -EAGAIN && rc != -EHOSTDOWN) {
            p->step = DZ_STEP_DATA; /* memory that the device does not take */
            rc = 0;
        } else if (!rc) {
            p->step = DZ_STEP_PUT_SAY;
        }
    }
    if (p->step == DZ_STEP_PUT_SAY) {
        struct dz_am am = {.kind = DZ_AM_DATA, .flags = DZ_DATA_PUT, .src = p->req.comm->rank, .tag = p->tag,
                           .b = p->rcookie};
        rc = peer->t->am_post(peer, &am, &p->view, 0, 0);
        if (!rc)
            p->step = DZ_STEP_PUT_SAID;
    } else if (p->step == DZ_STEP_DATA)
        while (!rc && p->off < p->limit)
            rc = post(p, peer, DZ_AM_DATA, 0, p->rcookie, peer->am_max);
    else if (p->step == DZ_STEP_PIECES)
        while (!rc && p->off < p->limit)
            rc = post(p, peer, DZ_AM_PIECE, 0, 0, peer->am_max);
    return rc;
}

/* Has been pushed as far as it goes. */
static void settle(struct dz_p2p *p, int rc)
{
    if (rc)
        dz_p2p_complete(p, dz_class_of_errno(rc));
    else if (p->step == DZ_STEP_DATA || (p->step == DZ_STEP_PUT_SAID && p->put_over) || (!is_long(p) && p->acked))
        dz_p2p_complete(p, MPI_SUCCESS);
}

static bool push_queued(struct dz_out *out, struct dz_peer *peer)
{
    struct dz_p2p *p = DZ_LINKED(out, struct dz_p2p, out);
    int rc = push(p, peer);
    if (rc == -EAGAIN)
        return false;
    p->queued = false;
    settle(p, rc);
    return true;
}

static void queue(struct dz_p2p *p, struct dz_peer *peer)
{
    dz_p2p_count(am_full);
    p->queued = true;
    p->out.push = push_queued;
    dz_out_append(peer, &p->out);
}

/* A buffered send is complete when its bytes are copied: another request, which nobody waits for, carries them. */
static int begin_carrier(struct dz_p2p *p)
{
    struct dz_p2p *c = dz_p2p_create(DZ_REQ_SEND, false, p->buf, p->count, p->type, p->peer, p->tag, p->req.comm,
                                     p->coll, p->mode);
    int rc = c ? dz_bsend_copy(c) : -ENOMEM;
    if (!rc)
        rc = dz_p2p_send_begin(c);
    if (rc) {
        if (c) {
            dz_bsend_done(c);
            dz_p2p_destroy(c);
        }
        return rc;
    }
    if (atomic_load_explicit(&c->req.complete, memory_order_relaxed))
        dz_p2p_destroy(c);
    else
        c->req.freed = true;
    dz_p2p_complete(p, MPI_SUCCESS);
    return 0;
}

bool dz_p2p_send_at_once(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm,
                         int coll)
{
    if (dest < 0)
        return false;
    struct dz_peer *peer = dz_comm_peer(comm, dest);
    struct dz_view v = dz_type_view(type, buf, count);
    if (v.bytes > peer->am_max || v.bytes > (uint64_t)dz_set.eager || peer->out_head || !peer->t || peer->gone)
        return false;
    struct dz_am am = {.kind = DZ_AM_EAGER, .src = comm->rank, .tag = tag, .ctx = comm->ctx + (uint64_t)coll,
                       .a = v.bytes};
    if (peer->t->am_post(peer, &am, &v, 0, v.bytes))
        return false; /* no room; an error shows up again */
    dz_p2p_count(eager);
    return true;
}

int dz_p2p_send_begin(struct dz_p2p *p)
{
    struct dz_peer *peer = p->req.peer;
    if (p->peer == MPI_PROC_NULL) {
        dz_p2p_complete(p, MPI_SUCCESS);
        return 0;
    }
    if (peer->gone || !peer->t)
        return peer->gone ? -EHOSTDOWN : -EHOSTUNREACH;
    if (p->buffered)
        return begin_carrier(p);
    p->step = DZ_STEP_HEAD;
    p->off = 0;
    p->limit = p->view.bytes;
    p->acked = p->mode != DZ_SEND_SYNC;
    if (is_long(p))
        dz_p2p_count(rendezvous);
    else
        dz_p2p_count(eager);
    int rc = peer->out_head ? -EAGAIN : push(p, peer);
    if (rc == -EAGAIN) {
        dz_p2p_busy(p);
        queue(p, peer);
        return 0;
    }
    settle(p, rc);
    if (!atomic_load_explicit(&p->req.complete, memory_order_relaxed))
        dz_p2p_busy(p);
    return 0;
}

void dz_put_done(void *cookie)
{
    struct dz_p2p *p = cookie;
    p->put_over = true;
    if (p->step == DZ_STEP_PUT_SAID)
        dz_p2p_complete(p, MPI_SUCCESS);
}

/* Clear to send: the receiver cannot fetch the bytes, so they are put where it says, or streamed. */
static void clear_to_send(struct dz_p2p *p, struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_cts cts;
    memcpy(&cts, payload, sizeof cts);
    p->limit = cts.bytes;
    p->at = cts.at;
    p->rcookie = am->b;
    p->off = 0;
    p->put_over = false;
    p->step = am->flags & DZ_CTS_AT ? DZ_STEP_PUT : DZ_STEP_DATA;
    int rc = peer->out_head ? -EAGAIN : push(p, peer);
    if (rc == -EAGAIN)
        queue(p, peer);
    else
        settle(p, rc);
}

void dz_p2p_send_deliver(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_p2p *p = (struct dz_p2p *)(uintptr_t)am->a;
    if (peer->buried)
        return; /* its sends have been failed, and with them what `a` names */
    switch (am->kind) {
    case DZ_AM_CTS:
        clear_to_send(p, peer, am, payload);
        break;
    case DZ_AM_FIN:
        dz_p2p_complete(p, am->flags ? MPI_ERR_OTHER : MPI_SUCCESS);
        break;
    default: /* DZ_AM_ACK */
        p->acked = true;
        if (!p->queued)
            dz_p2p_complete(p, MPI_SUCCESS);
    }
}
