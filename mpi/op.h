/* op.h - the table of reduction kernels, filled in op_kernels.c and op_kernels_pair.c. */
#ifndef DZ_MPI_OP_H
#define DZ_MPI_OP_H

#include "mpi/core.h"

enum dz_op_index {
    DZ_OP_MAX, DZ_OP_MIN, DZ_OP_SUM, DZ_OP_PROD, DZ_OP_LAND, DZ_OP_BAND, DZ_OP_LOR, DZ_OP_BOR, DZ_OP_LXOR, DZ_OP_BXOR,
    DZ_OP_MAXLOC, DZ_OP_MINLOC,
    DZ_OP_KERNELS, /* those below have none: they exist for one-sided communication */
    DZ_OP_REPLACE = DZ_OP_KERNELS, DZ_OP_NO_OP,
    DZ_OP_COUNT
};

/* inout[i] = in[i] op inout[i]; the two do not overlap */
typedef void dz_kernel(const void *in, void *inout, size_t n);

/* NULL: the operation is not defined on this kind. */
extern dz_kernel *const dz_kernels[DZ_OP_KERNELS][DZ_K_COUNT];

/* MAXLOC and MINLOC of op_kernels_pair.c */
#define DZ_PAIR_KINDS(X)                                                                                             \
    X(FLOAT_INT, float, int)                                                                                         \
    X(DOUBLE_INT, double, int)                                                                                       \
    X(LDOUBLE_INT, long double, int)                                                                                 \
    X(LONG_INT, long, int)                                                                                           \
    X(SHORT_INT, short, int)                                                                                         \
    X(2INT, int, int)                                                                                                \
    X(2REAL, float, float)                                                                                           \
    X(2DBLPREC, double, double)
#define DZ_PAIR_KERNEL(kind, value, index) extern dz_kernel dz_maxloc_##kind, dz_minloc_##kind;
DZ_PAIR_KINDS(DZ_PAIR_KERNEL)
#undef DZ_PAIR_KERNEL

#endif
