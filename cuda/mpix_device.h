/* mpix_device.h - partitioned communication and collectives from inside a kernel.
 *
 * A request that MPIX_Prequest_create (mpix.h) has bound to a device is used by the calls below, from CUDA device code
 * or, on the very same memory, from a host thread. No host MPI call is on the path. Two ways to run epochs:
 *
 *   from the host     MPI_Start(&request); kernels call MPIX_Pready or MPIX_Parrived; MPI_Wait(&request)
 *   from the device   MPIX_Start(pr); MPIX_Pready or MPIX_Parrived; MPIX_Wait(pr) - thousands of times in one kernel.
 *                     A request is driven from one side as long as its prequest lives.
 *
 * Every call has three forms: MPIX_X by one thread, MPIX_X_warp by all 32 threads of a converged warp, MPIX_X_block by
 * all threads of a block (of whole warps). The group forms share the copying and begin and end with a barrier of the
 * group.
 *
 * Memory model. X happens-before Y below is CUDA's (PTX) and C11's at system scope.
 *   MPIX_Pready(p, pr)       what the calling thread (the group) has written to partition p, or has been synchronised
 *                            with, happens before whatever follows the receiver's Parrived of it. The partition's
 *                            bytes alone: nothing else that was written is ordered by it.
 *   MPIX_Parrived(pr, p, &f) f != 0: partition p is in the receive buffer, for the calling thread (the group). Other
 *                            threads: after a barrier with it, or by a call of their own.
 *   MPIX_Start(pr)           of a receive: what the caller (the group) has read of the buffer happens before it is
 *                            written again. Threads that mark or look for partitions must be synchronised with it.
 *   MPIX_Wait(pr)            of a send: the buffer may be written again; of a receive: all of it has arrived. Every
 *                            thread that used the request in this epoch must be synchronised with the caller before it.
 * A send may run a few epochs ahead of its receiver, never further: MPIX_Wait waits for that.
 *
 * Returned: 0 (MPI_SUCCESS) or an MPI error class: MPI_ERR_PROC_FAILED (the peer is gone), or what the request ended
 * with. Calls of one request's different partitions may run at once in any threads. Indices are not checked: they must
 * be below the request's number of partitions.
 *
 * Names as in MPI Acceleration Extensions (mpi-acx); MPIX_Start, MPIX_Wait and the group forms are ours. */
#ifndef MPIX_DEVICE_H
#define MPIX_DEVICE_H

#include <stdint.h>

/* One direction to one peer: units of [payload | word] in memory that both sides see. A word is epoch << 2 | 1, stored
 * last, and only grows. Written once by the host; the library's business. */
typedef struct MPIX_Lane {
    char *buf;            /* the user's: first byte of partition 0 */
    uint64_t bytes;       /* of it */
    char *units;
    char *stage;          /* payload lies here instead, packed (NULL: in the units) */
    uint64_t *started;    /* the receiver has started this epoch */
    uint64_t set_bytes;   /* from epoch to epoch; epoch e uses set e % depth */
    uint64_t part_bytes, unit_bytes; /* unit_bytes 0: words alone, the bytes are in buf */
    uint64_t stride;      /* from unit to unit */
    uint32_t parts, nunits, depth;   /* nunits: of a partition */
    uint32_t data_at, word_at;       /* in a unit */
    uint32_t cells;       /* not 0: a partition is so many cells of [8 bytes | word], each written in one store */
    int32_t peer;         /* its rank */
    uint32_t unused;
} MPIX_Lane;

/* Mapped host memory, one line a direction. */
typedef struct MPIX_Control {
    uint64_t host_epoch;  /* MPI_Start has begun this one */
    uint64_t fail;        /* MPI error class: waiting is over */
    uint64_t pad[14];
    uint64_t epoch;       /* MPIX_Start has begun this one */
    uint64_t pad2[15];
} MPIX_Control;

enum { MPIX_SUM, MPIX_PROD, MPIX_MIN, MPIX_MAX };                       /* op */
enum { MPIX_INT32, MPIX_UINT32, MPIX_INT64, MPIX_UINT64, MPIX_FLOAT, MPIX_DOUBLE }; /* type */

struct MPIX_Prequest_s {
    MPIX_Control *control;
    uint64_t epoch;       /* driven from the device; 0: control says */
    uint64_t seen;        /* lowest `started` of the send lanes, as last read */
    uint64_t *landed;     /* per send partition of the receive lane: the epoch that is in the buffer */
    MPIX_Lane *send, *recv;
    uint32_t nsend, nrecv;
    /* a partitioned receive: which send partitions a receive partition consists of */
    uint64_t send_bytes, recv_bytes;
    uint32_t send_parts, recv_parts;
    /* a collective: own block from `from` to `to`; reduced in order of ranks when op is not negative */
    char *from, *to;
    uint64_t own_bytes;
    int32_t op, type, rank, size;
};
typedef struct MPIX_Prequest_s *MPIX_Prequest;

#ifdef __CUDACC__
#define MPIX_FN static __host__ __device__ __forceinline__
#else
#define MPIX_FN static inline __attribute__((always_inline, unused))
#endif

#define MPIX_WORD(epoch) ((epoch) << 2 | 1)
enum { MPIX_SPINS = 4096 }; /* looks at a word between looks at control->fail */
enum { MPIX_THREAD_, MPIX_WARP_, MPIX_BLOCK_ };

/* ---- memory at system scope */
MPIX_FN uint64_t mpix_ld(const uint64_t *p)
{
#ifdef __CUDA_ARCH__
    uint64_t v;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
#else
    return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}
MPIX_FN uint64_t mpix_ld_acquire(const uint64_t *p)
{
#ifdef __CUDA_ARCH__
    uint64_t v;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
#else
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}
MPIX_FN void mpix_st(uint64_t *p, uint64_t v)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
#else
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}
MPIX_FN void mpix_st_release(uint64_t *p, uint64_t v)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
#else
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}
/* A cell is 16 bytes and aligned: one access, single-copy atomic (PTX .b128; on the host the word is stored last and
 * read first, and nobody sees half a line). */
MPIX_FN void mpix_st_cell(char *at, uint64_t data, uint64_t word)
{
#ifdef __CUDA_ARCH__
    asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.sys.b128 [%0], t; }"
                 : : "l"(at), "l"(data), "l"(word) : "memory");
#else
    __atomic_store_n((uint64_t *)(void *)at, data, __ATOMIC_RELAXED);
    __atomic_store_n((uint64_t *)(void *)(at + 8), word, __ATOMIC_RELEASE);
#endif
}
MPIX_FN uint64_t mpix_ld_cell(const char *at, uint64_t *data)
{
#ifdef __CUDA_ARCH__
    uint64_t word;
    asm volatile("{ .reg .b128 t; ld.relaxed.sys.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
                 : "=l"(*data), "=l"(word) : "l"(at) : "memory");
    return word;
#else
    uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(at + 8), __ATOMIC_ACQUIRE);
    *data = __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);
    return word;
#endif
}

/* ---- groups of threads */
MPIX_FN uint32_t mpix_me(int group)
{
#ifdef __CUDA_ARCH__
    uint32_t t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return group == MPIX_THREAD_ ? 0 : group == MPIX_WARP_ ? t % 32 : t;
#else
    return (uint32_t)group * 0;
#endif
}
MPIX_FN uint32_t mpix_size(int group)
{
#ifdef __CUDA_ARCH__
    return group == MPIX_THREAD_ ? 1 : group == MPIX_WARP_ ? 32 : blockDim.x * blockDim.y * blockDim.z;
#else
    return (uint32_t)group * 0 + 1;
#endif
}
MPIX_FN void mpix_sync(int group)
{
#ifdef __CUDA_ARCH__
    if (group == MPIX_WARP_)
        __syncwarp();
    if (group == MPIX_BLOCK_)
        __syncthreads();
#else
    (void)group;
#endif
}
MPIX_FN int mpix_all(int group, int v)
{
#ifdef __CUDA_ARCH__
    return group == MPIX_THREAD_ ? v : group == MPIX_WARP_ ? __all_sync(0xffffffffu, v) : __syncthreads_and(v);
#else
    return group * 0 + v;
#endif
}
MPIX_FN int mpix_any(int group, int v)
{
#ifdef __CUDA_ARCH__
    return group == MPIX_THREAD_ ? v : group == MPIX_WARP_ ? __any_sync(0xffffffffu, v) : __syncthreads_or(v);
#else
    return group * 0 + v;
#endif
}

/* ---- bytes */
MPIX_FN uint64_t mpix_get8(const char *p, uint64_t left)
{
    if (left >= 8 && !((uintptr_t)p & 7))
        return *(const uint64_t *)(const void *)p;
    uint64_t v = 0;
    for (uint32_t i = 0; i < 8 && i < left; i++)
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return v;
}
MPIX_FN void mpix_put8(char *p, uint64_t left, uint64_t v)
{
    if (left >= 8 && !((uintptr_t)p & 7)) {
        *(uint64_t *)(void *)p = v;
        return;
    }
    for (uint32_t i = 0; i < 8 && i < left; i++)
        p[i] = (char)(v >> 8 * i);
}
/* by lane `me` of n */
MPIX_FN void mpix_copy(char *to, const char *from, uint64_t bytes, uint32_t me, uint32_t n)
{
    uint64_t done = 0;
#ifdef __CUDA_ARCH__
    if (!(((uintptr_t)to | (uintptr_t)from) & 15)) {
        const uint4 *f = (const uint4 *)(const void *)from;
        uint4 *t = (uint4 *)(void *)to;
        uint64_t all = bytes / 16, i = me;
        for (; i + 3 * n < all; i += 4 * n) {
            uint4 a = f[i], b = f[i + n], c = f[i + 2 * n], d = f[i + 3 * n];
            t[i] = a;
            t[i + n] = b;
            t[i + 2 * n] = c;
            t[i + 3 * n] = d;
        }
        for (; i < all; i += n)
            t[i] = f[i];
        done = all * 16;
    }
#else
    if (n == 1) {
        __builtin_memcpy(to, from, bytes);
        return;
    }
#endif
    for (uint64_t i = done + 8 * (uint64_t)me; i < bytes; i += 8 * (uint64_t)n)
        mpix_put8(to + i, bytes - i, mpix_get8(from + i, bytes - i));
}

MPIX_FN uint64_t mpix_epoch(const struct MPIX_Prequest_s *r)
{
    return r->epoch ? r->epoch : mpix_ld(&r->control->host_epoch);
}
MPIX_FN char *mpix_unit(const MPIX_Lane *l, uint32_t part, uint64_t epoch)
{
    return l->units + (epoch & (l->depth - 1)) * l->set_bytes + (uint64_t)part * l->nunits * l->stride;
}
MPIX_FN uint64_t *mpix_word(const MPIX_Lane *l, char *unit)
{
    return (uint64_t *)(void *)(unit + l->word_at);
}
/* How much of a lane's partition lies inside the buffer: less than all where a receive is shorter than its send. */
MPIX_FN uint64_t mpix_inside(const MPIX_Lane *l, uint64_t off, uint64_t len)
{
    return off >= l->bytes ? 0 : len < l->bytes - off ? len : l->bytes - off;
}

/* ---- the sender's side. The group has been synchronised. */
MPIX_FN void mpix_put(int group, const MPIX_Lane *l, uint32_t part, uint64_t epoch)
{
    uint32_t me = mpix_me(group), n = mpix_size(group);
    char *unit = mpix_unit(l, part, epoch);
    const char *from = l->buf + part * l->part_bytes;
    if (l->cells) {
        for (uint32_t i = me; i < l->cells; i += n)
            mpix_st_cell(unit + 16 * (uint64_t)i, mpix_get8(from + 8 * (uint64_t)i, l->part_bytes - 8 * (uint64_t)i),
                         MPIX_WORD(epoch));
        return;
    }
    if (!l->unit_bytes) {
        if (me)
            return;
        if (l->part_bytes)
            mpix_st_release(mpix_word(l, unit), MPIX_WORD(epoch)); /* acquire: whoever reads buf */
        else
            mpix_st(mpix_word(l, unit), MPIX_WORD(epoch));
        return;
    }
    /* a warp takes every nth unit, so that the fences of several are under way at once */
    uint32_t lanes = n < 32 ? n : 32, lane = me % lanes;
    for (uint32_t u = me / lanes; u < l->nunits; u += n / lanes) {
        uint64_t at = u * l->unit_bytes, len = l->part_bytes - at;
        char *cell = unit + u * l->stride;
        mpix_copy(l->stage ? l->stage + part * l->part_bytes + at : cell + l->data_at, from + at,
                  len < l->unit_bytes ? len : l->unit_bytes, lane, lanes);
        mpix_sync(group == MPIX_BLOCK_ ? MPIX_WARP_ : group);
        if (!lane)
            mpix_st_release(mpix_word(l, cell), MPIX_WORD(epoch)); /* acquire: mpix_take, or the host that takes */
    }
}

/* ---- the receiver's side. wait: until it has come, or control->fail. 1: taken, 0: not (all) there, < 0: failed. What
 * a thread returns is its own share. */
MPIX_FN int mpix_spin(const uint64_t *word, uint64_t want, const MPIX_Control *c, int wait)
{
    for (uint32_t i = 1;; i++) {
        if (mpix_ld(word) == want)
            return 1;
        if (!wait)
            return 0;
        if (!(i % MPIX_SPINS) && mpix_ld(&c->fail))
            return -1;
    }
}
MPIX_FN int mpix_load_cell(const char *at, uint64_t want, uint64_t *data, const MPIX_Control *c, int wait)
{
    for (uint32_t i = 1;; i++) {
        if (mpix_ld_cell(at, data) == want)
            return 1;
        if (!wait)
            return 0;
        if (!(i % MPIX_SPINS) && mpix_ld(&c->fail))
            return -1;
    }
}
MPIX_FN int mpix_take_cells(const MPIX_Lane *l, char *unit, char *to, uint64_t len, uint64_t want, uint32_t me,
                            uint32_t n, const MPIX_Control *c, int wait)
{
    uint32_t i = me;
    for (; i < l->cells; i += 4 * n) {
        uint64_t v[4];
        uint32_t k;
        int rc = 1;
        /* four loads under way at once; each again until its word is there */
        for (k = 0; k < 4; k++)
            if (i + k * n < l->cells && mpix_ld_cell(unit + 16 * (uint64_t)(i + k * n), &v[k]) != want)
                rc = 0;
        for (k = 0; k < 4 && !rc; k++)
            if (i + k * n < l->cells) {
                int got = mpix_load_cell(unit + 16 * (uint64_t)(i + k * n), want, &v[k], c, wait);
                if (got <= 0)
                    return got;
            }
        for (k = 0; k < 4; k++) {
            uint64_t off = 8 * (uint64_t)(i + k * n);
            if (i + k * n < l->cells && off < len)
                mpix_put8(to + off, len - off, v[k]);
        }
    }
    return 1;
}
MPIX_FN int mpix_take_units(int group, const MPIX_Lane *l, uint32_t part, char *unit, char *to, uint64_t room,
                            uint64_t want, const MPIX_Control *c, int wait)
{
    uint32_t me = mpix_me(group), n = mpix_size(group), lanes = n < 32 ? n : 32, lane = me % lanes, u;
    int warp = group == MPIX_BLOCK_ ? MPIX_WARP_ : group;
    if (!wait) { /* all or nothing */
        int here = 1;
        for (u = me; u < l->nunits && here; u += n)
            here = mpix_ld(mpix_word(l, unit + u * l->stride)) == want;
        if (!mpix_all(group, here))
            return 0;
    }
    for (u = me / lanes; u < l->nunits; u += n / lanes) {
        char *cell = unit + u * l->stride;
        uint64_t at = u * l->unit_bytes, len = l->part_bytes - at;
        int rc = lane ? 1 : mpix_spin(mpix_word(l, cell), want, c, wait);
        if (!lane && rc > 0)
            mpix_ld_acquire(mpix_word(l, cell)); /* release: mpix_put, or the host that puts */
        if (mpix_any(warp, rc < 0))
            return -1;
        len = len < l->unit_bytes ? len : l->unit_bytes;
        if (at < room)
            mpix_copy(to + at, l->stage ? l->stage + part * l->part_bytes + at : cell + l->data_at,
                      len < room - at ? len : room - at, lane, lanes);
    }
    return 1;
}
MPIX_FN int mpix_take(int group, const MPIX_Lane *l, uint32_t part, uint64_t epoch, const MPIX_Control *c, int wait)
{
    uint32_t me = mpix_me(group), n = mpix_size(group);
    char *unit = mpix_unit(l, part, epoch);
    uint64_t off = part * l->part_bytes, room = mpix_inside(l, off, l->part_bytes);
    if (l->cells)
        return mpix_take_cells(l, unit, l->buf + off, room, MPIX_WORD(epoch), me, n, c, wait);
    if (l->unit_bytes)
        return mpix_take_units(group, l, part, unit, l->buf + off, room, MPIX_WORD(epoch), c, wait);
    int rc = me ? 1 : mpix_spin(mpix_word(l, unit), MPIX_WORD(epoch), c, wait);
    if (!me && rc > 0 && l->part_bytes)
        mpix_ld_acquire(mpix_word(l, unit)); /* release: the host that has filled buf */
    return rc;
}

/* Takes send partition q of a receive once; uniform in the group. */
MPIX_FN int mpix_land(int group, struct MPIX_Prequest_s *r, uint32_t q, uint64_t epoch, int wait)
{
#ifdef __CUDA_ARCH__
    uint64_t landed;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(landed) : "l"(r->landed + q) : "memory");
#else
    uint64_t landed = __atomic_load_n(r->landed + q, __ATOMIC_ACQUIRE);
#endif
    if (mpix_any(group, landed == epoch))
        return 1;
    int rc = mpix_take(group, r->recv, q, epoch, r->control, wait);
    if (mpix_any(group, rc < 0))
        return -1;
    if (!mpix_all(group, rc > 0))
        return 0;
    if (!mpix_me(group)) {
#ifdef __CUDA_ARCH__
        asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(r->landed + q), "l"(epoch) : "memory");
#else
        __atomic_store_n(r->landed + q, epoch, __ATOMIC_RELEASE);
#endif
    }
    return 1;
}

/* ---- reductions, on 8 bytes at a time */
#define MPIX_OP(T, a, b)                                                                                             \
    (op == MPIX_SUM ? (T)((a) + (b)) : op == MPIX_PROD ? (T)((a) * (b)) : op == MPIX_MIN ? ((a) < (b) ? (a) : (b))     \
                                                                                       : ((a) > (b) ? (a) : (b)))
#define MPIX_PAIR(T)                                                                                                 \
    do {                                                                                                             \
        union { uint64_t w; T v[8 / sizeof(T)]; } x, y;                                                              \
        x.w = a;                                                                                                     \
        y.w = b;                                                                                                     \
        for (uint32_t mpix_i = 0; mpix_i < 8 / sizeof(T); mpix_i++)                                                  \
            x.v[mpix_i] = MPIX_OP(T, x.v[mpix_i], y.v[mpix_i]);                                                      \
        return x.w;                                                                                                  \
    } while (0)
MPIX_FN uint64_t mpix_combine(int op, int type, uint64_t a, uint64_t b)
{
    int order = op == MPIX_MIN || op == MPIX_MAX; /* sums and products wrap, so only these ask for the sign */
    switch (type) {
    case MPIX_FLOAT: MPIX_PAIR(float);
    case MPIX_DOUBLE: MPIX_PAIR(double);
    case MPIX_INT32:
        if (order)
            MPIX_PAIR(int32_t);
        MPIX_PAIR(uint32_t);
    case MPIX_UINT32: MPIX_PAIR(uint32_t);
    case MPIX_INT64:
        if (order)
            MPIX_PAIR(int64_t);
        MPIX_PAIR(uint64_t);
    default: MPIX_PAIR(uint64_t);
    }
}

/* A reduction: every thread takes its cells of all ranks, in their order, so that all ranks get the same bits. */
MPIX_FN int mpix_reduce(int group, struct MPIX_Prequest_s *r, uint64_t epoch)
{
    uint32_t me = mpix_me(group), n = mpix_size(group);
    uint64_t want = MPIX_WORD(epoch);
    for (uint64_t off = 8 * (uint64_t)me; off < r->own_bytes; off += 8 * (uint64_t)n) {
        uint64_t acc = 0, v;
        uint64_t left = r->own_bytes - off;
        for (int32_t rank = 0; rank < r->size; rank++) {
            if (rank == r->rank) {
                v = mpix_get8(r->from + off, left);
            } else {
                const MPIX_Lane *l = &r->recv[rank < r->rank ? rank : rank - 1];
                if (mpix_load_cell(mpix_unit(l, 0, epoch) + 2 * off, want, &v, r->control, 1) < 0)
                    return -1;
            }
            acc = rank ? mpix_combine(r->op, r->type, acc, v) : v;
        }
        mpix_put8(r->to + off, left, acc);
    }
    return 1;
}

/* ---- what the calls below are made of */
MPIX_FN int mpix_start(int group, struct MPIX_Prequest_s *r)
{
    mpix_sync(group); /* what the group has read is read */
    if (!mpix_me(group)) {
        uint64_t epoch = mpix_epoch(r) + 1;
        r->epoch = epoch;
        if (r->nrecv == 1 && !r->nsend) /* collectives need no token: who sends the next epoch has taken this one */
            mpix_st_release(r->recv->started, epoch); /* acquire: mpix_wait of the sender, or its host */
        mpix_st_release(&r->control->epoch, epoch); /* acquire: the proxy */
    }
    mpix_sync(group);
    return 0;
}
MPIX_FN int mpix_pready_range(int group, struct MPIX_Prequest_s *r, int low, int high)
{
    uint64_t epoch = mpix_epoch(r);
    mpix_sync(group); /* what the group has written is written */
    for (int p = low; p <= high; p++)
        for (uint32_t i = 0; i < r->nsend; i++)
            mpix_put(group, &r->send[i], (uint32_t)p, epoch);
    return 0;
}
MPIX_FN int mpix_parrived(int group, struct MPIX_Prequest_s *r, int partition, int *flag)
{
    uint64_t epoch = mpix_epoch(r), all = r->send_bytes * r->send_parts, lo, hi;
    uint32_t first = (uint32_t)partition, end = first + 1, q = (uint32_t)partition;
    int rc = 1; /* the send partitions: as dz_part_range (mpi/part_map.h), which the host has */
    if (all != r->recv_bytes * r->recv_parts || r->send_parts != r->recv_parts) {
        if (all == r->recv_bytes * r->recv_parts) {
            lo = (uint64_t)q * r->send_parts;
            hi = lo + r->send_parts;
            first = (uint32_t)(lo / r->recv_parts);
            end = (uint32_t)((hi + r->recv_parts - 1) / r->recv_parts);
        } else if (q * r->recv_bytes >= all || !r->recv_bytes) {
            first = 0;
            end = r->send_parts;
        } else {
            lo = q * r->recv_bytes;
            hi = (lo + r->recv_bytes + r->send_bytes - 1) / r->send_bytes;
            first = (uint32_t)(lo / r->send_bytes);
            end = hi < r->send_parts ? (uint32_t)hi : r->send_parts;
        }
    }
    for (q = first; q < end && rc > 0; q++)
        rc = mpix_land(group, r, q, epoch, 0);
    mpix_sync(group);
    *flag = rc > 0;
    return rc <= 0 && mpix_any(group, mpix_ld(&r->control->fail) != 0) ? (int)mpix_ld(&r->control->fail) : 0;
}
MPIX_FN int mpix_wait(int group, struct MPIX_Prequest_s *r)
{
    uint64_t epoch = mpix_epoch(r);
    int rc = 1;
    if (r->op >= 0) {
        mpix_sync(group);
        rc = mpix_reduce(group, r, epoch);
    } else if (r->own_bytes) { /* a collective without reduction */
        mpix_copy(r->to, r->from, r->own_bytes, mpix_me(group), mpix_size(group));
        for (uint32_t i = 0; i < r->nrecv && rc > 0; i++)
            rc = mpix_any(group, mpix_take(group, &r->recv[i], 0, epoch, r->control, 1) < 0) ? -1 : 1;
    } else if (r->nrecv) {
        for (uint32_t q = 0; q < r->send_parts && rc > 0; q++)
            rc = mpix_land(group, r, q, epoch, 1);
    } else if (!mpix_me(group)) {
        /* the next epoch's units must be free; looked up only when what was seen does not say so */
        for (uint32_t i = 1; rc > 0 && r->seen + r->send->depth <= epoch + 1; i++) {
            r->seen = mpix_ld_acquire(r->send->started); /* release: mpix_start of the receiver, or its host */
            if (!(i % 64) && mpix_ld(&r->control->fail))
                rc = -1;
        }
    }
    if (mpix_any(group, rc < 0))
        return (int)mpix_ld(&r->control->fail);
    mpix_sync(group);
    return 0;
}

/* ---- the calls. MPIX_Pready of a collective's prequest: partition 0, the own contribution, to all others. */
#define MPIX_CALLS(suffix, group)                                                                                    \
    MPIX_FN int MPIX_Start##suffix(MPIX_Prequest pr) { return mpix_start(group, pr); }                               \
    MPIX_FN int MPIX_Pready##suffix(int partition, MPIX_Prequest pr)                                                 \
    {                                                                                                                \
        return mpix_pready_range(group, pr, partition, partition);                                                   \
    }                                                                                                                \
    MPIX_FN int MPIX_Pready_range##suffix(int low, int high, MPIX_Prequest pr)                                       \
    {                                                                                                                \
        return mpix_pready_range(group, pr, low, high);                                                              \
    }                                                                                                                \
    MPIX_FN int MPIX_Parrived##suffix(MPIX_Prequest pr, int partition, int *flag)                                    \
    {                                                                                                                \
        return mpix_parrived(group, pr, partition, flag);                                                            \
    }                                                                                                                \
    MPIX_FN int MPIX_Wait##suffix(MPIX_Prequest pr) { return mpix_wait(group, pr); }
MPIX_CALLS(, MPIX_THREAD_)
MPIX_CALLS(_warp, MPIX_WARP_)
MPIX_CALLS(_block, MPIX_BLOCK_)

#endif
