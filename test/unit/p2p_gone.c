/* p2p_gone.c - the peer dies, and every operation that needed it ends with MPI_ERR_PROC_FAILED.
 *
 * One process sends to itself over a transport that delivers what it is told to, then loses everything, then says that
 * the peer is dead. One operation is left in each state there is; none may hang, and what had arrived whole stays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

enum { AM_MAX = 64, EAGER = 1000, LONG = 5000 };
static struct dz_transport mortal;
static int allowed = 1 << 30; /* messages that still find room */
static bool losing, dead;

static int mortal_post(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len)
{
    if (dead)
        return -EHOSTDOWN;
    if (allowed <= 0)
        return -EAGAIN;
    allowed--;
    return losing ? 0 : dz_transport_self.am_post(peer, am, v, off, len);
}

static int mortal_get(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    (void)peer, (void)raddr, (void)v, (void)off, (void)len;
    return -ENOTSUP;
}

static bool mortal_dead(struct dz_peer *peer)
{
    (void)peer;
    return dead;
}

#define CHECK(cond, ...)                                                                                             \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            printf("line %d: %s: ", __LINE__, #cond);                                                                \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static char bytes[LONG], in[12][LONG];

static void ends_failed(MPI_Request *r, const char *what)
{
    MPI_Status s;
    int rc = MPI_Wait(r, &s), class;
    MPI_Error_class(rc, &class);
    CHECK(class == MPI_ERR_PROC_FAILED, "%s: class %d", what, class);
    CHECK(*r == MPI_REQUEST_NULL, "%s: still there", what);
}

static void move(void)
{
    for (int i = 0; i < 10; i++)
        dz_progress();
}

int main(void)
{
    MPI_Request rendezvous, streaming, posted, any, synchronous, queued, half, left, persistent, r;
    MPI_Message whole_message, half_message;
    MPI_Comm comm;
    MPI_Status s;
    int flag, rc;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mortal = dz_transport_self;
    mortal.am_post = mortal_post;
    mortal.get = mortal_get;
    mortal.dead = mortal_dead;
    dz_peers[0].t = &mortal;
    dz_peers[0].am_max = AM_MAX;
    dz_set.eager = EAGER;
    dz_set.peer_timeout = 0;
    memset(bytes, 1, sizeof bytes);

    /* whole ones, unexpected: they stay */
    MPI_Send(bytes, 10, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    MPI_Send(bytes, 20, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    MPI_Mprobe(0, 2, MPI_COMM_WORLD, &whole_message, &s);
    /* rendezvous that nobody answers, one that a matched probe takes */
    MPI_Isend(bytes, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &rendezvous);
    MPI_Isend(bytes, LONG, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &half);
    MPI_Mprobe(0, 4, MPI_COMM_WORLD, &half_message, &s);
    /* a receive in the middle of its stream */
    MPI_Isend(bytes, LONG, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &left);
    move();
    allowed = 3; /* the answer, and two pieces */
    MPI_Irecv(in[0], LONG, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &streaming);
    move();
    CHECK(in[0][2 * AM_MAX - 1] == 1 && in[0][2 * AM_MAX] == 0, "two pieces should have come");
    /* the rest of that send blocks the queue: everything after it waits there */
    MPI_Isend(bytes, 30, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &queued);
    MPI_Issend(bytes, 30, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &synchronous);
    MPI_Irecv(in[1], LONG, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &posted);
    MPI_Irecv(in[2], LONG, MPI_BYTE, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &any);
    MPI_Recv_init(in[3], LONG, MPI_BYTE, 0, 10, MPI_COMM_WORLD, &persistent);
    MPI_Start(&persistent);
    /* a posted receive whose request and communicator are given up: its end is theirs */
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Irecv(in[4], LONG, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &r);
    MPI_Request_free(&r);
    MPI_Comm_free(&comm);

    dead = true;
    ends_failed(&rendezvous, "a rendezvous without an answer");
    ends_failed(&half, "a rendezvous that a matched probe took");
    ends_failed(&left, "a rendezvous in its stream");
    ends_failed(&streaming, "a receive in its stream");
    ends_failed(&queued, "a queued send");
    ends_failed(&synchronous, "a synchronous send");
    ends_failed(&posted, "a posted receive");
    ends_failed(&any, "a wildcard receive");
    rc = MPI_Wait(&persistent, &s);
    CHECK(rc == MPI_ERR_PROC_FAILED && persistent != MPI_REQUEST_NULL, "a persistent receive: %d", rc);
    rc = MPI_Start(&persistent);
    CHECK(rc == MPI_ERR_PROC_FAILED, "its next start: %d", rc);
    MPI_Request_free(&persistent);

    /* what comes later: whole messages are there, everything else fails at once */
    rc = MPI_Recv(in[5], LONG, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &s);
    CHECK(rc == MPI_SUCCESS && in[5][9] == 1, "a message that had arrived: %d", rc);
    rc = MPI_Mrecv(in[6], LONG, MPI_BYTE, &whole_message, &s);
    CHECK(rc == MPI_SUCCESS && in[6][19] == 1, "a matched message that had arrived: %d", rc);
    rc = MPI_Mrecv(in[7], LONG, MPI_BYTE, &half_message, &s);
    CHECK(rc == MPI_ERR_PROC_FAILED, "a matched message of which only the announcement came: %d", rc);
    CHECK(MPI_Recv(in[8], LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &s) == MPI_ERR_PROC_FAILED, "a named receive");
    CHECK(MPI_Recv(in[8], LONG, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &s) == MPI_ERR_PROC_FAILED, "any source");
    CHECK(MPI_Send(bytes, 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD) == MPI_ERR_PROC_FAILED, "a send");
    CHECK(MPI_Isend(bytes, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &r) == MPI_ERR_PROC_FAILED, "a long send");
    CHECK(MPI_Sendrecv(bytes, 8, MPI_BYTE, 0, 3, in[9], 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &s) == MPI_ERR_PROC_FAILED,
          "both");
    CHECK(MPI_Probe(0, 3, MPI_COMM_WORLD, &s) == MPI_ERR_PROC_FAILED, "a probe");
    CHECK(MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &s) == MPI_ERR_PROC_FAILED, "a wildcard probe");
    rc = MPI_Iprobe(0, 3, MPI_COMM_WORLD, &flag, &s);
    CHECK(rc == MPI_SUCCESS && !flag, "a nonblocking probe: %d, flag %d", rc, flag);
    return 0;
}
