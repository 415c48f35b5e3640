/* abi.c - the exported objects that no engine owns, and functions that exist for the ABI's sake.
 *
 * Executables built against Open MPI carry copies of these objects (COPY relocations): they have exactly Open MPI's
 * sizes, no pointer among their first bytes, and everybody reaches them through their symbols. What they hold at load
 * is a magic word at most; the engines fill in the rest in MPI_Init. Datatypes are in type_predef.c, operations in
 * op.c.
 * Objects of things outside the subset (windows, files, sessions) are there to be compared with. */
#include "mpi/core.h"
#include "mpi/mpix.h"
#include "mpi/p2p.h"

#pragma GCC visibility push(default) /* everything in this file is the ABI */

#define OBJECT(name, type, bytes)                                                                                    \
    struct ompi_predefined_##name {                                                                                  \
        type t;                                                                                                      \
        char pad[(bytes) - sizeof(type)];                                                                            \
    };                                                                                                               \
    _Static_assert(sizeof(struct ompi_predefined_##name) == (bytes), "the ABI's size")

OBJECT(communicator_t, struct ompi_communicator_t, 512);
OBJECT(group_t, struct dz_group, 256);
OBJECT(request_t, struct ompi_request_t, 256);
OBJECT(errhandler_t, struct ompi_errhandler_t, 1024);
OBJECT(message_t, struct ompi_message_t, 256);
OBJECT(info_t, uint32_t, 256);
OBJECT(win_t, uint32_t, 512);
OBJECT(file_t, uint32_t, 1536);
OBJECT(instance_t, uint32_t, 512);

struct ompi_predefined_communicator_t ompi_mpi_comm_world, ompi_mpi_comm_self, ompi_mpi_comm_null;
struct ompi_predefined_group_t ompi_mpi_group_empty, ompi_mpi_group_null;
struct ompi_predefined_request_t ompi_request_null = {.t = {.magic = DZ_MAGIC_REQ, .kind = DZ_REQ_NULL}};
struct ompi_predefined_errhandler_t ompi_mpi_errhandler_null, ompi_mpi_errors_are_fatal, ompi_mpi_errors_return,
    ompi_mpi_errors_abort, ompi_mpi_errors_throw_exceptions;
struct ompi_predefined_message_t ompi_message_null, ompi_message_no_proc;
struct ompi_predefined_info_t ompi_mpi_info_null = {.t = DZ_MAGIC_INFO}, ompi_mpi_info_env = {.t = DZ_MAGIC_INFO};
struct ompi_predefined_win_t ompi_mpi_win_null;
struct ompi_predefined_file_t ompi_mpi_file_null;
struct ompi_predefined_instance_t ompi_mpi_instance_null;

/* Fortran's ignored statuses, as C sees them. */
MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;

/* ---- attribute functions that do nothing, or copy the value (MPI 4.0, section 7.7) */
#define NULL_DELETE(name, handle)                                                                                    \
    int OMPI_C_MPI_##name(handle object, int keyval, void *value, void *extra)                                       \
    {                                                                                                                \
        (void)object, (void)keyval, (void)value, (void)extra;                                                        \
        return MPI_SUCCESS;                                                                                          \
    }
#define NULL_COPY(name, handle)                                                                                      \
    int OMPI_C_MPI_##name(handle object, int keyval, void *extra, void *in, void *out, int *flag)                    \
    {                                                                                                                \
        (void)object, (void)keyval, (void)extra, (void)in, (void)out;                                                \
        *flag = 0;                                                                                                   \
        return MPI_SUCCESS;                                                                                          \
    }
#define DUP(name, handle)                                                                                            \
    int OMPI_C_MPI_##name(handle object, int keyval, void *extra, void *in, void *out, int *flag)                    \
    {                                                                                                                \
        (void)object, (void)keyval, (void)extra;                                                                     \
        *(void **)out = in;                                                                                          \
        *flag = 1;                                                                                                   \
        return MPI_SUCCESS;                                                                                          \
    }
#undef MPI_NULL_DELETE_FN
#undef MPI_NULL_COPY_FN
#undef MPI_DUP_FN
NULL_DELETE(COMM_NULL_DELETE_FN, MPI_Comm)
NULL_COPY(COMM_NULL_COPY_FN, MPI_Comm)
DUP(COMM_DUP_FN, MPI_Comm)
NULL_DELETE(TYPE_NULL_DELETE_FN, MPI_Datatype)
NULL_COPY(TYPE_NULL_COPY_FN, MPI_Datatype)
DUP(TYPE_DUP_FN, MPI_Datatype)
NULL_DELETE(WIN_NULL_DELETE_FN, MPI_Win)
NULL_COPY(WIN_NULL_COPY_FN, MPI_Win)
DUP(WIN_DUP_FN, MPI_Win)
NULL_DELETE(NULL_DELETE_FN, MPI_Comm)
NULL_COPY(NULL_COPY_FN, MPI_Comm)
DUP(DUP_FN, MPI_Comm)

#pragma GCC visibility pop

/* ---- calls outside the subset (unsupported.list; their functions are generated from it) */
int dz_unsupported(const char *call);

int dz_unsupported(const char *call)
{
    DZ_ENTER(call);
    return dz_raise(NULL, MPI_ERR_UNSUPPORTED_OPERATION, call,
                    "this call is outside the subset of MPI that Denizen has");
}

__attribute__((visibility("default"))) const char *MPIX_Denizen_version(void)
{
    return DENIZEN_VERSION;
}
