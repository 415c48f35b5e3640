#!/bin/sh
# Every source is in a makefile: one that is forgotten would be missing from the release, or a test would never run.
: "${top_srcdir:=$(dirname "$0")/..}"
cd "$top_srcdir" || exit 1
missing=
for file in $(find mpi transport cuda examples test -name '*.[ch]' -o -path ./_build -prune -o \
    -path 'test/*' -name '*.sh'); do
    name=${file%.c}
    grep -qw -e "$file" -e "$name" mpi/local.mk transport/local.mk cuda/local.mk test/local.mk examples/local.mk ||
        missing="$missing $file"
done
[ -z "$missing" ] || { echo "in no makefile:$missing"; exit 1; }
