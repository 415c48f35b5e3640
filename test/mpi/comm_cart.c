/* comm_cart.c - Cartesian communicators and MPI_Dims_create (MPI 3.1, chapter 7): coordinates, shifts with and without
 * wrapping, parts, duplicates, grids smaller than the communicator or of no dimension, and the error cases. */
/* run: -n 7 */
#include "coll.h"

static void dims(int n, int nd, int *d, const char *want)
{
    char got[64] = "";
    EXPECT(MPI_Dims_create(n, nd, d) == MPI_SUCCESS, "%d in %d", n, nd);
    for (int i = 0; i < nd; i++)
        sprintf(got + strlen(got), i ? " %d" : "%d", d[i]);
    EXPECT(!strcmp(got, want), "%d in %d: %s, not %s", n, nd, got, want);
}

static void balanced(void)
{
    dims(6, 2, (int[]){0, 0}, "3 2");
    dims(7, 2, (int[]){0, 0}, "7 1");
    dims(72, 2, (int[]){0, 0}, "9 8");
    dims(64, 3, (int[]){0, 0, 0}, "4 4 4");
    dims(24, 3, (int[]){0, 0, 0}, "4 3 2");
    dims(6, 3, (int[]){0, 3, 0}, "2 3 1");
    dims(1, 2, (int[]){0, 0}, "1 1");
    dims(12, 1, (int[]){0}, "12");
    dims(6, 2, (int[]){2, 3}, "2 3");
    EXPECT(MPI_Dims_create(7, 2, (int[]){2, 0}) == MPI_ERR_DIMS, "7 is odd");
    EXPECT(MPI_Dims_create(6, 2, (int[]){-1, 0}) == MPI_ERR_DIMS, "-1");
    EXPECT(MPI_Dims_create(0, 2, (int[]){0, 0}) == MPI_ERR_DIMS, "nobody");
}

static void grid(void)
{
    MPI_Comm c, d;
    int size, status, nd, dim[2], wraps[2], at[2], r, from, to, rank;
    MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){3, 2}, (int[]){1, 0}, 1, &c); /* 6 of 7 ranks */
    EXPECT((c == MPI_COMM_NULL) == (world_rank == 6), "members");
    if (c == MPI_COMM_NULL)
        return;
    MPI_Comm_size(c, &size);
    MPI_Comm_rank(c, &rank);
    EXPECT(size == 6 && MPI_Topo_test(c, &status) == MPI_SUCCESS && status == MPI_CART, "a grid of %d", size);
    EXPECT(MPI_Cartdim_get(c, &nd) == MPI_SUCCESS && nd == 2, "%d", nd);
    EXPECT(MPI_Cart_get(c, 2, dim, wraps, at) == MPI_SUCCESS && dim[0] == 3 && dim[1] == 2 && wraps[0] && !wraps[1],
           "dims");
    EXPECT(at[0] == rank / 2 && at[1] == rank % 2, "at %d %d", at[0], at[1]);
    for (int i = 0; i < 6; i++) {
        MPI_Cart_coords(c, i, 2, at);
        EXPECT(MPI_Cart_rank(c, at, &r) == MPI_SUCCESS && r == i, "%d comes back as %d", i, r);
        at[0] -= 3 * 100;
        EXPECT(MPI_Cart_rank(c, at, &r) == MPI_SUCCESS && r == i, "wrapped");
        at[1] += 2;
        EXPECT(MPI_Cart_rank(c, at, &r) == MPI_ERR_ARG, "does not wrap");
    }
    MPI_Cart_shift(c, 0, 1, &from, &to);
    EXPECT(from == (rank + 4) % 6 && to == (rank + 2) % 6, "from %d to %d", from, to);
    MPI_Cart_shift(c, 0, -4, &from, &to);
    EXPECT(from == (rank + 2) % 6 && to == (rank + 4) % 6, "from %d to %d", from, to);
    MPI_Cart_shift(c, 1, 1, &from, &to);
    EXPECT(from == (rank % 2 ? rank - 1 : MPI_PROC_NULL) && to == (rank % 2 ? MPI_PROC_NULL : rank + 1), "%d %d", from,
           to);
    int sent = rank, got = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, c, MPI_STATUS_IGNORE);
    EXPECT(got == (rank % 2 ? rank - 1 : -1), "%d", got);
    MPI_Comm_dup(c, &d);
    MPI_Comm_free(&c);
    EXPECT(MPI_Cart_coords(d, rank, 2, at) == MPI_SUCCESS && at[0] == rank / 2, "a duplicate is a grid as well");
    MPI_Cart_sub(d, (int[]){1, 0}, &c);
    MPI_Comm_size(c, &size);
    MPI_Comm_rank(c, &r);
    EXPECT(size == 3 && r == rank / 2, "rank %d of %d", r, size);
    EXPECT(MPI_Cart_get(c, 1, dim, wraps, at) == MPI_SUCCESS && dim[0] == 3 && wraps[0] && at[0] == rank / 2,
           "a column");
    MPI_Allreduce(&rank, &r, 1, MPI_INT, MPI_MIN, c);
    EXPECT(r == rank % 2, "the column of %d", r);
    MPI_Comm_free(&c);
    MPI_Cart_sub(d, (int[]){0, 0}, &c);
    EXPECT(MPI_Comm_size(c, &size) == MPI_SUCCESS && size == 1 && MPI_Cartdim_get(c, &nd) == MPI_SUCCESS && nd == 0,
           "a point");
    MPI_Comm_free(&c);
    EXPECT(MPI_Cart_coords(d, 6, 2, at) == MPI_ERR_RANK, "no rank 6");
    EXPECT(MPI_Cart_shift(d, 2, 1, &from, &to) == MPI_ERR_ARG, "no direction 2");
    MPI_Comm_free(&d);
}

static void errors(void)
{
    MPI_Comm c;
    int x, one[1] = {1};
    EXPECT(MPI_Topo_test(MPI_COMM_WORLD, &x) == MPI_SUCCESS && x == MPI_UNDEFINED, "no grid");
    EXPECT(MPI_Cartdim_get(MPI_COMM_WORLD, &x) == MPI_ERR_TOPOLOGY, "no grid");
    EXPECT(MPI_Cart_rank(MPI_COMM_WORLD, one, &x) == MPI_ERR_TOPOLOGY, "no grid");
    EXPECT(MPI_Cart_create(MPI_COMM_NULL, 1, one, one, 0, &c) == MPI_ERR_COMM, "null");
    EXPECT(MPI_Cart_create(MPI_COMM_SELF, 1, (int[]){2}, one, 0, &c) == MPI_ERR_ARG, "too many");
    EXPECT(MPI_Cart_create(MPI_COMM_SELF, 1, (int[]){0}, one, 0, &c) == MPI_ERR_DIMS, "no ranks");
    EXPECT(MPI_Cart_create(MPI_COMM_SELF, -1, one, one, 0, &c) == MPI_ERR_ARG, "-1 dimensions");
    EXPECT(MPI_Cart_create(MPI_COMM_SELF, 1, NULL, one, 0, &c) == MPI_ERR_ARG, "NULL");
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c); /* one point */
    EXPECT((c == MPI_COMM_NULL) == (world_rank > 0), "a point");
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
    EXPECT(MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){2}, one, &x) == MPI_SUCCESS &&
               x == (world_rank < 2 ? world_rank : MPI_UNDEFINED), "mapped to %d", x);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 7);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    balanced();
    if (world_size == 7)
        grid();
    errors();
    return end();
}
