#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples of section 7 run as they stand there: commands behind a $, one script a page; of what
# they print, the lines below them.

set -u
if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi
ip link set lo up || exit 99
# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_devinfo rping
PATH=${ANYWARP%/*}:$BUILDDIR/examples:$PATH

for page in "$SRCDIR"/man/*.7; do
    name=${page##*/}
    PYTHONPATH=$SRCDIR/tests/man python3 - "$page" >"$dir/lines" <<'END' || exit 99
import sys
from page import Page
for block in Page(sys.argv[1]).examples():
    print(block, end="")
END
    sed -n 's/^\$ //p; s/^> //p' "$dir/lines" >"$dir/script"
    [ -s "$dir/script" ] || failed "$name: no commands"
    mkdir -p "$dir/work"
    (cd "$dir/work" && exec timeout 60 bash -eu "$dir/script") >"$dir/out" 2>&1 &
    pid=$!
    wait $pid || failed "$name: exit status $?" out
    kill -KILL -- -$pid 2>/dev/null # servers that were left behind
    while IFS= read -r line; do
        grep -qF -- "$line" "$dir/out" || failed "$name: does not print: $line" out
    done < <(grep -v '^[$>] ' "$dir/lines" | grep .)
done

finish
