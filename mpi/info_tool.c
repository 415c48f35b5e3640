/* denizen-info - how the library was built and how it is set: what to look at, and what to paste into a report. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "transport/boot.h"

static int usage(const char *name, int rc)
{
    fprintf(rc ? stderr : stdout, "usage: %s [--settings]\n  without an argument: version, build, settings\n", name);
    return rc;
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--settings")))
        return usage(argv[0], argc != 2 || strcmp(argv[1], "--help"));
    if (dz_settings_load()) {
        fprintf(stderr, "%s: %s\n", argv[0], dz_boot_error);
        return 1;
    }
    if (argc == 1) {
        MPI_Get_library_version(version, &n);
        printf("%s\nMPI          %d.%d with the partitioned calls of 4.0\ncompiler     %s\nflags        %s\n"
               "sanitizers   %s\ntransports   self, shm\nlibrary      %s\n\n",
               version, MPI_VERSION, MPI_SUBVERSION, DZ_BUILD_CC, DZ_BUILD_CFLAGS, DZ_BUILD_SANITIZERS,
               DZ_BUILD_LIBRARY);
    }
    dz_settings_print(stdout, true);
    return 0;
}
