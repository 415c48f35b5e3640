/* op.c - operations as objects, predefined (exactly the 2048 bytes of Open MPI's ABI) and the user's, and the local
 * reduction.
 *
 * The predefined objects start as zeros, belong to the executable as often as to us, and are filled in by dz_op_init.
 * What they do is in the table of op_kernels.c, by operation and kind of type. User operations carry a function and
 * whether it commutes, and live until their last reference. */
#include <limits.h>
#include <stdlib.h>

#include "mpi/coll.h"
#include "mpi/op.h"

struct ompi_predefined_op_t {
    struct dz_op op;
    char pad[2048 - sizeof(struct dz_op)];
};
_Static_assert(sizeof(struct ompi_predefined_op_t) == 2048, "the ABI's size of a predefined operation");

/* symbol, index, commutes */
#define DZ_OPS(X)                                                                                                    \
    X(max, MAX, true)                                                                                                \
    X(min, MIN, true)                                                                                                \
    X(sum, SUM, true)                                                                                                \
    X(prod, PROD, true)                                                                                              \
    X(land, LAND, true)                                                                                              \
    X(band, BAND, true)                                                                                              \
    X(lor, LOR, true)                                                                                                \
    X(bor, BOR, true)                                                                                                \
    X(lxor, LXOR, true)                                                                                              \
    X(bxor, BXOR, true)                                                                                              \
    X(maxloc, MAXLOC, true)                                                                                          \
    X(minloc, MINLOC, true)                                                                                          \
    X(replace, REPLACE, false)                                                                                       \
    X(no_op, NO_OP, false)

#define DEFINE(sym, ...) struct ompi_predefined_op_t ompi_mpi_op_##sym = {.pad = {0}};
DZ_OPS(DEFINE)
DEFINE(null)
#undef DEFINE

int dz_op_init(void)
{
#define FILL(sym, i, commutes)                                                                                       \
    ompi_mpi_op_##sym.op = (struct dz_op){.magic = DZ_MAGIC_OP, .index = DZ_OP_##i, .commute = commutes,             \
                                          .predefined = true, .refs = 1};
    DZ_OPS(FILL)
#undef FILL
    ompi_mpi_op_null.op = (struct dz_op){.magic = 0, .index = -1};
    return 0;
}

bool dz_op_valid(const struct dz_op *op, const struct dz_type *type)
{
    if (!op->predefined)
        return true;
    return type->predefined && op->index < DZ_OP_KERNELS && dz_kernels[op->index][type->kind];
}

void dz_op_apply(struct dz_op *op, struct dz_type *type, const void *in, void *inout, size_t count)
{
    if (op->predefined) {
        dz_kernels[op->index][type->kind](in, inout, count);
        return;
    }
    while (count) { /* the function counts in ints */
        int n = count > INT_MAX ? INT_MAX : (int)count;
        MPI_Datatype handle = type;
        op->fn((void *)in, inout, &n, &handle);
        count -= (size_t)n;
        in = (const char *)in + (ptrdiff_t)n * type->extent;
        inout = (char *)inout + (ptrdiff_t)n * type->extent;
    }
}

void dz_op_get(struct dz_op *op)
{
    if (!op->predefined)
        atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
}

void dz_op_put(struct dz_op *op)
{
    /* acq_rel: whoever frees sees what the others did with it */
    if (op->predefined || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) > 1)
        return;
    op->magic = 0;
    free(op);
}

static int check_handle(const char *call, struct dz_op *op)
{
    if (dz_op_ok(op))
        return MPI_SUCCESS;
    if (op == MPI_OP_NULL)
        return dz_raise(NULL, MPI_ERR_OP, call, "op is MPI_OP_NULL");
    return dz_raise(NULL, MPI_ERR_OP, call, "op is %p: no operation, or one that was freed", (void *)op);
}

int PMPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op)
{
    DZ_ENTER("MPI_Op_create");
    int rc = dz_check_ptr("MPI_Op_create", NULL, op, "op");
    if (!rc && !function)
        rc = dz_raise(NULL, MPI_ERR_ARG, "MPI_Op_create", "user_fn is NULL");
    if (rc)
        return rc;
    struct dz_op *o = malloc(sizeof *o);
    if (!o)
        return dz_raise(NULL, MPI_ERR_NO_MEM, "MPI_Op_create", "out of memory");
    *o = (struct dz_op){.magic = DZ_MAGIC_OP, .index = -1, .commute = commute != 0, .refs = 1, .fn = function};
    *op = o;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Op_create)

int PMPI_Op_free(MPI_Op *op)
{
    DZ_ENTER("MPI_Op_free");
    int rc = dz_check_ptr("MPI_Op_free", NULL, op, "op");
    if (!rc)
        rc = check_handle("MPI_Op_free", *op);
    if (!rc && (*op)->predefined)
        rc = dz_raise(NULL, MPI_ERR_OP, "MPI_Op_free", "op is a predefined operation");
    if (rc)
        return rc;
    dz_op_put(*op);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Op_free)

int PMPI_Op_commutative(MPI_Op op, int *commute)
{
    DZ_ENTER("MPI_Op_commutative");
    int rc = check_handle("MPI_Op_commutative", op);
    if (!rc)
        rc = dz_check_ptr("MPI_Op_commutative", NULL, commute, "commute");
    if (!rc)
        *commute = op->commute;
    return rc;
}
DZ_WEAK(PI_Op_commutative)

int PMPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op)
{
    static const char call[] = "MPI_Reduce_local";
    DZ_ENTER(call);
    int rc = dz_check_count(call, NULL, count, "count");
    if (!rc)
        rc = dz_check_type(call, NULL, datatype, "datatype");
    if (!rc)
        rc = dz_check_op(call, NULL, op, datatype);
    if (!rc)
        rc = dz_check_buf(call, NULL, inbuf, count, datatype);
    if (!rc)
        rc = dz_check_buf(call, NULL, inoutbuf, count, datatype);
    if (!rc && count)
        dz_op_apply(op, datatype, inbuf, inoutbuf, (size_t)count);
    return rc;
}
DZ_WEAK(PI_Reduce_local)
