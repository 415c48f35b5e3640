/* recv.c - the calls that receive, and those that do both (MPI 4.0, sections 3.2 to 3.11). */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"

int dz_check_recv(const char *call, const void *buf, int count, struct dz_type *type, int src, int tag,
                  struct dz_comm *comm)
{
    if (dz_p2p_args_usual(buf, count, type, src, tag, comm))
        return MPI_SUCCESS;
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_count(call, comm, count, "count");
    if (!rc)
        rc = dz_check_type(call, comm, type, "datatype");
    if (!rc)
        rc = dz_check_source(call, comm, src);
    if (!rc)
        rc = dz_check_tag(call, comm, tag, true);
    return rc ? rc : dz_check_buf(call, comm, buf, count, type);
}

static int raise(struct dz_comm *comm, int rc, const char *call, int rank)
{
    return dz_raise_errno(comm, rc, call, rank >= 0 ? dz_comm_peer(comm, rank) : NULL);
}

static int raise_class(struct dz_comm *comm, int rc, const char *call, int src)
{
    if (rc == MPI_ERR_TRUNCATE)
        return dz_raise(comm, rc, call, "the message is longer than the receive buffer");
    return rc ? dz_raise(comm, rc, call, "the receive from rank %d failed", src) : MPI_SUCCESS;
}

int PMPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    DZ_ENTER("MPI_Recv");
    int rc = dz_check_recv("MPI_Recv", buf, count, datatype, source, tag, comm);
    if (rc)
        return rc;
    rc = dz_recv(buf, (size_t)count, datatype, source, tag, comm, 0, status);
    return raise_class(comm, rc, "MPI_Recv", source);
}
DZ_WEAK(PI_Recv)

int PMPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    DZ_ENTER("MPI_Irecv");
    int rc = dz_check_recv("MPI_Irecv", buf, count, datatype, source, tag, comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Irecv", comm, request, "request");
    if (rc)
        return rc;
    dz_lock();
    rc = dz_irecv(buf, (size_t)count, datatype, source, tag, comm, 0, request);
    dz_unlock();
    return rc ? raise(comm, rc, "MPI_Irecv", source) : MPI_SUCCESS;
}
DZ_WEAK(PI_Irecv)

int PMPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    DZ_ENTER("MPI_Recv_init");
    int rc = dz_check_recv("MPI_Recv_init", buf, count, datatype, source, tag, comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Recv_init", comm, request, "request");
    if (rc)
        return rc;
    dz_lock();
    struct dz_p2p *p = dz_p2p_create(DZ_REQ_RECV, true, buf, (size_t)count, datatype, source, tag, comm, 0, 0);
    dz_unlock();
    if (!p)
        return raise(comm, -ENOMEM, "MPI_Recv_init", source);
    *request = &p->req;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Recv_init)

static int check_both(const char *call, const void *sbuf, int scount, MPI_Datatype stype, int dest, int stag,
                      const void *rbuf, int rcount, MPI_Datatype rtype, int source, int rtag, MPI_Comm comm)
{
    int rc = dz_check_send(call, sbuf, scount, stype, dest, stag, comm);
    return rc ? rc : dz_check_recv(call, rbuf, rcount, rtype, source, rtag, comm);
}

int PMPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    DZ_ENTER("MPI_Sendrecv");
    int rc = check_both("MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                        source, recvtag, comm);
    if (rc)
        return rc;
    rc = dz_sendrecv(sendbuf, (size_t)sendcount, sendtype, dest, sendtag, recvbuf, (size_t)recvcount, recvtype, source,
                     recvtag, comm, 0, status);
    return raise_class(comm, rc, "MPI_Sendrecv", source);
}
DZ_WEAK(PI_Sendrecv)

int PMPI_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                          MPI_Comm comm, MPI_Status *status)
{
    DZ_ENTER("MPI_Sendrecv_replace");
    int rc = check_both("MPI_Sendrecv_replace", buf, count, datatype, dest, sendtag, buf, count, datatype, source,
                        recvtag, comm);
    if (rc)
        return rc;
    struct dz_view v = dz_type_view(datatype, buf, (size_t)count);
    char *copy = malloc(v.bytes ? v.bytes : 1);
    if (!copy)
        return raise(comm, -ENOMEM, "MPI_Sendrecv_replace", dest);
    if (v.bytes)
        dz_view_read(&v, 0, v.bytes, copy);
    rc = dz_sendrecv(copy, v.bytes, MPI_BYTE, dest, sendtag, buf, (size_t)count, datatype, source, recvtag, comm, 0,
                     status);
    free(copy);
    return raise_class(comm, rc, "MPI_Sendrecv_replace", source);
}
DZ_WEAK(PI_Sendrecv_replace)
