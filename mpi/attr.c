/* attr.c - attributes cached on communicators, and their keys.
 *
 * A key is a number that names a struct keyval; numbers are never used again. A keyval lives as long as it has a handle
 * or an attribute: MPI_Comm_free_keyval only takes the number away from the user. The attributes of a communicator are
 * a list, newest first, so that walking it from the front deletes in LIFO order, which MPI_COMM_SELF needs at
 * MPI_Finalize.
 *
 * Lists and keys are guarded by dz_lock; callbacks are called without it, for they may call MPI. While a callback runs
 * its attribute stays in the list, and is looked up again afterwards.
 *
 * The predefined keys are no attributes in the list: their values are the same for all communicators. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/comm.h"
#include "mpi/errors.h"

enum { FIRST_KEY = 64 }; /* beyond all predefined keys of any release */

struct keyval {
    struct keyval *next;
    int key;
    int refs;    /* attributes, and one for the handle */
    bool usable; /* the handle has not been freed */
    MPI_Comm_copy_attr_function *copy;
    MPI_Comm_delete_attr_function *del;
    void *extra;
};

struct attr {
    struct attr *next;
    struct keyval *keyval;
    void *value;
};

static struct keyval *keyvals;
static int next_key = FIRST_KEY;

/* ---- predefined */
static int tag_ub = DZ_TAG_UB, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE, wtime_is_global, appnum, universe;

int dz_attr_init(void)
{
    appnum = dz_boot.appnum;
    universe = dz_boot.universe;
    return 0;
}

/* The value of a predefined key, or NULL. */
static void *predefined(int key)
{
    switch (key) {
    case MPI_TAG_UB: return &tag_ub;
    case MPI_HOST: return &host;
    case MPI_IO: return &io;
    case MPI_WTIME_IS_GLOBAL: return &wtime_is_global; /* 0: each node has its own clock */
    case MPI_APPNUM: return &appnum;
    case MPI_UNIVERSE_SIZE: return &universe;
    case MPI_LASTUSEDCODE: return &dz_error_last_code;
    default: return NULL;
    }
}

/* ---- keys and lists; lock held */
static struct keyval *find_key(int key)
{
    struct keyval *k = keyvals;
    while (k && (k->key != key || !k->usable))
        k = k->next;
    return k;
}

static void keyval_put(struct keyval *k)
{
    if (--k->refs)
        return;
    struct keyval **at = &keyvals;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    free(k);
}

static struct attr **place(struct dz_comm *comm, const struct keyval *k)
{
    struct attr **at = (struct attr **)&comm->attrs;
    while (*at && (*at)->keyval != k)
        at = &(*at)->next;
    return at;
}

static void unlink_attr(struct attr **at)
{
    struct attr *a = *at;
    if (!a)
        return; /* the callback has deleted it itself */
    *at = a->next;
    keyval_put(a->keyval);
    free(a);
}

/* Runs the delete callback of comm's attribute of k and takes it out. Lock not held; k is held by the caller. */
static int delete_one(struct dz_comm *comm, struct keyval *k, void *value)
{
    int rc = k->del ? k->del(comm, k->key, value, k->extra) : MPI_SUCCESS;
    if (rc)
        return rc;
    dz_lock();
    unlink_attr(place(comm, k));
    dz_unlock();
    return MPI_SUCCESS;
}

static void release_key(struct keyval *k)
{
    dz_lock();
    keyval_put(k);
    dz_unlock();
}

int dz_attr_clear(struct dz_comm *comm)
{
    for (;;) {
        dz_lock();
        struct attr *a = comm->attrs;
        struct keyval *k = a ? a->keyval : NULL;
        void *value = a ? a->value : NULL;
        if (k)
            k->refs++;
        dz_unlock();
        if (!k)
            return MPI_SUCCESS;
        int rc = delete_one(comm, k, value);
        release_key(k);
        if (rc)
            return rc;
    }
}

/* Puts an attribute in as the newest. Takes over one reference to k on success. */
static int insert(struct dz_comm *comm, struct keyval *k, void *value)
{
    struct attr *a = malloc(sizeof *a);
    if (!a)
        return MPI_ERR_NO_MEM;
    dz_lock();
    *a = (struct attr){comm->attrs, k, value};
    comm->attrs = a;
    dz_unlock();
    return MPI_SUCCESS;
}

/* The oldest attribute of comm after which n more have come, its key held. NULL: there are not so many. */
static struct keyval *nth_newest(struct dz_comm *comm, int n, void **value)
{
    dz_lock();
    struct attr *a = comm->attrs;
    while (a && n--)
        a = a->next;
    struct keyval *k = a ? a->keyval : NULL;
    if (k) {
        k->refs++;
        *value = a->value;
    }
    dz_unlock();
    return k;
}

int dz_attr_copy(struct dz_comm *from, struct dz_comm *to)
{
    int n = 0, rc = MPI_SUCCESS;
    dz_lock();
    for (struct attr *a = from->attrs; a; a = a->next)
        n++;
    dz_unlock();
    while (!rc && n--) { /* oldest first: the copy has the same order */
        void *value, *copy = NULL;
        int flag = 0;
        struct keyval *k = nth_newest(from, n, &value);
        if (!k)
            continue;
        rc = k->copy ? k->copy(from, k->key, k->extra, value, &copy, &flag) : MPI_SUCCESS;
        if (!rc && flag)
            rc = insert(to, k, copy);
        if (rc || !flag)
            release_key(k);
    }
    return rc;
}

/* ---- calls, under their two names each */
static int create_keyval(const char *call, MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *del,
                         int *keyval, void *extra)
{
    int rc = dz_check_ptr(call, NULL, keyval, "keyval");
    if (rc)
        return rc;
    struct keyval *k = malloc(sizeof *k);
    if (!k)
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    dz_lock();
    *k = (struct keyval){keyvals, next_key++, 1, true, copy, del, extra};
    keyvals = k;
    *keyval = k->key;
    dz_unlock();
    return MPI_SUCCESS;
}

static int raise_key(const char *call, struct dz_comm *comm, int key)
{
    return dz_raise(comm, MPI_ERR_KEYVAL, call, "keyval is %d: %s", key,
                    key >= 0 && key < FIRST_KEY ? "a predefined one" : "no attribute key, or one that was freed");
}

static int free_keyval(const char *call, int *keyval)
{
    int rc = dz_check_ptr(call, NULL, keyval, "keyval");
    if (rc)
        return rc;
    dz_lock();
    struct keyval *k = find_key(*keyval);
    if (k) {
        k->usable = false;
        keyval_put(k);
    }
    dz_unlock();
    if (!k)
        return raise_key(call, NULL, *keyval);
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

/* Finds comm's attribute of key and holds the key; *has says whether there is a value. */
static int find(const char *call, struct dz_comm *comm, int key, struct keyval **k, bool *has, void **value)
{
    int rc = dz_check_comm(call, comm);
    if (rc)
        return rc;
    dz_lock();
    if ((*k = find_key(key))) {
        struct attr *a = *place(comm, *k);
        *has = a != NULL;
        *value = a ? a->value : NULL;
        (*k)->refs++;
    }
    dz_unlock();
    return *k ? MPI_SUCCESS : raise_key(call, comm, key);
}

static int set_attr(const char *call, struct dz_comm *comm, int key, void *value)
{
    struct keyval *k;
    bool has;
    void *old;
    int rc = find(call, comm, key, &k, &has, &old);
    if (rc)
        return rc;
    if (has)
        rc = delete_one(comm, k, old);
    if (!rc)
        rc = insert(comm, k, value); /* the reference goes over */
    if (!rc)
        return MPI_SUCCESS;
    release_key(k);
    return dz_raise(comm, rc, call, "the attribute of keyval %d could not be set", key);
}

static int get_attr(const char *call, struct dz_comm *comm, int key, void *out, int *flag)
{
    struct keyval *k;
    bool has;
    void *value = predefined(key);
    int rc = dz_check_comm(call, comm);
    if (!rc)
        rc = dz_check_ptr(call, comm, flag, "flag");
    if (!rc)
        rc = dz_check_ptr(call, comm, out, "attribute_val");
    if (rc)
        return rc;
    *flag = 0;
    if (!value) {
        rc = find(call, comm, key, &k, &has, &value);
        if (rc)
            return rc;
        release_key(k);
        if (!has)
            return MPI_SUCCESS;
    }
    *(void **)out = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attr(const char *call, struct dz_comm *comm, int key)
{
    struct keyval *k;
    bool has;
    void *value;
    int rc = find(call, comm, key, &k, &has, &value);
    if (rc)
        return rc;
    if (has)
        rc = delete_one(comm, k, value);
    release_key(k);
    if (!has)
        return dz_raise(comm, MPI_ERR_KEYVAL, call, "keyval is %d: the communicator has no such attribute", key);
    return rc ? dz_raise(comm, rc, call, "the delete callback of keyval %d failed with %d", key, rc) : MPI_SUCCESS;
}

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy_fn, MPI_Comm_delete_attr_function *delete_fn, int *keyval,
                            void *extra_state)
{
    DZ_ENTER("MPI_Comm_create_keyval");
    return create_keyval("MPI_Comm_create_keyval", copy_fn, delete_fn, keyval, extra_state);
}
DZ_WEAK(PI_Comm_create_keyval)

int PMPI_Comm_free_keyval(int *keyval)
{
    DZ_ENTER("MPI_Comm_free_keyval");
    return free_keyval("MPI_Comm_free_keyval", keyval);
}
DZ_WEAK(PI_Comm_free_keyval)

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *attribute_val)
{
    DZ_ENTER("MPI_Comm_set_attr");
    return set_attr("MPI_Comm_set_attr", comm, keyval, attribute_val);
}
DZ_WEAK(PI_Comm_set_attr)

int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    DZ_ENTER("MPI_Comm_get_attr");
    return get_attr("MPI_Comm_get_attr", comm, keyval, attribute_val, flag);
}
DZ_WEAK(PI_Comm_get_attr)

int PMPI_Comm_delete_attr(MPI_Comm comm, int keyval)
{
    DZ_ENTER("MPI_Comm_delete_attr");
    return delete_attr("MPI_Comm_delete_attr", comm, keyval);
}
DZ_WEAK(PI_Comm_delete_attr)

int PMPI_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state)
{
    DZ_ENTER("MPI_Keyval_create");
    return create_keyval("MPI_Keyval_create", copy_fn, delete_fn, keyval, extra_state);
}
DZ_WEAK(PI_Keyval_create)

int PMPI_Keyval_free(int *keyval)
{
    DZ_ENTER("MPI_Keyval_free");
    return free_keyval("MPI_Keyval_free", keyval);
}
DZ_WEAK(PI_Keyval_free)

int PMPI_Attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
    DZ_ENTER("MPI_Attr_put");
    return set_attr("MPI_Attr_put", comm, keyval, attribute_val);
}
DZ_WEAK(PI_Attr_put)

int PMPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    DZ_ENTER("MPI_Attr_get");
    return get_attr("MPI_Attr_get", comm, keyval, attribute_val, flag);
}
DZ_WEAK(PI_Attr_get)

int PMPI_Attr_delete(MPI_Comm comm, int keyval)
{
    DZ_ENTER("MPI_Attr_delete");
    return delete_attr("MPI_Attr_delete", comm, keyval);
}
DZ_WEAK(PI_Attr_delete)
