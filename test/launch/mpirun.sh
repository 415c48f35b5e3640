#!/bin/sh
# mpirun.sh - starting, ending and misuse under Open MPI's mpirun.
. "$(dirname "$0")/common.sh"
need_prog
need_mpirun

check "two ranks" 0 "hello 1 of 2" $mpirun -n 2 "$prog" hello
check "one rank" 0 "hello 0 of 1" $mpirun -n 1 "$prog" hello
check "sixteen ranks, more than cores" 0 "hello 15 of 16" $mpirun -n 16 "$prog" hello
check "two programs in one job" 0 "hello 2 of 3" $mpirun -n 2 "$prog" hello : -n 1 "$prog" hello
check "MPI_Abort, its code" 7 "MPI_Abort" $mpirun -n 4 "$prog" abort 7
check "MPI_Abort of one rank" 9 "MPI_Abort" $mpirun -n 1 "$prog" abort 9
check "MPI_Abort, a code with no low byte" 1 "code 256" $mpirun -n 2 "$prog" abort 256
check "a call before MPI_Init" error "MPI_Comm_rank was called before MPI_Init" $mpirun -n 2 "$prog" before
check "a call after MPI_Finalize" error "MPI_Comm_rank was called after MPI_Finalize" $mpirun -n 2 "$prog" after
check "MPI_Init twice" error "initialised already" $mpirun -n 2 "$prog" twice
check "MPI_Init after MPI_Finalize" error "MPI_Init was called a second time" $mpirun -n 2 "$prog" again
check "a bad setting" error "DENIZEN_CHUNK='many' is not a whole number" \
    $mpirun -x DENIZEN_CHUNK=many -n 2 "$prog" hello
check "an unknown setting" 0 "DENIZEN_NO_SUCH" $mpirun -x DENIZEN_NO_SUCH=1 -n 3 "$prog" hello
[ "$(grep -c DENIZEN_NO_SUCH "$out")" = 1 ] || fail "an unknown setting is warned of more than once"
finish
