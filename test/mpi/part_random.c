/* part_random.c - random partitioned channels between random ranks (oneself too), all with one tag, with unequal
 * partition counts, started in an order of each rank's own, used for some rounds, freed, and made again.
 *
 * run: -n 1
 * run: -n 2
 * run: -n 3 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 5 -e DENIZEN_CMA=0
 * run: -n 3 -e DENIZEN_CMA=0 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 3 -e DENIZEN_FAULT=post=3,part=2,start=2
 * run: -n 2 -e DENIZEN_FAULT=post=2,part=3 -e DENIZEN_SLOT_LIMIT=0 */
#include "coll.h"

enum { CHANNELS = 6, SEED = 7 };

struct channel {
    int from, to, send_parts, recv_parts, bytes;
    unsigned char *out, *in;
    MPI_Request send, recv;
};

/* The same on all ranks: they share the seed. */
static void make(struct channel *c)
{
    int unit = rand() % 4 ? 1 + rand() % 20 : 1 + rand() % 3000;
    c->from = rand() % world_size;
    c->to = rand() % world_size;
    c->send_parts = 1 + rand() % 9;
    c->recv_parts = 1 + rand() % 9;
    c->bytes = c->send_parts * c->recv_parts * unit;
    c->out = calloc(1, (size_t)c->bytes);
    c->in = calloc(1, (size_t)c->bytes);
    c->send = c->recv = MPI_REQUEST_NULL;
    if (c->from == world_rank)
        MPI_Psend_init(c->out, c->send_parts, c->bytes / c->send_parts, MPI_BYTE, c->to, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &c->send);
    if (c->to == world_rank)
        MPI_Precv_init(c->in, c->recv_parts, c->bytes / c->recv_parts, MPI_BYTE, c->from, 3, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &c->recv);
}

static void start(struct channel *c, int value)
{
    if (c->to == world_rank) {
        memset(c->in, 0, (size_t)c->bytes);
        MPI_Start(&c->recv);
    }
    if (c->from != world_rank)
        return;
    MPI_Start(&c->send);
    memset(c->out, value, (size_t)c->bytes);
    for (int p = c->send_parts; p-- > 0;)
        MPI_Pready(p, c->send);
}

static void finish(struct channel *c, int value, int turn, int round)
{
    MPI_Request both[2] = {c->send, c->recv};
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int i = 0; c->to == world_rank && i < c->bytes; i++)
        if (c->in[i] != value) {
            EXPECT(0, "turn %d, round %d, %d to %d, %d/%d parts: byte %d is %d, not %d", turn, round, c->from, c->to,
                   c->send_parts, c->recv_parts, i, c->in[i], value);
            return;
        }
}

static void unmake(struct channel *c)
{
    if (c->send != MPI_REQUEST_NULL)
        MPI_Request_free(&c->send);
    if (c->recv != MPI_REQUEST_NULL)
        MPI_Request_free(&c->recv);
    free(c->out);
    free(c->in);
}

int main(int argc, char **argv)
{
    struct channel c[CHANNELS];
    begin(&argc, &argv, 1);
    for (int turn = 0; turn < 200; turn++) {
        srand((unsigned)(SEED * 1000 + turn));
        int rounds = 1 + rand() % 5;
        for (int k = 0; k < CHANNELS; k++)
            make(&c[k]);
        for (int r = 0; r < rounds; r++) {
            for (int k = 0; k < CHANNELS; k++) {
                int mine = (k * 5 + world_rank) % CHANNELS;
                start(&c[mine], 1 + (mine + r * 7 + turn) % 200);
            }
            for (int k = 0; k < CHANNELS; k++)
                finish(&c[k], 1 + (k + r * 7 + turn) % 200, turn, r);
        }
        for (int k = 0; k < CHANNELS; k++)
            unmake(&c[k]);
    }
    return end();
}
