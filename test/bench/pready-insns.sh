#!/bin/bash
# The instructions of one MPI_Pready on a bound channel, counted by callgrind; fails above 60 for 8 bytes.
#
# Two ranks under mpirun, rank 0 under valgrind. The program marks 1000 rounds of one partition of 8 bytes; callgrind
# counts what runs between entry and return of MPI_Pready, so the figure is exact and does not depend on the machine's
# load. That it makes no system call, takes no lock and allocates nothing is looked up in the functions that were called.
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
limit=60 rounds=1000
skip() { echo "skipped: $*"; exit 77; }
case ${SANITIZERS:-no} in no) ;; *) skip "a sanitizer's instructions would be counted" ;; esac
command -v valgrind >/dev/null || skip "valgrind is not installed"
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ -n "$mpirun" ] && [ "$mpirun" != no ] || skip "Open MPI's mpirun is not installed"
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/rank.sh" <<END
#!/bin/sh
if [ "\$OMPI_COMM_WORLD_RANK" = 0 ]; then
    exec valgrind -q --trace-children=yes --tool=callgrind --toggle-collect='*MPI_Pready' --callgrind-out-file=$dir/out.%p $top_builddir/test/bench/pready $rounds
fi
exec $top_builddir/test/bench/pready $rounds
END
chmod +x "$dir/rank.sh"
timeout 120 $mpirun --oversubscribe --bind-to none -n 2 "$dir/rank.sh" || { echo "the run failed"; exit 1; }
# the last process of rank 0 is the program itself; a wrapper of libtool's before it has counted nothing
total=$(cat "$dir"/out.* | sed -n 's/^totals: *\([0-9]*\).*/\1/p' | sort -n | tail -1)
cat "$dir"/out.* >"$dir/all"
[ -n "$total" ] && [ "$total" -gt $((rounds * 5)) ] || { echo "callgrind counted ${total:-nothing}"; exit 1; }
per=$(((total + rounds - 1) / rounds))
functions=$(sed -n 's/^c\?fn=([0-9]*) \(.*\)/\1/p' "$dir/all" | sort -u | tr '\n' ' ')
echo "MPI_Pready, 8 bytes, bound: $per instructions ($total in $rounds calls; functions: $functions)"
case " $functions" in
*pthread*|*malloc*|*calloc*|*syscall*|*dz_lock*|*sched_yield*) echo "FAIL: a lock, an allocation or a system call"; exit 1 ;;
esac
[ "$per" -le $limit ] || { echo "FAIL: more than $limit"; exit 1; }
