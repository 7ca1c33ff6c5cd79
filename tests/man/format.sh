#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# No page makes man, or mandoc where it is installed, complain.

set -u
failures=0
command -v man >/dev/null || { echo "SKIP: man is not installed" && exit 77; }

for page in "$SRCDIR"/man/*.[137]*; do
    said=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null |
        grep -v 'table text block will not fit on one page') # which has no end on a terminal
    # Pages may go without a date: git knows it.
    if command -v mandoc >/dev/null; then
        said+=$(mandoc -T lint -W warning "$page" | grep -v 'missing date')
    fi
    [ -z "$said" ] && continue
    printf 'FAILED: %s\n%s\n' "${page##*/}" "$said"
    failures=$((failures + 1))
done

[ $failures = 0 ]
