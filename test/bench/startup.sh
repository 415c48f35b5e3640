#!/bin/bash
# startup.sh - from MPI_Init to its end and to the first message, for 2, 16 and 64 ranks (or those named): this
# library, MPICH and Open MPI, medians of five runs in turns. A run of this library that fails is exit status 1.
# Environment: top_builddir (default .), PERF_DENIZEN, MPIRUN.
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sources=$(ls "$top_srcdir"/test/bench/{floor,main,p2p,part,report}.c)
ours=${PERF_DENIZEN:-$top_builddir/denizen-perf}
[ -x "$ours" ] || { echo "$ours is not built"; exit 1; }
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
ompi=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
libraries=Denizen
mpicc.mpich -O2 -std=gnu11 -pthread $sources -o "$dir/mpich" 2>/dev/null && libraries="$libraries MPICH" ||
    echo "MPICH is left out: mpicc.mpich does not compile here"
mpicc.openmpi -O2 -std=gnu11 -pthread $sources -o "$dir/ompi" 2>/dev/null && libraries="$libraries OpenMPI" ||
    echo "Open MPI is left out: mpicc.openmpi does not compile here"
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
one() { # library ranks
    case $1 in
    Denizen) timeout -k 5 120 $ompi $root --oversubscribe --bind-to none -n "$2" "$ours" --startup --csv ;;
    MPICH) timeout -k 5 120 mpirun.mpich -n "$2" "$dir/mpich" --startup --csv ;;
    OpenMPI) timeout -k 5 120 $ompi $root --oversubscribe --bind-to none -n "$2" "$dir/ompi" --startup --csv ;;
    esac 2>"$dir/err" </dev/null | grep '^startup_ms'
    return "${PIPESTATUS[0]}"
}
failed=0
[ $# -gt 0 ] || set -- 2 16 64
for n; do
    for i in 1 2 3 4 5; do
        for library in $libraries; do
            one $library "$n" >>"$dir/$library.$n" && continue
            echo "$library, $n ranks: a run failed"
            grep . "$dir/err" | head -n 3 | sed 's/^/    /'
            [ $library != Denizen ] || failed=1
        done
    done
    for library in $libraries; do
        [ -s "$dir/$library.$n" ] || continue
        printf '%-8s %3d ranks: MPI_Init %8.1f ms, to the first message %8.1f ms\n' $library "$n" \
            "$(cut -d, -f3 "$dir/$library.$n" | median)" "$(cut -d, -f4 "$dir/$library.$n" | median)"
    done
done
exit $failed
