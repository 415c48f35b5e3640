#!/bin/bash
# Debian's mpi4py, built for Open MPI, imported over our library.
. "$(dirname "$0")/common.sh"
py=/usr/bin/python3
[ -x $py ] && $py -c 'import mpi4py' 2>/dev/null || skip "mpi4py is not installed (Debian: python3-mpi4py)"
for n in 1 2 3; do
    run $n $py "$(cd "$top_srcdir" && pwd)/test/apps/mpi4py_check.py" >"$dir/log" 2>&1
    status=$?
    [ $status = 0 ] && [ "$(grep -c '^ok Denizen' "$dir/log")" = $n ] || { echo "FAIL: $n ranks, exit status $status"; cat "$dir/log"; exit 1; }
done
cat "$dir/log"
