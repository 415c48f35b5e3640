# common.sh - what everything that starts programs of ours shares; sourced, with top_srcdir set.

# PMIx keeps a few bytes of its own. Builds without AddressSanitizer do not look at it.
export LSAN_OPTIONS="suppressions=$(cd "$top_srcdir" && pwd)/test/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"

# Others may be at work in /dev/shm: their libraries' names are theirs.
shm() { ls /dev/shm 2>/dev/null | grep -v -e '^mpich' -e '^vader' -e '^sem\.' -e '^pmix' -e '^psm' -e '^ompi' -e '^open_mpi'; }
