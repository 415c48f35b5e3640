/* op_kernels_pair.c - MPI_MAXLOC and MPI_MINLOC: the better value wins, with its index; of equal values the lower
 * index. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "mpi/op.h"

#define KERNEL(name, kind, value, index, better)                                                                     \
    void dz_##name##_##kind(const void *in, void *inout, size_t n)                                                   \
    {                                                                                                                \
        struct pair { value v; index i; };                                                                           \
        const struct pair *restrict a = in;                                                                          \
        struct pair *restrict b = inout;                                                                             \
        for (size_t k = 0; k < n; k++) {                                                                             \
            bool wins = a[k].v better b[k].v, ties = a[k].v == b[k].v && a[k].i < b[k].i;                            \
            if (wins)                                                                                                \
                b[k].v = a[k].v;                                                                                     \
            if (wins || ties)                                                                                        \
                b[k].i = a[k].i;                                                                                     \
        }                                                                                                            \
    }
#define BOTH(kind, value, index) KERNEL(maxloc, kind, value, index, >) KERNEL(minloc, kind, value, index, <)
DZ_PAIR_KINDS(BOTH)
