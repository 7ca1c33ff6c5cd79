#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of other releases find the op slots of a context: the struct has grown, and will grow, at
# its head, before the part that they were built with.

set -u
cc=${CC:-cc}
failures=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

header=$(echo '#include <infiniband/verbs.h>' | $cc -M -x c - | tr ' ' '\n' |
    grep '/infiniband/verbs\.h$')
[ -f "$header" ] || { echo "<infiniband/verbs.h> is not found" && exit 99; }

# as NAME SED: the installed header, changed.
as()
{
    mkdir -p "$dir/$1/infiniband"
    sed "$2" "$header" >"$dir/$1/infiniband/verbs.h"
}

slots='/^struct verbs_context {/,/^};/'
as installed ''
as older "$slots { /grows up/,/(\\*query_port)/ { /grows up/! { /(\\*query_port)/! d; }; }; }"
as later "$slots s/.*grows up.*/&\\n\\tint (*of_a_later_release)(void);\\n\\tvoid (*and_another)(void);/"
cmp -s "$header" "$dir/later/infiniband/verbs.h" && { echo 'the later header is the old one'; exit 99; }

for name in installed older later; do
    define=
    [ $name = later ] && define=-DLATER
    # shellcheck disable=SC2086 # none, or one word each
    if ! $cc -std=gnu11 -D_GNU_SOURCE $define -I"$dir/$name" -o "$dir/program" \
        "$SRCDIR/tests/abi/context.c" -L"$BUILDDIR/.libs" -libverbs \
        -Wl,--allow-shlib-undefined >"$dir/said" 2>&1 ||
        ! "$ANYWARP" run "$dir/program" >"$dir/said" 2>&1; then
        printf 'FAILED: %s\n%s\n' "$name" "$(cat "$dir/said")"
        failures=$((failures + 1))
    fi
done

[ $failures = 0 ]
