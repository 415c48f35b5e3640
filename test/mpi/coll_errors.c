/* coll_errors.c - wrong arguments of collectives come back as the right class, on the rank that gave them, and leave
 * the communicator usable. */
/* run: -n 2 */
#include "coll.h"

static int buf[64], out[64];

static void comm_and_root(void)
{
    char garbage[512];
    memset(garbage, 0x5a, sizeof garbage);
    EXPECT(MPI_Barrier(MPI_COMM_NULL) == MPI_ERR_COMM, "null");
    EXPECT(MPI_Bcast(buf, 1, MPI_INT, 0, MPI_COMM_NULL) == MPI_ERR_COMM, "null");
    EXPECT(MPI_Allreduce(buf, out, 1, MPI_INT, MPI_SUM, (MPI_Comm)garbage) == MPI_ERR_COMM, "garbage");
    EXPECT(MPI_Scan(buf, out, 1, MPI_INT, MPI_SUM, NULL) == MPI_ERR_COMM, "NULL");
    EXPECT(MPI_Bcast(buf, 1, MPI_INT, world_size, MPI_COMM_WORLD) == MPI_ERR_ROOT, "root too large");
    EXPECT(MPI_Reduce(buf, out, 1, MPI_INT, MPI_SUM, -1, MPI_COMM_WORLD) == MPI_ERR_ROOT, "root -1");
    EXPECT(MPI_Gather(buf, 1, MPI_INT, out, 1, MPI_INT, MPI_PROC_NULL, MPI_COMM_WORLD) == MPI_ERR_ROOT,
           "root PROC_NULL");
    EXPECT(MPI_Scatter(buf, 1, MPI_INT, out, 1, MPI_INT, 99, MPI_COMM_WORLD) == MPI_ERR_ROOT, "root 99");
}

static void counts_and_types(void)
{
    MPI_Datatype raw;
    MPI_Type_contiguous(3, MPI_INT, &raw);
    EXPECT(MPI_Bcast(buf, -1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT, "count -1");
    EXPECT(MPI_Allreduce(buf, out, -2, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_COUNT, "count -2");
    EXPECT(MPI_Alltoall(buf, 1, MPI_INT, out, -1, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_COUNT, "recvcount -1");
    int bad[2] = {1, -1};
    EXPECT(MPI_Reduce_scatter(buf, out, bad, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_COUNT, "recvcounts[1] -1");
    EXPECT(MPI_Bcast(buf, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE, "no type");
    EXPECT(MPI_Bcast(buf, 1, raw, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE, "not committed");
    EXPECT(MPI_Allgather(buf, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, MPI_COMM_WORLD) == MPI_ERR_TYPE, "no type");
    MPI_Type_free(&raw);
}

static void operations(void)
{
    EXPECT(MPI_Allreduce(buf, out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD) == MPI_ERR_OP, "no operation");
    EXPECT(MPI_Allreduce(buf, out, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD) == MPI_ERR_OP, "bits of doubles");
    EXPECT(MPI_Allreduce(buf, out, 1, MPI_INT, MPI_MINLOC, MPI_COMM_WORLD) == MPI_ERR_OP, "location without pairs");
    EXPECT(MPI_Reduce(buf, out, 1, MPI_BYTE, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_ERR_OP, "sum of bytes");
    EXPECT(MPI_Exscan(buf, out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD) == MPI_ERR_OP, "no operation");
}

static void buffers(void)
{
    int other = (world_rank + 1) % 2;
    EXPECT(MPI_Bcast(NULL, 3, MPI_INT, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER, "NULL");
    EXPECT(MPI_Allreduce(buf, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_BUFFER, "NULL");
    EXPECT(MPI_Allreduce(buf, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_BUFFER,
           "in place is for sendbuf");
    EXPECT(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER, "in place");
    EXPECT(MPI_Reduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, other, MPI_COMM_WORLD) == MPI_ERR_BUFFER,
           "in place, no root");
    EXPECT(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, other, MPI_COMM_WORLD) == MPI_ERR_BUFFER,
           "in place, no root");
    EXPECT(MPI_Scatter(buf, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, other, MPI_COMM_WORLD) == MPI_ERR_BUFFER,
           "in place, no root");
    EXPECT(MPI_Allgatherv(buf, 1, MPI_INT, out, NULL, NULL, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_ARG, "no counts");
    EXPECT(MPI_Alltoallv(buf, NULL, NULL, MPI_INT, out, NULL, NULL, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_ARG,
           "no counts");
}

/* A message longer than its receive buffer is an error of the receiver alone. */
static void truncation(void)
{
    int rc = MPI_Bcast(buf, world_rank ? 2 : 8, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(rc == (world_rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "class %d", rc);
    char text[MPI_MAX_ERROR_STRING];
    int n;
    MPI_Error_string(rc, text, &n);
    EXPECT(!world_rank || (strstr(text, "MPI_Bcast") && strstr(text, "rank 0")), "%s", text);
    EXPECT(MPI_Gather(buf, 4, MPI_INT, out, 3, MPI_INT, 0, MPI_COMM_SELF) == MPI_ERR_TRUNCATE, "the own block as well");
    EXPECT(MPI_Alltoall(buf, 2, MPI_INT, out, 1, MPI_INT, MPI_COMM_SELF) == MPI_ERR_TRUNCATE, "the own block as well");
    int small = 1, counts[2] = {4, 4}, displs[2] = {0, 4};
    rc = MPI_Gatherv(buf, world_rank ? 6 : 4, MPI_INT, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(rc == (world_rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "class %d", rc);
    rc = MPI_Allreduce(MPI_IN_PLACE, &small, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rc == MPI_SUCCESS && small == 2, "the communicator works on: %d", small);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (world_size == 2) {
        comm_and_root();
        counts_and_types();
        operations();
        buffers();
        truncation();
    }
    return end();
}
