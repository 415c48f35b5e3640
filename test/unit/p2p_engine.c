/* p2p_engine.c - the point-to-point engine over a transport that is hard to please, against a model.
 *
 * One process sends to itself. Its transport takes 24 to 300 bytes a message, has no room every other time, and lets a
 * receiver fetch only sometimes. Random sequences of sends (standard, synchronous, buffered, persistent; with and
 * without gaps), receives (named tags and any, long enough and not, matched probes, persistent), cancels and tests.
 *
 * The model: with one sender there is one right answer, whenever things arrive. In order of sending, each message
 * belongs to the first receive, in order of posting, that fits it and has none. Cancelled receives count as never
 * posted. Every byte of every receive buffer is compared, those behind the message too. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/p2p.h"

enum { OPS = 120, MAX_BYTES = 3000, ROUNDS = 1500 };

static struct dz_transport picky;
static bool patient; /* no more refusals */

static int picky_post(struct dz_peer *peer, const struct dz_am *am, const struct dz_view *v, size_t off, size_t len)
{
    if (!patient && rand() % 2)
        return -EAGAIN;
    if (len > peer->am_max) {
        printf("a message of %zu bytes, %zu allowed\n", len, peer->am_max);
        exit(1);
    }
    return dz_transport_self.am_post(peer, am, v, off, len);
}

static int picky_get(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    static const int answers[] = {0, -ENOTSUP, -EFAULT};
    int rc = answers[rand() % 3];
    return rc ? rc : dz_transport_self.get(peer, raddr, v, off, len);
}

struct message {
    int tag, bytes, to; /* to: the receive it belongs to */
    bool gaps, persistent, synchronous;
    MPI_Request request;
    unsigned char *buf;
};
struct receive {
    int tag, room, from;
    bool gaps, persistent, cancelled;
    MPI_Request request;
    unsigned char *buf;
};
static struct message sent[OPS];
static struct receive posted[2 * OPS];
static int n_sent, n_posted;
static int seed, step;

#define CHECK(cond, ...)                                                                                             \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            printf("line %d, seed %d, step %d: %s: ", __LINE__, seed, step, #cond);                                  \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static MPI_Datatype pairs[MAX_BYTES + 1]; /* of n bytes, each followed by a gap of one */

static MPI_Datatype type_of(bool gaps, int bytes, int *count)
{
    *count = gaps ? 1 : bytes;
    if (!gaps)
        return MPI_BYTE;
    if (pairs[bytes] == MPI_DATATYPE_NULL) {
        MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &pairs[bytes]);
        MPI_Type_commit(&pairs[bytes]);
    }
    return pairs[bytes];
}

static unsigned char byte_of(int message, int i)
{
    return (unsigned char)(message * 53 + i * 11 + (i >> 7) + 1);
}

static int some_bytes(void)
{
    static const int limits[] = {1, 17, 70, 400, MAX_BYTES};
    return rand() % limits[rand() % 5];
}

static void do_send(void)
{
    struct message *m = &sent[n_sent];
    int count, mode = rand() % 5, bytes = some_bytes();
    *m = (struct message){.tag = rand() % 3, .bytes = bytes, .to = -1, .gaps = bytes && rand() % 4 == 0};
    MPI_Datatype type = type_of(m->gaps, bytes, &count);
    m->buf = malloc(2 * (size_t)bytes + 1);
    for (int i = 0; i < bytes; i++)
        m->buf[m->gaps ? 2 * i : i] = byte_of(n_sent, i);
    m->synchronous = mode == 0;
    if (mode == 0)
        MPI_Issend(m->buf, count, type, 0, m->tag, MPI_COMM_WORLD, &m->request);
    else if (mode == 1)
        MPI_Ibsend(m->buf, count, type, 0, m->tag, MPI_COMM_WORLD, &m->request);
    else if (mode == 2) {
        m->persistent = true;
        MPI_Send_init(m->buf, count, type, 0, m->tag, MPI_COMM_WORLD, &m->request);
        MPI_Start(&m->request);
    } else
        MPI_Isend(m->buf, count, type, 0, m->tag, MPI_COMM_WORLD, &m->request);
    n_sent++;
}

static void do_receive(int tag, int room, int how)
{
    struct receive *r = &posted[n_posted];
    int count, flag;
    *r = (struct receive){.tag = tag, .room = room, .from = -1, .gaps = room && rand() % 4 == 0};
    MPI_Datatype type = type_of(r->gaps, room, &count);
    int source = rand() % 2 ? 0 : MPI_ANY_SOURCE;
    MPI_Message message;
    if (how == 0) {
        MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        if (!flag)
            return;
    }
    r->buf = malloc(2 * (size_t)room + 1);
    memset(r->buf, 0, 2 * (size_t)room + 1);
    if (how == 0)
        MPI_Imrecv(r->buf, count, type, &message, &r->request);
    else if (how == 1) {
        r->persistent = true;
        MPI_Recv_init(r->buf, count, type, source, tag, MPI_COMM_WORLD, &r->request);
        MPI_Start(&r->request);
    } else
        MPI_Irecv(r->buf, count, type, source, tag, MPI_COMM_WORLD, &r->request);
    n_posted++;
}

static void do_cancel(void)
{
    if (!n_posted)
        return;
    struct receive *r = &posted[rand() % n_posted];
    MPI_Status s;
    int flag, done;
    if (r->cancelled)
        return;
    MPI_Request_get_status(r->request, &done, &s);
    if (done)
        return;
    MPI_Cancel(&r->request);
    MPI_Request_get_status(r->request, &done, &s);
    if (!done)
        return; /* matched: it will come */
    MPI_Test_cancelled(&s, &flag);
    r->cancelled = flag;
    CHECK(!flag || r->buf[0] == 0, "a cancelled receive has bytes");
}

static void do_test(void)
{
    int flag;
    MPI_Status s;
    if (n_sent)
        MPI_Request_get_status(sent[rand() % n_sent].request, &flag, &s);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s);
}

static void match_model(void)
{
    for (int m = 0; m < n_sent; m++)
        for (int r = 0; r < n_posted && sent[m].to < 0; r++)
            if (posted[r].from < 0 && !posted[r].cancelled &&
                (posted[r].tag == sent[m].tag || posted[r].tag == MPI_ANY_TAG)) {
                posted[r].from = m;
                sent[m].to = r;
            }
}

static void check_received(int i)
{
    struct receive *r = &posted[i];
    MPI_Status s = {.MPI_ERROR = 12345};
    int rc, n, flag;
    if (r->from < 0) { /* nothing for it: it still waits */
        rc = MPI_Request_get_status(r->request, &flag, &s);
        CHECK(rc == MPI_SUCCESS && flag == r->cancelled, "receive %d has nothing to wait for, but is complete", i);
        MPI_Cancel(&r->request);
        MPI_Wait(&r->request, &s);
        MPI_Test_cancelled(&s, &flag);
        CHECK(flag, "receive %d is not cancelled", i);
    } else {
        struct message *m = &sent[r->from];
        int want = m->bytes < r->room ? m->bytes : r->room;
        rc = MPI_Wait(&r->request, &s);
        CHECK(rc == (m->bytes > r->room ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "receive %d returns %d", i, rc);
        MPI_Get_count(&s, MPI_BYTE, &n);
        CHECK(s.MPI_SOURCE == 0 && s.MPI_TAG == m->tag && n == want && s.MPI_ERROR == 12345,
              "receive %d: tag %d of %d, %d bytes of %d", i, s.MPI_TAG, m->tag, n, want);
        for (int k = 0; k < want; k++)
            CHECK(r->buf[r->gaps ? 2 * k : k] == byte_of(r->from, k), "receive %d of message %d: byte %d of %d", i, r->from, k,
                  want);
        for (int k = 0; k < (r->gaps ? want : 0); k++)
            CHECK(r->buf[2 * k + 1] == 0, "receive %d: gap %d", i, k);
        for (int k = r->gaps ? 2 * want : want; k <= 2 * r->room; k++)
            CHECK(r->buf[k] == 0, "receive %d: byte %d behind the message", i, k);
    }
    if (r->persistent)
        MPI_Request_free(&r->request);
    free(r->buf);
}

static void one_sequence(void)
{
    static const size_t am[] = {sizeof(struct dz_cts), 64, 300};
    static const long eager[] = {0, 100, 1000, 1 << 20};
    srand((unsigned)seed);
    dz_peers[0].am_max = am[rand() % 3];
    dz_set.eager = eager[rand() % 4];
    n_sent = n_posted = 0;
    patient = false;
    for (step = 0; step < OPS; step++) {
        switch (rand() % 8) {
        case 0: case 1: case 2: do_send(); break;
        case 3: case 4: case 5: do_receive(rand() % 4 ? rand() % 3 : MPI_ANY_TAG, some_bytes(), rand() % 5); break;
        case 6: do_cancel(); break;
        default: do_test();
        }
    }
    match_model();
    for (int m = 0; m < n_sent; m++) {
        int done;
        MPI_Request_get_status(sent[m].request, &done, MPI_STATUS_IGNORE);
        CHECK(!done || !sent[m].synchronous || sent[m].to >= 0, "message %d is synchronous, not received, but complete", m);
    }
    for (int m = 0, n = n_sent; m < n; m++)
        if (sent[m].to < 0)
            do_receive(MPI_ANY_TAG, MAX_BYTES, 2);
    match_model();
    for (int m = 0; m < n_sent; m++) {
        MPI_Wait(&sent[m].request, MPI_STATUS_IGNORE);
        if (sent[m].persistent)
            MPI_Request_free(&sent[m].request);
        memset(sent[m].buf, 0xff, 2 * (size_t)sent[m].bytes + 1); /* the send is over: its buffer is ours */
        free(sent[m].buf);
    }
    for (int r = 0; r < n_posted; r++)
        check_received(r);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    picky = dz_transport_self;
    picky.am_post = picky_post;
    picky.get = picky_get;
    dz_peers[0].t = &picky;
    for (int i = 0; i <= MAX_BYTES; i++)
        pairs[i] = MPI_DATATYPE_NULL;
    static char attached[OPS * (MAX_BYTES + MPI_BSEND_OVERHEAD)];
    MPI_Buffer_attach(attached, sizeof attached);
    for (seed = 1; seed <= ROUNDS; seed++)
        one_sequence();
    void *at;
    int size;
    MPI_Buffer_detach(&at, &size);
    for (int i = 0; i <= MAX_BYTES; i++)
        if (pairs[i] != MPI_DATATYPE_NULL)
            MPI_Type_free(&pairs[i]);
    printf("%d sequences of %d operations, %llu messages went eagerly, %llu by rendezvous, %llu waited for room\n", ROUNDS, OPS,
           (unsigned long long)dz_counters[DZ_CTR_eager], (unsigned long long)dz_counters[DZ_CTR_rendezvous],
           (unsigned long long)dz_counters[DZ_CTR_am_full]);
    patient = true;
    MPI_Finalize();
    return 0;
}
