#!/bin/sh
# kill-srun.sh - a rank is killed at any moment, under srun.
. "$(dirname "$0")/common.sh"
need_prog
need_slurm
launch="$srun --mpi=pmix"
. "$(dirname "$0")/kill.sh"
