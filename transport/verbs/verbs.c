/* verbs.c - the table of operations of the RDMA transport, and its opening and closing. */
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

static int verbs_open(void *blob, size_t *bytes)
{
    _Static_assert(sizeof(struct dz_verbs_blob) <= 128, "the blob fits");
    int rc = dz_device_open();
    if (rc)
        return rc;
    dz_v.eps = calloc((size_t)dz_boot.size, sizeof *dz_v.eps);
    rc = dz_v.eps ? dz_conn_open() : -ENOMEM;
    if (rc) {
        free(dz_v.eps);
        dz_mem_fini();
        dz_device_close();
        return rc;
    }
    memcpy(blob, &dz_v.blob, sizeof dz_v.blob);
    *bytes = sizeof dz_v.blob;
    return 0;
}

static int verbs_reach(struct dz_peer *peer, const void *blob, size_t bytes)
{
    struct dz_verbs_blob remote;
    if (bytes != sizeof remote)
        return -EPROTO;
    memcpy(&remote, blob, sizeof remote);
    if (peer->t || remote.ethernet != dz_v.blob.ethernet)
        return -EHOSTUNREACH; /* has a better transport, or is on another kind of network */
    peer->ep = dz_ep_create(peer, &remote);
    if (!peer->ep)
        return -ENOMEM;
    dz_v.eps[peer->rank] = peer->ep;
    peer->am_max = DZ_MSG_BYTES - 8 - sizeof(struct dz_am);
    return 0;
}

static void verbs_close(void)
{
    for (int r = 0; r < dz_boot.size; r++)
        if (dz_v.eps[r])
            dz_ep_destroy(dz_v.eps[r]);
    free(dz_v.eps);
    dz_conn_close();
    dz_chan_fini();
    dz_recv_fini();
    dz_mem_fini();
    dz_device_close();
}

static int verbs_poll(void)
{
    dz_conn_poll();
    return dz_ep_poll() + dz_chan_poll();
}

static int verbs_get(struct dz_peer *peer, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    (void)peer, (void)raddr, (void)v, (void)off, (void)len;
    return -ENOTSUP;
}

const struct dz_transport dz_transport_verbs = {
    .name = "verbs",
    .open = verbs_open,
    .close = verbs_close,
    .reach = verbs_reach,
    .am_post = dz_ep_am_post,
    .poll = verbs_poll,
    .get = verbs_get,
    .dead = dz_ep_dead,
    .flush = dz_ep_flush,
    .expose = dz_verbs_expose,
    .unexpose = dz_verbs_unexpose,
    .put = dz_verbs_put,
    .send_open = dz_verbs_send_open,
    .send_bind = dz_verbs_send_bind,
    .send_start = dz_verbs_send_start,
    .send_part = dz_verbs_send_part,
    .send_list = dz_verbs_send_list,
    .send_done = dz_verbs_send_done,
    .send_close = dz_verbs_send_close,
    .recv_open = dz_verbs_recv_open,
    .recv_start = dz_verbs_recv_start,
    .recv_ready = dz_verbs_recv_ready,
    .recv_part = dz_verbs_recv_part,
    .recv_run = dz_verbs_recv_run,
    .recv_must_take = dz_verbs_recv_must_take,
    .recv_done = dz_verbs_recv_done,
    .recv_stop = dz_verbs_recv_stop,
    .recv_close = dz_verbs_recv_close,
};
