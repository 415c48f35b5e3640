/* pready.c - for pready-insns.sh: rounds of one bound partition of 8 bytes, from rank 0 to rank 1, or to itself where
 * it is alone. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    long out = 0, in = 0;
    MPI_Request send = MPI_REQUEST_NULL, recv = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        MPI_Psend_init(&out, 1, 1, MPI_LONG, size > 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    if (rank == size - 1)
        MPI_Precv_init(&in, 1, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &recv);
    MPI_Barrier(MPI_COMM_WORLD); /* matched; the first rounds may still find the channel cold, not unbound */
    for (int i = 0; i < rounds; i++) {
        if (recv != MPI_REQUEST_NULL)
            MPI_Start(&recv);
        if (send != MPI_REQUEST_NULL) {
            out = i;
            MPI_Start(&send);
            MPI_Pready(0, send);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
        }
        if (recv != MPI_REQUEST_NULL) {
            MPI_Wait(&recv, MPI_STATUS_IGNORE);
            if (in != i)
                MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    if (send != MPI_REQUEST_NULL)
        MPI_Request_free(&send);
    if (recv != MPI_REQUEST_NULL)
        MPI_Request_free(&recv);
    MPI_Finalize();
    return 0;
}
