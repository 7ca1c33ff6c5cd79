#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# With RDMA_AIX_ERRORS the rules of AIX are in force whichever of our headers a file includes, in any
# order, also behind <infiniband/verbs.h>; in C, and in C++ where there is a compiler for it.

set -u
failures=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
flags=(-DRDMA_AIX_ERRORS -Wall -Wextra -Wpedantic -Werror -I"$SRCDIR/include")
libs=("$BUILDDIR/.libs/librdmacm.so" "$BUILDDIR/.libs/libibverbs.so")
# What a sanitizer puts in is there when the launcher starts the program.
libs+=(-Wl,-rpath-link,"$BUILDDIR/.libs" -Wl,--unresolved-symbols=ignore-in-shared-libs)

# check FROM COMPILER...: the probe behind the headers that $dir/probe names
check()
{
    local what=$1
    shift
    if ! "$@" "${flags[@]}" -o "$dir/probe.out" "$dir/${what%% *}" "${libs[@]}" 2>"$dir/log"; then
        echo "FAILED: $what: does not compile"
    elif ! "$ANYWARP" run "$dir/probe.out" 2>"$dir/log"; then
        echo "FAILED: $what"
    else
        return
    fi
    cat "$dir/log"
    failures=$((failures + 1))
}

orders=(
    'rdma/verbs.h'
    'rdma/xrc.h'
    'rdma/rdma_cm.h'
    'rdma/rdma_cma.h'
    'rdma/rdma_verbs.h'
    'rdma/rsocket.h'
    'infiniband/verbs.h rdma/verbs.h'
    'rdma/verbs.h infiniband/verbs.h'
    'infiniband/verbs.h rdma/rdma_cma.h'
    'rdma/verbs.h rdma/rdma_cma.h'
    'rdma/rdma_cma.h rdma/verbs.h'
    'rdma/verbs.h rdma/rdma_cm.h rdma/rdma_verbs.h'
    'rdma/rdma_verbs.h rdma/xrc.h rdma/verbs.h'
)
for headers in "${orders[@]}"; do
    for header in $headers; do
        echo "#include <$header>"
    done >"$dir/probe.c"
    cat "$SRCDIR/tests/abi/aix_probe.c" >>"$dir/probe.c"
    cp "$dir/probe.c" "$dir/probe.cc"
    check "probe.c (C11): $headers" ${CC:-cc} -std=c11
    command -v "${CXX:-c++}" >/dev/null || continue
    for standard in c++11 c++17; do
        check "probe.cc ($standard): $headers" ${CXX:-c++} -std=$standard
    done
done

[ $failures = 0 ]
