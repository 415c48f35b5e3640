/* lib.c - finds libibverbs. It stays loaded: its providers register things that cannot be unloaded. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "transport/verbs/lib.h"

struct dz_ibv_calls dz_ibv;

int dz_ibv_load(void)
{
    if (dz_ibv.get_device_list)
        return 0;
    void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return -ENODEV;
    struct dz_ibv_calls calls;
    void *at;
    /* memcpy: ISO C has no cast from an object's pointer to a function's */
#define DZ_X(name)                                                                                                   \
    if (!(at = dlsym(lib, "ibv_" #name)))                                                                            \
        return -ENODEV;                                                                                              \
    memcpy(&calls.name, &at, sizeof at);
    DZ_IBV_CALLS(DZ_X)
#undef DZ_X
    dz_ibv = calls;
    return 0;
}
