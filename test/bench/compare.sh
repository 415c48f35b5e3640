#!/bin/bash
# compare.sh - denizen-perf over this library and over the MPI libraries that are installed, in turns, in one table.
#
#   compare.sh [--csv FILE] [--strict] [rounds]
#
# 3 rounds of: Denizen, MPICH, Open MPI, each with its own mpirun; medians over the rounds; then the targets, each met
# or missed. --csv writes the same lines for machines, --strict makes a missed target exit status 1. A run that fails,
# or that finds wrong bytes, is always exit status 1: its line must not just be missing.
#
# The same source is compiled with each library's mpicc, or taken as built: PERF_MPICH, PERF_OPENMPI. Open MPI before
# 5 has no partitioned calls: only persistent and plain messages are compared there. Figures of one round are taken
# within seconds of one another; each has the machine's floor beside it (denizen-perf(1)), so that a ratio does not
# depend on where the host has put the cores meanwhile. Environment: top_builddir (default .), PERF_DENIZEN (default
# $top_builddir/denizen-perf), MPIRUN.
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
usage() { sed -n '3,4s/^# *//p' "$0"; exit 2; }
rounds=3 csv= strict=0
while [ $# -gt 0 ]; do
    case $1 in
    --csv) [ $# -gt 1 ] || usage; csv=$2; shift ;;
    --strict) strict=1 ;;
    *[!0-9]* | '' | 0) usage ;;
    *) rounds=$1 ;;
    esac
    shift
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sources=$(ls "$top_srcdir"/test/bench/{coll,floor,main,p2p,part,report}.c)
ours=${PERF_DENIZEN:-$top_builddir/denizen-perf}
[ -x "$ours" ] || { echo "$ours is not built"; exit 1; }
python=$(command -v python3) || { echo "python3 is missing: it makes the table"; exit 1; }
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
ompi=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
libraries=Denizen
peer() { # library, its mpicc, program already built, Debian package
    if [ -n "$3" ]; then
        cp "$3" "$dir/$1" || exit 1
    elif ! "$2" -O2 -std=gnu11 -pthread $sources -o "$dir/$1" 2>"$dir/err"; then
        echo "$1 is left out: $2 does not compile here (Debian: $4)"
        return
    fi
    libraries="$libraries $1"
}
peer MPICH mpicc.mpich "${PERF_MPICH-}" libmpich-dev
peer OpenMPI mpicc.openmpi "${PERF_OPENMPI-}" libopenmpi-dev

failed=0
one() { # library, arguments of denizen-perf
    local library=$1 status
    shift
    case $library in
    Denizen) timeout -k 5 300 $ompi $root --oversubscribe --bind-to none -n 2 "$ours" --csv "$@" ;;
    MPICH) timeout -k 5 300 mpirun.mpich -n 2 "$dir/MPICH" --csv "$@" ;;
    OpenMPI) timeout -k 5 300 $ompi $root --oversubscribe --bind-to none -n 2 "$dir/OpenMPI" --csv "$@" ;;
    esac >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    grep '^"' "$dir/out" | sed "s/^/$library,/" >>"$dir/all"
    [ $status != 0 ] || return 0
    failed=1
    echo "FAILED ($status): $library, denizen-perf $*"
    grep . "$dir/err" | head -n 5 | sed 's/^/    /'
}

for ((round = 1; round <= rounds; round++)); do
    for library in $libraries; do
        one $library --only part,parrived --sizes 8,128,65536,1048576 --parts 1,16
        one $library --only persistent,plain --sizes 8,65536,1048576
        one $library --only part --sizes 65536 --parts 1 --alloc
    done
done
[ -s "$dir/all" ] || { echo "no run gave a figure"; exit 1; }

# library,"what",bytes,parts,us,floor,before,after,ratio -> medians by what, bytes, parts
$python - "$dir/all" "$csv" $strict <<'END' || failed=1
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
median = statistics.median
def best(key):  # of the peers, in floors: the cores may have been moved between two libraries
    return min((median(ratio[key, l]) for l in libraries if l != "Denizen" and (key, l) in ratio), default=None)
def ours(key):
    return median(ratio[key, "Denizen"]) if (key, "Denizen") in ratio else None
print("%-22s %8s %5s %9s" % ("one way, us (x floor)", "bytes", "parts", "floor") +
      "".join("%18s" % l for l in libraries) + "%14s" % "ours / best")
out = csv.writer(open(sys.argv[2], "w")) if sys.argv[2] else None
if out:
    out.writerow(["what", "bytes", "partitions", "floor_us"] + [l + s for l in libraries for s in ("_us", "_x_floor")] +
                 ["ours_over_best"])
for key in rows:
    line, record = "%-22s %8d %5d %9.3f" % (*key, median(floor[key])), [*key, "%.4f" % median(floor[key])]
    for l in libraries:
        have = (key, l) in us
        line += "%10.3f (%5.2f)" % (median(us[key, l]), median(ratio[key, l])) if have else "%18s" % "-"
        record += ["%.4f" % median(us[key, l]), "%.3f" % median(ratio[key, l])] if have else ["", ""]
    over = ours(key) / best(key) if ours(key) and best(key) else None
    print(line + ("%14.2f" % over if over else ""))
    if out:
        out.writerow(record + ["%.3f" % over if over else ""])

part, loop, persistent, alloc = "partitioned", "partitioned, Parrived", "persistent send", "partitioned, alloc"
def div(a, b):
    return a / b if a and b else None
targets = [("%s, %d B in %d, times the floor" % (w, s, p), ours((w, s, p)), t)
           for w, s, p, t in ((part, 8, 1, 1.5), (part, 128, 16, 1.6), (part, 65536, 1, 1.25), (part, 65536, 16, 1.25),
                              (alloc, 65536, 1, 1.3))]
# "no slower": 5 % is what two runs of the same thing differ by
targets += [("Parrived loop, %d B in %d, times Wait" % (s, p), div(ours((loop, s, p)), ours((part, s, p))), 1.05)
            for s in (8, 128, 65536) for p in (1, 16) if s >= 8 * p]
targets += [("%s, %d B, times the best peer" % (persistent, s),
             div(ours((persistent, s, 1)), best((persistent, s, 1))), t) for s, t in ((8, 0.9), (65536, 0.5))]
print()
missed = 0
for name, value, limit in targets:
    verdict = "no figure" if value is None else "met" if value <= limit else "MISSED"
    missed += verdict != "met"
    print("%-52s %6s  at most %4.2f  %s" % (name, "-" if value is None else "%.3f" % value, limit, verdict))
    if out:
        out.writerow(["target: " + name, "", "", "", "%.3f" % value if value else "", "%.2f" % limit, verdict])
print("%d of %d targets met" % (len(targets) - missed, len(targets)))
sys.exit(1 if missed and sys.argv[3] == "1" else 0)
END
exit $failed
