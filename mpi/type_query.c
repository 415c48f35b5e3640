/* type_query.c - what can be asked of a datatype: size, bounds, name; addresses; MPI_Type_match_size.
 *
 * Nothing here changes a type but MPI_Type_set_name. Of a value that its result cannot hold, MPI_UNDEFINED is told. */
#include <limits.h>
#include <string.h>

#include "mpi/type.h"

static int check_get(const char *call, struct dz_type *type, const void *p, const void *q)
{
    int rc = dz_check_old(call, type, "datatype");
    if (!rc && (!p || !q))
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "a pointer to a result is NULL");
    return rc;
}

int PMPI_Type_size(MPI_Datatype type, int *size)
{
    DZ_ENTER("MPI_Type_size");
    int rc = check_get("MPI_Type_size", type, size, size);
    if (!rc)
        *size = type->size > INT_MAX ? MPI_UNDEFINED : (int)type->size;
    return rc;
}
DZ_WEAK(PI_Type_size)

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
    DZ_ENTER("MPI_Type_size_x");
    int rc = check_get("MPI_Type_size_x", type, size, size);
    if (!rc)
        *size = (MPI_Count)type->size;
    return rc;
}
DZ_WEAK(PI_Type_size_x)

int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
    DZ_ENTER("MPI_Type_get_extent");
    int rc = check_get("MPI_Type_get_extent", type, lb, extent);
    if (rc)
        return rc;
    *lb = type->lb;
    *extent = type->extent;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_extent)

int PMPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent)
{
    DZ_ENTER("MPI_Type_get_extent_x");
    int rc = check_get("MPI_Type_get_extent_x", type, lb, extent);
    if (rc)
        return rc;
    *lb = type->lb;
    *extent = type->extent;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_extent_x)

int PMPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint *true_lb, MPI_Aint *true_extent)
{
    DZ_ENTER("MPI_Type_get_true_extent");
    int rc = check_get("MPI_Type_get_true_extent", type, true_lb, true_extent);
    if (rc)
        return rc;
    *true_lb = type->true_lb;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_true_extent)

int PMPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count *true_lb, MPI_Count *true_extent)
{
    DZ_ENTER("MPI_Type_get_true_extent_x");
    int rc = check_get("MPI_Type_get_true_extent_x", type, true_lb, true_extent);
    if (rc)
        return rc;
    *true_lb = type->true_lb;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_true_extent_x)

/* ---- names */
int PMPI_Type_get_name(MPI_Datatype type, char *type_name, int *resultlen)
{
    static const char call[] = "MPI_Type_get_name";
    DZ_ENTER(call);
    int rc = type == MPI_DATATYPE_NULL ? MPI_SUCCESS : dz_check_old(call, type, "datatype"); /* NULL has a name, too */
    if (!rc && (!type_name || !resultlen))
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "%s is NULL", type_name ? "resultlen" : "type_name");
    if (rc)
        return rc;
    dz_lock();
    strcpy(type_name, type->name);
    dz_unlock();
    *resultlen = (int)strlen(type_name);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_get_name)

int PMPI_Type_set_name(MPI_Datatype type, const char *type_name)
{
    static const char call[] = "MPI_Type_set_name";
    DZ_ENTER(call);
    int rc = dz_check_old(call, type, "datatype");
    if (!rc)
        rc = dz_check_ptr(call, NULL, type_name, "type_name");
    if (rc)
        return rc;
    size_t n = strnlen(type_name, MPI_MAX_OBJECT_NAME - 1); /* longer names are cut, MPI 3.1 section 6.8 */
    dz_lock();
    memcpy(type->name, type_name, n);
    type->name[n] = 0;
    dz_unlock();
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_set_name)

/* ---- addresses */
int PMPI_Get_address(const void *location, MPI_Aint *address)
{
    DZ_ENTER("MPI_Get_address");
    int rc = dz_check_ptr("MPI_Get_address", NULL, address, "address");
    if (!rc)
        *address = (MPI_Aint)location;
    return rc;
}
DZ_WEAK(PI_Get_address)

/* The header makes macros of these two. By unsigned arithmetic: differences of any addresses wrap around. */
#undef MPI_Aint_add
#undef PMPI_Aint_add
#undef MPI_Aint_diff
#undef PMPI_Aint_diff
OMPI_DECLSPEC MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp);
OMPI_DECLSPEC MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2);
OMPI_DECLSPEC MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp);
OMPI_DECLSPEC MPI_Aint MPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2);

MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((size_t)base + (size_t)disp);
}
DZ_WEAK(PI_Aint_add)

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((size_t)addr1 - (size_t)addr2);
}
DZ_WEAK(PI_Aint_diff)

/* ---- MPI 3.1 section 17.2.6: the Fortran type of a class and size */
int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype *type)
{
    static const char call[] = "MPI_Type_match_size";
    DZ_ENTER(call);
    const struct { int typeclass; MPI_Datatype type; } all[] = {
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER1}, {MPI_TYPECLASS_INTEGER, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER4}, {MPI_TYPECLASS_INTEGER, MPI_INTEGER8},
        {MPI_TYPECLASS_REAL, MPI_REAL4},       {MPI_TYPECLASS_REAL, MPI_REAL8},
        {MPI_TYPECLASS_REAL, MPI_REAL16},      {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX8},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX16}, {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX32},
    };
    int rc = dz_check_ptr(call, NULL, type, "datatype");
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].typeclass == typeclass && size >= 0 && all[i].type->size == (size_t)size) {
            *type = all[i].type;
            return MPI_SUCCESS;
        }
    }
    return dz_raise(NULL, MPI_ERR_ARG, call, "there is no type of class %d and size %d", typeclass, size);
}
DZ_WEAK(PI_Type_match_size)
