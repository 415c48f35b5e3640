/* progress_thread.c - the thread that DENIZEN_PROGRESS_THREAD=1 asks for: what waits for this process's next MPI call
 * (a partition whose receiver was late, a rendezvous, the binding of a new pair) moves while the program computes.
 *
 * It does what a waiting rank does, with the lock that MPI_THREAD_MULTIPLE uses, so the library works as at that level
 * whatever the program asked for. It runs while there is something to move, then naps, longer and longer up to
 * NAP_MAX_NS: it takes little of a core that the program needs. Without the setting there is no such thread. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "mpi/core.h"

#define NAP_MIN_NS 20000
#define NAP_MAX_NS 1000000

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_t thread;
    bool runs, stop; /* stop: with mutex */
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* True: it has been asked to end. */
static bool nap(long ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&helper.mutex);
    if (!helper.stop)
        pthread_cond_timedwait(&helper.cond, &helper.mutex, &until);
    bool stop = helper.stop;
    pthread_mutex_unlock(&helper.mutex);
    return stop;
}

static void *run(void *arg)
{
    long ns = NAP_MIN_NS;
    do {
        ns = dz_progress() > 0 ? NAP_MIN_NS : ns * 2 < NAP_MAX_NS ? ns * 2 : NAP_MAX_NS;
    } while (!nap(ns));
    return arg;
}

int dz_progress_thread_start(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&helper.cond, &attr);
    pthread_condattr_destroy(&attr);
    helper.stop = false;
    sigset_t all, old; /* the program's signals are none of its business */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = -pthread_create(&helper.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    helper.runs = !rc;
    return rc;
}

void dz_progress_thread_stop(void)
{
    if (!helper.runs)
        return;
    pthread_mutex_lock(&helper.mutex);
    helper.stop = true;
    pthread_cond_signal(&helper.cond);
    pthread_mutex_unlock(&helper.mutex);
    pthread_join(helper.thread, NULL);
    pthread_cond_destroy(&helper.cond);
    helper.runs = false;
}
