/* part_map.c - the map from receive partitions to send partitions against its definition, byte by byte.
 *
 * Every pair of counts up to 40 x 40 with equal totals, with every smaller and larger receive of the same cut, with
 * zero bytes; then large counts against the definition in 128-bit fractions. A mistake of one partition in either
 * direction fails: too early or too late. */
#include <stdio.h>
#include <stdlib.h>

#include "mpi/part_map.h"

static unsigned long checked, failed;

static int overlaps(const struct dz_part_map *m, uint64_t j, uint64_t q)
{
    uint64_t slo = q * m->send_bytes, shi = slo + m->send_bytes, rlo = j * m->recv_bytes, rhi = rlo + m->recv_bytes;
    return (slo > rlo ? slo : rlo) < (shi < rhi ? shi : rhi);
}

static void expect(const struct dz_part_map *m, uint32_t j, uint32_t first, uint32_t end)
{
    struct dz_part_range r = dz_part_range(m, j);
    checked++;
    if (r.first == first && r.end == end)
        return;
    failed++;
    printf("%u x %lu B sent, %u x %lu B received: partition %u wants [%u, %u), got [%u, %u)\n", m->send_parts,
           (unsigned long)m->send_bytes, m->recv_parts, (unsigned long)m->recv_bytes, j, first, end, r.first, r.end);
}

/* The definition: the first and last send partition that share a byte; none at all: all of them. */
static void check_bytes(const struct dz_part_map *m)
{
    for (uint32_t j = 0; j < m->recv_parts; j++) {
        uint32_t first = m->send_parts, end = 0;
        for (uint32_t q = 0; q < m->send_parts; q++) {
            if (!overlaps(m, j, q))
                continue;
            if (first == m->send_parts)
                first = q;
            end = q + 1;
        }
        if (first == m->send_parts)
            expect(m, j, 0, m->send_parts);
        else
            expect(m, j, first, end);
    }
}

/* Equal empty totals: the map of one byte more, where only fractions count. */
static void check_empty(uint32_t p, uint32_t q)
{
    struct dz_part_map empty = {0, 0, p, q}, full = {q, p, p, q};
    for (uint32_t j = 0; j < q; j++) {
        struct dz_part_range r = dz_part_range(&full, j);
        expect(&empty, j, r.first, r.end);
    }
}

static void check_large(uint32_t p, uint32_t q)
{
    struct dz_part_map m = {q, p, p, q};
    for (uint64_t k = 0; k < 2000; k++) {
        uint32_t j = (uint32_t)(k < 1000 ? k * 2654435761u % q : q - 1 - (k - 1000) % q);
        unsigned __int128 lo = (unsigned __int128)j * p, hi = lo + p;
        expect(&m, j, (uint32_t)(lo / q), (uint32_t)((hi + q - 1) / q));
    }
}

int main(void)
{
    for (uint32_t p = 1; p <= 40; p++) {
        for (uint32_t q = 1; q <= 40; q++) {
            struct dz_part_map m = {q, p, p, q};
            check_bytes(&m);
            m = (struct dz_part_map){3 * q, 3 * p, p, q};
            check_bytes(&m);
            check_empty(p, q);
            for (uint64_t s = 0; s <= 9; s += 3)
                for (uint64_t r = 0; r <= 7; r++) {
                    if (s * p == r * q)
                        continue;
                    m = (struct dz_part_map){s, r, p, q};
                    check_bytes(&m);
                }
        }
    }
    check_large(INT32_MAX, INT32_MAX - 1);
    check_large(INT32_MAX - 1, INT32_MAX);
    check_large(INT32_MAX, 1);
    check_large(1, INT32_MAX);
    check_large(4096, 512);
    check_large(100000, 99991);
    printf("%lu ranges checked, %lu wrong\n", checked, failed);
    return failed != 0;
}
