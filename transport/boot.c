/* boot.c - the wire-up of a job through PMIx.
 *
 * PMIx is spoken from MPI_Init to MPI_Finalize and never on a path that moves bytes: Init, one Put, one fence with
 * data, one Get a peer; later a second fence, and Finalize or Abort.
 *
 * Always:
 *   Rank and size come from PMIx alone. Without PMIX_NAMESPACE nothing of PMIx is called and the process is rank 0 of
 *   1, unless the environment shows a launcher that forgot PMIx: that is an error, never N single processes.
 *   No call of PMIx is trusted to return: those that talk to the server run in a thread of their own (bounded), whose
 *   end is waited for so long and no longer, and fences are waited for through their callback.
 *   Every fence carries data: Slurm's other kind is no barrier across nodes.
 *   A lost server ends the process at once, or it would stay as an orphan.
 *   What a peer has published is checked (struct envelope) before anybody relies on it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "transport/boot.h"

#define KEY "denizen.boot"
enum { MAGIC = 0x445a4231, WIRE = 1, ABORT_SECONDS = 5, FINALIZE_SECONDS = 10, INIT_SECONDS = 30 };

/* Stands before every rank's blob. */
struct envelope {
    uint32_t magic;
    uint32_t wire; /* counts up when anything that two ranks say to each other changes */
    uint64_t bytes;
};

struct dz_boot dz_boot = {.size = 1, .universe = 1};
char dz_boot_error[512];

static pmix_proc_t me, whole_job;
static bool connected;
static _Atomic bool leaving; /* the server may go: this process goes too */
static void **blobs;
static size_t *blob_sizes;

static int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(dz_boot_error, sizeof dz_boot_error, fmt, ap);
    va_end(ap);
    return err;
}

/* ---- calls that may not return */
struct call {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pmix_status_t (*fn)(int);
    int arg;
    pmix_status_t status;
    bool done, abandoned;
};

static void cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static struct timespec from_now(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

static void call_destroy(struct call *c)
{
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->cond);
    free(c);
}

static void *call_run(void *arg)
{
    struct call *c = arg;
    pmix_status_t status = c->fn(c->arg);
    pthread_mutex_lock(&c->mutex);
    c->status = status;
    c->done = true;
    bool abandoned = c->abandoned;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->mutex);
    if (abandoned)
        call_destroy(c);
    return NULL;
}

/* fn(arg) in another thread. 0 and its *status, or -ETIMEDOUT after seconds; then it may still be running. */
static int bounded(pmix_status_t (*fn)(int), int arg, long seconds, pmix_status_t *status)
{
    struct call *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    pthread_mutex_init(&c->mutex, NULL);
    cond_init_monotonic(&c->cond);
    c->fn = fn;
    c->arg = arg;
    /* the user's signals are none of this thread's business, nor of those that PMIx starts from it */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    int rc = -pthread_create(&thread, NULL, call_run, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        call_destroy(c);
        return rc;
    }
    struct timespec end = from_now(seconds * 1000);
    pthread_mutex_lock(&c->mutex);
    while (!c->done && !rc)
        rc = -pthread_cond_timedwait(&c->cond, &c->mutex, &end);
    bool done = c->done;
    c->abandoned = !done;
    if (done)
        *status = c->status;
    pthread_mutex_unlock(&c->mutex);
    if (!done) {
        pthread_detach(thread);
        return -ETIMEDOUT;
    }
    pthread_join(thread, NULL);
    call_destroy(c);
    return 0;
}

static pmix_status_t call_init(int unused)
{
    (void)unused;
    return PMIx_Init(&me, NULL, 0);
}

static pmix_status_t call_finalize(int unused)
{
    (void)unused;
    return PMIx_Finalize(NULL, 0);
}

static pmix_status_t call_abort(int code)
{
    return PMIx_Abort(code, NULL, NULL, 0);
}

/* ---- who am I */
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n--)
        h = (h ^ *p++) * 0x100000001b3u;
    return h;
}

static uint64_t mix_stat(uint64_t h, const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return mix(h, path, strlen(path));
    uint64_t id[2] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return mix(h, id, sizeof id);
}

static uint64_t own_host_id(void)
{
    char boot_id[256] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f || !fgets(boot_id, sizeof boot_id, f))
        gethostname(boot_id, sizeof boot_id - 1); /* poorer, but equal on one host too */
    if (f)
        fclose(f);
    uint64_t h = mix(0xcbf29ce484222325u, boot_id, strlen(boot_id));
    h = mix_stat(h, "/proc/self/ns/pid");
    h = mix_stat(h, "/proc/self/ns/ipc");
    return mix_stat(h, "/dev/shm");
}

/* Servers store one key in different widths. */
static bool int_of(const pmix_value_t *v, int64_t *out)
{
    switch (v->type) {
    case PMIX_INT: *out = v->data.integer; return true;
    case PMIX_INT8: *out = v->data.int8; return true;
    case PMIX_INT16: *out = v->data.int16; return true;
    case PMIX_INT32: *out = v->data.int32; return true;
    case PMIX_INT64: *out = v->data.int64; return true;
    case PMIX_UINT: *out = v->data.uint; return true;
    case PMIX_UINT8: *out = v->data.uint8; return true;
    case PMIX_UINT16: *out = v->data.uint16; return true;
    case PMIX_UINT32: *out = v->data.uint32; return true;
    case PMIX_UINT64: *out = (int64_t)v->data.uint64; return true;
    case PMIX_SIZE: *out = (int64_t)v->data.size; return true;
    case PMIX_PROC_RANK: *out = v->data.rank; return true;
    default: return false;
    }
}

/* Every server has these keys at hand or not at all: no question travels further than to this process's cache. */
static int get_int(const pmix_proc_t *proc, const char *key, int missing)
{
    bool yes = true;
    pmix_info_t only_local;
    PMIX_INFO_CONSTRUCT(&only_local);
    PMIX_INFO_LOAD(&only_local, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    pmix_value_t *v = NULL;
    int64_t n = missing;
    if (PMIx_Get(proc, key, &only_local, 1, &v) == PMIX_SUCCESS && v) {
        if (!int_of(v, &n) || n < 0 || n > INT32_MAX)
            n = missing;
        PMIX_VALUE_RELEASE(v);
    }
    PMIX_INFO_DESTRUCT(&only_local);
    return (int)n;
}

static long env_number(const char *name)
{
    const char *s = getenv(name);
    char *end;
    if (!s || !*s)
        return -1;
    errno = 0;
    long n = strtol(s, &end, 10);
    return *end || errno ? -1 : n;
}

/* No PMIx: one process, unless a launcher has started several without it. */
static int alone(void)
{
    /* above this stand the pseudo steps of Slurm's own: batch script, interactive shell */
    const long first_pseudo_step = 0xfffffff0;
    long step = env_number("SLURM_STEP_ID");
    long tasks = env_number("SLURM_STEP_NUM_TASKS");
    if (tasks < 0)
        tasks = env_number("SLURM_NTASKS");
    if (step >= 0 && step < first_pseudo_step && tasks > 1)
        return fail(-EPROTO,
                    "srun has started %ld tasks without PMIx: use `srun --mpi=pmix` (or set SLURM_MPI_TYPE=pmix); for "
                    "single processes unset SLURM_STEP_ID", tasks);
    if (env_number("PMI_SIZE") > 1)
        return fail(-EPROTO,
                    "a launcher has started %ld processes with PMI, not PMIx: use Open MPI's mpirun or `srun "
                    "--mpi=pmix`; for single processes unset PMI_SIZE", env_number("PMI_SIZE"));
    return 0;
}

static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                    pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    if (!atomic_load_explicit(&leaving, memory_order_relaxed))
        _exit(1);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static int join_job(void)
{
    long limit = dz_set.boot_timeout < INIT_SECONDS ? dz_set.boot_timeout : INIT_SECONDS;
    pmix_status_t status = PMIX_SUCCESS;
    int rc = bounded(call_init, 0, limit, &status);
    if (rc == -ETIMEDOUT)
        return fail(rc, "the launcher (PMIX_NAMESPACE=%s) has not answered PMIx_Init for %ld s", getenv("PMIX_NAMESPACE"),
                    limit);
    if (rc)
        return fail(rc, "no thread for PMIx_Init: %s", strerror(-rc));
    if (status != PMIX_SUCCESS)
        return fail(-ECONNREFUSED,
                    "PMIX_NAMESPACE=%s is set, but its PMIx server does not answer (%s): start with Open MPI's mpirun or "
                    "`srun --mpi=pmix`; for a single process unset PMIX_NAMESPACE", getenv("PMIX_NAMESPACE"),
                    PMIx_Error_string(status));
    connected = true;
    dz_boot.launched = true;
    static pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost, NULL, NULL);
    PMIX_LOAD_PROCID(&whole_job, me.nspace, PMIX_RANK_WILDCARD);
    dz_boot.size = get_int(&whole_job, PMIX_JOB_SIZE, -1);
    if (dz_boot.size < 1 || me.rank >= (pmix_rank_t)dz_boot.size)
        return fail(-EPROTO, "the launcher's PMIx tells rank %lu and a job of %d", (unsigned long)me.rank, dz_boot.size);
    dz_boot.rank = (int)me.rank;
    dz_boot.appnum = get_int(&me, PMIX_APPNUM, 0);
    dz_boot.universe = get_int(&whole_job, PMIX_UNIV_SIZE, dz_boot.size);
    if (dz_boot.universe < dz_boot.size)
        dz_boot.universe = dz_boot.size;
    snprintf(dz_boot.name, sizeof dz_boot.name, "%s", me.nspace);
    return 0;
}

int dz_boot_init(void)
{
    dz_boot = (struct dz_boot){.size = 1, .universe = 1, .host_id = own_host_id(), .name = "single"};
    dz_boot_error[0] = 0;
    return getenv("PMIX_NAMESPACE") ? join_job() : alone();
}

/* ---- fences: at most one at a time */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool ready; /* cond is initialised */
    bool pending;
    pmix_status_t status;
    pmix_info_t with_data;
} fence = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void on_fence(pmix_status_t status, void *unused)
{
    (void)unused;
    pthread_mutex_lock(&fence.mutex);
    fence.status = status;
    fence.pending = false;
    pthread_cond_signal(&fence.cond);
    pthread_mutex_unlock(&fence.mutex);
}

int dz_boot_fence_start(void)
{
    if (!connected)
        return 0;
    pthread_mutex_lock(&fence.mutex); /* the callback's thread takes it too, and sees all of this */
    if (!fence.ready) {
        bool yes = true;
        cond_init_monotonic(&fence.cond);
        PMIX_INFO_CONSTRUCT(&fence.with_data);
        PMIX_INFO_LOAD(&fence.with_data, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
        fence.ready = true;
    }
    fence.pending = true;
    fence.status = PMIX_SUCCESS;
    pthread_mutex_unlock(&fence.mutex);
    pmix_status_t status = PMIx_Fence_nb(NULL, 0, &fence.with_data, 1, on_fence, NULL);
    if (status == PMIX_SUCCESS)
        return 0;
    fence.pending = false; /* no callback will come */
    if (status == PMIX_OPERATION_SUCCEEDED)
        return 0;
    return fail(-ECONNRESET, "the launcher refuses a fence: %s", PMIx_Error_string(status));
}

int dz_boot_fence_test(void)
{
    if (!connected)
        return 0;
    pthread_mutex_lock(&fence.mutex);
    bool pending = fence.pending;
    pmix_status_t status = fence.status;
    pthread_mutex_unlock(&fence.mutex);
    if (pending)
        return -EAGAIN;
    if (status != PMIX_SUCCESS) /* also a partial success: somebody has died */
        return fail(-ECONNRESET, "not all ranks have come (%s)", PMIx_Error_string(status));
    return 0;
}

/* Waits asleep. Now and then asks whether anybody is left to wait for. */
static int fence_wait(void)
{
    enum { LOOK_MS = 1000 };
    /* mpirun ends the job itself when a process ends early; Slurm leaves that to us */
    bool slurm = !strncmp(me.nspace, "slurm.pmix.", strlen("slurm.pmix."));
    int local = slurm ? get_int(&whole_job, PMIX_LOCAL_SIZE, -1) : -1;
    int looks_missing = 0;
    for (long waited = 0; waited < dz_set.boot_timeout * 1000; waited += LOOK_MS) {
        struct timespec end = from_now(LOOK_MS);
        int rc = 0;
        pthread_mutex_lock(&fence.mutex);
        while (fence.pending && !rc)
            rc = pthread_cond_timedwait(&fence.cond, &fence.mutex, &end);
        pthread_mutex_unlock(&fence.mutex);
        rc = dz_boot_fence_test();
        if (rc != -EAGAIN)
            return rc;
        int alive = slurm ? dz_boot_tasks_alive() : -1;
        looks_missing = alive >= 0 && alive < local ? looks_missing + 1 : 0;
        if (looks_missing == 2) /* once may have been a look at a task that is being started */
            return fail(-EHOSTDOWN, "only %d of the %d tasks on this node are alive; one ended before it called MPI_Init",
                        alive, local);
    }
    return fail(-ETIMEDOUT, "not all %d ranks have come to MPI_Init within %ld s (DENIZEN_BOOT_TIMEOUT)", dz_boot.size,
                dz_set.boot_timeout);
}

int dz_boot_fence(void)
{
    int rc = dz_boot_fence_start();
    if (rc || !connected)
        return rc;
    return fence_wait();
}

/* ---- blobs */
static int publish(const void *own, size_t bytes)
{
    struct envelope env = {MAGIC, WIRE, bytes};
    char *whole = malloc(sizeof env + bytes);
    if (!whole)
        return fail(-ENOMEM, "out of memory");
    memcpy(whole, &env, sizeof env);
    memcpy(whole + sizeof env, own, bytes);
    pmix_value_t v;
    PMIX_VALUE_CONSTRUCT(&v);
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = whole;
    v.data.bo.size = sizeof env + bytes;
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, KEY, &v);
    if (status == PMIX_SUCCESS)
        status = PMIx_Commit();
    free(whole);
    if (status != PMIX_SUCCESS)
        return fail(-EPROTO, "the launcher's PMIx does not take this rank's address: %s", PMIx_Error_string(status));
    return 0;
}

static pmix_status_t get_blob(const pmix_proc_t *proc, pmix_value_t **v)
{
    bool yes = true;
    int seconds = INIT_SECONDS;
    pmix_info_t how;
    PMIX_INFO_CONSTRUCT(&how);
    PMIX_INFO_LOAD(&how, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    pmix_status_t status = PMIx_Get(proc, KEY, &how, 1, v);
    PMIX_INFO_DESTRUCT(&how);
    if (status == PMIX_SUCCESS)
        return status;
    /* what the fence has brought may still lie with the server */
    PMIX_INFO_CONSTRUCT(&how);
    PMIX_INFO_LOAD(&how, PMIX_TIMEOUT, &seconds, PMIX_INT);
    status = PMIx_Get(proc, KEY, &how, 1, v);
    PMIX_INFO_DESTRUCT(&how);
    return status;
}

static int collect(int rank)
{
    pmix_proc_t proc = me;
    proc.rank = (pmix_rank_t)rank;
    pmix_value_t *v = NULL;
    pmix_status_t status = get_blob(&proc, &v);
    if (status != PMIX_SUCCESS || !v)
        return fail(-EHOSTDOWN, "rank %d has told no address, it ended during MPI_Init: %s", rank, PMIx_Error_string(status));
    int rc = 0;
    struct envelope env;
    if (v->type != PMIX_BYTE_OBJECT || v->data.bo.size < sizeof env) {
        rc = fail(-EPROTO, "rank %d has told something that is no address", rank);
    } else {
        memcpy(&env, v->data.bo.bytes, sizeof env);
        if (env.magic != MAGIC || env.bytes != v->data.bo.size - sizeof env)
            rc = fail(-EPROTO, "rank %d has told something that is no address", rank);
        else if (env.wire != WIRE)
            rc = fail(-EPROTO, "rank %d runs another version of the library (protocol %u, here %d)", rank, env.wire, WIRE);
        else if (!(blobs[rank] = malloc(env.bytes ? env.bytes : 1)))
            rc = fail(-ENOMEM, "out of memory");
        else
            memcpy(blobs[rank], v->data.bo.bytes + sizeof env, blob_sizes[rank] = env.bytes);
    }
    PMIX_VALUE_RELEASE(v);
    return rc;
}

static void drop_blobs(void)
{
    for (int r = 0; blobs && r < dz_boot.size; r++)
        free(blobs[r]);
    free(blobs);
    free(blob_sizes);
    blobs = NULL;
    blob_sizes = NULL;
}

int dz_boot_exchange(const void *own, size_t bytes, void ***all, size_t **sizes)
{
    blobs = calloc((size_t)dz_boot.size, sizeof *blobs);
    blob_sizes = calloc((size_t)dz_boot.size, sizeof *blob_sizes);
    if (!blobs || !blob_sizes || !(blobs[dz_boot.rank] = malloc(bytes ? bytes : 1))) {
        drop_blobs();
        return fail(-ENOMEM, "out of memory for a job of %d ranks", dz_boot.size);
    }
    memcpy(blobs[dz_boot.rank], own, bytes);
    blob_sizes[dz_boot.rank] = bytes;
    int rc = connected ? publish(own, bytes) : 0;
    if (!rc)
        rc = dz_boot_fence();
    for (int r = 0; !rc && r < dz_boot.size; r++)
        if (r != dz_boot.rank)
            rc = collect(r);
    if (rc) {
        drop_blobs();
        return rc;
    }
    *all = blobs;
    *sizes = blob_sizes;
    return 0;
}

/* ---- the end */
void dz_boot_fini(void)
{
    drop_blobs();
    if (!connected)
        return;
    atomic_store_explicit(&leaving, true, memory_order_relaxed);
    connected = false;
    pmix_status_t status;
    bounded(call_finalize, 0, FINALIZE_SECONDS, &status); /* whatever it says: everybody has come to the end */
}

_Noreturn void dz_boot_abort(int code)
{
    int status = code & 0xff; /* all that a parent can see */
    if (code && !status)
        status = 1;
    atomic_store_explicit(&leaving, true, memory_order_relaxed);
    if (connected) {
        pmix_status_t unused;
        bounded(call_abort, status, ABORT_SECONDS, &unused);
    }
    _exit(status);
}
