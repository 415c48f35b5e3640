/* part.c - partitioned communication: the ping-pong, its variant that waits with MPI_Parrived, and the rate at which
 * several threads mark partitions ready. */
#include "perf.h"

#if HAVE_PARTITIONED
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    MPI_Request send, recv;
    unsigned char *sbuf, *rbuf;
    long bytes;
    int parts;
    bool loop; /* wait with MPI_Parrived */
};

static void send_all(struct pair *p)
{
    MPI_Start(&p->send);
    for (int i = 0; i < p->parts; i++)
        MPI_Pready(i, p->send);
    MPI_Wait(&p->send, MPI_STATUS_IGNORE);
}

static void recv_all(struct pair *p)
{
    MPI_Start(&p->recv);
    for (int i = 0; p->loop && i < p->parts;) {
        int there = 0;
        MPI_Parrived(p->recv, i, &there);
        i += there;
    }
    MPI_Wait(&p->recv, MPI_STATUS_IGNORE);
}

static void bounce(void *arg)
{
    struct pair *p = arg;
    if (rank == 0) {
        send_all(p);
        recv_all(p);
    } else {
        recv_all(p);
        send_all(p);
    }
}

static void open_pair(struct pair *p, long bytes, int parts, bool loop)
{
    p->bytes = bytes;
    p->parts = parts;
    p->loop = loop;
    p->sbuf = get_buffer(bytes, false);
    p->rbuf = get_buffer(bytes, true);
    MPI_Psend_init(p->sbuf, parts, bytes / parts, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &p->send);
    MPI_Precv_init(p->rbuf, parts, bytes / parts, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &p->recv);
}

static void close_pair(struct pair *p)
{
    MPI_Request_free(&p->send);
    MPI_Request_free(&p->recv);
    put_buffer(p->sbuf, false);
    put_buffer(p->rbuf, true);
}

static void verify(struct pair *p, const char *what)
{
    for (int round = 0; round < 3; round++) {
        fill_pattern(p->sbuf, p->bytes, rank, round);
        memset(p->rbuf, 0xaa, (size_t)p->bytes);
        bounce(p);
        long wrong = check_pattern(p->rbuf, p->bytes, !rank, round);
        if (wrong >= 0)
            wrong_bytes(what, p->bytes, p->parts, wrong);
    }
}

static void ladder(const char *what, bool loop)
{
    for (int s = 0; s < opt.n_sizes; s++) {
        for (int n = 0; n < opt.n_parts; n++) {
            struct pair p;
            long bytes = opt.sizes[s];
            int parts = opt.parts[n];
            if (bytes < 8L * parts || bytes % parts)
                continue;
            open_pair(&p, bytes, parts, loop);
            verify(&p, what);
            measure(what, bytes, parts, opt.alloc ? FLOOR_ONE_COPY : FLOOR_TWO_COPIES, bounce, &p);
            verify(&p, what);
            close_pair(&p);
        }
    }
}

void measure_partitioned(void)
{
    ladder(opt.alloc ? "partitioned, alloc" : "partitioned", false);
}

void measure_parrived(void)
{
    ladder("partitioned, Parrived", true);
}

/* ---- rate: rank 0's threads mark, rank 1 waits */
enum { PER_THREAD = 64, MAX_THREADS = 16, EPOCHS = 2000 };
struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct pair *pair;
    int first, epochs;
};

static void *mark(void *arg)
{
    struct worker *w = arg;
    for (int e = 0; e < w->epochs; e++) {
        pthread_barrier_wait(w->barrier);
        for (int i = 0; i < PER_THREAD; i++)
            MPI_Pready(w->first + i, w->pair->send);
        pthread_barrier_wait(w->barrier);
    }
    return NULL;
}

static double rate_of(int threads, int epochs)
{
    struct pair p;
    struct worker w[MAX_THREADS];
    pthread_barrier_t barrier;
    double spent = 0;
    open_pair(&p, 8L * threads * PER_THREAD, threads * PER_THREAD, false);
    if (rank == 0) {
        pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
        for (int t = 0; t < threads; t++) {
            w[t] = (struct worker){.barrier = &barrier, .pair = &p, .first = t * PER_THREAD, .epochs = epochs};
            pthread_create(&w[t].thread, NULL, mark, &w[t]);
        }
    }
    for (int e = 0; e < epochs; e++) {
        if (rank == 1) {
            recv_all(&p);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
            continue;
        }
        MPI_Start(&p.send);
        double from = now_us();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        spent += now_us() - from;
        MPI_Wait(&p.send, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int t = 0; rank == 0 && t < threads; t++)
        pthread_join(w[t].thread, NULL);
    close_pair(&p);
    return rank == 0 ? (double)threads * PER_THREAD * epochs / spent : 0;
}

void measure_rate(void)
{
    for (int threads = 1; threads <= MAX_THREADS; threads *= 2) {
        double rates[RUNS];
        int epochs = opt.quick ? EPOCHS / 20 : EPOCHS;
        rate_of(threads, epochs / 10 + 1);
        for (int r = 0; r < RUNS; r++)
            rates[r] = rate_of(threads, epochs);
        qsort(rates, RUNS, sizeof *rates, compare_doubles);
        if (rank == 0)
            report_rate(threads, rates[RUNS / 2]);
    }
}
#else
void measure_partitioned(void) {}
void measure_parrived(void) {}
void measure_rate(void) {}
#endif
