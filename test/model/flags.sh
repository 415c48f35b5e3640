#!/bin/bash
# Checks the model of the flag protocol exhaustively, then that it can fail: each of four broken steps has to be found.
: "${top_srcdir:=$(dirname "$0")/../..}" "${CC:=cc}"
command -v spin >/dev/null || { echo "skipped: spin is not installed (Debian: spin)"; exit 77; }
model=$(cd "$top_srcdir" && pwd)/test/model/flags.pml
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

check() { # defines...: prints pan's summary; true when it found nothing and searched to the end
    spin -a "$@" "$model" >spin.log 2>&1 && ${CC%% *} -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -w -o pan pan.c >cc.log 2>&1 ||
        { cat spin.log cc.log; exit 1; }
    timeout 120 ./pan -m2000000 >pan.log 2>&1
    grep -q 'errors: 0' pan.log && ! grep -qi -e 'search not completed' -e 'max search depth too small' pan.log
}

failures=0
for depth in 1 2; do
    for way in -DCLAIMS -DRUNS; do
        if check -DDEPTH=$depth -DEPOCHS=3 $way; then
            echo "depth $depth $way: $(grep -o '[0-9.e+]* states, stored' pan.log), errors: 0"
        else
            echo "FAIL: depth $depth"
            tail -n 20 pan.log
            failures=1
        fi
    done
done
for broken in 1 2 3 4; do
    if check -DDEPTH=1 -DEPOCHS=2 -DBROKEN=$broken; then
        echo "FAIL: broken step $broken was not found"
        failures=1
    elif ! grep -q -e 'assertion violated' -e 'invalid end state' pan.log; then
        echo "FAIL: broken step $broken: spin did not finish"
        tail -n 5 pan.log
        failures=1
    else
        echo "broken step $broken: found ($(grep -o -e 'assertion violated' -e 'invalid end state' pan.log | head -1))"
    fi
done
exit $failures
