#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The API tests and the examples are programs as users write them: each compiles with the headers of
# the installed rdma-core alone, without ours.

set -u
cc=${CC:-cc}
flags='-std=gnu11 -D_GNU_SOURCE -DCMOCKA_DISABLE_DEPRECATION_WARNINGS -Wall -Wextra -Werror -fsyntax-only'
failures=0
count=0

for header in infiniband/verbs.h rdma/rdma_cma.h; do
    if ! echo "#include <$header>" | $cc -E -x c - >/dev/null 2>&1; then
        echo "SKIP: <$header> is not installed"
        exit 77
    fi
done

for source in "$SRCDIR"/tests/api/*.c "$SRCDIR"/examples/*.c; do
    # What stock headers, or those of older releases, have not.
    ! grep -qE '#include (<(anywarp/|iba/|linux/module)|"(api/)?(uverbs|al|kverbs)_kit)|\<repoll_' "$source" || continue
    # Our folders stay out: what is found is found as a user's compiler finds it.
    if ! $cc $flags -I"$SRCDIR/tests" -I"$SRCDIR/tests/api" "$source"; then
        echo "FAILED: ${source##*/}"
        failures=$((failures + 1))
    fi
    count=$((count + 1))
done

echo "$count sources"
[ $count -gt 0 ] && [ $failures = 0 ]
