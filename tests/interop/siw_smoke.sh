#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A few cases with the kernel's Soft-iWARP in a guest. Building the guest needs root and downloads:
# only where it is cached already, as ./check sees to, or where ANYWARP_SIW=1 asks for it.
# tests/interop/siw/matrix has all cases.

# shellcheck source=tests/interop/siw/cache.sh
. "$SRCDIR/tests/interop/siw/cache.sh"
if [ "${ANYWARP_SIW-}" != 1 ] && ! siw_cached; then
    echo "SKIP: no siw guest in $siw_cache; ./check builds it, or ANYWARP_SIW=1"
    exit 77
fi
exec bash "$SRCDIR/tests/interop/siw/matrix" \
    'like/client' 'rping/23/*' 'rping/65535/*' 'crc/on/client' 'ib_write_bw/65536/server' \
    'ib_read_lat/1000/client' 'reject/56/*' 'disconnect/by-server/*' 'killed/client/client' \
    'all/client-acts/*' 'wrong/read-key/by-client/*' 'unknown/write-imm/client' \
    'iser/io/crc-on/server'
