/* shm.h - what the files of the shared-memory transport share.
 *
 * Every process owns segments: memfd files, 0600, without a name anywhere, so nothing can stay behind after any
 * death. A peer maps one by opening /proc/<pid>/fd/<fd> (same user, same pid namespace: part of the host id). Memory
 * is always owned and given back by the process in whose segment it lies; a place in it is told as a struct dz_ref.
 *
 *   arena.c  segments, the allocator over them (also MPI_Alloc_mem's), and the cache of peers' mappings
 *   ring.c   messages: one ring of cache lines per ordered pair, in the sender's memory, and a pool of larger pieces
 *   chan.c   channels: the resident slots of a partitioned request pair, in the sender's memory
 *   cma.c    copies between address spaces (process_vm_readv/writev) */
#ifndef DZ_SHM_H
#define DZ_SHM_H

#include <stdalign.h>
#include <sys/types.h>

#include "transport/transport.h"

#pragma GCC visibility push(hidden)

#define DZ_LINE 64

/* A place in the segments of some process. gen names the segment for ever; fd numbers are reused. */
struct dz_ref {
    uint64_t gen; /* 0: no place */
    uint64_t off;
    uint64_t seg_bytes;
    int32_t fd;
    int32_t pooled; /* 1: the segment lives as long as its process */
};

/* One line-aligned block in an own segment; *ref (may be NULL) tells its place. NULL: no memory. Not cleared.
 * Threads: any. */
void *dz_arena_alloc(size_t bytes, struct dz_ref *ref);
void dz_arena_free(void *p);
/* Where own memory [p, p + bytes) lies, if it came from dz_arena_alloc or dz_mem_alloc; else -ENOENT. */
int dz_arena_find(const void *p, size_t bytes, struct dz_ref *ref);
void dz_arena_fini(void);

/* This process's view of another's segment; counted. -EACCES and friends when it cannot be opened.
 * The engine's lock is held. */
struct dz_map {
    struct dz_map *next;
    uint64_t gen;
    char *base;
    size_t bytes;
    int refs;
    bool pooled;
};
int dz_map_get(struct dz_map **list, pid_t pid, const struct dz_ref *ref, struct dz_map **map);
void dz_map_put(struct dz_map **list, struct dz_map *map);
void dz_map_drop_all(struct dz_map **list);

/* What one process tells all others at start (a part of the boot blob). */
struct dz_shm_blob {
    uint64_t host_id;
    uint64_t nonce;   /* also in the control segment: proves that a mapping is what it seems */
    struct dz_ref ctrl;
    uint64_t probe;   /* address of the nonce in that process: is process_vm_readv allowed? */
    int32_t pid;
    int32_t uid;
};
_Static_assert(sizeof(struct dz_shm_blob) <= 128, "boot blobs are small");

struct ring;
struct in_ring;
/* A peer on this node. */
struct dz_shm_ep {
    struct dz_peer *peer;
    struct dz_shm_blob blob;
    int slot;            /* its index among the ranks of this node, in rank order */
    int pidfd;           /* -1: not opened yet */
    int cma;             /* -1 not tried, 0 refused, 1 works */
    struct dz_map *maps; /* of its segments */
    struct ctrl *ctrl;   /* its control segment, or NULL */
    /* outgoing ring */
    struct ring *out;
    uint64_t pos, seen;  /* lines written; lines known to be consumed */
    struct piece *flight_head, **flight_tail; /* pieces the peer may still read, in order of position */
    struct piece *own;   /* pieces reserved for this pair */
    struct in_ring *in;
};

struct dz_shm {
    bool open;
    int local;           /* ranks of this node */
    int self_slot;
    struct dz_shm_blob blob;
    struct dz_shm_ep **eps; /* by slot */
};
extern struct dz_shm dz_shm;

/* ring.c */
int dz_ring_open(struct dz_shm_blob *blob);
void dz_ring_close(void);
int dz_ring_post(struct dz_peer *, const struct dz_am *, const struct dz_view *, size_t off, size_t len);
int dz_ring_poll(void);
void dz_ring_drop_pieces(struct dz_shm_ep *);

/* cma.c: 0, -ENOTSUP (not allowed or switched off), -EHOSTDOWN, -EFAULT */
bool dz_cma_usable(struct dz_shm_ep *);
int dz_cma_read(struct dz_shm_ep *, uint64_t raddr, const struct dz_view *v, size_t off, size_t len);
int dz_cma_write(struct dz_shm_ep *, uint64_t raddr, const void *src, size_t len);

/* chan.c: the channel operations of the table */
int dz_shm_send_open(struct dz_peer *, const struct dz_chan_desc *, struct dz_schan **, void *, size_t *);
int dz_shm_send_bind(struct dz_schan *, const void *, size_t);
int dz_shm_send_start(struct dz_schan *, uint64_t);
int dz_shm_send_part(struct dz_schan *, uint32_t, uint64_t);
bool dz_shm_send_done(struct dz_schan *, uint64_t);
void dz_shm_send_close(struct dz_schan *);
int dz_shm_recv_open(struct dz_peer *, const struct dz_chan_desc *, const struct dz_chan_desc *, const void *, size_t,
                     struct dz_rchan **, void *, size_t *);
void dz_shm_recv_start(struct dz_rchan *, uint64_t);
bool dz_shm_recv_ready(struct dz_rchan *, uint32_t, uint64_t);
int dz_shm_recv_part(struct dz_rchan *, uint32_t, uint64_t);
uint32_t dz_shm_recv_run(struct dz_rchan *, uint32_t, uint32_t, uint64_t);
bool dz_shm_recv_must_take(struct dz_rchan *);
void dz_shm_recv_done(struct dz_rchan *, uint64_t);
void dz_shm_recv_close(struct dz_rchan *);

#pragma GCC visibility pop

#endif
