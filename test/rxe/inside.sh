#!/bin/bash
# inside.sh - what is run in the guest (test/rxe/guest): the jobs of test/rxe/jobs, the suite over RDMA, then the RDMA tests
# proper.
#
# One line a test: PASS, FAIL or SKIP: rxe/NAME, and the output of those that failed. Environment: top_srcdir,
# top_builddir, MPIRUN, as make check sets them; the working directory is the build's. Argument: words that a test's name
# has to contain one of; none: all. RXE_JOBS: another file of jobs.
: "${top_srcdir:=.}" "${top_builddir:=.}"
cd "$top_builddir" || exit 1
out=$(mktemp -d)
bad=0
export DZ_TEST_SCALE=${DZ_TEST_SCALE:-200} TMPDIR=$out
. "$top_srcdir/test/common.sh"
# runs whose settings are of shared memory say nothing new over RDMA
export DZ_TEST_WITHOUT="DENIZEN_TRANSPORT DENIZEN_SLOT_LIMIT DENIZEN_SLOT_RING DENIZEN_CMA DENIZEN_POOL DENIZEN_CHUNK"
DZ_TEST_WITHOUT+=" DZ_TEST_COLL" # and collectives in all their modes take minutes; below those that stay

wanted() {
    [ -z "$words" ] && return 0
    for w in $words; do case $1 in *"$w"*) return 0 ;; esac; done
    return 1
}
words=$*

report() { # name, status, seconds
    case $2 in
    0) echo "PASS: rxe/$1 ($3 s)" ;;
    77) echo "SKIP: rxe/$1: $(grep -m1 -i skip "$out/log")" ;;
    *) echo "FAIL: rxe/$1 ($3 s)"; tail -n 60 "$out/log" | cut -c1-300 | sed 's/^/    /'; bad=1 ;;
    esac
}

program() { # program, label, settings...: through test/run, as its run: lines say
    local name=$1$2 prog=$1 status began=$SECONDS
    wanted "$name" || return
    shift 2
    DZ_TEST_SETTINGS="DENIZEN_TRANSPORT=verbs $*" "$top_srcdir/test/run" "$prog" >"$out/log" 2>&1
    report "$name" $? $((SECONDS - began))
}

script() { # script of test/rxe
    local name=test/rxe/$1 began=$SECONDS
    wanted "$name" || return
    bash "$top_srcdir/$name" >"$out/log" 2>&1
    report "$name" $? $((SECONDS - began))
}

# A job's processes carry a mark in their environment, whatever group or session they have moved to.
marked() { grep -lsaF -- "DZ_JOB_MARK=$mark" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'; }

job() { # name, seconds, command
    local name=jobs/$1 limit=$(($2 * ${DZ_TEST_TIME:-1})) status left try began=$SECONDS mark=$$.$RANDOM
    wanted "$name" || return
    mkdir "$out/tmp"
    TMPDIR=$out/tmp DZ_JOB_MARK=$mark timeout -k 5 "$limit" bash -c "$3" "$1" </dev/null >"$out/log" 2>&1
    status=$?
    case $status in 124 | 137) echo "took more than $limit s" >>"$out/log" ;; esac
    for try in 1 2 3 4 5 6 7 8 9 10; do # a launcher may be reaping its last
        left=$(marked)
        [ -n "$left" ] || break
        sleep 0.2
    done
    if [ -n "$left" ]; then
        echo "left behind:" $(ps -o args= -p "$(echo $left | tr ' ' ,)") >>"$out/log"
        kill -9 $left 2>/dev/null
        [ $status != 0 ] || status=1
    fi
    for dev in veth0 veth1; do
        tc qdisc show dev $dev | grep -q 'noqueue' && continue
        echo "left on $dev: $(tc qdisc show dev $dev)" >>"$out/log"
        tc qdisc del dev $dev root
        [ $status != 0 ] || status=1
    done
    rm -rf "$out/tmp"
    report "$name" $status $((SECONDS - began))
}

mpirun="${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}"
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
export mpirun="$mpirun --oversubscribe --bind-to none"
while read -r name seconds command; do
    case $name in '' | '#'*) continue ;; esac
    case $seconds in '' | *[!0-9]*) seconds=1 command="echo 'test/rxe/jobs: no seconds'; exit 1" ;; esac
    job "$name" "$seconds" "$command"
done <"${RXE_JOBS:-$top_srcdir/test/rxe/jobs}"

for source in "$top_srcdir"/test/verbs/*.c; do
    name=${source##*/}
    program "test/verbs/${name%.c}" ""
done
for source in "$top_srcdir"/test/conform/c*.c "$top_srcdir"/test/mpi/*.c; do
    name=${source#"$top_srcdir"/}
    [ -x "${name%.c}" ] && program "${name%.c}" ""
done
# the other ways for a partition to land and to be announced
word=DENIZEN_IB_NOTICE=word slots="DENIZEN_IB_PACKED=0 DENIZEN_IB_SLOT=1048576" buffer="DENIZEN_IB_PACKED=0 DENIZEN_IB_SLOT=0"
for name in conform/c05_unequal_counts conform/c06_datatypes mpi/part_random; do
    program "test/$name" " word" $word
    program "test/$name" " slots" $slots
    program "test/$name" " buffer" $buffer
done
program test/conform/c13_late_receiver " slots" $slots
program test/conform/c13_late_receiver " word" $word
program test/conform/c14_many_cycles " buffer" $buffer
# from one device to the other
for name in conform/c05_unequal_counts mpi/part_random; do
    program "test/$name" " two devices" DENIZEN_IB_DEVICE=rxe%
done
program test/mpi/coll_bcast " resident" DZ_TEST_COLL=again
for s in "$top_srcdir"/test/rxe/fault-*.sh; do
    [ -e "$s" ] && script "${s##*/}"
done
rm -rf "$out"
exit $bad
