/* part_recv.c - the receiver's half of a partitioned pair.
 *
 * A send partition is taken from the transport by the first thread that looks when it is there: Parrived, Test, Wait
 * or Request_get_status. At MPI_THREAD_MULTIPLE the taker of a large one claims its word first (IDLE -> BUSY), so that
 * no two copy it; the others see a claimed word and go on. Small partitions are taken in runs instead, under one claim
 * (bind.claimed): what one run costs is less than a claim each. A claim is only asked for when something is there to
 * be taken. Who takes the last partition of an epoch ends it: recv_done, then `done`, which is all that completion
 * looks at.
 *
 * An epoch that is started before the request is matched is told to the transport when it is (dz_precv_attach). */
#include <errno.h>
#include <stdlib.h>

#include "mpi/part.h"

#define IDLE(e) (4 * (e))
#define BUSY(e) (4 * (e) + 1)
#define ARRIVED(e) (4 * (e) + 3)
#define FROZEN UINT64_MAX
enum {
    LOOK_AHEAD = 4,          /* partitions beyond the first missing one that a poll looks at */
    RUN_MAX = 32,            /* partitions taken from the transport in one call */
};

static struct dz_precv *take_list; /* lock held */

static void end_epoch(struct dz_precv *r, struct dz_bind *b, uint64_t epoch)
{
    r->t->recv_done(b->chan, epoch);
    /* acquire: precv_poll, dz_precv_arrived. Crosswise with arrived_close: either we see the close, or it sees us. */
    dz_store_crosswise(&r->done, epoch);
    if (__builtin_expect(epoch == atomic_load_explicit(&r->send_last, memory_order_seq_cst), 0))
        atomic_store_explicit(&dz_part_closing, true, memory_order_release); /* acquire: dz_part_progress */
}

static void count_landed(struct dz_precv *r, struct dz_bind *b, uint64_t epoch, uint32_t n)
{
    uint64_t before;
    if (b->runs) { /* one thread, or the claim's holder */
        before = atomic_load_explicit(&r->landed, memory_order_relaxed);
        atomic_store_explicit(&r->landed, before + n, memory_order_relaxed);
    } else { /* both: the last one has seen what all others copied, and says so in `done` */
        before = atomic_fetch_add_explicit(&r->landed, n, memory_order_acq_rel);
    }
    if (before + n == epoch * b->map.send_parts)
        end_epoch(r, b, epoch);
}

/* Large partitions of several threads: takes one if it is there and nobody else does. */
static bool land_one(struct dz_precv *r, struct dz_bind *b, uint32_t p, uint64_t epoch)
{
    uint64_t word = atomic_load_explicit(&b->arrived[p], memory_order_acquire); /* release: below */
    if (word == ARRIVED(epoch))
        return true;
    if (word > IDLE(epoch) || !r->t->recv_ready(b->chan, p, epoch) ||
        !atomic_compare_exchange_strong_explicit(&b->arrived[p], &word, BUSY(epoch), memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    int rc = r->t->recv_part(b->chan, p, epoch);
    if (__builtin_expect(rc < 0, 0))
        atomic_store_explicit(&r->fail, dz_class_of_errno(rc), memory_order_relaxed);
    if (rc != 1) {
        atomic_store_explicit(&b->arrived[p], IDLE(epoch), memory_order_release); /* acquire: above, freeze */
        return false;
    }
    atomic_store_explicit(&b->arrived[p], ARRIVED(epoch), memory_order_release); /* acquire: above */
    count_landed(r, b, epoch, 1);
    return true;
}

static bool try_claim(struct dz_bind *b)
{
    /* acquire, release: what the holder before us took and counted */
    return !dz_threaded || (!atomic_load_explicit(&b->claimed, memory_order_relaxed) &&
                            !atomic_exchange_explicit(&b->claimed, true, memory_order_acquire));
}

static void let_go(struct dz_bind *b)
{
    if (dz_threaded)
        atomic_store_explicit(&b->claimed, false, memory_order_release);
}

/* Takes what is there from `first` on, in one call of the transport; under the claim. How many there are. */
static uint32_t land_run(struct dz_precv *r, struct dz_bind *b, uint32_t first, uint64_t epoch)
{
    uint32_t end = first, n;
    while (end < b->map.send_parts && end < first + RUN_MAX &&
           atomic_load_explicit(&b->arrived[end], memory_order_relaxed) != ARRIVED(epoch))
        end++;
    if (end == first)
        return 1; /* another thread was quicker */
    n = r->t->recv_run(b->chan, first, end, epoch);
    if (!n) { /* an error ends a run: this tells which */
        int rc = r->t->recv_part(b->chan, first, epoch);
        if (__builtin_expect(rc < 0, 0))
            atomic_store_explicit(&r->fail, dz_class_of_errno(rc), memory_order_relaxed);
        n = rc == 1;
    }
    for (uint32_t p = first; p < first + n; p++)
        atomic_store_explicit(&b->arrived[p], ARRIVED(epoch), memory_order_release); /* acquire: land */
    if (n)
        count_landed(r, b, epoch, n);
    return n;
}

/* How many partitions from p on are in the receive buffer now, as far as one look tells: 0 or more. */
static uint32_t land(struct dz_precv *r, struct dz_bind *b, uint32_t p, uint64_t epoch)
{
    if (atomic_load_explicit(&b->arrived[p], memory_order_acquire) == ARRIVED(epoch)) /* release: land_run, land_one */
        return 1;
    if (!b->runs)
        return land_one(r, b, p, epoch);
    /* no claim for nothing: a thread that is preempted with it keeps all others waiting */
    if (dz_threaded && !r->t->recv_ready(b->chan, p, epoch))
        return 0;
    if (!try_claim(b))
        return 0;
    uint32_t n = 0;
    /* a thread that comes late may hold an epoch that others have ended meanwhile */
    if (!dz_threaded || atomic_load_explicit(&r->done, memory_order_relaxed) < epoch)
        n = land_run(r, b, p, epoch);
    let_go(b);
    return n;
}

bool dz_precv_arrived(struct dz_precv *r, uint32_t part, uint64_t epoch)
{
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_acquire); /* release: dz_precv_attach */
    if (atomic_load_explicit(&r->done, memory_order_acquire) >= epoch)
        return true;
    if (!b)
        return false;
    struct dz_part_range range = dz_part_range(&b->map, part);
    for (uint32_t p = range.first, n; p < range.end; p += n)
        if (!(n = land(r, b, p, epoch))) /* also what the next calls will ask for */
            return false;
    return true;
}

/* Takes what is there, from the first missing partition on. */
static void take_some(struct dz_precv *r, struct dz_bind *b, uint64_t epoch)
{
    /* a cursor of an older epoch counts as 0; one thread's may lag behind another's, the words decide */
    uint64_t cursor = atomic_load_explicit(&r->cursor, memory_order_relaxed);
    uint32_t from = cursor >> 32 == (epoch & UINT32_MAX) ? (uint32_t)cursor : 0, p = from, last = b->map.send_parts - 1;
    for (uint32_t n; p <= last && (n = land(r, b, p, epoch)); p += n)
        ;
    if (p != from)
        atomic_store_explicit(&r->cursor, epoch << 32 | p, memory_order_relaxed);
    if (p >= last)
        return;
    for (uint32_t ahead = p + 1; ahead <= last && ahead <= p + LOOK_AHEAD; ahead++)
        land(r, b, ahead, epoch);
}

/* The same in every round, so written once: others may look at it while a round is started. */
static void set_status(struct dz_precv *r, const struct dz_bind *b)
{
    uint64_t sent = b->map.send_bytes * b->map.send_parts, room = r->view.bytes;
    r->req.status.MPI_SOURCE = r->source;
    r->req.status.MPI_TAG = r->tag;
    r->req.status.MPI_ERROR = sent > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    r->req.status._ucount = sent > room ? room : sent;
}

static bool precv_poll(struct dz_request *req)
{
    struct dz_precv *r = (struct dz_precv *)req;
    uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);
    if (!r->t)
        return true;
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_acquire); /* release: dz_precv_attach */
    if (b && atomic_load_explicit(&r->done, memory_order_acquire) != epoch)  /* release: end_epoch */
        take_some(r, b, epoch);
    if (atomic_load_explicit(&r->done, memory_order_acquire) == epoch)
        return true;
    int fail = atomic_load_explicit(&r->fail, memory_order_relaxed);
    if (__builtin_expect(fail, 0))
        req->status.MPI_ERROR = fail;
    return fail;
}

static void take_along(struct dz_precv *r)
{
    if (r->taking)
        return;
    r->taking = true;
    r->take_next = take_list;
    take_list = r;
}

static void leave_alone(struct dz_precv *r)
{
    struct dz_precv **at = &take_list;
    if (!r->taking)
        return;
    while (*at != r)
        at = &(*at)->take_next;
    *at = r->take_next;
    r->taking = false;
}

int dz_precv_progress(void)
{
    int moved = 0;
    for (struct dz_precv *r = take_list, *next; r; r = next) {
        uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
        uint64_t before = atomic_load_explicit(&r->landed, memory_order_relaxed);
        next = r->take_next;
        take_some(r, atomic_load_explicit(&r->bind, memory_order_relaxed), epoch);
        moved += atomic_load_explicit(&r->landed, memory_order_relaxed) != before;
        if (atomic_load_explicit(&r->done, memory_order_relaxed) == epoch ||
            atomic_load_explicit(&r->fail, memory_order_relaxed))
            leave_alone(r);
    }
    return moved;
}

static int precv_start(struct dz_request *req, const char *call)
{
    struct dz_precv *r = (struct dz_precv *)req;
    uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed) + 1;
    (void)call;
    if (!r->t) {
        atomic_store_explicit(&r->epoch, epoch, memory_order_relaxed);
        atomic_store_explicit(&req->active, true, memory_order_release);
        return 0;
    }
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_acquire);
    bool alone = b && !b->must_take;
    if (!alone)
        dz_lock(); /* or the attaching thread might miss this epoch */
    if (!b)
        b = atomic_load_explicit(&r->bind, memory_order_acquire);
    /* acquire: whoever lands in the buffer from now on, after the caller's last look at it */
    atomic_store_explicit(&r->epoch, epoch, memory_order_release);
    if (__builtin_expect(epoch > atomic_load_explicit(&r->send_last, memory_order_relaxed), 0))
        atomic_store_explicit(&r->fail, MPI_ERR_REQUEST, memory_order_relaxed);
    if (b) {
        r->t->recv_start(b->chan, epoch);
        if (b->must_take)
            take_along(r);
    }
    atomic_store_explicit(&req->active, true, memory_order_release); /* acquire: whoever uses the request next */
    if (!alone)
        dz_unlock();
    return 0;
}

void dz_precv_attach(struct dz_precv *r, struct dz_bind *b)
{
    uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
    b->must_take = r->t->recv_must_take(b->chan);
    b->runs = !dz_threaded || b->map.send_bytes < DZ_PART_LARGE;
    set_status(r, b);
    if (epoch)
        r->t->recv_start(b->chan, epoch);
    if (epoch && b->must_take)
        take_along(r);
    atomic_store_explicit(&r->bind, b, memory_order_release); /* acquire: precv_poll, precv_start, dz_precv_arrived */
}

void dz_precv_detach(struct dz_precv *r)
{
    struct dz_bind *b = atomic_load_explicit(&r->bind, memory_order_relaxed);
    leave_alone(r);
    while (!try_claim(b)) /* for good */
        ;
    for (uint32_t p = 0; p < b->map.send_parts; p++) {
        uint64_t word = atomic_load_explicit(&b->arrived[p], memory_order_relaxed);
        /* a busy thread finds nothing and lets go at once: what ends here has never carried a partition, or all */
        while ((word & 3) == 1 || !atomic_compare_exchange_weak_explicit(&b->arrived[p], &word, FROZEN,
                                                                         memory_order_acquire, memory_order_relaxed))
            word = atomic_load_explicit(&b->arrived[p], memory_order_relaxed);
    }
    r->t->recv_stop(b->chan);
    atomic_store_explicit(&r->bind, NULL, memory_order_release);
    b->older = r->over;
    r->over = b;
}

static void precv_free(struct dz_request *req)
{
    struct dz_precv *r = (struct dz_precv *)req;
    if (r->t)
        dz_part_unwant(r);
    dz_comm_put(req->comm);
    dz_type_put(r->type);
    free(r);
}

static int precv_cancel(struct dz_request *req)
{
    (void)req;
    return -ENOTSUP;
}

const struct dz_request_ops dz_precv_ops = {
    .name = "partitioned receive", .start = precv_start, .poll = precv_poll, .free = precv_free,
    .cancel = precv_cancel,
};
