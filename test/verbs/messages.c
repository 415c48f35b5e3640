/* Long plain messages are put straight into the receive buffer, one registration at each end for each; memory that is
 * unmapped and mapped again at the same address between two messages carries the new bytes; strided and truncated
 * receives, and messages larger than a device's, come right.
 *
 * run: -n 2 -t 120
 * run: -n 2 -t 120 -e DENIZEN_EAGER=0 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "test/conform/check.h"
#include "transport/transport.h"

enum { LEN = 1 << 20, HUGE_LEN = 20 << 20, ROUNDS = 10 };

static uint64_t puts_so_far(void)
{
    return atomic_load_explicit(&dz_counters[DZ_CTR_puts], memory_order_relaxed);
}

static unsigned char *map_at(unsigned char *where, size_t n)
{
    unsigned char *p = mmap(where, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return p;
}

static void remapped(void)
{
    unsigned char *out = map_at(NULL, LEN), *in = map_at(NULL, LEN);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = puts_so_far();
        fill(out, 0, LEN, rank, i);
        MPI_Sendrecv(out, LEN, MPI_BYTE, peer, 1, in, LEN, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        long wrong = wrong_byte(in, 0, LEN, peer, i);
        EXPECT(wrong < 0, "remapped, round %d: byte %ld", i, wrong);
        EXPECT(puts_so_far() == before + 1, "%llu writes of a message", (unsigned long long)(puts_so_far() - before));
        munmap(out, LEN);
        munmap(in, LEN);
        out = map_at(out, LEN);
        in = map_at(in, LEN);
    }
    munmap(out, LEN);
    munmap(in, LEN);
}

static void persistent(void)
{
    unsigned char *out = malloc(LEN), *in = malloc(LEN);
    MPI_Request q[2];
    MPI_Send_init(out, LEN, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &q[0]);
    MPI_Recv_init(in, LEN, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &q[1]);
    for (int i = 0; i < ROUNDS; i++) {
        fill(out, 0, LEN, rank, i);
        MPI_Startall(2, q);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        EXPECT(wrong_byte(in, 0, LEN, peer, i) < 0, "persistent, round %d", i);
    }
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    free(out);
    free(in);
}

/* Every second block of 64 bytes, at either end or both; and a receive that is too short. */
static void shapes(void)
{
    enum { BLOCKS = LEN / 64 };
    unsigned char *flat = malloc(LEN), *strided = malloc(2 * LEN);
    MPI_Datatype type;
    MPI_Status status;
    MPI_Type_vector(BLOCKS, 64, 128, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int way = 0; way < 2; way++) {
        memset(strided, 0x55, 2 * LEN);
        fill(flat, 0, LEN, rank, 50 + way);
        for (long i = 0; way && i < LEN; i++)
            strided[i / 64 * 128 + i % 64] = flat[i];
        MPI_Request r;
        unsigned char *in = malloc(2 * LEN);
        memset(in, 0x66, 2 * LEN);
        MPI_Irecv(in, way ? LEN : 1, way ? MPI_BYTE : type, peer, 3, MPI_COMM_WORLD, &r);
        MPI_Send(way ? strided : flat, way ? 1 : LEN, way ? type : MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        MPI_Wait(&r, &status);
        long wrong = 0;
        for (long i = 0; i < LEN; i++)
            wrong += in[way ? i : i / 64 * 128 + i % 64] != byte_at(peer, 50 + way, i);
        for (long i = 0; !way && i < BLOCKS - 1; i++)
            wrong += in[i * 128 + 64] != 0x66;
        EXPECT(!wrong, "shape %d: %ld bytes are wrong", way, wrong);
        free(in);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fill(flat, 0, LEN, rank, 60);
    memset(strided, 0x77, LEN);
    MPI_Request r;
    MPI_Irecv(strided, LEN / 2, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &r);
    MPI_Send(flat, LEN, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
    ERROR(MPI_Wait(&r, &status), MPI_ERR_TRUNCATE, NULL, NULL);
    EXPECT(wrong_byte(strided, 0, LEN / 2, peer, 60) < 0, "the first half is wrong");
    EXPECT(strided[LEN / 2] == 0x77, "written beyond the receive");
    MPI_Type_free(&type);
    free(flat);
    free(strided);
}

static void huge(void)
{
    unsigned char *out = malloc(HUGE_LEN), *in = malloc(HUGE_LEN);
    MPI_Request s, r;
    fill(out, 0, HUGE_LEN, rank, 70);
    MPI_Sendrecv(out, HUGE_LEN, MPI_BYTE, peer, 5, in, HUGE_LEN, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(wrong_byte(in, 0, HUGE_LEN, peer, 70) < 0, "a message of %d bytes", HUGE_LEN);
    memset(in, 0, HUGE_LEN);
    MPI_Psend_init(out, 2, HUGE_LEN / 2, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, 1, HUGE_LEN, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int e = 0; e < 2; e++) {
        fill(out, 0, HUGE_LEN, rank, 80 + e);
        MPI_Start(&r);
        MPI_Start(&s);
        MPI_Pready(1, s);
        MPI_Pready(0, s);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, HUGE_LEN, peer, 80 + e) < 0, "partitions of %d bytes, round %d", HUGE_LEN / 2, e);
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(out);
    free(in);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    remapped();
    persistent();
    shapes();
    huge();
    return end();
}
