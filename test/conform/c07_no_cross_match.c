/* Partitioned operations match only partitioned ones, and are seen by no probe and no wildcard.
 *
 * run: -n 2 */
#include "check.h"

int main(void)
{
    int plain_out = 11 + rank, plain_in = -1, persistent_out = 21 + rank, persistent_in = -1, part_out[2], part_in[2] = {-1, -1};
    int flag = -1;
    MPI_Request ps, pr, s, r, any;
    begin(MPI_THREAD_SINGLE);
    plain_out = 11 + rank;
    persistent_out = 21 + rank;
    MPI_Psend_init(part_out, 2, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &ps);
    MPI_Start(&ps);
    part_out[0] = 31 + rank;
    part_out[1] = 41 + rank;
    MPI_Pready_range(0, 1, ps);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 100; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag, "a probe sees a partition");
    }
    int nothing = -1;
    MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
    for (int i = 0; i < 100; i++) {
        MPI_Test(&any, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag, "a wildcard receive got a partition");
    }
    MPI_Cancel(&any);
    MPI_Wait(&any, MPI_STATUS_IGNORE);
    EXPECT(nothing == -1, "it got %d", nothing);
    MPI_Barrier(MPI_COMM_WORLD);
    /* same peer, same tag, three kinds */
    MPI_Send_init(&persistent_out, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &s);
    MPI_Precv_init(part_in, 2, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &pr);
    MPI_Recv_init(&persistent_in, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &r);
    MPI_Start(&pr);
    MPI_Start(&s);
    MPI_Start(&r);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&plain_out, 1, MPI_INT, peer, 7, &plain_in, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&pr, MPI_STATUS_IGNORE);
    MPI_Wait(&ps, MPI_STATUS_IGNORE);
    EXPECT(plain_in == 11 + peer && persistent_in == 21 + peer && part_in[0] == 31 + peer && part_in[1] == 41 + peer,
           "%d %d %d %d", plain_in, persistent_in, part_in[0], part_in[1]);
    MPI_Request_free(&ps);
    MPI_Request_free(&pr);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    return end();
}
