/* init.c - the life of the library in a process: MPI_Init, MPI_Finalize, MPI_Abort, and the one lock.
 *
 * Start: settings, launcher, transports (this is where all ranks meet), then the objects behind the predefined handles,
 * each after what it stands on. Anything that fails there ends the job with the reason: before MPI_Init is through
 * there is no error handler to ask.
 *
 * End: first the user's attribute callbacks, while MPI still works. Then nobody leaves before all have come: a message
 * or a partition that is on its way may still be fetched from this process's memory. A rank goes into the last fence
 * once its own queues are empty, and moves everything for its peers until the fence is over. A peer that dies meanwhile
 * would hold up the fence for ever; a peer that has left the fence and ended looks the same for a moment. So after
 * a death there is a time of grace, then the fence is given up and the death reported.
 *
 * dz_phase is stored last on the way up (release) and read by every call (relaxed: whoever may call MPI has been told
 * that MPI_Init has returned). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mpi/coll.h"
#include "mpi/errors.h"
#include "mpi/p2p.h"
#include "mpi/part.h"

enum { GRACE_MS = 2000, DEATH_LOOK_POLLS = 256 };

_Atomic int dz_phase = DZ_BEFORE_INIT;
bool dz_threaded, dz_running;

static _Atomic bool begun, ended;
static int provided_level;
static pthread_t main_thread;

/* ---- the lock */
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP; /* spins a little: holders are quick */
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

void dz_lock_slow(void)
{
    pthread_mutex_lock(&lock);
}

void dz_unlock_slow(void)
{
    pthread_mutex_unlock(&lock);
}

bool dz_trylock_slow(void)
{
    return !pthread_mutex_trylock(&lock);
}

/* ---- the way up */
static void must(int rc, const char *call, const char *what)
{
    if (rc)
        dz_fatal(MPI_ERR_OTHER, "%s: %s", call, dz_boot_error[0] ? dz_boot_error : what);
}

static void warn(const char *fmt, const char *text)
{
    char line[512];
    int n = snprintf(line, sizeof line, fmt, text);
    if (write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return; /* nobody is listening */
}

static void start(const char *call, int required)
{
    main_thread = pthread_self();
    provided_level = required;
    must(dz_settings_load(), call, "the settings cannot be read");
    dz_threaded = required == MPI_THREAD_MULTIPLE || dz_set.progress_thread;
    must(dz_errors_init(), call, "no error handlers");
    must(dz_boot_init(), call, "the launcher does not answer");
    if (dz_boot.rank == 0 && dz_settings_unknown())
        warn("denizen: unknown setting in the environment: %s (denizen-info lists those that exist)\n",
             dz_settings_unknown());
    must(dz_transport_init(), call, "no transport could be opened");
    must(dz_type_init(), call, "out of memory for the datatypes");
    must(dz_op_init(), call, "out of memory for the operations");
    must(dz_comm_init(), call, "out of memory for the communicators");
    dz_running = true;
    atomic_store_explicit(&dz_phase, DZ_RUNNING, memory_order_release);
    if (dz_set.progress_thread && dz_progress_thread_start())
        dz_fatal(MPI_ERR_OTHER, "%s: no thread for DENIZEN_PROGRESS_THREAD can be started", call);
}

static int init_thread(const char *call, int required, int *provided)
{
    if (atomic_exchange(&begun, true)) {
        if (atomic_load_explicit(&dz_phase, memory_order_acquire) != DZ_RUNNING)
            dz_fatal(MPI_ERR_OTHER, "%s was called a second time", call);
        return dz_raise(NULL, MPI_ERR_OTHER, call, "MPI is initialised already");
    }
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
        dz_fatal(MPI_ERR_ARG, "%s: required is %d, no thread level", call, required);
    start(call, required);
    if (provided)
        *provided = provided_level;
    return MPI_SUCCESS;
}

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv; /* launchers pass nothing through them */
    return init_thread("MPI_Init", MPI_THREAD_SINGLE, NULL);
}
DZ_WEAK(PI_Init)

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc, (void)argv;
    if (!provided)
        dz_fatal(MPI_ERR_ARG, "MPI_Init_thread: provided is NULL");
    return init_thread("MPI_Init_thread", required, provided);
}
DZ_WEAK(PI_Init_thread)

/* ---- the way down */
static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool queues_empty(void *unused)
{
    (void)unused;
    dz_lock();
    bool empty = true;
    for (int r = 0; empty && r < dz_boot.size; r++)
        empty = !dz_peers[r].out_head || dz_peers[r].gone;
    dz_unlock();
    return empty;
}

struct parting {
    int rc;
    unsigned polls;
    uint64_t since;      /* when a death was first seen */
    struct dz_peer *gone;
};

static bool flushed(void *arg)
{
    (void)arg;
    dz_lock();
    int rc = dz_transport_flush();
    dz_unlock();
    return rc != -EAGAIN;
}

static struct dz_peer *find_gone(void)
{
    struct dz_peer *gone = NULL;
    dz_lock();
    for (int r = 0; !gone && r < dz_boot.size; r++)
        if (dz_peers[r].gone)
            gone = &dz_peers[r];
    dz_unlock();
    return gone;
}

static bool all_have_come(void *arg)
{
    struct parting *p = arg;
    p->rc = dz_boot_fence_test();
    if (p->rc != -EAGAIN)
        return true;
    if (++p->polls % DEATH_LOOK_POLLS || !(p->gone = find_gone()))
        return false;
    if (!p->since)
        p->since = now_ms();
    if (now_ms() - p->since < GRACE_MS)
        return false;
    p->rc = -EHOSTDOWN;
    return true;
}

/* " (gone: rank 3, rank 5)" of those whose process has ended; empty where nobody knows. */
static void name_the_dead(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    dz_lock();
    for (int r = 0; r < dz_boot.size && used < bytes; r++) {
        struct dz_peer *peer = &dz_peers[r];
        if (r != dz_boot.rank && (peer->gone || (peer->t && peer->t->dead(peer))))
            used += (size_t)snprintf(text + used, bytes - used, used ? ", rank %d" : " (gone: rank %d", r);
    }
    dz_unlock();
    if (used && used < bytes - 1)
        strcpy(text + used, ")");
}

static int part_from_peers(void)
{
    struct parting p = {0};
    dz_wait_until(queues_empty, NULL);
    dz_wait_until(flushed, NULL); /* or the end of the connection might come before the last message */
    p.rc = dz_boot_fence_start();
    if (!p.rc)
        dz_wait_until(all_have_come, &p);
    if (p.rc == -EHOSTDOWN)
        return dz_raise_errno(MPI_COMM_WORLD, p.rc, "MPI_Finalize", p.gone);
    if (!p.rc)
        return MPI_SUCCESS;
    char dead[80];
    name_the_dead(dead, sizeof dead);
    return dz_raise(MPI_COMM_WORLD, dz_class_of_errno(p.rc), "MPI_Finalize", "%s%s", dz_boot_error, dead);
}

/* %r in the setting is the rank. One write: ranks may share the file. */
static void write_counters(void)
{
    char path[1024], text[4096];
    size_t n = 0;
    for (const char *s = dz_set.stats; *s && n < sizeof path - 16; s++) {
        if (s[0] == '%' && s[1] == 'r') {
            n += (size_t)snprintf(path + n, sizeof path - n, "%d", dz_boot.rank);
            s++;
        } else {
            path[n++] = *s;
        }
    }
    path[n] = 0;
    if (!n)
        return;
    static const char *const names[] = {
#define X(name, help) #name,
        DZ_COUNTERS(X)
#undef X
    };
    size_t used = 0;
    for (int i = 0; i < DZ_CTR_COUNT && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d %s %llu\n", dz_boot.rank, names[i],
                                 (unsigned long long)atomic_load_explicit(&dz_counters[i], memory_order_relaxed));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, used < sizeof text ? used : sizeof text - 1) < 0)
        warn("denizen: the counters cannot be written to DENIZEN_STATS='%s'\n", path);
    if (fd >= 0)
        close(fd);
}

int PMPI_Finalize(void)
{
    DZ_ENTER("MPI_Finalize");
    if (atomic_exchange(&ended, true))
        return dz_raise(NULL, MPI_ERR_OTHER, "MPI_Finalize", "called while another call of it is at work");
    dz_comm_fini();
    int rc = part_from_peers();
    dz_progress_thread_stop();
    dz_running = false;
    atomic_store_explicit(&dz_phase, DZ_FINALIZED, memory_order_release);
    dz_lock();
    dz_part_fini();
    dz_out_fini();
    dz_p2p_fini();
    dz_coll_fini();
    dz_type_fini();
    dz_unlock();
    write_counters();
    dz_transport_fini();
    dz_boot_fini();
    return rc;
}
DZ_WEAK(PI_Finalize)

/* ---- at any time */
int PMPI_Initialized(int *flag)
{
    int rc = dz_check_ptr("MPI_Initialized", NULL, flag, "flag");
    if (!rc)
        *flag = atomic_load_explicit(&dz_phase, memory_order_acquire) != DZ_BEFORE_INIT;
    return rc;
}
DZ_WEAK(PI_Initialized)

int PMPI_Finalized(int *flag)
{
    int rc = dz_check_ptr("MPI_Finalized", NULL, flag, "flag");
    if (!rc)
        *flag = atomic_load_explicit(&dz_phase, memory_order_acquire) == DZ_FINALIZED;
    return rc;
}
DZ_WEAK(PI_Finalized)

int PMPI_Query_thread(int *provided)
{
    DZ_ENTER("MPI_Query_thread");
    int rc = dz_check_ptr("MPI_Query_thread", NULL, provided, "provided");
    if (!rc)
        *provided = provided_level;
    return rc;
}
DZ_WEAK(PI_Query_thread)

int PMPI_Is_thread_main(int *flag)
{
    DZ_ENTER("MPI_Is_thread_main");
    int rc = dz_check_ptr("MPI_Is_thread_main", NULL, flag, "flag");
    if (!rc)
        *flag = pthread_equal(pthread_self(), main_thread) != 0;
    return rc;
}
DZ_WEAK(PI_Is_thread_main)

/* Ends the whole job, whatever comm is: its other processes could not go on. */
int PMPI_Abort(MPI_Comm comm, int errorcode)
{
    (void)comm;
    dz_fatal(errorcode, "MPI_Abort: the program ends the job with code %d", errorcode);
}
DZ_WEAK(PI_Abort)
