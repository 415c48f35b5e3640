# What configure looks for, one macro each. A directory given with --with-NAME=DIR comes first; then pkg-config, then the
# usual places.

# DZ_OPENMPI: OMPI_INCLUDE (the folder of its mpi.h), OMPI_VERSION
AC_DEFUN([DZ_OPENMPI], [
AC_ARG_WITH([openmpi], [AS_HELP_STRING([--with-openmpi=DIR], [prefix or include folder of Open MPI 4.1 or newer])],
    [], [with_openmpi=yes])
AC_MSG_CHECKING([for the headers of Open MPI])
AS_IF([test "x$with_openmpi" = xno], [AC_MSG_ERROR([Open MPI's headers are needed: the library has its ABI])])
OMPI_INCLUDE=
dz_places=
AS_IF([test "x$with_openmpi" != xyes], [dz_places="$with_openmpi $with_openmpi/include"])
AS_IF([test -z "$dz_places" && test -n "$PKG_CONFIG"], [
    for dz_pc in ompi-c ompi openmpi; do
        dz_places="$dz_places `$PKG_CONFIG --variable=includedir $dz_pc 2>/dev/null`"
    done])
AS_IF([test "x$with_openmpi" = xyes], [
    for dz_cc in mpicc.openmpi mpicc; do
        dz_places="$dz_places `$dz_cc --showme:incdirs 2>/dev/null`"
    done
    for dz_dir in /usr/lib/*/openmpi/include /usr/include/openmpi* /usr/lib64/openmpi/include /usr/local/include /opt/openmpi/include; do
        dz_places="$dz_places $dz_dir"
    done])
for dz_dir in $dz_places; do
    AS_IF([test -z "$OMPI_INCLUDE" && grep -q OMPI_MAJOR_VERSION "$dz_dir/mpi.h" 2>/dev/null],
        [OMPI_INCLUDE=`cd "$dz_dir" && pwd`])
done
AS_IF([test -z "$OMPI_INCLUDE"],
    [AC_MSG_ERROR([not found; install libopenmpi-dev (Debian, Ubuntu) or openmpi-devel, or say --with-openmpi=DIR])])
dz_ompi_number() { sed -n "s/^.define OMPI_$[]1_VERSION *\([[0-9]]*\).*/\1/p" "$OMPI_INCLUDE/mpi.h"; }
dz_major=`dz_ompi_number MAJOR` dz_minor=`dz_ompi_number MINOR` dz_release=`dz_ompi_number RELEASE`
OMPI_VERSION=$dz_major.$dz_minor.$dz_release
AS_IF([test "$dz_major" -lt 4 || { test "$dz_major" -eq 4 && test "$dz_minor" -lt 1; }],
    [AC_MSG_ERROR([$OMPI_VERSION in $OMPI_INCLUDE is too old: 4.1 or newer is needed])])
AC_MSG_RESULT([$OMPI_VERSION in $OMPI_INCLUDE])
AC_SUBST([OMPI_INCLUDE])
AC_SUBST([OMPI_VERSION])
])

# DZ_PMIX: PMIX_CFLAGS, PMIX_LIBS, PMIX_VERSION
AC_DEFUN([DZ_PMIX], [
AC_ARG_WITH([pmix], [AS_HELP_STRING([--with-pmix=DIR], [prefix of PMIx 4 or 5])], [], [with_pmix=yes])
AS_IF([test "x$with_pmix" = xno], [AC_MSG_ERROR([PMIx is needed: it starts the library])])
AC_MSG_CHECKING([for PMIx])
PMIX_CFLAGS= PMIX_LIBS=
AS_IF([test "x$with_pmix" != xyes], [PMIX_CFLAGS="-I$with_pmix/include" PMIX_LIBS="-L$with_pmix/lib -lpmix"],
    [test -n "$PKG_CONFIG" && $PKG_CONFIG --exists pmix 2>/dev/null],
        [PMIX_CFLAGS=`$PKG_CONFIG --cflags pmix` PMIX_LIBS=`$PKG_CONFIG --libs pmix`])
dz_pmix_found=no
save_CPPFLAGS=$CPPFLAGS save_LIBS=$LIBS
dz_try_pmix() {
    CPPFLAGS="$save_CPPFLAGS $PMIX_CFLAGS" LIBS="$PMIX_LIBS $save_LIBS"
}
AS_IF([test -n "$PMIX_LIBS"], [dz_try_pmix
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>]], [[return !PMIx_Get_version();]])], [dz_pmix_found=yes])])
AS_IF([test $dz_pmix_found = no && test "x$with_pmix" = xyes], [
    for dz_dir in /usr/lib/*/pmix2 /usr/lib/*/pmix /usr /usr/local /opt/pmix; do
        AS_IF([test $dz_pmix_found = no && test -r "$dz_dir/include/pmix.h"], [
            PMIX_CFLAGS="-I$dz_dir/include"
            for dz_lib in "-L$dz_dir/lib -lpmix" "-lpmix" `ls $dz_dir/lib/libpmix.so.2 $dz_dir/../libpmix.so.2 2>/dev/null`; do
                AS_IF([test $dz_pmix_found = no], [
                    PMIX_LIBS=$dz_lib
                    dz_try_pmix
                    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>]], [[return !PMIx_Get_version();]])],
                        [dz_pmix_found=yes])])
            done])
    done])
AS_IF([test $dz_pmix_found = no],
    [AC_MSG_ERROR([not found; install libpmix-dev (Debian, Ubuntu) or pmix-devel, or say --with-pmix=DIR])])
dz_try_pmix
AC_COMPUTE_INT([dz_pmix_major], [PMIX_VERSION_MAJOR], [[#include <pmix_version.h>]], [dz_pmix_major=0])
AC_COMPUTE_INT([dz_pmix_minor], [PMIX_VERSION_MINOR], [[#include <pmix_version.h>]], [dz_pmix_minor=0])
CPPFLAGS=$save_CPPFLAGS LIBS=$save_LIBS
PMIX_VERSION=$dz_pmix_major.$dz_pmix_minor
AS_IF([test "$dz_pmix_major" -lt 4], [AC_MSG_ERROR([PMIx $PMIX_VERSION is too old: 4 or 5 is needed])])
AC_MSG_RESULT([$PMIX_VERSION, $PMIX_LIBS])
AC_SUBST([PMIX_CFLAGS])
AC_SUBST([PMIX_LIBS])
])

# DZ_OPTIONAL: dz_ibverbs, dz_libfabric, dz_cuda for the summary. --with-x that does not find x is an error.
AC_DEFUN([DZ_OPTIONAL], [
AC_ARG_WITH([ibverbs], [AS_HELP_STRING([--with-ibverbs], [insist on libibverbs (default: take it if it is there)])],
    [], [with_ibverbs=check])
AC_ARG_WITH([libfabric], [AS_HELP_STRING([--with-libfabric], [insist on libfabric (default: the same)])],
    [], [with_libfabric=check])
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR], [insist on CUDA (default: the same)])], [], [with_cuda=check])
dz_ibverbs=no dz_libfabric=no dz_cuda=no
AS_IF([test "x$with_ibverbs" != xno], [AC_CHECK_HEADER([infiniband/verbs.h], [dz_ibverbs=found])])
AS_IF([test "x$with_libfabric" != xno], [AC_CHECK_HEADER([rdma/fabric.h], [dz_libfabric=found])])
AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda], [check|yes], [dz_cuda_dirs="/usr/local/cuda /opt/cuda"], [dz_cuda_dirs=$with_cuda])
    for dz_dir in $dz_cuda_dirs; do
        AS_IF([test -x "$dz_dir/bin/nvcc"], [dz_cuda="found in $dz_dir"])
    done])
AM_CONDITIONAL([HAVE_VERBS], [test "x$dz_ibverbs" != xno])
AS_IF([test "x$dz_ibverbs" != xno], [dz_have_verbs=1
    AC_SEARCH_LIBS([dlopen], [dl])], [dz_have_verbs=0])
AC_DEFINE_UNQUOTED([DZ_HAVE_VERBS], [$dz_have_verbs], [1: libibverbs' headers are there; the library is looked for at run time])
for dz_pair in "ibverbs:$with_ibverbs:$dz_ibverbs" "libfabric:$with_libfabric:$dz_libfabric" "cuda:$with_cuda:$dz_cuda"; do
    AS_CASE([$dz_pair], [*:check:*|*:no:*], [], [*:no], [AC_MSG_ERROR([--with-${dz_pair%%:*} was asked for and is not there])])
done
])
