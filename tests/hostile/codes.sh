#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tables of tests/hostile/README.md agree with the tests: those they name are there, and each
# Terminate code is in the tests that its row names and in no other, is in wire/error.h if that has
# it, and is among those that a peer sends.

set -euo pipefail
cd "$SRCDIR"

failed=0
wrong()
{
    echo "$*" >&2
    failed=1
}

table=tests/hostile/README.md
error_h=src/iwarp/wire/error.h

# "0/1/02 wrong_key_test": what the table says, and what the tests say. Tests of codes that are
# never sent stand in the third column.
named=$(awk -F'|' '/^\| [0-9]\/[0-9]\// { n = split($5, t, /[`, ]+/)
    for (i = 1; i <= n; i++) if (t[i] ~ /_test$/) print $2, t[i] }' $table | tr -s ' ' | sort)
found=$(grep -oE 'PEER_TERM\([0-9], [0-9], 0x[0-9a-f]{2}\)' tests/hostile/*_test.c |
    sed -E 's|.*/(.*)\.c:PEER_TERM\((.), (.), 0x(..)\)|\2/\3/\4 \1|' | sort -u)
diff <(sed 's/^ //' <<<"$named" | sort -u) - <<<"$found" ||
    wrong "$table (<) and the tests (>) disagree"

rows=$(sed -nE 's#^\| ([0-9]/[0-9]/[0-9a-f]{2}) .*#\1#p' $table)
known=$(grep -oE '[0-9], [0-9], 0x[0-9a-f]{2}, [A-Z_]+,' $error_h |
    sed -E 's#(.), (.), 0x(..),.*#\1/\2/\3#' | sort -u)
for code in $known; do
    grep -qx "$code" <<<"$rows" || wrong "$code of $error_h is not in $table"
done
for code in $rows; do
    grep -qE "\{${code:0:1}, ${code:2:1}, 0x${code:4}," tests/hostile/terminate_test.c ||
        wrong "terminate_test sends no $code"
done

for name in $(grep -oE '`[a-z_0-9]+_test`' $table | tr -d '`' | sort -u); do
    compgen -G "tests/*/$name.c" >/dev/null || wrong "$table names $name, which does not exist"
done
for file in tests/hostile/*_test.c; do
    name=${file##*/}
    grep -q "\`${name%.c}\`" $table || wrong "$table forgets $name"
done
[ "$(wc -w <<<"$rows")" -gt 30 ] || wrong "$table has few rows"
exit $failed
