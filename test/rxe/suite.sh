#!/bin/bash
# The jobs of test/rxe/jobs and the suite over RDMA, in a guest with soft-RoCE devices (test/rxe/guest). Its lines PASS,
# FAIL and SKIP are tests of their own, which ./quickstart check counts. Arguments: as of inside.sh.
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
case ${SANITIZERS:-no} in thread) echo "skipped: ThreadSanitizer under an emulated CPU takes hours"; exit 77 ;; esac
grep -q 'DZ_HAVE_VERBS 1\|DDZ_HAVE_VERBS=1' "$top_builddir"/{config.h,Makefile} 2>/dev/null ||
    { echo "skipped: this build is without libibverbs"; exit 77; }
# AddressSanitizer is slow there as well: what the transport itself does, not all of MPI over it
[ "${SANITIZERS:-no}" = no ] || [ $# -gt 0 ] || set -- verbs/ c06 fault-
export RXE_TIMEOUT=$((900 * ${DZ_TEST_TIME:-1})) top_srcdir top_builddir
exec "$top_srcdir/test/rxe/guest" bash "$top_srcdir/test/rxe/inside.sh" "$@"
