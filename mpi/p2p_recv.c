/* p2p_recv.c - how a message comes in (p2p.h has the ways).
 *
 * The bytes of an expected message go from the transport's memory straight into the receive buffer; those of an
 * unexpected one into a record of its own, and from there when its receive comes, even while the rest is on its way.
 * A message longer than its receive is taken to its end, what fits is delivered, and the receive says so.
 * Lock held throughout. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"

void dz_msg_destroy(struct dz_msg *m)
{
    free(m);
}

static void answer(struct dz_peer *peer, int kind, uint64_t cookie, int flags, uint64_t b, const void *data, size_t n)
{
    struct dz_am am = {.kind = (uint16_t)kind, .flags = (uint16_t)flags, .src = dz_boot.rank, .a = cookie, .b = b};
    if (dz_post(peer, &am, data, n) == -ENOMEM)
        dz_fatal(MPI_ERR_NO_MEM, "no memory for an answer to rank %d: a send there would never complete", peer->rank);
}

/* p's message is known: from whom, how long. */
static void identify(struct dz_p2p *p, const struct dz_got *g, uint64_t bytes)
{
    MPI_Status *s = &p->req.status;
    uint64_t room = p->view.bytes;
    s->MPI_SOURCE = g->source;
    s->MPI_TAG = g->tag;
    s->_ucount = bytes < room ? bytes : room;
    s->MPI_ERROR = bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

static void write_at(struct dz_p2p *p, uint64_t off, const void *data, uint64_t n)
{
    uint64_t room = p->view.bytes;
    if (off >= room || !n)
        return;
    dz_view_write(&p->view, off, n < room - off ? n : room - off, data);
}

static void finish(struct dz_p2p *p)
{
    dz_p2p_complete(p, p->req.status.MPI_ERROR);
}

/* The bytes are still in the sender: fetch them, or have them sent. */
static void fetch(struct dz_p2p *p, const struct dz_msg *m)
{
    struct dz_peer *peer = m->peer;
    uint64_t n = m->bytes < p->view.bytes ? m->bytes : p->view.bytes, cookie = m->cookie;
    int rc = -ENOTSUP;
    if (!n)
        rc = 0;
    else if (m->raddr)
        rc = peer->t->get(peer, m->raddr, &p->view, 0, n);
    if (rc && rc != -EHOSTDOWN) { /* also memory that the kernel does not copy, of a device perhaps */
        struct dz_cts cts = {.bytes = n};
        p->in = (struct dz_msg){.recv = p, .peer = peer, .bytes = n};
        dz_p2p_busy(p);
        rc = peer->t->expose(peer, &p->view, n, &cts.at, &p->exposed);
        answer(peer, DZ_AM_CTS, cookie, rc ? 0 : DZ_CTS_AT, (uint64_t)(uintptr_t)p, &cts, sizeof cts);
        return;
    }
    answer(peer, DZ_AM_FIN, cookie, rc != 0, 0, NULL, 0);
    if (rc)
        dz_p2p_complete(p, dz_class_of_errno(rc));
    else
        finish(p);
}

int dz_p2p_recv_message(struct dz_p2p *p, struct dz_msg *m)
{
    identify(p, &m->got, m->bytes);
    if (m->peer->buried && !dz_msg_whole(m)) { /* a matched probe had it */
        dz_msg_destroy(m);
        dz_p2p_complete(p, MPI_ERR_PROC_FAILED);
        return 0;
    }
    if (m->rts) {
        fetch(p, m);
        dz_msg_destroy(m);
        return 0;
    }
    if (m->cookie)
        answer(m->peer, DZ_AM_ACK, m->cookie, 0, 0, NULL, 0);
    write_at(p, 0, m->data, m->have);
    if (m->have == m->bytes) {
        dz_msg_destroy(m);
        finish(p);
        return 0;
    }
    m->recv = p; /* the rest goes straight to its buffer */
    p->in.peer = m->peer;
    dz_p2p_busy(p);
    return 0;
}

int dz_p2p_recv_begin(struct dz_p2p *p)
{
    struct dz_peer *peer = p->req.peer;
    if (p->peer == MPI_PROC_NULL) {
        p->req.status.MPI_SOURCE = MPI_PROC_NULL;
        dz_p2p_complete(p, MPI_SUCCESS);
        return 0;
    }
    if (peer && !peer->t)
        return -EHOSTUNREACH;
    struct dz_mq *q = p->req.comm->mq[p->coll];
    struct dz_got *g = dz_mq_search(q, p->peer, p->tag, true);
    if (g)
        return dz_p2p_recv_message(p, DZ_LINKED(g, struct dz_msg, got));
    if (peer ? peer->gone : dz_p2p_any_gone(p->req.comm))
        return -EHOSTDOWN;
    p->want.source = p->peer;
    p->want.tag = p->tag;
    p->posted = true;
    dz_mq_post(q, &p->want);
    return 0;
}

/* ---- arrivals */
static struct dz_msg *remember(struct dz_mq *q, struct dz_peer *peer, const struct dz_am *am, bool rts)
{
    struct dz_msg *m = malloc(sizeof *m + (rts ? 0 : am->a));
    if (!m)
        dz_fatal(MPI_ERR_NO_MEM, "no memory for a message of %llu bytes from rank %d that no receive was posted for",
                 (unsigned long long)am->a, peer->rank);
    dz_p2p_count(unexpected);
    *m = (struct dz_msg){.got = {.ctx = am->ctx, .source = am->src, .tag = am->tag}, .peer = peer, .bytes = am->a,
                         .cookie = am->b, .rts = rts, .allocated = true, .data = (char *)(m + 1)};
    dz_mq_unexpected(q, &m->got);
    return m;
}

static struct dz_p2p *expected(struct dz_mq *q, const struct dz_am *am)
{
    struct dz_want *w = q ? dz_mq_arrive(q, am->src, am->tag) : NULL;
    if (!w)
        return NULL;
    struct dz_p2p *p = DZ_LINKED(w, struct dz_p2p, want);
    p->posted = false;
    identify(p, &(struct dz_got){.source = am->src, .tag = am->tag}, am->a);
    return p;
}

static void arrived_eager(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_mq *q = dz_mq_find(am->ctx);
    struct dz_p2p *p = expected(q, am);
    struct dz_msg *m;
    if (p) {
        write_at(p, 0, payload, am->bytes);
        if (am->b)
            answer(peer, DZ_AM_ACK, am->b, 0, 0, NULL, 0);
        if (am->bytes == am->a) {
            finish(p);
            return;
        }
        m = &p->in;
        *m = (struct dz_msg){.recv = p, .peer = peer, .bytes = am->a};
        dz_p2p_busy(p);
    } else {
        m = remember(q, peer, am, false);
        if (am->bytes)
            memcpy(m->data, payload, am->bytes);
    }
    m->have = am->bytes;
    peer->partial = m->have < m->bytes ? m : NULL;
}

static void arrived_piece(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_msg *m = peer->partial;
    if (!m)
        return; /* of a message that was given up */
    if (m->recv)
        write_at(m->recv, m->have, payload, am->bytes);
    else
        memcpy(m->data + m->have, payload, am->bytes);
    m->have += am->bytes;
    if (m->have < m->bytes)
        return;
    peer->partial = NULL;
    struct dz_p2p *p = m->recv;
    if (!p)
        return;
    if (m->allocated)
        dz_msg_destroy(m);
    finish(p);
}

static void arrived_rts(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    struct dz_mq *q = dz_mq_find(am->ctx);
    struct dz_p2p *p = expected(q, am);
    struct dz_msg m = {.peer = peer, .bytes = am->a, .cookie = am->b};
    memcpy(&m.raddr, payload, sizeof m.raddr);
    if (p)
        fetch(p, &m);
    else
        remember(q, peer, am, true)->raddr = m.raddr;
}

static void arrived_data(const struct dz_am *am, const void *payload)
{
    struct dz_p2p *p = (struct dz_p2p *)(uintptr_t)am->b;
    write_at(p, p->in.have, payload, am->bytes);
    p->in.have = am->flags & DZ_DATA_PUT ? p->in.bytes : p->in.have + am->bytes;
    if (p->in.have == p->in.bytes)
        finish(p);
}

void dz_p2p_recv_deliver(struct dz_peer *peer, const struct dz_am *am, const void *payload)
{
    if (am->kind == DZ_AM_EAGER)
        arrived_eager(peer, am, payload);
    else if (am->kind == DZ_AM_PIECE)
        arrived_piece(peer, am, payload);
    else if (peer->buried)
        return; /* the receives that could fetch or take the rest have been failed */
    else if (am->kind == DZ_AM_RTS)
        arrived_rts(peer, am, payload);
    else
        arrived_data(am, payload);
}
