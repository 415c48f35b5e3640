#!/bin/bash
# The instructions of one MPI_Pready on a bound channel, counted by callgrind; fails above 60 for 8 bytes.
#
# Twice: between two ranks under mpirun, rank 0 under valgrind (shared memory), and of one process to itself. The
# program marks 1000 rounds of one partition of 8 bytes; callgrind counts what runs between entry and return of
# MPI_Pready, so the figure is exact and does not depend on the machine's load. No system call: valgrind counts those
# of the same functions. No lock and no allocation: the functions that ran are looked at by name, and their code for
# instructions that lock the bus, which is what a mutex that was inlined would leave.
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
limit=60 rounds=1000 failed=0
program=${PREADY:-$top_builddir/test/bench/pready}
library=${PREADY_LIBRARY:-$top_builddir/mpi/.libs/libmpi.so.40}
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAIL: $*"; failed=1; }
case ${SANITIZERS:-no} in no) ;; *) skip "a sanitizer's instructions would be counted" ;; esac
command -v valgrind >/dev/null || skip "valgrind is not installed"
[ -r "$library" ] || { echo "$library is not built"; exit 1; }
command -v objdump >/dev/null || skip "objdump is not installed"
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ -n "$mpirun" ] && [ "$mpirun" != no ] || skip "Open MPI's mpirun is not installed"
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
grind="valgrind -q --trace-children=yes --tool=callgrind --collect-systime=yes --toggle-collect=*MPI_Pready"

# Of a file of callgrind: each function that ran in the windows, with its instructions and system calls. Functions that
# only made system calls outside of them are in the file as well, without an instruction.
ran() {
    awk '/^fn=/ {id = substr($1, 4); if (NF > 1) names[id] = $2; fn = id; next}
         /^c?fn=/ {id = substr($1, 5); if (NF > 1) names[id] = $2; next}
         /^calls=/ {getline; next}
         /^[0-9+*-]/ {ir[fn] += $2; calls[fn] += $3}
         END {for (f in ir) if (ir[f] > 0) print names[f], ir[f], calls[f] + 0}' "$1" | sort
}

look() { # what, files of callgrind
    local what=$1 file total=0 calls=0 functions= f ir sys per
    shift
    # a wrapper of libtool's may run before the program, and has then counted nothing
    for file; do
        ! ran "$file" | grep -q '^P\?MPI_Pready ' || break
    done
    ran "$file" >"$dir/ran"
    grep -q '^P\?MPI_Pready ' "$dir/ran" || { fail "$what: callgrind has not seen MPI_Pready"; return; }
    grep -q '^events: Ir sysCount' "$file" || { fail "$what: callgrind has not counted system calls"; return; }
    while read -r f ir sys; do
        total=$((total + ir)) calls=$((calls + sys)) functions="$functions $f"
        ! objdump -d --no-show-raw-insn "$library" | awk -v f="<$f>:" '$2 == f {on = 1} /^$/ {on = 0} on' |
            grep -w -e lock -e 'xchg.*(' -e syscall || fail "$what: a locked instruction or a system call in $f"
    done <"$dir/ran"
    per=$(((total + rounds - 1) / rounds))
    echo "MPI_Pready, 8 bytes, bound, $what: $per instructions ($total in $rounds calls;" \
        "system calls: $calls; functions:$functions)"
    [ "$total" -ge $((rounds * 5)) ] || fail "$what: too few to be $rounds calls"
    [ "$per" -le "$limit" ] || fail "$what: more than $limit"
    [ "$calls" = 0 ] || fail "$what: a system call"
    ! grep -q -e mutex -e pthread -e alloc -e syscall -e dz_lock -e yield <<<"$functions" ||
        fail "$what: a lock or an allocation"
}

cat >"$dir/rank.sh" <<END
#!/bin/sh
if [ "\$OMPI_COMM_WORLD_RANK" = 0 ]; then
    exec $grind --callgrind-out-file=$dir/shm.%p $program $rounds
fi
exec $program $rounds
END
chmod +x "$dir/rank.sh"
timeout 120 $mpirun --oversubscribe --bind-to none -n 2 "$dir/rank.sh" || fail "the run between two ranks"
look "two ranks" "$dir"/shm.*
timeout 120 $grind --callgrind-out-file="$dir/self.%p" "$program" $rounds || fail "the run to itself"
look "itself" "$dir"/self.*
exit $failed
