/* p2p.c - the same ping-pong with persistent and with plain sends and receives. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "perf.h"

struct pair {
    MPI_Request send, recv;
    unsigned char *sbuf, *rbuf;
    long bytes;
};

static void start_and_wait(MPI_Request *r)
{
    MPI_Start(r);
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void bounce_persistent(void *arg)
{
    struct pair *p = arg;
    start_and_wait(rank == 0 ? &p->send : &p->recv);
    start_and_wait(rank == 0 ? &p->recv : &p->send);
}

static void plain_send(struct pair *p)
{
    MPI_Send(p->sbuf, (int)p->bytes, MPI_BYTE, !rank, 3, MPI_COMM_WORLD);
}

static void plain_recv(struct pair *p)
{
    MPI_Recv(p->rbuf, (int)p->bytes, MPI_BYTE, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void bounce_plain(void *arg)
{
    if (rank == 0)
        plain_send(arg);
    plain_recv(arg);
    if (rank == 1)
        plain_send(arg);
}

static void verify(struct pair *p, round_trip *bounce, const char *what)
{
    for (int round = 0; round < 3; round++) {
        fill_pattern(p->sbuf, p->bytes, rank, round);
        memset(p->rbuf, 0xaa, (size_t)p->bytes);
        bounce(p);
        long wrong = check_pattern(p->rbuf, p->bytes, !rank, round);
        if (wrong >= 0)
            wrong_bytes(what, p->bytes, 1, wrong);
    }
}

static void ladder(const char *what, round_trip *bounce)
{
    for (int s = 0; s < opt.n_sizes; s++) {
        struct pair p = {.bytes = opt.sizes[s]};
        p.sbuf = get_buffer(p.bytes, false);
        p.rbuf = get_buffer(p.bytes, true);
        MPI_Send_init(p.sbuf, (int)p.bytes, MPI_BYTE, !rank, 4, MPI_COMM_WORLD, &p.send);
        MPI_Recv_init(p.rbuf, (int)p.bytes, MPI_BYTE, !rank, 4, MPI_COMM_WORLD, &p.recv);
        verify(&p, bounce, what);
        measure(what, p.bytes, 1, FLOOR_TWO_COPIES, bounce, &p);
        verify(&p, bounce, what);
        MPI_Request_free(&p.send);
        MPI_Request_free(&p.recv);
        put_buffer(p.sbuf, false);
        put_buffer(p.rbuf, true);
    }
}

void measure_persistent(void)
{
    ladder("persistent send", bounce_persistent);
}

void measure_plain(void)
{
    ladder("plain send", bounce_plain);
}
