#!/bin/bash
# inside.sh - what is run in the guest (test/rxe/guest): the suite over RDMA, then the RDMA tests proper.
#
# One line a test: PASS, FAIL or SKIP: rxe/NAME, and the output of those that failed. Environment: top_srcdir,
# top_builddir, MPIRUN, as make check sets them; the working directory is the build's. Argument: words that a test's name
# has to contain one of; none: all.
: "${top_srcdir:=.}" "${top_builddir:=.}"
cd "$top_builddir" || exit 1
out=$(mktemp -d)
bad=0
export DZ_TEST_SCALE=${DZ_TEST_SCALE:-100} TMPDIR=$out

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

for source in "$top_srcdir"/test/verbs/*.c; do
    name=${source##*/}
    program "test/verbs/${name%.c}" ""
done
for source in "$top_srcdir"/test/conform/c*.c "$top_srcdir"/test/mpi/*.c; do
    name=${source#"$top_srcdir"/}
    [ -x "${name%.c}" ] && program "${name%.c}" ""
done
# the other ways for a partition to land and to be announced
for name in conform/c05_unequal_counts conform/c06_datatypes conform/c13_late_receiver conform/c14_many_cycles \
    mpi/part_random; do
    program "test/$name" " word" DENIZEN_IB_NOTICE=word
    program "test/$name" " slots" DENIZEN_IB_PACKED=0 DENIZEN_IB_SLOT=1048576
    program "test/$name" " buffer" DENIZEN_IB_PACKED=0 DENIZEN_IB_SLOT=0
done
# from one device to the other
for name in conform/c05_unequal_counts mpi/p2p_sizes mpi/part_random; do
    program "test/$name" " two devices" DENIZEN_IB_DEVICE=rxe%
done
for s in "$top_srcdir"/test/rxe/fault-*.sh; do
    [ -e "$s" ] && script "${s##*/}"
done
rm -rf "$out"
exit $bad
