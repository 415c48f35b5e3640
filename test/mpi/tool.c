/* Performance variables count what happens; wrong indices, handles and sessions are errors; all of it works before MPI_Init
 * and after MPI_Finalize, and nothing does outside of MPI_T_init_thread and MPI_T_finalize.
 *
 * run: -n 2 */
#include "test/conform/check.h"

static MPI_T_pvar_session session;

static unsigned long long value(const char *name)
{
    int index = -1, count = 0;
    unsigned long long v = 0;
    MPI_T_pvar_handle h;
    EXPECT(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, "no variable %s", name);
    EXPECT(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count) == MPI_SUCCESS && count == 1, "%s: %d", name, count);
    EXPECT(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS, "%s cannot be read", name);
    EXPECT(MPI_T_pvar_handle_free(session, &h) == MPI_SUCCESS && h == MPI_T_PVAR_HANDLE_NULL, "%s stays", name);
    return v;
}

static void every_one(void)
{
    int n = 0, class, bind, readonly, continuous, atomic, index;
    MPI_Datatype type;
    MPI_T_pvar_get_num(&n);
    EXPECT(n > 5, "%d variables", n);
    for (int i = 0; i < n; i++) {
        char name[64], desc[256], cut[4] = "zzz";
        int name_len = sizeof name, desc_len = sizeof desc, cut_len = sizeof cut;
        EXPECT(MPI_T_pvar_get_info(i, name, &name_len, NULL, &class, &type, NULL, desc, &desc_len, &bind, &readonly,
                                   &continuous, &atomic) == MPI_SUCCESS, "variable %d", i);
        EXPECT(name_len == (int)strlen(name) + 1 && desc_len == (int)strlen(desc) + 1, "lengths %d, %d", name_len, desc_len);
        EXPECT(class == MPI_T_PVAR_CLASS_COUNTER && type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT &&
                   readonly == 1 && continuous == 1 && atomic == 0, "%s is another kind", name);
        MPI_T_pvar_get_info(i, cut, &cut_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        EXPECT(strlen(cut) < sizeof cut && !strncmp(cut, name, strlen(cut)) && cut_len == name_len, "cut to '%s'", cut);
        EXPECT(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i, "%s is at %d", name, index);
        value(name);
    }
    EXPECT(MPI_T_pvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
               MPI_T_ERR_INVALID_INDEX, "one too many");
}

static void errors(void)
{
    MPI_T_pvar_session other;
    MPI_T_pvar_handle h, null = MPI_T_PVAR_HANDLE_NULL;
    unsigned long long v;
    int index, count;
    EXPECT(MPI_T_pvar_get_index("nonsense", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME, "nonsense");
    EXPECT(MPI_T_pvar_get_index("eager", MPI_T_PVAR_CLASS_TIMER, &index) == MPI_T_ERR_INVALID_NAME, "of another class");
    EXPECT(MPI_T_pvar_session_create(&other) == MPI_SUCCESS, "no second session");
    EXPECT(MPI_T_pvar_handle_alloc(session, -1, NULL, &h, &count) == MPI_T_ERR_INVALID_INDEX, "index -1");
    EXPECT(MPI_T_pvar_handle_alloc(session, 0, NULL, &h, &count) == MPI_SUCCESS, "no handle");
    EXPECT(MPI_T_pvar_read(other, h, &v) == MPI_T_ERR_INVALID_HANDLE, "of another session");
    EXPECT(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, h, &v) == MPI_T_ERR_INVALID_SESSION, "of no session");
    EXPECT(MPI_T_pvar_read(session, null, &v) == MPI_T_ERR_INVALID_HANDLE, "no handle");
    EXPECT(MPI_T_pvar_write(session, h, &v) == MPI_T_ERR_PVAR_NO_WRITE, "written");
    EXPECT(MPI_T_pvar_reset(session, h) == MPI_T_ERR_PVAR_NO_WRITE, "reset");
    EXPECT(MPI_T_pvar_readreset(session, h, &v) == MPI_T_ERR_PVAR_NO_ATOMIC, "read and reset");
    EXPECT(MPI_T_pvar_start(session, h) == MPI_T_ERR_PVAR_NO_STARTSTOP, "started");
    EXPECT(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS, "all that can be are stopped");
    EXPECT(MPI_T_pvar_session_free(&other) == MPI_SUCCESS && other == MPI_T_PVAR_SESSION_NULL, "the session stays");
    EXPECT(MPI_T_pvar_session_free(&other) == MPI_T_ERR_INVALID_SESSION, "freed twice");
    EXPECT(MPI_T_cvar_get_num(&count) == MPI_SUCCESS && !count, "%d control variables", count);
    EXPECT(MPI_T_category_get_num(&count) == MPI_SUCCESS && !count, "%d categories", count);
}

int main(void)
{
    enum { MESSAGES = 10 };
    int provided, n;
    EXPECT(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "too early");
    EXPECT(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE, "%d", provided);
    EXPECT(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "no session");
    every_one();
    begin(MPI_THREAD_SINGLE);
    unsigned long long before = value("eager");
    for (int i = 0; i < MESSAGES; i++) {
        int out = i, in = -1;
        MPI_Sendrecv(&out, 1, MPI_INT, peer, 3, &in, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(in == i, "%d came, not %d", in, i);
    }
    EXPECT(value("eager") == before + MESSAGES, "%llu messages counted", value("eager") - before);
    errors();
    MPI_Finalize();
    EXPECT(value("eager") >= before + MESSAGES, "less than before MPI_Finalize");
    EXPECT(MPI_T_pvar_session_free(&session) == MPI_SUCCESS, "the session stays");
    EXPECT(MPI_T_finalize() == MPI_SUCCESS, "not over");
    EXPECT(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED, "over twice");
    return failures != 0;
}
