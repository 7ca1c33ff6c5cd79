#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The libraries and the command use no function that glibc has later than 2.28, so that the bundle runs
# there. In this build they may be bound to newer versions of old ones.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need nm
[ "$(getconf GNU_LIBC_VERSION 2>/dev/null)" ] || skip 'the C library is not glibc'

# Moved to libc.so.6 from libraries beside it, or an inline before; but not what pthreads got later.
old='(_*pthread_[a-z_]*|sem_[a-z]*|dl(open|close|error|v?sym|addr1?)|_*libc_start_main|[lf]?stat(at)?(64)?'
old+='|__isoc23_[a-z]*|fcntl64)$'
later='clock(wait|lock|rdlock|wrlock|join)'

count=0
for file in "$BUILDDIR"/.libs/libibverbs.so.1 "$BUILDDIR"/.libs/librdmacm.so.1 "$ANYWARP" \
    "$BUILDDIR"/src/tools/bin/.libs/*; do
    nm -D --undefined-only "$file" >"$dir/names" 2>"$dir/names.err" ||
        { failed "nm $file" names && continue; }
    count=$((count + $(grep -c '@GLIBC_' "$dir/names")))
    sed -nE 's/.* ([^ @]+)@+GLIBC_([0-9]+)\.([0-9]+).*/\2 \3 \1/p' "$dir/names" |
        awk '$1 > 2 || $2 > 28 { print $3 }' | grep -P "$later|^(?!$old)" >"$dir/newer" &&
        failed "${file##*/} uses what glibc 2.28 does not have" newer
done
[ $count -gt 100 ] || failed "only $count names"
finish
