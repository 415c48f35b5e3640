/* arena.c - memory that the other processes of this node can map.
 *
 * Segments are memfds. Blocks up to BLOCK_MAX come from pooled segments of SEG_BYTES, cut into blocks of power-of-two
 * sizes that are recycled through one free list a size; a pooled segment is never given back before the process
 * ends, so a peer may keep it mapped. A larger block has a segment of its own, and goes with it.
 * A table of segments, sorted by address, finds the segment of a pointer: it also tells whether a user's buffer came
 * from MPI_Alloc_mem. Bookkeeping is private memory: a peer cannot damage it.
 *
 * Always: a block belongs to exactly one of: its owner, a free list. Guarded by one mutex of its own, because
 * MPI_Alloc_mem may be called by any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/shm/shm.h"

enum { MIN_SHIFT = 6, MAX_SHIFT = 21, CLASSES = MAX_SHIFT - MIN_SHIFT + 1 };
#define BLOCK_MAX ((size_t)1 << MAX_SHIFT)
#define SEG_BYTES ((size_t)16 << 20)

struct seg {
    char *base;
    size_t bytes;
    size_t used;    /* pooled: bytes cut so far */
    uint64_t gen;
    int fd;         /* -1: private memory, no memfd to be had */
    bool pooled;
    unsigned char *shift; /* pooled: size class of the block that starts at each line, 0: none */
};

struct free_block {
    struct free_block *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct seg **segs; /* sorted by base */
static size_t nsegs, segs_room;
static struct free_block *free_lists[CLASSES];
static struct seg *current; /* pooled segment being cut */
static uint64_t last_gen;

static struct seg *seg_of(const void *p)
{
    size_t lo = 0, hi = nsegs;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if ((const char *)p < segs[mid]->base)
            hi = mid;
        else
            lo = mid + 1;
    }
    if (!lo || (const char *)p >= segs[lo - 1]->base + segs[lo - 1]->bytes)
        return NULL;
    return segs[lo - 1];
}

static int seg_insert(struct seg *s)
{
    if (nsegs == segs_room) {
        size_t room = segs_room ? 2 * segs_room : 16;
        struct seg **bigger = realloc(segs, room * sizeof *segs);
        if (!bigger)
            return -ENOMEM;
        segs = bigger;
        segs_room = room;
    }
    size_t i = nsegs++;
    for (; i > 0 && segs[i - 1]->base > s->base; i--)
        segs[i] = segs[i - 1];
    segs[i] = s;
    return 0;
}

static void seg_destroy(struct seg *s)
{
    munmap(s->base, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s->shift);
    free(s);
}

static struct seg *seg_create(size_t bytes, bool pooled)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct seg *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->bytes = (bytes + page - 1) / page * page;
    s->pooled = pooled;
    s->gen = ++last_gen;
    if (pooled && !(s->shift = calloc(s->bytes >> MIN_SHIFT, 1)))
        goto free_seg;
    s->fd = memfd_create("denizen", MFD_CLOEXEC);
    if (s->fd >= 0 && (fchmod(s->fd, 0600) || ftruncate(s->fd, (off_t)s->bytes))) {
        close(s->fd);
        s->fd = -1;
    }
    s->base = s->fd >= 0 ? mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0)
                         : mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->base == MAP_FAILED)
        goto close_fd;
    if (seg_insert(s))
        goto unmap;
    return s;
unmap:
    munmap(s->base, s->bytes);
close_fd:
    if (s->fd >= 0)
        close(s->fd);
    free(s->shift);
free_seg:
    free(s);
    return NULL;
}

static int class_of(size_t bytes)
{
    int shift = MIN_SHIFT;
    while (((size_t)1 << shift) < bytes)
        shift++;
    return shift - MIN_SHIFT;
}

static void *block_alloc(size_t bytes)
{
    int c = class_of(bytes);
    struct free_block *b = free_lists[c];
    if (b) {
        free_lists[c] = b->next;
        return b;
    }
    size_t size = (size_t)1 << (c + MIN_SHIFT);
    if (!current || current->used + size > current->bytes) {
        /* what is left of the old segment stays uncut: at most one block of the largest size */
        struct seg *s = seg_create(SEG_BYTES, true);
        if (!s)
            return NULL;
        current = s;
    }
    void *p = current->base + current->used;
    current->shift[current->used >> MIN_SHIFT] = (unsigned char)(c + MIN_SHIFT);
    current->used += size;
    return p;
}

static void tell(const struct seg *s, const void *p, struct dz_ref *ref)
{
    if (!ref)
        return;
    *ref = (struct dz_ref){.gen = s->fd >= 0 ? s->gen : 0, .off = (uint64_t)((const char *)p - s->base),
                           .seg_bytes = s->bytes, .fd = s->fd, .pooled = s->pooled};
}

void *dz_arena_alloc(size_t bytes, struct dz_ref *ref)
{
    void *p = NULL;
    struct seg *s = NULL;
    pthread_mutex_lock(&mutex);
    if (bytes <= BLOCK_MAX) {
        p = block_alloc(bytes);
        s = p ? seg_of(p) : NULL;
    } else if (bytes <= SIZE_MAX / 2 && (s = seg_create(bytes, false))) {
        p = s->base;
    }
    if (p)
        tell(s, p, ref);
    pthread_mutex_unlock(&mutex);
    if (!p)
        errno = ENOMEM;
    return p;
}

static int give_back(void *p)
{
    int rc = -EINVAL;
    pthread_mutex_lock(&mutex);
    struct seg *s = seg_of(p);
    if (s && s->pooled) {
        size_t at = (size_t)((char *)p - s->base);
        int shift = at % DZ_LINE ? 0 : s->shift[at >> MIN_SHIFT];
        if (shift) {
            struct free_block *b = p;
            b->next = free_lists[shift - MIN_SHIFT];
            free_lists[shift - MIN_SHIFT] = b;
            rc = 0;
        }
    } else if (s && p == s->base) {
        size_t i = 0;
        while (segs[i] != s)
            i++;
        for (nsegs--; i < nsegs; i++)
            segs[i] = segs[i + 1];
        seg_destroy(s);
        rc = 0;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

void dz_arena_free(void *p)
{
    if (p)
        give_back(p);
}

int dz_arena_find(const void *p, size_t bytes, struct dz_ref *ref)
{
    int rc = -ENOENT;
    pthread_mutex_lock(&mutex);
    const struct seg *s = seg_of(p);
    if (s && s->fd >= 0 && bytes <= s->bytes - (size_t)((const char *)p - s->base)) {
        tell(s, p, ref);
        rc = 0;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

void dz_arena_fini(void)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < nsegs; i++)
        seg_destroy(segs[i]);
    free(segs);
    segs = NULL;
    nsegs = segs_room = 0;
    current = NULL;
    memset(free_lists, 0, sizeof free_lists);
    pthread_mutex_unlock(&mutex);
}

/* ---- MPI_Alloc_mem: the block remembers nothing; a byte more makes zero-byte allocations unique */
void *dz_mem_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    return dz_arena_alloc(bytes ? bytes : 1, NULL);
}

int dz_mem_free(void *p)
{
    return give_back(p);
}

/* ---- segments of others */
int dz_map_get(struct dz_map **list, pid_t pid, const struct dz_ref *ref, struct dz_map **map)
{
    for (struct dz_map *m = *list; m; m = m->next) {
        if (m->gen == ref->gen) {
            m->refs++;
            *map = m;
            return 0;
        }
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, ref->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? -EHOSTDOWN : -errno;
    struct stat st;
    int rc = fstat(fd, &st) ? -errno : (uint64_t)st.st_size < ref->seg_bytes ? -ESTALE : 0;
    struct dz_map *m = rc ? NULL : calloc(1, sizeof *m);
    if (!rc && !m)
        rc = -ENOMEM;
    if (m) {
        m->base = mmap(NULL, ref->seg_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (m->base == MAP_FAILED) {
            rc = -errno;
            free(m);
        } else {
            m->gen = ref->gen;
            m->bytes = ref->seg_bytes;
            m->refs = 1;
            m->pooled = ref->pooled;
            m->next = *list;
            *list = *map = m;
        }
    }
    close(fd);
    return rc;
}

void dz_map_put(struct dz_map **list, struct dz_map *map)
{
    if (--map->refs || map->pooled)
        return;
    while (*list != map)
        list = &(*list)->next;
    *list = map->next;
    munmap(map->base, map->bytes);
    free(map);
}

void dz_map_drop_all(struct dz_map **list)
{
    while (*list) {
        struct dz_map *m = *list;
        *list = m->next;
        munmap(m->base, m->bytes);
        free(m);
    }
}
