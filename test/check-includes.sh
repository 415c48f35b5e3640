#!/bin/sh
# Layers are held by their includes: mpi/ takes from transport/ only the four headers that are its contract, and
# transport/ never sees MPI.
: "${top_srcdir:=$(dirname "$0")/..}"
cd "$top_srcdir" || exit 1
bad=$(grep -n '#include "transport/' mpi/*.[ch] | grep -v -e '"transport/transport.h"' -e '"transport/proxy.h"' \
    -e '"transport/boot.h"' -e '"transport/mem.h"'
grep -n -e '#include [<"]mpi' -e '#include [<"]mpi/' $(find transport -name '*.[ch]')
grep -n '#include "mpi/' $(find test -name '*.[ch]' | grep -v test/unit/))
[ -z "$bad" ] || { echo "includes across a layer:"; echo "$bad"; exit 1; }
[ "$(ls mpi/*.c | wc -l)" -gt 10 ] || { echo "found no sources to look at in $PWD"; exit 1; }
