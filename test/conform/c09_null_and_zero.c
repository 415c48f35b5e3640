/* MPI_PROC_NULL on either side completes; count 0 with a NULL buffer is legal; a zero-byte partition arrives by its Pready.
 *
 * run: -n 2
 * run: -n 1 */
#include "check.h"

int main(void)
{
    double x[6] = {0};
    MPI_Request s, r;
    MPI_Status status;
    int n = -1, flag = -1;
    begin(MPI_THREAD_SINGLE);
    MPI_Psend_init(x, 3, 2, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(x, 3, 2, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&s);
        MPI_Start(&r);
        MPI_Pready_range(0, 2, s);
        EXPECT(arrived(r, 2) == 1, "nothing is awaited from nobody");
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        status.MPI_SOURCE = status.MPI_TAG = 7;
        MPI_Wait(&r, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &n);
        EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && n == 0, "source %d, tag %d, count %d",
               status.MPI_SOURCE, status.MPI_TAG, n);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    MPI_Psend_init(NULL, 3, 0, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(NULL, 5, 0, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 10; round++) {
        MPI_Start(&r);
        MPI_Start(&s);
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        MPI_Pready(0, s);
        MPI_Pready(2, s);
        MPI_Sendrecv(NULL, 0, MPI_INT, peer, 1, NULL, 0, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(!flag && !arrived(r, 2), "round %d: complete without its middle partition", round);
        while (!arrived(r, 0))
            ;
        tell();
        hear(); /* the peer has looked too */
        MPI_Pready(1, s);
        MPI_Wait(&r, &status);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, MPI_DOUBLE, &n);
        EXPECT(n == 0 && status.MPI_SOURCE == peer, "round %d: count %d from %d", round, n, status.MPI_SOURCE);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    return end();
}
