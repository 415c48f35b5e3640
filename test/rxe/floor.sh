#!/bin/bash
# floor.sh - what the devices themselves need: perftest's ib_write_lat, one way, in microseconds.
#
#   floor.sh [-r ROUNDS] [-n ITERATIONS] [-s BYTES]... [-p PAIR]...
#
# One line per size and pair on stdout, `floor BYTES PAIR usec`: the median of ROUNDS [5] runs' own medians, all sizes and
# pairs in turns. BYTES: 8 and 65536 where none is named. PAIR is CLIENT,SERVER: rxe0,rxe0 and rxe0,rxe1. ITERATIONS of a
# run: 1000, of 4 KiB and more 100. Two processes are busy at a time. Run it where the devices are: test/rxe/guest
# test/rxe/floor.sh, where only the ratio to something measured in the same guest means anything.
# Environment: GID (perftest's index [1]), FLOOR_TIME (seconds that one run may take [60]).
# Exit status: 0; 77 where ib_write_lat is not installed; 1 when a run fails, with its output.
set -u
rounds=5 iterations='' sizes=() pairs=() gid=${GID:-1} limit=${FLOOR_TIME:-60}
while getopts r:n:s:p: option; do
    case $option in
    r) rounds=$OPTARG ;;
    n) iterations=$OPTARG ;;
    s) sizes+=("$OPTARG") ;;
    p) pairs+=("$OPTARG") ;;
    *) exit 1 ;;
    esac
done
[ ${#sizes[@]} -gt 0 ] || sizes=(8 65536)
[ ${#pairs[@]} -gt 0 ] || pairs=(rxe0,rxe0 rxe0,rxe1)
command -v ib_write_lat >/dev/null || { echo "skipped: ib_write_lat is not installed (Debian: perftest)" >&2; exit 77; }

dir=$(mktemp -d) || exit 1
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

listening() { grep -qi ":$1 [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null; }
port=$((20000 + $$ % 10000))
while listening "$(printf %04X $port)"; do port=$((port + 1)); done

run() { # pair, bytes: one run's median, into a file
    local pair=$1 bytes=$2 n=$iterations try usec status tool
    [ -n "$n" ] || n=$((bytes < 4096 ? 1000 : 100))
    tool=(timeout -k 5 "$limit" ib_write_lat -F -x "$gid" -p "$port" -s "$bytes" -n "$n")
    "${tool[@]}" -d "${pair#*,}" >"$dir/server" 2>&1 &
    server=$!
    for ((try = 0; try < 400; try++)); do # until the server listens
        ! listening "$(printf %04X "$port")" || break
        kill -0 $server 2>/dev/null || break
        read -rt 0.05 <> <(:) || :
    done
    "${tool[@]}" -d "${pair%,*}" localhost >"$dir/client" 2>&1
    status=$?
    [ $status = 0 ] || kill $server 2>/dev/null
    wait $server || [ $status != 0 ] || status=1
    server=
    usec=$(awk '$1 ~ /^[0-9]+$/ && NF >= 5 {usec = $5} END {print usec}' "$dir/client")
    if [ $status != 0 ] || [ -z "$usec" ]; then
        {
            echo "floor.sh: ib_write_lat -s $bytes between $pair: exit status $status (124: more than $limit s)"
            echo "its server:" && cat "$dir/server"
            echo "its client:" && cat "$dir/client"
        } >&2
        exit 1
    fi
    echo "$usec" >>"$dir/$pair.$bytes"
}

for ((round = 0; round < rounds; round++)); do
    for bytes in "${sizes[@]}"; do
        for pair in "${pairs[@]}"; do
            run "$pair" "$bytes"
        done
    done
done
for bytes in "${sizes[@]}"; do
    for pair in "${pairs[@]}"; do
        echo "floor $bytes $pair $(sort -g "$dir/$pair.$bytes" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')"
    done
done
