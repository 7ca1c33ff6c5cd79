#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# gloo (libgloo-dev), whose ibverbs transport connects by GID and number: 2 and 4 ranks, on both kinds
# of device.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need "${CXX:-c++}"
[ -e /usr/include/gloo/transport/ibverbs/device.h ] || skip 'libgloo-dev is not installed'
${CXX:-c++} -O2 -o "$dir/rank" "$SRCDIR/tests/apps/gloo.cc" -lgloo -libverbs 2>"$dir/build.err" ||
    { failed 'gloo.cc does not build' build && finish; }

export ANYWARP_DEVICES='anywarp0=iwarp: anyroce0=roce:'

# ranks COUNT DEVICE GID-INDEX
ranks()
{
    local rank others=()
    rm -rf "$dir/store"
    mkdir "$dir/store"
    for ((rank = 0; rank < $1; rank++)); do
        start "rank$rank" "$dir/rank" "$rank" "$1" "$dir/store" "$2" "$3"
        others+=("rank$rank")
    done
    for ((rank = 0; rank < $1; rank++)); do
        expect_status "$1 ranks on $2" "rank$rank" 120 0 "${others[@]}"
        grep -qx 'all elements are right' "$dir/rank$rank" || failed "$1 ranks on $2" "rank$rank"
    done
}

ranks 2 anywarp0 1
ranks 2 anyroce0 0
ranks 4 anyroce0 0
finish
