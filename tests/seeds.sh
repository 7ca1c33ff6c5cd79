#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every element of the documents that this project implements is named by a test. tests/seeds.txt
# lists them: the document, and the word that has to occur in the code of a test, comments aside. For
# a rule, which has no name of its own, the word is that of the test.

set -u
export LC_ALL=C
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$SRCDIR/tests" || exit 99

# The lists of tests/abi name everything and test little; its tests in C are tests.
find . \( -name '*.[ch]' ! -path './abi/*' -o -path './abi/*_test.c' \) -print0 |
    xargs -0 sed -zE 's,/\*([^*]|\*+[^*/])*\*+/, ,g' >"$dir/code"
find . -path ./abi -prune -o -name '*.sh' ! -name seeds.sh -print0 |
    xargs -0 sed -E 's/(^|[[:space:]])#.*//' >>"$dir/code"
grep -aoE '[A-Za-z_][A-Za-z0-9_]*' "$dir/code" | sort -u >"$dir/words"
[ "$(wc -l <"$dir/words")" -gt 1000 ] || { echo 'FAILED: cannot read the tests' && exit 1; }

count=0
missing=0
while read -r seed name test rest; do
    case $seed in '' | '#'*) continue ;; esac
    count=$((count + 1))
    if [ -z "$name" ] || [ -n "$rest" ]; then
        echo "FAILED: not a row: $seed $name $test $rest"
    elif ! grep -qxF -- "${test:-$name}" "$dir/words"; then
        echo "FAILED: document $seed: no test names $name${test:+ (wanted: $test)}"
    else
        continue
    fi
    missing=$((missing + 1))
done <seeds.txt

echo "$count elements, $missing without a test"
[ $count -gt 0 ] && [ $missing = 0 ]
