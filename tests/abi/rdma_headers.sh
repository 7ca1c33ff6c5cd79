#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Our <rdma/...> headers against those of the installed librdmacm-dev: the same names, layouts,
# constants and types, in C and in C++.

set -u
export LC_ALL=C
ours=$SRCDIR/include
theirs=/usr/include
headers='rdma_cma.h rdma_verbs.h rsocket.h'
cc=${CC:-cc}
failures=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# facts NAME: what the headers of one side say; the include path is in the further arguments.
facts()
{
    local name=$1
    shift
    $cc -std=gnu11 -D_GNU_SOURCE -w "$@" -o "$dir/$name" "$SRCDIR/tests/abi/rdma_headers.c" \
        >"$dir/$name.log" 2>&1 -Wl,--unresolved-symbols=ignore-all &&
        "$dir/$name" >"$dir/$name.facts"
}

# names FOLDER: functions, types, constants and macros that its rdma headers declare.
names()
{
    local h
    for h in $headers; do
        $cc -std=gnu11 -D_GNU_SOURCE -I"$1" -E "$1/rdma/$h" |
            awk -v file="$1/rdma/" '/^# [0-9]+ "/ { mine = index($3, "\"" file) == 1; next } mine' |
            grep -oE '\b(rdma|RDMA)_[A-Za-z0-9_]+\b|\br[a-z]+[[:space:]]*\(' | tr -d ' ('
        sed -nE 's/^[[:space:]]*#[[:space:]]*define[[:space:]]+([A-Za-z0-9_]+).*/\1/p' "$1/rdma/$h"
    done | grep -vE '^_?R[A-Z_]*_H_?$|_$|^(return|ret)$' | sort -u
}

# With every warning a program may ask for, alone, in C and in C++, with both rules for errors.
for h in "$ours"/rdma/*.h; do
    echo "#include <rdma/${h##*/}>" >"$dir/alone.c"
    cp "$dir/alone.c" "$dir/alone.cc"
    for errors in LINUX AIX; do
        $cc -std=gnu11 -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Werror -I"$ours" \
            -DRDMA_${errors}_ERRORS -fsyntax-only "$dir/alone.c" ||
            fail "$h does not compile alone, errors of $errors"
        command -v "${CXX:-c++}" >/dev/null || continue
        ${CXX:-c++} -Wall -Wextra -Wpedantic -Werror -I"$ours" -DRDMA_${errors}_ERRORS \
            -fsyntax-only "$dir/alone.cc" || fail "$h does not compile in C++, errors of $errors"
    done
done

facts ours -I"$ours" || fail "the list does not compile with our headers: $(cat "$dir/ours.log")"
grep -E ' 0$' "$dir/ours.facts" | grep -E '^(rdma|r)[a-z_]* 0$' &&
    fail "functions above have another type"

if [ ! -f $theirs/rdma/rdma_cma.h ]; then
    echo "librdmacm-dev is not installed: no comparison"
    [ $failures = 0 ] && exit 77
    exit 1
fi
facts theirs || fail "the list does not compile with theirs: $(cat "$dir/theirs.log")"
diff "$dir/theirs.facts" "$dir/ours.facts" || fail "< theirs and > ours differ"
names $theirs >"$dir/theirs.names"
names "$ours" >"$dir/ours.names"
[ "$(wc -l <"$dir/theirs.names")" -gt 100 ] || fail "found too few names in their headers"
missing=$(comm -23 "$dir/theirs.names" "$dir/ours.names")
[ -z "$missing" ] || fail "our headers lack:"$'\n'"$missing"

[ $failures = 0 ]
