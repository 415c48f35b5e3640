/* Wrong uses are errors through the handler that name call, argument and value; nothing is lost by them.
 *
 * run: -n 2
 * run: -n 1 */
#include "check.h"

enum { PARTS = 4 };
static int out[PARTS], in[PARTS + 2];

static void arguments(void)
{
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Datatype fresh;
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Info i = MPI_INFO_NULL;
    MPI_Type_contiguous(2, MPI_INT, &fresh);
    ERROR(MPI_Psend_init(out, 0, 1, MPI_INT, 0, 0, w, i, &q), MPI_ERR_ARG, "MPI_Psend_init", "partitions");
    ERROR(MPI_Psend_init(out, -3, 1, MPI_INT, 0, 0, w, i, &q), MPI_ERR_ARG, "partitions", "-3");
    ERROR(MPI_Psend_init(out, 1, -1, MPI_INT, 0, 0, w, i, &q), MPI_ERR_COUNT, "count", "-1");
    ERROR(MPI_Psend_init(NULL, 1, 1, MPI_INT, 0, 0, w, i, &q), MPI_ERR_BUFFER, "buf", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, MPI_DATATYPE_NULL, 0, 0, w, i, &q), MPI_ERR_TYPE, "datatype", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, fresh, 0, 0, w, i, &q), MPI_ERR_TYPE, "datatype", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, size, 0, w, i, &q), MPI_ERR_RANK, "dest", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, -7, 0, w, i, &q), MPI_ERR_RANK, "dest", "-7");
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, 0, -5, w, i, &q), MPI_ERR_TAG, "tag", "-5");
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, 0, 0, MPI_COMM_NULL, i, &q), MPI_ERR_COMM, "MPI_Psend_init", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, 0, 0, w, NULL, &q), MPI_ERR_INFO, "info", NULL);
    ERROR(MPI_Psend_init(out, 1, 1, MPI_INT, 0, 0, w, i, NULL), MPI_ERR_ARG, "request", NULL);
    ERROR(MPI_Psend_init(out, 2147483647, (MPI_Count)1 << 60, MPI_INT, 0, 0, w, i, &q), MPI_ERR_COUNT, "count", NULL);
    ERROR(MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, w, i, &q), MPI_ERR_RANK, "MPI_ANY_SOURCE", NULL);
    ERROR(MPI_Precv_init(in, 1, 1, MPI_INT, 0, MPI_ANY_TAG, w, i, &q), MPI_ERR_TAG, "MPI_ANY_TAG", NULL);
    ERROR(MPI_Precv_init(in, 0, 1, MPI_INT, 0, 0, w, i, &q), MPI_ERR_ARG, "MPI_Precv_init", "partitions");
    EXPECT(q == MPI_REQUEST_NULL, "a request came out of a failed call");
    MPI_Type_free(&fresh);
}

static void uses(void)
{
    MPI_Request s, r, null = MPI_REQUEST_NULL, plain;
    int list[3] = {0, 9, 1};
    MPI_Psend_init(out, PARTS, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Irecv(in, 1, MPI_INT, peer, 99, MPI_COMM_WORLD, &plain);
    ERROR(MPI_Pready(0, s), MPI_ERR_REQUEST, "MPI_Pready", "MPI_Start");
    ERROR(MPI_Pready(0, null), MPI_ERR_REQUEST, "MPI_REQUEST_NULL", NULL);
    ERROR(MPI_Pready(0, NULL), MPI_ERR_REQUEST, NULL, NULL);
    ERROR(MPI_Start(&null), MPI_ERR_REQUEST, "MPI_Start", NULL);
    ERROR(MPI_Start(&plain), MPI_ERR_REQUEST, "persistent", NULL);
    ERROR(MPI_Pready(0, plain), MPI_ERR_REQUEST, "receive", NULL);
    MPI_Start(&r);
    MPI_Start(&s);
    ERROR(MPI_Start(&s), MPI_ERR_REQUEST, "active", NULL);
    ERROR(MPI_Start(&r), MPI_ERR_REQUEST, "active", NULL);
    ERROR(MPI_Pready(0, r), MPI_ERR_REQUEST, "partitioned receive", NULL);
    ERROR(MPI_Pready(-1, s), MPI_ERR_ARG, "partition", "-1");
    ERROR(MPI_Pready(PARTS, s), MPI_ERR_ARG, "partition", "4");
    ERROR(MPI_Pready_range(2, PARTS, s), MPI_ERR_ARG, "MPI_Pready_range", "4");
    ERROR(MPI_Pready_range(2, 1, s), MPI_ERR_ARG, "partition_low", NULL);
    ERROR(MPI_Pready_list(3, list, s), MPI_ERR_ARG, "MPI_Pready_list", "9");
    ERROR(MPI_Pready_list(-1, list, s), MPI_ERR_COUNT, "length", "-1");
    ERROR(MPI_Pready_list(1, NULL, s), MPI_ERR_ARG, "NULL", NULL);
    ERROR(MPI_Request_free(&s), MPI_ERR_REQUEST, "MPI_Request_free", "active");
    ERROR(MPI_Request_free(&r), MPI_ERR_REQUEST, "MPI_Request_free", "active");
    ERROR(MPI_Cancel(&s), MPI_ERR_REQUEST, "MPI_Cancel", NULL);
    ERROR(MPI_Cancel(&r), MPI_ERR_REQUEST, "MPI_Cancel", NULL);
    for (int p = 0; p < PARTS; p++) {
        out[p] = 100 * rank + p;
        EXPECT(MPI_Pready(p, s) == MPI_SUCCESS, "partition %d", p);
        ERROR(MPI_Pready(p, s), MPI_ERR_ARG, "already", NULL);
    }
    EXPECT(MPI_Wait(&s, MPI_STATUS_IGNORE) == MPI_SUCCESS, "send");
    EXPECT(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS, "receive");
    for (int p = 0; p < PARTS; p++)
        EXPECT(in[p] == 100 * peer + p, "partition %d is %d", p, in[p]);
    MPI_Cancel(&plain);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

/* A receive shorter than the send says so, delivers what fits, and the next pair works. */
static void truncation(int count)
{
    int *big = calloc((size_t)(2 * PARTS * count), sizeof *big), *small = calloc((size_t)(PARTS * count + 1), sizeof *small);
    MPI_Request s, r;
    MPI_Status status;
    MPI_Psend_init(big, PARTS, 2 * count, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(small, PARTS, count, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 2 * PARTS * count; i++)
            big[i] = round * 1000 + i;
        MPI_Start(&r);
        MPI_Start(&s);
        MPI_Pready_range(0, PARTS - 1, s);
        ERROR(MPI_Wait(&r, &status), MPI_ERR_TRUNCATE, "MPI_Wait", NULL);
        EXPECT(MPI_Wait(&s, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the sender");
        EXPECT(small[PARTS * count] == 0, "written beyond the end");
        EXPECT(small[0] == round * 1000 && small[PARTS * count - 1] == round * 1000 + PARTS * count - 1, "what fits");
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(big);
    free(small);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    arguments();
    uses();
    truncation(1);
    truncation(300);
    truncation(20000);
    return end();
}
