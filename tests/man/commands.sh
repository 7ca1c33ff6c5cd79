#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples of sections 1 and 7 run as they stand there, one script a page.

# shellcheck source=tests/apps/commands.sh
. "$SRCDIR/tests/apps/commands.sh"
private_network "$@"
# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_devinfo rping tshark
no_test_variables
own=$BUILDDIR/src/tools/bin
shown=$PATH:${ANYWARP%/*}:$BUILDDIR/examples

export HOME=$dir/home
mkdir -p "$dir/home" "$dir/work"
cp "$(command -v rping)" "$dir/work/my-program"

for page in "$SRCDIR"/man/*.1 "$SRCDIR"/man/*.1anywarp "$SRCDIR"/man/*.7; do
    name=${page##*/}
    [ -n "$(grep -x '\.SH EXAMPLE' "$page")" ] || continue
    PYTHONPATH=$SRCDIR/tests/man python3 - "$page" >"$dir/lines" <<'END' || exit 99
import sys
from page import Page
for block in Page(sys.argv[1]).examples():
    print(block, end="")
END
    # Debian's curl and the sanitizers of gcc 12 do not start together.
    [ "$name" != rsocket.7 ] || ! "$ANYWARP" env | grep -q san.so || continue
    # What stands in section 1anywarp is ours, not the system's of the same name.
    case $name in
    *.1anywarp) PATH=$own:$shown ;;
    *) PATH=$shown ;;
    esac
    play "$name" "$dir/lines" -eu
done

finish
