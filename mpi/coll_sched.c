/* coll_sched.c - one collective operation: done at once, or written down as a list of steps that runs as a request.
 *
 * A list is carried out from the front. Copies and reductions are done when their turn comes, transfers are begun, and a
 * fence waits for all transfers before it. Whoever looks at the request carries on with it (advance), and so does
 * everybody's progress while it is active (dz_coll_progress): other ranks may need the next step of a list whose owner
 * is waiting for something else.
 *
 * Threads: advance is done by one thread at a time, who holds c->claimed; dz_lock is not held, the engines below take it.
 * list_lock guards the list of active operations and is held while progress goes through it; it comes before dz_lock.
 *
 * A transfer that fails ends the operation with its class. The others of its fence are then given up: receives are
 * cancelled or waited for, so that nothing is written to the user's memory later; sends complete by themselves, and the
 * memory that they read stays until MPI_Finalize. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "mpi/coll.h"
#include "mpi/part.h"

struct dz_piece { /* ahead of the memory it describes */
    struct dz_piece *next;
    char pad[64 - sizeof(struct dz_piece *)];
};

enum { POLLS = 16 }; /* between two rounds of progress */

static struct dz_coll *active;
static _Atomic int nactive;            /* how many are listed: a look without the lock */
static struct dz_piece *left_behind;   /* what sends that were given up may still read */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory */
/* Resident lists have theirs where the processes of the node can store to it. */
void *dz_coll_alloc(struct dz_coll *c, size_t bytes)
{
    size_t all = sizeof(struct dz_piece) + (bytes ? bytes : 1);
    if (all < bytes)
        return NULL;
    struct dz_piece *p = c->mode == DZ_COLL_INIT ? dz_mem_alloc(all) : malloc(all);
    if (!p)
        return NULL;
    p->next = c->pieces;
    c->pieces = p;
    return p + 1;
}

int dz_scratch_open(struct dz_coll *c, void **at, size_t count, const struct dz_type *t)
{
    ptrdiff_t far = count ? (ptrdiff_t)(count - 1) * t->extent : 0;
    ptrdiff_t lo = t->true_lb + (far < 0 ? far : 0);
    ptrdiff_t hi = t->true_lb + t->true_extent + (far > 0 ? far : 0);
    char *mem = dz_coll_alloc(c, hi > lo ? (size_t)(hi - lo) : 1);
    *at = mem ? mem - lo : NULL;
    return mem ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void free_pieces(struct dz_coll *c)
{
    while (c->pieces) {
        struct dz_piece *p = c->pieces;
        c->pieces = p->next;
        if (c->mode == DZ_COLL_INIT)
            dz_mem_free(p);
        else
            free(p);
    }
}

static void leave_pieces(struct dz_coll *c)
{
    if (c->mode == DZ_COLL_INIT)
        return; /* channels end before their memory does */
    dz_lock();
    while (c->pieces) {
        struct dz_piece *p = c->pieces;
        c->pieces = p->next;
        p->next = left_behind;
        left_behind = p;
    }
    dz_unlock();
}

void dz_coll_fini(void)
{
    while (left_behind) {
        struct dz_piece *p = left_behind;
        left_behind = p->next;
        free(p);
    }
    active = NULL;
}

/* ---- steps */
static int fail(struct dz_coll *c, int errclass, int peer)
{
    if (errclass && c->peer < 0)
        c->peer = peer;
    return errclass;
}

static struct dz_step *add(struct dz_coll *c, enum dz_step_kind kind)
{
    if (c->nsteps == c->room) {
        uint32_t room = c->room ? 2 * c->room : 8;
        struct dz_step *steps = realloc(c->steps, room * sizeof *steps);
        if (!steps)
            return NULL;
        c->steps = steps;
        c->room = room;
    }
    struct dz_step *s = &c->steps[c->nsteps++];
    *s = (struct dz_step){.kind = (uint8_t)kind};
    return s;
}

/* A list outlives the call: what it names must not go before it. */
static void hold(const struct dz_coll *c, struct dz_step *s)
{
    if (c->mode == DZ_COLL_BLOCKING)
        return;
    if (s->type)
        dz_type_get(s->type);
    if (s->rtype)
        dz_type_get(s->rtype);
    if (s->op)
        dz_op_get(s->op);
}

static void let_go(const struct dz_coll *c)
{
    for (uint32_t i = 0; i < c->nsteps; i++) {
        const struct dz_step *s = &c->steps[i];
        if (s->type)
            dz_type_put(s->type);
        if (s->rtype)
            dz_type_put(s->rtype);
        if (s->op)
            dz_op_put(s->op);
    }
}

/* Not over yet. */
static int begin_transfer(struct dz_coll *c, struct dz_step *s)
{
    int rc;
    s->done = false;
    if (c->mode != DZ_COLL_INIT) {
        dz_lock();
        rc = s->kind == DZ_STEP_SEND
                 ? dz_isend(s->from, s->count, s->type, s->peer, c->tag, c->comm, 1, DZ_SEND_STANDARD, &s->transfer)
                 : dz_irecv(s->to, s->count, s->type, s->peer, c->tag, c->comm, 1, &s->transfer);
        dz_unlock();
        return rc ? fail(c, dz_class_of_errno(rc), s->peer) : MPI_SUCCESS;
    }
    rc = s->transfer->ops->start(s->transfer, c->call);
    if (!rc && s->kind == DZ_STEP_SEND) {
        struct dz_psend *p = (struct dz_psend *)s->transfer;
        uint64_t epoch = atomic_load_explicit(&p->epoch, memory_order_relaxed);
        if (dz_psend_usual(p, 0, epoch))
            dz_psend_give(p, 0, epoch);
        else
            dz_psend_ready(p, 0, epoch);
    }
    return rc ? fail(c, rc, s->peer) : MPI_SUCCESS;
}

/* Is it over? Then it is taken off, and its failure noted. */
static bool end_transfer(struct dz_coll *c, struct dz_step *s)
{
    if (!s->transfer || !dz_request_done(s->transfer))
        return !s->transfer;
    int rc = dz_request_finish(s->transfer);
    if (c->mode != DZ_COLL_INIT)
        s->transfer = NULL;
    s->done = true;
    if (rc && !c->fail)
        c->fail = fail(c, rc, s->peer);
    return true;
}

/* Every transfer up to `at` that is not over yet. */
static bool all_over(struct dz_coll *c, uint32_t at)
{
    bool all = true;
    for (uint32_t i = c->open; i < at; i++) {
        struct dz_step *s = &c->steps[i];
        if (s->kind > DZ_STEP_RECV || s->done || end_transfer(c, s))
            c->open += all; /* the first that is not stops it */
        else
            all = false;
    }
    return all;
}

/* After a failure. */
static void give_up(struct dz_coll *c, uint32_t at)
{
    bool sends = false;
    for (uint32_t i = c->open; i < at && c->mode != DZ_COLL_INIT; i++) {
        struct dz_step *s = &c->steps[i];
        if (s->kind > DZ_STEP_RECV || s->done || !s->transfer)
            continue;
        dz_lock();
        if (s->kind == DZ_STEP_RECV)
            s->transfer->ops->cancel(s->transfer);
        bool over = atomic_load_explicit(&s->transfer->complete, memory_order_acquire);
        if (!over && s->kind == DZ_STEP_SEND) {
            s->transfer->freed = sends = true;
            s->transfer = NULL;
        }
        dz_unlock();
        if (s->transfer)
            dz_request_wait(s->transfer); /* cancelled, or its bytes are on the way */
        s->transfer = NULL;
        s->done = true;
    }
    if (sends)
        leave_pieces(c);
}

int dz_coll_fence(struct dz_coll *c)
{
    if (c->mode != DZ_COLL_BLOCKING) {
        if (!c->nsteps || c->steps[c->nsteps - 1].kind == DZ_STEP_FENCE)
            return MPI_SUCCESS;
        return add(c, DZ_STEP_FENCE) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    struct dz_backoff b = DZ_BACKOFF_INIT;
    while (!all_over(c, c->nsteps) && !c->fail) {
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
    if (c->fail)
        give_up(c, c->nsteps);
    c->nsteps = c->open = 0;
    return c->fail;
}

static int transfer(struct dz_coll *c, enum dz_step_kind kind, const void *from, void *to, size_t count,
                    struct dz_type *type, int peer)
{
    if (peer == MPI_PROC_NULL)
        return MPI_SUCCESS;
    struct dz_step *s = add(c, kind);
    if (!s)
        return MPI_ERR_NO_MEM;
    s->from = from;
    s->to = to;
    s->count = count;
    s->type = type;
    s->peer = peer;
    hold(c, s);
    if (c->mode != DZ_COLL_BLOCKING)
        return MPI_SUCCESS;
    int rc = begin_transfer(c, s);
    if (rc)
        c->nsteps--;
    return rc;
}

int dz_coll_isend(struct dz_coll *c, const void *buf, size_t count, struct dz_type *type, int dest)
{
    return transfer(c, DZ_STEP_SEND, buf, NULL, count, type, dest);
}

int dz_coll_irecv(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int src)
{
    return transfer(c, DZ_STEP_RECV, NULL, buf, count, type, src);
}

int dz_coll_send(struct dz_coll *c, const void *buf, size_t count, struct dz_type *type, int dest)
{
    if (c->mode == DZ_COLL_BLOCKING)
        return fail(c, dz_send(buf, count, type, dest, c->tag, c->comm, 1), dest);
    int rc = dz_coll_isend(c, buf, count, type, dest);
    return rc ? rc : dz_coll_fence(c);
}

int dz_coll_recv(struct dz_coll *c, void *buf, size_t count, struct dz_type *type, int src)
{
    if (c->mode == DZ_COLL_BLOCKING)
        return fail(c, dz_recv(buf, count, type, src, c->tag, c->comm, 1, MPI_STATUS_IGNORE), src);
    int rc = dz_coll_irecv(c, buf, count, type, src);
    return rc ? rc : dz_coll_fence(c);
}

int dz_coll_swap(struct dz_coll *c, const void *sbuf, size_t scount, struct dz_type *stype, int dest, void *rbuf,
                 size_t rcount, struct dz_type *rtype, int src)
{
    if (c->mode == DZ_COLL_BLOCKING && dest != MPI_PROC_NULL && src != MPI_PROC_NULL)
        return fail(c, dz_sendrecv(sbuf, scount, stype, dest, c->tag, rbuf, rcount, rtype, src, c->tag, c->comm, 1,
                                   MPI_STATUS_IGNORE), src);
    if (c->mode == DZ_COLL_BLOCKING && dest != MPI_PROC_NULL)
        return dz_coll_send(c, sbuf, scount, stype, dest);
    if (c->mode == DZ_COLL_BLOCKING)
        return src == MPI_PROC_NULL ? MPI_SUCCESS : dz_coll_recv(c, rbuf, rcount, rtype, src);
    int rc = dz_coll_irecv(c, rbuf, rcount, rtype, src);
    if (!rc)
        rc = dz_coll_isend(c, sbuf, scount, stype, dest);
    return rc ? rc : dz_coll_fence(c);
}

static void copy(const void *src, size_t scount, const struct dz_type *stype, void *dst, size_t rcount,
                 const struct dz_type *rtype)
{
    struct dz_view s = dz_type_view(stype, src, scount), d = dz_type_view(rtype, dst, rcount);
    size_t n = s.bytes < d.bytes ? s.bytes : d.bytes;
    char piece[4096];
    if (!n)
        return;
    if (!s.layout) {
        if (d.layout || s.base != d.base)
            dz_view_write(&d, 0, n, s.base);
        return;
    }
    if (!d.layout) {
        dz_view_read(&s, 0, n, d.base);
        return;
    }
    for (size_t off = 0; off < n; off += sizeof piece) {
        size_t len = n - off < sizeof piece ? n - off : sizeof piece;
        dz_view_read(&s, off, len, piece);
        dz_view_write(&d, off, len, piece);
    }
}

int dz_coll_copy(struct dz_coll *c, const void *src, size_t scount, struct dz_type *stype, void *dst, size_t rcount,
                 struct dz_type *rtype)
{
    size_t from = scount * stype->size, to = rcount * rtype->size;
    if (c->mode == DZ_COLL_BLOCKING) {
        copy(src, scount, stype, dst, rcount, rtype);
    } else if (from && to) {
        struct dz_step *s = add(c, DZ_STEP_COPY);
        if (!s)
            return MPI_ERR_NO_MEM;
        s->from = src;
        s->count = scount;
        s->type = stype;
        s->to = dst;
        s->room = rcount;
        s->rtype = rtype;
        hold(c, s);
    }
    return from > to ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int dz_coll_apply(struct dz_coll *c, struct dz_op *op, struct dz_type *type, const void *in, void *inout, size_t count)
{
    if (!count)
        return MPI_SUCCESS;
    if (c->mode == DZ_COLL_BLOCKING) {
        dz_op_apply(op, type, in, inout, count);
        return MPI_SUCCESS;
    }
    struct dz_step *s = add(c, DZ_STEP_APPLY);
    if (!s)
        return MPI_ERR_NO_MEM;
    s->from = in;
    s->to = inout;
    s->count = count;
    s->type = type;
    s->op = op;
    hold(c, s);
    return MPI_SUCCESS;
}

/* ---- a list runs */
/* As far as it goes. True: to the end. */
static bool carry_on(struct dz_coll *c)
{
    if (__builtin_expect(c->broken, 0)) {
        c->fail = c->broken;
        return true;
    }
    for (; c->at < c->nsteps && !c->fail; c->at++) {
        struct dz_step *s = &c->steps[c->at];
        switch (s->kind) {
        case DZ_STEP_SEND:
        case DZ_STEP_RECV:
            c->fail = begin_transfer(c, s);
            break;
        case DZ_STEP_COPY:
            copy(s->from, s->count, s->type, s->to, s->room, s->rtype);
            break;
        case DZ_STEP_APPLY:
            dz_op_apply(s->op, s->type, s->from, s->to, s->count);
            break;
        default:
            if (!all_over(c, c->at) && !c->fail)
                return false;
        }
    }
    if (__builtin_expect(!c->fail, 1) && !all_over(c, c->nsteps))
        return false;
    if (c->fail)
        give_up(c, c->at);
    if (c->mode == DZ_COLL_INIT)
        c->broken = c->fail; /* its channels are in the middle of a round now, and so for good */
    return true;
}

/* True: complete. *moved counts what was done. */
static bool advance(struct dz_coll *c, int *moved)
{
    if (atomic_load_explicit(&c->req.complete, memory_order_acquire))
        return true;
    if (dz_threaded && (atomic_load_explicit(&c->claimed, memory_order_relaxed) ||
                        atomic_exchange_explicit(&c->claimed, true, memory_order_acquire)))
        return false;
    uint32_t at = c->at, open = c->open;
    /* another thread may have come to the end meanwhile */
    bool over = atomic_load_explicit(&c->req.complete, memory_order_relaxed) || carry_on(c);
    *moved += c->at != at || c->open != open;
    if (over) {
        c->req.status.MPI_ERROR = c->fail;
        if (c->fail && c->peer >= 0)
            c->req.peer = dz_comm_peer(c->comm, c->peer);
        atomic_store_explicit(&c->req.complete, true, memory_order_release); /* acquire: above, and who waits */
    }
    if (dz_threaded)
        atomic_store_explicit(&c->claimed, false, memory_order_release);
    return over;
}

static void enlist(struct dz_coll *c)
{
    atomic_fetch_add_explicit(&nactive, 1, memory_order_relaxed);
    c->listed = true;
    c->prev = NULL;
    c->next = active;
    if (active)
        active->prev = c;
    active = c;
}

static void delist(struct dz_coll *c)
{
    if (!c->listed)
        return;
    atomic_fetch_sub_explicit(&nactive, 1, memory_order_relaxed);
    c->listed = false;
    if (c->next)
        c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &active) = c->next;
}

static bool try_list(void) { return !dz_threaded || !pthread_mutex_trylock(&list_lock); }
static void lock_list(void) { if (dz_threaded) pthread_mutex_lock(&list_lock); }
static void unlock_list(void) { if (dz_threaded) pthread_mutex_unlock(&list_lock); }

int dz_coll_progress(void)
{
    int moved = 0;
    if (!atomic_load_explicit(&nactive, memory_order_relaxed) || !try_list())
        return 0;
    for (struct dz_coll *c = active, *next; c; c = next) {
        bool over = advance(c, &moved);
        next = c->next;
        if (over)
            delist(c);
    }
    unlock_list();
    return moved;
}

static void start_round(struct dz_coll *c)
{
    c->at = c->open = 0;
    c->fail = 0;
    c->peer = -1;
    for (uint32_t i = 0; i < c->nsteps; i++)
        c->steps[i].done = false;
    atomic_store_explicit(&c->req.complete, false, memory_order_release); /* acquire: advance, of whose list it is in */
    atomic_store_explicit(&c->req.active, true, memory_order_release); /* acquire: whoever uses the request next */
}

static int coll_start(struct dz_request *req, const char *call)
{
    struct dz_coll *c = (struct dz_coll *)req;
    int moved = 0;
    (void)call;
    start_round(c);
    if (advance(c, &moved))
        return MPI_SUCCESS;
    lock_list();
    if (!c->listed)
        enlist(c);
    unlock_list();
    return MPI_SUCCESS;
}

static bool coll_poll(struct dz_request *req)
{
    int moved = 0;
    return advance((struct dz_coll *)req, &moved);
}

static void coll_free(struct dz_request *req)
{
    dz_coll_destroy((struct dz_coll *)req);
}

static const struct dz_request_ops coll_ops = {
    .name = "collective operation", .start = coll_start, .poll = coll_poll, .free = coll_free, .free_locks = true,
};

int dz_coll_round(struct dz_coll *c)
{
    start_round(c);
    struct dz_backoff b = DZ_BACKOFF_INIT;
    int moved = 0;
    for (;;) { /* the list is its caller's alone: nobody else has to carry it on */
        for (int i = 0; i < POLLS; i++)
            if (advance(c, &moved))
                return c->fail;
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
}

void dz_coll_destroy(struct dz_coll *c)
{
    lock_list(); /* also waits for who is still looking at it */
    delist(c);
    unlock_list();
    dz_coll_unbind(c);
    dz_lock();
    let_go(c);
    dz_comm_put(c->comm);
    dz_unlock();
    free_pieces(c);
    free(c->steps);
    c->req.magic = 0;
    free(c);
}

/* ---- one call */
int dz_coll_check(const struct dz_how *how, struct dz_comm *comm)
{
    DZ_ENTER(how->call);
    int rc = dz_check_comm(how->call, comm);
    if (!rc && how->mode != DZ_COLL_BLOCKING)
        rc = dz_check_ptr(how->call, comm, how->request, "request");
    if (!rc && how->mode == DZ_COLL_INIT && !dz_info_ok(how->info))
        rc = dz_raise(comm, MPI_ERR_INFO, how->call, "info is %p: no info object", (void *)how->info);
    return rc;
}

static void init(struct dz_coll *c, enum dz_coll_mode mode, const char *call, struct dz_comm *comm)
{
    c->comm = comm;
    c->call = call;
    c->tag = (int)(comm->coll_seq++ % DZ_COLL_TAGS);
    c->peer = -1;
    c->mode = mode;
    c->fail = 0;
    c->nsteps = c->room = c->at = c->open = 0;
    c->steps = NULL;
    c->pieces = NULL;
}

void dz_coll_begin(struct dz_coll *c, const char *call, struct dz_comm *comm)
{
    init(c, DZ_COLL_BLOCKING, call, comm);
}

struct dz_coll *dz_coll_open(const struct dz_how *how, struct dz_comm *comm, struct dz_coll *now)
{
    struct dz_coll *c = how->mode == DZ_COLL_BLOCKING ? now : malloc(sizeof *c);
    if (!c) {
        dz_raise_errno(comm, -ENOMEM, how->call, NULL);
        return NULL;
    }
    init(c, how->mode, how->call, comm);
    if (how->mode == DZ_COLL_BLOCKING)
        return c;
    dz_request_init(&c->req, DZ_REQ_COLL, how->mode == DZ_COLL_INIT, &coll_ops, comm);
    atomic_init(&c->claimed, false);
    c->listed = false;
    c->broken = 0;
    dz_comm_get(comm);
    return c;
}

int dz_coll_raise(struct dz_comm *comm, const char *call, int errclass, int peer)
{
    if (!errclass)
        return MPI_SUCCESS;
    if (peer < 0)
        return dz_raise(comm, errclass, call, "failed on rank %d", comm->rank);
    return dz_raise(comm, errclass, call, "the exchange with rank %d (rank %d of MPI_COMM_WORLD) failed", peer,
                    dz_world_rank(comm, peer));
}

int dz_coll_end(struct dz_coll *c, int rc)
{
    if (rc) {
        c->fail = rc;
        give_up(c, c->nsteps); /* of what was begun before the failure */
    } else if (c->nsteps) {
        rc = dz_coll_fence(c);
    }
    free_pieces(c);
    free(c->steps);
    return dz_coll_raise(c->comm, c->call, rc, c->peer);
}

int dz_coll_go(const struct dz_how *how, struct dz_coll *c, int rc)
{
    struct dz_comm *comm = c->comm;
    if (c->mode == DZ_COLL_BLOCKING)
        return dz_coll_end(c, rc);
    if (!rc && c->mode == DZ_COLL_INIT && (rc = dz_coll_bind(c)))
        rc = dz_class_of_errno(rc);
    if (rc) {
        int peer = c->peer;
        dz_coll_destroy(c);
        return dz_coll_raise(comm, how->call, rc, peer);
    }
    *how->request = &c->req;
    return c->mode == DZ_COLL_IMMEDIATE ? coll_start(&c->req, how->call) : MPI_SUCCESS;
}
