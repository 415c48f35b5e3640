/* op_predefined.c - every predefined operation on every predefined type: defined exactly where MPI 3.1 section 5.9.2
 * says so, and with the results that a plain computation of one element at a time gives. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

static int failures;
static uint64_t state = 88172645463325252u;

static uint64_t noise(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

enum op { MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, REPLACE, NO_OP, OPS };
static const char *const op_names[] = {"MAX",  "MIN", "SUM",  "PROD", "LAND",   "BAND",   "LOR",
                                       "BOR", "LXOR", "BXOR", "MAXLOC", "MINLOC", "REPLACE", "NO_OP"};
/* the standard's groups of types, and which operations it gives them */
static const char on_integer[OPS] = {[MAX] = 1, [MIN] = 1, [SUM] = 1, [PROD] = 1, [LAND] = 1, [BAND] = 1, [LOR] = 1,
                                     [BOR] = 1, [LXOR] = 1, [BXOR] = 1};
static const char on_float[OPS] = {[MAX] = 1, [MIN] = 1, [SUM] = 1, [PROD] = 1};
static const char on_complex[OPS] = {[SUM] = 1, [PROD] = 1};
static const char on_logical[OPS] = {[LAND] = 1, [LOR] = 1, [LXOR] = 1};
static const char on_byte[OPS] = {[BAND] = 1, [BOR] = 1, [BXOR] = 1};
static const char on_pair[OPS] = {[MAXLOC] = 1, [MINLOC] = 1};
static const char on_none[OPS] = {0};

/* random value; in op inout of one element; are they equal? */
struct how {
    void (*fill)(void *);
    void (*apply)(enum op, const void *in, void *inout);
    bool (*same)(const void *, const void *);
};

#define ORDER(op, a, b) ((op) == MAX ? ((a) > (b) ? (a) : (b)) : ((a) < (b) ? (a) : (b)))
#define INTEGER(T)                                                                                                   \
    static void fill_##T(void *p) { T v = (T)noise(); if (noise() % 5 == 0) v = 0; memcpy(p, &v, sizeof v); }        \
    static void apply_##T(enum op op, const void *in, void *inout)                                                   \
    {                                                                                                                \
        T a, b;                                                                                                      \
        memcpy(&a, in, sizeof a);                                                                                    \
        memcpy(&b, inout, sizeof b);                                                                                 \
        unsigned __int128 x = (unsigned __int128)a, y = (unsigned __int128)b;                                        \
        switch (op) {                                                                                                \
        case MAX: case MIN: b = ORDER(op, a, b); break;                                                              \
        case SUM: b = (T)(x + y); break;                                                                             \
        case PROD: b = (T)(x * y); break;                                                                            \
        case LAND: b = a && b; break;                                                                                \
        case LOR: b = a || b; break;                                                                                 \
        case LXOR: b = !a != !b; break;                                                                              \
        case BAND: b = (T)(x & y); break;                                                                            \
        case BOR: b = (T)(x | y); break;                                                                             \
        default: b = (T)(x ^ y);                                                                                     \
        }                                                                                                            \
        memcpy(inout, &b, sizeof b);                                                                                 \
    }                                                                                                                \
    static bool same_##T(const void *p, const void *q) { return !memcmp(p, q, sizeof(T)); }

#define FLOAT(name, T)                                                                                               \
    static void fill_##name(void *p) { T v = (T)((double)(int64_t)noise() / 1e15); memcpy(p, &v, sizeof v); }        \
    static void apply_##name(enum op op, const void *in, void *inout)                                                \
    {                                                                                                                \
        T a, b;                                                                                                      \
        memcpy(&a, in, sizeof a);                                                                                    \
        memcpy(&b, inout, sizeof b);                                                                                 \
        b = op == SUM ? a + b : op == PROD ? a * b : ORDER(op, a, b);                                                \
        memcpy(inout, &b, sizeof b);                                                                                 \
    }                                                                                                                \
    static bool same_##name(const void *p, const void *q)                                                            \
    {                                                                                                                \
        T a, b;                                                                                                      \
        memcpy(&a, p, sizeof a);                                                                                     \
        memcpy(&b, q, sizeof b);                                                                                     \
        return a == b;                                                                                               \
    }

/* small integers: exact whatever the order of the additions */
#define COMPLEX(name, T)                                                                                             \
    static void fill_##name(void *p) { T v[2] = {(T)(int)(noise() % 200) - 100, (T)(int)(noise() % 200) - 100};      \
                                       memcpy(p, v, sizeof v); }                                                     \
    static void apply_##name(enum op op, const void *in, void *inout)                                                \
    {                                                                                                                \
        T a[2], b[2];                                                                                                \
        memcpy(a, in, sizeof a);                                                                                     \
        memcpy(b, inout, sizeof b);                                                                                  \
        T sum[2] = {a[0] + b[0], a[1] + b[1]}, prod[2] = {a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]};     \
        memcpy(inout, op == SUM ? sum : prod, sizeof b);                                                             \
    }                                                                                                                \
    static bool same_##name(const void *p, const void *q)                                                            \
    {                                                                                                                \
        T a[2], b[2];                                                                                                \
        memcpy(a, p, sizeof a);                                                                                      \
        memcpy(b, q, sizeof b);                                                                                      \
        return a[0] == b[0] && a[1] == b[1];                                                                         \
    }

/* few values and few indices, so that ties are frequent */
#define LOCATED(name, V, I)                                                                                          \
    struct name { V v; I i; };                                                                                       \
    static void fill_##name(void *p)                                                                                 \
    {                                                                                                                \
        struct name x = {0};                                                                                         \
        x.v = (V)((int)(noise() % 7) - 3), x.i = (I)(noise() % 9);                                                   \
        memcpy(p, &x, sizeof x);                                                                                     \
    }                                                                                                                \
    static void apply_##name(enum op op, const void *in, void *inout)                                                \
    {                                                                                                                \
        struct name a, b;                                                                                            \
        memcpy(&a, in, sizeof a);                                                                                    \
        memcpy(&b, inout, sizeof b);                                                                                 \
        if (a.v == b.v)                                                                                              \
            b.i = a.i < b.i ? a.i : b.i;                                                                             \
        else if ((a.v > b.v) == (op == MAXLOC))                                                                      \
            b = a;                                                                                                   \
        memcpy(inout, &b, sizeof b);                                                                                 \
    }                                                                                                                \
    static bool same_##name(const void *p, const void *q)                                                            \
    {                                                                                                                \
        struct name a, b;                                                                                            \
        memcpy(&a, p, sizeof a);                                                                                     \
        memcpy(&b, q, sizeof b);                                                                                     \
        return a.v == b.v && a.i == b.i;                                                                             \
    }

INTEGER(int8_t) INTEGER(int16_t) INTEGER(int32_t) INTEGER(int64_t)
INTEGER(uint8_t) INTEGER(uint16_t) INTEGER(uint32_t) INTEGER(uint64_t)
FLOAT(single, float) FLOAT(twice, double) FLOAT(extended, long double)
COMPLEX(csingle, float) COMPLEX(ctwice, double) COMPLEX(cextended, long double)
#ifdef __SIZEOF_FLOAT128__
FLOAT(quad, __float128) COMPLEX(cquad, __float128)
#else
FLOAT(quad, long double) COMPLEX(cquad, long double)
#endif
LOCATED(float_int, float, int) LOCATED(double_int, double, int) LOCATED(longdbl_int, long double, int)
LOCATED(long_int, long, int) LOCATED(short_int, short, int) LOCATED(int_int, int, int)
LOCATED(float_float, float, float) LOCATED(double_double, double, double)

static void fill_truth(void *p)
{
    bool v = noise() & 1;
    memcpy(p, &v, sizeof v);
}

#define HOW(name) {fill_##name, apply_##name, same_##name}
static const struct how no_how = {0};

static void check(MPI_Op op, enum op o, MPI_Datatype t, const char *name, const char *defined,
                  const struct how *how)
{
    enum { MOST = 1003 };
    static const int counts[] = {0, 1, 2, 7, 16, 33, MOST};
    static _Alignas(64) char in[MOST * 32 + 64], inout[MOST * 32 + 64];
    static _Alignas(64) char expected[MOST * 32 + 64], before[MOST * 32 + 64];
    size_t extent = (size_t)t->extent;
    int rc = MPI_Reduce_local(in, inout, 0, t, op);
    if (rc != (defined[o] ? MPI_SUCCESS : MPI_ERR_OP) || dz_op_valid(op, t) != defined[o]) {
        printf("FAIL: %s on %s: class %d, should be %s\n", op_names[o], name, rc, defined[o] ? "defined" : "refused");
        failures++;
    }
    for (size_t c = 0; defined[o] && rc == MPI_SUCCESS && c < sizeof counts / sizeof counts[0]; c++) {
        size_t n = (size_t)counts[c];
        memset(inout, 0x5a, sizeof inout);
        for (size_t i = 0; i < n; i++) {
            how->fill(in + i * extent);
            how->fill(inout + i * extent);
        }
        memcpy(expected, inout, sizeof inout);
        memcpy(before, in, sizeof in);
        for (size_t i = 0; i < n; i++)
            how->apply(o, in + i * extent, expected + i * extent);
        MPI_Reduce_local(in, inout, counts[c], t, op);
        for (size_t i = 0; i < n; i++) {
            if (!how->same(inout + i * extent, expected + i * extent)) {
                printf("FAIL: %s on %s: element %zu of %zu is wrong\n", op_names[o], name, i, n);
                failures++;
                break;
            }
        }
        size_t end = n * extent;
        if (memcmp(inout + end, expected + end, sizeof inout - end) || memcmp(in, before, sizeof in)) {
            printf("FAIL: %s on %s: writes where it must not\n", op_names[o], name);
            failures++;
        }
    }
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const MPI_Op ops[OPS] = {MPI_MAX,  MPI_MIN, MPI_SUM,  MPI_PROD,   MPI_LAND,   MPI_BAND,    MPI_LOR,
                             MPI_BOR,  MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    const struct {
        MPI_Datatype t;
        const char *name, *defined;
        struct how how;
    } types[] = {
#define I(t, c) {t, #t, on_integer, HOW(c)},
#define F(t, c) {t, #t, on_float, HOW(c)},
#define C(t, c) {t, #t, on_complex, HOW(c)},
#define L(t, c) {t, #t, on_logical, HOW(c)},
#define P(t, c) {t, #t, on_pair, HOW(c)},
#define N(t) {t, #t, on_none, no_how},
        I(MPI_SIGNED_CHAR, int8_t) I(MPI_UNSIGNED_CHAR, uint8_t) I(MPI_SHORT, int16_t) I(MPI_UNSIGNED_SHORT, uint16_t)
        I(MPI_INT, int32_t) I(MPI_UNSIGNED, uint32_t) I(MPI_LONG, int64_t) I(MPI_UNSIGNED_LONG, uint64_t)
        I(MPI_LONG_LONG, int64_t) I(MPI_UNSIGNED_LONG_LONG, uint64_t) I(MPI_INT8_T, int8_t) I(MPI_INT16_T, int16_t)
        I(MPI_INT32_T, int32_t) I(MPI_INT64_T, int64_t) I(MPI_UINT8_T, uint8_t) I(MPI_UINT16_T, uint16_t)
        I(MPI_UINT32_T, uint32_t) I(MPI_UINT64_T, uint64_t) I(MPI_AINT, int64_t) I(MPI_OFFSET, int64_t)
        I(MPI_COUNT, int64_t) I(MPI_INTEGER, int32_t) I(MPI_INTEGER1, int8_t) I(MPI_INTEGER2, int16_t)
        I(MPI_INTEGER4, int32_t) I(MPI_INTEGER8, int64_t)
        F(MPI_FLOAT, single) F(MPI_DOUBLE, twice) F(MPI_LONG_DOUBLE, extended) F(MPI_REAL, single) F(MPI_REAL4, single)
        F(MPI_REAL8, twice) F(MPI_REAL16, quad) F(MPI_DOUBLE_PRECISION, twice)
        C(MPI_C_FLOAT_COMPLEX, csingle) C(MPI_C_DOUBLE_COMPLEX, ctwice) C(MPI_C_LONG_DOUBLE_COMPLEX, cextended)
        C(MPI_CXX_FLOAT_COMPLEX, csingle) C(MPI_CXX_DOUBLE_COMPLEX, ctwice) C(MPI_CXX_LONG_DOUBLE_COMPLEX, cextended)
        C(MPI_COMPLEX, csingle) C(MPI_COMPLEX8, csingle) C(MPI_COMPLEX16, ctwice) C(MPI_COMPLEX32, cquad)
        C(MPI_DOUBLE_COMPLEX, ctwice)
        L(MPI_LOGICAL, int32_t) L(MPI_LOGICAL1, int8_t) L(MPI_LOGICAL2, int16_t) L(MPI_LOGICAL4, int32_t)
        L(MPI_LOGICAL8, int64_t)
        {MPI_C_BOOL, "MPI_C_BOOL", on_logical, {fill_truth, apply_uint8_t, same_uint8_t}},
        {MPI_CXX_BOOL, "MPI_CXX_BOOL", on_logical, {fill_truth, apply_uint8_t, same_uint8_t}},
        {MPI_BYTE, "MPI_BYTE", on_byte, HOW(uint8_t)},
        P(MPI_FLOAT_INT, float_int) P(MPI_DOUBLE_INT, double_int) P(MPI_LONG_DOUBLE_INT, longdbl_int)
        P(MPI_LONG_INT, long_int) P(MPI_SHORT_INT, short_int) P(MPI_2INT, int_int) P(MPI_2INTEGER, int_int)
        P(MPI_2REAL, float_float) P(MPI_2DOUBLE_PRECISION, double_double)
        N(MPI_CHAR) N(MPI_WCHAR) N(MPI_PACKED) N(MPI_CHARACTER) N(MPI_2COMPLEX) N(MPI_2DOUBLE_COMPLEX)
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (enum op o = MAX; o < OPS; o++)
            check(ops[o], o, types[i].t, types[i].name, types[i].defined, &types[i].how);
    MPI_Finalize();
    return failures != 0;
}
