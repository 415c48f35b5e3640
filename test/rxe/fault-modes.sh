#!/bin/bash
# Every way to fail of faults.c, on two devices, and packet loss; each ends within its time, with right bytes or an error.
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
# a shell between the launcher and each rank: the launcher ends a job when its own child dies
export DENIZEN_TRANSPORT=verbs DENIZEN_PEER_TIMEOUT=200 DENIZEN_IB_TIMEOUT=14
faults=$(cd "$top_builddir" && pwd)/test/rxe/faults
bad=0
run() { # seconds, mode
    local began=$SECONDS dir
    dir=$(mktemp -d)
    out=$(cd "$dir" && timeout -k 5 "$1" $mpirun --oversubscribe --bind-to none -n 2 sh -c '
        export DENIZEN_IB_DEVICE=rxe$((PMIX_RANK % 2))
        "$@"; rc=$?; [ $rc = 137 ] && rc=0; exit $rc' sh "$faults" "$2" 2>&1)
    rc=$?
    # who has seen an error leaves without MPI_Finalize, which the launcher does not like
    case $2 in
    kill) grep -q 'rank 0: 0 failures' <<<"$out" && rc=0 ;;
    post | wc | rkey | qp | link) grep -q 'rank 0: 0 failures' <<<"$out" && grep -q 'rank 1: 0 failures' <<<"$out" && rc=0 ;;
    esac
    rm -rf "$dir"
    if [ $rc = 0 ]; then
        echo "ok $2 ($((SECONDS - began)) s)"
    else
        echo "not ok $2 (exit status $rc, $((SECONDS - began)) s)"
        echo "$out"
        bad=1
    fi
}
for mode in ${*:-plain reg limits full million post wc rkey qp kill}; do
    run $([ "$mode" = million ] && echo 200 || echo 30) "$mode"
done
if tc qdisc add dev veth0 root netem loss 1%; then
    run 120 plain
    # not under AddressSanitizer: an emulated CPU is then too slow to answer before the device calls its peer dead
    [ "${SANITIZERS:-no}" = no ] && programs="conform/c05_unequal_counts mpi/p2p_sizes" || programs=
    for name in $programs; do
        DZ_TEST_SETTINGS="DENIZEN_TRANSPORT=verbs DENIZEN_IB_DEVICE=rxe% DENIZEN_IB_TIMEOUT=16" DZ_TEST_TIME=3 \
            "$top_srcdir/test/run" "test/$name" >"$TMPDIR/loss" 2>&1 ||
            { echo "not ok $name with packets lost"; tail -n 20 "$TMPDIR/loss"; bad=1; }
    done
    tc qdisc del dev veth0 root netem
else
    echo "not ok: tc cannot lose packets here"
    bad=1
fi
run 40 link # last: the link stays down
exit $bad
