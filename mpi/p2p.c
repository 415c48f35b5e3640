/* p2p.c - requests of the point-to-point engine (p2p.h): birth, completion, death of a peer, blocking forms. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"
#include "mpi/part.h"

static struct dz_link busy_list = {&busy_list, &busy_list};

/* Finished plain requests are used again: most programs have the same few in flight all the time. */
enum { SPARE_MAX = 64 };
static struct dz_p2p *spare;
static int spares;

struct dz_p2p *dz_p2p_create(int kind, bool persistent, const void *buf, size_t count, struct dz_type *type, int peer,
                             int tag, struct dz_comm *comm, int coll, int mode)
{
    struct dz_p2p *p = spare;
    if (p) {
        spare = (struct dz_p2p *)(void *)p->busy.next;
        spares--;
    } else if (!(p = malloc(sizeof *p))) {
        return NULL;
    }
    dz_request_init(&p->req, kind, persistent, kind == DZ_REQ_SEND ? &dz_p2p_send_ops : &dz_p2p_recv_ops, comm);
    dz_link_init(&p->busy);
    p->view = dz_type_view(type, buf, count);
    p->type = type;
    p->buf = buf;
    p->count = count;
    p->peer = peer;
    p->tag = tag;
    p->coll = (uint8_t)coll;
    p->mode = (uint8_t)mode;
    p->buffered = p->posted = p->queued = false;
    p->copy = NULL;
    p->req.peer = peer >= 0 ? dz_comm_peer(comm, peer) : NULL;
    dz_comm_get(comm);
    dz_type_get(type);
    return p;
}

void dz_p2p_destroy(struct dz_p2p *p)
{
    dz_comm_put(p->req.comm);
    dz_type_put(p->type);
    p->req.magic = 0;
    if (spares == SPARE_MAX) {
        free(p);
        return;
    }
    p->busy.next = (struct dz_link *)(void *)spare;
    spare = p;
    spares++;
}

static void p2p_free(struct dz_request *req)
{
    dz_p2p_destroy((struct dz_p2p *)req);
}

void dz_p2p_complete(struct dz_p2p *p, int error)
{
    if (!dz_link_empty(&p->busy))
        dz_link_remove(&p->busy);
    p->req.status.MPI_ERROR = error;
    if (p->copy)
        dz_bsend_done(p);
    atomic_store_explicit(&p->req.complete, true, memory_order_release); /* acquire: dz_request_done */
    if (p->req.freed)
        dz_p2p_destroy(p);
}

static int start(struct dz_request *req, const char *call, int (*begin)(struct dz_p2p *))
{
    struct dz_p2p *p = (struct dz_p2p *)req;
    dz_lock();
    req->status = dz_status_empty;
    atomic_store_explicit(&req->complete, false, memory_order_relaxed);
    atomic_store_explicit(&req->active, true, memory_order_release); /* acquire: whoever uses the request next */
    int rc = begin(p);
    if (rc)
        atomic_store_explicit(&req->active, false, memory_order_release);
    dz_unlock();
    return rc ? dz_raise_errno(req->comm, rc, call, req->peer) : MPI_SUCCESS;
}

static int send_start(struct dz_request *req, const char *call)
{
    return start(req, call, dz_p2p_send_begin);
}

static int recv_start(struct dz_request *req, const char *call)
{
    return start(req, call, dz_p2p_recv_begin);
}

static int send_cancel(struct dz_request *req)
{
    (void)req; /* it will complete: that is one of the two outcomes the standard allows */
    return 0;
}

static int recv_cancel(struct dz_request *req)
{
    struct dz_p2p *p = (struct dz_p2p *)req;
    if (!p->posted)
        return 0; /* matched or complete: it stays */
    dz_mq_cancel(&p->want);
    p->posted = false;
    req->status._cancelled = 1;
    dz_p2p_complete(p, MPI_SUCCESS);
    return 0;
}

const struct dz_request_ops dz_p2p_send_ops = {
    .name = "send", .start = send_start, .free = p2p_free, .cancel = send_cancel,
};
const struct dz_request_ops dz_p2p_recv_ops = {
    .name = "receive", .start = recv_start, .free = p2p_free, .cancel = recv_cancel,
};

/* ---- messages, to whom they belong */
void dz_am_deliver(struct dz_peer *src, const struct dz_am *am, const void *payload)
{
    switch (am->kind) {
    case DZ_AM_EAGER:
    case DZ_AM_PIECE:
    case DZ_AM_RTS:
    case DZ_AM_DATA:
        dz_p2p_recv_deliver(src, am, payload);
        break;
    case DZ_AM_CTS:
    case DZ_AM_FIN:
    case DZ_AM_ACK:
        dz_p2p_send_deliver(src, am, payload);
        break;
    default:
        dz_part_deliver(src, am, payload);
    }
}

/* ---- a peer is gone */
static bool member(const struct dz_comm *c, const struct dz_peer *peer)
{
    for (int r = 0; r < c->size; r++)
        if (dz_world_rank(c, r) == peer->rank)
            return true;
    return false;
}

static void fail_posted(struct dz_want *w, void *arg)
{
    struct dz_p2p *p = DZ_LINKED(w, struct dz_p2p, want);
    struct dz_peer *peer = arg;
    /* a receive from anybody may have meant this one: better an error than to wait for ever */
    if (p->req.peer ? p->req.peer != peer : !member(p->req.comm, peer))
        return;
    dz_mq_cancel(w);
    p->posted = false;
    dz_p2p_complete(p, MPI_ERR_PROC_FAILED);
}

static void drop_halves(struct dz_got *g, void *arg)
{
    struct dz_msg *m = DZ_LINKED(g, struct dz_msg, got);
    if (m->peer != arg || (!m->rts && m->have == m->bytes))
        return; /* whole: it may still be received */
    dz_link_remove(&g->of_all);
    dz_link_remove(&g->of_source);
    dz_msg_destroy(m);
}

void dz_p2p_peer_gone(struct dz_peer *peer)
{
    dz_out_progress(); /* sends in its queue find out by themselves */
    peer->partial = NULL;
    dz_mq_each_posted(fail_posted, peer);
    dz_mq_each_unexpected(drop_halves, peer);
    for (struct dz_link *l = busy_list.next, *next; l != &busy_list; l = next) {
        struct dz_p2p *p = DZ_LINKED(l, struct dz_p2p, busy);
        next = l->next;
        if ((p->req.kind == DZ_REQ_SEND ? p->req.peer : p->in.peer) == peer && !p->queued)
            dz_p2p_complete(p, MPI_ERR_PROC_FAILED);
    }
}

void dz_p2p_busy(struct dz_p2p *p)
{
    dz_link_append(&busy_list, &p->busy);
}

static void free_unexpected(struct dz_got *g, void *arg)
{
    (void)arg;
    dz_link_remove(&g->of_all);
    dz_link_remove(&g->of_source);
    dz_msg_destroy(DZ_LINKED(g, struct dz_msg, got));
}

void dz_p2p_fini(void)
{
    dz_mq_each_unexpected(free_unexpected, NULL);
    while (spare) {
        struct dz_p2p *p = spare;
        spare = (struct dz_p2p *)(void *)p->busy.next;
        free(p);
    }
    spares = 0;
}

/* ---- for the rest of the library */
static int begin(struct dz_p2p *p, int (*fn)(struct dz_p2p *), struct dz_request **out)
{
    int rc = fn(p);
    if (rc)
        dz_p2p_destroy(p);
    else
        *out = &p->req;
    return rc;
}

int dz_isend(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm, int coll,
             enum dz_send_mode mode, struct dz_request **out)
{
    struct dz_p2p *p = dz_p2p_create(DZ_REQ_SEND, false, buf, count, type, dest, tag, comm, coll, mode);
    return p ? begin(p, dz_p2p_send_begin, out) : -ENOMEM;
}

int dz_irecv(void *buf, size_t count, struct dz_type *type, int src, int tag, struct dz_comm *comm, int coll,
             struct dz_request **out)
{
    struct dz_p2p *p = dz_p2p_create(DZ_REQ_RECV, false, buf, count, type, src, tag, comm, coll, 0);
    return p ? begin(p, dz_p2p_recv_begin, out) : -ENOMEM;
}

int dz_send(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm, int coll)
{
    struct dz_request *r;
    dz_lock();
    int rc = dz_isend(buf, count, type, dest, tag, comm, coll, DZ_SEND_STANDARD, &r);
    dz_unlock();
    return rc ? dz_class_of_errno(rc) : dz_request_wait(r);
}

static bool done(void *r)
{
    return dz_request_done(r);
}

static int wait_status(struct dz_request *r, MPI_Status *status)
{
    dz_wait_until(done, r); /* its status goes with it: read it before */
    if (status) {
        int error = status->MPI_ERROR;
        *status = r->status;
        status->MPI_ERROR = error;
    }
    return dz_request_wait(r);
}

int dz_recv(void *buf, size_t count, struct dz_type *type, int src, int tag, struct dz_comm *comm, int coll,
            MPI_Status *status)
{
    struct dz_request *r;
    dz_lock();
    int rc = dz_irecv(buf, count, type, src, tag, comm, coll, &r);
    dz_unlock();
    return rc ? dz_class_of_errno(rc) : wait_status(r, status);
}

int dz_sendrecv(const void *sbuf, size_t scount, struct dz_type *stype, int dest, int stag, void *rbuf, size_t rcount,
                struct dz_type *rtype, int src, int rtag, struct dz_comm *comm, int coll, MPI_Status *status)
{
    struct dz_request *r, *s;
    dz_lock();
    int rc = dz_irecv(rbuf, rcount, rtype, src, rtag, comm, coll, &r);
    dz_unlock();
    if (rc)
        return dz_class_of_errno(rc);
    dz_lock();
    rc = dz_isend(sbuf, scount, stype, dest, stag, comm, coll, DZ_SEND_STANDARD, &s);
    if (rc)
        r->ops->cancel(r);
    dz_unlock();
    if (rc) {
        dz_request_wait(r);
        return dz_class_of_errno(rc);
    }
    int srv = dz_request_wait(s), rrv = wait_status(r, status);
    return rrv ? rrv : srv;
}
