/* p2p_order.c - order, wildcards, truncation, cancel, probes, PROC_NULL, oneself, and many messages at once.
 *
 * run: -n 2
 * run: -n 3
 * run: -n 16
 * run: -n 2 -e DENIZEN_EAGER=512 -e DENIZEN_CHUNK=512 -e DENIZEN_POOL=4096 */
#include "coll.h"

enum { MANY = 10000 };

/* Messages of mixed lengths overtake nothing: wildcard receives see them in the order they were sent. */
static void keeps_order(void)
{
    static const int lengths[] = {1, 3000, 8, 70000, 0, 300000, 2, 600, 9000};
    enum { N = 90 };
    static char buf[300001];
    int left[64] = {0}, n_left = (world_size - 1) * N;
    if (world_rank) {
        for (int i = 0; i < N; i++) {
            memset(buf, i, (size_t)lengths[i % 9]);
            MPI_Send(buf, lengths[i % 9], MPI_CHAR, 0, i, MPI_COMM_WORLD);
        }
        return;
    }
    while (n_left--) {
        MPI_Status s;
        int n;
        MPI_Recv(buf, sizeof buf, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_CHAR, &n);
        int want = left[s.MPI_SOURCE]++;
        EXPECT(s.MPI_TAG == want && n == lengths[want % 9], "from %d: tag %d, %d bytes; wanted tag %d", s.MPI_SOURCE,
               s.MPI_TAG, n, want);
        EXPECT(!n || (buf[0] == (char)want && buf[n - 1] == (char)want), "from %d, tag %d: wrong bytes", s.MPI_SOURCE,
               s.MPI_TAG);
    }
}

static void tags_choose(void)
{
    int v[4] = {0};
    if (world_rank == 1)
        for (int i = 0; i < 4; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    if (world_rank)
        return;
    for (int i = 3; i >= 0; i--)
        MPI_Recv(&v[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
        EXPECT(v[i] == i, "tag %d brought %d", i, v[i]);
}

static void truncates(int length)
{
    char *buf = calloc(1, (size_t)length + 1);
    if (world_rank == 1) {
        memset(buf, 7, (size_t)length);
        MPI_Send(buf, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        MPI_Send(buf, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    } else if (!world_rank) {
        int half = length / 2;
        MPI_Errhandler old;
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &old);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int rc = MPI_Recv(buf, half, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class = -1;
        MPI_Error_class(rc, &class);
        EXPECT(class == MPI_ERR_TRUNCATE, "%d into %d bytes: class %d", length, half, class);
        EXPECT(buf[half] == 0, "written beyond %d", half);
        EXPECT(half == 0 || buf[half - 1] == 7, "what fits did not come");
        rc = MPI_Recv(buf, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(rc == MPI_SUCCESS, "the next message: %d", rc);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, old);
        MPI_Errhandler_free(&old);
    }
    free(buf);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cancels(void)
{
    int v = -1, w = -1, flag = -1;
    MPI_Request r, q;
    MPI_Status s;
    int peer = world_rank == 0 ? 1 : 0;
    MPI_Irecv(&v, 1, MPI_INT, peer, 42, MPI_COMM_WORLD, &r);
    MPI_Irecv(&w, 1, MPI_INT, peer, 42, MPI_COMM_WORLD, &q);
    MPI_Cancel(&r);
    MPI_Wait(&r, &s);
    MPI_Test_cancelled(&s, &flag);
    EXPECT(flag == 1, "not cancelled");
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank < 2) {
        MPI_Send(&world_rank, 1, MPI_INT, peer, 42, MPI_COMM_WORLD);
        MPI_Wait(&q, &s);
        MPI_Test_cancelled(&s, &flag);
        EXPECT(flag == 0 && w == peer && v == -1, "the message went to %d, %d", v, w);
    } else {
        MPI_Cancel(&q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
}

static void probes(void)
{
    MPI_Status s;
    MPI_Message m;
    int flag = -1, n = -1, v[3] = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT(flag == 0, "a message nobody sent");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) {
        int a[3] = {1, 2, 3};
        MPI_Send(a, 3, MPI_INT, 0, 9, MPI_COMM_WORLD);
        MPI_Send(a + 1, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    } else if (!world_rank) {
        MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s);
        MPI_Get_count(&s, MPI_INT, &n);
        EXPECT(n == 3 && s.MPI_SOURCE == 1 && s.MPI_TAG == 9, "%d of %d, tag %d", n, s.MPI_SOURCE, s.MPI_TAG);
        MPI_Recv(&v[2], 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the other one: the first is taken */
        EXPECT(v[2] == 2, "%d", v[2]);
        MPI_Mrecv(v, 3, MPI_INT, &m, &s);
        EXPECT(v[0] == 1 && v[1] == 2 && v[2] == 3 && m == MPI_MESSAGE_NULL, "%d %d %d", v[0], v[1], v[2]);
    }
}

static void nobody(void)
{
    MPI_Status s;
    int v = 5, n = -1;
    MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &n);
    EXPECT(v == 5 && n == 0 && s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG, "source %d, tag %d, count %d",
           s.MPI_SOURCE, s.MPI_TAG, n);
}

static void oneself(int n)
{
    char *a = malloc((size_t)n + 1), *b = calloc(1, (size_t)n + 1);
    MPI_Request r;
    MPI_Status s;
    int got = -1;
    memset(a, 3 + world_rank, (size_t)n);
    MPI_Irecv(b, n, MPI_CHAR, world_rank, 1, MPI_COMM_WORLD, &r);
    MPI_Send(a, n, MPI_CHAR, world_rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&r, &s);
    MPI_Get_count(&s, MPI_CHAR, &got);
    EXPECT(got == n && !memcmp(a, b, (size_t)n) && s.MPI_SOURCE == world_rank, "%d of %d bytes", got, n);
    free(a);
    free(b);
}

static void many(void)
{
    static int v[MANY];
    static MPI_Request r[MANY];
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) {
        for (int i = 0; i < MANY; i++)
            v[i] = i;
        for (int i = 0; i < MANY; i++)
            MPI_Isend(&v[i], 1, MPI_INT, 0, i % 100, MPI_COMM_WORLD, &r[i]);
        MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
        MPI_Send(NULL, 0, MPI_INT, 0, 1000, MPI_COMM_WORLD);
    } else if (!world_rank) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* now all are unexpected */
        for (int i = MANY - 1; i >= 0; i--)
            MPI_Irecv(&v[i], 1, MPI_INT, 1, i % 100, MPI_COMM_WORLD, &r[i]);
        MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) { /* per tag the last receive posted got the last message: i is mirrored */
            int want = MANY - 100 - i / 100 * 100 + i % 100;
            EXPECT(v[i] == want, "receive %d got %d, not %d", i, v[i], want);
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 2);
    keeps_order();
    MPI_Barrier(MPI_COMM_WORLD); /* wildcards see the next messages too */
    tags_choose();
    static const int lengths[] = {1, 20, 1000, 20000, 1000000};
    for (int i = 0; i < 5; i++)
        truncates(lengths[i]);
    cancels();
    probes();
    nobody();
    static const int own[] = {0, 1, 1000, 100000, 3000000};
    for (int i = 0; i < 5; i++)
        oneself(own[i]);
    many();
    return end();
}
