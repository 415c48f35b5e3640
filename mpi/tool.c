/* tool.c - the tool information interface (MPI 4.0, chapter 15.3): the counters of transport.h as performance variables.
 *
 * Each is of class counter, unsigned long long, continuous, read-only and bound to no object. There are no control
 * variables (the settings are read once, before anything can ask) and no categories. These calls return their error and
 * call no error handler; they may be used before MPI_Init and after MPI_Finalize, by any thread, between
 * MPI_T_init_thread and as many MPI_T_finalize. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

static const struct {
    const char *name, *help;
} vars[] = {
#define X(name, help) {#name, help},
    DZ_COUNTERS(X)
#undef X
};
enum { VARS = sizeof vars / sizeof *vars, MAGIC_SESSION = 0x444e5453, MAGIC_HANDLE = 0x444e5456 };

struct mca_base_pvar_session_t {
    uint32_t magic;
    struct mca_base_pvar_handle_t *handles;
};
struct mca_base_pvar_handle_t {
    uint32_t magic;
    int var;
    struct mca_base_pvar_session_t *session;
    struct mca_base_pvar_handle_t *next;
};
typedef struct mca_base_pvar_session_t session_t;
typedef struct mca_base_pvar_handle_t handle_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int inits;

#define READY()                                                                                                      \
    do {                                                                                                             \
        if (!atomic_load_explicit(&inits, memory_order_acquire))                                                     \
            return MPI_T_ERR_NOT_INITIALIZED;                                                                        \
    } while (0)

int PMPI_T_init_thread(int required, int *provided)
{
    if (!provided || required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
        return MPI_T_ERR_INVALID;
    *provided = MPI_THREAD_MULTIPLE;
    atomic_fetch_add_explicit(&inits, 1, memory_order_release);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_init_thread)

int PMPI_T_finalize(void)
{
    int n = atomic_load_explicit(&inits, memory_order_relaxed);
    do {
        if (!n)
            return MPI_T_ERR_NOT_INITIALIZED;
    } while (!atomic_compare_exchange_weak_explicit(&inits, &n, n - 1, memory_order_acq_rel, memory_order_relaxed));
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_finalize)

/* Text out: *len is the room on entry, the whole length with its end on return; NULL or no room: the length alone. */
static void give_text(const char *text, char *to, int *len)
{
    if (!len)
        return;
    int need = (int)strlen(text) + 1;
    if (to && *len > 0) {
        int n = need < *len ? need : *len;
        memcpy(to, text, (size_t)n - 1);
        to[n - 1] = 0;
    }
    *len = need;
}

static void give(int *to, int value)
{
    if (to)
        *to = value;
}

/* ---- performance variables */
int PMPI_T_pvar_get_num(int *num_pvar)
{
    READY();
    if (!num_pvar)
        return MPI_T_ERR_INVALID;
    *num_pvar = VARS;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_get_num)

int PMPI_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                         MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                         int *readonly, int *continuous, int *atomic)
{
    READY();
    if (pvar_index < 0 || pvar_index >= VARS)
        return MPI_T_ERR_INVALID_INDEX;
    give_text(vars[pvar_index].name, name, name_len);
    give_text(vars[pvar_index].help, desc, desc_len);
    give(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
    give(var_class, MPI_T_PVAR_CLASS_COUNTER);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    if (datatype)
        *datatype = MPI_UNSIGNED_LONG_LONG;
    if (enumtype)
        *enumtype = MPI_T_ENUM_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_get_info)

int PMPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    READY();
    if (!name || !pvar_index)
        return MPI_T_ERR_INVALID;
    for (int i = 0; i < VARS && var_class == MPI_T_PVAR_CLASS_COUNTER; i++) {
        if (!strcmp(name, vars[i].name)) {
            *pvar_index = i;
            return MPI_SUCCESS;
        }
    }
    return MPI_T_ERR_INVALID_NAME;
}
DZ_WEAK(PI_T_pvar_get_index)

int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    READY();
    if (!session)
        return MPI_T_ERR_INVALID;
    session_t *s = calloc(1, sizeof *s);
    if (!s)
        return MPI_T_ERR_OUT_OF_SESSIONS;
    s->magic = MAGIC_SESSION;
    *session = s;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_session_create)

static bool session_ok(const session_t *s)
{
    return s && s->magic == MAGIC_SESSION;
}

int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
    READY();
    if (!session || !session_ok(*session))
        return MPI_T_ERR_INVALID_SESSION;
    session_t *s = *session;
    pthread_mutex_lock(&lock);
    s->magic = 0;
    for (handle_t *h; (h = s->handles);) {
        s->handles = h->next;
        h->magic = 0;
        free(h);
    }
    pthread_mutex_unlock(&lock);
    free(s);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_session_free)

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle,
                             int *count)
{
    READY();
    (void)obj_handle; /* bound to no object */
    if (!session_ok(session))
        return MPI_T_ERR_INVALID_SESSION;
    if (pvar_index < 0 || pvar_index >= VARS)
        return MPI_T_ERR_INVALID_INDEX;
    if (!handle)
        return MPI_T_ERR_INVALID;
    handle_t *h = calloc(1, sizeof *h);
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    *h = (handle_t){.magic = MAGIC_HANDLE, .var = pvar_index, .session = session};
    pthread_mutex_lock(&lock);
    h->next = session->handles;
    session->handles = h;
    pthread_mutex_unlock(&lock);
    give(count, 1);
    *handle = h;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_handle_alloc)

/* What is wrong with the pair. */
static int check(const session_t *s, const handle_t *h)
{
    READY();
    if (!session_ok(s))
        return MPI_T_ERR_INVALID_SESSION;
    if (!h || h == MPI_T_PVAR_ALL_HANDLES || h->magic != MAGIC_HANDLE || h->session != s)
        return MPI_T_ERR_INVALID_HANDLE;
    return MPI_SUCCESS;
}

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    int rc = check(session, handle ? *handle : NULL);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    handle_t **at = &session->handles, *h = *handle;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_mutex_unlock(&lock);
    h->magic = 0;
    free(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_handle_free)

/* All of a session's handles: those that cannot are passed over, and none can. */
static int refuse(const session_t *s, const handle_t *h, int why)
{
    READY();
    if (session_ok(s) && h == MPI_T_PVAR_ALL_HANDLES)
        return MPI_SUCCESS;
    int rc = check(s, h);
    return rc ? rc : why;
}

int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}
DZ_WEAK(PI_T_pvar_start)

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}
DZ_WEAK(PI_T_pvar_stop)

int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}
DZ_WEAK(PI_T_pvar_reset)

int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    (void)buf;
    int rc = check(session, handle);
    return rc ? rc : MPI_T_ERR_PVAR_NO_WRITE;
}
DZ_WEAK(PI_T_pvar_write)

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    int rc = check(session, handle);
    if (rc)
        return rc;
    if (!buf)
        return MPI_T_ERR_INVALID;
    unsigned long long value = atomic_load_explicit(&dz_counters[handle->var], memory_order_relaxed);
    memcpy(buf, &value, sizeof value);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_T_pvar_read)

int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    (void)buf;
    int rc = check(session, handle);
    return rc ? rc : MPI_T_ERR_PVAR_NO_ATOMIC;
}
DZ_WEAK(PI_T_pvar_readreset)

/* ---- what there is none of */
static int none(int *num)
{
    READY();
    if (!num)
        return MPI_T_ERR_INVALID;
    *num = 0;
    return MPI_SUCCESS;
}
static int no_such(int why)
{
    READY();
    return why;
}

int PMPI_T_cvar_get_num(int *num_cvar) { return none(num_cvar); }
DZ_WEAK(PI_T_cvar_get_num)
int PMPI_T_category_get_num(int *num_cat) { return none(num_cat); }
DZ_WEAK(PI_T_category_get_num)
int PMPI_T_category_changed(int *stamp) { return none(stamp); }
DZ_WEAK(PI_T_category_changed)

int PMPI_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                         MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    (void)cvar_index, (void)name, (void)name_len, (void)verbosity, (void)datatype, (void)enumtype, (void)desc;
    (void)desc_len, (void)bind, (void)scope;
    return no_such(MPI_T_ERR_INVALID_INDEX);
}
DZ_WEAK(PI_T_cvar_get_info)

int PMPI_T_cvar_get_index(const char *name, int *cvar_index)
{
    (void)name, (void)cvar_index;
    return no_such(MPI_T_ERR_INVALID_NAME);
}
DZ_WEAK(PI_T_cvar_get_index)

int PMPI_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    (void)cvar_index, (void)obj_handle, (void)handle, (void)count;
    return no_such(MPI_T_ERR_INVALID_INDEX);
}
DZ_WEAK(PI_T_cvar_handle_alloc)

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    (void)handle;
    return no_such(MPI_T_ERR_INVALID_HANDLE);
}
DZ_WEAK(PI_T_cvar_handle_free)

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    (void)handle, (void)buf;
    return no_such(MPI_T_ERR_INVALID_HANDLE);
}
DZ_WEAK(PI_T_cvar_read)

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    (void)handle, (void)buf;
    return no_such(MPI_T_ERR_INVALID_HANDLE);
}
DZ_WEAK(PI_T_cvar_write)

int PMPI_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
                             int *num_pvars, int *num_categories)
{
    (void)cat_index, (void)name, (void)name_len, (void)desc, (void)desc_len, (void)num_cvars, (void)num_pvars;
    (void)num_categories;
    return no_such(MPI_T_ERR_INVALID_INDEX);
}
DZ_WEAK(PI_T_category_get_info)

int PMPI_T_category_get_index(const char *name, int *category_index)
{
    (void)name, (void)category_index;
    return no_such(MPI_T_ERR_INVALID_NAME);
}
DZ_WEAK(PI_T_category_get_index)

#define NO_CATEGORY(what)                                                                                            \
    int PMPI_T_category_get_##what(int cat_index, int len, int indices[])                                            \
    {                                                                                                                \
        (void)cat_index, (void)len, (void)indices;                                                                   \
        return no_such(MPI_T_ERR_INVALID_INDEX);                                                                     \
    }
NO_CATEGORY(cvars)
DZ_WEAK(PI_T_category_get_cvars)
NO_CATEGORY(pvars)
DZ_WEAK(PI_T_category_get_pvars)
NO_CATEGORY(categories)
DZ_WEAK(PI_T_category_get_categories)

int PMPI_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    (void)enumtype, (void)num, (void)name, (void)name_len;
    return no_such(MPI_T_ERR_INVALID_HANDLE);
}
DZ_WEAK(PI_T_enum_get_info)

int PMPI_T_enum_get_item(MPI_T_enum enumtype, int item, int *value, char *name, int *name_len)
{
    (void)enumtype, (void)item, (void)value, (void)name, (void)name_len;
    return no_such(MPI_T_ERR_INVALID_HANDLE);
}
DZ_WEAK(PI_T_enum_get_item)
