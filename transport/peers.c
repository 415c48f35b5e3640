/* peers.c - one record a rank, and the choice of its transport.
 *
 * Transports are tried in the order of the table; the first that is allowed by DENIZEN_TRANSPORT and reaches a peer
 * serves it. The boot blob of a process is a struct ident and a sequence of [ index of the transport | length | its
 * bytes ]. A peer that nothing reaches keeps t == NULL: an error when it is first used, not at start. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/transport.h"

static const struct dz_transport *const table[] = {
    &dz_transport_self, &dz_transport_shm,
#if DZ_HAVE_VERBS
    &dz_transport_verbs,
#endif
};
enum { N = sizeof table / sizeof *table, BLOB_BYTES = 64 + N * 160 };
static bool is_open[N];
static const struct dz_transport *open_list[N];
static int n_open;

struct dz_peer *dz_peers;
int dz_local_ranks = 1;
bool dz_crowded;
_Atomic uint64_t dz_counters[DZ_CTR_COUNT];

struct entry {
    uint32_t index, bytes;
};

/* Who a process is and which CPUs it may use. Two processes with one first CPU and one count share one mask, as far as
 * launchers bind; that is all that crowding needs to know. */
struct ident {
    uint64_t host_id;
    int32_t cpu_first, cpu_count;
};

static struct ident own_ident(void)
{
    struct ident id = {.host_id = dz_boot.host_id, .cpu_first = 0, .cpu_count = 1};
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set)) {
        id.cpu_count = CPU_COUNT(&set);
        while (!CPU_ISSET(id.cpu_first, &set))
            id.cpu_first++;
    }
    return id;
}

/* Is name one of the comma-separated words of list? */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p;) {
        size_t w = strcspn(p, ",");
        if (w == n && !memcmp(p, name, n))
            return true;
        p += w + (p[w] == ',');
    }
    return false;
}

static int check_setting(void)
{
    for (const char *p = dz_set.transport; *p;) {
        size_t w = strcspn(p, ",");
        bool known = w == 4 && !memcmp(p, "auto", 4);
        for (int i = 0; i < N; i++)
            known |= strlen(table[i]->name) == w && !memcmp(p, table[i]->name, w);
        if (!known) {
            snprintf(dz_boot_error, sizeof dz_boot_error, "DENIZEN_TRANSPORT: no transport is named '%.*s'", (int)w, p);
            return -EINVAL;
        }
        p += w + (p[w] == ',');
    }
    return 0;
}

static int open_all(char *blob, size_t *used)
{
    bool all = listed(dz_set.transport, "auto") || !*dz_set.transport;
    for (uint32_t i = 0; i < N; i++) {
        if (!all && i && !listed(dz_set.transport, table[i]->name))
            continue; /* self is always there: nothing else reaches oneself */
        struct entry e = {i, 0};
        size_t bytes = 0;
        int rc = table[i]->open(blob + *used + sizeof e, &bytes);
        if (rc == -ENODEV && !(i && listed(dz_set.transport, table[i]->name)))
            continue;
        if (rc) {
            if (!dz_boot_error[0]) /* else it has said more */
                snprintf(dz_boot_error, sizeof dz_boot_error, "transport %s does not open: %s", table[i]->name,
                         strerror(-rc));
            return rc;
        }
        e.bytes = (uint32_t)bytes;
        memcpy(blob + *used, &e, sizeof e);
        *used += sizeof e + bytes;
        is_open[i] = true;
        open_list[n_open++] = table[i];
    }
    return 0;
}

static void choose(struct dz_peer *peer, const char *blob, size_t bytes)
{
    struct entry e;
    for (size_t at = sizeof(struct ident); at + sizeof e <= bytes; at += sizeof e + e.bytes) {
        memcpy(&e, blob + at, sizeof e);
        if (e.bytes > bytes - at - sizeof e)
            return;
        if (e.index >= N || !is_open[e.index])
            continue;
        /* every transport hears of every peer it could serve: shm numbers the ranks of its node that way */
        int rc = table[e.index]->reach(peer, blob + at + sizeof e, e.bytes);
        if (!rc && !peer->t)
            peer->t = dz_fault_wrap(table[e.index]);
    }
}

int dz_transport_init(void)
{
    char blob[BLOB_BYTES];
    struct ident self = own_ident();
    size_t used = sizeof self;
    memcpy(blob, &self, sizeof self);
    int rc = check_setting();
    if (!rc)
        rc = dz_fault_init();
    if (!rc)
        rc = open_all(blob, &used);
    if (rc)
        return rc;
    void **all;
    size_t *sizes;
    rc = dz_boot_exchange(blob, used, &all, &sizes);
    if (rc)
        return rc;
    dz_peers = calloc((size_t)dz_boot.size, sizeof *dz_peers);
    if (!dz_peers)
        return -ENOMEM;
    int sharers = 0;
    dz_local_ranks = 0;
    for (int r = 0; r < dz_boot.size; r++) {
        struct ident id = {0};
        if (sizes[r] >= sizeof id)
            memcpy(&id, all[r], sizeof id);
        dz_peers[r].rank = r;
        dz_peers[r].host_id = id.host_id;
        dz_peers[r].out_tail = &dz_peers[r].out_head;
        dz_local_ranks += id.host_id == self.host_id;
        sharers += !memcmp(&id, &self, sizeof id);
        choose(&dz_peers[r], all[r], sizes[r]);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    dz_crowded = sharers > self.cpu_count || dz_local_ranks > online;
    return 0;
}

void dz_transport_fini(void)
{
    while (n_open)
        open_list[--n_open]->close();
    memset(is_open, 0, sizeof is_open);
    dz_fault_fini();
    free(dz_peers);
    dz_peers = NULL;
}

int dz_transport_flush(void)
{
    int rc = 0;
    for (int i = 0; i < n_open && !rc; i++)
        rc = open_list[i]->flush();
    return rc;
}

int dz_transport_poll(void)
{
    int n = 0;
    for (int i = 0; i < n_open; i++)
        n += open_list[i]->poll();
    return n;
}
