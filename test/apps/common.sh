# common.sh - running programs that others have built against Open MPI, over our library. Sourced.
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
skip() { echo "skipped: $*"; exit 77; }
case ${SANITIZERS:-no} in no) ;; *) skip "a sanitized library does not run under a program that is not" ;; esac
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ -n "$mpirun" ] && [ "$mpirun" != no ] || skip "Open MPI's mpirun is not installed"
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
lib=$(cd "$top_builddir/mpi/.libs" && pwd)
[ -e "$lib/libmpi.so.40" ] || { echo "libmpi.so.40 is not built"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
run() { # ranks command...
    n=$1
    shift
    timeout 120 $mpirun --oversubscribe --bind-to none -n "$n" env LD_LIBRARY_PATH="$lib" "$@" </dev/null
}
