/* part.c - partitioned communication: the ping-pong, its variant that waits with MPI_Parrived, and the rate at which
 * several threads mark partitions ready. */
#define _GNU_SOURCE
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

/* ---- rate: rank 0's threads mark, rank 1 waits.
 * Two rates of an epoch, both from the first thread's first Pready, by the threads' own clocks (waking them costs more
 * than what they do): marked, to the last thread's last Pready; arrived, to the end of the receiver's MPI_Wait on the
 * node's one monotonic clock. A library that sends nothing before the last Pready marks fast and delivers late, so only
 * the second compares libraries. */
enum { PER_THREAD = 256, MAX_THREADS = 16, EPOCHS = 500 };
struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct pair *pair;
    int first, epochs;
    double from, to; /* of this epoch; read between two barriers */
};

/* Away from rank 1's CPU, if there are others; the pinned main thread's mask would put all on one. */
static void spread(void)
{
    cpu_set_t may = inherited;
    if (!opt.pin)
        return;
    CPU_CLR(cpus[1], &may);
    if (CPU_COUNT(&may))
        sched_setaffinity(0, sizeof may, &may);
}

static void mark_epoch(struct worker *w)
{
    pthread_barrier_wait(w->barrier);
    w->from = now_us();
    for (int i = 0; i < PER_THREAD; i++)
        MPI_Pready(w->first + i, w->pair->send);
    w->to = now_us();
    pthread_barrier_wait(w->barrier);
}

static void *mark(void *arg)
{
    struct worker *w = arg;
    spread();
    for (int e = 0; e < w->epochs; e++)
        mark_epoch(w);
    return NULL;
}

struct rate {
    double marked, arrived; /* microseconds of all epochs; then million partitions a second */
};

static void add_epoch(struct rate *r, const struct worker *w, int threads, double arrived)
{
    double from = w[0].from, to = w[0].to;
    for (int t = 1; t < threads; t++) {
        from = w[t].from < from ? w[t].from : from;
        to = w[t].to > to ? w[t].to : to;
    }
    r->marked += to - from;
    r->arrived += arrived - from;
}

static void take_epochs(struct pair *p, int epochs)
{
    for (int e = 0; e < epochs; e++) {
        memset(p->rbuf, 0xaa, (size_t)p->bytes);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        recv_all(p);
        double there = now_us();
        MPI_Send(&there, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
        long wrong = e == 0 || e == epochs - 1 ? check_pattern(p->rbuf, p->bytes, 0, e) : -1;
        if (wrong >= 0)
            wrong_bytes("rate", p->bytes, p->parts, wrong);
    }
}

static struct rate give_epochs(struct pair *p, int threads, int epochs)
{
    struct worker w[MAX_THREADS];
    pthread_barrier_t barrier;
    struct rate r = {0, 0};
    double there, total = (double)threads * PER_THREAD * epochs;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        w[t] = (struct worker){.barrier = &barrier, .pair = p, .first = t * PER_THREAD, .epochs = epochs};
        if (t && pthread_create(&w[t].thread, NULL, mark, &w[t])) {
            fprintf(stderr, "denizen-perf: no more threads\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    for (int e = 0; e < epochs; e++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (e == 0 || e == epochs - 1)
            fill_pattern(p->sbuf, p->bytes, 0, e);
        MPI_Start(&p->send);
        mark_epoch(&w[0]); /* the main thread is one of them */
        MPI_Wait(&p->send, MPI_STATUS_IGNORE);
        MPI_Recv(&there, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        add_epoch(&r, w, threads, there);
    }
    for (int t = 1; t < threads; t++)
        pthread_join(w[t].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return (struct rate){total / r.marked, total / r.arrived};
}

static struct rate rate_of(int threads, int epochs)
{
    struct pair p;
    struct rate rate = {0, 0};
    open_pair(&p, 8L * threads * PER_THREAD, threads * PER_THREAD, false);
    if (rank == 0)
        rate = give_epochs(&p, threads, epochs);
    else
        take_epochs(&p, epochs);
    close_pair(&p);
    return rate;
}

void measure_rate(void)
{
    int provided;
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        if (rank == 0)
            fprintf(stderr, "denizen-perf: rate is left out: this MPI does not provide MPI_THREAD_MULTIPLE\n");
        return;
    }
    for (int threads = 1; threads <= MAX_THREADS; threads *= 2) {
        double marked[RUNS], arrived[RUNS];
        int epochs = opt.quick ? EPOCHS / 10 : EPOCHS;
        rate_of(threads, epochs / 10 + 1);
        for (int r = 0; r < RUNS; r++) {
            struct rate one = rate_of(threads, epochs);
            marked[r] = one.marked;
            arrived[r] = one.arrived;
        }
        qsort(marked, RUNS, sizeof *marked, compare_doubles);
        qsort(arrived, RUNS, sizeof *arrived, compare_doubles);
        if (rank == 0)
            report_rate(threads, marked[RUNS / 2], arrived[RUNS / 2]);
    }
}
#else
void measure_partitioned(void) {}
void measure_parrived(void) {}
void measure_rate(void) {}
#endif
