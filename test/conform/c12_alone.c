/* A loop of Parrived alone, or of Test alone, finishes: each makes progress by itself.
 *
 * run: -n 2
 * run: -n 1
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 4 */
#include "check.h"

enum { PARTS = 8, BYTES = 50000 };
static unsigned char out[PARTS * BYTES], in[PARTS * BYTES];

int main(void)
{
    MPI_Request s, r;
    begin(MPI_THREAD_SINGLE);
    for (int round = 0; round < 40; round++) {
        int flag = 0;
        if (round % 10 == 0) { /* the first look may be what binds them */
            MPI_Psend_init(out, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
            MPI_Precv_init(in, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        }
        MPI_Start(&s);
        MPI_Start(&r);
        fill(out, 0, sizeof out, rank, round);
        MPI_Pready_range(0, PARTS - 1, s);
        if (round % 2)
            for (int p = 0; p < PARTS; p++)
                while (!arrived(r, p))
                    ;
        else
            while (!flag)
                MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, sizeof in, peer, round) < 0, "round %d", round);
        for (flag = 0; !flag;)
            MPI_Test(&s, &flag, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        if (round % 10 == 9) {
            MPI_Request_free(&s);
            MPI_Request_free(&r);
        }
    }
    return end();
}
