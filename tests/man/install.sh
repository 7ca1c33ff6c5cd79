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

build install-data-local install-man install-dist_apiman7DATA install-pkgconfigDATA
pc=$(find "$dir" -name librdmacm.pc)
[ -n "$pc" ] || fail 'no librdmacm.pc'
functions=$dir$(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=mandir librdmacm)
[ -d "$functions" ] || fail "no $functions"

# In front of the system's, by name and by link.
for name in ibv_poll_cq ibv_wr_send rdma_reject; do
    found=$(MANPATH=$functions: man -w 3 $name)
    [[ $found = "$functions"/man3/*.3 ]] || fail "$name: $found"
done
both=$(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=manpath librdmacm)
both=$dir${both%%:*}:$dir${both#*:}
for page in 1:anywarp 3:rdma_connect 7:anywarp-sockets 7:rsocket; do
    found=$(MANPATH=$both: man -w "${page%:*}" "${page#*:}")
    [[ $found = "$dir"/*/"${page#*:}.${page%:*}" ]] || fail "$page: $found"
done

build uninstall-local uninstall-man uninstall-pkgconfigDATA
left=$(find "$dir" -type f)
[ -z "$left" ] || fail "left: $left"

[ $failures = 0 ]
