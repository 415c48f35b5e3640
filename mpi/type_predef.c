/* type_predef.c - the predefined datatypes: one table of exported objects.
 *
 * Each object has exactly the 512 bytes that Open MPI's has: executables reserve that much and own the object then. So
 * they start as zeros, are reached through their symbols only, and dz_type_init fills them in. Rows of DZ_NO_TYPES are
 * names that Open MPI exports without a type behind: they keep no magic word and are refused like MPI_DATATYPE_NULL. */
#include <complex.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#include "mpi/type.h"

struct ompi_predefined_datatype_t {
    struct dz_type t;
    char pad[512 - sizeof(struct dz_type)];
};
_Static_assert(sizeof(struct ompi_predefined_datatype_t) == 512, "the ABI's size of a predefined datatype");

#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#else
typedef long double quad;
#endif
typedef struct { quad re, im; } cquad;
typedef struct { float a, b; } float2;
typedef struct { double a, b; } double2;
typedef struct { int a, b; } int2;
typedef struct { float complex a, b; } cfloat2;
typedef struct { double complex a, b; } cdouble2;

#define PICK(T, k1, k2, k4, k8)                                                                                      \
    (sizeof(T) == 1 ? DZ_K_##k1 : sizeof(T) == 2 ? DZ_K_##k2 : sizeof(T) == 4 ? DZ_K_##k4 : DZ_K_##k8)
#define SIGNED(T) PICK(T, INT8, INT16, INT32, INT64)
#define UNSIGNED(T) PICK(T, UINT8, UINT16, UINT32, UINT64)
#define LOGICAL(T) PICK(T, LOGICAL1, LOGICAL2, LOGICAL4, LOGICAL8)

/* symbol, name, C type, kind */
#define DZ_PLAIN_TYPES(X)                                                                                            \
    X(char, CHAR, char, DZ_K_CHAR)                                                                                   \
    X(signed_char, SIGNED_CHAR, signed char, DZ_K_INT8)                                                              \
    X(unsigned_char, UNSIGNED_CHAR, unsigned char, DZ_K_UINT8)                                                       \
    X(byte, BYTE, unsigned char, DZ_K_BYTE)                                                                          \
    X(packed, PACKED, unsigned char, DZ_K_NONE)                                                                      \
    X(short, SHORT, short, SIGNED(short))                                                                            \
    X(unsigned_short, UNSIGNED_SHORT, unsigned short, UNSIGNED(short))                                               \
    X(int, INT, int, SIGNED(int))                                                                                    \
    X(unsigned, UNSIGNED, unsigned, UNSIGNED(int))                                                                   \
    X(long, LONG, long, SIGNED(long))                                                                                \
    X(unsigned_long, UNSIGNED_LONG, unsigned long, UNSIGNED(long))                                                   \
    X(long_long_int, LONG_LONG_INT, long long, SIGNED(long long))                                                    \
    X(unsigned_long_long, UNSIGNED_LONG_LONG, unsigned long long, UNSIGNED(long long))                               \
    X(int8_t, INT8_T, int8_t, DZ_K_INT8)                                                                             \
    X(int16_t, INT16_T, int16_t, DZ_K_INT16)                                                                         \
    X(int32_t, INT32_T, int32_t, DZ_K_INT32)                                                                         \
    X(int64_t, INT64_T, int64_t, DZ_K_INT64)                                                                         \
    X(uint8_t, UINT8_T, uint8_t, DZ_K_UINT8)                                                                         \
    X(uint16_t, UINT16_T, uint16_t, DZ_K_UINT16)                                                                     \
    X(uint32_t, UINT32_T, uint32_t, DZ_K_UINT32)                                                                     \
    X(uint64_t, UINT64_T, uint64_t, DZ_K_UINT64)                                                                     \
    X(aint, AINT, MPI_Aint, SIGNED(MPI_Aint))                                                                        \
    X(offset, OFFSET, MPI_Offset, SIGNED(MPI_Offset))                                                                \
    X(count, COUNT, MPI_Count, SIGNED(MPI_Count))                                                                    \
    X(wchar, WCHAR, wchar_t, DZ_K_NONE)                                                                              \
    X(float, FLOAT, float, DZ_K_FLOAT)                                                                               \
    X(double, DOUBLE, double, DZ_K_DOUBLE)                                                                           \
    X(long_double, LONG_DOUBLE, long double, DZ_K_LDOUBLE)                                                           \
    X(c_bool, C_BOOL, bool, DZ_K_BOOL)                                                                               \
    X(c_complex, C_COMPLEX, float complex, DZ_K_CFLOAT)                                                              \
    X(c_float_complex, C_FLOAT_COMPLEX, float complex, DZ_K_CFLOAT)                                                  \
    X(c_double_complex, C_DOUBLE_COMPLEX, double complex, DZ_K_CDOUBLE)                                              \
    X(c_long_double_complex, C_LONG_DOUBLE_COMPLEX, long double complex, DZ_K_CLDOUBLE)                              \
    X(cxx_bool, CXX_BOOL, bool, DZ_K_BOOL)                                                                           \
    X(cxx_cplex, CXX_FLOAT_COMPLEX, float complex, DZ_K_CFLOAT)                                                      \
    X(cxx_dblcplex, CXX_DOUBLE_COMPLEX, double complex, DZ_K_CDOUBLE)                                                \
    X(cxx_ldblcplex, CXX_LONG_DOUBLE_COMPLEX, long double complex, DZ_K_CLDOUBLE)                                    \
    X(character, CHARACTER, char, DZ_K_CHAR)                                                                         \
    X(logical, LOGICAL, MPI_Fint, LOGICAL(MPI_Fint))                                                                 \
    X(logical1, LOGICAL1, int8_t, DZ_K_LOGICAL1)                                                                     \
    X(logical2, LOGICAL2, int16_t, DZ_K_LOGICAL2)                                                                    \
    X(logical4, LOGICAL4, int32_t, DZ_K_LOGICAL4)                                                                    \
    X(logical8, LOGICAL8, int64_t, DZ_K_LOGICAL8)                                                                    \
    X(integer, INTEGER, MPI_Fint, SIGNED(MPI_Fint))                                                                  \
    X(integer1, INTEGER1, int8_t, DZ_K_INT8)                                                                         \
    X(integer2, INTEGER2, int16_t, DZ_K_INT16)                                                                       \
    X(integer4, INTEGER4, int32_t, DZ_K_INT32)                                                                       \
    X(integer8, INTEGER8, int64_t, DZ_K_INT64)                                                                       \
    X(real, REAL, float, DZ_K_FLOAT)                                                                                 \
    X(real4, REAL4, float, DZ_K_FLOAT)                                                                               \
    X(real8, REAL8, double, DZ_K_DOUBLE)                                                                             \
    X(real16, REAL16, quad, DZ_K_FLOAT128)                                                                           \
    X(dblprec, DOUBLE_PRECISION, double, DZ_K_DOUBLE)                                                                \
    X(cplex, COMPLEX, float complex, DZ_K_CFLOAT)                                                                    \
    X(complex8, COMPLEX8, float complex, DZ_K_CFLOAT)                                                                \
    X(complex16, COMPLEX16, double complex, DZ_K_CDOUBLE)                                                            \
    X(complex32, COMPLEX32, cquad, DZ_K_CFLOAT128)                                                                   \
    X(dblcplex, DOUBLE_COMPLEX, double complex, DZ_K_CDOUBLE)                                                        \
    X(ldblcplex, LONG_DOUBLE_COMPLEX, long double complex, DZ_K_CLDOUBLE)                                            \
    X(2int, 2INT, int2, DZ_K_2INT)                                                                                   \
    X(2integer, 2INTEGER, int2, DZ_K_2INT)                                                                           \
    X(2real, 2REAL, float2, DZ_K_2REAL)                                                                              \
    X(2dblprec, 2DOUBLE_PRECISION, double2, DZ_K_2DBLPREC)                                                           \
    X(2cplex, 2COMPLEX, cfloat2, DZ_K_2CPLEX)                                                                        \
    X(2dblcplex, 2DOUBLE_COMPLEX, cdouble2, DZ_K_2DBLCPLEX)

/* symbol, name, C type of the value that goes with an int, kind */
#define DZ_PAIR_TYPES(X)                                                                                             \
    X(float_int, FLOAT_INT, float, DZ_K_FLOAT_INT)                                                                   \
    X(double_int, DOUBLE_INT, double, DZ_K_DOUBLE_INT)                                                               \
    X(longdbl_int, LONG_DOUBLE_INT, long double, DZ_K_LDOUBLE_INT)                                                   \
    X(long_int, LONG_INT, long, DZ_K_LONG_INT)                                                                       \
    X(short_int, SHORT_INT, short, DZ_K_SHORT_INT)

#define DZ_MARKERS(X) X(lb, LB) X(ub, UB)

#define DZ_NO_TYPES(X)                                                                                               \
    X(datatype_null, DATATYPE_NULL)                                                                                  \
    X(unavailable, UNAVAILABLE)                                                                                      \
    X(integer16, INTEGER16)                                                                                          \
    X(real2, REAL2)                                                                                                  \
    X(complex4, COMPLEX4)                                                                                            \
    X(short_float, SHORT_FLOAT)                                                                                      \
    X(c_short_float_complex, C_SHORT_FLOAT_COMPLEX)                                                                  \
    X(cxx_sfltcplex, CXX_SHORT_FLOAT_COMPLEX)

#define DEFINE(sym, ...)                                                                                             \
    extern struct ompi_predefined_datatype_t ompi_mpi_##sym __attribute__((visibility("default")));                  \
    struct ompi_predefined_datatype_t ompi_mpi_##sym = {.pad = {0}};
DZ_PLAIN_TYPES(DEFINE)
DZ_PAIR_TYPES(DEFINE)
DZ_MARKERS(DEFINE)
DZ_NO_TYPES(DEFINE)
#undef DEFINE

struct row {
    struct ompi_predefined_datatype_t *object;
    const char *name;
    int kind;
    size_t size, align;
};
struct pair_row {
    struct row row; /* size: of the value */
    size_t at, extent; /* where the int lies */
};

static const struct row plain[] = {
#define ROW(sym, name, type, kind) {&ompi_mpi_##sym, "MPI_" #name, kind, sizeof(type), _Alignof(type)},
    DZ_PLAIN_TYPES(ROW)
#undef ROW
};

#define PAIR(T) struct { T v; int i; }
static const struct pair_row pairs[] = {
#define ROW(sym, name, type, kind)                                                                                   \
    {{&ompi_mpi_##sym, "MPI_" #name, kind, sizeof(type), _Alignof(PAIR(type))},                                      \
     offsetof(PAIR(type), i), sizeof(PAIR(type))},
    DZ_PAIR_TYPES(ROW)
#undef ROW
};
static struct dz_block pair_blocks[sizeof pairs / sizeof pairs[0]][2];

static const struct {
    struct ompi_predefined_datatype_t *object;
    const char *name;
} none[] = {
#define ROW(sym, name) {&ompi_mpi_##sym, "MPI_" #name},
    DZ_NO_TYPES(ROW)
#undef ROW
};

static struct dz_type *fill(const struct row *r)
{
    struct dz_type *t = &r->object->t;
    memset(t, 0, sizeof *t);
    t->magic = DZ_MAGIC_TYPE;
    t->refs = 1;
    t->kind = r->kind;
    t->combiner = MPI_COMBINER_NAMED;
    t->committed = t->predefined = true;
    t->size = r->size;
    t->extent = t->true_extent = (ptrdiff_t)r->size;
    t->align = (int)r->align;
    t->elem = t;
    t->nblocks = 1;
    strcpy(t->name, r->name);
    return t;
}

static void fill_pair(const struct pair_row *p, struct dz_block *blocks)
{
    struct dz_type *t = fill(&p->row);
    t->size = p->row.size + sizeof(int);
    t->extent = (ptrdiff_t)p->extent;
    t->true_extent = (ptrdiff_t)(p->at + sizeof(int));
    blocks[0] = (struct dz_block){0, p->row.size, 0};
    blocks[1] = (struct dz_block){(ptrdiff_t)p->at, sizeof(int), p->row.size};
    if (p->at == p->row.size)
        blocks[0].len = t->size;
    else
        t->nblocks = 2;
    t->blocks = blocks;
    dz_type_layout(t);
}

/* MPI-1's markers: entries without bytes that set a bound. */
static void fill_marker(struct ompi_predefined_datatype_t *object, const char *name)
{
    struct dz_type *t = fill(&(struct row){object, name, DZ_K_NONE, 0, 1});
    t->nblocks = 0;
    t->elem = NULL;
    t->lb_set = object == &ompi_mpi_lb;
    t->ub_set = !t->lb_set;
    dz_type_layout(t);
}

int dz_type_init(void)
{
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        dz_type_layout(fill(&plain[i]));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        fill_pair(&pairs[i], pair_blocks[i]);
#define ROW(sym, name) fill_marker(&ompi_mpi_##sym, "MPI_" #name);
    DZ_MARKERS(ROW)
#undef ROW
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        none[i].object->t = (struct dz_type){0};
        strcpy(none[i].object->t.name, none[i].name);
    }
    return 0;
}

void dz_type_fini(void)
{
    /* the objects stay as they are: handles may still be compared */
}
