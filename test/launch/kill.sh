# kill.sh - sourced by kill-*.sh with $launch set: a rank is killed at any moment; the job has to end with an error,
# within seconds, and leave nothing. Moments are counted in microseconds of the victim's own time.
check "in the way up, at once" error "" $launch -n 4 "$prog" init 2 0
for usec in 300 1800 3000 6000 9000 12000 16000 20000 30000 50000; do
    check "in the way up, $usec us" error "" $launch -n 4 "$prog" init $((usec / 100 % 4)) $usec
done
for usec in 100 5000 200000; do
    check "in the middle of talk, $usec us" error "" $launch -n 4 "$prog" talk $((usec / 100 % 4)) $usec
done
for usec in 1000 20000 150000; do
    check "amid long messages, $usec us" error "" $launch -n 4 "$prog" bulk $((usec / 1000 % 4)) $usec
    check "amid partitions, $usec us" error "" $launch -n 4 "$prog" part $((usec / 1000 % 4)) $usec
done
check "while all others wait for it" error "" $launch -n 4 "$prog" wait 0 50000
check "rank 0, while the other waits for it" error "" $launch -n 2 "$prog" wait 0 1000
check "before MPI_Finalize, where the others are" error "" $launch -n 4 "$prog" final 1 0
for usec in 20 50 100 200 400; do # it may have got through; the job ends all the same
    check "in MPI_Finalize, $usec us" any "" $launch -n 4 "$prog" final 3 $usec
done
finish
