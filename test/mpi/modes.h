/* modes.h - the same test of a collective for all ways to call it. A program that includes this after coll.h calls
 * MPI_Bcast and its like as ever; DZ_TEST_COLL in the environment says what that becomes:
 *   (unset)  the blocking call
 *   again    the blocking call four times, so that it is a resident one in the end
 *   later    the nonblocking call and MPI_Wait
 *   often    the persistent call, three rounds of MPI_Start and MPI_Wait, MPI_Request_free
 * All ranks call as often as each other, whoever of them is in place. What is reduced in place is put back before the
 * next round, which would else find the result as its operand. */
#ifndef DZ_TEST_MODES_H
#define DZ_TEST_MODES_H

#include "coll.h"

/* An operand that is overwritten. */
static struct {
    char *at, *copy;
    size_t bytes;
} coll_kept;

__attribute__((unused)) static void coll_keep(const void *in, void *buf, MPI_Count count, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    if (in != MPI_IN_PLACE || count <= 0)
        return;
    MPI_Type_get_extent(type, &lb, &extent);
    coll_kept.at = buf;
    coll_kept.bytes = (size_t)(count * extent);
    coll_kept.copy = malloc(coll_kept.bytes);
    memcpy(coll_kept.copy, buf, coll_kept.bytes);
}

static void coll_restore(void)
{
    if (coll_kept.copy)
        memcpy(coll_kept.at, coll_kept.copy, coll_kept.bytes);
}

static void coll_drop(void)
{
    free(coll_kept.copy);
    coll_kept.copy = NULL;
}

static char coll_mode(void)
{
    static char mode;
    const char *text = getenv("DZ_TEST_COLL");
    if (!mode)
        mode = text && *text ? *text : 'n';
    return mode;
}

#define MODE_RUN(times, now, iname, often, ...)                                                                      \
    __extension__({                                                                                                  \
        MPI_Request run_request = MPI_REQUEST_NULL;                                                                  \
        int run_rc = MPI_SUCCESS;                                                                                    \
        if (coll_mode() == 'l') {                                                                                    \
            run_rc = iname(__VA_ARGS__, &run_request);                                                               \
            if (!run_rc)                                                                                             \
                run_rc = MPI_Wait(&run_request, MPI_STATUS_IGNORE);                                                  \
            EXPECT(run_rc || run_request == MPI_REQUEST_NULL, "a request is left");                                  \
        } else if (coll_mode() == 'o') {                                                                             \
            run_rc = often(__VA_ARGS__, MPI_INFO_NULL, &run_request);                                                \
            if (!run_rc)                                                                                             \
                run_rc = MPI_Wait(&run_request, MPI_STATUS_IGNORE); /* inactive: at once */                          \
            for (int run_i = (times) > 1 ? 3 : 1; !run_rc && run_i; run_i--) {                                       \
                coll_restore();                                                                                      \
                run_rc = MPI_Start(&run_request);                                                                    \
                if (!run_rc)                                                                                         \
                    run_rc = MPI_Wait(&run_request, MPI_STATUS_IGNORE);                                              \
            }                                                                                                        \
            if (run_request != MPI_REQUEST_NULL)                                                                     \
                MPI_Request_free(&run_request);                                                                      \
        } else {                                                                                                     \
            for (int run_i = coll_mode() == 'a' ? (times) : 1; !run_rc && run_i; run_i--) {                          \
                coll_restore();                                                                                      \
                run_rc = now(__VA_ARGS__);                                                                           \
            }                                                                                                        \
        }                                                                                                            \
        coll_drop();                                                                                                 \
        run_rc;                                                                                                      \
    })

#define MPI_Barrier(c) MODE_RUN(4, MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, c)
#define MPI_Bcast(...) MODE_RUN(4, MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, __VA_ARGS__)
#define MODE_REDUCE(now, iname, often, s, r, n, t, ...)                                                              \
    (coll_keep(s, r, n, t), MODE_RUN(4, now, iname, often, s, r, n, t, __VA_ARGS__))
#define MPI_Reduce(...) MODE_REDUCE(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, __VA_ARGS__)
#define MPI_Allreduce(...) MODE_REDUCE(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, __VA_ARGS__)
#define MPI_Scan(...) MODE_REDUCE(MPI_Scan, MPI_Iscan, MPI_Scan_init, __VA_ARGS__)
#define MPI_Exscan(...) MODE_REDUCE(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, __VA_ARGS__)
#define MPI_Gather(...) MODE_RUN(4, MPI_Gather, MPI_Igather, MPI_Gather_init, __VA_ARGS__)
#define MPI_Gatherv(...) MODE_RUN(4, MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, __VA_ARGS__)
#define MPI_Scatter(...) MODE_RUN(4, MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, __VA_ARGS__)
#define MPI_Scatterv(...) MODE_RUN(4, MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, __VA_ARGS__)
#define MPI_Allgather(...) MODE_RUN(4, MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, __VA_ARGS__)
#define MPI_Allgatherv(...) MODE_RUN(4, MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, __VA_ARGS__)

/* In place at all ranks or at none: once. */
#define MODE_ALL(now, iname, often, s, ...)                                                                          \
    MODE_RUN((const void *)(s) == MPI_IN_PLACE ? 1 : 4, now, iname, often, s, __VA_ARGS__)
#define MPI_Reduce_scatter(...)                                                                                      \
    MODE_ALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...)                                                                                \
    MODE_ALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, __VA_ARGS__)
#define MPI_Alltoall(...) MODE_ALL(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, __VA_ARGS__)
#define MPI_Alltoallv(...) MODE_ALL(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, __VA_ARGS__)
#define MPI_Alltoallw(...) MODE_ALL(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, __VA_ARGS__)

#endif
