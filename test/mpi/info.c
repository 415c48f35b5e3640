/* info.c - info objects: order, replacing, lengths, copies, the predefined ones, and the error cases (MPI 3.1, chapter
 * 9). */
#include "coll.h"

int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag);
int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info);

static void storing(void)
{
    MPI_Info info, copy;
    int n, flag, len;
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
    MPI_Info_create(&info);
    EXPECT(MPI_Info_get_nkeys(info, &n) == MPI_SUCCESS && n == 0, "%d keys", n);
    MPI_Info_set(info, "one", "first");
    MPI_Info_set(info, "two", "second value");
    MPI_Info_set(info, "three", "3");
    MPI_Info_set(info, "one", "changed");
    EXPECT(MPI_Info_get_nkeys(info, &n) == MPI_SUCCESS && n == 3, "%d keys", n);
    const char *order[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++)
        EXPECT(MPI_Info_get_nthkey(info, i, key) == MPI_SUCCESS && !strcmp(key, order[i]), "key %d is %s", i, key);
    EXPECT(MPI_Info_get(info, "one", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag &&
               !strcmp(value, "changed"),
           "%s", value);
    memset(value, 'x', sizeof value);
    EXPECT(MPI_Info_get(info, "two", 6, value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "second") &&
               value[7] == 'x',
           "cut: %.10s", value);
    EXPECT(MPI_Info_get(info, "two", 0, value, &flag) == MPI_SUCCESS && flag && !*value, "no room");
    EXPECT(MPI_Info_get_valuelen(info, "two", &len, &flag) == MPI_SUCCESS && flag && len == 12, "%d", len);
    strcpy(value, "untouched");
    EXPECT(MPI_Info_get(info, "four", 20, value, &flag) == MPI_SUCCESS && !flag && !strcmp(value, "untouched"),
           "no such key");
    len = 4;
    EXPECT(PMPI_Info_get_string(info, "two", &len, value, &flag) == MPI_SUCCESS && flag && len == 13 &&
               !strcmp(value, "sec"),
           "%d: %s", len, value);
    len = 0;
    EXPECT(PMPI_Info_get_string(info, "two", &len, NULL, &flag) == MPI_SUCCESS && flag && len == 13, "%d", len);
    MPI_Info_dup(info, &copy);
    EXPECT(MPI_Info_delete(info, "two") == MPI_SUCCESS, "delete");
    EXPECT(MPI_Info_delete(info, "two") == MPI_ERR_INFO_NOKEY, "delete again");
    EXPECT(MPI_Info_get_nthkey(info, 1, key) == MPI_SUCCESS && !strcmp(key, "three"), "%s", key);
    MPI_Info_free(&info);
    EXPECT(info == MPI_INFO_NULL, "freed");
    EXPECT(MPI_Info_get(copy, "two", 20, value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "second value"),
           "the copy");
    MPI_Info_free(&copy);
}

static void lengths(void)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1], out[MPI_MAX_INFO_VAL];
    int flag;
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = 0;
    MPI_Info_create(&info);
    EXPECT(MPI_Info_set(info, key, "x") == MPI_ERR_INFO_KEY, "a key that fits no buffer");
    EXPECT(MPI_Info_set(info, "x", value) == MPI_ERR_INFO_VALUE, "a value that fits no buffer");
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = 0;
    EXPECT(MPI_Info_set(info, key, value) == MPI_SUCCESS, "the longest");
    EXPECT(MPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, out, &flag) == MPI_SUCCESS && flag && !strcmp(out, value),
           "the longest");
    EXPECT(MPI_Info_set(info, "", "x") == MPI_ERR_INFO_KEY, "no key");
    EXPECT(MPI_Info_set(info, NULL, "x") == MPI_ERR_INFO_KEY, "NULL key");
    EXPECT(MPI_Info_set(info, "x", "") == MPI_ERR_INFO_VALUE, "no value");
    EXPECT(MPI_Info_set(info, "x", NULL) == MPI_ERR_INFO_VALUE, "NULL value");
    MPI_Info_free(&info);
}

static void predefined(char *program)
{
    MPI_Info info = MPI_INFO_NULL, env;
    int flag, n;
    char value[MPI_MAX_INFO_VAL];
    EXPECT(MPI_Info_set(MPI_INFO_NULL, "a", "b") == MPI_ERR_INFO, "null");
    EXPECT(MPI_Info_get_nkeys(MPI_INFO_NULL, &n) == MPI_ERR_INFO, "null");
    EXPECT(MPI_Info_free(&info) == MPI_ERR_INFO, "null");
    EXPECT(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag &&
               strstr(value, program), "command is %s", value);
    EXPECT(MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag &&
               atoi(value) == world_size, "maxprocs is %s", value);
    EXPECT(MPI_Info_set(MPI_INFO_ENV, "a", "b") == MPI_ERR_INFO, "read-only");
    info = MPI_INFO_ENV;
    EXPECT(MPI_Info_free(&info) == MPI_ERR_INFO, "permanent");
    EXPECT(MPI_Info_dup(MPI_INFO_ENV, &info) == MPI_SUCCESS && MPI_Info_set(info, "a", "b") == MPI_SUCCESS,
           "its copy is free");
    MPI_Info_free(&info);
    char *words[] = {"prog", "-x", "y z"};
    EXPECT(PMPI_Info_create_env(3, words, &env) == MPI_SUCCESS, "create_env");
    EXPECT(MPI_Info_get(env, "argv", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag &&
               !strcmp(value, "-x y z"),
           "argv is %s", value);
    MPI_Info_free(&env);
}

static void errors(void)
{
    MPI_Info info;
    int n, flag;
    char key[MPI_MAX_INFO_KEY], garbage[256];
    memset(garbage, 0x5a, sizeof garbage);
    EXPECT(MPI_Info_create(NULL) == MPI_ERR_ARG, "NULL");
    EXPECT(MPI_Info_get_nkeys(NULL, &n) == MPI_ERR_INFO, "NULL");
    EXPECT(MPI_Info_get_nkeys((MPI_Info)garbage, &n) == MPI_ERR_INFO, "garbage");
    MPI_Info_create(&info);
    EXPECT(MPI_Info_get_nthkey(info, 0, key) == MPI_ERR_ARG, "of no keys");
    EXPECT(MPI_Info_get_nthkey(info, -1, key) == MPI_ERR_ARG, "-1");
    EXPECT(MPI_Info_get(info, "a", -1, key, &flag) == MPI_ERR_ARG, "length -1");
    EXPECT(MPI_Info_get(info, "a", 3, key, NULL) == MPI_ERR_ARG, "no flag");
    EXPECT(MPI_Info_get_nkeys(info, NULL) == MPI_ERR_ARG, "NULL result");
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    storing();
    lengths();
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    predefined(slash ? (char *)slash + 1 : argv[0]);
    errors();
    return end();
}
