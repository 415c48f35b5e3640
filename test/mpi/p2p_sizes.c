/* p2p_sizes.c - point-to-point messages of every length around the thresholds, in every mode, expected and not.
 *
 * Each message's bytes depend on its number and position, so a byte from another message or place is seen.
 *
 * run: -n 2
 * run: -n 2 -e DENIZEN_EAGER=1024 -e DENIZEN_GET_MIN=65536
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_EAGER=4096 -e DENIZEN_POOL=16384
 * run: -n 2 -e DENIZEN_CHUNK=512 -e DENIZEN_POOL=0
 * run: -n 2 -e DENIZEN_FAULT=post=3,get -e DENIZEN_EAGER=1024 */
#include "coll.h"

static const int sizes[] = {0,    1,    7,     8,     15,    16,    17,     63,     64,     65,      407,     408,    409,
                            511,  512,  513,   1023,  1024,  1025,  4095,   4096,   4097,   8191,    8192,    8193,   65535,
                            65536, 65537, 262143, 262144, 262145, 1048576, 5000001, 16777217};
enum { N_SIZES = sizeof sizes / sizeof *sizes, BIG = 16777217 };
static unsigned char *out, *in;

static unsigned char byte_of(int number, int i)
{
    return (unsigned char)(number * 37 + i * 7 + (i >> 8) * 3 + (i >> 16));
}

static void fill(unsigned char *p, int n, int number)
{
    for (int i = 0; i < n; i++)
        p[i] = byte_of(number, i);
}

static int first_wrong(const unsigned char *p, int n, int number)
{
    for (int i = 0; i < n; i++)
        if (p[i] != byte_of(number, i))
            return i;
    return -1;
}

static void check(const MPI_Status *s, int n, int number, int source, int tag, const char *what)
{
    int got = -1, wrong = first_wrong(in, n, number);
    MPI_Get_count(s, MPI_BYTE, &got);
    EXPECT(got == n && s->MPI_SOURCE == source && s->MPI_TAG == tag, "%s, %d bytes: count %d, source %d, tag %d", what, n,
           got, s->MPI_SOURCE, s->MPI_TAG);
    EXPECT(wrong < 0, "%s, %d bytes: byte %d", what, n, wrong);
    EXPECT(in[n] == 0xee, "%s, %d bytes: written beyond the end", what, n);
}

typedef int (*send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
static const struct mode {
    const char *name;
    send_fn send;
} modes[] = {{"Send", MPI_Send}, {"Ssend", MPI_Ssend}, {"Bsend", MPI_Bsend}};

/* late: the message is there before its receive */
static void one_way(const struct mode *m, int n, int number, int late)
{
    MPI_Status s;
    if (world_rank == 0) {
        fill(out, n, number);
        if (!late)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        m->send(out, n, MPI_BYTE, 1, number, MPI_COMM_WORLD);
        memset(out, 0, (size_t)n); /* the send is over: its buffer is ours */
        return;
    }
    memset(in, 0xee, (size_t)n + 1);
    if (late) {
        MPI_Probe(0, number, MPI_COMM_WORLD, &s);
        MPI_Recv(in, n, MPI_BYTE, 0, number, MPI_COMM_WORLD, &s);
    } else {
        MPI_Request r;
        MPI_Irecv(in, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
        MPI_Wait(&r, &s);
    }
    check(&s, n, number, 0, number, m->name);
}

static void both_ways(int n, int number)
{
    MPI_Status s;
    fill(out, n, number + world_rank);
    memset(in, 0xee, (size_t)n + 1);
    MPI_Sendrecv(out, n, MPI_BYTE, !world_rank, 5, in, n, MPI_BYTE, !world_rank, 5, MPI_COMM_WORLD, &s);
    check(&s, n, number + !world_rank, !world_rank, 5, "Sendrecv");
    fill(in, n, number + world_rank);
    MPI_Sendrecv_replace(in, n, MPI_BYTE, !world_rank, 6, !world_rank, 6, MPI_COMM_WORLD, &s);
    check(&s, n, number + !world_rank, !world_rank, 6, "Sendrecv_replace");
}

static void persistent(int n, int number)
{
    MPI_Request r[2];
    MPI_Status s[2];
    MPI_Send_init(out, n, MPI_BYTE, !world_rank, 7, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in, n, MPI_BYTE, !world_rank, 7, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 3; i++) {
        fill(out, n, number + i + world_rank);
        memset(in, 0xee, (size_t)n + 1);
        MPI_Startall(2, r);
        MPI_Waitall(2, r, s);
        check(&s[1], n, number + i + !world_rank, !world_rank, 7, "persistent");
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void strided(int n, int number)
{
    MPI_Datatype every_other;
    MPI_Status s;
    int count = n / 2;
    MPI_Type_vector(count, 1, 2, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    fill(out, n, number);
    memset(in, 0xee, (size_t)n + 1);
    MPI_Sendrecv(out, 1, every_other, !world_rank, 8, in, 1, every_other, !world_rank, 8, MPI_COMM_WORLD, &s);
    int got, wrong = -1;
    MPI_Get_count(&s, MPI_BYTE, &got);
    for (int i = 0; i < 2 * count && wrong < 0; i++)
        if (in[i] != (i % 2 || i == 2 * count ? 0xee : byte_of(number, i)))
            wrong = i;
    EXPECT(got == count && wrong < 0, "vector of %d: %d came, byte %d is wrong", count, got, wrong);
    MPI_Type_free(&every_other);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 2);
    out = malloc(BIG + 1);
    in = malloc(BIG + 1);
    int attach = BIG + MPI_BSEND_OVERHEAD, detached;
    void *buffer = malloc((size_t)attach);
    if (!out || !in || !buffer)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < N_SIZES; i++) {
        for (int m = 0; m < 3; m++) {
            for (int late = 0; late < 2; late++) {
                MPI_Buffer_attach(buffer, attach);
                one_way(&modes[m], sizes[i], 100 + i, late);
                void *was = NULL;
                MPI_Buffer_detach(&was, &detached);
                EXPECT(was == buffer && detached == attach, "detached %p, %d", was, detached);
            }
        }
        both_ways(sizes[i], 300 + i);
        persistent(sizes[i], 500 + i);
        strided(sizes[i], 700 + i);
    }
    free(out);
    free(in);
    free(buffer);
    return end();
}
