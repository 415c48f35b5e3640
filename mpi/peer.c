/* peer.c - messages that found no room: one FIFO a peer, so that nothing overtakes.
 *
 * Always: while a peer's queue is not empty, every message to it goes through the queue. Lock held throughout. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

static int waiting; /* queued entries of all peers: progress costs one test when there are none */

void dz_out_append(struct dz_peer *peer, struct dz_out *out)
{
    out->next = NULL;
    *peer->out_tail = out;
    peer->out_tail = &out->next;
    waiting++;
}

static int drain(struct dz_peer *peer)
{
    int n = 0;
    while (peer->out_head) {
        struct dz_out *o = peer->out_head;
        struct dz_out *next = o->next; /* push may free o */
        if (!o->push(o, peer))
            break;
        if (!(peer->out_head = next))
            peer->out_tail = &peer->out_head;
        waiting--;
        n++;
    }
    return n;
}

int dz_out_progress(void)
{
    int n = 0;
    for (int r = 0; waiting && r < dz_boot.size; r++)
        n += drain(&dz_peers[r]);
    return n;
}

/* All ranks have come to MPI_Finalize: what still waits here answers what came last, and nobody reads it any more. */
void dz_out_fini(void)
{
    for (int r = 0; waiting && r < dz_boot.size; r++) {
        bool gone = dz_peers[r].gone;
        dz_peers[r].gone = true;
        drain(&dz_peers[r]);
        dz_peers[r].gone = gone;
    }
}

struct held {
    struct dz_out out;
    struct dz_am am;
    size_t bytes;
    char payload[];
};

static bool push_held(struct dz_out *out, struct dz_peer *peer)
{
    struct held *h = (struct held *)out;
    struct dz_view v = {.base = h->payload, .bytes = h->bytes};
    if (!peer->gone && peer->t->am_post(peer, &h->am, &v, 0, h->bytes) == -EAGAIN)
        return false;
    free(h); /* sent, or its peer is gone and nobody will miss it */
    return true;
}

int dz_post(struct dz_peer *peer, const struct dz_am *am, const void *payload, size_t bytes)
{
    if (peer->gone)
        return -EHOSTDOWN;
    if (!peer->t)
        return -EHOSTUNREACH;
    if (!peer->out_head) {
        struct dz_view v = {.base = (char *)payload, .bytes = bytes};
        int rc = peer->t->am_post(peer, am, &v, 0, bytes);
        if (rc != -EAGAIN)
            return rc;
    }
    dz_count(am_full);
    struct held *h = malloc(sizeof *h + bytes);
    if (!h)
        return -ENOMEM;
    *h = (struct held){.out.push = push_held, .am = *am, .bytes = bytes};
    if (bytes)
        memcpy(h->payload, payload, bytes);
    dz_out_append(peer, &h->out);
    return 0;
}
