/* floor.c - what the machine itself takes for the same bytes, between the same two ranks on the same two cores.
 *
 * A memfd of rank 0 that rank 1 maps through /proc. Three floors: a flag in a cache line that goes back and forth; one
 * copy, straight into the shared destination, then the flag; two copies, into shared slots and out of them, cut into
 * chunks with a flag each so that both sides copy at once. Small partitions keep their number: a slot and a flag each,
 * in one cache line where they fit. For larger messages the quickest of several chunk sizes is taken. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perf.h"

#define LINE 64
#define AREA ((size_t)6 << 20) /* of one direction: data and flags */
enum { SMALL = 4096 };

static char *base;
static char *private_src, *private_dst;
static enum floor_kind kind;
static long bytes, chunk, stride, flag_at, chunks;
static uint64_t seq;

static void die(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void floor_open(void)
{
    int where[2] = {getpid(), -1};
    unsigned char cookie[16] = {0};
    if (rank == 0) {
        where[1] = memfd_create("floor", MFD_CLOEXEC);
        if (where[1] < 0 || ftruncate(where[1], (off_t)(2 * AREA)))
            die("floor: memfd");
        if (getrandom(cookie, sizeof cookie, 0) != sizeof cookie ||
            pwrite(where[1], cookie, sizeof cookie, 0) != sizeof cookie)
            die("floor: writing the memfd");
    }
    MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(cookie, sizeof cookie, MPI_BYTE, 0, MPI_COMM_WORLD);
    int fd = where[1];
    if (rank == 1) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
        fd = open(path, O_RDWR | O_CLOEXEC);
        struct stat st;
        unsigned char there[sizeof cookie];
        /* on another node the same numbers may name another process's file, which must not be touched */
        if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || pread(fd, there, sizeof there, 0) != sizeof there ||
            memcmp(there, cookie, sizeof there)) {
            fprintf(stderr, "denizen-perf: rank 1 does not reach rank 0's memory through %s: "
                            "the floor needs both ranks on one node, in one pid namespace\n", path);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    base = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    private_src = malloc(MAX_SIZE);
    private_dst = malloc(MAX_SIZE);
    if (base == MAP_FAILED || !private_src || !private_dst)
        die("floor: memory");
    memset(private_src, 1, MAX_SIZE);
    memset(private_dst, 2, MAX_SIZE);
    MPI_Barrier(MPI_COMM_WORLD);
    close(fd);
    if (rank == 0)
        memset(base, 0, 2 * AREA);
    MPI_Barrier(MPI_COMM_WORLD);
}

void floor_close(void)
{
    munmap(base, 2 * AREA);
    free(private_src);
    free(private_dst);
}

static _Atomic uint64_t *flag_of(int from, long i)
{
    return (_Atomic uint64_t *)(void *)(base + (size_t)from * AREA + i * stride + flag_at);
}

static void wait_flag(int from, long i)
{
    while (atomic_load_explicit(flag_of(from, i), memory_order_acquire) != seq)
        ;
}

static void give(void)
{
    char *to = base + (size_t)rank * AREA;
    if (kind == FLOOR_FLAG) {
        atomic_store_explicit(flag_of(rank, 0), seq, memory_order_release);
        return;
    }
    for (long i = 0; i < chunks; i++) {
        long off = i * chunk, n = bytes - off < chunk ? bytes - off : chunk;
        memcpy(to + i * stride, private_src + off, (size_t)n);
        atomic_store_explicit(flag_of(rank, i), seq, memory_order_release);
    }
}

static void take(void)
{
    const char *from = base + (size_t)!rank * AREA;
    for (long i = 0; i < chunks; i++) {
        long off = i * chunk, n = bytes - off < chunk ? bytes - off : chunk;
        wait_flag(!rank, i);
        if (kind == FLOOR_TWO_COPIES)
            memcpy(private_dst + off, from + i * stride, (size_t)n);
    }
}

static void bounce(void *unused)
{
    (void)unused;
    seq++;
    if (rank == 0) {
        give();
        take();
    } else {
        take();
        give();
    }
}

static void lay_out(long size)
{
    chunk = size;
    chunks = bytes ? (bytes + size - 1) / size : 1;
    long need = (size + 7) / 8 * 8 + 8;
    stride = need <= 16 ? 16 : need <= 32 ? 32 : (need + LINE - 1) / LINE * LINE;
    flag_at = stride - 8;
}

double floor_run(void)
{
    return one_run(bounce, NULL, bytes);
}

/* Flags only grow, but another layout has them elsewhere: start from zeros. */
static void clear(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    memset(base + (size_t)rank * AREA, 0, (size_t)(chunks * stride));
    MPI_Barrier(MPI_COMM_WORLD);
}

void floor_prepare(enum floor_kind which, long size, int parts)
{
    static const long candidates[] = {4096, 8192, 16384, 32768, 65536};
    kind = which;
    bytes = which == FLOOR_FLAG ? 8 : size;
    lay_out(which != FLOOR_TWO_COPIES ? (bytes ? bytes : 1) : size <= SMALL ? (size + parts - 1) / parts : size);
    clear();
    if (which != FLOOR_TWO_COPIES || size <= SMALL)
        return;
    double best = 0;
    long best_chunk = size;
    for (int i = 0; i < (int)(sizeof candidates / sizeof *candidates); i++) {
        double t;
        lay_out(candidates[i] < size ? candidates[i] : size);
        clear();
        t = floor_run();
        t = floor_run(); /* the first one warms up */
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (!best || t < best) {
            best = t;
            best_chunk = chunk;
        }
    }
    lay_out(best_chunk);
    clear();
}
