/* paths.c - which way large partitions take, by the library's own counters: straight into memory from MPI_Alloc_mem,
 * through slots into ordinary memory, and fetched or written by the kernel where there are no slots.
 *
 * run: -n 2 -e DENIZEN_TRANSPORT=shm,self
 * run: -n 2 -e DENIZEN_TRANSPORT=shm,self -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_TRANSPORT=shm,self -e DENIZEN_CMA=0 */
#include <unistd.h>

#include "coll.h"

enum { PARTS = 4, BYTES = 65536, ROUNDS = 10 };

/* Rank 0 sends to rank 1; the receiver starts first, so that its buffer may be written. */
static void rounds(unsigned char *in)
{
    static unsigned char out[PARTS * BYTES];
    MPI_Request q;
    if (world_rank == 0)
        MPI_Psend_init(out, PARTS, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    else
        MPI_Precv_init(in, PARTS, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    for (int r = 0; r < ROUNDS; r++) {
        if (world_rank == 1)
            MPI_Start(&q);
        MPI_Barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            MPI_Start(&q);
            memset(out, r + 1, sizeof out);
            MPI_Pready_range(0, PARTS - 1, q);
        }
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        for (int i = 0; world_rank == 1 && i < PARTS * BYTES; i++)
            if (in[i] != r + 1) {
                EXPECT(0, "round %d: byte %d is %d", r, i, in[i]);
                break;
            }
    }
    MPI_Request_free(&q);
}

static long counter(const char *path, const char *name)
{
    char line[128], key[64];
    long rank, value, found = -1;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%ld %63s %ld", &rank, key, &value) == 3 && !strcmp(key, name))
            found = value;
    if (f)
        fclose(f);
    return found;
}

int main(int argc, char **argv)
{
    static unsigned char ordinary[PARTS * BYTES];
    unsigned char *shared;
    char path[64];
    const char *limit = getenv("DENIZEN_SLOT_LIMIT");
    int slots = !limit || atoi(limit) > 0;
    snprintf(path, sizeof path, "/tmp/denizen-paths.%d", (int)getpid());
    setenv("DENIZEN_STATS", path, 1);
    begin(&argc, &argv, 2);
    MPI_Alloc_mem(PARTS * BYTES, MPI_INFO_NULL, &shared);
    rounds(ordinary);
    rounds(shared);
    MPI_Free_mem(shared);
    int rc = end();
    long direct = counter(path, "part_direct"), pull = counter(path, "part_pull"), all = PARTS * ROUNDS;
    unlink(path);
    EXPECT(direct >= 0 && pull >= 0, "no counters in %s", path);
    if (world_rank == 1) {
        EXPECT(direct == 0 && pull == 0, "the receiver sent nothing: %ld, %ld", direct, pull);
    } else if (slots) {
        /* the first round may find the receiver's address still on its way */
        EXPECT(direct >= all - PARTS && direct <= all && pull == 0, "into shared memory %ld of %ld, fetched %ld", direct, all, pull);
    } else {
        EXPECT(direct + pull == 2 * all && direct >= 2 * (all - PARTS), "%ld direct and %ld fetched of %ld", direct, pull, 2 * all);
    }
    return rc || failures;
}
