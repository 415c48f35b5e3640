/* Parrived is false right after every Start, also in later rounds and for zero-byte partitions, until the sender's Pready.
 *
 * run: -n 2
 * run: -n 1
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_CHUNK=512 */
#include "check.h"

enum { PARTS = 4, ROUNDS = 20, MAX = 40000 };

int main(void)
{
    static unsigned char out[PARTS * MAX], in[PARTS * MAX];
    static const int counts[] = {0, 1, 8, 700, MAX};
    begin(MPI_THREAD_SINGLE);
    for (int c = 0; c < 5; c++) {
        MPI_Request s, r;
        int n = counts[c];
        MPI_Psend_init(out, PARTS, n, MPI_BYTE, peer, c, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
        MPI_Precv_init(in, PARTS, n, MPI_BYTE, peer, c, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        for (int round = 0; round < ROUNDS; round++) {
            memset(in, 0, sizeof in);
            MPI_Start(&r);
            for (int p = 0; p < PARTS; p++)
                for (int again = 0; again < 50; again++)
                    EXPECT(!arrived(r, p), "%d bytes, round %d: partition %d before any Pready", n, round, p);
            tell();
            hear(); /* the peer has looked too */
            MPI_Start(&s);
            fill(out, 0, (long)PARTS * n, rank, round);
            for (int p = PARTS - 1; p >= 0; p--)
                MPI_Pready(p, s);
            for (int p = 0; p < PARTS; p++) {
                while (!arrived(r, p))
                    ;
                EXPECT(wrong_byte(in, (long)p * n, n, peer, round) < 0, "%d bytes, round %d: partition %d", n, round, p);
            }
            MPI_Wait(&s, MPI_STATUS_IGNORE);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&s);
        MPI_Request_free(&r);
    }
    return end();
}
