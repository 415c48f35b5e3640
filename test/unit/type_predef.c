/* type_predef.c - the predefined datatypes: sizes, bounds, names, what may not be done to them, and that the names
 * without a type behind them are refused. */
#include <complex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "mpi/core.h"

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

/* size in bytes, extent (0: the same) */
static void expect(MPI_Datatype t, const char *name, size_t size, size_t extent)
{
    int n = -1, len = -1;
    MPI_Count nx = -1, lbx = -1, ex = -1;
    MPI_Aint lb = -1, e = -1, tlb = -1, te = -1;
    char text[MPI_MAX_OBJECT_NAME] = "";
    if (!extent)
        extent = size;
    CHECK(!MPI_Type_size(t, &n) && (size_t)n == size, "%s has size %d, should be %zu", name, n, size);
    CHECK(!MPI_Type_size_x(t, &nx) && (size_t)nx == size, "%s has size_x %lld", name, nx);
    CHECK(!MPI_Type_get_extent(t, &lb, &e) && lb == 0 && (size_t)e == extent, "%s: lb %td, extent %td", name, lb, e);
    CHECK(!MPI_Type_get_extent_x(t, &lbx, &ex) && lbx == 0 && (size_t)ex == extent, "%s: extent_x %lld", name, ex);
    CHECK(!MPI_Type_get_true_extent(t, &tlb, &te) && tlb == 0 && te <= e && (size_t)te >= size, "%s: %td", name, te);
    CHECK(!MPI_Type_get_name(t, text, &len) && !strcmp(text, name), "%s is called %s", name, text);
    CHECK(len == (int)strlen(name), "%s has a name of %d characters", name, len);
    int ni = -1, na = -1, nd = -1, c = -1;
    CHECK(!MPI_Type_get_envelope(t, &ni, &na, &nd, &c) && c == MPI_COMBINER_NAMED, "%s: combiner %d", name, c);
    CHECK(ni == 0 && na == 0 && nd == 0, "%s: an envelope of %d, %d, %d", name, ni, na, nd);
    CHECK(MPI_Type_get_contents(t, 0, 0, 0, &ni, &lb, &t) == MPI_ERR_TYPE, "%s has contents", name);
    CHECK(t->contig == (size == extent), "%s: contig %d", name, t->contig);
    MPI_Datatype handle = t;
    CHECK(MPI_Type_commit(&handle) == MPI_SUCCESS && handle == t, "%s cannot be committed", name);
    CHECK(MPI_Type_free(&handle) == MPI_ERR_TYPE && handle == t, "%s can be freed", name);
}

static void all(void)
{
#define C(t, type) expect(t, #t, sizeof(type), 0)
#define PAIR(t, type) expect(t, #t, sizeof(type) + sizeof(int), sizeof(struct { type v; int i; }))
    C(MPI_CHAR, char), C(MPI_SIGNED_CHAR, char), C(MPI_UNSIGNED_CHAR, char), C(MPI_BYTE, char), C(MPI_PACKED, char);
    C(MPI_SHORT, short), C(MPI_UNSIGNED_SHORT, short), C(MPI_INT, int), C(MPI_UNSIGNED, int), C(MPI_LONG, long);
    C(MPI_UNSIGNED_LONG, long), C(MPI_LONG_LONG_INT, long long), C(MPI_UNSIGNED_LONG_LONG, long long);
    C(MPI_INT8_T, int8_t), C(MPI_INT16_T, int16_t), C(MPI_INT32_T, int32_t), C(MPI_INT64_T, int64_t);
    C(MPI_UINT8_T, int8_t), C(MPI_UINT16_T, int16_t), C(MPI_UINT32_T, int32_t), C(MPI_UINT64_T, int64_t);
    C(MPI_AINT, MPI_Aint), C(MPI_OFFSET, MPI_Offset), C(MPI_COUNT, MPI_Count), C(MPI_WCHAR, wchar_t);
    C(MPI_FLOAT, float), C(MPI_DOUBLE, double), C(MPI_LONG_DOUBLE, long double), C(MPI_C_BOOL, bool);
    C(MPI_C_FLOAT_COMPLEX, float complex), C(MPI_C_DOUBLE_COMPLEX, double complex);
    C(MPI_C_LONG_DOUBLE_COMPLEX, long double complex), C(MPI_CXX_BOOL, bool), C(MPI_CXX_FLOAT_COMPLEX, float complex);
    C(MPI_CXX_DOUBLE_COMPLEX, double complex), C(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex);
    C(MPI_CHARACTER, char), C(MPI_LOGICAL, int), C(MPI_LOGICAL1, int8_t), C(MPI_LOGICAL2, int16_t);
    C(MPI_LOGICAL4, int32_t), C(MPI_LOGICAL8, int64_t), C(MPI_INTEGER, int), C(MPI_INTEGER1, int8_t);
    C(MPI_INTEGER2, int16_t), C(MPI_INTEGER4, int32_t), C(MPI_INTEGER8, int64_t), C(MPI_REAL, float);
    C(MPI_REAL4, float), C(MPI_REAL8, double), C(MPI_REAL16, char[16]), C(MPI_DOUBLE_PRECISION, double);
    C(MPI_COMPLEX, float complex), C(MPI_COMPLEX8, float complex), C(MPI_COMPLEX16, double complex);
    C(MPI_COMPLEX32, char[32]), C(MPI_DOUBLE_COMPLEX, double complex);
    C(MPI_2INT, int[2]), C(MPI_2INTEGER, int[2]), C(MPI_2REAL, float[2]), C(MPI_2DOUBLE_PRECISION, double[2]);
    C(MPI_2COMPLEX, float complex[2]), C(MPI_2DOUBLE_COMPLEX, double complex[2]);
    PAIR(MPI_FLOAT_INT, float), PAIR(MPI_DOUBLE_INT, double), PAIR(MPI_LONG_DOUBLE_INT, long double);
    PAIR(MPI_LONG_INT, long), PAIR(MPI_SHORT_INT, short);
}

/* The gap inside a pair is neither read nor written. */
static void pair_gap(void)
{
    struct { short v; short gap; int i; } in[2] = {{1, 2, 3}, {4, 5, 6}}, out[2] = {{9, 9, 9}, {9, 9, 9}};
    char packed[2 * (sizeof(short) + sizeof(int))];
    int at = 0;
    CHECK(!MPI_Pack(in, 2, MPI_SHORT_INT, packed, sizeof packed, &at, MPI_COMM_SELF) && at == sizeof packed, "pack");
    at = 0;
    CHECK(!MPI_Unpack(packed, sizeof packed, &at, out, 2, MPI_SHORT_INT, MPI_COMM_SELF), "unpack");
    CHECK(out[0].v == 1 && out[0].gap == 9 && out[0].i == 3 && out[1].v == 4 && out[1].gap == 9 && out[1].i == 6,
          "a pair with a gap does not survive");
}

static void no_types(void)
{
    extern struct ompi_predefined_datatype_t ompi_mpi_unavailable;
    const MPI_Datatype none[] = {MPI_DATATYPE_NULL, (MPI_Datatype)&ompi_mpi_unavailable, NULL,
                                 (MPI_Datatype)(void *)&failures};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        MPI_Datatype t = none[i], made;
        int n, len;
        MPI_Aint lb, e;
        char text[MPI_MAX_OBJECT_NAME];
        CHECK(MPI_Type_size(t, &n) == MPI_ERR_TYPE, "Type_size of no type %zu", i);
        CHECK(MPI_Type_get_extent(t, &lb, &e) == MPI_ERR_TYPE, "Type_get_extent of no type %zu", i);
        CHECK(MPI_Type_commit(&t) == MPI_ERR_TYPE, "Type_commit of no type %zu", i);
        CHECK(MPI_Type_free(&t) == MPI_ERR_TYPE, "Type_free of no type %zu", i);
        CHECK(MPI_Type_dup(t, &made) == MPI_ERR_TYPE, "Type_dup of no type %zu", i);
        CHECK(MPI_Type_contiguous(2, t, &made) == MPI_ERR_TYPE, "Type_contiguous of no type %zu", i);
        CHECK(MPI_Type_set_name(t, "x") == MPI_ERR_TYPE, "Type_set_name of no type %zu", i);
        CHECK((MPI_Type_get_name(t, text, &len) == MPI_SUCCESS) == (t == MPI_DATATYPE_NULL), "Type_get_name %zu", i);
    }
}

static void names(void)
{
    char text[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
    int len = 0;
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = 0;
    CHECK(!MPI_Type_set_name(MPI_INT, longer) && !MPI_Type_get_name(MPI_INT, text, &len), "a long name is refused");
    CHECK(len == MPI_MAX_OBJECT_NAME - 1 && (int)strlen(text) == len, "a long name becomes %d characters", len);
    CHECK(!MPI_Type_set_name(MPI_INT, "MPI_INT"), "set_name");
    CHECK(MPI_Type_get_name(MPI_INT, NULL, &len) == MPI_ERR_ARG, "NULL name");
    CHECK(MPI_Type_get_name(MPI_INT, text, NULL) == MPI_ERR_ARG, "NULL length");
    CHECK(MPI_Type_set_name(MPI_INT, NULL) == MPI_ERR_ARG, "NULL new name");
}

static void match(void)
{
    MPI_Datatype t = MPI_DATATYPE_NULL;
    CHECK(!MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t) && t == MPI_REAL8, "REAL8");
    CHECK(!MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &t) && t == MPI_INTEGER4, "INTEGER4");
    CHECK(!MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 32, &t) && t == MPI_COMPLEX32, "COMPLEX32");
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 7, &t) == MPI_ERR_ARG, "a real of 7 bytes");
    CHECK(MPI_Type_match_size(17, 4, &t) == MPI_ERR_ARG, "class 17");
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, NULL) == MPI_ERR_ARG, "NULL result");
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    all();
    pair_gap();
    no_types();
    names();
    match();
    MPI_Finalize();
    return failures != 0;
}
