/* coll_gather.c - gather, scatter, allgather and alltoall, with equal and with different blocks, from every root, in
 * place, with blocks of nothing, and with other types at the two ends (MPI 3.1, sections 5.5 to 5.8). */
/* run: -n 7 -t 120
 * run: -n 4 -e DENIZEN_EAGER=1024
 * run: -n 7 -t 120 -e DZ_TEST_COLL=again
 * run: -n 7 -t 120 -e DZ_TEST_COLL=later
 * run: -n 7 -t 120 -e DZ_TEST_COLL=often */
#include "modes.h"

enum { MAX_RANKS = 64 };
static const int blocks[] = {0, 1, 3, 700, 9000}; /* ints */

static int item(int from, int to, int i)
{
    return from * 1000003 + to * 10007 + i;
}

static int *ints(size_t n, int value)
{
    int *p = malloc((n + 1) * sizeof *p);
    for (size_t i = 0; i <= n; i++)
        p[i] = value;
    return p;
}

/* wrong ones among n items that `from` sent to `to` */
static int wrong(const int *at, int n, int from, int to)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += at[i] != item(from, to, i);
    return bad;
}

static void set(int *at, int n, int from, int to)
{
    for (int i = 0; i < n; i++)
        at[i] = item(from, to, i);
}

static void to_and_from_root(MPI_Comm comm, int rank, int size)
{
    for (unsigned b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        int n = blocks[b];
        int *own = ints((size_t)n, -1), *all = ints((size_t)n * (size_t)size, -2);
        for (int root = 0; root < size; root++)
            for (int in_place = 0; in_place < 2; in_place++) {
                int at_root = rank == root, skip = at_root && in_place;
                set(own, n, rank, root);
                if (skip)
                    set(all + rank * n, n, rank, root);
                MPI_Gather(skip ? MPI_IN_PLACE : own, n, MPI_INT, at_root ? all : NULL, n, MPI_INT, root, comm);
                for (int r = 0; at_root && r < size; r++)
                    EXPECT(!wrong(all + r * n, n, r, root), "gather %d from %d of %d to %d", n, r, size, root);
                for (int r = 0; at_root && r < size; r++)
                    set(all + r * n, n, root, r);
                memset(own, 0, (size_t)n * sizeof *own);
                MPI_Scatter(at_root ? all : NULL, n, MPI_INT, skip ? MPI_IN_PLACE : own, n, MPI_INT, root, comm);
                EXPECT(skip || !wrong(own, n, root, rank), "scatter %d from %d of %d", n, root, size);
                EXPECT(own[n] == -1 && all[n * size] == -2, "beyond the end");
            }
        free(own);
        free(all);
    }
}

/* Strided at the root, contiguous elsewhere. */
static void other_types(MPI_Comm comm, int rank, int size)
{
    for (unsigned b = 1; b < sizeof blocks / sizeof *blocks; b++) {
        int n = blocks[b], root = size - 1;
        int *own = ints((size_t)n, -1), *all = ints((size_t)n * (size_t)size * 2, -2);
        MPI_Datatype strided, type;
        MPI_Type_vector(n, 1, 2, MPI_INT, &strided);
        MPI_Type_create_resized(strided, 0, 2 * n * (MPI_Aint)sizeof(int), &type);
        MPI_Type_commit(&type);
        set(own, n, rank, root);
        MPI_Gather(own, n, MPI_INT, all, 1, type, root, comm);
        int bad = 0;
        for (int r = 0; rank == root && r < size; r++)
            for (int i = 0; i < n; i++)
                bad += all[(r * n + i) * 2] != item(r, root, i) || all[(r * n + i) * 2 + 1] != -2;
        EXPECT(!bad, "gather of %d: %d wrong", n, bad);
        MPI_Allgather(own, n, MPI_INT, all, 1, type, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < n; i++)
                bad += all[(r * n + i) * 2] != item(r, root, i) || all[(r * n + i) * 2 + 1] != -2;
        EXPECT(!bad, "allgather of %d: %d wrong", n, bad);
        memset(own, 0, (size_t)n * sizeof *own);
        MPI_Scatter(all, 1, type, own, n, MPI_INT, root, comm);
        EXPECT(!wrong(own, n, rank, root), "scatter of %d", n);
        MPI_Type_free(&type);
        MPI_Type_free(&strided);
        free(own);
        free(all);
    }
}

static void to_all(MPI_Comm comm, int rank, int size)
{
    for (unsigned b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        int n = blocks[b];
        size_t total = (size_t)n * (size_t)size;
        int *own = ints(total, -1), *all = ints(total, -2);
        set(own, n, rank, 0);
        MPI_Allgather(own, n, MPI_INT, all, n, MPI_INT, comm);
        for (int r = 0; r < size; r++)
            EXPECT(!wrong(all + r * n, n, r, 0), "allgather %d from %d of %d", n, r, size);
        memset(all, 0, total * sizeof *all);
        set(all + rank * n, n, rank, 0);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT, comm);
        for (int r = 0; r < size; r++)
            EXPECT(!wrong(all + r * n, n, r, 0), "allgather in place %d from %d of %d", n, r, size);
        for (int r = 0; r < size; r++)
            set(own + r * n, n, rank, r);
        MPI_Alltoall(own, n, MPI_INT, all, n, MPI_INT, comm);
        for (int r = 0; r < size; r++)
            EXPECT(!wrong(all + r * n, n, r, rank), "alltoall %d from %d of %d", n, r, size);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, own, n, MPI_INT, comm);
        for (int r = 0; r < size; r++)
            EXPECT(!wrong(own + r * n, n, r, rank), "alltoall in place %d from %d of %d", n, r, size);
        EXPECT(own[total] == -1 && all[total] == -2, "beyond the end");
        free(own);
        free(all);
    }
}

/* Rank r has r % 3 * k + (r == 1) items; blocks lie in reverse order with a hole of one item between them. */
static int amount(int r, int k)
{
    return r % 3 * k + (r == 1);
}

static int lay(int size, int k, int counts[], int displs[])
{
    int at = 0;
    for (int r = size - 1; r >= 0; r--) {
        counts[r] = amount(r, k);
        displs[r] = at;
        at += counts[r] + 1;
    }
    return at;
}

static void different(MPI_Comm comm, int rank, int size)
{
    for (int k = 0; k <= 5000; k = k ? k * 50 : 2) {
        int counts[MAX_RANKS], displs[MAX_RANKS], total = lay(size, k, counts, displs), n = counts[rank];
        int *own = ints((size_t)n, -1), *all = ints((size_t)total, -2);
        for (int root = 0; root < size; root++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                int at_root = rank == root, skip = at_root && in_place;
                set(own, n, rank, root);
                if (skip)
                    set(all + displs[rank], n, rank, root);
                MPI_Gatherv(skip ? MPI_IN_PLACE : own, n, MPI_INT, all, at_root ? counts : NULL,
                            at_root ? displs : NULL, MPI_INT, root, comm);
                for (int r = 0; at_root && r < size; r++) {
                    EXPECT(!wrong(all + displs[r], counts[r], r, root), "gatherv from %d of %d", r, size);
                    EXPECT(all[displs[r] + counts[r]] == -2, "gatherv filled a hole");
                }
                for (int r = 0; at_root && r < size; r++)
                    set(all + displs[r], counts[r], root, r);
                memset(own, 0, (size_t)n * sizeof *own);
                MPI_Scatterv(all, at_root ? counts : NULL, at_root ? displs : NULL, MPI_INT, skip ? MPI_IN_PLACE : own,
                             n, MPI_INT, root, comm);
                EXPECT(skip || !wrong(own, n, root, rank), "scatterv from %d of %d", root, size);
            }
        }
        for (int in_place = 0; in_place < 2; in_place++) {
            set(own, n, rank, 0);
            for (int i = 0; i < total; i++)
                all[i] = -2;
            if (in_place)
                set(all + displs[rank], n, rank, 0);
            MPI_Allgatherv(in_place ? MPI_IN_PLACE : own, n, MPI_INT, all, counts, displs, MPI_INT, comm);
            for (int r = 0; r < size; r++) {
                EXPECT(!wrong(all + displs[r], counts[r], r, 0), "allgatherv from %d of %d", r, size);
                EXPECT(all[displs[r] + counts[r]] == -2, "allgatherv filled a hole");
            }
        }
        free(own);
        free(all);
    }
}

/* Rank a sends amount((a + b) % size, k) items to rank b: symmetric, so that it can be done in place as well. */
static void all_different(MPI_Comm comm, int rank, int size)
{
    for (int k = 0; k <= 5000; k = k ? k * 50 : 2) {
        int counts[MAX_RANKS], displs[MAX_RANKS], bytes[MAX_RANKS], at = 0;
        MPI_Datatype types[MAX_RANKS];
        for (int r = 0; r < size; r++) {
            counts[r] = amount((rank + r) % size, k);
            displs[r] = at;
            bytes[r] = at * (int)sizeof(int);
            types[r] = MPI_INT;
            at += counts[r] + 1;
        }
        int *own = ints((size_t)at, -1), *all = ints((size_t)at, -2);
        for (int form = 0; form < 4; form++) {
            int *from = form < 2 ? own : all; /* in place: out of and into all */
            for (int i = 0; i < at; i++)
                all[i] = -2;
            for (int r = 0; r < size; r++)
                set(from + displs[r], counts[r], rank, r);
            if (form == 0)
                MPI_Alltoallv(own, counts, displs, MPI_INT, all, counts, displs, MPI_INT, comm);
            else if (form == 1)
                MPI_Alltoallw(own, counts, bytes, types, all, counts, bytes, types, comm);
            else if (form == 2)
                MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, counts, displs, MPI_INT, comm);
            else
                MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, bytes, types, comm);
            for (int r = 0; r < size; r++) {
                EXPECT(!wrong(all + displs[r], counts[r], r, rank), "form %d from %d of %d, k %d", form, r, size, k);
                EXPECT(all[displs[r] + counts[r]] == -2, "form %d filled a hole", form);
            }
        }
        free(own);
        free(all);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 1);
    on_all_sizes(to_and_from_root);
    on_all_sizes(other_types);
    on_all_sizes(to_all);
    on_all_sizes(different);
    on_all_sizes(all_different);
    return end();
}
