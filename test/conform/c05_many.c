/* 4096 send partitions for 512 received ones, and the other way round, marked by range and list.
 *
 * run: -n 2 */
#include "check.h"

enum { N = 4096 * 16 };

static void pair(int sp, int rp)
{
    static unsigned char out[N], in[N];
    static int odd[4096];
    MPI_Request s, r;
    MPI_Psend_init(out, sp, N / sp, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, rp, N / rp, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 10; round++) {
        int n = 0;
        MPI_Start(&r);
        MPI_Start(&s);
        fill(out, 0, N, rank, round);
        if (sp > 1)
            MPI_Pready_range(0, sp / 2 - 1, s);
        for (int p = sp - 1; p >= sp / 2; p--)
            odd[n++] = p;
        MPI_Pready_list(n, odd, s);
        for (int p = 0; p < rp; p++)
            while (!arrived(r, p))
                ;
        EXPECT(wrong_byte(in, 0, N, peer, round) < 0, "%d/%d round %d: byte %ld", sp, rp, round,
               wrong_byte(in, 0, N, peer, round));
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    pair(4096, 512);
    pair(512, 4096);
    pair(4096, 1);
    pair(1, 4096);
    return end();
}
