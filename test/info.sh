#!/bin/bash
# denizen-info: what a run has counted is what --counters shows; wrong files and words are refused.
: "${top_builddir:=.}" "${top_srcdir:=$(dirname "$0")/..}"
info=$top_builddir/denizen-info
. "$top_srcdir/test/common.sh"
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ -n "$mpirun" ] && [ "$mpirun" != no ] || { echo "skipped: Open MPI's mpirun is not installed"; exit 77; }
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
expect() { echo "$1"; bad=1; }
run=
[ "${SANITIZERS:-no}" != thread ] || run="setarch -R"
DENIZEN_STATS=$dir/all timeout 100 $mpirun --oversubscribe -n 2 $run "$top_builddir/test/mpi/tool" || expect "the run failed"
"$info" --counters "$dir/all" >"$dir/out" || expect "--counters failed"
cat "$dir/out"
sum=$(awk '$2 == "eager" {n += $3} END {print n}' "$dir/all")
[ "$sum" -ge 20 ] || expect "$sum messages counted, 20 were sent"
grep -q "^eager  *$sum " "$dir/out" || expect "--counters does not show the sum $sum"
grep -q "of 2 processes" "$dir/out" || expect "not of 2 processes"
echo "nonsense" >>"$dir/all"
! "$info" --counters "$dir/all" >/dev/null 2>"$dir/err" || expect "nonsense was taken"
grep -q "line $(wc -l <"$dir/all") " "$dir/err" || expect "the line is not named"
! "$info" --counters "$dir/none" >/dev/null 2>&1 || expect "a file that is not there was read"
! "$info" --nonsense >/dev/null 2>&1 || expect "--nonsense was taken"
"$info" | grep -q '^transports  *self, shm' || expect "no transports"
exit $bad
