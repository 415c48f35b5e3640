/* comm_attr.c - attributes on communicators: predefined keys, copies, deletes, failing callbacks, keys freed early, the
 * names of MPI-1, and MPI_COMM_SELF's at MPI_Finalize in LIFO order (MPI 3.1, sections 6.7, 8.1.2 and 8.7.1). */
/* run: -n 2 */
#include "coll.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int copies, deletes, refuse;
static int extra;

static int copy(MPI_Comm comm, int key, void *extra_state, void *value, void *out, int *flag)
{
    (void)comm, (void)key;
    EXPECT(extra_state == &extra, "extra state");
    copies++;
    *(void **)out = (char *)value + 1;
    *flag = 1;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int del(MPI_Comm comm, int key, void *value, void *extra_state)
{
    int size, flag;
    void *seen;
    (void)extra_state;
    deletes++;
    EXPECT(MPI_Comm_size(comm, &size) == MPI_SUCCESS, "the communicator still works");
    EXPECT(MPI_Comm_get_attr(comm, key, &seen, &flag) != MPI_SUCCESS || (flag && seen == value),
           "the value is still there");
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void predefined(void)
{
    const int keys[] = {MPI_TAG_UB, MPI_HOST,          MPI_IO,          MPI_WTIME_IS_GLOBAL,
                        MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE};
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        int *value = NULL, flag = 0;
        EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, keys[i], &value, &flag) == MPI_SUCCESS && flag && value, "key %d",
               keys[i]);
        if (flag && keys[i] == MPI_TAG_UB)
            EXPECT(*value >= 32767, "tags up to %d", *value);
        if (flag && keys[i] == MPI_UNIVERSE_SIZE)
            EXPECT(*value >= world_size, "universe of %d", *value);
        if (flag && keys[i] == MPI_LASTUSEDCODE)
            EXPECT(*value >= MPI_ERR_LASTCODE, "codes up to %d", *value);
        EXPECT(MPI_Comm_set_attr(MPI_COMM_WORLD, keys[i], &extra) == MPI_ERR_KEYVAL, "read-only");
        EXPECT(MPI_Comm_delete_attr(MPI_COMM_WORLD, keys[i]) == MPI_ERR_KEYVAL, "read-only");
        int key = keys[i];
        EXPECT(MPI_Comm_free_keyval(&key) == MPI_ERR_KEYVAL, "permanent");
    }
}

static void copies_and_deletes(void)
{
    MPI_Comm a, b;
    int with, without, flag, cells[4];
    void *value;
    MPI_Comm_create_keyval(copy, del, &with, &extra);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &without, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    EXPECT(MPI_Comm_get_attr(a, with, &value, &flag) == MPI_SUCCESS && !flag, "nothing yet");
    MPI_Comm_set_attr(a, with, &cells[0]);
    MPI_Comm_set_attr(a, without, &cells[1]);
    MPI_Comm_set_attr(a, with, &cells[2]);
    EXPECT(deletes == 1, "the old value was deleted: %d", deletes);
    EXPECT(MPI_Comm_get_attr(a, with, &value, &flag) == MPI_SUCCESS && flag && value == &cells[2], "the new value");
    MPI_Comm_dup(a, &b);
    EXPECT(copies == 1, "%d copies", copies);
    EXPECT(MPI_Comm_get_attr(b, with, &value, &flag) == MPI_SUCCESS && flag && value == (char *)&cells[2] + 1,
           "copied");
    EXPECT(MPI_Comm_get_attr(b, without, &value, &flag) == MPI_SUCCESS && !flag, "not copied");
    int old = with;
    EXPECT(MPI_Comm_free_keyval(&with) == MPI_SUCCESS && with == MPI_KEYVAL_INVALID, "freed");
    EXPECT(MPI_Comm_set_attr(a, old, &cells[0]) == MPI_ERR_KEYVAL, "a freed key");
    EXPECT(MPI_Comm_free_keyval(&old) == MPI_ERR_KEYVAL, "freed twice");
    refuse = 1;
    MPI_Comm c = MPI_COMM_NULL, was = b;
    EXPECT(MPI_Comm_dup(a, &c) == MPI_ERR_OTHER, "the copy callback refuses");
    EXPECT(MPI_Comm_free(&b) == MPI_ERR_OTHER && b == was, "the delete callback refuses");
    refuse = 0;
    deletes = 0;
    MPI_Comm_free(&b);
    EXPECT(deletes == 1, "%d deletes", deletes);
    MPI_Comm_free(&a);
    EXPECT(deletes == 2, "%d deletes", deletes);
    MPI_Comm_free_keyval(&without);
}

static void dup_function_and_delete(void)
{
    MPI_Comm a, b;
    int key, flag;
    void *value;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &a);
    MPI_Comm_set_attr(a, key, &extra);
    MPI_Comm_dup(a, &b);
    EXPECT(MPI_Comm_get_attr(b, key, &value, &flag) == MPI_SUCCESS && flag && value == &extra, "duplicated");
    MPI_Comm_delete_attr(b, key);
    EXPECT(MPI_Comm_get_attr(b, key, &value, &flag) == MPI_SUCCESS && !flag, "deleted");
    EXPECT(MPI_Comm_delete_attr(b, key) == MPI_ERR_KEYVAL, "nothing to delete");
    EXPECT(MPI_Comm_get_attr(b, MPI_KEYVAL_INVALID, &value, &flag) == MPI_ERR_KEYVAL, "no key");
    EXPECT(MPI_Comm_get_attr(MPI_COMM_NULL, key, &value, &flag) == MPI_ERR_COMM, "no communicator");
    EXPECT(MPI_Comm_get_attr(b, key, &value, NULL) == MPI_ERR_ARG, "no flag");
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    MPI_Comm_free_keyval(&key);
}

static void names_of_mpi1(void)
{
    MPI_Comm a, b;
    int key, flag;
    void *value;
    MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &a);
    MPI_Attr_put(a, key, &extra);
    MPI_Comm_dup(a, &b);
    EXPECT(MPI_Attr_get(b, key, &value, &flag) == MPI_SUCCESS && flag && value == &extra, "duplicated");
    EXPECT(MPI_Attr_delete(b, key) == MPI_SUCCESS, "deleted");
    EXPECT(MPI_Attr_get(b, key, &value, &flag) == MPI_SUCCESS && !flag, "deleted");
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    MPI_Keyval_free(&key);
    EXPECT(key == MPI_KEYVAL_INVALID, "freed");
}

/* ---- at MPI_Finalize: the last one set is deleted first, and MPI still works then */
static int expected_next = 2;

static int at_end(MPI_Comm comm, int key, void *value, void *extra_state)
{
    (void)key, (void)extra_state;
    int x = 1, sum = 0, finalized = 1;
    MPI_Finalized(&finalized);
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (comm != MPI_COMM_SELF || *(int *)value != expected_next-- || finalized || sum != world_size)
        failures++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static int order[3] = {0, 1, 2};
    begin(&argc, &argv, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    predefined();
    copies_and_deletes();
    dup_function_and_delete();
    names_of_mpi1();
    for (int i = 0; i < 3; i++) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, &order[i]);
        MPI_Comm_free_keyval(&key);
    }
    int rc = end();
    if (expected_next != -1)
        printf("FAIL: %d callbacks did not run at MPI_Finalize\n", expected_next + 1);
    return rc || failures || expected_next != -1;
}
