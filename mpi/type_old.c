/* type_old.c - the names that MPI-3 took out of the interface. Open MPI still exports them, so that old programs load
 * and run; its header turns them into compile-time errors, hence the #undefs. */
#include "mpi/type.h"

#undef MPI_Address
#undef MPI_Type_extent
#undef MPI_Type_lb
#undef MPI_Type_ub
#undef MPI_Type_hvector
#undef MPI_Type_hindexed
#undef MPI_Type_struct

/* the names, default visibility included, that the header does not declare in every configuration */
#define DECLARE(name, ...)                                                                                           \
    OMPI_DECLSPEC int MPI_##name(__VA_ARGS__);                                                                       \
    OMPI_DECLSPEC int PMPI_##name(__VA_ARGS__)
DECLARE(Address, void *location, MPI_Aint *address);
DECLARE(Type_extent, MPI_Datatype, MPI_Aint *extent);
DECLARE(Type_lb, MPI_Datatype, MPI_Aint *lb);
DECLARE(Type_ub, MPI_Datatype, MPI_Aint *ub);
DECLARE(Type_hvector, int count, int blocklength, MPI_Aint stride, MPI_Datatype, MPI_Datatype *newtype);
DECLARE(Type_hindexed, int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype, MPI_Datatype *newtype);
DECLARE(Type_struct, int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[],
        MPI_Datatype *newtype);

static int check_get(const char *call, struct dz_type *type, const MPI_Aint *result, const char *arg)
{
    int rc = dz_check_old(call, type, "datatype");
    return rc ? rc : dz_check_ptr(call, NULL, result, arg);
}

int PMPI_Address(void *location, MPI_Aint *address)
{
    DZ_ENTER("MPI_Address");
    int rc = dz_check_ptr("MPI_Address", NULL, address, "address");
    if (!rc)
        *address = (MPI_Aint)location;
    return rc;
}
DZ_WEAK(PI_Address)

int PMPI_Type_extent(MPI_Datatype type, MPI_Aint *extent)
{
    DZ_ENTER("MPI_Type_extent");
    int rc = check_get("MPI_Type_extent", type, extent, "extent");
    if (!rc)
        *extent = type->extent;
    return rc;
}
DZ_WEAK(PI_Type_extent)

int PMPI_Type_lb(MPI_Datatype type, MPI_Aint *lb)
{
    DZ_ENTER("MPI_Type_lb");
    int rc = check_get("MPI_Type_lb", type, lb, "displacement");
    if (!rc)
        *lb = type->lb;
    return rc;
}
DZ_WEAK(PI_Type_lb)

int PMPI_Type_ub(MPI_Datatype type, MPI_Aint *ub)
{
    DZ_ENTER("MPI_Type_ub");
    int rc = check_get("MPI_Type_ub", type, ub, "displacement");
    if (!rc)
        *ub = type->lb + type->extent;
    return rc;
}
DZ_WEAK(PI_Type_ub)

int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_hvector");
    return dz_make_hvector("MPI_Type_hvector", count, blocklength, stride, oldtype, newtype);
}
DZ_WEAK(PI_Type_hvector)

int PMPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype oldtype,
                       MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_hindexed");
    return dz_make_hindexed("MPI_Type_hindexed", count, blocklengths, displacements, oldtype, newtype);
}
DZ_WEAK(PI_Type_hindexed)

int PMPI_Type_struct(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[],
                     MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_struct");
    return dz_make_struct("MPI_Type_struct", count, blocklengths, displacements, types, newtype);
}
DZ_WEAK(PI_Type_struct)
