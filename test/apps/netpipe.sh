#!/bin/bash
# Debian's NetPIPE for Open MPI, unmodified, over our library: it finishes, checks its bytes (-I, -B are its own), and it is
# our library that it runs on.
. "$(dirname "$0")/common.sh"
np=$(command -v NPopenmpi) || skip "NetPIPE is not installed (Debian: netpipe-openmpi)"
LD_LIBRARY_PATH=$lib ldd "$np" | grep -q "$lib/libmpi.so.40" || { echo "FAIL: $np would not load $lib/libmpi.so.40"; exit 1; }
cd "$dir" || exit 1
run 2 "$np" -u 262144 -o np.out >log 2>&1 || { echo "FAIL: exit status $?"; tail -n 20 log; exit 1; }
lines=$(grep -c 'bytes.*times.*Mbps' log)
[ "$lines" -gt 60 ] && [ "$(wc -l <np.out)" -gt 60 ] || { echo "FAIL: $lines lines"; tail -n 20 log; exit 1; }
run 2 "$np" -i -u 20000 -o np2.out >log2 2>&1 || { echo "FAIL: integrity check, exit status $?"; tail -n 20 log2; exit 1; }
! grep -i -e 'integrity check failed' -e error log2 || exit 1
grep -m1 'bytes.*times' log
tail -n 1 log
