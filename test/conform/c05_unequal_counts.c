/* Unequal partition counts: a receive partition has arrived exactly when every send partition that overlaps it has. The
 * sender marks one partition at a time, in random order, and the receiver looks at all of its own after each.
 *
 * run: -n 2
 * run: -n 1
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_CHUNK=512 */
#include "check.h"

static void shuffle(int *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = rand() % (i + 1), t = v[i];
        v[i] = v[k];
        v[k] = t;
    }
}

/* sp * sb == rp * rb bytes */
static void one_pair(int sp, int rp, int unit)
{
    long bytes = (long)sp * rp * unit;
    int sb = (int)(bytes / sp), rb = (int)(bytes / rp), *order = malloc((size_t)sp * sizeof *order);
    char *ready = calloc(1, (size_t)sp);
    unsigned char *out = calloc(1, (size_t)bytes), *in = calloc(1, (size_t)bytes);
    MPI_Request s, r;
    MPI_Psend_init(out, sp, sb, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, rp, rb, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 2; round++) {
        memset(ready, 0, (size_t)sp);
        memset(in, 0, (size_t)bytes);
        shuffle(order, sp); /* the same on both sides: same seed */
        MPI_Start(&r);
        MPI_Start(&s);
        fill(out, 0, bytes, rank, round);
        for (int i = 0; i < sp; i++) {
            int step = sp > 64 ? sp / 16 : 1, q = order[i];
            MPI_Pready(q, s);
            ready[q] = 1;
            if (i % step && i != sp - 1)
                continue;
            tell();
            hear(); /* the peer's partition has been marked too: what overlaps only marked ones has to be there */
            for (int j = 0; j < rp; j++) {
                int complete = 1, flag = 0;
                for (int k = (int)((long)j * rb / sb); k < sp && (long)k * sb < (long)(j + 1) * rb; k++)
                    complete &= ready[k];
                for (int tries = 0; tries < (complete ? 1000000 : 3) && !flag; tries++)
                    flag = arrived(r, j);
                EXPECT(flag == complete, "%d/%d, round %d, after %d: partition %d says %d", sp, rp, round, i + 1, j, flag);
                if (flag)
                    EXPECT(wrong_byte(in, (long)j * rb, rb, peer, round) < 0, "%d/%d: bytes of %d", sp, rp, j);
            }
            tell();
            hear(); /* both have looked: on to the next */
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(order);
    free(ready);
    free(out);
    free(in);
}

int main(void)
{
    static const int pairs[][2] = {{17, 33}, {33, 17}, {1, 16}, {16, 1}, {18, 5}, {8, 4}, {4, 8}, {7, 7}, {1, 1}, {2, 3}};
    begin(MPI_THREAD_SINGLE);
    srand(7);
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++)
        for (int unit = 1; unit < 100; unit += 33)
            one_pair(pairs[i][0], pairs[i][1], unit);
    one_pair(512, 64, 1);
    for (int i = 0; i < 30; i++) {
        int a = 1 + rand() % 40, b = 1 + rand() % 40;
        one_pair(a, b, 1 + rand() % 5);
    }
    return end();
}
