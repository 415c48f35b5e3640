/* mem.c - registered memory.
 *
 * The library's own: small pieces (tokens) are cells of shared blocks, anything else has a registration of its own.
 *
 * The user's: a registration lives exactly as long as some request that covers its range (a partitioned request from
 * its init to its free, a rendezvous message while it travels), and is shared by those that use the same range at the
 * same time. Nothing is kept beyond that. MPI forbids to free or to remap memory under a live request, so a
 * registration can never be stale, and no hook into malloc or munmap, no kernel notifier and no checksum is needed to
 * make it so; what a cache would save, channels do not pay twice anyway. All with the engine's lock. */
#include <errno.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

enum { CELL = 64, CELLS = 256, BUCKETS = 256 };

struct block {
    struct block *next;
    struct ibv_mr *mr;
    char *base;
    unsigned free;
    bool used[CELLS];
};
static struct block *blocks;

struct user {
    struct user *next;
    uint64_t base, bytes;
    int access;
    unsigned refs;
    struct ibv_mr *mr;
};
static struct user *users[BUCKETS];

enum { OWN_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static int reg(void *base, size_t bytes, int access, struct ibv_mr **mr)
{
    if (bytes > dz_v.reg_max)
        return -ENOTSUP;
    *mr = dz_ibv.reg_mr(dz_v.pd, base, bytes, access);
    return *mr ? 0 : errno == ENOMEM ? -ENOMEM : -ENOTSUP;
}

static int own(size_t bytes, char **base, struct ibv_mr **mr)
{
    size_t whole = (bytes + 4095) & ~(size_t)4095;
    *base = aligned_alloc(4096, whole);
    if (!*base)
        return -ENOMEM;
    memset(*base, 0, whole);
    int rc = reg(*base, whole, OWN_ACCESS, mr);
    if (rc)
        free(*base);
    return rc == -ENOTSUP ? -ENOMEM : rc;
}

static struct block *block_with_room(void)
{
    for (struct block *b = blocks; b; b = b->next)
        if (b->free)
            return b;
    struct block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    if (own((size_t)CELL * CELLS, &b->base, &b->mr)) {
        free(b);
        return NULL;
    }
    b->free = CELLS;
    b->next = blocks;
    blocks = b;
    return b;
}

int dz_region_alloc(size_t bytes, struct dz_region *r)
{
    if (bytes > CELL)
        return own(bytes, &r->base, &r->mr);
    struct block *b = block_with_room();
    if (!b)
        return -ENOMEM;
    unsigned i = 0;
    while (b->used[i])
        i++;
    b->used[i] = true;
    b->free--;
    *r = (struct dz_region){.mr = b->mr, .base = b->base + i * CELL};
    memset(r->base, 0, CELL);
    return 0;
}

void dz_region_free(struct dz_region *r)
{
    if (!r->base)
        return;
    for (struct block *b = blocks; b; b = b->next) {
        if (b->mr != r->mr)
            continue;
        b->used[(r->base - b->base) / CELL] = false;
        b->free++;
        r->base = NULL;
        return;
    }
    dz_ibv.dereg_mr(r->mr);
    free(r->base);
    r->base = NULL;
}

static struct user **place(uint64_t base)
{
    return &users[(base >> 4) * 0x9e3779b97f4a7c15u >> 56];
}

int dz_user_reg(const void *base, size_t bytes, bool remote_write, struct ibv_mr **mr)
{
    uint64_t at = (uint64_t)(uintptr_t)base;
    /* without local write for what is only read: a send buffer may lie in memory that cannot be written */
    int access = remote_write ? OWN_ACCESS : 0;
    struct user **head = place(at), *u;
    for (u = *head; u; u = u->next) {
        if (u->base == at && u->bytes == bytes && u->access == access) {
            u->refs++;
            *mr = u->mr;
            return 0;
        }
    }
    u = malloc(sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct user){.next = *head, .base = at, .bytes = bytes, .access = access, .refs = 1};
    int rc = reg((void *)(uintptr_t)at, bytes, access, &u->mr);
    if (rc) {
        free(u);
        dz_count(reg_refused);
        return -ENOTSUP;
    }
    *head = u;
    *mr = u->mr;
    dz_count(reg);
    return 0;
}

void dz_user_unreg(struct ibv_mr *mr)
{
    if (!mr)
        return;
    struct user **u = place((uint64_t)(uintptr_t)mr->addr);
    while (*u && (*u)->mr != mr)
        u = &(*u)->next;
    if (!*u || --(*u)->refs)
        return;
    struct user *gone = *u;
    *u = gone->next;
    dz_ibv.dereg_mr(gone->mr);
    free(gone);
}

void dz_mem_fini(void)
{
    for (struct block *b; (b = blocks);) {
        blocks = b->next;
        dz_ibv.dereg_mr(b->mr);
        free(b->base);
        free(b);
    }
}
