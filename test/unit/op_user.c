/* op_user.c - the user's operations: which argument is which, what the function is told, derived types, references,
 * what is refused. */
#include <stdio.h>
#include <string.h>

#include "mpi/core.h"

static int failures, calls, last_len;
static MPI_Datatype last_type;
#define CHECK(cond, ...)                                                                                             \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            printf("FAIL: line %d: ", __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
            failures++;                                                                                              \
        }                                                                                                            \
    } while (0)

/* neither commutative nor symmetric: the digits of in before those of inout */
static void append(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout;
    calls++;
    last_len = *len;
    last_type = *type;
    for (int i = 0; i < *len; i++)
        b[i] = a[i] * 10 + b[i];
}

/* of a strided type: MPI tells count and type, the function knows the layout */
static void strided(void *in, void *inout, int *len, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *len; i++) {
        const int *a = (const int *)((const char *)in + i * extent);
        int *b = (int *)((char *)inout + i * extent);
        b[0] -= a[0];
        b[2] -= a[2];
    }
}

static void order(void)
{
    MPI_Op op;
    int in[3] = {1, 2, 3}, inout[3] = {7, 8, 9}, commute = -1;
    CHECK(!MPI_Op_create(append, 0, &op), "create");
    CHECK(!MPI_Op_commutative(op, &commute) && commute == 0, "commutes: %d", commute);
    CHECK(!MPI_Reduce_local(in, inout, 3, MPI_INT, op), "reduce");
    CHECK(!memcmp(inout, (int[]){17, 28, 39}, sizeof inout), "in and inout are exchanged: %d", inout[0]);
    CHECK(!memcmp(in, (int[]){1, 2, 3}, sizeof in), "in is written");
    CHECK(calls == 1 && last_len == 3 && last_type == MPI_INT, "called %d times with %d", calls, last_len);
    CHECK(!MPI_Reduce_local(in, inout, 0, MPI_INT, op) && calls == 1, "called for nothing");
    CHECK(dz_op_valid(op, MPI_CHAR), "a user operation is refused on a type");
    struct dz_op *alive = op;
    dz_op_get(alive);
    CHECK(!MPI_Op_free(&op) && op == MPI_OP_NULL, "free");
    CHECK(dz_op_ok(alive), "freed while referenced");
    dz_op_apply(alive, MPI_INT, in, inout, 1);
    CHECK(inout[0] == 27, "the referenced operation is gone: %d", inout[0]);
    dz_op_put(alive);
}

static void derived(void)
{
    MPI_Op op;
    MPI_Datatype t, wide;
    int in[10] = {1, 1, 2, 1, 3, 1, 4, 1, 0, 0}, inout[10] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    MPI_Type_vector(2, 1, 2, MPI_INT, &t);
    MPI_Type_create_resized(t, 0, 4 * sizeof(int), &wide);
    CHECK(!MPI_Op_create(strided, 1, &op), "create");
    CHECK(MPI_Reduce_local(in, inout, 2, wide, op) == MPI_ERR_TYPE, "an uncommitted type is taken");
    MPI_Type_commit(&wide);
    CHECK(!MPI_Reduce_local(in, inout, 2, wide, op), "reduce");
    CHECK(!memcmp(inout, (int[]){8, 9, 7, 9, 6, 9, 5, 9, 9, 9}, sizeof inout), "a derived type is reduced wrongly");
    CHECK(MPI_Reduce_local(in, inout, 2, wide, MPI_SUM) == MPI_ERR_OP, "MPI_SUM on a derived type is taken");
    int commute = 0;
    CHECK(!MPI_Op_commutative(op, &commute) && commute == 1, "commutes: %d", commute);
    MPI_Op_free(&op);
    MPI_Type_free(&t);
    MPI_Type_free(&wide);
}

static void wrong(void)
{
    MPI_Op op = MPI_SUM, none = MPI_OP_NULL;
    int a = 1, b = 2, commute;
    CHECK(MPI_Op_free(&op) == MPI_ERR_OP && op == MPI_SUM, "MPI_SUM can be freed");
    CHECK(MPI_Op_free(&none) == MPI_ERR_OP, "MPI_OP_NULL can be freed");
    CHECK(MPI_Op_free(NULL) == MPI_ERR_ARG, "NULL can be freed");
    CHECK(MPI_Op_create(NULL, 1, &op) == MPI_ERR_ARG, "a NULL function is taken");
    CHECK(MPI_Op_create(append, 1, NULL) == MPI_ERR_ARG, "a NULL result is taken");
    CHECK(MPI_Op_commutative(MPI_OP_NULL, &commute) == MPI_ERR_OP, "MPI_OP_NULL commutes");
    CHECK(MPI_Op_commutative(MPI_SUM, NULL) == MPI_ERR_ARG, "NULL flag");
    CHECK(!MPI_Op_commutative(MPI_SUM, &commute) && commute == 1, "MPI_SUM does not commute");
    CHECK(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_OP_NULL) == MPI_ERR_OP, "MPI_OP_NULL is taken");
    CHECK(MPI_Reduce_local(&a, &b, -1, MPI_INT, MPI_SUM) == MPI_ERR_COUNT, "a negative count is taken");
    CHECK(MPI_Reduce_local(&a, &b, 1, MPI_DATATYPE_NULL, MPI_SUM) == MPI_ERR_TYPE, "MPI_DATATYPE_NULL is taken");
    CHECK(MPI_Reduce_local(NULL, &b, 1, MPI_INT, MPI_SUM) == MPI_ERR_BUFFER, "a NULL buffer is taken");
    CHECK(MPI_Reduce_local(&a, NULL, 1, MPI_INT, MPI_SUM) == MPI_ERR_BUFFER, "a NULL result buffer is taken");
    CHECK(a == 1 && b == 2, "refused calls write");
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    order();
    derived();
    wrong();
    MPI_Finalize();
    return failures != 0;
}
