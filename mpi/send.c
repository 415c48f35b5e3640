/* send.c - the calls that send (MPI 4.0, sections 3.2 to 3.10): check, then call the engine. */
#include <errno.h>

#include "mpi/p2p.h"

int dz_check_send(const char *call, const void *buf, int count, struct dz_type *type, int dest, int tag,
                  struct dz_comm *comm)
{
    if (dz_p2p_args_usual(buf, count, type, dest, tag, comm))
        return MPI_SUCCESS;
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_count(call, comm, count, "count");
    if (!rc)
        rc = dz_check_type(call, comm, type, "datatype");
    if (!rc)
        rc = dz_check_dest(call, comm, dest, "dest");
    if (!rc)
        rc = dz_check_tag(call, comm, tag, false);
    return rc ? rc : dz_check_buf(call, comm, buf, count, type);
}

static int raise(struct dz_comm *comm, int rc, const char *call, int rank)
{
    return dz_raise_errno(comm, rc, call, rank >= 0 ? dz_comm_peer(comm, rank) : NULL);
}

/* What a blocking call came to. */
static int raise_class(struct dz_comm *comm, int rc, const char *call, int rank)
{
    return rc ? dz_raise(comm, rc, call, "the message to rank %d could not be sent", rank) : MPI_SUCCESS;
}

static int send(const char *call, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                enum dz_send_mode mode)
{
    int rc = dz_check_send(call, buf, count, type, dest, tag, comm);
    if (rc)
        return rc;
    rc = dz_p2p_send_wait(buf, (size_t)count, type, dest, tag, comm, 0, mode);
    return rc < 0 ? raise(comm, rc, call, dest) : raise_class(comm, rc, call, dest);
}

static int isend(const char *call, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                 enum dz_send_mode mode, MPI_Request *request)
{
    int rc = dz_check_send(call, buf, count, type, dest, tag, comm);
    if (!rc)
        rc = dz_check_ptr(call, comm, request, "request");
    if (rc)
        return rc;
    dz_lock();
    rc = dz_isend(buf, (size_t)count, type, dest, tag, comm, 0, mode, request);
    dz_unlock();
    return rc ? raise(comm, rc, call, dest) : MPI_SUCCESS;
}

static int send_init(const char *call, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                     enum dz_send_mode mode, bool buffered, MPI_Request *request)
{
    int rc = dz_check_send(call, buf, count, type, dest, tag, comm);
    if (!rc)
        rc = dz_check_ptr(call, comm, request, "request");
    if (rc)
        return rc;
    dz_lock();
    struct dz_p2p *p = dz_p2p_create(DZ_REQ_SEND, true, buf, (size_t)count, type, dest, tag, comm, 0, mode);
    dz_unlock();
    if (!p)
        return raise(comm, -ENOMEM, call, dest);
    p->buffered = buffered;
    *request = &p->req;
    return MPI_SUCCESS;
}

int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    DZ_ENTER("MPI_Send");
    return send("MPI_Send", buf, count, datatype, dest, tag, comm, DZ_SEND_STANDARD);
}
DZ_WEAK(PI_Send)

int PMPI_Ssend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    DZ_ENTER("MPI_Ssend");
    return send("MPI_Ssend", buf, count, datatype, dest, tag, comm, DZ_SEND_SYNC);
}
DZ_WEAK(PI_Ssend)

int PMPI_Rsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    DZ_ENTER("MPI_Rsend");
    return send("MPI_Rsend", buf, count, datatype, dest, tag, comm, DZ_SEND_READY);
}
DZ_WEAK(PI_Rsend)

int PMPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    DZ_ENTER("MPI_Isend");
    return isend("MPI_Isend", buf, count, datatype, dest, tag, comm, DZ_SEND_STANDARD, request);
}
DZ_WEAK(PI_Isend)

int PMPI_Issend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    DZ_ENTER("MPI_Issend");
    return isend("MPI_Issend", buf, count, datatype, dest, tag, comm, DZ_SEND_SYNC, request);
}
DZ_WEAK(PI_Issend)

int PMPI_Irsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    DZ_ENTER("MPI_Irsend");
    return isend("MPI_Irsend", buf, count, datatype, dest, tag, comm, DZ_SEND_READY, request);
}
DZ_WEAK(PI_Irsend)

int PMPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    DZ_ENTER("MPI_Send_init");
    return send_init("MPI_Send_init", buf, count, datatype, dest, tag, comm, DZ_SEND_STANDARD, false, request);
}
DZ_WEAK(PI_Send_init)

int PMPI_Ssend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request *request)
{
    DZ_ENTER("MPI_Ssend_init");
    return send_init("MPI_Ssend_init", buf, count, datatype, dest, tag, comm, DZ_SEND_SYNC, false, request);
}
DZ_WEAK(PI_Ssend_init)

int PMPI_Rsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request *request)
{
    DZ_ENTER("MPI_Rsend_init");
    return send_init("MPI_Rsend_init", buf, count, datatype, dest, tag, comm, DZ_SEND_READY, false, request);
}
DZ_WEAK(PI_Rsend_init)

int PMPI_Bsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request *request)
{
    DZ_ENTER("MPI_Bsend_init");
    return send_init("MPI_Bsend_init", buf, count, datatype, dest, tag, comm, DZ_SEND_STANDARD, true, request);
}
DZ_WEAK(PI_Bsend_init)

/* A buffered send reads a copy from its start, so it is complete for its caller at once. */
static int ibsend(const char *call, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    int rc = send_init(call, buf, count, type, dest, tag, comm, DZ_SEND_STANDARD, true, request);
    if (rc)
        return rc;
    struct dz_request *r = *request;
    dz_lock();
    r->persistent = false;
    rc = dz_p2p_send_begin((struct dz_p2p *)r);
    if (rc)
        r->ops->free(r);
    dz_unlock();
    if (!rc)
        return MPI_SUCCESS;
    *request = MPI_REQUEST_NULL;
    return rc == -ENOBUFS ? dz_raise(comm, MPI_ERR_BUFFER, call, "the attached buffer has no room for %d elements", count)
                          : raise(comm, rc, call, dest);
}

int PMPI_Ibsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    DZ_ENTER("MPI_Ibsend");
    return ibsend("MPI_Ibsend", buf, count, datatype, dest, tag, comm, request);
}
DZ_WEAK(PI_Ibsend)

int PMPI_Bsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    DZ_ENTER("MPI_Bsend");
    MPI_Request request;
    int rc = ibsend("MPI_Bsend", buf, count, datatype, dest, tag, comm, &request);
    return rc ? rc : PMPI_Request_free(&request);
}
DZ_WEAK(PI_Bsend)
