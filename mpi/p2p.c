/* p2p.c - requests of the point-to-point engine (p2p.h): birth, completion, death of a peer, blocking forms. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"
#include "mpi/part.h"

static struct dz_link busy_list = {&busy_list, &busy_list};

/* Finished plain requests are used again: most programs have the same few in flight all the time. */
enum { SPARE_MAX = 256 };
static struct dz_p2p *spare;
static int spares;

static int buried; /* peers whose death is known: while there are none, wildcard receives need not look for them */

void dz_p2p_prepare(struct dz_p2p *p, int kind, bool persistent, const void *buf, size_t count, struct dz_type *type,
                    int peer, int tag, struct dz_comm *comm, int coll, int mode)
{
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
    p->held = p->buffered = p->posted = p->queued = false;
    p->copy = NULL;
    p->exposed = NULL;
    p->req.peer = peer >= 0 ? dz_comm_peer(comm, peer) : NULL;
}

static struct dz_p2p *take_spare(void)
{
    struct dz_p2p *p = spare;
    if (!p)
        return malloc(sizeof *p);
    spare = (struct dz_p2p *)(void *)p->busy.next;
    spares--;
    return p;
}

static void hold(struct dz_p2p *p)
{
    dz_comm_get(p->req.comm);
    dz_type_get(p->type);
    p->held = true;
}

struct dz_p2p *dz_p2p_create(int kind, bool persistent, const void *buf, size_t count, struct dz_type *type, int peer,
                             int tag, struct dz_comm *comm, int coll, int mode)
{
    struct dz_p2p *p = take_spare();
    if (!p)
        return NULL;
    dz_p2p_prepare(p, kind, persistent, buf, count, type, peer, tag, comm, coll, mode);
    hold(p);
    return p;
}

void dz_p2p_destroy(struct dz_p2p *p)
{
    if (p->held) {
        dz_comm_put(p->req.comm);
        dz_type_put(p->type);
    }
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
    if (__builtin_expect(p->exposed != NULL, 0)) {
        p->in.peer->t->unexpose(p->in.peer, p->exposed);
        p->exposed = NULL;
    }
    bool freed = p->req.freed;
    atomic_store_explicit(&p->req.complete, true, memory_order_release); /* acquire: dz_request_done */
    if (freed) /* else it may be gone already: a blocking call has it on its stack */
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

bool dz_p2p_any_gone(const struct dz_comm *comm)
{
    for (int r = 0; buried && r < comm->size; r++)
        if (dz_comm_peer(comm, r)->buried)
            return true;
    return false;
}

struct dying {
    struct dz_peer *peer;
    struct dz_link wants;
};

static void collect_posted(struct dz_want *w, void *arg)
{
    struct dz_p2p *p = DZ_LINKED(w, struct dz_p2p, want);
    struct dying *d = arg;
    /* a receive from anybody may have meant this one: better an error than to wait for ever */
    if (p->req.peer ? p->req.peer != d->peer : !member(p->req.comm, d->peer))
        return;
    dz_mq_cancel(w);
    dz_link_append(&d->wants, &w->link);
}

static void drop_halves(struct dz_got *g, void *arg)
{
    struct dz_msg *m = DZ_LINKED(g, struct dz_msg, got);
    if (m->peer != arg || dz_msg_whole(m))
        return; /* whole: it may still be received */
    dz_link_remove(&g->of_all);
    dz_link_remove(&g->of_source);
    dz_msg_destroy(m);
}

void dz_p2p_peer_gone(struct dz_peer *peer)
{
    struct dying d = {.peer = peer};
    buried++;
    dz_out_progress(); /* sends in its queue find out by themselves */
    struct dz_msg *m = peer->partial;
    if (m && m->allocated && m->recv)
        dz_msg_destroy(m); /* in no queue any more; one without a receive is in a queue, or a matched probe's */
    peer->partial = NULL;
    dz_mq_each_unexpected(drop_halves, peer);
    /* completion may be the end of a communicator and its queues: not while going through them */
    dz_link_init(&d.wants);
    dz_mq_each_posted(collect_posted, &d);
    while (!dz_link_empty(&d.wants)) {
        struct dz_p2p *p = DZ_LINKED(d.wants.next, struct dz_p2p, want);
        dz_link_remove(&p->want.link);
        p->posted = false;
        dz_p2p_complete(p, MPI_ERR_PROC_FAILED);
    }
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
    spares = buried = 0;
}

/* ---- nonblocking */

/* The request of every send that was over when its call returned. */
static void nothing_to_free(struct dz_request *req)
{
    (void)req;
}
static const struct dz_request_ops sent_ops = {
    .name = "send", .start = send_start, .free = nothing_to_free, .cancel = send_cancel,
};
static struct dz_request sent = {
    .magic = DZ_MAGIC_REQ, .kind = DZ_REQ_SEND, .complete = true, .ops = &sent_ops, .comm = MPI_COMM_WORLD,
    .status = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG},
};

static int begin(struct dz_p2p *p, int (*fn)(struct dz_p2p *), struct dz_request **out)
{
    int rc = fn(p);
    if (rc) {
        dz_p2p_destroy(p);
        return rc;
    }
    /* a failed one will be asked for its communicator's handler */
    if (!atomic_load_explicit(&p->req.complete, memory_order_relaxed) || p->req.status.MPI_ERROR)
        hold(p);
    *out = &p->req;
    return 0;
}

int dz_isend(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm, int coll,
             enum dz_send_mode mode, struct dz_request **out)
{
    if (mode != DZ_SEND_SYNC && dz_p2p_send_at_once(buf, count, type, dest, tag, comm, coll)) {
        *out = &sent;
        return 0;
    }
    struct dz_p2p *p = take_spare();
    if (!p)
        return -ENOMEM;
    dz_p2p_prepare(p, DZ_REQ_SEND, false, buf, count, type, dest, tag, comm, coll, mode);
    return begin(p, dz_p2p_send_begin, out);
}

int dz_irecv(void *buf, size_t count, struct dz_type *type, int src, int tag, struct dz_comm *comm, int coll,
             struct dz_request **out)
{
    struct dz_p2p *p = take_spare();
    if (!p)
        return -ENOMEM;
    dz_p2p_prepare(p, DZ_REQ_RECV, false, buf, count, type, src, tag, comm, coll, 0);
    return begin(p, dz_p2p_recv_begin, out);
}

/* ---- blocking: the request is on the stack, so the call waits for it whatever happens */
static int wait_for(struct dz_p2p *p)
{
    struct dz_backoff b = DZ_BACKOFF_INIT;
    /* release: dz_p2p_complete */
    while (!atomic_load_explicit(&p->req.complete, memory_order_acquire)) {
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
    p->req.magic = 0;
    return p->req.status.MPI_ERROR;
}

static void give_status(MPI_Status *to, const MPI_Status *from)
{
    if (!to)
        return;
    int error = to->MPI_ERROR; /* the caller's */
    *to = *from;
    to->MPI_ERROR = error;
}

int dz_p2p_send_wait(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm,
                     int coll, enum dz_send_mode mode)
{
    struct dz_p2p p;
    int rc = 0;
    dz_lock();
    bool sent_at_once = mode != DZ_SEND_SYNC && dz_p2p_send_at_once(buf, count, type, dest, tag, comm, coll);
    if (!sent_at_once) {
        dz_p2p_prepare(&p, DZ_REQ_SEND, false, buf, count, type, dest, tag, comm, coll, mode);
        rc = dz_p2p_send_begin(&p);
    }
    dz_unlock();
    return sent_at_once || rc ? rc : wait_for(&p);
}

int dz_send(const void *buf, size_t count, struct dz_type *type, int dest, int tag, struct dz_comm *comm, int coll)
{
    int rc = dz_p2p_send_wait(buf, count, type, dest, tag, comm, coll, DZ_SEND_STANDARD);
    return rc < 0 ? dz_class_of_errno(rc) : rc;
}

int dz_recv(void *buf, size_t count, struct dz_type *type, int src, int tag, struct dz_comm *comm, int coll,
            MPI_Status *status)
{
    struct dz_p2p p;
    dz_p2p_prepare(&p, DZ_REQ_RECV, false, buf, count, type, src, tag, comm, coll, 0);
    dz_lock();
    int rc = dz_p2p_recv_begin(&p);
    dz_unlock();
    if (rc)
        return dz_class_of_errno(rc);
    rc = wait_for(&p);
    give_status(status, &p.req.status);
    return rc;
}

int dz_sendrecv(const void *sbuf, size_t scount, struct dz_type *stype, int dest, int stag, void *rbuf, size_t rcount,
                struct dz_type *rtype, int src, int rtag, struct dz_comm *comm, int coll, MPI_Status *status)
{
    struct dz_p2p r, s;
    dz_p2p_prepare(&r, DZ_REQ_RECV, false, rbuf, rcount, rtype, src, rtag, comm, coll, 0);
    dz_p2p_prepare(&s, DZ_REQ_SEND, false, sbuf, scount, stype, dest, stag, comm, coll, DZ_SEND_STANDARD);
    dz_lock();
    int rc = dz_p2p_recv_begin(&r);
    bool receiving = !rc;
    if (receiving && (rc = dz_p2p_send_begin(&s)))
        recv_cancel(&r.req);
    dz_unlock();
    if (!receiving)
        return dz_class_of_errno(rc);
    int send_rc = rc ? dz_class_of_errno(rc) : wait_for(&s);
    int recv_rc = wait_for(&r);
    give_status(status, &r.req.status);
    return recv_rc ? recv_rc : send_rc;
}
