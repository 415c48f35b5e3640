/* info.c - info objects: short lists of strings by name, kept in the order in which the names came.
 *
 * The library itself knows no key so far, so infos are only stored and given back. Lengths: MPI_MAX_INFO_KEY and
 * MPI_MAX_INFO_VAL count the terminating zero, as C programs size their buffers by them.
 *
 * MPI_INFO_NULL carries the magic word, so that whoever takes an info may take it; only the calls of this file tell it
 * apart. MPI_INFO_ENV says how the program was started; it is filled when first looked at, and read-only.
 *
 * One thread at a time may change an info (the standard leaves that to the program); reading needs no lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mpi/comm.h"

struct entry {
    struct entry *next;
    char *value;
    char key[];
};

struct dz_info { /* 256 bytes in the ABI */
    uint32_t magic;
    int count;
    struct entry *first;
};
_Static_assert(sizeof(struct dz_info) <= 256, "MPI_INFO_NULL has 256 bytes in the ABI");

static bool env_filled; /* MPI_INFO_ENV; dz_lock */

int dz_info_init(void)
{
    *MPI_INFO_NULL = *MPI_INFO_ENV = (struct dz_info){.magic = DZ_MAGIC_INFO};
    return 0;
}

/* ---- the list */
static struct entry **place(struct dz_info *info, const char *key)
{
    struct entry **at = &info->first;
    while (*at && strcmp((*at)->key, key))
        at = &(*at)->next;
    return at;
}

static int put(struct dz_info *info, const char *key, const char *value)
{
    struct entry **at = place(info, key), *e = *at;
    char *copy = strdup(value);
    size_t bytes = strlen(key) + 1;
    if (!e && copy && (e = malloc(sizeof *e + bytes))) {
        memcpy(e->key, key, bytes);
        e->value = NULL;
        e->next = NULL;
        *at = e;
        info->count++;
    }
    if (!e || !copy) {
        free(copy);
        return -ENOMEM;
    }
    free(e->value);
    e->value = copy;
    return 0;
}

static void drop(struct dz_info *info, struct entry **at)
{
    struct entry *e = *at;
    *at = e->next;
    info->count--;
    free(e->value);
    free(e);
}

static struct dz_info *make(void)
{
    struct dz_info *info = calloc(1, sizeof *info);
    if (info)
        info->magic = DZ_MAGIC_INFO;
    return info;
}

static void destroy(struct dz_info *info)
{
    while (info->first)
        drop(info, &info->first);
    info->magic = 0;
    free(info);
}

/* ---- how the program was started */
static void put_cut(struct dz_info *info, const char *key, const char *value)
{
    char cut[MPI_MAX_INFO_VAL];
    size_t n = strlen(value);
    if (n > sizeof cut - 1)
        n = sizeof cut - 1;
    memcpy(cut, value, n);
    cut[n] = 0;
    put(info, key, cut); /* a missing hint is no failure */
}

/* The words of argv[1..] behind one another, as long as there is room. */
static void put_args(struct dz_info *info, int argc, char *const argv[])
{
    char text[MPI_MAX_INFO_VAL] = "";
    size_t n = 0;
    for (int i = 1; i < argc && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", argv[i]);
    if (n)
        put_cut(info, "argv", text);
}

static void fill_env(struct dz_info *info, int argc, char *const argv[])
{
    struct utsname uts;
    char text[4096];
    if (argc > 0 && argv[0])
        put_cut(info, "command", argv[0]);
    put_args(info, argc, argv);
    if (dz_boot.size > 0) {
        snprintf(text, sizeof text, "%d", dz_boot.size);
        put_cut(info, "maxprocs", text);
        put_cut(info, "soft", text);
    }
    if (!uname(&uts)) {
        put_cut(info, "host", uts.nodename);
        put_cut(info, "arch", uts.machine);
    }
    if (getcwd(text, sizeof text))
        put_cut(info, "wdir", text);
    if (atomic_load_explicit(&dz_phase, memory_order_acquire) == DZ_RUNNING)
        put_cut(info, "thread_level", dz_threaded ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SERIALIZED");
}

/* The process's own words: nobody passes them to MPI_Init any more. */
static void fill_env_of_process(struct dz_info *info)
{
    enum { MAX_ARGS = 64 };
    char text[4096], *argv[MAX_ARGS];
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    int argc = 0;
    text[n] = 0;
    for (size_t at = 0; at < n && argc < MAX_ARGS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    if (f)
        fclose(f);
    fill_env(info, argc, argv);
}

/* ---- checks */
static int check_handle(const char *call, struct dz_info *info)
{
    if (info == MPI_INFO_NULL)
        return dz_raise(NULL, MPI_ERR_INFO, call, "info is MPI_INFO_NULL");
    if (!dz_info_ok(info))
        return dz_raise(NULL, MPI_ERR_INFO, call, "info is %p: no info object, or one that was freed", (void *)info);
    if (info == MPI_INFO_ENV) {
        dz_lock();
        if (!env_filled)
            fill_env_of_process(info);
        env_filled = true;
        dz_unlock();
    }
    return MPI_SUCCESS;
}

static int check_writable(const char *call, struct dz_info *info)
{
    int rc = check_handle(call, info);
    if (!rc && info == MPI_INFO_ENV)
        rc = dz_raise(NULL, MPI_ERR_INFO, call, "info is MPI_INFO_ENV, which cannot be changed");
    return rc;
}

static int check_key(const char *call, const char *key)
{
    size_t n = key ? strlen(key) : 0;
    if (n > 0 && n < MPI_MAX_INFO_KEY)
        return MPI_SUCCESS;
    if (!n)
        return dz_raise(NULL, MPI_ERR_INFO_KEY, call, key ? "key is empty" : "key is NULL");
    return dz_raise(NULL, MPI_ERR_INFO_KEY, call, "key has %zu characters; %d are allowed", n, MPI_MAX_INFO_KEY - 1);
}

/* ---- calls */
static int give(const char *call, struct dz_info *made, MPI_Info *out)
{
    if (!made)
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    *out = made;
    return MPI_SUCCESS;
}

int PMPI_Info_create(MPI_Info *info)
{
    DZ_ENTER("MPI_Info_create");
    int rc = dz_check_ptr("MPI_Info_create", NULL, info, "info");
    return rc ? rc : give("MPI_Info_create", make(), info);
}
DZ_WEAK(PI_Info_create)

int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info) /* at any time */
{
    int rc = dz_check_ptr("MPI_Info_create_env", NULL, info, "info");
    if (rc)
        return rc;
    struct dz_info *made = make();
    if (made && argc > 0 && argv)
        fill_env(made, argc, argv);
    else if (made)
        fill_env_of_process(made);
    return give("MPI_Info_create_env", made, info);
}
DZ_WEAK(PI_Info_create_env)

int PMPI_Info_free(MPI_Info *info)
{
    DZ_ENTER("MPI_Info_free");
    int rc = dz_check_ptr("MPI_Info_free", NULL, info, "info");
    if (!rc)
        rc = check_writable("MPI_Info_free", *info);
    if (rc)
        return rc;
    destroy(*info);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Info_free)

int PMPI_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
    DZ_ENTER("MPI_Info_dup");
    int rc = check_handle("MPI_Info_dup", info);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_dup", NULL, newinfo, "newinfo");
    if (rc)
        return rc;
    struct dz_info *made = make();
    for (struct entry *e = info->first; made && e; e = e->next) {
        if (put(made, e->key, e->value)) {
            destroy(made);
            made = NULL;
        }
    }
    return give("MPI_Info_dup", made, newinfo);
}
DZ_WEAK(PI_Info_dup)

int PMPI_Info_set(MPI_Info info, const char *key, const char *value)
{
    DZ_ENTER("MPI_Info_set");
    int rc = check_writable("MPI_Info_set", info);
    if (!rc)
        rc = check_key("MPI_Info_set", key);
    if (rc)
        return rc;
    size_t n = value ? strlen(value) : 0;
    if (!n || n >= MPI_MAX_INFO_VAL)
        return dz_raise(NULL, MPI_ERR_INFO_VALUE, "MPI_Info_set",
                        "the value of '%s' has %zu characters; 1 to %d are allowed", key, n, MPI_MAX_INFO_VAL - 1);
    rc = put(info, key, value);
    return rc ? dz_raise_errno(NULL, rc, "MPI_Info_set", NULL) : MPI_SUCCESS;
}
DZ_WEAK(PI_Info_set)

int PMPI_Info_delete(MPI_Info info, const char *key)
{
    DZ_ENTER("MPI_Info_delete");
    int rc = check_writable("MPI_Info_delete", info);
    if (!rc)
        rc = check_key("MPI_Info_delete", key);
    if (rc)
        return rc;
    struct entry **at = place(info, key);
    if (!*at)
        return dz_raise(NULL, MPI_ERR_INFO_NOKEY, "MPI_Info_delete", "there is no key '%s'", key);
    drop(info, at);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Info_delete)

/* Checks what the three ways of asking for a value share, and finds it. */
static int look_up(const char *call, struct dz_info *info, const char *key, int *flag, const char **value)
{
    int rc = check_handle(call, info);
    if (!rc)
        rc = check_key(call, key);
    if (!rc)
        rc = dz_check_ptr(call, NULL, flag, "flag");
    if (rc)
        return rc;
    struct entry *e = *place(info, key);
    *flag = e != NULL;
    *value = e ? e->value : NULL;
    return MPI_SUCCESS;
}

int PMPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
    DZ_ENTER("MPI_Info_get");
    const char *found;
    int rc = look_up("MPI_Info_get", info, key, flag, &found);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_get", NULL, value, "value");
    if (!rc && valuelen < 0)
        rc = dz_raise(NULL, MPI_ERR_ARG, "MPI_Info_get", "valuelen is %d", valuelen);
    if (rc || !found)
        return rc;
    size_t n = strnlen(found, (size_t)valuelen); /* value has room for valuelen characters and the zero */
    memcpy(value, found, n);
    value[n] = 0;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Info_get)

int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
    DZ_ENTER("MPI_Info_get_string");
    const char *found;
    int rc = look_up("MPI_Info_get_string", info, key, flag, &found);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_get_string", NULL, buflen, "buflen");
    if (!rc && *buflen < 0)
        rc = dz_raise(NULL, MPI_ERR_ARG, "MPI_Info_get_string", "*buflen is %d", *buflen);
    if (!rc && *buflen > 0)
        rc = dz_check_ptr("MPI_Info_get_string", NULL, value, "value");
    if (rc || !found)
        return rc;
    if (*buflen > 0)
        snprintf(value, (size_t)*buflen, "%s", found);
    *buflen = (int)strlen(found) + 1;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Info_get_string)

int PMPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
    DZ_ENTER("MPI_Info_get_valuelen");
    const char *found;
    int rc = look_up("MPI_Info_get_valuelen", info, key, flag, &found);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_get_valuelen", NULL, valuelen, "valuelen");
    if (!rc && found)
        *valuelen = (int)strlen(found);
    return rc;
}
DZ_WEAK(PI_Info_get_valuelen)

int PMPI_Info_get_nkeys(MPI_Info info, int *nkeys)
{
    DZ_ENTER("MPI_Info_get_nkeys");
    int rc = check_handle("MPI_Info_get_nkeys", info);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_get_nkeys", NULL, nkeys, "nkeys");
    if (!rc)
        *nkeys = info->count;
    return rc;
}
DZ_WEAK(PI_Info_get_nkeys)

int PMPI_Info_get_nthkey(MPI_Info info, int n, char *key)
{
    DZ_ENTER("MPI_Info_get_nthkey");
    int rc = check_handle("MPI_Info_get_nthkey", info);
    if (!rc)
        rc = dz_check_ptr("MPI_Info_get_nthkey", NULL, key, "key");
    if (!rc && (n < 0 || n >= info->count))
        rc = dz_raise(NULL, MPI_ERR_ARG, "MPI_Info_get_nthkey", "n is %d; there are %d keys", n, info->count);
    if (rc)
        return rc;
    struct entry *e = info->first;
    while (n--)
        e = e->next;
    memcpy(key, e->key, strlen(e->key) + 1);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Info_get_nthkey)
