/* Strided partitions: few long spans are gathered by the device, many short ones packed, at either end or both, with equal
 * and unequal partition counts; every byte is right, and those between the spans stay.
 *
 * run: -n 2 -t 100
 * run: -n 2 -t 100 -e DENIZEN_IB_NOTICE=word */
#include <stdint.h>

#include "test/conform/check.h"
#include "transport/transport.h"

enum { PARTS = 6, EPOCHS = 8, GAP = 3 };

struct shape {
    const char *name;
    int blocks, len, elements; /* of one partition: elements of blocks x len bytes, GAP x len apart */
    bool gathered;
};
static const struct shape shapes[] = {
    {"one block", 1, 4096, 1, true},       {"four long blocks", 4, 1024, 1, true}, {"two elements", 2, 512, 2, true},
    {"sixteen blocks", 16, 256, 1, true},  {"seventeen blocks", 17, 256, 1, false}, {"short blocks", 100, 8, 1, false},
    {"few short blocks", 12, 64, 1, false},
};

static uint64_t gathers(void)
{
    return atomic_load_explicit(&dz_counters[DZ_CTR_gathers], memory_order_relaxed);
}

static MPI_Datatype type_of(const struct shape *s)
{
    MPI_Datatype vector, spaced;
    MPI_Type_vector(s->blocks, s->len, GAP * s->len, MPI_BYTE, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint)s->blocks * s->len * GAP, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Type_free(&vector);
    return spaced;
}

/* Byte i of the stream in strided memory. */
static long place(const struct shape *s, long i)
{
    return i / s->len * s->len * GAP + i % s->len;
}

static void try(const struct shape *s, bool strided_send, bool strided_recv, int recv_parts)
{
    long part = (long)s->blocks * s->len * s->elements, all = part * PARTS, room = all * GAP;
    unsigned char *out = malloc((size_t)room), *in = malloc((size_t)room);
    MPI_Datatype type = type_of(s);
    MPI_Request q[2];
    int per = PARTS / recv_parts;
    MPI_Psend_init(out, PARTS, strided_send ? s->elements : part, strided_send ? type : MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &q[0]);
    MPI_Precv_init(in, recv_parts, strided_recv ? s->elements * per : part * per, strided_recv ? type : MPI_BYTE, peer, 0,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
    uint64_t before = gathers();
    for (int e = 0; e < EPOCHS; e++) {
        memset(in, 0x5a, (size_t)room);
        for (long i = 0; i < all; i++)
            out[strided_send ? place(s, i) : i] = byte_at(rank, e, i);
        MPI_Barrier(MPI_COMM_WORLD); /* the receive buffer is touched before its start only */
        MPI_Startall(2, q);
        MPI_Pready_range(0, PARTS - 3, q[0]);
        MPI_Pready(PARTS - 1, q[0]);
        MPI_Pready(PARTS - 2, q[0]);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        long wrong = 0;
        for (long i = 0; i < all; i++)
            wrong += in[strided_recv ? place(s, i) : i] != byte_at(peer, e, i);
        for (long i = 0; strided_recv && i < all; i += s->len)
            wrong += place(s, i) + s->len < room && in[place(s, i) + s->len] != 0x5a;
        EXPECT(!wrong, "%s, %d to %d, round %d: %ld bytes are wrong", s->name, strided_send, strided_recv, e, wrong);
    }

    uint64_t want = strided_send && s->gathered ? EPOCHS * PARTS : 0;
    EXPECT(gathers() - before == want, "%s, %d to %d: %llu gathered, not %llu", s->name, strided_send, strided_recv,
           (unsigned long long)(gathers() - before), (unsigned long long)want);
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    MPI_Type_free(&type);
    free(out);
    free(in);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        try(&shapes[i], true, false, PARTS);
        try(&shapes[i], false, true, PARTS);
        try(&shapes[i], true, true, PARTS / 2);
    }
    return end();
}
