/* type_contents.c - what datatypes remember and how long they live: envelope and contents of every constructor,
 * references held by younger types, dup, MPI-1's names and markers, bounds that stick, limits, wrong arguments. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

#undef MPI_Type_struct
#undef MPI_Type_hvector
#undef MPI_Type_hindexed
#undef MPI_Type_extent
#undef MPI_Type_lb
#undef MPI_Type_ub
#undef MPI_Address
int MPI_Type_struct(int, int[], MPI_Aint[], MPI_Datatype[], MPI_Datatype *);
int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype *);
int MPI_Type_hindexed(int, int[], MPI_Aint[], MPI_Datatype, MPI_Datatype *);
int MPI_Type_extent(MPI_Datatype, MPI_Aint *);
int MPI_Type_lb(MPI_Datatype, MPI_Aint *);
int MPI_Type_ub(MPI_Datatype, MPI_Aint *);
int MPI_Address(void *, MPI_Aint *);
#undef MPI_Aint_add
#undef MPI_Aint_diff
MPI_Aint MPI_Aint_add(MPI_Aint, MPI_Aint);
MPI_Aint MPI_Aint_diff(MPI_Aint, MPI_Aint);

static int failures;
#define CHECK(cond, ...)                                                                                             \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            printf("FAIL: line %d: ", __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
            failures++;                                                                                              \
        }                                                                                                            \
    } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS, "%s", #call)
#define FAILS(call, class) CHECK((call) == (class), "%s is not %s", #call, #class)

/* Frees t after comparing what it says about itself. */
static void expect(MPI_Datatype t, int combiner, int ni, const int *ints, int na, const MPI_Aint *addrs, int nd,
                   const MPI_Datatype *types)
{
    int gi = -1, ga = -1, gd = -1, gc = -1, ri[32];
    MPI_Aint ra[8];
    MPI_Datatype rt[8];
    OK(MPI_Type_get_envelope(t, &gi, &ga, &gd, &gc));
    CHECK(gi == ni && ga == na && gd == nd && gc == combiner, "envelope %d %d %d %d, should be %d %d %d %d", gi, ga, gd,
          gc, ni, na, nd, combiner);
    if (gi == ni && ga == na && gd == nd) {
        OK(MPI_Type_get_contents(t, 32, 8, 8, ri, ra, rt));
        CHECK(!ni || !memcmp(ri, ints, (size_t)ni * sizeof ints[0]), "combiner %d: other integers", combiner);
        CHECK(!na || !memcmp(ra, addrs, (size_t)na * sizeof addrs[0]), "combiner %d: other addresses", combiner);
        CHECK(!nd || !memcmp(rt, types, (size_t)nd * sizeof types[0]), "combiner %d: other types", combiner);
        if (ni)
            FAILS(MPI_Type_get_contents(t, ni - 1, na, nd, ri, ra, rt), MPI_ERR_ARG);
        FAILS(MPI_Type_get_contents(t, ni, na, nd - 1, ri, ra, rt), MPI_ERR_ARG);
        FAILS(MPI_Type_get_contents(t, ni, na, nd, ri, ra, NULL), MPI_ERR_ARG);
    }
    OK(MPI_Type_free(&t));
    CHECK(t == MPI_DATATYPE_NULL, "free leaves the handle");
}

static void contents(void)
{
    MPI_Datatype t, of[] = {MPI_DOUBLE, MPI_INT};
    OK(MPI_Type_contiguous(7, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_CONTIGUOUS, 1, (int[]){7}, 0, NULL, 1, of);
    OK(MPI_Type_vector(3, 2, -5, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_VECTOR, 3, (int[]){3, 2, -5}, 0, NULL, 1, of);
    OK(MPI_Type_create_hvector(3, 2, 77, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_HVECTOR, 2, (int[]){3, 2}, 1, (MPI_Aint[]){77}, 1, of);
    OK(MPI_Type_indexed(2, (int[]){1, 2}, (int[]){5, 3}, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_INDEXED, 5, (int[]){2, 1, 2, 5, 3}, 0, NULL, 1, of);
    OK(MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){50, 30}, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_HINDEXED, 3, (int[]){2, 1, 2}, 2, (MPI_Aint[]){50, 30}, 1, of);
    OK(MPI_Type_create_indexed_block(2, 4, (int[]){5, 3}, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_INDEXED_BLOCK, 4, (int[]){2, 4, 5, 3}, 0, NULL, 1, of);
    OK(MPI_Type_create_hindexed_block(2, 4, (MPI_Aint[]){50, 30}, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_HINDEXED_BLOCK, 2, (int[]){2, 4}, 2, (MPI_Aint[]){50, 30}, 1, of);
    OK(MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){8, 0}, of, &t));
    expect(t, MPI_COMBINER_STRUCT, 3, (int[]){2, 1, 2}, 2, (MPI_Aint[]){8, 0}, 2, of);
    OK(MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 2}, MPI_ORDER_C, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_SUBARRAY, 8, (int[]){2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C}, 0, NULL, 1, of);
    OK(MPI_Type_create_darray(4, 3, 2, (int[]){8, 9}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                              (int[]){-1, 2}, (int[]){2, 2}, MPI_ORDER_FORTRAN, MPI_DOUBLE, &t));
    expect(t, MPI_COMBINER_DARRAY, 12, (int[]){4, 3, 2, 8, 9, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, -1, 2, 2, 2,
                                               MPI_ORDER_FORTRAN}, 0, NULL, 1, of);
    OK(MPI_Type_create_resized(MPI_DOUBLE, -8, 32, &t));
    expect(t, MPI_COMBINER_RESIZED, 0, NULL, 2, (MPI_Aint[]){-8, 32}, 1, of);
    OK(MPI_Type_dup(MPI_DOUBLE, &t));
    CHECK(t->committed, "the dup of a committed type is not committed");
    expect(t, MPI_COMBINER_DUP, 0, NULL, 0, NULL, 1, of);
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &t));
    CHECK(t->size == 0 && t->extent == 0, "an empty struct is not empty");
    OK(MPI_Type_free(&t));
}

/* The older types of a freed type's tree stay usable, and come back out of the contents. */
static void lifetime(void)
{
    MPI_Datatype inner, outer, back, dup;
    int n;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_contiguous(2, inner, &outer));
    struct dz_type *same = inner;
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_get_contents(outer, 1, 0, 1, &n, NULL, &back));
    CHECK(back == same && n == 2, "contents give another type");
    OK(MPI_Type_dup(outer, &dup));
    CHECK(!dup->committed, "the dup of an uncommitted type is committed");
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_size(back, &n));
    CHECK(n == 8, "the inner type has size %d", n);
    OK(MPI_Type_free(&back));
    OK(MPI_Type_size(dup, &n));
    CHECK(n == 16, "the dup has size %d", n);
    OK(MPI_Type_free(&dup));

    MPI_Datatype t = MPI_INT, next; /* a long chain is freed without deep recursion */
    for (int i = 0; i < 300000; i++) {
        if (MPI_Type_contiguous(1, t, &next))
            break;
        if (i)
            MPI_Type_free(&t);
        t = next;
    }
    OK(MPI_Type_free(&t));
}

static void bounds(void)
{
    MPI_Datatype small, t;
    MPI_Aint lb, extent, ub;
    OK(MPI_Type_create_resized(MPI_INT, -3, 19, &small));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 100}, (MPI_Datatype[]){small, MPI_DOUBLE}, &t));
    OK(MPI_Type_get_extent(t, &lb, &extent));
    CHECK(lb == -3 && extent == 19, "set bounds do not stick: %td + %td", lb, extent);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&small));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &t));
    OK(MPI_Type_get_extent(t, &lb, &extent));
    CHECK(lb == 0 && extent == 16 && t->size == 9 && !t->contig, "a struct is not padded: %td + %td", lb, extent);
    OK(MPI_Type_free(&t));

    extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub;
    MPI_Datatype old[] = {(MPI_Datatype)&ompi_mpi_lb, MPI_INT, (MPI_Datatype)&ompi_mpi_ub};
    OK(MPI_Type_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){-8, 4, 40}, old, &t));
    OK(MPI_Type_lb(t, &lb));
    OK(MPI_Type_ub(t, &ub));
    OK(MPI_Type_extent(t, &extent));
    CHECK(lb == -8 && ub == 40 && extent == 48 && t->size == 4, "markers: %td to %td", lb, ub);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_hvector(2, 1, 9, MPI_CHAR, &t));
    CHECK(t->combiner == MPI_COMBINER_HVECTOR && t->true_extent == 10, "MPI_Type_hvector");
    OK(MPI_Type_free(&t));
    OK(MPI_Type_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){7, 0}, MPI_CHAR, &t));
    CHECK(t->combiner == MPI_COMBINER_HINDEXED && t->true_extent == 8, "MPI_Type_hindexed");
    OK(MPI_Type_free(&t));
    int here;
    MPI_Aint a, b;
    OK(MPI_Address(&here, &a));
    OK(MPI_Get_address(&here, &b));
    CHECK(a == b && (void *)a == (void *)&here, "addresses differ");
    CHECK(MPI_Aint_add(a, 5) == a + 5 && MPI_Aint_diff(b, a + 5) == -5, "Aint_add, Aint_diff");
}

/* What contig promises, and what it must not miss. */
static void contig(void)
{
    MPI_Datatype t, u;
    OK(MPI_Type_vector(1000, 4, 4, MPI_INT, &t));
    CHECK(t->contig && t->nblocks == 1 && t->elem == MPI_INT, "a dense vector is not contiguous");
    OK(MPI_Type_create_resized(t, 0, 16004, &u));
    CHECK(!u->contig && u->nblocks == 1, "a type with a gap behind it is contiguous");
    OK(MPI_Type_free(&u));
    OK(MPI_Type_create_resized(t, 4, 16000, &u));
    CHECK(!u->contig, "a type with another lower bound is contiguous");
    OK(MPI_Type_free(&u));
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_FLOAT}, &t));
    CHECK(t->contig && !t->elem, "a dense struct is not contiguous, or homogeneous");
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){4, 0}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &t));
    CHECK(!t->contig && t->nblocks == 2, "a swapped struct is contiguous");
    OK(MPI_Type_free(&t));
}

static void limits(void)
{
    MPI_Datatype t = MPI_DATATYPE_NULL, big, huge;
    FAILS(MPI_Type_vector(INT_MAX, 1, 2, MPI_CHAR, &t), MPI_ERR_NO_MEM);
    FAILS(MPI_Type_vector(INT_MAX, 2, 3, MPI_CHAR, &t), MPI_ERR_NO_MEM);
    CHECK(t == MPI_DATATYPE_NULL, "a failed constructor changes the handle");
    OK(MPI_Type_contiguous(INT_MAX, MPI_DOUBLE, &big));
    int n;
    MPI_Count nx;
    OK(MPI_Type_size(big, &n));
    OK(MPI_Type_size_x(big, &nx));
    CHECK(n == MPI_UNDEFINED && nx == 8ll * INT_MAX, "sizes %d, %lld", n, nx);
    OK(MPI_Type_contiguous(INT_MAX / 8, big, &huge));
    FAILS(MPI_Type_contiguous(INT_MAX, huge, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_hvector(3, 1, PTRDIFF_MAX / 2, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_hvector(3, 2, PTRDIFF_MAX / 2, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_resized(MPI_INT, PTRDIFF_MAX, 2, &t), MPI_ERR_ARG);
    OK(MPI_Type_free(&huge));
    OK(MPI_Type_free(&big));
    OK(MPI_Type_vector(1000000, 1, 2, MPI_DOUBLE, &big));
    CHECK(big->nblocks == 1000000 && big->grid.per_row == 1000000, "a large vector has %u runs", big->nblocks);
    OK(MPI_Type_free(&big));
    int where; /* absolute addresses */
    MPI_Aint a;
    OK(MPI_Get_address(&where, &a));
    OK(MPI_Type_create_hindexed(1, (int[]){1}, &a, MPI_INT, &t));
    OK(MPI_Type_commit(&t));
    int at = 0, value = 4711;
    where = 0;
    OK(MPI_Unpack(&value, sizeof value, &at, MPI_BOTTOM, 1, t, MPI_COMM_SELF));
    CHECK(where == 4711, "MPI_BOTTOM with an absolute type");
    OK(MPI_Type_free(&t));
}

static void wrong(void)
{
    MPI_Datatype t;
    int one[] = {1}, minus[] = {-1}, n;
    MPI_Aint a[] = {0};
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    FAILS(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    FAILS(MPI_Type_vector(1, -1, 1, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_indexed(1, minus, one, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_indexed(1, NULL, one, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_indexed(1, one, NULL, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_struct(1, one, a, (MPI_Datatype[]){MPI_DATATYPE_NULL}, &t), MPI_ERR_TYPE);
    FAILS(MPI_Type_create_struct(-1, one, a, (MPI_Datatype[]){MPI_INT}, &t), MPI_ERR_COUNT);
    FAILS(MPI_Type_create_subarray(0, one, one, one, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_subarray(1, one, one, (int[]){0}, 99, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_darray(2, 0, 1, one, (int[]){MPI_DISTRIBUTE_BLOCK}, minus, one, MPI_ORDER_C, MPI_INT, &t),
          MPI_ERR_ARG);
    FAILS(MPI_Type_create_darray(2, 0, 1, (int[]){9}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){4}, (int[]){2},
                                 MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_create_darray(2, 2, 1, (int[]){9}, (int[]){MPI_DISTRIBUTE_BLOCK}, minus, (int[]){2}, MPI_ORDER_C,
                                 MPI_INT, &t), MPI_ERR_ARG);
    FAILS(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
    FAILS(MPI_Type_commit(NULL), MPI_ERR_ARG);
    FAILS(MPI_Get_address(one, NULL), MPI_ERR_ARG);
    FAILS(MPI_Get_count(NULL, MPI_INT, &n), MPI_ERR_ARG);
    MPI_Status s = {0};
    FAILS(MPI_Get_count(&s, MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
    FAILS(MPI_Get_elements(&s, MPI_INT, NULL), MPI_ERR_ARG);
    FAILS(MPI_Status_set_elements(&s, MPI_INT, -1), MPI_ERR_COUNT);
}

static void counts(void)
{
    MPI_Status s = {0};
    MPI_Datatype none, three;
    int n;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Get_count(&s, none, &n));
    CHECK(n == 0, "nothing of nothing is %d", n);
    OK(MPI_Get_elements(&s, none, &n));
    CHECK(n == 0, "nothing of nothing has %d elements", n);
    OK(MPI_Type_contiguous(3, MPI_INT, &three));
    s._ucount = 20;
    OK(MPI_Get_count(&s, three, &n));
    CHECK(n == MPI_UNDEFINED, "part of an element counts as %d", n);
    s._ucount = 24;
    OK(MPI_Get_count(&s, three, &n));
    CHECK(n == 2, "two elements count as %d", n);
    s._ucount = 5ull << 30;
    OK(MPI_Get_count(&s, MPI_CHAR, &n));
    CHECK(n == MPI_UNDEFINED, "a count beyond int is %d", n);
    MPI_Count nx;
    OK(MPI_Get_elements_x(&s, MPI_CHAR, &nx));
    CHECK(nx == 5ll << 30, "Get_elements_x: %lld", nx);
    OK(MPI_Status_set_elements_x(&s, three, 7ll << 30));
    CHECK(s._ucount == 28ull << 30, "Status_set_elements_x: %zu", s._ucount);
    OK(MPI_Type_free(&none));
    OK(MPI_Type_free(&three));
}

static void packing(void)
{
    int in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0}, n, at = 0;
    char buf[32];
    MPI_Datatype t;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &t));
    FAILS(MPI_Pack(in, 1, t, buf, sizeof buf, &at, MPI_COMM_SELF), MPI_ERR_TYPE); /* not committed */
    OK(MPI_Type_commit(&t));
    OK(MPI_Pack_size(1, t, MPI_COMM_SELF, &n));
    CHECK(n >= 12, "Pack_size is %d", n);
    FAILS(MPI_Pack_size(INT_MAX, t, MPI_COMM_SELF, &n), MPI_ERR_COUNT);
    OK(MPI_Pack(in, 1, t, buf, sizeof buf, &at, MPI_COMM_SELF));
    OK(MPI_Pack("xy", 2, MPI_CHAR, buf, sizeof buf, &at, MPI_COMM_SELF));
    CHECK(at == 14, "position is %d", at);
    FAILS(MPI_Pack(in, 2, t, buf, sizeof buf, &at, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
    FAILS(MPI_Pack(in, 1, t, NULL, sizeof buf, &at, MPI_COMM_SELF), MPI_ERR_ARG);
    FAILS(MPI_Pack(in, 1, t, buf, sizeof buf, NULL, MPI_COMM_SELF), MPI_ERR_ARG);
    FAILS(MPI_Pack(in, 1, t, buf, sizeof buf, &at, MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK(at == 14, "a failed pack moves the position to %d", at);
    int end = at;
    char xy[2];
    at = 0;
    OK(MPI_Unpack(buf, end, &at, out, 1, t, MPI_COMM_SELF));
    OK(MPI_Unpack(buf, end, &at, xy, 2, MPI_CHAR, MPI_COMM_SELF));
    CHECK(!memcmp(out, (int[]){1, 0, 3, 0, 5, 0}, sizeof out), "unpacked other integers");
    CHECK(xy[0] == 'x' && xy[1] == 'y', "unpacked other characters");
    FAILS(MPI_Unpack(buf, end, &at, xy, 1, MPI_CHAR, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
    at = -1;
    FAILS(MPI_Unpack(buf, end, &at, xy, 1, MPI_CHAR, MPI_COMM_SELF), MPI_ERR_ARG);
    OK(MPI_Type_free(&t));
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    contents();
    lifetime();
    bounds();
    contig();
    limits();
    wrong();
    counts();
    packing();
    MPI_Finalize();
    return failures != 0;
}
