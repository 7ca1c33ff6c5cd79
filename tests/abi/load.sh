#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs, the drivers of adapters and pyverbs find everything they need in our libraries: each
# symbol, in its version.

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

# Drivers and modules of Python: what of these packages is linked with one of the pair.
linked()
{
    local package file
    for package in ibverbs-providers python3-pyverbs; do
        while read -r file; do
            [ -f "$file" ] && [[ $file == *.so* ]] || continue
            ! readelf -d "$file" 2>/dev/null | grep -qE 'NEEDED.*lib(ibverbs|rdmacm)\.' || echo "$file"
        done < <(dpkg -L "$package" 2>/dev/null)
    done
}

mapfile -t files < <(
    for name in "${programs[@]}"; do
        type -P "$name"
    done
    linked
)
for program in "${files[@]}"; do
    output=$(LD_LIBRARY_PATH=$libraries ldd -r "$program" 2>&1)
    # A sanitizer's own functions come with its runtime, which is preloaded; those of
    # Python are in the interpreter.
    missing=$(grep -E 'undefined symbol|symbol lookup|not found|not defined' <<<"$output" |
        grep -vE '__(asan|lsan|tsan|ubsan|sanitizer)_|[[:blank:]]_?Py')
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
    echo 'none of rdmacm-utils, ibverbs-utils, perftest, ibverbs-providers, python3-pyverbs is installed'
    exit 77
fi
echo "$loaded programs, drivers and modules"
[ $failures = 0 ]
