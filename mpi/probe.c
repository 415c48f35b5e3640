/* probe.c - looking at messages before receiving them (MPI 4.0, section 3.8).
 *
 * A probe sees unexpected messages only, from their first bytes on. A matched probe takes the message out of the
 * queues; its handle is an object of its own, given up by the receive that uses it. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"

static int check(const char *call, int source, int tag, MPI_Comm comm)
{
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_source(call, comm, source);
    return rc ? rc : dz_check_tag(call, comm, tag, true);
}

static void describe(const struct dz_msg *m, MPI_Status *status)
{
    if (!status)
        return;
    status->MPI_SOURCE = m->got.source;
    status->MPI_TAG = m->got.tag;
    status->_cancelled = 0;
    status->_ucount = m->bytes;
}

static void describe_null(MPI_Status *status)
{
    if (!status)
        return;
    int error = status->MPI_ERROR;
    *status = dz_status_empty;
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_ERROR = error;
}

struct probe {
    int source, tag;
    MPI_Comm comm;
    MPI_Status *status;
    bool take;
    struct dz_msg *found; /* of a probe that takes */
    bool gone;            /* the source will send nothing more */
};

static bool look(void *arg)
{
    struct probe *p = arg;
    dz_lock();
    struct dz_got *g = dz_mq_search(p->comm->mq[0], p->source, p->tag, p->take);
    if (g) {
        struct dz_msg *m = DZ_LINKED(g, struct dz_msg, got);
        describe(m, p->status);
        p->found = p->take ? m : NULL;
    } else if (p->source != MPI_ANY_SOURCE) {
        p->gone = dz_comm_peer(p->comm, p->source)->buried;
    } else { /* like a receive: it may have been waiting for that one */
        p->gone = dz_p2p_any_gone(p->comm);
    }
    dz_unlock();
    return g || p->gone;
}

static int wait_for(const char *call, struct probe *p)
{
    dz_wait_until(look, p);
    struct dz_peer *peer = p->source >= 0 ? dz_comm_peer(p->comm, p->source) : NULL;
    return p->gone ? dz_raise_errno(p->comm, -EHOSTDOWN, call, peer) : MPI_SUCCESS;
}

static bool look_once(struct probe *p)
{
    if (look(p))
        return !p->gone;
    dz_progress();
    if (look(p))
        return !p->gone;
    dz_idle_test();
    return false;
}

int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    DZ_ENTER("MPI_Probe");
    int rc = check("MPI_Probe", source, tag, comm);
    if (rc)
        return rc;
    if (source == MPI_PROC_NULL) {
        describe_null(status);
        return MPI_SUCCESS;
    }
    struct probe p = {.source = source, .tag = tag, .comm = comm, .status = status};
    return wait_for("MPI_Probe", &p);
}
DZ_WEAK(PI_Probe)

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    DZ_ENTER("MPI_Iprobe");
    int rc = check("MPI_Iprobe", source, tag, comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Iprobe", comm, flag, "flag");
    if (rc)
        return rc;
    if (source == MPI_PROC_NULL) {
        describe_null(status);
        *flag = 1;
        return MPI_SUCCESS;
    }
    struct probe p = {.source = source, .tag = tag, .comm = comm, .status = status};
    *flag = look_once(&p);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Iprobe)

static int hand_out(const char *call, struct probe *p, MPI_Message *message)
{
    struct ompi_message_t *m = malloc(sizeof *m);
    if (!m) { /* the message goes back, but behind those that have come since */
        dz_lock();
        dz_mq_unexpected(p->comm->mq[0], &p->found->got);
        dz_unlock();
        return dz_raise_errno(p->comm, -ENOMEM, call, NULL);
    }
    *m = (struct ompi_message_t){.magic = DZ_MAGIC_MSG, .msg = p->found, .comm = p->comm};
    dz_comm_get(p->comm);
    *message = m;
    return MPI_SUCCESS;
}

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    DZ_ENTER("MPI_Mprobe");
    int rc = check("MPI_Mprobe", source, tag, comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Mprobe", comm, message, "message");
    if (rc)
        return rc;
    if (source == MPI_PROC_NULL) {
        describe_null(status);
        *message = MPI_MESSAGE_NO_PROC;
        return MPI_SUCCESS;
    }
    struct probe p = {.source = source, .tag = tag, .comm = comm, .status = status, .take = true};
    rc = wait_for("MPI_Mprobe", &p);
    return rc ? rc : hand_out("MPI_Mprobe", &p, message);
}
DZ_WEAK(PI_Mprobe)

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    DZ_ENTER("MPI_Improbe");
    int rc = check("MPI_Improbe", source, tag, comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Improbe", comm, flag, "flag");
    if (!rc)
        rc = dz_check_ptr("MPI_Improbe", comm, message, "message");
    if (rc)
        return rc;
    if (source == MPI_PROC_NULL) {
        describe_null(status);
        *flag = 1;
        *message = MPI_MESSAGE_NO_PROC;
        return MPI_SUCCESS;
    }
    struct probe p = {.source = source, .tag = tag, .comm = comm, .status = status, .take = true};
    *flag = look_once(&p);
    return *flag ? hand_out("MPI_Improbe", &p, message) : MPI_SUCCESS;
}
DZ_WEAK(PI_Improbe)

/* ---- receiving what was probed */
static int check_message(const char *call, const void *buf, int count, MPI_Datatype type, MPI_Message *message)
{
    int rc = dz_check_ptr(call, NULL, message, "message");
    if (!rc && *message != MPI_MESSAGE_NO_PROC && (!*message || *message == MPI_MESSAGE_NULL ||
                                                   (*message)->magic != DZ_MAGIC_MSG))
        rc = dz_raise(NULL, MPI_ERR_REQUEST, call, "message %p is no message", (void *)*message);
    if (!rc)
        rc = dz_check_count(call, NULL, count, "count");
    if (!rc)
        rc = dz_check_type(call, NULL, type, "datatype");
    return rc ? rc : dz_check_buf(call, NULL, buf, count, type);
}

static int receive(const char *call, void *buf, int count, MPI_Datatype type, MPI_Message *message,
                   MPI_Request *request)
{
    struct ompi_message_t *m = *message;
    bool null = m == MPI_MESSAGE_NO_PROC;
    struct dz_comm *comm = null ? MPI_COMM_SELF : m->comm;
    dz_lock();
    struct dz_p2p *p = dz_p2p_create(DZ_REQ_RECV, false, buf, (size_t)count, type,
                                     null ? MPI_PROC_NULL : m->msg->got.source, MPI_ANY_TAG, comm, 0, 0);
    if (p && null)
        dz_p2p_recv_begin(p);
    else if (p)
        dz_p2p_recv_message(p, m->msg);
    if (p && !null) {
        dz_comm_put(m->comm);
        m->magic = 0;
        free(m);
    }
    dz_unlock();
    if (!p)
        return dz_raise_errno(comm, -ENOMEM, call, NULL);
    *message = MPI_MESSAGE_NULL;
    *request = &p->req;
    return MPI_SUCCESS;
}

int PMPI_Imrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    DZ_ENTER("MPI_Imrecv");
    int rc = check_message("MPI_Imrecv", buf, count, datatype, message);
    if (!rc)
        rc = dz_check_ptr("MPI_Imrecv", NULL, request, "request");
    return rc ? rc : receive("MPI_Imrecv", buf, count, datatype, message, request);
}
DZ_WEAK(PI_Imrecv)

int PMPI_Mrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    DZ_ENTER("MPI_Mrecv");
    MPI_Request request;
    int rc = check_message("MPI_Mrecv", buf, count, datatype, message);
    if (!rc)
        rc = receive("MPI_Mrecv", buf, count, datatype, message, &request);
    return rc ? rc : PMPI_Wait(&request, status);
}
DZ_WEAK(PI_Mrecv)

int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
    DZ_ENTER("MPI_Status_set_cancelled");
    int rc = dz_check_ptr("MPI_Status_set_cancelled", NULL, status, "status");
    if (!rc)
        status->_cancelled = flag != 0;
    return rc;
}
DZ_WEAK(PI_Status_set_cancelled)
