/* part_map.h - which send partitions a receive partition consists of, for any two partition counts.
 *
 * Both sides cut the same packed stream into equal parts: send partition q is bytes [q S, (q + 1) S), receive
 * partition j is bytes [j R, (j + 1) R). A receive partition has arrived exactly when every send partition that
 * overlaps it has. All in integers: with equal totals the bytes cancel and the fractions j/R_parts and q/S_parts are
 * left, which also gives empty streams a meaning (a zero-byte partition still arrives by its own sign).
 *
 * Where the totals differ, bytes decide. Receive partitions that no send partition reaches (the receive is larger)
 * arrive with the last send partition: only then is it certain that nothing comes. Source: MPI 4.0, section 4.2. */
#ifndef DZ_PART_MAP_H
#define DZ_PART_MAP_H

#include <stdint.h>

struct dz_part_map {
    uint64_t send_bytes, recv_bytes; /* of one partition */
    uint32_t send_parts, recv_parts; /* at least 1, at most INT32_MAX; bytes * parts fits 63 bits */
};
struct dz_part_range {
    uint32_t first, end; /* send partitions [first, end), never empty */
};

/* j < recv_parts */
static inline struct dz_part_range dz_part_range(const struct dz_part_map *m, uint32_t j)
{
    uint64_t all = m->send_bytes * m->send_parts;
    if (all == m->recv_bytes * m->recv_parts) {
        if (m->send_parts == m->recv_parts)
            return (struct dz_part_range){j, j + 1};
        uint64_t lo = (uint64_t)j * m->send_parts, hi = lo + m->send_parts;
        return (struct dz_part_range){(uint32_t)(lo / m->recv_parts),
                                      (uint32_t)((hi + m->recv_parts - 1) / m->recv_parts)};
    }
    uint64_t lo = j * m->recv_bytes, hi = lo + m->recv_bytes;
    if (lo >= all || !m->recv_bytes)
        return (struct dz_part_range){0, m->send_parts};
    uint64_t end = (hi + m->send_bytes - 1) / m->send_bytes;
    return (struct dz_part_range){(uint32_t)(lo / m->send_bytes),
                                  end < m->send_parts ? (uint32_t)end : m->send_parts};
}

#endif
