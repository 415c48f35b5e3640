/* env.c - what may be asked about the library, the process, time and memory, and when.
 * run: -n 2 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;
#define EXPECT(cond, ...)                                                                                            \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            failures++;                                                                                              \
            printf("FAIL line %d: %s: ", __LINE__, #cond);                                                           \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
        }                                                                                                            \
    } while (0)

static void phases(int initialized, int finalized, const char *when)
{
    int flag = -1, version = 0, subversion = -1, n = 0;
    char s[MPI_MAX_LIBRARY_VERSION_STRING];
    EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && flag == initialized, "%s", when);
    EXPECT(MPI_Finalized(&flag) == MPI_SUCCESS && flag == finalized, "%s", when);
    EXPECT(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == MPI_VERSION &&
               subversion == MPI_SUBVERSION, "%s", when);
    EXPECT(MPI_Get_library_version(s, &n) == MPI_SUCCESS && n == (int)strlen(s) && strstr(s, "Denizen"), "%s: %s", when, s);
}

static void *not_main(void *arg)
{
    int flag = -1;
    EXPECT(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag == 0, "another thread");
    return arg;
}

static void threads(void)
{
    int level = -1, flag = -1;
    pthread_t t;
    EXPECT(MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE, "level %d", level);
    EXPECT(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag == 1, "the main thread");
    if (!pthread_create(&t, NULL, not_main, NULL))
        pthread_join(t, NULL);
    else
        EXPECT(0, "no thread");
}

static void names_and_clock(void)
{
    char name[MPI_MAX_PROCESSOR_NAME], host[256] = "";
    int n = 0;
    gethostname(host, sizeof host - 1);
    EXPECT(MPI_Get_processor_name(name, &n) == MPI_SUCCESS && n == (int)strlen(name) && !strcmp(name, host), "%s", name);
    double a = MPI_Wtime(), b = a, tick = MPI_Wtick();
    EXPECT(tick > 0 && tick < 1e-3, "tick %g", tick);
    for (int i = 0; i < 1000000 && b <= a; i++)
        b = MPI_Wtime();
    EXPECT(b > a && b - a < 1, "the clock moves forward: %g", b - a);
    EXPECT(MPI_Pcontrol(1) == MPI_SUCCESS, "Pcontrol");
}

static void memory(void)
{
    char *p = NULL, *q = NULL;
    int on_stack;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (MPI_Aint bytes = 1; bytes < 64 << 20; bytes = bytes * 3 + 1) {
        EXPECT(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &p) == MPI_SUCCESS && p, "%ld bytes", (long)bytes);
        memset(p, 1, (size_t)bytes);
        EXPECT(((uintptr_t)p & 15) == 0, "%p is aligned for anything", (void *)p);
        EXPECT(MPI_Free_mem(p) == MPI_SUCCESS, "free");
    }
    EXPECT(MPI_Alloc_mem(0, MPI_INFO_NULL, &p) == MPI_SUCCESS && MPI_Alloc_mem(0, MPI_INFO_NULL, &q) == MPI_SUCCESS &&
               p != q, "no bytes");
    EXPECT(MPI_Free_mem(p) == MPI_SUCCESS && MPI_Free_mem(q) == MPI_SUCCESS, "free");
    EXPECT(MPI_Alloc_mem(-1, MPI_INFO_NULL, &p) == MPI_ERR_ARG, "negative");
    EXPECT(MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &p) == MPI_ERR_NO_MEM, "too much");
    EXPECT(MPI_Alloc_mem(8, MPI_INFO_NULL, NULL) == MPI_ERR_ARG, "no place");
    EXPECT(MPI_Free_mem(&on_stack) == MPI_ERR_BASE, "not ours");
}

int main(void)
{
    int provided = -1;
    phases(0, 0, "before MPI_Init");
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    phases(1, 0, "in between");
    threads();
    names_and_clock();
    memory();
    MPI_Finalize();
    phases(1, 1, "after MPI_Finalize");
    printf(failures ? "%d failures\n" : "passed\n", failures);
    return failures != 0;
}
