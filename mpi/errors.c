/* errors.c - from a failure to the user's error handler, and back to words.
 *
 * Inside the library everything is 0 or a negative errno; this file alone knows which MPI class that is. An error is
 * raised once, by the entry point that noticed it: dz_raise writes the text (call, argument, value), keeps it for this
 * thread, and asks the handler of the communicator. Codes given to users are plain classes, so MPI_Error_string finds
 * the text of the last error of that class and thread and appends it.
 *
 * Codes above MPI_ERR_LASTCODE are the user's: a table that only grows, guarded by dz_lock. It outlives MPI_Finalize,
 * for the words may be asked for afterwards.
 *
 * A fatal error is one write of one line on stderr, so that lines of several ranks do not mix, and the end of the job. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/errors.h"

static const struct {
    const char *name, *words;
} classes[MPI_ERR_LASTCODE + 1] = {
#define C(class, words) [class] = {#class, words}
    C(MPI_SUCCESS, "no error"),
    C(MPI_ERR_BUFFER, "this buffer cannot be used"),
    C(MPI_ERR_COUNT, "the count is out of range"),
    C(MPI_ERR_TYPE, "no usable datatype"),
    C(MPI_ERR_TAG, "the tag is out of range"),
    C(MPI_ERR_COMM, "no usable communicator"),
    C(MPI_ERR_RANK, "no such rank"),
    C(MPI_ERR_REQUEST, "no request, or one of the wrong kind or state"),
    C(MPI_ERR_ROOT, "no such root"),
    C(MPI_ERR_GROUP, "no usable group"),
    C(MPI_ERR_OP, "no usable reduction operation"),
    C(MPI_ERR_TOPOLOGY, "the topology does not fit"),
    C(MPI_ERR_DIMS, "the dimensions do not fit"),
    C(MPI_ERR_ARG, "an argument is out of range"),
    C(MPI_ERR_UNKNOWN, "unknown error"),
    C(MPI_ERR_TRUNCATE, "the message is longer than its receive buffer"),
    C(MPI_ERR_OTHER, "error of another kind"),
    C(MPI_ERR_INTERN, "failure inside the library or below it"),
    C(MPI_ERR_IN_STATUS, "some requests have failed: their statuses say which"),
    C(MPI_ERR_PENDING, "neither failed nor completed yet"),
    C(MPI_ERR_ACCESS, "permission denied"),
    C(MPI_ERR_AMODE, "the file access mode does not fit"),
    C(MPI_ERR_ASSERT, "no valid assertion"),
    C(MPI_ERR_BAD_FILE, "the file name cannot be used"),
    C(MPI_ERR_BASE, "memory that did not come from MPI_Alloc_mem"),
    C(MPI_ERR_CONVERSION, "data could not be converted"),
    C(MPI_ERR_DISP, "the displacement is out of range"),
    C(MPI_ERR_DUP_DATAREP, "a data representation of that name exists"),
    C(MPI_ERR_FILE_EXISTS, "the file exists"),
    C(MPI_ERR_FILE_IN_USE, "the file is open somewhere"),
    C(MPI_ERR_FILE, "no usable file handle"),
    C(MPI_ERR_INFO_KEY, "the info key is too long or empty"),
    C(MPI_ERR_INFO_NOKEY, "no such info key"),
    C(MPI_ERR_INFO_VALUE, "the info value is too long or empty"),
    C(MPI_ERR_INFO, "no usable info object"),
    C(MPI_ERR_IO, "input or output failed"),
    C(MPI_ERR_KEYVAL, "no usable attribute key"),
    C(MPI_ERR_LOCKTYPE, "no such lock type"),
    C(MPI_ERR_NAME, "the service name was not published"),
    C(MPI_ERR_NO_MEM, "out of memory"),
    C(MPI_ERR_NOT_SAME, "the ranks of a collective call passed different arguments"),
    C(MPI_ERR_NO_SPACE, "no space left"),
    C(MPI_ERR_NO_SUCH_FILE, "no such file"),
    C(MPI_ERR_PORT, "no such port"),
    C(MPI_ERR_QUOTA, "the quota is used up"),
    C(MPI_ERR_READ_ONLY, "read-only file or file system"),
    C(MPI_ERR_RMA_CONFLICT, "accesses to a window are in conflict"),
    C(MPI_ERR_RMA_SYNC, "wrong synchronisation of a window"),
    C(MPI_ERR_SERVICE, "the service name cannot be unpublished"),
    C(MPI_ERR_SIZE, "the size is out of range"),
    C(MPI_ERR_SPAWN, "processes could not be started"),
    C(MPI_ERR_UNSUPPORTED_DATAREP, "data representation not supported"),
    C(MPI_ERR_UNSUPPORTED_OPERATION, "not supported by this library"),
    C(MPI_ERR_WIN, "no usable window"),
    C(MPI_T_ERR_MEMORY, "out of memory (tools)"),
    C(MPI_T_ERR_NOT_INITIALIZED, "the tools interface is not initialised"),
    C(MPI_T_ERR_CANNOT_INIT, "the tools interface cannot be initialised now"),
    C(MPI_T_ERR_INVALID_INDEX, "no such index (tools)"),
    C(MPI_T_ERR_INVALID_ITEM, "no such item (tools)"),
    C(MPI_T_ERR_INVALID_HANDLE, "no usable handle (tools)"),
    C(MPI_T_ERR_OUT_OF_HANDLES, "no more handles (tools)"),
    C(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions (tools)"),
    C(MPI_T_ERR_INVALID_SESSION, "no usable session (tools)"),
    C(MPI_T_ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
    C(MPI_T_ERR_CVAR_SET_NEVER, "the control variable cannot be set"),
    C(MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    C(MPI_T_ERR_PVAR_NO_WRITE, "the performance variable cannot be written"),
    C(MPI_T_ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and written in one step"),
    C(MPI_ERR_RMA_RANGE, "outside the window's memory"),
    C(MPI_ERR_RMA_ATTACH, "memory cannot be attached to the window"),
    C(MPI_ERR_RMA_FLAVOR, "the window is of the wrong flavour"),
    C(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    C(MPI_T_ERR_INVALID, "wrong use of the tools interface"),
    C(MPI_T_ERR_INVALID_NAME, "no such name (tools)"),
#ifdef MPI_ERR_PROC_ABORTED
    C(MPI_ERR_PROC_ABORTED, "a process was aborted"),
#endif
#ifdef MPI_ERR_PROC_FAILED
    C(MPI_ERR_PROC_FAILED, "a process has failed"),
#endif
#ifdef MPI_ERR_PROC_FAILED_PENDING
    C(MPI_ERR_PROC_FAILED_PENDING, "a process that may be the awaited one has failed"),
#endif
#ifdef MPI_ERR_REVOKED
    C(MPI_ERR_REVOKED, "the communicator was revoked"),
#endif
#ifdef MPI_ERR_SESSION
    C(MPI_ERR_SESSION, "no usable session"),
#endif
#ifdef MPI_ERR_VALUE_TOO_LARGE
    C(MPI_ERR_VALUE_TOO_LARGE, "the value does not fit its argument"),
#endif
#undef C
};

/* The last error of this thread. */
static _Thread_local struct {
    int errclass;
    char text[MPI_MAX_ERROR_STRING + 64];
} last;

struct user_code {
    int errclass;
    char *words;
};
static struct user_code *user_codes; /* of the codes from MPI_ERR_LASTCODE + 1 on */
int dz_error_last_code = MPI_ERR_LASTCODE;

/* ---- raising */
static void put_line(const char *text)
{
    char line[1024];
    int n = dz_boot.launched ? snprintf(line, sizeof line, "denizen: rank %d: %s\n", dz_boot.rank, text)
                             : snprintf(line, sizeof line, "denizen: %s\n", text);
    if (n >= (int)sizeof line) {
        n = sizeof line;
        line[n - 1] = '\n';
    }
    for (int at = 0; at < n;) {
        ssize_t put = write(STDERR_FILENO, line + at, (size_t)(n - at));
        if (put < 0 && errno != EINTR)
            break;
        at += put > 0 ? (int)put : 0;
    }
}

void dz_fatal(int code, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put_line(text);
    dz_boot_abort(code);
}

int dz_raise_phase(const char *call)
{
    bool before = atomic_load_explicit(&dz_phase, memory_order_acquire) == DZ_BEFORE_INIT;
    dz_fatal(MPI_ERR_OTHER, "%s was called %s", call, before ? "before MPI_Init" : "after MPI_Finalize");
}

static struct dz_errhandler *handler_of(struct dz_comm *comm)
{
    dz_lock();
    struct dz_errhandler *h = comm->errh ? comm->errh : MPI_ERRORS_ARE_FATAL;
    dz_errh_get(h);
    dz_unlock();
    return h;
}

/* Asks comm's handler; text says what happened. */
static int handle(struct dz_comm *comm, int code, const char *text)
{
    struct dz_errhandler *h = handler_of(comm);
    int kind = h->kind;
    if (kind == DZ_ERRH_USER)
        h->fn(&comm, &code);
    dz_errh_put(h);
    if (kind == DZ_ERRH_FATAL || kind == DZ_ERRH_ABORT)
        dz_fatal(code, "%s", text);
    return code;
}

int dz_raise(struct dz_comm *comm, int errclass, const char *call, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(last.text, sizeof last.text, "%s: ", call);
    vsnprintf(last.text + n, sizeof last.text - (size_t)n, fmt, ap);
    va_end(ap);
    last.errclass = errclass;
    const char *name = dz_class_name(errclass);
    char line[sizeof last.text + 64];
    snprintf(line, sizeof line, "%s (%s)", last.text, name ? name : "error of the program's own");
    if (atomic_load_explicit(&dz_phase, memory_order_acquire) != DZ_RUNNING)
        dz_fatal(errclass, "%s", line);
    return handle(dz_comm_ok(comm) ? comm : MPI_COMM_WORLD, errclass, line);
}

int dz_class_of_errno(int err)
{
    switch (-err) {
    case 0: return MPI_SUCCESS;
    case EHOSTDOWN:
    case ESRCH:
    case EPIPE:
    case ECONNRESET: return MPI_ERR_PROC_FAILED;
    case ENOMEM: return MPI_ERR_NO_MEM;
    case EMSGSIZE: return MPI_ERR_TRUNCATE;
    case ENOBUFS:
    case EFAULT: return MPI_ERR_BUFFER;
    case EINVAL: return MPI_ERR_ARG;
    case ENOTSUP:
    case ENOSYS: return MPI_ERR_UNSUPPORTED_OPERATION;
    case EHOSTUNREACH: return MPI_ERR_OTHER;
    default: return MPI_ERR_INTERN;
    }
}

int dz_raise_errno(struct dz_comm *comm, int err, const char *call, struct dz_peer *peer)
{
    int errclass = dz_class_of_errno(err);
    char who[64] = "";
    if (peer)
        snprintf(who, sizeof who, " (rank %d of MPI_COMM_WORLD)", peer->rank);
    if (errclass == MPI_ERR_PROC_FAILED)
        return dz_raise(comm, errclass, call, "%s%s", peer ? "the peer has died" : "a peer has died", who);
    if (err == -EHOSTUNREACH)
        return dz_raise(comm, errclass, call, "no transport reaches the peer%s; DENIZEN_TRANSPORT is '%s'", who,
                        dz_set.transport);
    return dz_raise(comm, errclass, call, "%s%s", strerror(-err), who);
}

/* ---- handlers as objects. Two have names in some releases' headers only. */
extern struct ompi_predefined_errhandler_t ompi_mpi_errors_abort, ompi_mpi_errors_throw_exceptions;

static void fill(struct dz_errhandler *h, int kind)
{
    h->magic = DZ_MAGIC_ERRH;
    h->kind = kind;
    h->fn = NULL;
    atomic_store_explicit(&h->refs, 1, memory_order_relaxed);
}

int dz_errors_init(void)
{
    fill(MPI_ERRORS_ARE_FATAL, DZ_ERRH_FATAL);
    fill(MPI_ERRORS_RETURN, DZ_ERRH_RETURN);
    fill((struct dz_errhandler *)(void *)&ompi_mpi_errors_abort, DZ_ERRH_ABORT);
    fill((struct dz_errhandler *)(void *)&ompi_mpi_errors_throw_exceptions, DZ_ERRH_FATAL);
    return 0;
}

void dz_errh_get(struct dz_errhandler *h)
{
    if (h && h->kind == DZ_ERRH_USER)
        atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void dz_errh_put(struct dz_errhandler *h)
{
    /* acq_rel: whoever frees has seen everybody's last use */
    if (!h || h->kind != DZ_ERRH_USER || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1)
        return;
    h->magic = 0;
    free(h);
}

static int check_handler(const char *call, struct dz_comm *comm, struct dz_errhandler *h)
{
    if (dz_errh_ok(h))
        return MPI_SUCCESS;
    return dz_raise(comm, MPI_ERR_ARG, call, h && h != MPI_ERRHANDLER_NULL ? "errhandler (%p) is no error handler"
                                                                          : "errhandler is MPI_ERRHANDLER_NULL (%p)",
                    (void *)h);
}

static int create_errhandler(const char *call, MPI_Comm_errhandler_function *fn, MPI_Errhandler *errhandler)
{
    int rc = dz_check_ptr(call, NULL, errhandler, "errhandler");
    if (rc)
        return rc;
    if (!fn)
        return dz_raise(NULL, MPI_ERR_ARG, call, "the function is NULL");
    struct dz_errhandler *h = calloc(1, sizeof *h);
    if (!h)
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    fill(h, DZ_ERRH_USER);
    h->fn = fn;
    *errhandler = h;
    return MPI_SUCCESS;
}

static int set_errhandler(const char *call, struct dz_comm *comm, struct dz_errhandler *h)
{
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = check_handler(call, comm, h);
    if (rc)
        return rc;
    dz_lock();
    struct dz_errhandler *old = comm->errh;
    dz_errh_get(h);
    comm->errh = h;
    dz_unlock();
    dz_errh_put(old);
    return MPI_SUCCESS;
}

static int get_errhandler(const char *call, struct dz_comm *comm, MPI_Errhandler *errhandler)
{
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_ptr(call, comm, errhandler, "errhandler");
    if (!rc)
        *errhandler = handler_of(comm); /* the user frees it like any other */
    return rc;
}

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
{
    DZ_ENTER("MPI_Comm_create_errhandler");
    return create_errhandler("MPI_Comm_create_errhandler", function, errhandler);
}
DZ_WEAK(PI_Comm_create_errhandler)

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    DZ_ENTER("MPI_Comm_set_errhandler");
    return set_errhandler("MPI_Comm_set_errhandler", comm, errhandler);
}
DZ_WEAK(PI_Comm_set_errhandler)

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    DZ_ENTER("MPI_Comm_get_errhandler");
    return get_errhandler("MPI_Comm_get_errhandler", comm, errhandler);
}
DZ_WEAK(PI_Comm_get_errhandler)

int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    DZ_ENTER("MPI_Comm_call_errhandler");
    int rc = dz_check_comm("MPI_Comm_call_errhandler", comm);
    if (rc)
        return rc;
    char text[128];
    const char *name = dz_class_name(errorcode);
    snprintf(text, sizeof text, "MPI_Comm_call_errhandler: error code %d (%s)", errorcode,
             name ? name : "the program's own");
    handle(comm, errorcode, text);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Comm_call_errhandler)

int PMPI_Errhandler_free(MPI_Errhandler *errhandler)
{
    DZ_ENTER("MPI_Errhandler_free");
    int rc = dz_check_ptr("MPI_Errhandler_free", NULL, errhandler, "errhandler");
    if (!rc)
        rc = check_handler("MPI_Errhandler_free", NULL, *errhandler);
    if (rc)
        return rc;
    dz_errh_put(*errhandler);
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Errhandler_free)

/* The names of MPI-1, which the header turns into compile-time errors but old programs still carry. */
#undef MPI_Errhandler_create
#undef MPI_Errhandler_set
#undef MPI_Errhandler_get
OMPI_DECLSPEC int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
OMPI_DECLSPEC int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
OMPI_DECLSPEC int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);

int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
{
    DZ_ENTER("MPI_Errhandler_create");
    return create_errhandler("MPI_Errhandler_create", function, errhandler);
}
DZ_WEAK(PI_Errhandler_create)

int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    DZ_ENTER("MPI_Errhandler_set");
    return set_errhandler("MPI_Errhandler_set", comm, errhandler);
}
DZ_WEAK(PI_Errhandler_set)

int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    DZ_ENTER("MPI_Errhandler_get");
    return get_errhandler("MPI_Errhandler_get", comm, errhandler);
}
DZ_WEAK(PI_Errhandler_get)

/* ---- codes and words. MPI_Error_class and MPI_Error_string may be called at any time. */
const char *dz_class_name(int errclass)
{
    return errclass >= 0 && errclass <= MPI_ERR_LASTCODE ? classes[errclass].name : NULL;
}

/* The entry of a code of the user's, or NULL. Lock held. */
static struct user_code *user_code(int code)
{
    return code > MPI_ERR_LASTCODE && code <= dz_error_last_code ? &user_codes[code - MPI_ERR_LASTCODE - 1] : NULL;
}

/* The class of any code, or -1. */
static int class_of(int code)
{
    if (dz_class_name(code))
        return code;
    dz_lock();
    struct user_code *u = user_code(code);
    int errclass = u ? u->errclass : -1;
    dz_unlock();
    return errclass;
}

int PMPI_Error_class(int errorcode, int *errorclass)
{
    int rc = dz_check_ptr("MPI_Error_class", NULL, errorclass, "errorclass");
    if (rc)
        return rc;
    int errclass = class_of(errorcode);
    if (errclass < 0)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Error_class", "errorcode is %d: no such code", errorcode);
    *errorclass = errclass;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Error_class)

int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
    int rc = dz_check_ptr("MPI_Error_string", NULL, string, "string");
    if (!rc)
        rc = dz_check_ptr("MPI_Error_string", NULL, resultlen, "resultlen");
    if (rc)
        return rc;
    if (class_of(errorcode) < 0)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Error_string", "errorcode is %d: no such code", errorcode);
    int n;
    if (dz_class_name(errorcode)) {
        bool has_text = errorcode != MPI_SUCCESS && errorcode == last.errclass;
        n = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s%s%s", classes[errorcode].name, classes[errorcode].words,
                     has_text ? ": " : "", has_text ? last.text : "");
    } else {
        dz_lock();
        const char *words = user_code(errorcode)->words;
        n = snprintf(string, MPI_MAX_ERROR_STRING, "%s", words ? words : "");
        dz_unlock();
    }
    *resultlen = n < MPI_MAX_ERROR_STRING ? n : MPI_MAX_ERROR_STRING - 1;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Error_string)

/* A new code of errclass, or of its own class if that is -1. Lock not held. */
static int add_code(const char *call, int errclass, int *code)
{
    dz_lock();
    size_t n = (size_t)(dz_error_last_code - MPI_ERR_LASTCODE);
    struct user_code *more = realloc(user_codes, (n + 1) * sizeof *more);
    if (more) {
        user_codes = more;
        *code = ++dz_error_last_code;
        user_codes[n] = (struct user_code){errclass < 0 ? *code : errclass, NULL};
    }
    dz_unlock();
    return more ? MPI_SUCCESS : dz_raise_errno(NULL, -ENOMEM, call, NULL);
}

int PMPI_Add_error_class(int *errorclass)
{
    DZ_ENTER("MPI_Add_error_class");
    int rc = dz_check_ptr("MPI_Add_error_class", NULL, errorclass, "errorclass");
    return rc ? rc : add_code("MPI_Add_error_class", -1, errorclass);
}
DZ_WEAK(PI_Add_error_class)

int PMPI_Add_error_code(int errorclass, int *errorcode)
{
    DZ_ENTER("MPI_Add_error_code");
    int rc = dz_check_ptr("MPI_Add_error_code", NULL, errorcode, "errorcode");
    if (rc)
        return rc;
    if (class_of(errorclass) != errorclass)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Add_error_code", "errorclass is %d: no error class", errorclass);
    return add_code("MPI_Add_error_code", errorclass, errorcode);
}
DZ_WEAK(PI_Add_error_code)

int PMPI_Add_error_string(int errorcode, const char *string)
{
    DZ_ENTER("MPI_Add_error_string");
    int rc = dz_check_ptr("MPI_Add_error_string", NULL, string, "string");
    if (rc)
        return rc;
    if (errorcode <= MPI_ERR_LASTCODE || class_of(errorcode) < 0)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Add_error_string", "errorcode is %d: not made by MPI_Add_error_code",
                        errorcode);
    char *words = strndup(string, MPI_MAX_ERROR_STRING - 1);
    if (!words)
        return dz_raise_errno(NULL, -ENOMEM, "MPI_Add_error_string", NULL);
    dz_lock();
    struct user_code *u = user_code(errorcode);
    char *old = u->words;
    u->words = words;
    dz_unlock();
    free(old);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Add_error_string)
