#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The headers of the access layer: each compiles alone, in C and in C++, with every warning that a
# program may ask for, and says so where it meets the kernel's, which have the same names.

set -u
headers=$SRCDIR/include/al
failures=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

flags=(-D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Werror -I"$headers" -fsyntax-only)
for header in "$headers"/*/*.h; do
    name=${header#"$headers"/}
    echo "#include <$name>" >"$dir/alone.c"
    cp "$dir/alone.c" "$dir/alone.cc"
    ${CC:-cc} -std=c11 -Wstrict-prototypes "${flags[@]}" "$dir/alone.c" || fail "$name does not compile alone"
    command -v "${CXX:-c++}" >/dev/null || continue
    ${CXX:-c++} -std=c++11 "${flags[@]}" "$dir/alone.cc" || fail "$name does not compile in C++"
done

printf '#define IB_VERBS_H\n#include <iba/ib_al.h>\n' >"$dir/both.c"
${CC:-cc} "${flags[@]}" "$dir/both.c" 2>"$dir/said" && fail 'compiles beside <rdma/ib_verbs.h>'
grep -q 'the same names for other things' "$dir/said" || fail 'does not tell what it cannot be beside'

[ $failures = 0 ]
