/* request.c - one core for requests of all kinds: start, test, wait, free, cancel.
 *
 * A request is an object of the engine that made it; the operations table says how it starts and whether it is
 * complete. Completion is a fact of the engine (dz_request_done); the request is given up only here, in `retire`,
 * which copies the status, makes a persistent request inactive and frees any other.
 *
 * Threads: waiting and testing takes no lock unless a request is freed. One request is waited for by one thread at a
 * time, as the standard demands. */
#include <errno.h>
#include <stdio.h>

#include "mpi/core.h"

enum { POLLS = 16 }; /* of one request between two rounds of progress: a round costs about as much */

const MPI_Status dz_status_empty = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS};

void dz_request_init(struct dz_request *r, int kind, bool persistent, const struct dz_request_ops *ops,
                     struct dz_comm *comm)
{
    r->magic = DZ_MAGIC_REQ;
    r->kind = (uint8_t)kind;
    r->persistent = persistent;
    r->freed = false;
    atomic_init(&r->active, !persistent);
    atomic_init(&r->complete, false);
    r->ops = ops;
    r->comm = comm;
    r->peer = NULL;
    r->status = dz_status_empty;
}

/* MPI_REQUEST_NULL, or persistent and not started: complete, with an empty status. */
static inline bool idle(const struct dz_request *r)
{
    return r->kind == DZ_REQ_NULL || (r->persistent && !atomic_load_explicit(&r->active, memory_order_acquire));
}

static inline void give_status(MPI_Status *to, const MPI_Status *from)
{
    if (!to)
        return;
    /* MPI_ERROR belongs to the caller unless the call returns MPI_ERR_IN_STATUS (MPI 4.0, section 3.7.5) */
    to->MPI_SOURCE = from->MPI_SOURCE;
    to->MPI_TAG = from->MPI_TAG;
    to->_cancelled = from->_cancelled;
    to->_ucount = from->_ucount;
}

/* What a failed request was, kept beyond its end. */
struct failure {
    int error;
    struct dz_comm *comm;
    struct dz_peer *peer;
    const char *name;
};

static void free_request(struct dz_request *r)
{
    bool locks = r->ops->free_locks;
    if (!locks)
        dz_lock();
    r->ops->free(r);
    if (!locks)
        dz_unlock();
}

/* *request is complete. Returns its error class, and fills *failure when that is not MPI_SUCCESS. */
static int retire(MPI_Request *request, MPI_Status *status, struct failure *failure)
{
    struct dz_request *r = *request;
    int error = r->status.MPI_ERROR;
    if (__builtin_expect(error, 0))
        *failure = (struct failure){error, r->comm, r->peer, r->ops->name};
    give_status(status, &r->status);
    if (r->persistent) {
        atomic_store_explicit(&r->active, false, memory_order_release); /* acquire: idle */
        return error;
    }
    free_request(r);
    *request = MPI_REQUEST_NULL;
    return error;
}

int dz_request_finish(struct dz_request *r)
{
    struct failure ignored;
    return retire(&r, NULL, &ignored);
}

static int raise_failed(const char *call, const struct failure *f)
{
    char who[32] = "";
    if (f->peer)
        snprintf(who, sizeof who, " with rank %d of the job", f->peer->rank);
    return dz_raise(f->comm, f->error, call, "a %s%s failed: %s", f->name, who,
                    f->error == MPI_ERR_TRUNCATE      ? "the message is longer than the receive buffer"
                    : f->error == MPI_ERR_PROC_FAILED ? "that process is gone"
                    : f->error == MPI_ERR_REQUEST     ? "the other side has freed the request it was matched to"
                                                      : "the transport reports an error");
}

static int check_request(const char *call, MPI_Request *request)
{
    if (!request)
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "request is a NULL pointer");
    if (!dz_request_ok(*request))
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "request %p is no request", (void *)*request);
    return MPI_SUCCESS;
}

static int check_array(const char *call, int count, MPI_Request requests[])
{
    if (count < 0)
        return dz_raise(NULL, MPI_ERR_COUNT, call, "count is %d", count);
    if (count && !requests)
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "array_of_requests is NULL, count is %d", count);
    for (int i = 0; i < count; i++)
        if (!dz_request_ok(requests[i]))
            return dz_raise(NULL, MPI_ERR_REQUEST, call, "array_of_requests[%d] %p is no request", i,
                            (void *)requests[i]);
    return MPI_SUCCESS;
}

int dz_request_wait(struct dz_request *r)
{
    struct dz_backoff b = DZ_BACKOFF_INIT;
    while (!dz_request_done(r)) {
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
    return dz_request_finish(r);
}

static void wait_one(struct dz_request *r)
{
    struct dz_backoff b = DZ_BACKOFF_INIT;
    for (;;) {
        if (r->ops->poll) {
            for (int i = 0; i < POLLS; i++)
                if (r->ops->poll(r))
                    return;
        } else if (atomic_load_explicit(&r->complete, memory_order_acquire)) {
            return;
        }
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    }
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    DZ_ENTER("MPI_Wait");
    int rc = check_request("MPI_Wait", request);
    if (rc)
        return rc;
    struct dz_request *r = *request;
    if (idle(r)) {
        give_status(status, &dz_status_empty);
        return MPI_SUCCESS;
    }
    wait_one(r);
    struct failure failure;
    return retire(request, status, &failure) ? raise_failed("MPI_Wait", &failure) : MPI_SUCCESS;
}
DZ_WEAK(PI_Wait)

/* Is it complete? If not, moves everything once and looks again. */
static bool test_one(struct dz_request *r)
{
    return dz_request_done(r) || (dz_progress(), dz_request_done(r));
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    DZ_ENTER("MPI_Test");
    int rc = check_request("MPI_Test", request);
    if (!rc)
        rc = dz_check_ptr("MPI_Test", NULL, flag, "flag");
    if (rc)
        return rc;
    struct dz_request *r = *request;
    *flag = 1;
    if (idle(r)) {
        give_status(status, &dz_status_empty);
        return MPI_SUCCESS;
    }
    if (!test_one(r)) {
        *flag = 0;
        dz_idle_test();
        return MPI_SUCCESS;
    }
    struct failure failure;
    return retire(request, status, &failure) ? raise_failed("MPI_Test", &failure) : MPI_SUCCESS;
}
DZ_WEAK(PI_Test)

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    DZ_ENTER("MPI_Request_get_status");
    int rc = check_request("MPI_Request_get_status", &request);
    if (!rc)
        rc = dz_check_ptr("MPI_Request_get_status", NULL, flag, "flag");
    if (rc)
        return rc;
    bool quiet = idle(request);
    *flag = quiet || test_one(request);
    if (*flag)
        give_status(status, quiet ? &dz_status_empty : &request->status);
    else
        dz_idle_test();
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Request_get_status)

/* ---- any: the first complete one of the active; all idle: MPI_UNDEFINED */
static int find_done(int count, MPI_Request requests[], bool *any_active)
{
    *any_active = false;
    for (int i = 0; i < count; i++) {
        if (idle(requests[i]))
            continue;
        *any_active = true;
        if (dz_request_done(requests[i]))
            return i;
    }
    return MPI_UNDEFINED;
}

static int finish_any(const char *call, MPI_Request requests[], int index, MPI_Status *status)
{
    if (index == MPI_UNDEFINED) {
        give_status(status, &dz_status_empty);
        return MPI_SUCCESS;
    }
    struct failure failure;
    return retire(&requests[index], status, &failure) ? raise_failed(call, &failure) : MPI_SUCCESS;
}

int PMPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    DZ_ENTER("MPI_Waitany");
    int rc = check_array("MPI_Waitany", count, requests);
    if (!rc)
        rc = dz_check_ptr("MPI_Waitany", NULL, index, "index");
    if (rc)
        return rc;
    struct dz_backoff b = DZ_BACKOFF_INIT;
    bool active;
    while ((*index = find_done(count, requests, &active)) == MPI_UNDEFINED && active)
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    return finish_any("MPI_Waitany", requests, *index, status);
}
DZ_WEAK(PI_Waitany)

int PMPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    DZ_ENTER("MPI_Testany");
    int rc = check_array("MPI_Testany", count, requests);
    if (!rc)
        rc = dz_check_ptr("MPI_Testany", NULL, index, "index");
    if (!rc)
        rc = dz_check_ptr("MPI_Testany", NULL, flag, "flag");
    if (rc)
        return rc;
    bool active;
    *index = find_done(count, requests, &active);
    if (*index == MPI_UNDEFINED && active) {
        dz_progress();
        *index = find_done(count, requests, &active);
    }
    *flag = *index != MPI_UNDEFINED || !active;
    if (!*flag) {
        dz_idle_test();
        return MPI_SUCCESS;
    }
    return finish_any("MPI_Testany", requests, *index, status);
}
DZ_WEAK(PI_Testany)

/* ---- some and all: several results, so MPI_ERR_IN_STATUS where one failed */
static void give_error(MPI_Status *statuses, int i, int error)
{
    if (statuses)
        statuses[i].MPI_ERROR = error;
}

/* Retires the complete ones. Returns how many, MPI_UNDEFINED if none is active. */
static int take_done(int count, MPI_Request requests[], int indices[], MPI_Status *statuses, struct failure *first)
{
    int n = 0;
    bool active = false;
    for (int i = 0; i < count; i++) {
        if (idle(requests[i]))
            continue;
        active = true;
        if (!dz_request_done(requests[i]))
            continue;
        struct failure failure;
        int rc = retire(&requests[i], statuses ? &statuses[n] : NULL, &failure);
        if (rc && !first->error)
            *first = failure;
        give_error(statuses, n, rc);
        indices[n++] = i;
    }
    return active ? n : MPI_UNDEFINED;
}

static int finish_many(const char *call, const struct failure *first, const MPI_Status *statuses)
{
    if (!first->error)
        return MPI_SUCCESS;
    if (!statuses) /* nobody can look: say the first error itself */
        return raise_failed(call, first);
    return dz_raise(first->comm, MPI_ERR_IN_STATUS, call, "a %s failed; MPI_ERROR of its status says how", first->name);
}

static int check_some(const char *call, int incount, MPI_Request requests[], const int *outcount, const int *indices)
{
    int rc = check_array(call, incount, requests);
    if (!rc)
        rc = dz_check_ptr(call, NULL, outcount, "outcount");
    if (!rc && incount)
        rc = dz_check_ptr(call, NULL, indices, "array_of_indices");
    return rc;
}

int PMPI_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    DZ_ENTER("MPI_Waitsome");
    int rc = check_some("MPI_Waitsome", incount, requests, outcount, indices);
    if (rc)
        return rc;
    struct failure failure = {0};
    struct dz_backoff b = DZ_BACKOFF_INIT;
    while (!(*outcount = take_done(incount, requests, indices, statuses, &failure)))
        if (dz_progress())
            b = (struct dz_backoff)DZ_BACKOFF_INIT;
        else
            dz_backoff_pause(&b);
    return finish_many("MPI_Waitsome", &failure, statuses);
}
DZ_WEAK(PI_Waitsome)

int PMPI_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    DZ_ENTER("MPI_Testsome");
    int rc = check_some("MPI_Testsome", incount, requests, outcount, indices);
    if (rc)
        return rc;
    struct failure failure = {0};
    *outcount = take_done(incount, requests, indices, statuses, &failure);
    if (!*outcount) {
        dz_progress();
        *outcount = take_done(incount, requests, indices, statuses, &failure);
    }
    if (!*outcount)
        dz_idle_test();
    return finish_many("MPI_Testsome", &failure, statuses);
}
DZ_WEAK(PI_Testsome)

/* All are complete. */
static int retire_all(const char *call, int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct failure first = {0}, failure;
    for (int i = 0; i < count; i++) {
        int rc = MPI_SUCCESS;
        if (idle(requests[i])) {
            give_status(statuses ? &statuses[i] : NULL, &dz_status_empty);
        } else {
            rc = retire(&requests[i], statuses ? &statuses[i] : NULL, &failure);
            if (rc && !first.error)
                first = failure;
        }
        give_error(statuses, i, rc);
    }
    return finish_many(call, &first, statuses);
}

int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    DZ_ENTER("MPI_Waitall");
    int rc = check_array("MPI_Waitall", count, requests);
    if (rc)
        return rc;
    /* in order: what completes meanwhile is found done at its turn */
    for (int i = 0; i < count; i++)
        if (!idle(requests[i]))
            wait_one(requests[i]);
    return retire_all("MPI_Waitall", count, requests, statuses);
}
DZ_WEAK(PI_Waitall)

static bool all_done(int count, MPI_Request requests[])
{
    bool all = true; /* each is looked at: looking is what moves a partitioned receive */
    for (int i = 0; i < count; i++)
        all &= idle(requests[i]) || dz_request_done(requests[i]);
    return all;
}

int PMPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    DZ_ENTER("MPI_Testall");
    int rc = check_array("MPI_Testall", count, requests);
    if (!rc)
        rc = dz_check_ptr("MPI_Testall", NULL, flag, "flag");
    if (rc)
        return rc;
    *flag = all_done(count, requests) || (dz_progress(), all_done(count, requests));
    if (!*flag) {
        dz_idle_test();
        return MPI_SUCCESS;
    }
    return retire_all("MPI_Testall", count, requests, statuses);
}
DZ_WEAK(PI_Testall)

/* ---- start, free, cancel */
static int start_one(const char *call, struct dz_request *r)
{
    if (r->kind == DZ_REQ_NULL)
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "request is MPI_REQUEST_NULL");
    if (!r->persistent)
        return dz_raise(r->comm, MPI_ERR_REQUEST, call, "request is a %s that is not persistent", r->ops->name);
    if (atomic_load_explicit(&r->active, memory_order_acquire))
        return dz_raise(r->comm, MPI_ERR_REQUEST, call, "request is a %s that is active already", r->ops->name);
    return r->ops->start(r, call);
}

int PMPI_Start(MPI_Request *request)
{
    DZ_ENTER("MPI_Start");
    int rc = check_request("MPI_Start", request);
    return rc ? rc : start_one("MPI_Start", *request);
}
DZ_WEAK(PI_Start)

int PMPI_Startall(int count, MPI_Request requests[])
{
    DZ_ENTER("MPI_Startall");
    int rc = check_array("MPI_Startall", count, requests);
    for (int i = 0; !rc && i < count; i++)
        rc = start_one("MPI_Startall", requests[i]);
    return rc;
}
DZ_WEAK(PI_Startall)

int PMPI_Request_free(MPI_Request *request)
{
    DZ_ENTER("MPI_Request_free");
    int rc = check_request("MPI_Request_free", request);
    if (rc)
        return rc;
    struct dz_request *r = *request;
    if (r->kind == DZ_REQ_NULL)
        return dz_raise(NULL, MPI_ERR_REQUEST, "MPI_Request_free", "request is MPI_REQUEST_NULL");
    bool plain = r->kind == DZ_REQ_SEND || r->kind == DZ_REQ_RECV;
    if (!plain && !idle(r))
        return dz_raise(r->comm, MPI_ERR_REQUEST, "MPI_Request_free",
                        "request is an active %s: complete it before it is freed", r->ops->name);
    if (!plain) {
        free_request(r);
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    dz_lock();
    if (idle(r) || atomic_load_explicit(&r->complete, memory_order_acquire))
        r->ops->free(r);
    else
        r->freed = true; /* its engine frees it on completion */
    dz_unlock();
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Request_free)

int PMPI_Cancel(MPI_Request *request)
{
    DZ_ENTER("MPI_Cancel");
    int rc = check_request("MPI_Cancel", request);
    if (rc)
        return rc;
    struct dz_request *r = *request;
    if (idle(r))
        return dz_raise(r->comm, MPI_ERR_REQUEST, "MPI_Cancel", "request is %s",
                        r->kind == DZ_REQ_NULL ? "MPI_REQUEST_NULL" : "inactive");
    dz_lock();
    rc = r->ops->cancel ? r->ops->cancel(r) : -ENOTSUP;
    dz_unlock();
    return rc ? dz_raise(r->comm, MPI_ERR_REQUEST, "MPI_Cancel", "a %s cannot be cancelled", r->ops->name)
              : MPI_SUCCESS;
}
DZ_WEAK(PI_Cancel)

int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
    DZ_ENTER("MPI_Test_cancelled");
    int rc = dz_check_ptr("MPI_Test_cancelled", NULL, status, "status");
    if (!rc)
        rc = dz_check_ptr("MPI_Test_cancelled", NULL, flag, "flag");
    if (!rc)
        *flag = status->_cancelled != 0;
    return rc;
}
DZ_WEAK(PI_Test_cancelled)
