#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The door of --system-libraries: every call of libc that it takes, what it lets nobody see, and what
# it tells of addresses that come and go.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
door=$BUILDDIR/tests/apps/door
library=$BUILDDIR/.libs/libanywarp-uverbs-preload.so

start calls -e ANYWARP_UVERBS_TRACE="$dir/trace" --system-libraries "$door"
expect_status calls calls 60 0
start by_ioctl -e ANYWARP_UVERBS_IOCTL=on --system-libraries "$door"
expect_status 'by ioctl' by_ioctl 60 0

# What of the folder is not there is made again; nothing else is left in it, and nothing is made in
# one that others can write to.
mkdir -m 700 "$dir/run"
export XDG_RUNTIME_DIR=$dir/run
start fresh --system-libraries "$door"
start beside --system-libraries "$door"
expect_status 'a fresh folder' fresh 60 0
expect_status 'a fresh folder, by two' beside 60 0
rm "$dir"/run/anywarp/sys-*/class/infiniband_verbs/uverbs0/ibdev
start again --system-libraries "$door"
expect_status 'a folder with a gap' again 60 0
find "$dir/run" -name '.new-*' >"$dir/left"
[ ! -s "$dir/left" ] || failed 'files are left behind' left
rm -r "$dir/run/anywarp"
mkdir -m 777 "$dir/run/anywarp"
start open --system-libraries true
expect_status 'a folder of all' open 20 0
grep -q "anywarp: the devices cannot be described in $dir/run/anywarp: Operation not permitted" \
    "$dir/open.err" || failed 'does not say which folder is of all' open.err
doctor=$("$ANYWARP" doctor --system-libraries 2>&1)
grep -q "^FAIL  the devices cannot be described in $dir/run/anywarp:" <<<"$doctor" ||
    failed "the doctor does not say so: $doctor"
# One of another user is left to that one.
if [ "$(id -u)" = 0 ]; then
    chmod 700 "$dir/run/anywarp"
    chown nobody "$dir/run/anywarp"
    start others --system-libraries "$door"
    expect_status "a folder of another's" others 60 0
    [ -z "$(ls "$dir/run/anywarp")" ] || failed "files in a folder of another's"
fi
unset XDG_RUNTIME_DIR

start strange -e ANYWARP_UVERBS_IOCTL=yes --system-libraries true
expect_status 'a strange value' strange 20 0
grep -q '^anywarp: ANYWARP_UVERBS_IOCTL=yes is not understood (on, off): ignored$' "$dir/strange.err" ||
    failed 'a strange value is not told' strange.err

# Its names are those of libc, and the engine's are nobody's: the program has a libibverbs already.
if command -v nm >/dev/null; then
    sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' "$SRCDIR/src/preload/uverbs_preload.map" | sort >"$dir/wanted"
    nm -D --defined-only "$library" | awk '$2 ~ /[TWDBV]/ { print $3 }' | sed 's/@.*//' |
        grep -v '^__odr_asan\|^_*[ait]san\|^__sanitizer' | sort >"$dir/names"
    diff "$dir/wanted" "$dir/names" >"$dir/differ" || failed 'other names than those of libc' differ
    readelf -d "$library" | grep -E 'NEEDED.*(ibverbs|rdmacm)|SONAME.*lib(ibverbs|rdmacm)' >"$dir/needed" &&
        failed 'it asks for a libibverbs, or has a name' needed
fi

# An address that comes while the program runs is in the table, and goes again.
if unshare -rn true 2>/dev/null; then
    cat >"$dir/script" <<'END'
ip link set lo up
mkfifo "$1/go"
"$ANYWARP" run --system-libraries "$2" gids <"$1/go" >"$1/gids" &
exec 5>"$1/go"
# printed N: so many lines
printed() { for ((i = 0; i < 400; i++)); do [ "$(wc -l <"$1/gids")" -lt "$2" ] || return 0; sleep 0.05; done; return 1; }
printed "$1" 16 || exit 1
ip addr add 192.0.2.77/32 dev lo
echo >&5
printed "$1" 32 || exit 1
ip addr del 192.0.2.77/32 dev lo
echo >&5
printed "$1" 48 || exit 1
exec 5>&-
wait $!
END
    ANYWARP=$ANYWARP timeout 90 unshare -rn bash "$dir/script" "$dir" "$door" >"$dir/said" 2>&1 ||
        failed 'GIDs as sysfs has them' said
    for part in 1,16:0 17,32:1 33,48:0; do
        count=$(sed -n "${part%:*}p" "$dir/gids" | grep -c ':ffff:c000:024d$')
        [ "$count" = "${part#*:}" ] || failed "lines ${part%:*} have the address $count times" gids
    done
fi

finish
