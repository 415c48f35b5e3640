/* prog.c - what the launcher tests (*.sh here) start: one process of a job, doing what its first argument says.
 *
 *   hello                 a ring of messages, then "hello RANK of SIZE" and exit status 0
 *   abort CODE            the last rank calls MPI_Abort(CODE) while the others wait for it
 *   before | after        a call before MPI_Init | after MPI_Finalize
 *   twice | again         MPI_Init a second time | after MPI_Finalize
 *   deaf                  MPI_Init towards a PMIx server that accepts connections and never says a word
 *   orphan                rank 0 kills its parent, the launcher, once the job has begun to talk
 *   init RANK USEC        RANK is killed USEC after its start, the others talk for ever
 *   talk RANK USEC        RANK is killed USEC after the job has begun to talk
 *   bulk | part RANK USEC the same, with long messages | with partitioned requests
 *   wait RANK USEC        the same, but RANK says nothing and all others wait for it alone
 *   final RANK USEC       RANK is killed USEC after it has entered MPI_Finalize, or before if USEC is 0
 *
 * Further arguments only mark the process for whoever looks for it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

/* SIGKILL to this process after usec, wherever it is then. */
static void die_after(long usec)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = {usec / 1000000, usec % 1000000 * 1000}};
    timer_t timer;
    if (usec == 0)
        raise(SIGKILL);
    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &at, NULL)) {
        perror("timer");
        exit(1);
    }
}

static void ring(int round)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size, out = 1000 * round + rank, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, to, 7, &in, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (in != 1000 * round + from) {
        fprintf(stderr, "rank %d: %d has come from rank %d, not %d\n", rank, in, from, 1000 * round + from);
        exit(1);
    }
}

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void talk_for_ever(void)
{
    for (int round = 0;; round = (round + 1) % 1000)
        ring(round);
}

static void bulk_for_ever(void)
{
    enum { N = 1 << 18 };
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    if (!out || !in)
        exit(1);
    for (int round = 0;; round = (round + 1) % 1000) {
        out[0] = out[N - 1] = 1000 * round + rank;
        MPI_Sendrecv(out, N, MPI_INT, to, 8, in, N, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (in[0] != 1000 * round + from || in[N - 1] != in[0])
            exit(1);
    }
}

static void part_for_ever(void)
{
    enum { PARTS = 4, N = 4096 };
    static int out[PARTS * N], in[PARTS * N];
    MPI_Request r[2];
    MPI_Psend_init(out, PARTS, N, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, PARTS, N, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int round = 0;; round++) {
        MPI_Startall(2, r);
        for (int p = 0; p < PARTS; p++) {
            out[p * N] = out[p * N + N - 1] = round + p;
            MPI_Pready(p, r[0]);
        }
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int p = 0; p < PARTS; p++)
            if (in[p * N] != round + p || in[p * N + N - 1] != round + p)
                exit(1);
    }
}

static int run_hello(void)
{
    start();
    for (int round = 0; round < 10; round++)
        ring(round);
    printf("hello %d of %d\n", rank, size);
    fflush(stdout);
    return MPI_Finalize();
}

static int run_abort(int code)
{
    start();
    int in;
    if (rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Recv(&in, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

static int run_orphan(void)
{
    start();
    ring(0);
    if (rank == 0 && kill(getppid(), SIGKILL))
        perror("kill");
    talk_for_ever();
    return 0;
}

static int run_deaf(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 8) || getsockname(fd, (struct sockaddr *)&a, &n)) {
        perror("socket");
        return 1;
    }
    char uri[64];
    snprintf(uri, sizeof uri, "nobody.0;tcp4://127.0.0.1:%d", ntohs(a.sin_port));
    static const char *const names[] = {"2", "21", "3", "4", "41", "51", "5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        snprintf(name, sizeof name, "PMIX_SERVER_URI%s", names[i]);
        setenv(name, uri, 1);
    }
    setenv("PMIX_NAMESPACE", "nobody", 1);
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_SECURITY_MODE", "native", 1);
    start();
    return 0;
}

static int run_victim(const char *mode, int victim, long usec)
{
    const char *r = getenv("PMIX_RANK");
    if (!strcmp(mode, "init") && r && atoi(r) == victim)
        die_after(usec);
    start();
    if (!strcmp(mode, "final")) {
        ring(0);
        if (rank == victim)
            die_after(usec);
        return MPI_Finalize();
    }
    if (!strcmp(mode, "wait")) {
        int in;
        ring(0);
        if (rank == victim)
            die_after(usec);
        while (rank == victim)
            pause();
        MPI_Recv(&in, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    if (strcmp(mode, "init") && rank == victim)
        die_after(usec);
    if (!strcmp(mode, "bulk"))
        bulk_for_ever();
    if (!strcmp(mode, "part"))
        part_for_ever();
    talk_for_ever();
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "hello";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(mode, "hello"))
        return run_hello();
    if (!strcmp(mode, "abort"))
        return run_abort(number);
    if (!strcmp(mode, "deaf"))
        return run_deaf();
    if (!strcmp(mode, "orphan"))
        return run_orphan();
    if (argc > 3)
        return run_victim(mode, number, atol(argv[3]));
    if (!strcmp(mode, "before"))
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    start();
    if (!strcmp(mode, "twice"))
        MPI_Init(NULL, NULL);
    MPI_Finalize();
    if (!strcmp(mode, "again"))
        MPI_Init(NULL, NULL);
    if (!strcmp(mode, "after"))
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return 0;
}
