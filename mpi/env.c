/* env.c - the calls about this library, this host, its clock and its memory. Those about versions and the clock may be
 * called at any time. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mpi/core.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "(unreleased)"
#endif

int PMPI_Get_version(int *version, int *subversion)
{
    int rc = dz_check_ptr("MPI_Get_version", NULL, version, "version");
    if (!rc)
        rc = dz_check_ptr("MPI_Get_version", NULL, subversion, "subversion");
    if (rc)
        return rc;
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Get_version)

int PMPI_Get_library_version(char *version, int *resultlen)
{
    int rc = dz_check_ptr("MPI_Get_library_version", NULL, version, "version");
    if (!rc)
        rc = dz_check_ptr("MPI_Get_library_version", NULL, resultlen, "resultlen");
    if (rc)
        return rc;
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
                          "Denizen " PACKAGE_VERSION ", an MPI subset with Open MPI's ABI (headers of %d.%d.%d)",
                          OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Get_library_version)

int PMPI_Get_processor_name(char *name, int *resultlen)
{
    DZ_ENTER("MPI_Get_processor_name");
    int rc = dz_check_ptr("MPI_Get_processor_name", NULL, name, "name");
    if (!rc)
        rc = dz_check_ptr("MPI_Get_processor_name", NULL, resultlen, "resultlen");
    if (rc)
        return rc;
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME))
        return dz_raise_errno(NULL, -errno, "MPI_Get_processor_name", NULL);
    name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Get_processor_name)

double PMPI_Wtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
DZ_WEAK(PI_Wtime)

double PMPI_Wtick(void)
{
    struct timespec t;
    clock_getres(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
DZ_WEAK(PI_Wtick)

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    (void)info; /* no key is known, so none is looked for */
    DZ_ENTER("MPI_Alloc_mem");
    int rc = dz_check_ptr("MPI_Alloc_mem", NULL, baseptr, "baseptr");
    if (rc)
        return rc;
    if (size < 0)
        return dz_raise(NULL, MPI_ERR_ARG, "MPI_Alloc_mem", "size is %lld", (long long)size);
    void *p = dz_mem_alloc((size_t)size);
    if (!p)
        return dz_raise(NULL, MPI_ERR_NO_MEM, "MPI_Alloc_mem", "no %lld bytes of memory are left", (long long)size);
    memcpy(baseptr, &p, sizeof p);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Alloc_mem)

int PMPI_Free_mem(void *base)
{
    DZ_ENTER("MPI_Free_mem");
    if (base && dz_mem_free(base))
        return dz_raise(NULL, MPI_ERR_BASE, "MPI_Free_mem", "base is %p, which MPI_Alloc_mem did not return", base);
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Free_mem)

int PMPI_Pcontrol(const int level, ...)
{
    (void)level; /* for profiling tools, which put themselves in front */
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Pcontrol)
