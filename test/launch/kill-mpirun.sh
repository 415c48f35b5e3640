#!/bin/sh
# kill-mpirun.sh - a rank is killed at any moment, under mpirun.
. "$(dirname "$0")/common.sh"
need_prog
need_mpirun
launch=$mpirun
check "mpirun itself" error "" $mpirun -n 4 "$prog" orphan
. "$(dirname "$0")/kill.sh"
