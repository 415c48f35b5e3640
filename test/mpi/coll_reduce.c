/* coll_reduce.c - MPI_Reduce and MPI_Allreduce against a loop over the ranks: operations, types, in place, no elements,
 * operations that do not commute, types with gaps, and equal bits on all ranks (MPI 3.1, section 5.9). */
/* run: -n 7 -t 240
 * run: -n 4 -t 120 -e DENIZEN_CMA=0
 * run: -n 4 -t 240 -e DZ_TEST_COLL=again
 * run: -n 4 -t 240 -e DZ_TEST_COLL=later
 * run: -n 4 -t 240 -e DZ_TEST_COLL=often */
#include "modes.h"

#include <math.h>
#include <stdint.h>

/* Element i of rank r: small, so that products and sums of all types stay exact. */
static int part(int r, int i)
{
    return (r * 7 + i * 3 + (r ^ i)) % 3 + (i % 5 == 0);
}

static long long apply(MPI_Op op, long long a, long long b)
{
    if (op == MPI_SUM) return a + b;
    if (op == MPI_PROD) return a * b;
    if (op == MPI_MAX) return a > b ? a : b;
    if (op == MPI_MIN) return a < b ? a : b;
    if (op == MPI_LAND) return a && b;
    if (op == MPI_LOR) return a || b;
    if (op == MPI_LXOR) return !a != !b;
    if (op == MPI_BAND) return a & b;
    if (op == MPI_BOR) return a | b;
    return a ^ b;
}

static long long expected(MPI_Op op, int size, int i)
{
    long long v = part(0, i);
    for (int r = 1; r < size; r++)
        v = apply(op, v, part(r, i));
    return v;
}

#define TYPES(X)                                                                                                     \
    X(signed char, MPI_SIGNED_CHAR) X(uint8_t, MPI_UINT8_T) X(short, MPI_SHORT) X(int, MPI_INT)                      \
    X(unsigned, MPI_UNSIGNED) X(long, MPI_LONG) X(uint64_t, MPI_UINT64_T) X(float, MPI_FLOAT) X(double, MPI_DOUBLE)  \
    X(long double, MPI_LONG_DOUBLE)

static void put(MPI_Datatype type, void *buf, int i, long long v)
{
#define X(c, t)                                                                                                      \
    if (type == t)                                                                                                   \
        ((c *)buf)[i] = (c)v;
    TYPES(X)
#undef X
}

static long long get(MPI_Datatype type, const void *buf, int i)
{
#define X(c, t)                                                                                                      \
    if (type == t)                                                                                                   \
        return (long long)((const c *)buf)[i];
    TYPES(X)
#undef X
    return -1;
}

static void fill(MPI_Datatype type, void *buf, int count, int rank)
{
    for (int i = 0; i < count; i++)
        put(type, buf, i, part(rank, i));
}

/* What remains of v in type: integers wrap. */
static long long as(MPI_Datatype type, long long v)
{
    long double cell;
    put(type, &cell, 0, v);
    return get(type, &cell, 0);
}

static void verify(const char *what, MPI_Datatype type, MPI_Op op, const void *buf, int count, int size)
{
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    for (int i = 0; i < count; i++) {
        if (get(type, buf, i) == as(type, expected(op, size, i)))
            continue;
        MPI_Type_get_name(type, name, &n);
        EXPECT(0, "%s of %d %s, %d ranks: element %d is %lld, not %lld", what, count, name, size, i, get(type, buf, i),
               as(type, expected(op, size, i)));
        return;
    }
    EXPECT(get(type, buf, count) == 77, "%s wrote beyond %d elements", what, count);
}

static void one(MPI_Comm comm, int rank, int size, MPI_Datatype type, MPI_Op op, int count)
{
    char *own = malloc(((size_t)count + 1) * 16), *out = malloc(((size_t)count + 1) * 16);
    int root = (count + size / 2) % size;
    fill(type, own, count, rank);
    put(type, out, count, 77);
    MPI_Reduce(own, rank == root ? out : NULL, count, type, op, root, comm);
    if (rank == root)
        verify("reduce", type, op, out, count, size);
    fill(type, out, count, rank);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : out, rank == root ? out : NULL, count, type, op, root, comm);
    if (rank == root)
        verify("reduce in place", type, op, out, count, size);
    memset(out, 9, (size_t)count * 16);
    put(type, out, count, 77);
    MPI_Allreduce(own, out, count, type, op, comm);
    verify("allreduce", type, op, out, count, size);
    fill(type, out, count, rank);
    MPI_Allreduce(MPI_IN_PLACE, out, count, type, op, comm);
    verify("allreduce in place", type, op, out, count, size);
    for (int i = 0; i < count; i++)
        if (get(type, own, i) != part(rank, i)) {
            EXPECT(0, "the send buffer was changed");
            break;
        }
    free(own);
    free(out);
}

static void ops_and_types(MPI_Comm comm, int rank, int size)
{
    static const int counts[] = {1, 5, 1000};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_LAND,
                          MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
#define X(c, t) t,
    const MPI_Datatype types[] = {TYPES(X)};
#undef X
    for (unsigned o = 0; o < sizeof ops / sizeof *ops; o++)
        for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
            if (o >= 4 && (types[t] == MPI_FLOAT || types[t] == MPI_DOUBLE || types[t] == MPI_LONG_DOUBLE))
                continue; /* logical and bit operations are for integers */
            one(comm, rank, size, types[t], ops[o], counts[(o + t) % 3]);
        }
}

static void long_ones(MPI_Comm comm, int rank, int size)
{
    one(comm, rank, size, MPI_INT, MPI_SUM, 300007);
    one(comm, rank, size, MPI_DOUBLE, MPI_MAX, 40000);
    one(comm, rank, size, MPI_SHORT, MPI_BXOR, 33333);
}

static void nothing(MPI_Comm comm, int rank, int size)
{
    (void)rank;
    int out = 77;
    for (int root = 0; root < size; root++)
        EXPECT(MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, root, comm) == MPI_SUCCESS, "no elements");
    EXPECT(MPI_Allreduce(NULL, NULL, 0, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS, "no elements");
    EXPECT(MPI_Allreduce(MPI_IN_PLACE, &out, 0, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && out == 77, "no elements");
}

static void locations(MPI_Comm comm, int rank, int size)
{
    struct { double v; int at; } own[3] = {{-rank, rank}, {5, rank}, {rank == size / 2 ? -100 : rank, rank}}, out[3];
    int low[2] = {(rank + 1) % size, rank}, least[2];
    MPI_Allreduce(own, out, 3, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    EXPECT(out[0].v == -(size - 1) && out[0].at == size - 1, "%g at %d", out[0].v, out[0].at);
    EXPECT(out[1].v == 5 && out[1].at == 0, "of equal ones the lowest: %d", out[1].at);
    EXPECT(out[2].v == -100 && out[2].at == size / 2, "%g at %d", out[2].v, out[2].at);
    MPI_Allreduce(low, least, 1, MPI_2INT, MPI_MAXLOC, comm);
    EXPECT(least[0] == size - 1 && least[1] == (size - 2 + size) % size, "%d at %d", least[0], least[1]);
}

/* ---- 2 x 2 matrices over the integers modulo a prime: associative, not commutative */
enum { PRIME = 10007 };
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        const int *a = (int *)in + 4 * i;
        int *b = (int *)inout + 4 * i, c[4];
        for (int k = 0; k < 4; k++)
            c[k] = (int)(((long)a[k / 2 * 2] * b[k % 2] + (long)a[k / 2 * 2 + 1] * b[k % 2 + 2]) % PRIME);
        memcpy(b, c, sizeof c);
    }
}

static void matrix(int *m, int rank, int i)
{
    m[0] = rank + 1, m[1] = i % 11, m[2] = 1, m[3] = (rank * i) % 13;
}

static void verify_product(const char *what, const int *out, int count, int size)
{
    int one_more = 1;
    for (int i = 0; i < count; i++) {
        int want[4], next[4];
        matrix(next, size - 1, i);
        memcpy(want, next, sizeof want);
        for (int r = size - 2; r >= 0; r--) {
            matrix(next, r, i);
            multiply(next, want, &one_more, NULL);
        }
        if (memcmp(out + 4 * i, want, sizeof want)) {
            EXPECT(0, "%s of %d matrices, %d ranks: element %d is wrong", what, count, size, i);
            return;
        }
    }
}

static void not_commutative(MPI_Comm comm, int rank, int size)
{
    static const int counts[] = {1, 9, 70000};
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op);
    for (int c = 0; c < 3; c++) {
        int *own = malloc((size_t)counts[c] * 16), *out = malloc((size_t)counts[c] * 16);
        for (int i = 0; i < counts[c]; i++)
            matrix(own + 4 * i, rank, i);
        for (int root = 0; root < size; root += c == 2 ? size : 1) {
            MPI_Reduce(own, out, counts[c], type, op, root, comm);
            if (rank == root)
                verify_product("reduce", out, counts[c], size);
        }
        MPI_Allreduce(own, out, counts[c], type, op, comm);
        verify_product("allreduce", out, counts[c], size);
        MPI_Allreduce(MPI_IN_PLACE, own, counts[c], type, op, comm);
        verify_product("allreduce in place", own, counts[c], size);
        free(own);
        free(out);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* ---- pairs of ints, each followed by a gap that is the user's */
static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *n; i++) {
        int *a = (int *)((char *)in + i * extent), *b = (int *)((char *)inout + i * extent);
        b[0] += a[0];
        b[2] += a[2];
    }
}

static void with_gaps(MPI_Comm comm, int rank, int size)
{
    enum { LONG = 150000 };
    static int own[LONG][4], out[LONG][4];
    MPI_Datatype vector, type;
    MPI_Op op;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector); /* x _ x, and one more int between elements */
    MPI_Type_create_resized(vector, 0, 16, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_pairs, 1, &op);
    for (int count = 1; count <= LONG; count = count == 1 ? 10 : count == 10 ? LONG : LONG + 1) {
        for (int i = 0; i < count; i++)
            for (int k = 0; k < 4; k++)
                own[i][k] = k % 2 ? -1 : rank + i + k, out[i][k] = -5;
        MPI_Allreduce(own, out, count, type, op, comm);
        int bad = 0, all = size * (size - 1) / 2;
        for (int i = 0; i < count; i++)
            bad += out[i][0] != all + size * i || out[i][1] != -5 || out[i][2] != all + size * (i + 2) ||
                   out[i][3] != -5;
        EXPECT(!bad, "%d of %d pairs are wrong on %d ranks", bad, count, size);
        memset(out, 0xff, sizeof out);
        MPI_Reduce(own, out, count, type, op, size - 1, comm);
        for (int i = bad = 0; i < count && rank == size - 1; i++)
            bad += out[i][0] != all + size * i || out[i][1] != -1 || out[i][2] != all + size * (i + 2) ||
                   out[i][3] != -1;
        EXPECT(!bad, "%d of %d pairs are wrong on %d ranks", bad, count, size);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&vector);
}

/* ---- the same bits everywhere, for sums that depend on their order, NaNs and signed zeros */
static void same_bits(MPI_Comm comm, int rank, int size)
{
    (void)size;
    static const int counts[] = {1, 13, 30001};
    for (int c = 0; c < 3; c++) {
        int n = counts[c];
        double *own = malloc((size_t)n * sizeof *own), *out = malloc((size_t)n * sizeof *out),
               *first = malloc((size_t)n * sizeof *first);
        for (int i = 0; i < n; i++) {
            own[i] = ldexp(1.0 + rank / 3.0, (rank * 11 + i * 5) % 60 - 30) * (i % 2 ? -1 : 1);
            if (i % 17 == 3)
                own[i] = rank % 2 ? NAN : -NAN;
            if (i % 17 == 4)
                own[i] = rank % 2 ? 0.0 : -0.0;
        }
        const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
        for (int o = 0; o < 4; o++) {
            MPI_Allreduce(own, out, n, MPI_DOUBLE, ops[o], comm);
            memcpy(first, out, (size_t)n * sizeof *out);
            MPI_Bcast(first, n, MPI_DOUBLE, 0, comm);
            EXPECT(!memcmp(first, out, (size_t)n * sizeof *out), "%d elements, operation %d: other bits than rank 0's",
                   n, o);
        }
        free(own);
        free(out);
        free(first);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 1);
    on_all_sizes(nothing);
    on_all_sizes(ops_and_types);
    on_all_sizes(long_ones);
    on_all_sizes(locations);
    on_all_sizes(not_commutative);
    on_all_sizes(with_gaps);
    on_all_sizes(same_bits);
    return end();
}
