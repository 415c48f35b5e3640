/* check.h - what the conformance programs share. Each takes one line of what programs of other people rely on; only MPI
 * calls are used. EXPECT counts what is wrong and says what was seen; end() makes it the exit status. */
#ifndef DZ_TEST_CHECK_H
#define DZ_TEST_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, rank, size, peer; /* peer: the other of two ranks, or oneself */
#define EXPECT(cond, ...)                                                                                            \
    do {                                                                                                             \
        if (!(cond) && __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) <= 20) {                                   \
            printf("FAIL rank %d, line %d: %s: ", rank, __LINE__, #cond);                                            \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
        }                                                                                                            \
    } while (0)

static void begin(int level)
{
    int provided;
    MPI_Init_thread(NULL, NULL, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = size > 1 ? rank ^ 1 : 0;
    EXPECT(provided >= level, "provided %d", provided);
}

__attribute__((unused)) static int end(void)
{
    MPI_Finalize();
    return failures != 0;
}

/* The call returned this class, and its text names these words (NULL: any). */
__attribute__((unused)) static void expect_error(int line, int rc, int class, const char *w1, const char *w2)
{
    int got = -1, n;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(rc, &got);
    MPI_Error_string(rc, text, &n);
    if (got == class && (!w1 || strstr(text, w1)) && (!w2 || strstr(text, w2)))
        return;
    failures++;
    printf("FAIL rank %d, line %d: class %d, not %d, or without '%s', '%s': %s\n", rank, line, got, class, w1 ? w1 : "",
           w2 ? w2 : "", text);
}
#define ERROR(call, class, w1, w2) expect_error(__LINE__, call, class, w1, w2)

__attribute__((unused)) static unsigned char byte_at(int from, int round, long i)
{
    return (unsigned char)(from * 89 + round * 31 + i * 7 + (i >> 8) + 1);
}
__attribute__((unused)) static void fill(unsigned char *p, long from_byte, long n, int from, int round)
{
    for (long i = from_byte; i < from_byte + n; i++)
        p[i] = byte_at(from, round, i);
}
__attribute__((unused)) static long wrong_byte(const unsigned char *p, long from_byte, long n, int from, int round)
{
    for (long i = from_byte; i < from_byte + n; i++)
        if (p[i] != byte_at(from, round, i))
            return i;
    return -1;
}
__attribute__((unused)) static int arrived(MPI_Request r, int p)
{
    int flag = -1;
    MPI_Parrived(r, p, &flag);
    return flag;
}
/* Tells the peer that something has been done, outside of partitions; two ranks or oneself. */
__attribute__((unused)) static void tell(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, peer, 77, MPI_COMM_WORLD);
}
__attribute__((unused)) static void hear(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, peer, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

#endif
