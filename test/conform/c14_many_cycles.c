/* 100,000 rounds of create and free (divided by DZ_TEST_SCALE) with 1,000 live requests beside them: memory does not grow.
 *
 * run: -n 2 -t 300
 * run: -n 1 -t 300 */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

enum { LIVE = 500 };

static long resident_kib(void)
{
    long total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static void cycle(long i, unsigned char *out, unsigned char *in)
{
    MPI_Request s, r;
    MPI_Psend_init(out, 4, 16, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, 2, 32, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    if (i % 4 == 0) { /* used once; the others only made */
        fill(out, 0, 64, rank, (int)i);
        MPI_Start(&r);
        MPI_Start(&s);
        MPI_Pready_range(0, 3, s);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, 64, peer, (int)i) < 0, "cycle %ld", i);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    if (i % 64 == 0)
        MPI_Barrier(MPI_COMM_WORLD); /* neither may run away with requests that the other has not seen */
}

int main(void)
{
    static MPI_Request live[2 * LIVE];
    static unsigned char bytes[LIVE][2][8];
    unsigned char out[64], in[64];
    long cycles = 100000, before, after;
    const char *scale = getenv("DZ_TEST_SCALE");
    if (scale && atoi(scale) > 0)
        cycles /= atoi(scale);
    begin(MPI_THREAD_SINGLE);
    for (int i = 0; i < LIVE; i++) {
        MPI_Psend_init(bytes[i][0], 1, 8, MPI_BYTE, peer, 100 + i, MPI_COMM_WORLD, MPI_INFO_NULL, &live[2 * i]);
        MPI_Precv_init(bytes[i][1], 1, 8, MPI_BYTE, peer, 100 + i, MPI_COMM_WORLD, MPI_INFO_NULL, &live[2 * i + 1]);
    }
    for (long i = 0; i < cycles / 10; i++)
        cycle(i, out, in);
    before = resident_kib();
    int files = open_files();
    for (long i = 0; i < cycles; i++)
        cycle(i, out, in);
    after = resident_kib();
    EXPECT(after - before < 2048 || scale, "%ld KiB resident before, %ld after %ld cycles", before, after, cycles);
    EXPECT(open_files() <= files + 4, "%d files open before, %d after", files, open_files());
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2 * LIVE, live);
        for (int i = 0; i < LIVE; i++) {
            fill(bytes[i][0], 0, 8, rank, round * LIVE + i);
            MPI_Pready(0, live[2 * i]);
        }
        MPI_Waitall(2 * LIVE, live, MPI_STATUSES_IGNORE);
        for (int i = 0; i < LIVE; i++)
            EXPECT(wrong_byte(bytes[i][1], 0, 8, peer, round * LIVE + i) < 0, "live request %d, round %d", i, round);
    }
    for (int i = 0; i < 2 * LIVE; i++)
        MPI_Request_free(&live[i]);
    return end();
}
