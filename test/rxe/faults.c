/* faults.c - what goes wrong with RDMA, one way a run (fault-*.sh start it): the bytes are right in the end, or the calls
 * return an error that names the peer; never a hang (the script's time limit), a crash or wrong bytes.
 *
 *   faults MODE           in an empty directory
 *     reg       the device refuses to register user memory      right bytes, through memory of the library
 *     limits    a device of very short queues                   right bytes
 *     full      every third post finds the device's queue full  right bytes
 *     million   2^20 MPI_Pready without an MPI_Wait             right bytes
 *     post      a post fails for good                           an error
 *     wc        a completion reports an error                   an error
 *     rkey      a write carries a wrong key                     an error at both ends
 *     qp        rank 1's queue pair goes into error             an error at both ends
 *     kill      rank 1 is killed                                an error
 *     link      the link goes down                              an error at both ends
 *     plain     none                                            right bytes (under packet loss)
 *
 * Faults are put between the library and the device: its table of functions is the device's own, with one replaced. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "test/conform/check.h"
#include "transport/verbs/verbs.h"

enum { PARTS = 4, BYTES = 6000, ROUNDS = 40, FAULT_AT = 20 };
static unsigned char out[PARTS * BYTES], in[PARTS * BYTES];
static const char *mode;
static bool armed;
static int posts;

static int (*real_post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int (*real_poll)(struct ibv_cq *, int, struct ibv_wc *);
static __typeof__(dz_ibv.query_device) real_query;
static __typeof__(dz_ibv.reg_mr) real_reg;

static bool is(const char *name)
{
    return !strcmp(mode, name);
}

static int bad_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    posts++;
    if (qp->qp_type != IBV_QPT_RC || !armed)
        return real_post(qp, wr, bad);
    if (is("full") && posts % 3 == 0) {
        *bad = wr;
        return ENOMEM;
    }
    if (is("post") && rank == 0) { /* the other one notices by what it posts itself */
        *bad = wr;
        return EIO;
    }
    if (is("rkey") && rank == 0)
        for (struct ibv_send_wr *w = wr; w; w = w->next)
            if (w->opcode != IBV_WR_SEND)
                w->wr.rdma.rkey ^= 0x5500;
    return real_post(qp, wr, bad);
}

static int bad_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = real_poll(cq, n, wc);
    for (int i = 0; i < got && armed && rank == 0 && cq == dz_v.send_cq; i++)
        wc[i].status = IBV_WC_RETRY_EXC_ERR;
    return got;
}

static int short_limits(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    int rc = real_query(ctx, attr);
    attr->max_qp_wr = 80;
    attr->max_sge = 1;
    attr->max_srq_wr = 64;
    attr->max_cqe = 300;
    return rc;
}

/* The library's own blocks are whole pages. */
static struct ibv_mr *refuse(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    if (length % 4096 == 0)
        return real_reg(pd, addr, length, access);
    errno = EFAULT;
    return NULL;
}

static void put_between(void)
{
    if (dz_ibv_load()) {
        puts("skipped: no libibverbs");
        exit(77);
    }
    real_query = dz_ibv.query_device;
    real_reg = dz_ibv.reg_mr;
    if (is("limits"))
        dz_ibv.query_device = short_limits;
    if (is("reg"))
        dz_ibv.reg_mr = refuse;
}

static void put_behind(void)
{
    real_post = dz_v.ctx->ops.post_send;
    real_poll = dz_v.ctx->ops.poll_cq;
    dz_v.ctx->ops.post_send = bad_post;
    if (is("wc"))
        dz_v.ctx->ops.poll_cq = bad_poll;
}

static void strike(void)
{
    armed = true;
    struct dz_ep *ep = dz_peers[peer].ep;
    if (is("kill") && rank == 1)
        raise(SIGKILL);
    if (is("qp") && rank == 1) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
        EXPECT(!dz_ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE), "the queue pair does not go into error");
    }
    if (is("link") && rank == 0)
        EXPECT(!system("ip link set veth0 down"), "the link does not go down");
}

static bool named(int rc, const char *call)
{
    int class, n;
    char text[MPI_MAX_ERROR_STRING], who[32];
    MPI_Error_class(rc, &class);
    MPI_Error_string(rc, text, &n);
    snprintf(who, sizeof who, "rank %d", peer);
    EXPECT(class == MPI_ERR_PROC_FAILED, "%s: class %d: %s", call, class, text);
    EXPECT(strstr(text, who) != NULL, "%s does not name %s: %s", call, who, text);
    return true;
}

/* Both directions at once. True: an error has come. */
static bool round_trip(MPI_Request *s, MPI_Request *r, int e)
{
    int flag = 0, rc;
    fill(out, 0, sizeof out, rank, e);
    MPI_Start(r);
    MPI_Start(s);
    for (int p = 0; p < PARTS; p++)
        MPI_Pready(p, *s);
    if (e % 2) {
        while (!flag)
            if ((rc = MPI_Test(r, &flag, MPI_STATUS_IGNORE)))
                return named(rc, "MPI_Test");
    } else if ((rc = MPI_Wait(r, MPI_STATUS_IGNORE))) {
        return named(rc, "MPI_Wait of the receive");
    }
    long wrong = wrong_byte(in, 0, sizeof in, peer, e);
    EXPECT(wrong < 0, "round %d: byte %ld", e, wrong);
    if ((rc = MPI_Wait(s, MPI_STATUS_IGNORE)))
        return named(rc, "MPI_Wait of the send");
    int mine = e, theirs = -1;
    rc = MPI_Sendrecv(&mine, 1, MPI_INT, peer, 9, &theirs, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rc)
        return named(rc, "MPI_Sendrecv");
    EXPECT(theirs == e, "message %d in round %d", theirs, e);
    return false;
}

static void million(void)
{
    enum { N = 1 << 20 };
    MPI_Request s, r;
    uint64_t *a = malloc(N * sizeof *a), *b = calloc(N, sizeof *b), wrong = 0;
    MPI_Psend_init(a, N, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(b, N, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Start(&s);
    for (int i = 0; i < N; i++) {
        a[i] = (uint64_t)i * 3 + (uint64_t)rank;
        MPI_Pready(i, s);
    }
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        wrong += b[i] != (uint64_t)i * 3 + (uint64_t)peer;
    EXPECT(!wrong, "%llu partitions are wrong", (unsigned long long)wrong);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(a);
    free(b);
}

/* The launcher ends the job with the first rank that leaves so: the other shall have had its say. */
static void leave(void)
{
    char path[2][64];
    for (int r = 0; r < 2; r++)
        snprintf(path[r], sizeof path[r], "said.%d", r);
    FILE *f = fopen(path[rank], "w");
    if (f)
        fclose(f);
    while (!is("kill") && access(path[peer], F_OK))
        usleep(1000);
    _exit(failures != 0);
}

int main(int argc, char **argv)
{
    MPI_Request s, r;
    mode = argc > 1 ? argv[1] : "plain";
    bool ends = is("post") || is("wc") || is("rkey") || is("qp") || is("kill") || is("link"), error = false;
    put_between();
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    put_behind();
    if (is("million")) {
        million();
        return end();
    }
    MPI_Psend_init(out, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int e = 0; e < ROUNDS && !error; e++) {
        if (e == FAULT_AT)
            strike();
        error = round_trip(&s, &r, e);
    }
    EXPECT(error == ends, ends ? "no error has come" : "an error has come");
    if (is("reg"))
        EXPECT(atomic_load(&dz_counters[DZ_CTR_reg_refused]) > 0, "nothing was refused");
    if (ends) { /* the other may be gone: no MPI_Finalize */
        printf("rank %d: %d failures\n", rank, failures);
        fflush(stdout);
        leave();
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    return end();
}
