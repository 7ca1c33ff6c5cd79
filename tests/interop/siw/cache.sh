# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Where the guest is kept. A guest that another version of "build" made is not used.

siw_cache=${ANYWARP_SIW_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/anywarp/siw}

siw_stamp()
{
    cksum <"$SRCDIR/tests/interop/siw/build"
}

siw_cached()
{
    [ -f "$siw_cache/vmlinuz" ] && [ -f "$siw_cache/initramfs.gz" ] &&
        [ "$(cat "$siw_cache/stamp" 2>/dev/null)" = "$(siw_stamp)" ]
}
