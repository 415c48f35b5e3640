/* coll_threads.c - threads with a communicator each: collectives, and the making and freeing of further communicators, at
 * the same time in one process (MPI 3.1, sections 5.13 and 12.4). */
/* run: -n 3 -t 120 */
#include "coll.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };
static MPI_Comm comms[THREADS];
static int bad[THREADS];

static void work(MPI_Comm comm, int thread, int round, int *wrong)
{
    int rank, size, x, sum;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    x = rank * 100 + thread * 7 + round;
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm);
    *wrong += sum != 100 * size * (size - 1) / 2 + size * (thread * 7 + round);
    x = rank == round % size ? thread * 1000 + round : -1;
    MPI_Bcast(&x, 1, MPI_INT, round % size, comm);
    *wrong += x != thread * 1000 + round;
    MPI_Barrier(comm);
}

static void *run(void *arg)
{
    int thread = (int)((MPI_Comm *)arg - comms);
    for (int round = 0; round < ROUNDS; round++) {
        work(comms[thread], thread, round, &bad[thread]);
        if (round % 10)
            continue;
        MPI_Comm part;
        MPI_Comm_split(comms[thread], 0, -world_rank, &part);
        work(part, thread, round, &bad[thread]);
        MPI_Comm_free(&part);
        MPI_Comm_dup(comms[thread], &part);
        work(part, thread, round, &bad[thread]);
        MPI_Comm_free(&part);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t id[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    EXPECT(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&id[t], NULL, run, &comms[t]);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(id[t], NULL);
        EXPECT(!bad[t], "thread %d: %d wrong results", t, bad[t]);
        MPI_Comm_free(&comms[t]);
    }
    return end();
}
