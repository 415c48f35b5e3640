#!/bin/bash
# The README's table of settings is the library's own, row by row.
: "${top_srcdir:=$(dirname "$0")/..}" "${top_builddir:=.}"
for name in $(env | sed -n 's/^\(DENIZEN_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
rows() { grep '^| DENIZEN_' | sed 's/  *|/ |/g'; }
diff <(rows <"$top_srcdir/README.md") <("$top_builddir/denizen-info" --settings | rows) &&
    [ "$(rows <"$top_srcdir/README.md" | wc -l)" -gt 5 ]
