/* What a partition costs: E epochs of P partitions are exactly E x P writes that carry data, and no more posts than that
 * and a few; a range or a list of partitions goes with one doorbell a chain; nobody fetches and nothing is refused.
 *
 * run: -n 2
 * run: -n 2 -e DENIZEN_IB_NOTICE=word
 * run: -n 2 -e DENIZEN_IB_PACKED=0 -e DENIZEN_IB_SLOT=0 */
#include <stdint.h>

#include "test/conform/check.h"
#include "transport/transport.h"

enum { EPOCHS = 50, PARTS = 16 };

static uint64_t counter(enum dz_counter c)
{
    return atomic_load_explicit(&dz_counters[c], memory_order_relaxed);
}

struct counts {
    uint64_t writes, doorbells, signaled, tokens, refused;
};
static struct counts now(void)
{
    return (struct counts){counter(DZ_CTR_data_writes), counter(DZ_CTR_doorbells), counter(DZ_CTR_signaled),
                           counter(DZ_CTR_ready_writes), counter(DZ_CTR_reg_refused)};
}

static unsigned char out[PARTS * 8192], in[PARTS * 8192];

/* how: 0 one call a partition, 1 a range, 2 a list backwards */
static void rounds(int bytes, int how)
{
    MPI_Request s, r;
    int list[PARTS];
    for (int i = 0; i < PARTS; i++)
        list[i] = PARTS - 1 - i;
    MPI_Psend_init(out, PARTS, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    struct counts before = {0};
    for (int e = -2; e < EPOCHS; e++) { /* two rounds to bind */
        if (!e)
            before = now();
        fill(out, 0, (long)PARTS * bytes, rank, e);
        MPI_Start(&r);
        MPI_Start(&s);
        for (int p = 0; !how && p < PARTS; p++)
            MPI_Pready(p, s);
        if (how == 1)
            MPI_Pready_range(0, PARTS - 1, s);
        if (how == 2)
            MPI_Pready_list(PARTS, list, s);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, (long)PARTS * bytes, peer, e) < 0, "%d bytes, round %d", bytes, e);
    }
    struct counts after = now();
    uint64_t writes = after.writes - before.writes, doorbells = after.doorbells - before.doorbells;
    EXPECT(writes == EPOCHS * PARTS, "%d bytes, way %d: %llu writes for %d partitions", bytes, how,
           (unsigned long long)writes, EPOCHS * PARTS);
    /* beside the partitions: at most one token an epoch, and credits, probes and answers of messages */
    EXPECT(doorbells <= (how ? 2 * EPOCHS : EPOCHS * PARTS) + EPOCHS + 20, "%d bytes, way %d: %llu doorbells", bytes, how,
           (unsigned long long)doorbells);
    EXPECT(after.tokens - before.tokens <= EPOCHS, "%llu tokens", (unsigned long long)(after.tokens - before.tokens));
    EXPECT(after.signaled - before.signaled <= EPOCHS + EPOCHS * PARTS / 32 + 20, "%llu completions asked for",
           (unsigned long long)(after.signaled - before.signaled));
    EXPECT(after.refused == 0, "%llu registrations refused", (unsigned long long)after.refused);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    for (int how = 0; how < 3; how++) {
        rounds(8, how);
        rounds(100, how);
        rounds(8192, how);
    }
    return end();
}
