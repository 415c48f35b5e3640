/* pready.c - for pready-insns.sh: rounds of one bound partition of 8 bytes from rank 0 to rank 1. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    long x = 0;
    MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Psend_init(&x, 1, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    else
        MPI_Precv_init(&x, 1, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Barrier(MPI_COMM_WORLD); /* matched; the first rounds may still find the channel cold, not unbound */
    for (int i = 0; i < rounds; i++) {
        MPI_Start(&r);
        if (rank == 0) {
            x = i;
            MPI_Pready(0, r);
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        if (rank == 1 && x != i)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Request_free(&r);
    MPI_Finalize();
    return 0;
}
