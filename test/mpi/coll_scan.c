/* coll_scan.c - scan, exscan, reduce_scatter and reduce_scatter_block against a loop over the ranks, in place, with an
 * operation that does not commute, with blocks of nothing (MPI 3.1, sections 5.10 and 5.11). */
/* run: -n 7 -t 120
 * run: -n 5 -t 120 -e DZ_TEST_COLL=again
 * run: -n 5 -t 120 -e DZ_TEST_COLL=later
 * run: -n 5 -t 120 -e DZ_TEST_COLL=often */
#include "modes.h"

enum { MAX_RANKS = 64 };
static const int counts[] = {0, 1, 8, 6000};

/* x -> a x + b modulo a prime, as a pair (a, b); f then g: associative, not commutative */
struct map {
    int a, b;
};
enum { PRIME = 30011 };

static struct map then(struct map f, struct map g)
{
    return (struct map){(int)((long)f.a * g.a % PRIME), (int)(((long)g.a * f.b + g.b) % PRIME)};
}

static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((struct map *)inout)[i] = then(((struct map *)in)[i], ((struct map *)inout)[i]);
}

static struct map map_of(int rank, int i)
{
    return (struct map){(rank * 3 + i) % 17 + 2, (rank + i * 7) % 23};
}

/* of ranks 0 to last */
static struct map chain(int last, int i)
{
    struct map m = map_of(0, i);
    for (int r = 1; r <= last; r++)
        m = then(m, map_of(r, i));
    return m;
}

static int wrong(const struct map *at, int n, int last, int first_item)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        struct map want = chain(last, first_item + i);
        bad += at[i].a != want.a || at[i].b != want.b;
    }
    return bad;
}

static struct map *maps(int n, int rank)
{
    struct map *m = malloc(((size_t)n + 1) * sizeof *m);
    for (int i = 0; i < n; i++)
        m[i] = map_of(rank, i);
    m[n] = (struct map){-7, -7};
    return m;
}

static MPI_Datatype type;
static MPI_Op op;

static void prefixes(MPI_Comm comm, int rank, int size)
{
    (void)size;
    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        int n = counts[c];
        struct map *own = maps(n, rank), *out = maps(n, 99);
        MPI_Scan(own, out, n, type, op, comm);
        EXPECT(!wrong(out, n, rank, 0), "scan of %d", n);
        MPI_Exscan(own, rank ? out : NULL, n, type, op, comm);
        EXPECT(!rank || !wrong(out, n, rank - 1, 0), "exscan of %d", n);
        EXPECT(!n || (own[n - 1].a == map_of(rank, n - 1).a && out[n].a == -7), "other memory was written");
        for (int i = 0; i < n; i++)
            out[i] = own[i];
        MPI_Scan(MPI_IN_PLACE, out, n, type, op, comm);
        EXPECT(!wrong(out, n, rank, 0), "scan of %d in place", n);
        MPI_Exscan(MPI_IN_PLACE, own, n, type, op, comm);
        EXPECT(!rank || !wrong(own, n, rank - 1, 0), "exscan of %d in place", n);
        free(own);
        free(out);
    }
}

static void scattered(MPI_Comm comm, int rank, int size)
{
    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        int each = counts[c], parts[MAX_RANKS], total = 0, before = 0;
        for (int r = 0; r < size; r++) {
            parts[r] = r % 2 ? each : each / 2 + r;
            before += r < rank ? parts[r] : 0;
            total += parts[r];
        }
        struct map *own = maps(total, rank), *out = maps(total, 99);
        MPI_Reduce_scatter(own, out, parts, type, op, comm);
        EXPECT(!wrong(out, parts[rank], size - 1, before), "reduce_scatter of %d", total);
        MPI_Reduce_scatter(MPI_IN_PLACE, own, parts, type, op, comm);
        EXPECT(!wrong(own, parts[rank], size - 1, before), "reduce_scatter of %d in place", total);
        free(own);
        free(out);
        own = maps(each * size, rank);
        out = maps(each, 99);
        MPI_Reduce_scatter_block(own, out, each, type, op, comm);
        EXPECT(!wrong(out, each, size - 1, each * rank), "reduce_scatter_block of %d", each);
        MPI_Reduce_scatter_block(MPI_IN_PLACE, own, each, type, op, comm);
        EXPECT(!wrong(own, each, size - 1, each * rank), "reduce_scatter_block of %d in place", each);
        EXPECT(out[each].a == -7, "beyond the end");
        free(own);
        free(out);
    }
}

/* Operations that commute take other ways. */
static void sums(MPI_Comm comm, int rank, int size)
{
    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        int n = counts[c], bad = 0;
        long *own = malloc(((size_t)n * (size_t)size + 1) * sizeof *own), *out = malloc(((size_t)n + 1) * sizeof *out);
        for (int i = 0; i < n * size; i++)
            own[i] = rank * 1000 + i;
        MPI_Reduce_scatter_block(own, out, n, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < n; i++)
            bad += out[i] != 1000l * size * (size - 1) / 2 + (long)size * (rank * n + i);
        EXPECT(!bad, "reduce_scatter_block of %d: %d wrong", n, bad);
        MPI_Scan(own, out, n, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < n; i++)
            bad += out[i] != 1000l * rank * (rank + 1) / 2 + (long)(rank + 1) * i;
        EXPECT(!bad, "scan of %d: %d wrong", n, bad);
        free(own);
        free(out);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 1);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    on_all_sizes(prefixes);
    on_all_sizes(scattered);
    on_all_sizes(sums);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    return end();
}
