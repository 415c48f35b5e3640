/* coll.c - collectives: allreduce (float, sum) and alltoall (a block of `bytes` to every rank), each persistent and plain.
 *
 * Any number of ranks; a figure is the time of one operation as rank 0 sees it, one after another without anything
 * between. With two ranks it stands beside the floor of the same bytes one way: an operation must at least bring one
 * rank's bytes to the other. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#if HAVE_PARTITIONED
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_MAJOR_VERSION)
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name##_init
#endif
#endif

struct coll {
    float *in, *out;
    int count; /* floats of a vector, or of a block */
    MPI_Request request;
};

static void start_and_wait(struct coll *c)
{
    MPI_Start(&c->request);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}

/* A round trip is two operations: what is reported is half of it. */
static void persistent_twice(void *arg)
{
    start_and_wait(arg);
    start_and_wait(arg);
}

static void allreduce(struct coll *c)
{
    MPI_Allreduce(c->in, c->out, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allreduce_twice(void *arg)
{
    allreduce(arg);
    allreduce(arg);
}

static void alltoall(struct coll *c)
{
    MPI_Alltoall(c->in, c->count, MPI_FLOAT, c->out, c->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void alltoall_twice(void *arg)
{
    alltoall(arg);
    alltoall(arg);
}

/* Small whole numbers: their sums are exact in any order. */
static float value(int from, int to, int i, int round)
{
    return (float)((from * 3 + to * 5 + i * 7 + round) % 31);
}

static void verify(struct coll *c, void (*one)(struct coll *), const char *what, bool reduces)
{
    for (int round = 0; round < 3; round++) {
        int blocks = reduces ? 1 : ranks;
        for (int i = 0; i < blocks * c->count; i++) {
            c->in[i] = value(rank, i / c->count, i % c->count, round);
            c->out[i] = -1;
        }
        one(c);
        for (int i = 0; i < blocks * c->count; i++) {
            float want = 0;
            for (int r = 0; reduces && r < ranks; r++)
                want += value(r, 0, i, round);
            if (!reduces)
                want = value(i / c->count, rank, i % c->count, round);
            if (c->out[i] != want)
                wrong_bytes(what, 4L * c->count, ranks, 4L * i);
        }
    }
}

static void ladder(const char *what, bool reduces, bool persistent)
{
    for (int s = 0; s < opt.n_sizes; s++) {
        long bytes = opt.sizes[s] / 4 * 4, all = reduces ? bytes : bytes * ranks;
        if (!bytes || all > 64L * MAX_SIZE)
            continue;
        struct coll c = {.in = get_buffer(all, false), .out = get_buffer(all, false), .count = (int)(bytes / 4)};
        round_trip *twice = persistent ? persistent_twice : reduces ? allreduce_twice : alltoall_twice;
        void (*one)(struct coll *) = persistent ? start_and_wait : reduces ? allreduce : alltoall;
#ifdef PERSISTENT
        if (persistent && reduces)
            PERSISTENT(Allreduce)(c.in, c.out, c.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &c.request);
        else if (persistent)
            PERSISTENT(Alltoall)(c.in, c.count, MPI_FLOAT, c.out, c.count, MPI_FLOAT, MPI_COMM_WORLD, MPI_INFO_NULL,
                                 &c.request);
#endif
        verify(&c, one, what, reduces);
        measure(what, bytes, 1, FLOOR_TWO_COPIES, twice, &c);
        verify(&c, one, what, reduces);
        if (persistent)
            MPI_Request_free(&c.request);
        put_buffer(c.in, false);
        put_buffer(c.out, false);
    }
}

static void both(const char *persistent, const char *plain, bool reduces)
{
#ifdef PERSISTENT
    ladder(persistent, reduces, true);
#else
    if (rank == 0)
        fprintf(stderr, "denizen-perf: %s is left out: this MPI has no such call\n", persistent);
#endif
    ladder(plain, reduces, false);
}

void measure_allreduce(void)
{
    both("allreduce, persistent", "allreduce, plain", true);
}

void measure_alltoall(void)
{
    both("alltoall, persistent", "alltoall, plain", false);
}
