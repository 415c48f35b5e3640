/* smallest.c - the smallest partitioned program: rank 0 sends four numbers, each when it is ready; rank 1 takes each as it
 * arrives. Then both do it again: the requests stay.
 *
 *   mpicc smallest.c -o smallest && mpirun -n 2 ./smallest */
#include <mpi.h>
#include <stdio.h>

enum { PARTS = 4, ROUNDS = 2 };

int main(int argc, char **argv)
{
    int rank, size;
    double x[PARTS];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || rank > 1) { /* two ranks play, others watch */
        MPI_Finalize();
        return size < 2;
    }
    if (rank == 0)
        MPI_Psend_init(x, PARTS, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(x, PARTS, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        for (int p = 0; p < PARTS; p++) {
            if (rank == 0) {
                x[p] = 10 * round + p;
                MPI_Pready(p, request); /* from here to MPI_Wait x[p] is the library's */
            } else {
                for (int there = 0; !there;)
                    MPI_Parrived(request, p, &there);
                printf("round %d, partition %d: %g\n", round, p, x[p]);
            }
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
/* For the tests: run: -n 3 */
