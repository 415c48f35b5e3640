/* A request that is freed before it matched or started leaves nothing behind; equal envelopes match by order of init; two
 * communicators made in one order and used in opposite orders stay apart.
 *
 * run: -n 2
 * run: -n 1 */
#include "check.h"

enum { N = 1000, LEN = 100 };
static unsigned char a[LEN], b[LEN];

static MPI_Request sender(unsigned char *buf, int tag, MPI_Comm comm)
{
    MPI_Request s;
    MPI_Psend_init(buf, 2, LEN / 2, MPI_BYTE, peer, tag, comm, MPI_INFO_NULL, &s);
    return s;
}
static MPI_Request receiver(unsigned char *buf, int tag, MPI_Comm comm)
{
    MPI_Request r;
    MPI_Precv_init(buf, 2, LEN / 2, MPI_BYTE, peer, tag, comm, MPI_INFO_NULL, &r);
    return r;
}

static void go(MPI_Request s, MPI_Request r, unsigned char *out, unsigned char *in, int round, const char *what)
{
    fill(out, 0, LEN, rank, round);
    memset(in, 0, LEN);
    MPI_Start(&r);
    MPI_Start(&s);
    MPI_Pready_range(0, 1, s);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    EXPECT(wrong_byte(in, 0, LEN, peer, round) < 0, "%s, round %d", what, round);
}

static void freed_before(int i)
{
    unsigned char unused[LEN];
    MPI_Request s = sender(unused, 1, MPI_COMM_WORLD), r;
    if (i % 3 == 0)
        MPI_Barrier(MPI_COMM_WORLD); /* the offer may be there, or on its way */
    MPI_Request_free(&s);
    EXPECT(s == MPI_REQUEST_NULL, "not freed");
    if (i % 2) {
        MPI_Request wasted = receiver(unused, 1, MPI_COMM_WORLD);
        MPI_Request_free(&wasted);
    }
    s = sender(a, 1, MPI_COMM_WORLD);
    r = receiver(b, 1, MPI_COMM_WORLD);
    go(s, r, a, b, i, "after freed ones");
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

static void in_order(void)
{
    enum { K = 5 };
    static unsigned char out[K][LEN], in[K][LEN];
    MPI_Request s[K], r[K];
    for (int k = 0; k < K; k++)
        s[k] = sender(out[k], 2, MPI_COMM_WORLD);
    for (int k = 0; k < K; k++)
        r[k] = receiver(in[k], 2, MPI_COMM_WORLD);
    for (int k = 0; k < K; k++)
        fill(out[k], 0, LEN, rank, 100 + k);
    MPI_Startall(K, r);
    for (int k = K - 1; k >= 0; k--) {
        MPI_Start(&s[k]);
        MPI_Pready_range(0, 1, s[k]);
    }
    MPI_Waitall(K, r, MPI_STATUSES_IGNORE);
    MPI_Waitall(K, s, MPI_STATUSES_IGNORE);
    for (int k = 0; k < K; k++) {
        EXPECT(wrong_byte(in[k], 0, LEN, peer, 100 + k) < 0, "receive %d got another's bytes", k);
        MPI_Request_free(&s[k]);
        MPI_Request_free(&r[k]);
    }
}

static void two_communicators(void)
{
    MPI_Comm c[2];
    unsigned char out[2][LEN], in[2][LEN];
    MPI_Request s[2], r[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &c[1]);
    for (int i = 0; i < 2; i++) { /* the ranks make theirs in opposite orders */
        int k = rank ? 1 - i : i;
        s[k] = sender(out[k], 3, c[k]);
        r[1 - k] = receiver(in[1 - k], 3, c[1 - k]);
    }
    for (int k = 0; k < 2; k++)
        go(s[k], r[k], out[k], in[k], 200 + k, "two communicators");
    for (int k = 0; k < 2; k++) {
        MPI_Comm_free(&c[k]); /* what hangs on it lives on */
        go(s[k], r[k], out[k], in[k], 210 + k, "freed communicator");
        MPI_Request_free(&s[k]);
        MPI_Request_free(&r[k]);
    }
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    for (int i = 0; i < N; i++)
        freed_before(i);
    in_order();
    two_communicators();
    return end();
}
