#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The pages where "make install" puts them: man finds them, and "make uninstall" leaves none.

set -u
failures=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
command -v man >/dev/null || { echo "SKIP: man is not installed" && exit 77; }

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

build()
{
    env -u MAKEFLAGS -u MFLAGS make -s -C "$BUILDDIR" DESTDIR="$dir" "$@" >"$dir.log" 2>&1 ||
        fail "make $*: $(cat "$dir.log")"
    rm -f "$dir.log"
}

build install-data-local install-man install-pkgconfigDATA
pc=$(find "$dir" -name librdmacm.pc)
[ -n "$pc" ] || fail 'no librdmacm.pc'
functions=$dir$(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=mandir librdmacm)
[ -d "$functions" ] || fail "no $functions"

# In front of the system's, by name and by link.
for name in ibv_poll_cq ibv_wr_send rdma_reject; do
    found=$(MANPATH=$functions: man -w 3 $name)
    [[ $found = "$functions"/man3/*.3 ]] || fail "$name: $found"
done
[ -n "$(find "$dir" -path '*/man/man7/anywarp.7')" ] || fail 'no anywarp.7'

build uninstall-local uninstall-man uninstall-pkgconfigDATA
left=$(find "$dir" -type f)
[ -z "$left" ] || fail "left: $left"

[ $failures = 0 ]
