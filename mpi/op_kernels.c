/* op_kernels.c - the predefined operations on the predefined types: one plain loop each, for the compiler to vectorise,
 * and the table that finds it, which is MPI 3.1 section 5.9.2's list of what is defined.
 *
 * Signed integers share the kernels of the unsigned ones wherever the bits come out the same: sums and products then
 * wrap around instead of being undefined. Complex products are the plain formula: C's operator would look for
 * infinities behind every NaN. Logical results are 1 or 0. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "mpi/op.h"

#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#else
typedef long double quad;
#endif
typedef struct { float re, im; } cfloat;
typedef struct { double re, im; } cdouble;
typedef struct { long double re, im; } cldouble;
typedef struct { quad re, im; } cquad;

#define KERNEL(name, kind, T, expr)                                                                                  \
    static void name##_##kind(const void *in, void *inout, size_t n)                                                 \
    {                                                                                                                \
        const T *restrict x = in;                                                                                    \
        T *restrict y = inout;                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                             \
            const T a = x[i], b = y[i];                                                                              \
            y[i] = (expr);                                                                                           \
        }                                                                                                            \
    }

#define ORDERED(kind, T, W) KERNEL(max, kind, T, a > b ? a : b) KERNEL(min, kind, T, a < b ? a : b)
/* W: wide enough that arithmetic does not end in a signed int */
#define ARITHMETIC(kind, T, W) KERNEL(sum, kind, T, (T)((W)a + (W)b)) KERNEL(prod, kind, T, (T)((W)a * (W)b))
#define LOGICAL(kind, T, W)                                                                                          \
    KERNEL(land, kind, T, (T)((a != 0) & (b != 0)))                                                                  \
    KERNEL(lor, kind, T, (T)((a != 0) | (b != 0)))                                                                   \
    KERNEL(lxor, kind, T, (T)((a != 0) ^ (b != 0)))
#define BITWISE(kind, T, W)                                                                                          \
    KERNEL(band, kind, T, (T)(a & b)) KERNEL(bor, kind, T, (T)(a | b)) KERNEL(bxor, kind, T, (T)(a ^ b))
#define COMPLEX(kind, T)                                                                                             \
    KERNEL(sum, kind, T, ((T){a.re + b.re, a.im + b.im}))                                                            \
    KERNEL(prod, kind, T, ((T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))

#define UNSIGNED_KINDS(X)                                                                                            \
    X(UINT8, uint8_t, uint32_t)                                                                                      \
    X(UINT16, uint16_t, uint32_t)                                                                                    \
    X(UINT32, uint32_t, uint32_t)                                                                                    \
    X(UINT64, uint64_t, uint64_t)
#define SIGNED_KINDS(X)                                                                                              \
    X(INT8, int8_t, ) X(INT16, int16_t, ) X(INT32, int32_t, ) X(INT64, int64_t, )
#define FLOAT_KINDS(X)                                                                                               \
    X(FLOAT, float, float) X(DOUBLE, double, double) X(LDOUBLE, long double, long double) X(FLOAT128, quad, quad)

SIGNED_KINDS(ORDERED)
UNSIGNED_KINDS(ORDERED)
UNSIGNED_KINDS(ARITHMETIC)
UNSIGNED_KINDS(LOGICAL)
UNSIGNED_KINDS(BITWISE)
FLOAT_KINDS(ORDERED)
FLOAT_KINDS(ARITHMETIC)
COMPLEX(CFLOAT, cfloat)
COMPLEX(CDOUBLE, cdouble)
COMPLEX(CLDOUBLE, cldouble)
COMPLEX(CFLOAT128, cquad)

#define AT(name, kind, kernel) [DZ_K_##kind] = name##_##kernel,
#define SAME_UNSIGNED(name)                                                                                          \
    AT(name, UINT8, UINT8) AT(name, UINT16, UINT16) AT(name, UINT32, UINT32) AT(name, UINT64, UINT64)
#define ON_SIGNED(name) AT(name, INT8, INT8) AT(name, INT16, INT16) AT(name, INT32, INT32) AT(name, INT64, INT64)
#define AS_UNSIGNED(name) AT(name, INT8, UINT8) AT(name, INT16, UINT16) AT(name, INT32, UINT32) AT(name, INT64, UINT64)
#define ON_FLOAT(name)                                                                                               \
    AT(name, FLOAT, FLOAT) AT(name, DOUBLE, DOUBLE) AT(name, LDOUBLE, LDOUBLE) AT(name, FLOAT128, FLOAT128)
#define ON_COMPLEX(name)                                                                                             \
    AT(name, CFLOAT, CFLOAT) AT(name, CDOUBLE, CDOUBLE) AT(name, CLDOUBLE, CLDOUBLE) AT(name, CFLOAT128, CFLOAT128)
#define ON_LOGICAL(name)                                                                                             \
    AT(name, BOOL, UINT8) AT(name, LOGICAL1, UINT8) AT(name, LOGICAL2, UINT16) AT(name, LOGICAL4, UINT32)            \
    AT(name, LOGICAL8, UINT64)
#define ON_PAIRS(name)                                                                                               \
    AT(name, FLOAT_INT, FLOAT_INT) AT(name, DOUBLE_INT, DOUBLE_INT) AT(name, LDOUBLE_INT, LDOUBLE_INT)               \
    AT(name, LONG_INT, LONG_INT) AT(name, SHORT_INT, SHORT_INT) AT(name, 2INT, 2INT) AT(name, 2REAL, 2REAL)          \
    AT(name, 2DBLPREC, 2DBLPREC)

dz_kernel *const dz_kernels[DZ_OP_KERNELS][DZ_K_COUNT] = {
    [DZ_OP_MAX] = {ON_SIGNED(max) SAME_UNSIGNED(max) ON_FLOAT(max)},
    [DZ_OP_MIN] = {ON_SIGNED(min) SAME_UNSIGNED(min) ON_FLOAT(min)},
    [DZ_OP_SUM] = {AS_UNSIGNED(sum) SAME_UNSIGNED(sum) ON_FLOAT(sum) ON_COMPLEX(sum)},
    [DZ_OP_PROD] = {AS_UNSIGNED(prod) SAME_UNSIGNED(prod) ON_FLOAT(prod) ON_COMPLEX(prod)},
    [DZ_OP_LAND] = {AS_UNSIGNED(land) SAME_UNSIGNED(land) ON_LOGICAL(land)},
    [DZ_OP_LOR] = {AS_UNSIGNED(lor) SAME_UNSIGNED(lor) ON_LOGICAL(lor)},
    [DZ_OP_LXOR] = {AS_UNSIGNED(lxor) SAME_UNSIGNED(lxor) ON_LOGICAL(lxor)},
    [DZ_OP_BAND] = {AS_UNSIGNED(band) SAME_UNSIGNED(band) AT(band, BYTE, UINT8)},
    [DZ_OP_BOR] = {AS_UNSIGNED(bor) SAME_UNSIGNED(bor) AT(bor, BYTE, UINT8)},
    [DZ_OP_BXOR] = {AS_UNSIGNED(bxor) SAME_UNSIGNED(bxor) AT(bxor, BYTE, UINT8)},
    [DZ_OP_MAXLOC] = {ON_PAIRS(dz_maxloc)},
    [DZ_OP_MINLOC] = {ON_PAIRS(dz_minloc)},
};
