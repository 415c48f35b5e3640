/* Startall with sends, receives and different partition counts in any order; Waitany, Waitsome, Waitall, Testany, Testsome
 * and Testall over mixed kinds of requests.
 *
 * run: -n 2
 * run: -n 1 */
#include "check.h"

enum { PAIRS = 5, N = 2 * PAIRS + 4, LEN = 120 };
static unsigned char out[PAIRS][LEN], in[PAIRS][LEN], pout[LEN], pin[LEN], qin[LEN];
static MPI_Request q[N]; /* partitioned pairs, persistent send and receive, plain send and receive */

static void start(int round, int order)
{
    static const int parts[PAIRS] = {1, 2, 3, 8, 60};
    MPI_Request list[2 * PAIRS + 2];
    int n = 2 * PAIRS + 2;
    for (int i = 0; i < n; i++)
        list[i] = q[(i * (order * 2 + 1) + order) % n];
    for (int k = 0; k < PAIRS; k++)
        fill(out[k], 0, LEN, rank, round * 10 + k);
    fill(pout, 0, LEN, rank, round * 10 + 9);
    MPI_Startall(n, list);
    MPI_Irecv(qin, LEN, MPI_BYTE, peer, 51, MPI_COMM_WORLD, &q[N - 2]);
    MPI_Isend(pout, LEN, MPI_BYTE, peer, 51, MPI_COMM_WORLD, &q[N - 1]);
    for (int k = 0; k < PAIRS; k++)
        MPI_Pready_range(0, parts[k] - 1, q[2 * k]);
}

static void check_all(int round, const char *how)
{
    for (int k = 0; k < PAIRS; k++)
        EXPECT(wrong_byte(in[k], 0, LEN, peer, round * 10 + k) < 0, "%s, round %d: pair %d", how, round, k);
    EXPECT(wrong_byte(pin, 0, LEN, peer, round * 10 + 9) < 0, "%s, round %d: persistent", how, round);
    EXPECT(wrong_byte(qin, 0, LEN, peer, round * 10 + 9) < 0, "%s, round %d: plain", how, round);
    EXPECT(q[N - 1] == MPI_REQUEST_NULL && q[N - 2] == MPI_REQUEST_NULL, "%s: plain requests are left", how);
    memset(in, 0, sizeof in);
    memset(pin, 0, sizeof pin);
    memset(qin, 0, sizeof qin);
}

static void finish(int how)
{
    MPI_Status st[N];
    int index, flag, n, indices[N], left = N;
    switch (how) {
    case 0:
        MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
        break;
    case 1:
        while (left--) {
            MPI_Waitany(N, q, &index, &st[0]);
            EXPECT(index >= 0 && index < N, "index %d", index);
        }
        MPI_Waitany(N, q, &index, &st[0]);
        EXPECT(index == MPI_UNDEFINED, "nothing is active: %d", index);
        break;
    case 2:
        while (left > 0) {
            MPI_Waitsome(N, q, &n, indices, st);
            EXPECT(n > 0 && n <= left, "%d of %d", n, left);
            left -= n;
        }
        MPI_Waitsome(N, q, &n, indices, st);
        EXPECT(n == MPI_UNDEFINED, "nothing is active: %d", n);
        break;
    case 3:
        for (flag = 0; !flag;)
            MPI_Testall(N, q, &flag, st);
        break;
    case 4:
        while (left) {
            MPI_Testany(N, q, &index, &flag, &st[0]);
            left -= flag && index != MPI_UNDEFINED;
        }
        MPI_Testany(N, q, &index, &flag, &st[0]);
        EXPECT(flag && index == MPI_UNDEFINED, "nothing is active: %d %d", flag, index);
        break;
    default:
        while (left > 0) {
            MPI_Testsome(N, q, &n, indices, st);
            left -= n;
        }
    }
}

int main(void)
{
    static const int parts[PAIRS] = {1, 2, 3, 8, 60}, theirs[PAIRS] = {4, 1, 12, 8, 24};
    begin(MPI_THREAD_SINGLE);
    for (int k = 0; k < PAIRS; k++) {
        MPI_Psend_init(out[k], parts[k], LEN / parts[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, MPI_INFO_NULL, &q[2 * k]);
        MPI_Precv_init(in[k], theirs[k], LEN / theirs[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, MPI_INFO_NULL, &q[2 * k + 1]);
    }
    MPI_Send_init(pout, LEN, MPI_BYTE, peer, 50, MPI_COMM_WORLD, &q[2 * PAIRS]);
    MPI_Recv_init(pin, LEN, MPI_BYTE, peer, 50, MPI_COMM_WORLD, &q[2 * PAIRS + 1]);
    q[N - 1] = q[N - 2] = MPI_REQUEST_NULL;
    for (int round = 0; round < 60; round++) {
        /* steps that visit all twelve: odd and no multiple of three */
        static const int order[] = {0, 2, 3, 5};
        start(round, order[round % 4]);
        finish(round % 6);
        check_all(round, "mixed");
    }
    for (int i = 0; i < 2 * PAIRS + 2; i++)
        MPI_Request_free(&q[i]);
    return end();
}
