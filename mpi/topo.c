/* topo.c - Cartesian grids over communicators.
 *
 * A grid is what a communicator carries besides its group: how its ranks 0..n-1 lie in dims[0] x dims[1] x ..., the
 * last dimension running fastest. It never changes, and duplicates of a communicator share it by reference. Ranks are
 * not reordered: processes of one node are equally near to each other for this library.
 *
 * Arithmetic on coordinates is done in long long, for displacements are the user's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/comm.h"

struct grid {
    _Atomic int refs;
    int ndims;
    struct {
        int size;
        bool wraps;
    } dim[];
};

static struct grid *grid_make(int ndims, const int dims[], const int periods[])
{
    struct grid *g = malloc(sizeof *g + (size_t)ndims * sizeof g->dim[0]);
    if (!g)
        return NULL;
    atomic_store_explicit(&g->refs, 1, memory_order_relaxed);
    g->ndims = ndims;
    for (int d = 0; d < ndims; d++) {
        g->dim[d].size = dims[d];
        g->dim[d].wraps = periods[d] != 0;
    }
    return g;
}

void *dz_topo_get(void *topo)
{
    struct grid *g = topo;
    if (g)
        atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void dz_topo_put(void *topo)
{
    struct grid *g = topo;
    if (g && atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1)
        free(g);
}

static void coords_of(const struct grid *g, int rank, int n, int coords[])
{
    for (int d = g->ndims - 1; d >= 0; d--) {
        if (d < n)
            coords[d] = rank % g->dim[d].size;
        rank /= g->dim[d].size;
    }
}

/* The coordinate in range that c means in a dimension, or -1. */
static int wrap(const struct grid *g, int d, long long c)
{
    int size = g->dim[d].size;
    if (c >= 0 && c < size)
        return (int)c;
    return g->dim[d].wraps ? (int)((c % size + size) % size) : -1;
}

/* ---- checks */
static int check_grid(const char *call, struct dz_comm *comm, struct grid **g)
{
    int rc = dz_check_comm(call, comm);
    if (!rc && !comm->topo)
        rc = dz_raise(comm, MPI_ERR_TOPOLOGY, call, "the communicator has no Cartesian topology");
    if (!rc)
        *g = comm->topo;
    return rc;
}

static int check_maxdims(const char *call, struct dz_comm *comm, int maxdims, const void *out, const char *arg)
{
    if (maxdims < 0)
        return dz_raise(comm, MPI_ERR_ARG, call, "maxdims is %d", maxdims);
    return maxdims ? dz_check_ptr(call, comm, out, arg) : MPI_SUCCESS;
}

/* dims of a grid to be made; *ranks: how many it has */
static int check_dims(const char *call, struct dz_comm *comm, int ndims, const int dims[], const int periods[],
                      int *ranks)
{
    int rc = dz_check_comm(call, comm);
    if (!rc && ndims < 0)
        rc = dz_raise(comm, MPI_ERR_ARG, call, "ndims is %d", ndims);
    if (!rc && ndims)
        rc = dz_check_ptr(call, comm, dims, "dims");
    if (!rc && ndims)
        rc = dz_check_ptr(call, comm, periods, "periods");
    long long n = 1;
    for (int d = 0; !rc && d < ndims; d++) {
        if (dims[d] <= 0)
            rc = dz_raise(comm, MPI_ERR_DIMS, call, "dims[%d] is %d", d, dims[d]);
        else if ((n *= dims[d]) > comm->size)
            rc = dz_raise(comm, MPI_ERR_ARG, call, "the grid has more ranks than the communicator's %d", comm->size);
    }
    *ranks = (int)n;
    return rc;
}

/* ---- balanced dimensions */
static bool power_reaches(long long f, int d, long long n)
{
    long long p = 1;
    while (d-- && p < n)
        p *= f;
    return p >= n;
}

/* n as a product of d factors, none above limit and none above the one before it, the largest as small as can be */
static bool factor(int n, int d, int limit, int *out)
{
    if (d == 1) {
        *out = n;
        return n <= limit;
    }
    for (int f = 1; f <= n && f <= limit; f++) {
        if (n % f == 0 && power_reaches(f, d, n) && factor(n / f, d - 1, f, out + 1)) {
            *out = f;
            return true;
        }
    }
    return false;
}

static int dims_create(const char *call, int nnodes, int ndims, int dims[])
{
    int holes = 0, rest = nnodes;
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 0)
            return dz_raise(NULL, MPI_ERR_DIMS, call, "dims[%d] is %d", d, dims[d]);
        if (dims[d] && rest % dims[d])
            return dz_raise(NULL, MPI_ERR_DIMS, call, "nnodes (%d) is no multiple of the given dims", nnodes);
        rest /= dims[d] ? dims[d] : 1;
        holes += !dims[d];
    }
    if (!holes)
        return rest == 1 ? MPI_SUCCESS
                         : dz_raise(NULL, MPI_ERR_DIMS, call, "the given dims do not make nnodes (%d)", nnodes);
    int *found = malloc((size_t)holes * sizeof *found);
    if (!found)
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    factor(rest, holes, rest, found); /* rest, 1, 1, ... always fits */
    for (int d = 0, i = 0; d < ndims; d++)
        if (!dims[d])
            dims[d] = found[i++];
    free(found);
    return MPI_SUCCESS;
}

int PMPI_Dims_create(int nnodes, int ndims, int dims[])
{
    DZ_ENTER("MPI_Dims_create");
    if (nnodes < 1 || ndims < 0)
        return dz_raise(NULL, MPI_ERR_DIMS, "MPI_Dims_create", "nnodes is %d, ndims %d", nnodes, ndims);
    int rc = ndims ? dz_check_ptr("MPI_Dims_create", NULL, dims, "dims") : MPI_SUCCESS;
    return rc || !ndims ? rc : dims_create("MPI_Dims_create", nnodes, ndims, dims);
}
DZ_WEAK(PI_Dims_create)

/* ---- making */
/* Collective over comm; the ranks of one colour form a grid. Takes over the caller's reference to g. */
static int make_grid(const char *call, struct dz_comm *comm, int color, int key, struct grid *g, MPI_Comm *out)
{
    struct dz_comm *made = MPI_COMM_NULL;
    if (!g)
        return dz_raise_errno(comm, -ENOMEM, call, NULL);
    int rc = dz_comm_split(call, comm, color, key, &made);
    if (!rc && made != MPI_COMM_NULL)
        made->topo = g;
    else
        dz_topo_put(g);
    if (!rc)
        *out = made;
    return rc;
}

int PMPI_Cart_create(MPI_Comm old_comm, int ndims, const int dims[], const int periods[], int reorder,
                     MPI_Comm *comm_cart)
{
    (void)reorder;
    DZ_ENTER("MPI_Cart_create");
    int ranks, rc = check_dims("MPI_Cart_create", old_comm, ndims, dims, periods, &ranks);
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_create", old_comm, comm_cart, "comm_cart");
    if (rc)
        return rc;
    return make_grid("MPI_Cart_create", old_comm, old_comm->rank < ranks ? 0 : MPI_UNDEFINED, old_comm->rank,
                     grid_make(ndims, dims, periods), comm_cart);
}
DZ_WEAK(PI_Cart_create)

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    DZ_ENTER("MPI_Cart_map");
    int ranks, rc = check_dims("MPI_Cart_map", comm, ndims, dims, periods, &ranks);
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_map", comm, newrank, "newrank");
    if (!rc)
        *newrank = comm->rank < ranks ? comm->rank : MPI_UNDEFINED;
    return rc;
}
DZ_WEAK(PI_Cart_map)

static int sub(const char *call, struct dz_comm *comm, const struct grid *g, const int remain[], MPI_Comm *newcomm)
{
    size_t n = (size_t)g->ndims + 1; /* a grid may have no dimension at all */
    int *coords = malloc(3 * n * sizeof *coords), *dims = coords + n, *periods = dims + n;
    int color = 0, key = 0, kept = 0;
    if (!coords)
        return dz_raise_errno(comm, -ENOMEM, call, NULL);
    coords_of(g, comm->rank, g->ndims, coords);
    for (int d = 0; d < g->ndims; d++) {
        int *at = remain[d] ? &key : &color;
        *at = *at * g->dim[d].size + coords[d];
        if (remain[d]) {
            dims[kept] = g->dim[d].size;
            periods[kept++] = g->dim[d].wraps;
        }
    }
    int rc = make_grid(call, comm, color, key, grid_make(kept, dims, periods), newcomm);
    free(coords);
    return rc;
}

int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *new_comm)
{
    DZ_ENTER("MPI_Cart_sub");
    struct grid *g;
    int rc = check_grid("MPI_Cart_sub", comm, &g);
    if (!rc && g->ndims)
        rc = dz_check_ptr("MPI_Cart_sub", comm, remain_dims, "remain_dims");
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_sub", comm, new_comm, "newcomm");
    return rc ? rc : sub("MPI_Cart_sub", comm, g, remain_dims, new_comm);
}
DZ_WEAK(PI_Cart_sub)

/* ---- looking */
int PMPI_Topo_test(MPI_Comm comm, int *status)
{
    DZ_ENTER("MPI_Topo_test");
    int rc = dz_check_comm("MPI_Topo_test", comm);
    if (!rc)
        rc = dz_check_ptr("MPI_Topo_test", comm, status, "status");
    if (!rc)
        *status = comm->topo ? MPI_CART : MPI_UNDEFINED;
    return rc;
}
DZ_WEAK(PI_Topo_test)

int PMPI_Cartdim_get(MPI_Comm comm, int *ndims)
{
    DZ_ENTER("MPI_Cartdim_get");
    struct grid *g;
    int rc = check_grid("MPI_Cartdim_get", comm, &g);
    if (!rc)
        rc = dz_check_ptr("MPI_Cartdim_get", comm, ndims, "ndims");
    if (!rc)
        *ndims = g->ndims;
    return rc;
}
DZ_WEAK(PI_Cartdim_get)

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
    DZ_ENTER("MPI_Cart_get");
    struct grid *g;
    int rc = check_grid("MPI_Cart_get", comm, &g);
    if (!rc)
        rc = check_maxdims("MPI_Cart_get", comm, maxdims, dims, "dims");
    if (!rc && maxdims)
        rc = dz_check_ptr("MPI_Cart_get", comm, periods, "periods");
    if (!rc && maxdims)
        rc = dz_check_ptr("MPI_Cart_get", comm, coords, "coords");
    if (rc)
        return rc;
    for (int d = 0; d < g->ndims && d < maxdims; d++) {
        dims[d] = g->dim[d].size;
        periods[d] = g->dim[d].wraps;
    }
    coords_of(g, comm->rank, maxdims, coords);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Cart_get)

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
    DZ_ENTER("MPI_Cart_coords");
    struct grid *g;
    int rc = check_grid("MPI_Cart_coords", comm, &g);
    if (!rc && (rank < 0 || rank >= comm->size))
        rc = dz_raise(comm, MPI_ERR_RANK, "MPI_Cart_coords", "rank is %d; the grid has %d", rank, comm->size);
    if (!rc)
        rc = check_maxdims("MPI_Cart_coords", comm, maxdims, coords, "coords");
    if (!rc)
        coords_of(g, rank, maxdims, coords);
    return rc;
}
DZ_WEAK(PI_Cart_coords)

int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    DZ_ENTER("MPI_Cart_rank");
    struct grid *g;
    int rc = check_grid("MPI_Cart_rank", comm, &g);
    if (!rc && g->ndims)
        rc = dz_check_ptr("MPI_Cart_rank", comm, coords, "coords");
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_rank", comm, rank, "rank");
    int r = 0;
    for (int d = 0; !rc && d < g->ndims; d++) {
        int c = wrap(g, d, coords[d]);
        if (c < 0)
            rc = dz_raise(comm, MPI_ERR_ARG, "MPI_Cart_rank",
                          "coords[%d] is %d; the dimension has %d and does not wrap", d, coords[d], g->dim[d].size);
        r = r * g->dim[d].size + c;
    }
    if (!rc)
        *rank = r;
    return rc;
}
DZ_WEAK(PI_Cart_rank)

/* The rank disp away from the own one in a dimension, or MPI_PROC_NULL. */
static int neighbour(const struct grid *g, int rank, int direction, long long disp)
{
    int stride = 1;
    for (int d = g->ndims - 1; d > direction; d--)
        stride *= g->dim[d].size;
    int own = rank / stride % g->dim[direction].size;
    int there = wrap(g, direction, own + disp);
    return there < 0 ? MPI_PROC_NULL : rank + (there - own) * stride;
}

int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    DZ_ENTER("MPI_Cart_shift");
    struct grid *g;
    int rc = check_grid("MPI_Cart_shift", comm, &g);
    if (!rc && (direction < 0 || direction >= g->ndims))
        rc = dz_raise(comm, MPI_ERR_ARG, "MPI_Cart_shift", "direction is %d; the grid has %d dimensions", direction,
                      g->ndims);
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_shift", comm, rank_source, "rank_source");
    if (!rc)
        rc = dz_check_ptr("MPI_Cart_shift", comm, rank_dest, "rank_dest");
    if (rc)
        return rc;
    *rank_source = neighbour(g, comm->rank, direction, -(long long)disp);
    *rank_dest = neighbour(g, comm->rank, direction, disp);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Cart_shift)
