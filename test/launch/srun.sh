#!/bin/sh
# srun.sh - starting, ending and misuse under Slurm's srun, on a Slurm of our own.
. "$(dirname "$0")/common.sh"
need_prog
need_slurm

check "two ranks" 0 "hello 1 of 2" $srun --mpi=pmix -n 2 "$prog" hello
check "one rank" 0 "hello 0 of 1" $srun --mpi=pmix -n 1 "$prog" hello
check "sixteen ranks, more than cores" 0 "hello 15 of 16" $srun --mpi=pmix -n 16 "$prog" hello
check "--mpi=pmix is missing" error "srun --mpi=pmix" $srun --mpi=none -n 2 "$prog" hello
check "one task needs no PMIx" 0 "hello 0 of 1" $srun --mpi=none -n 1 "$prog" hello
check "MPI_Abort, its code" 7 "MPI_Abort" $srun --mpi=pmix -n 4 "$prog" abort 7
check "a call before MPI_Init" error "MPI_Comm_rank was called before MPI_Init" $srun --mpi=pmix -n 2 "$prog" before
check "a call after MPI_Finalize" error "MPI_Comm_rank was called after MPI_Finalize" $srun --mpi=pmix -n 2 "$prog" after
check "MPI_Init twice" error "initialised already" $srun --mpi=pmix -n 2 "$prog" twice
finish
