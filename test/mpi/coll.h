/* coll.h - what the tests of collectives and communicators share: counting failures, and running a check on
 * communicators of every size from 1 to that of MPI_COMM_WORLD. */
#ifndef DZ_TEST_COLL_H
#define DZ_TEST_COLL_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, world_rank, world_size;
#define EXPECT(cond, ...)                                                                                            \
    do {                                                                                                             \
        if (!(cond) && ++failures <= 20) {                                                                           \
            printf("FAIL rank %d, line %d: %s: ", world_rank, __LINE__, #cond);                                      \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
        }                                                                                                            \
    } while (0)

__attribute__((unused)) static void begin(int *argc, char ***argv, int ranks)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size < ranks) {
        printf("needs %d ranks, has %d\n", ranks, world_size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int end(void)
{
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures || all;
}

/* check(comm, rank, size) on the first 1, 2, ... ranks; every second time with the ranks in reverse order. */
__attribute__((unused)) static void on_all_sizes(void (*check)(MPI_Comm, int, int))
{
    for (int n = 1; n <= world_size; n++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, world_rank < n ? 0 : MPI_UNDEFINED, n % 2 ? world_rank : -world_rank, &comm);
        EXPECT((comm == MPI_COMM_NULL) == (world_rank >= n), "%d ranks", n);
        if (comm == MPI_COMM_NULL)
            continue;
        int rank, size;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        EXPECT(size == n, "%d for %d", size, n);
        EXPECT(rank == (n % 2 ? world_rank : n - 1 - world_rank), "rank %d of %d", rank, n);
        check(comm, rank, size);
        MPI_Comm_free(&comm);
        EXPECT(comm == MPI_COMM_NULL, "freed");
    }
}

#endif
