/* MPI_STATUSES_IGNORE where MPI_STATUS_IGNORE is meant, MPI_INFO_ENV as info, a partition index of int beside a count of
 * MPI_Count, Finalize with inactive requests still allocated.
 *
 * run: -n 2
 * run: -n 1 */
#include "check.h"

int main(void)
{
    int x[3] = {0}, y[3] = {-1, -1, -1}, flag = 0;
    MPI_Count one = 1;
    MPI_Request s, r, unused[4];
    begin(MPI_THREAD_SINGLE); /* Init with NULL, NULL */
    MPI_Psend_init(x, 3, one, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_INFO_ENV, &s);
    MPI_Precv_init(y, 3, one, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_INFO_ENV, &r);
    MPI_Start(&r);
    MPI_Start(&s);
    for (int p = 0; p < 3; p++) {
        x[p] = p + 10 * rank;
        MPI_Pready(p, s);
    }
    MPI_Wait(&s, MPI_STATUSES_IGNORE);
    while (!flag)
        MPI_Test(&r, &flag, MPI_STATUSES_IGNORE);
    EXPECT(y[0] == 10 * peer && y[2] == 10 * peer + 2, "%d %d %d", y[0], y[1], y[2]);
    /* left allocated, used and never used */
    MPI_Psend_init(x, 3, one, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &unused[0]);
    MPI_Precv_init(y, 3, one, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &unused[1]);
    MPI_Send_init(x, 3, MPI_INT, peer, 3, MPI_COMM_WORLD, &unused[2]);
    MPI_Recv_init(y, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &unused[3]);
    return end();
}
