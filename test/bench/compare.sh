#!/bin/bash
# compare.sh - denizen-perf over this library and over the MPI libraries that are installed, in turns, in one table.
#
#   compare.sh [rounds]     3 rounds of: Denizen, MPICH, Open MPI, each with its own mpirun; medians over the rounds
#
# The same source is compiled with each library's mpicc. Open MPI before 5 has no partitioned calls: only persistent and
# plain messages are compared there. Figures of one round are taken within seconds of one another; each has the machine's
# floor beside it (denizen-perf(1)), so that a ratio does not depend on where the host has put the cores meanwhile.
# Environment: top_builddir (default .), MPIRUN.
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
rounds=${1:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source=$(ls "$top_srcdir"/test/bench/{floor,main,p2p,part,report}.c)
ours=$top_builddir/denizen-perf
[ -x "$ours" ] || { echo "$ours is not built"; exit 1; }
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
ompi=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
libraries=Denizen
if command -v mpicc.mpich >/dev/null && mpicc.mpich -O2 -std=gnu11 -pthread $source -o "$dir/mpich" 2>"$dir/err"; then
    libraries="$libraries MPICH"
else
    echo "MPICH is left out: mpicc.mpich does not compile here (Debian: libmpich-dev)"
fi
if command -v mpicc.openmpi >/dev/null && mpicc.openmpi -O2 -std=gnu11 -pthread $source -o "$dir/ompi" 2>"$dir/err"; then
    libraries="$libraries OpenMPI"
else
    echo "Open MPI is left out: mpicc.openmpi does not compile here (Debian: libopenmpi-dev)"
fi

one() { # library, arguments of denizen-perf
    local library=$1
    shift
    case $library in
    Denizen) timeout 300 $ompi $root --oversubscribe --bind-to none -n 2 "$ours" --csv "$@" ;;
    MPICH) timeout 300 mpirun.mpich -n 2 "$dir/mpich" --csv "$@" ;;
    OpenMPI) timeout 300 $ompi $root --oversubscribe --bind-to none -n 2 "$dir/ompi" --csv "$@" ;;
    esac 2>>"$dir/stderr" | grep '^"' | sed "s/^/$library,/"
}

for ((round = 1; round <= rounds; round++)); do
    for library in $libraries; do
        one $library --only part,parrived --sizes 8,128,65536,1048576 --parts 1,16
        one $library --only persistent,plain --sizes 8,65536,1048576
        one $library --only part --sizes 65536 --parts 1 --alloc
    done
done >"$dir/all"
[ -s "$dir/all" ] || { cat "$dir/stderr"; exit 1; }

# library,"what",bytes,parts,us,floor,before,after,ratio -> medians by what, bytes, parts
python=$(command -v python3) || { cat "$dir/all"; exit 0; }
$python - "$dir/all" <<'END'
import collections, csv, statistics, sys
us, ratio, floor = (collections.defaultdict(list) for _ in range(3))
rows, libraries = [], []
for library, what, size, parts, t, f, _, _, r in csv.reader(open(sys.argv[1])):
    key = what, int(size), int(parts)
    if key not in rows:
        rows.append(key)
    if library not in libraries:
        libraries.append(library)
    us[key, library].append(float(t))
    ratio[key, library].append(float(r))
    floor[key].append(float(f))
print("%-22s %8s %5s %9s" % ("one way, us (x floor)", "bytes", "parts", "floor") + "".join("%18s" % l for l in libraries) +
      "%14s" % "ours / best")
for key in rows:
    line = "%-22s %8d %5d %9.3f" % (*key, statistics.median(floor[key]))
    peers = []
    for library in libraries:
        if (key, library) not in us:
            line += "%18s" % "-"
            continue
        r = statistics.median(ratio[key, library])
        line += "%10.3f (%5.2f)" % (statistics.median(us[key, library]), r)
        if library != "Denizen":
            peers.append(r)
    if peers and (key, "Denizen") in us: # by ratios to the floor: the cores may have been moved between two libraries
        line += "%14.2f" % (statistics.median(ratio[key, "Denizen"]) / min(peers))
    print(line)
END
