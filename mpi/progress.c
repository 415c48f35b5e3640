/* progress.c - what moves when somebody waits, and how waiting gives way.
 *
 * Unless asked for (progress_thread.c) there is no progress thread: whoever waits or tests moves everything. At
 * MPI_THREAD_MULTIPLE one thread does so at a time; the others look at their own requests alone, which needs no lock
 * for partitions.
 *
 * Waiting has three steps. Polls without a pause: what is awaited is usually less than a microsecond away. Then
 * sched_yield between polls: harmless where each rank has its core, and all that is needed where threads of this rank
 * share it. Where ranks outnumber cores a yield may come straight back, so after a while they sleep for some
 * microseconds instead. The clock is read only once the first step is over. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

#include "mpi/coll.h"
#include "mpi/p2p.h"
#include "mpi/part.h"

enum { SPIN_ROOMY = 4000, SPIN_CROWDED = 40 };
#define NAP_AFTER_NS 200000u /* of waiting, when crowded */
#define NAP_NS 20000

static _Atomic uint64_t last_look; /* when the peers were last looked after */

int dz_progress(void)
{
    if (!dz_trylock())
        return 0;
    int n = dz_transport_poll() + dz_out_progress() + dz_part_progress();
    dz_unlock();
    return n + dz_coll_progress();
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bury(struct dz_peer *peer)
{
    peer->gone = peer->buried = true;
    dz_p2p_peer_gone(peer);
    dz_part_peer_gone(peer);
}

/* Lock held. */
static void look_after_peers(void)
{
    for (int r = 0; r < dz_boot.size; r++) {
        struct dz_peer *peer = &dz_peers[r];
        if (!peer->buried && peer->t && (peer->gone || peer->t->dead(peer)))
            bury(peer);
    }
}

static void look_now_and_then(uint64_t now)
{
    uint64_t period = (uint64_t)dz_set.peer_timeout * 1000000u;
    if (now - atomic_load_explicit(&last_look, memory_order_relaxed) < period || !dz_trylock())
        return;
    atomic_store_explicit(&last_look, now, memory_order_relaxed);
    dz_transport_poll(); /* what a peer sent before it died has arrived by now and counts */
    look_after_peers();
    dz_unlock();
}

void dz_backoff_pause(struct dz_backoff *b)
{
    unsigned limit = dz_set.spin >= 0 ? (unsigned)dz_set.spin : dz_crowded ? SPIN_CROWDED : SPIN_ROOMY;
    if (++b->polls < limit)
        return;
    uint64_t now = now_ns();
    if (!b->since)
        b->since = now;
    look_now_and_then(now);
    if (dz_crowded && now - b->since > NAP_AFTER_NS)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else
        sched_yield();
}

void dz_idle_test(void)
{
    static _Thread_local unsigned tests;
    if (++tests % (dz_crowded ? 8 : 1024))
        return;
    look_now_and_then(now_ns());
    sched_yield();
}

void dz_wait_until(bool (*done)(void *), void *arg)
{
    struct dz_backoff b = DZ_BACKOFF_INIT;
    while (!done(arg)) {
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
}
