/* bsend.c - the buffer of buffered sends (MPI 4.0, section 3.6).
 *
 * The attached buffer is an allowance: a buffered send keeps its bytes in memory of its own, and counts them against
 * the size that was attached, with MPI_BSEND_OVERHEAD each, as the standard lets a program compute it.
 *
 * Always: used is the sum over the buffered sends that are not complete. Detaching waits until it is 0. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/p2p.h"

static void *attached;
static int attached_size;
static uint64_t used;
static int pending;

int dz_bsend_copy(struct dz_p2p *p)
{
    uint64_t bytes = p->view.bytes, need = bytes + MPI_BSEND_OVERHEAD;
    if (!attached || need > (uint64_t)attached_size || used > (uint64_t)attached_size - need)
        return -ENOBUFS;
    p->copy = malloc(bytes ? bytes : 1);
    if (!p->copy)
        return -ENOMEM;
    if (bytes)
        dz_view_read(&p->view, 0, bytes, p->copy);
    p->view = (struct dz_view){.base = p->copy, .bytes = bytes};
    used += need;
    pending++;
    return 0;
}

void dz_bsend_done(struct dz_p2p *p)
{
    if (!p->copy)
        return;
    used -= p->view.bytes + MPI_BSEND_OVERHEAD;
    pending--;
    free(p->copy);
    p->copy = NULL;
}

int PMPI_Buffer_attach(void *buffer, int size)
{
    DZ_ENTER("MPI_Buffer_attach");
    if (size < 0)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Buffer_attach", "size is %d", size);
    int rc = dz_check_ptr("MPI_Buffer_attach", NULL, buffer, "buffer");
    if (rc)
        return rc;
    dz_lock();
    bool twice = attached;
    if (!twice) {
        attached = buffer;
        attached_size = size;
    }
    dz_unlock();
    return twice ? dz_raise(NULL, MPI_ERR_BUFFER, "MPI_Buffer_attach", "a buffer is attached already") : MPI_SUCCESS;
}
DZ_WEAK(PI_Buffer_attach)

static bool all_sent(void *unused)
{
    (void)unused;
    dz_lock();
    bool none = !pending;
    dz_unlock();
    return none;
}

int PMPI_Buffer_detach(void *buffer_addr, int *size)
{
    DZ_ENTER("MPI_Buffer_detach");
    int rc = dz_check_ptr("MPI_Buffer_detach", NULL, buffer_addr, "buffer_addr");
    if (!rc)
        rc = dz_check_ptr("MPI_Buffer_detach", NULL, size, "size");
    if (rc)
        return rc;
    if (!attached)
        return dz_raise(NULL, MPI_ERR_BUFFER, "MPI_Buffer_detach", "no buffer is attached");
    dz_wait_until(all_sent, NULL);
    dz_lock();
    *(void **)buffer_addr = attached;
    *size = attached_size;
    attached = NULL;
    dz_unlock();
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Buffer_detach)
