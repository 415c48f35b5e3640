/* The receiver is later than the sender in every second round, which has already changed its buffer: each round's bytes
 * arrive as they were at Pready.
 *
 * run: -n 2
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_SLOT_RING=4
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_FAULT=part=3,start=2 */
#include "check.h"

enum { ROUNDS = 400 };

static void run(int parts, int bytes, int tag)
{
    unsigned char *buf = calloc((size_t)parts, (size_t)bytes);
    MPI_Request q;
    if (rank == 0)
        MPI_Psend_init(buf, parts, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    else
        MPI_Precv_init(buf, parts, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    for (int round = 0; round < ROUNDS; round++) {
        int late = round % 2;
        if (rank == 0) {
            MPI_Start(&q);
            fill(buf, 0, (long)parts * bytes, 0, round);
            for (int p = 0; p < parts; p++)
                MPI_Pready(p, q);
            if (late)
                tell(); /* all is marked: now the receiver may start */
            MPI_Wait(&q, MPI_STATUS_IGNORE);
            memset(buf, 0xff, (size_t)parts * (size_t)bytes);
        } else {
            if (late)
                hear();
            memset(buf, 0, (size_t)parts * (size_t)bytes);
            MPI_Start(&q);
            MPI_Wait(&q, MPI_STATUS_IGNORE);
            long wrong = wrong_byte(buf, 0, (long)parts * bytes, 0, round);
            EXPECT(wrong < 0, "%d x %d, round %d: byte %ld is %d", parts, bytes, round, wrong, buf[wrong < 0 ? 0 : wrong]);
        }
    }
    MPI_Request_free(&q);
    free(buf);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    run(1, 8, 0);
    run(16, 8, 1);
    run(4, 1000, 2);
    run(2, 40000, 3);
    run(1, 600000, 4);
    return end();
}
