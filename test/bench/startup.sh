#!/bin/bash
# startup.sh - from MPI_Init to its end and to the first message, for 2, 16 and 64 ranks: this library, MPICH and Open MPI,
# medians of five runs in turns. Environment: top_builddir (default .), MPIRUN.
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source=$(ls "$top_srcdir"/test/bench/{floor,main,p2p,part,report}.c)
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
ompi=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
mpicc.mpich -O2 -std=gnu11 -pthread $source -o "$dir/mpich" 2>/dev/null || echo "MPICH is left out"
mpicc.openmpi -O2 -std=gnu11 -pthread $source -o "$dir/ompi" 2>/dev/null || echo "Open MPI is left out"
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
one() { # library ranks
    case $1 in
    Denizen) timeout 120 $ompi $root --oversubscribe -n "$2" "$top_builddir/denizen-perf" --startup --csv ;;
    MPICH) [ ! -x "$dir/mpich" ] || timeout 120 mpirun.mpich -n "$2" "$dir/mpich" --startup --csv ;;
    OpenMPI) [ ! -x "$dir/ompi" ] || timeout 120 $ompi $root --oversubscribe -n "$2" "$dir/ompi" --startup --csv ;;
    esac 2>/dev/null | grep '^startup_ms'
}
for n in 2 16 64; do
    for i in 1 2 3 4 5; do
        for library in Denizen MPICH OpenMPI; do
            one $library $n >>"$dir/$library.$n"
        done
    done
    for library in Denizen MPICH OpenMPI; do
        [ -s "$dir/$library.$n" ] || continue
        printf '%-8s %3d ranks: MPI_Init %8.1f ms, to the first message %8.1f ms\n' $library $n \
            "$(cut -d, -f3 "$dir/$library.$n" | median)" "$(cut -d, -f4 "$dir/$library.$n" | median)"
    done
done
