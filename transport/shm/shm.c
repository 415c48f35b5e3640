/* shm.c - the shared-memory transport's table: who is reachable, who is alive.
 *
 * A peer is reachable when its host id is ours (same boot, pid and IPC namespace, same /dev/shm) and it runs as the
 * same user. Nothing is mapped before the first message to it. */
#define _GNU_SOURCE
#if defined __x86_64__
#include <cpuid.h>
#endif
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/shm/copy.h"
#include "transport/shm/shm.h"

struct dz_shm dz_shm;
bool dz_copy_string;

void dz_copy_init(void)
{
#if defined __x86_64__
    unsigned a, b, c, d;
    dz_copy_string = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 9 & 1; /* ERMS */
#endif
}

static int shm_open_(void *blob, size_t *bytes)
{
    struct dz_shm_blob *b = &dz_shm.blob;
    *b = (struct dz_shm_blob){.host_id = dz_boot.host_id, .pid = getpid(), .uid = (int32_t)geteuid()};
    dz_copy_init();
    int rc = dz_ring_open(b);
    if (rc)
        return rc;
#ifdef PR_SET_PTRACER
    /* under Yama's scope 1 only a declared tracer may read our memory; peers' pids are not known yet */
    if (dz_set.cma)
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
    memcpy(blob, b, sizeof *b);
    *bytes = sizeof *b;
    dz_shm.eps = calloc((size_t)dz_boot.size, sizeof *dz_shm.eps);
    if (!dz_shm.eps) {
        dz_ring_close();
        return -ENOMEM;
    }
    dz_shm.open = true;
    return 0;
}

static int shm_reach(struct dz_peer *peer, const void *blob, size_t bytes)
{
    struct dz_shm_blob b;
    if (bytes != sizeof b)
        return -ENOTSUP;
    memcpy(&b, blob, sizeof b);
    if (b.host_id != dz_shm.blob.host_id || b.uid != dz_shm.blob.uid)
        return -ENOTSUP;
    struct dz_shm_ep *ep = calloc(1, sizeof *ep);
    if (!ep)
        return -ENOMEM;
    ep->peer = peer;
    ep->blob = b;
    ep->pidfd = -1;
    ep->cma = -1;
    ep->slot = dz_shm.local;
    if (peer->rank == dz_boot.rank)
        dz_shm.self_slot = ep->slot;
    dz_shm.eps[dz_shm.local++] = ep;
    if (!peer->t) { /* else it only has its number here */
        peer->ep = ep;
        peer->am_max = (size_t)dz_set.chunk;
    }
    return 0;
}

static bool shm_dead(struct dz_peer *peer)
{
    struct dz_shm_ep *ep = peer->ep;
#ifdef SYS_pidfd_open
    if (ep->pidfd < 0) {
        ep->pidfd = (int)syscall(SYS_pidfd_open, ep->blob.pid, 0);
        if (ep->pidfd < 0)
            return errno == ESRCH;
    }
    struct pollfd p = {.fd = ep->pidfd, .events = POLLIN};
    return poll(&p, 1, 0) > 0; /* readable when the process has ended, reaped or not */
#else
    return kill(ep->blob.pid, 0) && errno == ESRCH;
#endif
}

static int shm_get(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    struct dz_shm_ep *ep = peer->ep;
    /* two copies through the cache, made by both at once, are quicker than the kernel's one */
    if (len < (size_t)dz_set.get_min)
        return -ENOTSUP;
    return dz_cma_usable(ep) ? dz_cma_read(ep, raddr, v, off, len) : -ENOTSUP;
}

static void shm_close(void)
{
    dz_ring_close();
    for (int i = 0; i < dz_shm.local; i++) {
        struct dz_shm_ep *ep = dz_shm.eps[i];
        dz_map_drop_all(&ep->maps);
        if (ep->pidfd >= 0)
            close(ep->pidfd);
        dz_ring_drop_pieces(ep);
        free(ep);
    }
    free(dz_shm.eps);
    memset(&dz_shm, 0, sizeof dz_shm);
}

static uint32_t send_list(struct dz_schan *s, const uint32_t *parts, uint32_t n, uint64_t epoch, int *rc)
{
    uint32_t done = 0;
    *rc = 0;
    while (done < n && !(*rc = dz_shm_send_part(s, parts[done], epoch)))
        done++;
    return done;
}

static void recv_stop(struct dz_rchan *r)
{
    (void)r; /* it writes only in recv_start and recv_done, which are not called any more */
}

static int expose(struct dz_peer *peer, const struct dz_view *v, size_t len, struct dz_landing *at, void **handle)
{
    (void)peer, (void)v, (void)len, (void)at, (void)handle;
    return -ENOTSUP; /* get does it */
}

static void unexpose(struct dz_peer *peer, void *handle)
{
    (void)peer, (void)handle;
}

static int put(struct dz_peer *peer, const struct dz_landing *at, const struct dz_view *v, size_t len, void *cookie)
{
    (void)peer, (void)at, (void)v, (void)len, (void)cookie;
    return -ENOTSUP;
}

static int flush(void)
{
    return 0; /* a peer's memory is written when an operation returns */
}

const struct dz_transport dz_transport_shm = {
    .name = "shm",
    .open = shm_open_,
    .close = shm_close,
    .reach = shm_reach,
    .am_post = dz_ring_post,
    .poll = dz_ring_poll,
    .get = shm_get,
    .dead = shm_dead,
    .send_open = dz_shm_send_open,
    .send_bind = dz_shm_send_bind,
    .send_start = dz_shm_send_start,
    .send_part = dz_shm_send_part,
    .send_list = send_list,
    .flush = flush,
    .expose = expose,
    .unexpose = unexpose,
    .put = put,
    .send_done = dz_shm_send_done,
    .send_close = dz_shm_send_close,
    .recv_open = dz_shm_recv_open,
    .recv_start = dz_shm_recv_start,
    .recv_ready = dz_shm_recv_ready,
    .recv_part = dz_shm_recv_part,
    .recv_run = dz_shm_recv_run,
    .recv_must_take = dz_shm_recv_must_take,
    .recv_done = dz_shm_recv_done,
    .recv_stop = recv_stop,
    .recv_close = dz_shm_recv_close,
};
