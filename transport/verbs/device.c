/* device.c - which device, port and GID, and the objects that a process has once.
 *
 * The first device in libibverbs' order with a port that is up; DENIZEN_IB_DEVICE, DENIZEN_IB_PORT and
 * DENIZEN_IB_GID_INDEX narrow that. On Ethernet a GID of RoCE v2 that routes (an IPv4 address, then an IPv6 one that is
 * not link-local) is taken before others. No such device: the transport is not there. A device that is named and not
 * usable is an error. Every limit is the smaller of ours and the device's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

struct dz_verbs dz_v;

enum { SQ_DEPTH = 1024, CQ_DEPTH = 16384, SRQ_DEPTH = 32768, INLINE_WANTED = 512 };

static bool has_type(const char *device, int port, int index, const char *type)
{
    char path[256], text[32];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n >= (ssize_t)strlen(type) && !memcmp(text, type, strlen(type));
}

/* How well a GID of an Ethernet port serves; 0: not at all. */
static int rank_gid(const char *device, int port, int index, const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    if (!memcmp(gid, &zero, sizeof zero))
        return 0;
    int rank = !memcmp(gid->raw, v4, sizeof v4) ? 3 : gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? 1 : 2;
    return rank + (has_type(device, port, index, "RoCE v2") ? 3 : 0);
}

static int choose_gid(struct ibv_context *ctx, const char *device, int port, const struct ibv_port_attr *attr,
                      union ibv_gid *best)
{
    int index = (int)dz_set.ib_gid_index, top = 0, at = -1;
    if (index >= 0)
        return index < attr->gid_tbl_len && !dz_ibv.query_gid(ctx, (uint8_t)port, index, best) ? index : -1;
    if (attr->link_layer != IBV_LINK_LAYER_ETHERNET)
        return dz_ibv.query_gid(ctx, (uint8_t)port, 0, best) ? -1 : 0;
    for (int i = 0; i < attr->gid_tbl_len; i++) {
        union ibv_gid gid;
        if (dz_ibv.query_gid(ctx, (uint8_t)port, i, &gid))
            continue;
        int rank = rank_gid(device, port, i, &gid);
        if (rank > top) {
            top = rank;
            at = i;
            *best = gid;
        }
    }
    return at;
}

/* Takes the first port of ctx that serves. */
static bool choose_port(struct ibv_context *ctx, const char *device, int ports)
{
    for (int port = 1; port <= ports; port++) {
        struct ibv_port_attr attr;
        if (dz_set.ib_port && dz_set.ib_port != port)
            continue;
        memset(&attr, 0, sizeof attr); /* the plain call fills in less than the structure has */
        if (dz_ibv.query_port(ctx, (uint8_t)port, (void *)&attr) || attr.state != IBV_PORT_ACTIVE)
            continue;
        int index = choose_gid(ctx, device, port, &attr, &dz_v.blob.gid);
        if (index < 0)
            continue;
        dz_v.port = port;
        dz_v.gid_index = index;
        dz_v.port_attr = attr;
        return true;
    }
    return false;
}

static int refuse(const char *why)
{
    snprintf(dz_boot_error, sizeof dz_boot_error, "DENIZEN_IB_DEVICE='%s', DENIZEN_IB_PORT=%ld, "
             "DENIZEN_IB_GID_INDEX=%ld: %s", dz_set.ib_device, dz_set.ib_port, dz_set.ib_gid_index, why);
    return -EINVAL;
}

static int choose_device(struct ibv_device_attr *attr)
{
    struct ibv_device **list = dz_ibv.get_device_list(NULL);
    bool named = *dz_set.ib_device, seen = false;
    for (int i = 0; list && list[i] && !dz_v.ctx; i++) {
        const char *name = dz_ibv.get_device_name(list[i]);
        if (named && strcmp(name, dz_set.ib_device) != 0)
            continue;
        seen = true;
        struct ibv_context *ctx = dz_ibv.open_device(list[i]);
        if (!ctx)
            continue;
        if (!dz_ibv.query_device(ctx, attr) && choose_port(ctx, name, attr->phys_port_cnt))
            dz_v.ctx = ctx;
        else
            dz_ibv.close_device(ctx);
    }
    if (list)
        dz_ibv.free_device_list(list);
    if (dz_v.ctx)
        return 0;
    if (named || dz_set.ib_port || dz_set.ib_gid_index >= 0)
        return refuse(!seen ? "no such device" : "no port that is up and has that GID");
    return -ENODEV;
}

static uint32_t at_most(uint32_t ours, int devices)
{
    return devices > 0 && (uint32_t)devices < ours ? (uint32_t)devices : ours;
}

/* The inline size is not in the device's attributes: it is what a queue pair is granted. */
static void probe_inline(void)
{
    for (uint32_t want = INLINE_WANTED; want >= 8; want /= 2) {
        struct ibv_qp_init_attr init = {.send_cq = dz_v.send_cq, .recv_cq = dz_v.recv_cq, .srq = dz_v.srq,
                                        .qp_type = IBV_QPT_RC,
                                        .cap = {.max_send_wr = 16, .max_send_sge = 1, .max_inline_data = want}};
        struct ibv_qp *qp = dz_ibv.create_qp(dz_v.pd, &init);
        if (!qp)
            continue;
        dz_v.max_inline = init.cap.max_inline_data < INLINE_WANTED ? init.cap.max_inline_data : INLINE_WANTED;
        dz_ibv.destroy_qp(qp);
        return;
    }
}

int dz_device_open(void)
{
    struct ibv_device_attr attr;
    if (strcmp(dz_set.ib_notice, "imm") != 0 && strcmp(dz_set.ib_notice, "word") != 0) {
        snprintf(dz_boot_error, sizeof dz_boot_error, "DENIZEN_IB_NOTICE='%s' is neither imm nor word", dz_set.ib_notice);
        return -EINVAL;
    }
    int rc = dz_ibv_load();
    if (!rc)
        rc = choose_device(&attr);
    if (rc)
        return rc;
    dz_v.sq_depth = at_most(SQ_DEPTH, attr.max_qp_wr);
    dz_v.srq_max = at_most(SRQ_DEPTH, attr.max_srq_wr);
    dz_v.max_sge = at_most(16, attr.max_sge);
    dz_v.reg_max = attr.max_mr_size ? attr.max_mr_size : UINT64_MAX;
    uint32_t cq = at_most(CQ_DEPTH, attr.max_cqe);
    dz_v.signaled_max = (int64_t)cq - 64; /* errors complete unsignaled requests too, but then nothing matters */
    rc = -ENOMEM;
    if (!(dz_v.pd = dz_ibv.alloc_pd(dz_v.ctx)))
        goto close_device;
    if (!(dz_v.send_cq = dz_ibv.create_cq(dz_v.ctx, (int)cq, NULL, NULL, 0)))
        goto dealloc_pd;
    if (!(dz_v.recv_cq = dz_ibv.create_cq(dz_v.ctx, (int)at_most(SRQ_DEPTH + 256, attr.max_cqe), NULL, NULL, 0)))
        goto destroy_send_cq;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = dz_v.srq_max, .max_sge = 1}};
    while (!(dz_v.srq = dz_ibv.create_srq(dz_v.pd, &srq)) && (srq.attr.max_wr /= 2) >= DZ_CREDITS)
        ;
    if (!dz_v.srq)
        goto destroy_recv_cq;
    dz_v.srq_max = srq.attr.max_wr;
    probe_inline();
    dz_v.blob.lid = dz_v.port_attr.lid;
    dz_v.blob.mtu = (uint8_t)dz_v.port_attr.active_mtu;
    dz_v.blob.ethernet = dz_v.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    return 0;
destroy_recv_cq:
    dz_ibv.destroy_cq(dz_v.recv_cq);
destroy_send_cq:
    dz_ibv.destroy_cq(dz_v.send_cq);
dealloc_pd:
    dz_ibv.dealloc_pd(dz_v.pd);
close_device:
    dz_ibv.close_device(dz_v.ctx);
    dz_v.ctx = NULL;
    return rc;
}

void dz_device_close(void)
{
    dz_ibv.destroy_srq(dz_v.srq);
    dz_ibv.destroy_cq(dz_v.recv_cq);
    dz_ibv.destroy_cq(dz_v.send_cq);
    dz_ibv.dealloc_pd(dz_v.pd);
    dz_ibv.close_device(dz_v.ctx);
    memset(&dz_v, 0, sizeof dz_v);
}
