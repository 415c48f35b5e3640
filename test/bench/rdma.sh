#!/bin/bash
# rdma.sh - a partition over RDMA beside the device's own floor, perftest's ib_write_lat, and Open MPI with UCX.
#
#   rdma.sh [rounds]                      on a machine with RDMA devices
#   test/rxe/guest test/bench/rdma.sh     in a guest with soft-RoCE: emulated, only the ratios mean anything
#
# 5 rounds of, in turns: ib_write_lat 8 B and 64 KiB, ib_write_bw of 16 x 4 KiB in one list (what 64 KiB in 16 partitions
# has to post), denizen-perf over verbs, Open MPI's persistent send and receive over UCX rc. Medians, each divided by the
# floor's median. Once with both ranks on the first device (DEVICES, default rxe0), once with rank 1 on the second (rxe1).
# Then, from callgrind, the instructions from MPI_Pready to the device's own post, and the counters of the run.
# Environment: top_builddir (default .), GID (perftest's index, default 1), UCX_GID (UCX's, default 2).
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
rounds=${1:-5} gid=${GID:-1} ucx_gid=${UCX_GID:-2}
read -r first second <<<"${DEVICES:-rxe0 rxe1}"
perf=$(cd "$top_builddir" && pwd)/denizen-perf
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ "$(id -u)" != 0 ] || mpirun="$mpirun --allow-run-as-root"
mpirun="$mpirun --oversubscribe --bind-to none -n 2"
command -v ib_write_lat >/dev/null || { echo "ib_write_lat is not installed (Debian: perftest)"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mpicc.openmpi -O2 -std=gnu11 -pthread "$top_srcdir"/test/bench/{floor,main,p2p,part,report}.c -o "$dir/peer" 2>/dev/null ||
    echo "Open MPI is left out: mpicc.openmpi is not there"

tool() { # device of the server, arguments: the client's last line of figures
    local server=$1 try
    shift
    "$@" -F -x "$gid" -d "$server" >/dev/null 2>&1 &
    for try in {1..100}; do # until the server listens
        "$@" -F -x "$gid" -d "$first" localhost 2>/dev/null >"$dir/tool" && break
    done
    wait $!
    awk '$1 ~ /^[0-9]+$/ && NF >= 5 {line = $0} END {print line}' "$dir/tool"
}
ours() { # device of rank 1, arguments of denizen-perf: lines "what bytes parts us"
    local other=$1
    shift
    DENIZEN_TRANSPORT=verbs timeout 100 $mpirun sh -c '
        d=$1 e=$2; shift 2; [ "$PMIX_RANK" = 0 ] || d=$e; DENIZEN_IB_DEVICE=$d exec "$@"' sh "$first" "$other" "$perf" \
        --quick --csv "$@" 2>/dev/null | awk -F, '/^"/ {gsub(/"/, "", $1); print $1 "," $2 "," $3 "," $4}'
}
ucx() { # device of rank 1
    timeout 100 $mpirun --mca pml ucx --mca osc ^ucx -x UCX_TLS=rc,self -x UCX_IB_GID_INDEX="$ucx_gid" sh -c '
        d=$1 e=$2; shift 2; [ "$OMPI_COMM_WORLD_RANK" = 0 ] || d=$e; UCX_NET_DEVICES=$d:1 exec "$@"' sh "$first" "$1" \
        "$dir/peer" --quick --csv --only persistent --sizes 8 2>/dev/null | awk -F, '/^"/ {print $4}'
}
median() { sort -g "$1" 2>/dev/null | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]; else print "-"}'; }
row() { # what, file, floor's file
    awk -v what="$1" -v us="$(median "$dir/$2")" -v floor="$(median "$dir/$3")" -v lo="$(sort -g "$dir/$2" | head -1)" \
        -v hi="$(sort -g "$dir/$2" | tail -1)" 'BEGIN {
        if (us == "-") printf "%-52s %10s\n", what, "-"
        else printf "%-52s %10.2f %9.2f %9.2f %8.2f\n", what, us, lo, hi, us / floor}'
}

for other in $first $second; do
    rm -f "$dir"/f.* "$dir"/o.*
    for ((i = 0; i < rounds; i++)); do
        tool "$other" ib_write_lat -s 8 -n 1000 | awk '{print $5}' >>"$dir/f.8"
        ours "$other" --only part,persistent --sizes 8 --parts 1 >"$dir/run"
        awk -F, '$1 == "partitioned" {print $4}' "$dir/run" >>"$dir/o.8"
        awk -F, '$1 != "partitioned" {print $4}' "$dir/run" >>"$dir/o.p8"
        tool "$other" ib_write_lat -s 65536 -n 100 | awk '{print $5}' >>"$dir/f.64k"
        tool "$other" ib_write_bw -s 4096 -n 1600 -t 16 -l 16 | awk '{print 65536 / ($4 * 1048576) * 1e6}' >>"$dir/f.list"
        ours "$other" --only part --sizes 65536 --parts 1,16 >"$dir/run"
        awk -F, '$3 == 1 {print $4}' "$dir/run" >>"$dir/o.64k"
        awk -F, '$3 == 16 {print $4}' "$dir/run" >>"$dir/o.64k16"
        [ ! -x "$dir/peer" ] || ucx "$other" >>"$dir/o.ucx"
    done
    printf '%s to %s, %d rounds%17s %10s %9s %9s %8s\n' "$first" "$other" "$rounds" '' 'median us' min max 'x floor'
    row "ib_write_lat 8 B" f.8 f.8
    row "partitioned 8 B in 1" o.8 f.8
    row "persistent 8 B" o.p8 f.8
    row "Open MPI + UCX rc, persistent 8 B" o.ucx f.8
    row "ib_write_lat 64 KiB" f.64k f.64k
    row "partitioned 64 KiB in 1" o.64k f.64k
    row "ib_write_bw 16 x 4 KiB, one list, per 64 KiB" f.list f.64k
    row "partitioned 64 KiB in 16" o.64k16 f.64k
    echo
done

echo "counters of 8 B in 1, rank 0:"
DENIZEN_STATS=$dir/stats ours "$first" --only part --sizes 8 --parts 1 >/dev/null
grep '^0 ' "$dir/stats" | grep -v ' 0$' | sed 's/^0 /  /'

if command -v valgrind >/dev/null; then
    cat >"$dir/rank.sh" <<END
export DENIZEN_TRANSPORT=verbs DENIZEN_IB_DEVICE=$first
[ "\$PMIX_RANK" = 0 ] || exec $top_builddir/test/bench/pready 200
exec valgrind -q --trace-children=yes --tool=callgrind --toggle-collect=*MPI_Pready --callgrind-out-file=$dir/cg.%p \
    $top_builddir/test/bench/pready 200
END
    timeout 250 $mpirun sh "$dir/rank.sh" >"$dir/err" 2>&1 || { echo "callgrind failed:"; tail -n 5 "$dir/err"; }
    for f in "$dir"/cg.*; do
        awk '/^fn=/ {id = substr($1, 4); if (NF > 1) names[id] = $2; fn = id; next}
             /^c?fn=/ {id = substr($1, 5); if (NF > 1) names[id] = $2; next}
             /^calls=/ {getline; next}
             /^[0-9+*-]/ {ir[fn] += $2}
             END {for (f in ir) if (ir[f] > 0) print names[f], ir[f] / 200}' "$f" | sort -k2 -gr >"$dir/fn"
        grep -q 'MPI_Pready' "$dir/fn" || continue
        awk '/^(P?MPI_|dz_|write_|post_|fill|pack_|give|ready_|keep)/ {n += $2} {line = line " " $1 "=" $2}
             END {print "MPI_Pready, of Denizen alone:", n, "instructions a call;", "all functions:" line}' "$dir/fn"
    done
fi
