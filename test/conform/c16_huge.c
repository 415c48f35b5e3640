/* One partition of more than 2 GiB; 100,000 partitions. Skipped where memory is short.
 *
 * run: -n 2 -t 300 */
#include <unistd.h>

#include "check.h"

enum { MANY = 100000 };

static void many(void)
{
    static unsigned char out[MANY * 8], in[MANY * 8];
    MPI_Request s, r;
    MPI_Psend_init(out, MANY, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, MANY / 10, 80, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 5; round++) {
        MPI_Start(&r);
        MPI_Start(&s);
        fill(out, 0, sizeof out, rank, round);
        for (int i = 0; i < MANY; i++)
            MPI_Pready((int)((long)i * 7919 % MANY), s);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, sizeof in, peer, round) < 0, "round %d: byte %ld", round, wrong_byte(in, 0, sizeof in, peer, round));
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

static int huge(void)
{
    size_t bytes = ((size_t)2 << 30) + 12345;
    long available = sysconf(_SC_AVPHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024); /* MiB */
    int enough = available > 7000, all;
    MPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        if (!rank)
            printf("skipped: 2 GiB partitions need 7 GiB of free memory, there are %ld MiB\n", available);
        return 0;
    }
    unsigned char *buf = malloc(bytes);
    MPI_Request q;
    MPI_Status status;
    MPI_Count n = -1;
    if (rank == 0)
        MPI_Psend_init(buf, 1, (MPI_Count)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    else
        MPI_Precv_init(buf, 1, (MPI_Count)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    if (rank == 0)
        for (size_t i = 0; i < bytes; i += 4096)
            buf[i] = byte_at(0, 0, (long)(i / 4096));
    if (rank == 0)
        buf[bytes - 1] = 123;
    MPI_Start(&q);
    if (rank == 0)
        MPI_Pready(0, q);
    MPI_Wait(&q, &status);
    if (rank == 1) {
        long wrong = -1;
        for (size_t i = 0; i < bytes && wrong < 0; i += 4096)
            if (buf[i] != byte_at(0, 0, (long)(i / 4096)))
                wrong = (long)i;
        EXPECT(wrong < 0 && buf[bytes - 1] == 123, "byte %ld, last %d", wrong, buf[bytes - 1]);
        MPI_Get_elements_x(&status, MPI_BYTE, &n);
        EXPECT(n == (MPI_Count)bytes, "%lld bytes", (long long)n);
    }
    MPI_Request_free(&q);
    free(buf);
    return 1;
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    many();
    int did = huge();
    int rc = end();
    return rc ? rc : did ? 0 : 77;
}
