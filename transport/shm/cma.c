/* cma.c - one copy between two address spaces of this node, made by the kernel (process_vm_readv, process_vm_writev).
 *
 * Whether the kernel allows it (ptrace_scope, seccomp, user namespaces) is found by trying, once a peer: the probe
 * reads the nonce that the peer published. At start every process lets its peers do so under Yama's scope 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "transport/shm/shm.h"

#define CALL_MAX ((size_t)1 << 30) /* the kernel moves at most 2 GiB - 1 page a call */
#define BOUNCE ((size_t)256 << 10)

static int cma_errno(void)
{
    return errno == ESRCH ? -EHOSTDOWN : errno == EPERM || errno == ENOSYS ? -ENOTSUP : -errno;
}

static int move_all(pid_t pid, char *local, uint64_t raddr, size_t len, bool write)
{
    while (len) {
        size_t n = len < CALL_MAX ? len : CALL_MAX;
        struct iovec l = {local, n}, r = {(void *)(uintptr_t)raddr, n};
        ssize_t got = write ? process_vm_writev(pid, &l, 1, &r, 1, 0) : process_vm_readv(pid, &l, 1, &r, 1, 0);
        if (got < 0)
            return cma_errno();
        if (!got)
            return -EFAULT;
        local += got;
        raddr += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

bool dz_cma_usable(struct dz_shm_ep *ep)
{
    if (ep->cma < 0) {
        uint64_t nonce = 0;
        ep->cma = dz_set.cma && !move_all(ep->blob.pid, (char *)&nonce, ep->blob.probe, sizeof nonce, false) &&
                  nonce == ep->blob.nonce;
    }
    return ep->cma;
}

int dz_cma_read(struct dz_shm_ep *ep, uint64_t raddr, const struct dz_view *v, size_t off, size_t len)
{
    if (!v->layout)
        return move_all(ep->blob.pid, v->base + off, raddr, len, false);
    size_t room = len < BOUNCE ? len : BOUNCE;
    char *bounce = malloc(room ? room : 1);
    if (!bounce)
        return -ENOMEM;
    int rc = 0;
    while (!rc && len) {
        size_t n = len < room ? len : room;
        rc = move_all(ep->blob.pid, bounce, raddr, n, false);
        if (!rc)
            dz_view_write(v, off, n, bounce);
        raddr += n;
        off += n;
        len -= n;
    }
    free(bounce);
    return rc;
}

int dz_cma_write(struct dz_shm_ep *ep, uint64_t raddr, const void *src, size_t len)
{
    return move_all(ep->blob.pid, (char *)(uintptr_t)src, raddr, len, true);
}
