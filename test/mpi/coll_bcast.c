/* coll_bcast.c - MPI_Bcast from every root, short and long, contiguous and not, also with different types of one
 * signature on the two sides; MPI_Barrier lets nobody out before everybody is in (MPI 3.1, sections 5.3 and 5.4). */
/* run: -n 7 -t 120
 * run: -n 4 -e DENIZEN_EAGER=1024
 * run: -n 7 -t 120 -e DZ_TEST_COLL=again
 * run: -n 7 -t 120 -e DZ_TEST_COLL=later
 * run: -n 7 -t 120 -e DZ_TEST_COLL=often */
#include "modes.h"

#include <time.h>

static double now(void) /* one clock for all ranks of the host, which MPI_Wtime need not be */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned char byte_of(int root, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)root * 17);
}

static void one(MPI_Comm comm, int rank, int root, size_t bytes)
{
    unsigned char *buf = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        buf[i] = rank == root ? byte_of(root, i) : 0xee;
    buf[bytes] = 0x77;
    EXPECT(MPI_Bcast(buf, (int)bytes, MPI_BYTE, root, comm) == MPI_SUCCESS, "%zu bytes", bytes);
    size_t i = 0;
    while (i < bytes && buf[i] == byte_of(root, i))
        i++;
    EXPECT(i == bytes && buf[bytes] == 0x77, "%zu bytes from %d: wrong at %zu", bytes, root, i);
    free(buf);
}

static void sizes(MPI_Comm comm, int rank, int size)
{
    static const size_t bytes[] = {0, 1, 100, 4096, 65536, 65537, 400000, 3000001};
    for (int root = 0; root < size; root++)
        for (unsigned s = 0; s < sizeof bytes / sizeof *bytes; s++)
            if (bytes[s] < 1000000 || root == size / 2)
                one(comm, rank, root, bytes[s]);
    EXPECT(MPI_Bcast(NULL, 0, MPI_INT, 0, comm) == MPI_SUCCESS, "nothing from NULL");
}

/* The root sends every second int of a column; the others receive them side by side, or the other way round. */
static void other_types(MPI_Comm comm, int rank, int size)
{
    enum { LONG = 300000 };
    static int buf[2 * LONG];
    for (int n = 3; n <= LONG; n = n == 3 ? LONG : LONG + 1) {
        MPI_Datatype strided;
        MPI_Type_vector(n, 1, 2, MPI_INT, &strided);
        MPI_Type_commit(&strided);
        for (int turn = 0; turn < 2; turn++) {
            int root = (n + turn) % size, spread = (rank == root) == !turn;
            for (int i = 0; i < 2 * n; i++)
                buf[i] = -1;
            for (int i = 0; rank == root && i < n; i++)
                buf[spread ? 2 * i : i] = i * 3 + turn;
            MPI_Bcast(buf, spread ? 1 : n, spread ? strided : MPI_INT, root, comm);
            int bad = 0;
            for (int i = 0; i < n; i++)
                bad += buf[spread ? 2 * i : i] != i * 3 + turn || (spread && buf[2 * i + 1] != -1);
            EXPECT(!bad, "%d of %d wrong", bad, n);
        }
        MPI_Type_free(&strided);
    }
}

/* One rank after the other comes late. */
static void barrier(MPI_Comm comm, int rank, int size)
{
    for (int late = 0; late < size; late++) {
        double in, out, last_in, first_out;
        MPI_Barrier(comm);
        for (double until = now() + 0.003; rank == late && now() < until;)
            ;
        in = now();
        MPI_Barrier(comm);
        out = now();
        MPI_Allreduce(&in, &last_in, 1, MPI_DOUBLE, MPI_MAX, comm);
        MPI_Allreduce(&out, &first_out, 1, MPI_DOUBLE, MPI_MIN, comm);
        EXPECT(first_out >= last_in, "somebody left %g s before rank %d came", last_in - first_out, late);
    }
}

/* Broadcasts in a row from changing roots overtake each other in time, never in content. */
static void in_a_row(MPI_Comm comm, int rank, int size)
{
    for (int i = 0; i < 300; i++) {
        int x = rank == i % size ? i * 5 : -1;
        MPI_Bcast(&x, 1, MPI_INT, i % size, comm);
        EXPECT(x == i * 5, "round %d: %d", i, x);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 1);
    on_all_sizes(sizes);
    on_all_sizes(other_types);
    on_all_sizes(barrier);
    on_all_sizes(in_a_row);
    return end();
}
