/* part_send.c - the sender's half of a partitioned pair.
 *
 * A partition takes one of two ways. Its epoch may go already (the usual one): Pready gives it to the transport and
 * moves its word to GIVEN. Or it may not yet: Pready leaves KEPT, and whoever raises `go` afterwards gives it. The two
 * look at each other crosswise (Pready: word, then go; raiser: go, then word; all four sequentially consistent), so
 * one of them sees the other, and the step from KEPT to GIVING is a compare-and-swap, so only one gives it.
 * test/model/ checks this. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/part.h"

enum { LIST_MAX = 64 }; /* partitions given to the transport in one call */

static struct dz_psend *attend_list; /* lock held */

void dz_psend_attend(struct dz_psend *s)
{
    if (atomic_exchange_explicit(&s->attending, true, memory_order_relaxed))
        return;
    s->attend_next = attend_list;
    attend_list = s;
}

void dz_psend_not_given(struct dz_psend *s, uint32_t part, uint64_t epoch, int rc)
{
    if (rc != -EAGAIN) {
        atomic_store_explicit(&s->fail, dz_class_of_errno(rc), memory_order_relaxed);
        atomic_store_explicit(&s->ready[part], DZ_GIVEN(epoch), memory_order_release);
        return;
    }
    dz_count(part_deferred);
    dz_lock();
    atomic_store_explicit(&s->ready[part], DZ_KEPT(epoch), memory_order_relaxed); /* the lock orders it */
    if (part < s->kept_from)
        s->kept_from = part;
    dz_psend_attend(s);
    dz_unlock();
}

/* The epoch may not go yet, or was not seen to. */
static int keep(struct dz_psend *s, uint32_t part, uint64_t epoch)
{
    uint64_t word = atomic_load_explicit(&s->ready[part], memory_order_relaxed);
    do {
        if (word >= DZ_KEPT(epoch))
            return -EEXIST;
    } while (!atomic_compare_exchange_weak_explicit(&s->ready[part], &word, DZ_KEPT(epoch), memory_order_seq_cst,
                                                    memory_order_relaxed)); /* acquire: give_kept */
    word = DZ_KEPT(epoch);
    if (atomic_load_explicit(&s->go, memory_order_seq_cst) >= epoch && /* release: raise_go */
        atomic_compare_exchange_strong_explicit(&s->ready[part], &word, DZ_GIVING(epoch), memory_order_relaxed,
                                                memory_order_relaxed))
        dz_psend_give(s, part, epoch);
    else
        dz_count(part_deferred);
    return 0;
}

int dz_psend_ready(struct dz_psend *s, uint32_t part, uint64_t epoch)
{
    uint64_t word = atomic_load_explicit(&s->ready[part], memory_order_relaxed);
    if (word >= DZ_KEPT(epoch))
        return -EEXIST; /* a kept one is given by whoever raises `go` */
    if (!s->t) {
        atomic_store_explicit(&s->ready[part], DZ_GIVEN(epoch), memory_order_relaxed);
        return 0;
    }
    /* acquire: what the receiver read of the old epochs happened before we overwrite it (release: raise_go) */
    if (atomic_load_explicit(&s->go, memory_order_acquire) < epoch)
        return keep(s, part, epoch);
    if (s->claims && !atomic_compare_exchange_strong_explicit(&s->ready[part], &word, DZ_GIVING(epoch),
                                                              memory_order_relaxed, memory_order_relaxed))
        return -EEXIST;
    dz_psend_give(s, part, epoch);
    return 0;
}

/* May this partition be given now? It is ours then. */
static bool claim(struct dz_psend *s, uint32_t part, uint64_t epoch)
{
    uint64_t word = atomic_load_explicit(&s->ready[part], memory_order_relaxed);
    /* acquire: as in dz_psend_ready */
    if (word >= DZ_KEPT(epoch) || !s->t || atomic_load_explicit(&s->go, memory_order_acquire) < epoch)
        return false;
    if (s->claims)
        return atomic_compare_exchange_strong_explicit(&s->ready[part], &word, DZ_GIVING(epoch), memory_order_relaxed,
                                                       memory_order_relaxed);
    atomic_store_explicit(&s->ready[part], DZ_GIVING(epoch), memory_order_relaxed); /* also for one listed twice */
    return true;
}

static void give_list(struct dz_psend *s, const uint32_t *parts, uint32_t n, uint64_t epoch)
{
    int rc;
    uint32_t given = s->t->send_list(s->chan, parts, n, epoch, &rc);
    for (uint32_t i = 0; i < given; i++)
        atomic_store_explicit(&s->ready[parts[i]], DZ_GIVEN(epoch), memory_order_release); /* acquire: all_given */
    for (uint32_t i = given; i < n; i++)
        dz_psend_not_given(s, parts[i], epoch, rc);
}

int64_t dz_psend_ready_list(struct dz_psend *s, const int *parts, uint32_t first, uint32_t n, uint64_t epoch)
{
    uint32_t batch[LIST_MAX], fill = 0;
    int64_t again = -1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t part = parts ? (uint32_t)parts[i] : first + i;
        if (claim(s, part, epoch)) {
            batch[fill++] = part;
            if (fill == LIST_MAX) {
                give_list(s, batch, fill, epoch);
                fill = 0;
            }
        } else if (dz_psend_ready(s, part, epoch)) {
            again = part;
        }
    }
    if (fill)
        give_list(s, batch, fill, epoch);
    return again;
}

/* Lock held. Gives what was ready before its epoch might go, or what the transport had no room for. */
static int give_kept(struct dz_psend *s, uint64_t epoch)
{
    uint32_t batch[LIST_MAX];
    int moved = 0, rc = 0;
    for (uint32_t p = s->kept_from; p < s->parts && !rc;) {
        uint32_t fill = 0;
        for (; p < s->parts && fill < LIST_MAX; p++) {
            uint64_t word = DZ_KEPT(epoch); /* acquire: the bytes that Pready's caller wrote (release: keep) */
            if (atomic_load_explicit(&s->ready[p], memory_order_seq_cst) == word &&
                atomic_compare_exchange_strong_explicit(&s->ready[p], &word, DZ_GIVING(epoch), memory_order_acquire,
                                                        memory_order_relaxed))
                batch[fill++] = p;
        }
        uint32_t given = fill ? s->t->send_list(s->chan, batch, fill, epoch, &rc) : 0;
        for (uint32_t i = 0; i < fill; i++)
            atomic_store_explicit(&s->ready[batch[i]], i < given || rc != -EAGAIN ? DZ_GIVEN(epoch) : DZ_KEPT(epoch),
                                  memory_order_release);
        moved += (int)given;
        s->kept_from = given < fill ? batch[given] : p;
    }
    if (rc && rc != -EAGAIN)
        atomic_store_explicit(&s->fail, dz_class_of_errno(rc), memory_order_relaxed);
    return rc == -EAGAIN ? rc : moved;
}

/* Lock held. 0: the epoch may go. */
static int raise_go(struct dz_psend *s, uint64_t epoch)
{
    if (atomic_load_explicit(&s->go, memory_order_relaxed) >= epoch)
        return 0;
    int rc = s->t->send_start(s->chan, epoch);
    if (rc)
        return rc;
    if (!s->claims)
        atomic_store_explicit(&s->usual, epoch, memory_order_release); /* acquire: dz_psend_usual */
    s->kept_from = 0;
    /* acquire: dz_psend_ready; with other threads keep may be looking from the other side */
    dz_store_crosswise(&s->go, epoch);
    return 0;
}

/* True: needs no more help. */
static bool help(struct dz_psend *s, int *moved)
{
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    if (atomic_load_explicit(&s->fail, memory_order_relaxed))
        return true;
    int rc = raise_go(s, epoch);
    if (!rc)
        rc = give_kept(s, epoch);
    if (rc == -EAGAIN)
        return false;
    if (rc < 0)
        atomic_store_explicit(&s->fail, dz_class_of_errno(rc), memory_order_relaxed);
    *moved += 1;
    return true;
}

int dz_psend_progress(void)
{
    int moved = 0;
    for (struct dz_psend **at = &attend_list, *s; (s = *at);) {
        if (help(s, &moved)) {
            *at = s->attend_next;
            atomic_store_explicit(&s->attending, false, memory_order_relaxed);
        } else {
            at = &s->attend_next;
        }
    }
    return moved;
}

void dz_psend_unattend(struct dz_psend *s)
{
    if (!atomic_exchange_explicit(&s->attending, false, memory_order_relaxed))
        return;
    struct dz_psend **at = &attend_list;
    while (*at != s)
        at = &(*at)->attend_next;
    *at = s->attend_next;
}

static int psend_start(struct dz_request *req, const char *call)
{
    struct dz_psend *s = (struct dz_psend *)req;
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed) + 1;
    (void)call;
    /* the status is the same in every round: it is written once, so that others may look at it meanwhile */
    atomic_store_explicit(&s->epoch, epoch, memory_order_relaxed);
    atomic_store_explicit(&req->active, true, memory_order_release); /* acquire: whoever uses the request next */
    if (!s->t)
        return 0;
    dz_lock();
    if (epoch > s->recv_last)
        atomic_store_explicit(&s->fail, MPI_ERR_REQUEST, memory_order_relaxed);
    int rc = raise_go(s, epoch);
    if (rc == -EAGAIN)
        dz_psend_attend(s);
    else if (rc)
        atomic_store_explicit(&s->fail, dz_class_of_errno(rc), memory_order_relaxed);
    dz_unlock();
    return 0;
}

static bool all_given(struct dz_psend *s, uint64_t epoch)
{
    /* acquire, release: what the thread that moved it has acquired */
    uint64_t given = atomic_load_explicit(&s->given, memory_order_acquire);
    uint32_t first = given >> 32 == (epoch & UINT32_MAX) ? (uint32_t)given : 0, p = first;
    /* acquire: what every thread did before its partition was given (release: dz_psend_give) */
    while (p < s->parts && atomic_load_explicit(&s->ready[p], memory_order_acquire) == DZ_GIVEN(epoch))
        p++;
    if (p != first)
        atomic_store_explicit(&s->given, epoch << 32 | p, memory_order_release);
    return p == s->parts;
}

static bool psend_poll(struct dz_request *req)
{
    struct dz_psend *s = (struct dz_psend *)req;
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    if (!s->t)
        return true;
    int fail = atomic_load_explicit(&s->fail, memory_order_relaxed);
    if (__builtin_expect(fail, 0)) {
        req->status.MPI_ERROR = fail;
        return true;
    }
    if (!all_given(s, epoch) || !dz_trylock())
        return false;
    bool done = s->t->send_done(s->chan, epoch);
    dz_unlock();
    return done;
}

static void psend_free(struct dz_request *req)
{
    struct dz_psend *s = (struct dz_psend *)req;
    if (s->t) {
        dz_psend_unattend(s);
        dz_part_withdraw(s);
        return;
    }
    dz_comm_put(req->comm);
    dz_type_put(s->type);
    free(s);
}

static int psend_cancel(struct dz_request *req)
{
    (void)req;
    return -ENOTSUP;
}

const struct dz_request_ops dz_psend_ops = {
    .name = "partitioned send", .start = psend_start, .poll = psend_poll, .free = psend_free, .cancel = psend_cancel,
};
