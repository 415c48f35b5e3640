#!/bin/bash
# The library against Open MPI's, which it stands in for: object sizes, names, weak twins, soname, and a program that was
# built with Open MPI's own compiler.
: "${top_srcdir:=$(dirname "$0")/..}" "${top_builddir:=.}" "${PEER_MPICC:=mpicc.openmpi}"
ours=$(ls "$top_builddir"/mpi/.libs/libmpi.so.40 2>/dev/null) || { echo "libmpi.so.40 is not built"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

symbols() { readelf -W --dyn-syms "$1" | awk '$1 ~ /^[0-9]+:/ && $7 != "UND" && $8 != "" {sub(/@.*/, "", $8); print $8, $4, $5, $3}' | sort -u; }
symbols "$ours" >"$dir/ours"

readelf -d "$ours" | grep -q 'SONAME.*\[libmpi.so.40\]' || fail "soname is not libmpi.so.40"
! readelf -d "$ours" | grep -q SYMBOLIC || fail "linked with -Bsymbolic: executables' copies of objects would not be seen"
! readelf -V "$ours" | grep -q "version definition" || fail "symbols are versioned: Open MPI's are not"
stray=$(awk '{print $1}' "$dir/ours" | grep -v -E '^(P?MPIX?_|OMPI_C_|ompi_(mpi_|request_null|message_))' | grep -v -e '^_' -e '^__')
[ -z "$stray" ] || fail "exported beyond the ABI:" $stray

# sizes of the predefined objects, by class, as Open MPI 4.1 and 5.0 have them
awk '$2 == "OBJECT" {print $1, $4}' "$dir/ours" >"$dir/objects"
while read -r size names; do
    for name in $names; do
        got=$(awk -v n="$name" '$1 == n {print $2}' "$dir/objects")
        [ "$got" = "$size" ] || fail "$name has ${got:-no} bytes, not $size"
    done
done <<'END'
512 ompi_mpi_comm_world ompi_mpi_comm_self ompi_mpi_comm_null ompi_mpi_int ompi_mpi_datatype_null ompi_mpi_win_null
256 ompi_request_null ompi_message_null ompi_message_no_proc ompi_mpi_group_empty ompi_mpi_group_null ompi_mpi_info_null
2048 ompi_mpi_op_sum ompi_mpi_op_null
1024 ompi_mpi_errors_are_fatal ompi_mpi_errors_return ompi_mpi_errhandler_null
1536 ompi_mpi_file_null
END

# each MPI_ is a weak alias of its PMPI_
awk '$2 == "FUNC" && $1 ~ /^MPI_[A-Z][a-z]/ {print $1, $3}' "$dir/ours" >"$dir/calls"
[ "$(wc -l <"$dir/calls")" -gt 400 ] || fail "only $(wc -l <"$dir/calls") MPI_ calls"
while read -r name bind; do
    [ "$bind" = WEAK ] || fail "$name is $bind, not WEAK"
    grep -q "^P$name FUNC GLOBAL" "$dir/ours" || fail "P$name is missing"
done <"$dir/calls"

# what Open MPI's library has, installed or not: every call that its header declares
: "${OMPI_INCLUDE:=/usr/lib/$(uname -m)-linux-gnu/openmpi/include}"
grep -o 'P\?MPI_[A-Z][A-Za-z_0-9]*[a-z][A-Za-z_0-9]* *(' "$OMPI_INCLUDE/mpi.h" | tr -d ' (' | grep -v -e '_fn$' -e '_function$' |
    sort -u >"$dir/declared"
theirs=$($PEER_MPICC --showme:libdirs 2>/dev/null | tr ' ' '\n' | while read -r d; do ls "$d/libmpi.so.40" 2>/dev/null; done | head -1)
[ -n "$theirs" ] || theirs=$(ls /usr/lib/*/libmpi.so.40 2>/dev/null | head -1)
if [ -n "$theirs" ]; then
    symbols "$theirs" >"$dir/theirs"
    awk '$1 ~ /^(P?MPIX?_|OMPI_C_)/ || ($2 == "OBJECT" && $1 ~ /^(ompi_mpi_|ompi_request_null$|ompi_message_n)/ && ($4 >= 256)) \
        {print $1}' "$dir/theirs" | grep -v -e 'free_list$' -e MPI_CONVERSION_FN_NULL -e 'ompi_mpi_unavailable' >"$dir/wanted"
    while read -r name; do
        grep -q "^$name " "$dir/ours" || fail "$name, which Open MPI exports, is missing"
    done <"$dir/wanted"
    join <(awk '$2 == "OBJECT" {print $1, $4}' "$dir/theirs" | sort) <(sort "$dir/objects") | while read -r name a b; do
        [ "$a" = "$b" ] || echo "$name has $b bytes, Open MPI's has $a"
    done >"$dir/sizes"
    [ ! -s "$dir/sizes" ] || fail "$(cat "$dir/sizes")"
    echo "compared with $theirs: $(wc -l <"$dir/wanted") names"
else
    while read -r name; do
        grep -q "^$name " "$dir/ours" || fail "$name, which Open MPI's header declares, is missing"
    done <"$dir/declared"
    echo "Open MPI's library is not installed: compared with its header alone, $(wc -l <"$dir/declared") names"
fi

# a program built by Open MPI's compiler, its predefined objects copied into it
case ${SANITIZERS:-no} in no) ;; *) echo "a sanitized library does not run under a program that is not"; exit $((failures > 0)) ;; esac
cat >"$dir/p.c" <<'END'
#include <mpi.h>
#include <stdio.h>
MPI_Comm at_start = MPI_COMM_WORLD;
MPI_Datatype type_at_start = MPI_INT;
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int n, one = 1, sum = 0, rc;
    MPI_Comm dup;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &n);
    MPI_Comm_dup(at_start, &dup);
    MPI_Allreduce(&one, &sum, 1, type_at_start, MPI_SUM, dup);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Win_fence(0, MPI_WIN_NULL);
    MPI_Comm_size(dup, &n);
    MPI_Comm_free(&dup);
    printf("%s\nsum %d of %d, null %d, unsupported %d\n", version, sum, n, dup == MPI_COMM_NULL,
           rc == MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Finalize();
    return 0;
}
END
if $PEER_MPICC "$dir/p.c" -o "$dir/p" 2>"$dir/err"; then
    readelf -r "$dir/p" | grep -q R_X86_64_COPY.*ompi_mpi || [ "$(uname -m)" != x86_64 ] || echo "note: no COPY relocations here"
    text=$(LD_LIBRARY_PATH=$(dirname "$ours") "$dir/p" 2>&1)
    case $text in
    Denizen*"sum 1 of 1, null 1, unsupported 1") ;;
    *) fail "a program built with $PEER_MPICC says: $text" ;;
    esac
else
    echo "$PEER_MPICC does not compile here; its programs were not tried"
fi
exit $((failures > 0))
