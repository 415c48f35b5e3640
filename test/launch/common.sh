# common.sh - what the launcher tests share; they source it. Variables from make: top_builddir, top_srcdir.
#
# check NAME STATUS TEXT COMMAND...   runs COMMAND: its exit status has to be STATUS (a number; "error": any but 0; "any")
#                                     within $limit seconds, and its output has to hold TEXT (a fixed string; may be empty)
# No process that carries $tag in its arguments may live afterwards, and /dev/shm has to look as before.
: "${top_builddir:=.}" "${top_srcdir:=$(dirname "$0")/../..}"
prog=$top_builddir/test/launch/prog
slurm=$top_srcdir/test/slurm
limit=15
tag=launch-test-$$
out=$(mktemp)
failures=0
checks=0
trap 'rm -f "$out" "$out.shm"; [ -z "${SLURM_TEST_DIR:-}" ] || "$slurm" down "$SLURM_TEST_DIR"' EXIT
trap 'exit 1' HUP INT TERM

# A PMIx environment of whoever runs the tests is not that of the jobs here.
for name in $(env | sed -n 's/^\(\(PMIX\|PMI\|SLURM\|OMPI\|PRTE\|ORTE\|DENIZEN\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
    case $name in SLURM_TEST_DIR) ;; *) unset "$name" ;; esac
done

. "$top_srcdir/test/common.sh"

skip() { echo "skipped: $*"; exit 77; }

need_prog() { [ -x "$prog" ] || { echo "$prog is not built"; exit 1; }; }

need_mpirun() {
    mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)} || skip "Open MPI's mpirun is not installed"
    [ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
    $mpirun --version 2>/dev/null | grep -qi "open.\?mpi\|openrte\|prrte" || skip "$mpirun is not Open MPI's"
    mpirun="$mpirun --oversubscribe"
}

need_slurm() {
    SLURM_TEST_DIR=$("$slurm" up) || exit $?
    export SLURM_TEST_DIR
    SLURM_CONF=$SLURM_TEST_DIR/slurm.conf
    export SLURM_CONF
    srun="srun --input=none"
}

left_over() { # processes with our tag; the dead that nobody has reaped have no command line
    for file in $(grep -lsaF -- "$tag" /proc/[0-9]*/cmdline); do
        pid=${file#/proc/} pid=${pid%/cmdline}
        words=$(cat "$file" 2>/dev/null | tr '\0' ' ')
        [ -z "$words" ] || echo "$pid $words"
    done
}

fail() {
    failures=$((failures + 1))
    echo "FAIL: $*"
    sed 's/^/    | /' "$out"
}

alive() { grep -qs "^$1 (.*) [^ZX] " "/proc/$1/stat"; }

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Some launchers have a lock of their own that they can fail to open when they go (PMIx 4.2.2's server, if a process
# dies amid the few messages of its connection). No rank is left then, and nothing that a rank could do helps.
launcher_is_stuck() {
    grep -q ptl_base_connection_hdlr "$out" && [ -z "$(left_over | grep -v "^$job ")" ]
}

check() {
    name=$1 want=$2 text=$3
    shift 3
    checks=$((checks + 1))
    shm >"$out.shm"
    begin=$(now_ms)
    "$@" "$tag" >"$out" 2>&1 </dev/null &
    job=$!
    stuck=
    while alive $job && [ $(($(now_ms) - begin)) -lt $((limit * 1000)) ]; do
        [ $(($(now_ms) - begin)) -lt 5000 ] || ! launcher_is_stuck || break
        sleep 0.02
    done
    if alive $job; then
        if launcher_is_stuck; then
            stuck=yes
            echo "$name: note: all ranks have ended, but the launcher hangs in its own PMIx"
        else
            fail "$name: not over within $limit s: $(left_over)"
        fi
        kill -9 $job
    fi
    wait $job 2>/dev/null
    got=$?
    ms=$(($(now_ms) - begin))
    if [ -n "$stuck" ]; then
        :
    elif [ "$want" = error ] && [ $got -eq 0 ] || [ "$want" -ne $got ] 2>/dev/null; then
        fail "$name: exit status $got, not $want"
    elif [ -n "$text" ] && ! grep -qF -- "$text" "$out"; then
        fail "$name: the output does not say '$text'"
    fi
    n=0 # the kernel may still be at the burial
    while [ -n "$(left_over)" ] && [ $n -lt 40 ]; do
        n=$((n + 1))
        sleep 0.05
    done
    if [ -n "$(left_over)" ]; then
        fail "$name: still there after the job: $(left_over)"
        left_over | while read -r pid rest; do kill -9 "$pid"; done
    fi
    more=$(shm | comm -13 "$out.shm" -)
    [ -z "$more" ] || fail "$name: left in /dev/shm: $more"
    echo "$name: exit status $got after $ms ms"
}

finish() {
    echo "$checks checks, $failures failures"
    [ $failures -eq 0 ]
    exit
}
