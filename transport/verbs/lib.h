/* lib.h - libibverbs, found at run time: this library starts where there is none.
 *
 * Calls that set something up go through dz_ibv.NAME, filled by dz_ibv_load. What is called per operation
 * (ibv_post_send, ibv_poll_cq, ...) is inline in the header and reaches the device's own functions directly. */
#ifndef DZ_VERBS_LIB_H
#define DZ_VERBS_LIB_H

#include <infiniband/verbs.h>
#undef ibv_query_port /* macros that choose between versions; the plain symbols do */
#undef ibv_reg_mr

#define DZ_IBV_CALLS(X)                                                                                              \
    X(get_device_list) X(free_device_list) X(get_device_name) X(open_device) X(close_device) X(query_device)         \
    X(query_port) X(query_gid) X(alloc_pd) X(dealloc_pd) X(reg_mr) X(dereg_mr) X(create_cq) X(destroy_cq)            \
    X(create_srq) X(destroy_srq) X(create_qp) X(modify_qp) X(destroy_qp) X(create_ah) X(destroy_ah) X(wc_status_str)

struct dz_ibv_calls {
#define DZ_X(name) __typeof__(&ibv_##name) name;
    DZ_IBV_CALLS(DZ_X)
#undef DZ_X
};
extern struct dz_ibv_calls dz_ibv;
int dz_ibv_load(void); /* 0, or -ENODEV: no libibverbs here, or one without a call that is needed */

#endif
