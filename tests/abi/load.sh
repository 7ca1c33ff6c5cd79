#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs find everything they need in our libraries: each symbol, in its version.

set -u
libraries=$BUILDDIR/.libs
failures=0
loaded=0

programs=(
    # rdmacm-utils
    cmtime mckey rcopy rdma_client rdma_server rdma_xclient rdma_xserver riostream rping rstream
    ucmatose udaddy udpong
    # ibverbs-utils
    ibv_asyncwatch ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong
    ibv_ud_pingpong ibv_xsrq_pingpong
    # perftest
    ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw
    ib_write_lat raw_ethernet_bw raw_ethernet_burst_lat raw_ethernet_fs_rate raw_ethernet_lat
)

for name in "${programs[@]}"; do
    program=$(type -P "$name")
    [ -n "$program" ] || continue
    output=$(LD_LIBRARY_PATH=$libraries ldd -r "$program" 2>&1)
    # A sanitizer's own functions come with its runtime, which is preloaded.
    missing=$(grep -E 'undefined symbol|symbol lookup|not found|not defined' <<<"$output" |
        grep -vE '__(asan|lsan|tsan|ubsan|sanitizer)_')
    if ! grep -qF "$libraries/libibverbs.so.1" <<<"$output"; then
        missing+=$'\n'"does not load $libraries/libibverbs.so.1"
    fi
    if [ -n "$missing" ]; then
        printf 'FAILED: %s\n%s\n' "$program" "$missing"
        failures=$((failures + 1))
    fi
    loaded=$((loaded + 1))
done

if [ $loaded = 0 ]; then
    echo 'none of rdmacm-utils, ibverbs-utils, perftest is installed'
    exit 77
fi
echo "$loaded programs"
[ $failures = 0 ]
