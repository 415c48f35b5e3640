#!/bin/sh
# single.sh - without a launcher: one process where that is meant, an error where it is not.
. "$(dirname "$0")/common.sh"
need_prog

check "no launcher" 0 "hello 0 of 1" "$prog" hello
check "MPI_Abort, its code" 7 "MPI_Abort" "$prog" abort 7
check "a call before MPI_Init" error "MPI_Comm_rank was called before MPI_Init" "$prog" before
check "a call after MPI_Finalize" error "MPI_Comm_rank was called after MPI_Finalize" "$prog" after
check "MPI_Init twice" error "initialised already" "$prog" twice
check "MPI_Init after MPI_Finalize" error "MPI_Init was called a second time" "$prog" again
check "PMIx is named but not there" error "PMIX_NAMESPACE=gone is set" \
    env PMIX_NAMESPACE=gone PMIX_RANK=0 "$prog" hello
check "PMIx is named but not there, no rank either" error "PMIX_NAMESPACE=gone is set" \
    env PMIX_NAMESPACE=gone "$prog" hello
limit=10
check "PMIx does not answer" error "denizen: " env DENIZEN_BOOT_TIMEOUT=2 "$prog" deaf
limit=15
check "srun without PMIx" error "srun --mpi=pmix" env SLURM_STEP_ID=0 SLURM_NTASKS=4 "$prog" hello
check "a batch script is no step of several tasks" 0 "hello 0 of 1" \
    env SLURM_STEP_ID=4294967291 SLURM_NTASKS=4 "$prog" hello
check "a launcher that speaks PMI" error "mpirun" env PMI_SIZE=4 PMI_RANK=1 "$prog" hello
check "a setting that is no number" error "DENIZEN_EAGER='1x' is not a whole number" \
    env DENIZEN_EAGER=1x "$prog" hello
check "a setting out of range" error "DENIZEN_SLOT_RING='1000' is not a whole number from 4 to 64" \
    env DENIZEN_SLOT_RING=1000 "$prog" hello
check "no such transport" error "pigeon" env DENIZEN_TRANSPORT=pigeon "$prog" hello
check "no such fault" error "'post=0' is none of" env DENIZEN_FAULT=post=0 "$prog" hello
! grep -q DZ_HAVE_VERBS=1 "$top_builddir/Makefile" ||
    check "no such device" error "no such device" env DENIZEN_IB_DEVICE=none DENIZEN_TRANSPORT=verbs "$prog" hello
check "an unknown setting" 0 "DENIZEN_NO_SUCH" env DENIZEN_NO_SUCH=1 "$prog" hello
stats=$(mktemp)
check "counters" 0 "hello" env DENIZEN_STATS="$stats.%r" "$prog" hello
grep -q "^0 eager [0-9]" "$stats.0" || fail "no counters in $stats.0"
rm -f "$stats" "$stats.0"
finish
