/* Partitions marked out of order arrive as themselves; payloads that are all zero are seen.
 *
 * run: -n 2
 * run: -n 1
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0 */
#include "check.h"

enum { PARTS = 64 };

static void run(int bytes)
{
    unsigned char *out = calloc(PARTS, (size_t)bytes), *in = calloc(PARTS, (size_t)bytes);
    MPI_Request s, r;
    MPI_Psend_init(out, PARTS, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 30; round++) {
        memset(in, 0x5a, (size_t)PARTS * (size_t)bytes); /* from MPI_Start on it is the library's */
        MPI_Start(&r);
        MPI_Start(&s);
        for (int i = 0; i < PARTS; i++) {
            int p = (i * 37 + round) % PARTS, zero = p % 3 == 0;
            if (zero)
                memset(out + (long)p * bytes, 0, (size_t)bytes);
            else
                fill(out, (long)p * bytes, bytes, rank, round);
            MPI_Pready(p, s);
            if (size == 1 || i % 16 == 15) {
                for (; !arrived(r, p);)
                    ;
                long wrong = -1;
                for (long k = (long)p * bytes; zero && k < (long)(p + 1) * bytes && wrong < 0; k++)
                    wrong = in[k] ? k : -1;
                if (!zero)
                    wrong = wrong_byte(in, (long)p * bytes, bytes, peer, round);
                EXPECT(wrong < 0, "%d bytes, round %d, partition %d: byte %ld", bytes, round, p, wrong);
            }
        }
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(out);
    free(in);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    run(8);
    run(40);
    run(3000);
    return end();
}
