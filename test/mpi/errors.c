/* errors.c - error handlers, error codes and their words (MPI 3.1, chapter 8). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define EXPECT(cond, ...)                                                                                            \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            failures++;                                                                                              \
            printf("FAIL line %d: %s: ", __LINE__, #cond);                                                           \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
        }                                                                                                            \
    } while (0)

static int calls, last_code;
static MPI_Comm last_comm;
static void note(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last_comm = *comm;
    last_code = *code;
}

static int other_calls;
static void note_other(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    other_calls++;
}

static void strings_and_classes(void)
{
    char s[MPI_MAX_ERROR_STRING];
    int n, c;
    for (int code = MPI_SUCCESS; code <= MPI_ERR_RMA_SHARED; code++) {
        EXPECT(MPI_Error_string(code, s, &n) == MPI_SUCCESS && n == (int)strlen(s) && n > 8, "code %d", code);
        EXPECT(!strncmp(s, "MPI_", 4), "code %d: %s", code, s);
        EXPECT(MPI_Error_class(code, &c) == MPI_SUCCESS && c == code, "code %d", code);
    }
    EXPECT(MPI_Error_class(-5, &c) == MPI_ERR_ARG, "no such code");
    EXPECT(MPI_Error_string(MPI_ERR_LASTCODE + 1000, s, &n) == MPI_ERR_ARG, "no such code");
    EXPECT(MPI_Error_string(MPI_ERR_RANK, NULL, &n) == MPI_ERR_ARG, "NULL string");
}

static void text_of_the_last_error(void)
{
    char s[MPI_MAX_ERROR_STRING];
    int n, x = 0;
    EXPECT(MPI_Send(&x, 1, MPI_INT, 77, 5, MPI_COMM_WORLD) == MPI_ERR_RANK, "rank 77");
    MPI_Error_string(MPI_ERR_RANK, s, &n);
    EXPECT(strstr(s, "MPI_Send") && strstr(s, "77"), "the text names call and value: %s", s);
    MPI_Error_string(MPI_ERR_TAG, s, &n);
    EXPECT(!strstr(s, "77"), "another class has not this text: %s", s);
}

static void user_handlers(void)
{
    MPI_Errhandler h = MPI_ERRHANDLER_NULL, other, got;
    MPI_Comm dup;
    int x = 0;
    EXPECT(MPI_Comm_create_errhandler(note, &h) == MPI_SUCCESS && h != MPI_ERRHANDLER_NULL, "create");
    EXPECT(MPI_Comm_create_errhandler(note_other, &other) == MPI_SUCCESS, "create");
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &dup) == MPI_SUCCESS, "dup");
    EXPECT(MPI_Comm_set_errhandler(dup, h) == MPI_SUCCESS, "set");
    EXPECT(MPI_Send(&x, 1, MPI_INT, 77, 5, dup) == MPI_ERR_RANK, "a handler that returns: the code is returned");
    EXPECT(calls == 1 && last_code == MPI_ERR_RANK && last_comm == dup, "%d calls, code %d", calls, last_code);
    EXPECT(MPI_Send(&x, 1, MPI_INT, 77, 5, MPI_COMM_WORLD) == MPI_ERR_RANK && calls == 1, "only its communicator");

    EXPECT(MPI_Comm_get_errhandler(dup, &got) == MPI_SUCCESS && got == h, "get");
    EXPECT(MPI_Errhandler_free(&got) == MPI_SUCCESS && got == MPI_ERRHANDLER_NULL, "free what get gave");
    EXPECT(MPI_Errhandler_free(&h) == MPI_SUCCESS && h == MPI_ERRHANDLER_NULL, "free");
    EXPECT(MPI_Comm_call_errhandler(dup, MPI_ERR_OP) == MPI_SUCCESS && calls == 2 && last_code == MPI_ERR_OP,
           "a freed handler serves while it is set");
    MPI_Comm child;
    EXPECT(MPI_Comm_dup(dup, &child) == MPI_SUCCESS, "dup");
    EXPECT(MPI_Comm_set_errhandler(dup, other) == MPI_SUCCESS, "replace");
    MPI_Comm_call_errhandler(dup, MPI_ERR_OP);
    EXPECT(calls == 2 && other_calls == 1, "the new one is called: %d %d", calls, other_calls);
    MPI_Comm_call_errhandler(child, MPI_ERR_OP);
    EXPECT(calls == 3 && last_comm == child, "a duplicate has inherited the old one: %d calls", calls);
    MPI_Errhandler_free(&other);
    MPI_Comm_free(&child);
    MPI_Comm_free(&dup);
}

static void bad_arguments(void)
{
    MPI_Errhandler h = MPI_ERRHANDLER_NULL;
    int x = 0;
    EXPECT(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL) == MPI_ERR_ARG, "null handler");
    EXPECT(MPI_Comm_set_errhandler(MPI_COMM_NULL, MPI_ERRORS_RETURN) == MPI_ERR_COMM, "null communicator");
    EXPECT(MPI_Errhandler_free(&h) == MPI_ERR_ARG, "free of a null handler");
    EXPECT(MPI_Errhandler_free(NULL) == MPI_ERR_ARG, "free of nothing");
    EXPECT(MPI_Comm_create_errhandler(NULL, &h) == MPI_ERR_ARG, "no function");
    EXPECT(MPI_Comm_get_errhandler(MPI_COMM_WORLD, NULL) == MPI_ERR_ARG, "no place");
    EXPECT(MPI_Send(&x, 1, MPI_INT, 0, 5, MPI_COMM_NULL) == MPI_ERR_COMM, "null communicator: MPI_COMM_WORLD's handler");
    h = MPI_ERRORS_RETURN;
    EXPECT(MPI_Errhandler_free(&h) == MPI_SUCCESS && h == MPI_ERRHANDLER_NULL, "a predefined one may be freed");
    EXPECT(MPI_Send(&x, 1, MPI_INT, 77, 5, MPI_COMM_WORLD) == MPI_ERR_RANK, "and still works");
}

static void codes_of_the_program(void)
{
    char s[MPI_MAX_ERROR_STRING];
    int errclass, code, c, n, flag, *used;
    EXPECT(MPI_Add_error_class(&errclass) == MPI_SUCCESS && errclass > MPI_ERR_LASTCODE, "class %d", errclass);
    EXPECT(MPI_Add_error_code(errclass, &code) == MPI_SUCCESS && code > errclass, "code %d", code);
    EXPECT(MPI_Add_error_string(code, "the cat is on the keyboard") == MPI_SUCCESS, "string");
    EXPECT(MPI_Error_class(code, &c) == MPI_SUCCESS && c == errclass, "class %d", c);
    EXPECT(MPI_Error_class(errclass, &c) == MPI_SUCCESS && c == errclass, "class %d", c);
    EXPECT(MPI_Error_string(code, s, &n) == MPI_SUCCESS && !strcmp(s, "the cat is on the keyboard"), "%s", s);
    EXPECT(MPI_Error_string(errclass, s, &n) == MPI_SUCCESS && n == 0, "a class without words: %s", s);
    EXPECT(MPI_Add_error_code(code, &c) == MPI_ERR_ARG, "a code is no class");
    EXPECT(MPI_Add_error_string(MPI_ERR_RANK, "mine") == MPI_ERR_ARG, "predefined words stay");
    EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &used, &flag) == MPI_SUCCESS && flag && *used == code,
           "MPI_LASTUSEDCODE");
}

/* The header hides them; programs of its time still call them. */
static void names_of_mpi_1(void)
{
    int (*create)(MPI_Comm_errhandler_function *, MPI_Errhandler *);
    int (*set)(MPI_Comm, MPI_Errhandler), (*get)(MPI_Comm, MPI_Errhandler *);
    *(void **)&create = dlsym(RTLD_DEFAULT, "MPI_Errhandler_create");
    *(void **)&set = dlsym(RTLD_DEFAULT, "MPI_Errhandler_set");
    *(void **)&get = dlsym(RTLD_DEFAULT, "MPI_Errhandler_get");
    EXPECT(create && set && get, "exported");
    if (!create || !set || !get)
        return;
    MPI_Errhandler h, got;
    int before = calls;
    EXPECT(create(note, &h) == MPI_SUCCESS && set(MPI_COMM_SELF, h) == MPI_SUCCESS, "create, set");
    EXPECT(get(MPI_COMM_SELF, &got) == MPI_SUCCESS && got == h, "get");
    MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_IO);
    EXPECT(calls == before + 1 && last_code == MPI_ERR_IO, "called");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&h);
}

int main(void)
{
    char s[MPI_MAX_ERROR_STRING];
    int n, c;
    EXPECT(MPI_Error_class(MPI_ERR_TAG, &c) == MPI_SUCCESS && c == MPI_ERR_TAG, "before MPI_Init");
    EXPECT(MPI_Error_string(MPI_ERR_TAG, s, &n) == MPI_SUCCESS, "before MPI_Init");
    MPI_Init(NULL, NULL);
    MPI_Errhandler got;
    EXPECT(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got) == MPI_SUCCESS && got == MPI_ERRORS_ARE_FATAL, "the default");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    strings_and_classes();
    text_of_the_last_error();
    user_handlers();
    bad_arguments();
    codes_of_the_program();
    names_of_mpi_1();
    EXPECT(MPI_Init(NULL, NULL) == MPI_ERR_OTHER, "MPI_Init a second time is an error like others");
    MPI_Finalize();
    EXPECT(MPI_Error_string(MPI_ERR_TAG, s, &n) == MPI_SUCCESS, "after MPI_Finalize");
    printf(failures ? "%d failures\n" : "passed\n", failures);
    return failures != 0;
}
