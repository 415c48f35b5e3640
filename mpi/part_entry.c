/* part_entry.c - the calls of partitioned communication (MPI 4.0, chapter 4): check, then call the engine.
 *
 * Init calls are local: the sender's end of the channel is opened and offered, the receiver's request is queued. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/part.h"

static int check(const struct dz_part_args *a, const char *peer_name, struct dz_info *info, MPI_Request *request)
{
    int rc = dz_check_comm(a->call, a->comm);
    if (!rc)
        rc = dz_check_ptr(a->call, a->comm, request, "request");
    if (!rc && a->parts <= 0)
        rc = dz_raise(a->comm, MPI_ERR_ARG, a->call, "partitions is %d, must be at least 1", a->parts);
    if (!rc)
        rc = dz_check_count(a->call, a->comm, a->count, "count");
    if (!rc)
        rc = dz_check_type(a->call, a->comm, a->type, "datatype");
    if (!rc && a->peer == MPI_ANY_SOURCE)
        rc = dz_raise(a->comm, MPI_ERR_RANK, a->call, "%s is MPI_ANY_SOURCE: partitioned receives name their sender",
                      peer_name);
    if (!rc)
        rc = dz_check_dest(a->call, a->comm, a->peer, peer_name);
    if (!rc && a->tag == MPI_ANY_TAG)
        rc = dz_raise(a->comm, MPI_ERR_TAG, a->call, "tag is MPI_ANY_TAG: partitioned calls name their tag");
    if (!rc)
        rc = dz_check_tag(a->call, a->comm, a->tag, false);
    if (!rc && (uint64_t)a->count > (uint64_t)INT64_MAX / (uint64_t)a->parts / (a->type->size ? a->type->size : 1))
        rc = dz_raise(a->comm, MPI_ERR_COUNT, a->call, "count is %lld: %d partitions of it do not fit in memory",
                      (long long)a->count, a->parts);
    if (!rc)
        rc = dz_check_buf(a->call, a->comm, a->buf, a->count, a->type);
    if (!rc && !dz_info_ok(info))
        rc = dz_raise(a->comm, MPI_ERR_INFO, a->call, "info is no info object");
    return rc;
}

static struct dz_chan_desc describe(const struct dz_part_args *a)
{
    return (struct dz_chan_desc){.view = dz_type_view(a->type, a->buf, (size_t)a->count * (size_t)a->parts),
                                 .part_bytes = (size_t)a->count * a->type->size, .parts = (uint32_t)a->parts};
}

static int unreachable(struct dz_peer *peer)
{
    return peer->gone ? -EHOSTDOWN : peer->t ? 0 : -EHOSTUNREACH;
}

static int connect(struct dz_psend *s, const struct dz_part_args *a)
{
    struct dz_chan_desc d = describe(a);
    char blob[DZ_BLOB_MAX];
    size_t bytes = 0;
    s->req.peer = s->peer = dz_comm_peer(a->comm, a->peer);
    int rc = unreachable(s->peer);
    if (!rc)
        rc = s->peer->t->send_open(s->peer, &d, &s->chan, blob, &bytes);
    if (rc)
        return rc;
    s->t = s->peer->t;
    rc = dz_part_offer(s, a->tag, &d, blob, bytes);
    if (rc)
        s->t->send_close(s->chan);
    return rc;
}

int dz_psend_create(const struct dz_part_args *a, struct dz_request **request)
{
    struct dz_psend *s = calloc(1, sizeof *s + (size_t)a->parts * sizeof s->ready[0]);
    if (!s)
        return -ENOMEM;
    dz_request_init(&s->req, DZ_REQ_PSEND, true, &dz_psend_ops, a->comm);
    s->parts = (uint32_t)a->parts;
    s->ctx = a->comm->ctx + (uint64_t)a->coll;
    s->claims = dz_threaded && (size_t)a->count * a->type->size >= DZ_PART_LARGE;
    s->type = a->type;
    int rc = 0;
    if (a->peer == MPI_PROC_NULL)
        s->req.status.MPI_SOURCE = MPI_PROC_NULL;
    else
        rc = connect(s, a);
    if (rc) {
        free(s);
        return rc;
    }
    dz_comm_get(a->comm);
    dz_type_get(a->type);
    *request = &s->req;
    return 0;
}

int PMPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    DZ_ENTER("MPI_Psend_init");
    struct dz_part_args a = {"MPI_Psend_init", buf, partitions, count, datatype, dest, tag, comm, 0};
    int rc = check(&a, "dest", info, request);
    if (rc)
        return rc;
    dz_lock();
    rc = dz_psend_create(&a, request);
    dz_unlock();
    return rc ? dz_raise_errno(comm, rc, a.call, dz_comm_peer(comm, dest)) : MPI_SUCCESS;
}
DZ_WEAK(PI_Psend_init)

int dz_precv_create(const struct dz_part_args *a, struct dz_request **request)
{
    struct dz_precv *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    dz_request_init(&r->req, DZ_REQ_PRECV, true, &dz_precv_ops, a->comm);
    r->parts = (uint32_t)a->parts;
    r->ctx = a->comm->ctx + (uint64_t)a->coll;
    r->type = a->type;
    r->source = a->peer;
    r->tag = a->tag;
    if (a->peer == MPI_PROC_NULL) {
        r->req.status.MPI_SOURCE = MPI_PROC_NULL;
    } else {
        struct dz_chan_desc d = describe(a);
        r->req.peer = r->peer = dz_comm_peer(a->comm, a->peer);
        r->t = r->peer->t;
        r->view = d.view;
        r->part_bytes = d.part_bytes;
        int rc = unreachable(r->peer);
        if (!rc)
            rc = dz_part_want(r);
        if (rc) {
            free(r);
            return rc;
        }
    }
    dz_comm_get(a->comm);
    dz_type_get(a->type);
    *request = &r->req;
    return 0;
}

int PMPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    DZ_ENTER("MPI_Precv_init");
    struct dz_part_args a = {"MPI_Precv_init", buf, partitions, count, datatype, source, tag, comm, 0};
    int rc = check(&a, "source", info, request);
    if (rc)
        return rc;
    dz_lock();
    rc = dz_precv_create(&a, request);
    dz_unlock();
    return rc ? dz_raise_errno(comm, rc, a.call, dz_comm_peer(comm, source)) : MPI_SUCCESS;
}
DZ_WEAK(PI_Precv_init)

/* ---- ready */
static int refuse_ready(const char *call, struct dz_request *req)
{
    if (!dz_request_ok(req))
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "request %p is no request", (void *)req);
    if (req->kind == DZ_REQ_NULL)
        return dz_raise(NULL, MPI_ERR_REQUEST, call, "request is MPI_REQUEST_NULL");
    if (req->kind != DZ_REQ_PSEND)
        return dz_raise(req->comm, MPI_ERR_REQUEST, call, "request is a %s, not a partitioned send", req->ops->name);
    return dz_raise(req->comm, MPI_ERR_REQUEST, call, "request is not active: MPI_Start comes first");
}

/* The first eight bytes of a request say all of this, so they are looked at together. */
static inline bool may_be_ready(const struct dz_request *req)
{
    static const struct dz_request active_psend = {
        .magic = DZ_MAGIC_REQ, .kind = DZ_REQ_PSEND, .persistent = true, .active = true};
    _Static_assert(offsetof(struct dz_request, active) == 7, "magic, kind, persistent, freed, active");
    return req && !memcmp(req, &active_psend, 8);
}

static int refuse_index(const char *call, struct dz_psend *s, const char *what, int value)
{
    return dz_raise(s->req.comm, MPI_ERR_ARG, call, "%s is %d, the request has partitions 0 to %u", what, value,
                    s->parts - 1);
}

static int refuse_again(const char *call, struct dz_psend *s, int part)
{
    return dz_raise(s->req.comm, MPI_ERR_ARG, call, "partition %d is already marked ready since the last MPI_Start",
                    part);
}

static __attribute__((noinline)) int ready_unusual(int partition, MPI_Request request)
{
    DZ_ENTER("MPI_Pready");
    if (!may_be_ready(request))
        return refuse_ready("MPI_Pready", request);
    struct dz_psend *s = (struct dz_psend *)request;
    if ((uint32_t)partition >= s->parts)
        return refuse_index("MPI_Pready", s, "partition", partition);
    if (dz_psend_ready(s, (uint32_t)partition, atomic_load_explicit(&s->epoch, memory_order_relaxed)))
        return refuse_again("MPI_Pready", s, partition);
    return MPI_SUCCESS;
}

int PMPI_Pready(int partition, MPI_Request request)
{
    struct dz_psend *s = (struct dz_psend *)request;
    uint64_t epoch;
    if (__builtin_expect(!dz_running || !may_be_ready(request) || (uint32_t)partition >= s->parts ||
                             (epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed),
                              !dz_psend_usual(s, (uint32_t)partition, epoch)), 0))
        return ready_unusual(partition, request);
    dz_psend_give(s, (uint32_t)partition, epoch);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Pready)

int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request)
{
    DZ_ENTER("MPI_Pready_range");
    if (__builtin_expect(!may_be_ready(request), 0))
        return refuse_ready("MPI_Pready_range", request);
    struct dz_psend *s = (struct dz_psend *)request;
    if ((uint32_t)partition_low >= s->parts)
        return refuse_index("MPI_Pready_range", s, "partition_low", partition_low);
    if ((uint32_t)partition_high >= s->parts)
        return refuse_index("MPI_Pready_range", s, "partition_high", partition_high);
    if (partition_low > partition_high)
        return dz_raise(request->comm, MPI_ERR_ARG, "MPI_Pready_range", "partition_low %d is above partition_high %d",
                        partition_low, partition_high);
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    int64_t again = dz_psend_ready_list(s, NULL, (uint32_t)partition_low,
                                        (uint32_t)(partition_high - partition_low) + 1, epoch);
    return again >= 0 ? refuse_again("MPI_Pready_range", s, (int)again) : MPI_SUCCESS;
}
DZ_WEAK(PI_Pready_range)

int PMPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
    DZ_ENTER("MPI_Pready_list");
    if (__builtin_expect(!may_be_ready(request), 0))
        return refuse_ready("MPI_Pready_list", request);
    struct dz_psend *s = (struct dz_psend *)request;
    if (length < 0)
        return dz_raise(request->comm, MPI_ERR_COUNT, "MPI_Pready_list", "length is %d", length);
    if (length && !array_of_partitions)
        return dz_raise(request->comm, MPI_ERR_ARG, "MPI_Pready_list", "array_of_partitions is NULL, length is %d",
                        length);
    for (int i = 0; i < length; i++)
        if ((uint32_t)array_of_partitions[i] >= s->parts)
            return refuse_index("MPI_Pready_list", s, "an entry of array_of_partitions", array_of_partitions[i]);
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    int64_t again = dz_psend_ready_list(s, array_of_partitions, 0, (uint32_t)length, epoch);
    return again >= 0 ? refuse_again("MPI_Pready_list", s, (int)again) : MPI_SUCCESS;
}
DZ_WEAK(PI_Pready_list)

/* ---- arrived */
static int refuse_parrived(struct dz_request *req)
{
    if (!dz_request_ok(req))
        return dz_raise(NULL, MPI_ERR_REQUEST, "MPI_Parrived", "request %p is no request", (void *)req);
    return dz_raise(req->comm, MPI_ERR_REQUEST, "MPI_Parrived", "request is a %s, not a partitioned receive",
                    req->ops->name);
}

int PMPI_Parrived(MPI_Request request, int partition, int *flag)
{
    static _Thread_local unsigned misses;
    DZ_ENTER("MPI_Parrived");
    if (!flag)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Parrived", "flag is NULL");
    if (dz_request_ok(request) && request->kind == DZ_REQ_NULL) {
        *flag = 1;
        return MPI_SUCCESS;
    }
    if (__builtin_expect(!dz_request_ok(request) || request->kind != DZ_REQ_PRECV, 0))
        return refuse_parrived(request);
    struct dz_precv *r = (struct dz_precv *)request;
    if (__builtin_expect((uint32_t)partition >= r->parts, 0))
        return dz_raise(request->comm, MPI_ERR_ARG, "MPI_Parrived",
                        "partition is %d, the request has partitions 0 to %u", partition, r->parts - 1);
    if (!r->t || !atomic_load_explicit(&request->active, memory_order_acquire)) {
        *flag = 1;
        return MPI_SUCCESS;
    }
    uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);
    *flag = dz_precv_arrived(r, (uint32_t)partition, epoch);
    if (*flag)
        return MPI_SUCCESS;
    /* A loop of this call alone must move the rest of the library too; seldom enough not to be felt. */
    if (++misses % 8 == 0 || !atomic_load_explicit(&r->bind, memory_order_relaxed)) {
        dz_progress();
        dz_idle_test();
    }
    /* what failed will not arrive, and the loop has to hear of it */
    int fail = atomic_load_explicit(&r->fail, memory_order_relaxed);
    return fail ? dz_raise(request->comm, fail, "MPI_Parrived", "partition %d will not arrive", partition)
                : MPI_SUCCESS;
}
DZ_WEAK(PI_Parrived)
