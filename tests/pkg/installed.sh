#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An ordinary user installs what "make dist" packs into a home, as README says it, and builds against
# that; the examples build there with the line that each has in its first comment, run without the
# launcher, and nothing stays after "make uninstall".
# usage: tests/pkg/installed.sh BUILD-TREE

SRCDIR=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=tests/pkg/lib.sh
. "$SRCDIR/tests/pkg/lib.sh"
[ $# = 1 ] || die "usage: tests/pkg/installed.sh BUILD-TREE"
need pkg-config make autoreconf man setpriv
home=$dir/home
prefix=$home/.local
mkdir "$home"
unpacked "$(readlink -f "$1")" "$home"
user=(env -C "$home/$name" HOME="$home")
if [ "$(id -u)" = 0 ]; then
    chown -R nobody:nogroup "$home"
    user=(setpriv --reuid nobody --regid nogroup --clear-groups "${user[@]}")
fi

# commands FIRST: of the block of README that begins so.
commands()
{
    sed -n "/^    \\$ $1/,/^\$/s/^    \\$ //p" "$SRCDIR/README.md"
}
commands 'autoreconf -fi' >"$dir/install"
commands 'make -C build install' >"$dir/use"
[ "$(tail -n 1 "$dir/install")" = 'make uninstall' ] || failed 'README does not say how to uninstall'
grep -q pkg-config "$dir/use" || failed 'README does not say how to build against it'
sed -i '$d' "$dir/install"
sed -i "1d; s|/usr/local/|$prefix/|" "$dir/use"

quietly "${user[@]}" bash -e "$dir/install"
grep -q anywarp0 "$dir/log" || failed 'anywarp devices: no device' log
cp "$SRCDIR/examples/endpoint.c" "$home/$name/app.c"
# From another folder than that of the sources, man finds what is installed.
quietly "${user[@]}" bash -ec '. "$1"; cd /; man -w 1 anywarp; man -w 3 ibv_poll_cq; man -w 7 anywarp' - "$dir/use"
[ "$(tail -n 3 "$dir/log" | grep -c "^$prefix/share/")" = 3 ] || failed 'man finds other pages' log
ldd "$home/$name/app" | grep -q "$prefix/lib/anywarp/librdmacm" || failed 'app has other libraries'

expect_file()
{
    [ -e "$prefix/$1" ] || failed "not installed: $1"
}
for file in bin/anywarp bin/rdma_sum_client lib/anywarp/libibverbs.so.1 \
    lib/anywarp/librdmacm.so.1 lib/anywarp/pkgconfig/librdmacm.pc \
    include/anywarp/rdma/rdma_cma.h lib/anywarp/bin/rping \
    share/doc/anywarp/examples/README.md share/man/man1/rping.1anywarp \
    share/man/man7/anywarp-examples.7; do
    expect_file $file
done
[ ! -e "$prefix/bin/rping" ] || failed "rping is in the way of the system's"

# From here on as somebody who has the installed files only.
export PKG_CONFIG_PATH=$prefix/lib/anywarp/pkgconfig
expect_version()
{
    [ "$(pkg-config --modversion "$1")" = "$2" ] ||
        failed "version of $1: $(pkg-config --modversion "$1"), wanted $2"
}
expect_version libibverbs "$(PKG_CONFIG_PATH='' pkg-config --modversion libibverbs)"
expect_version librdmacm 1.5.65.0
for pc in libibverbs librdmacm; do
    [ "$(pkg-config --variable=bindir $pc)" = "$prefix/bin" ] || failed "$pc: another bindir"
    [ "$(pkg-config --variable=manpath $pc)" = "$prefix/share/anywarp/man:$prefix/share/man" ] ||
        failed "$pc: another manpath"
done
cp "$prefix"/share/doc/anywarp/examples/*.[ch] "$dir"
cd "$dir" || exit 99
built=0
for source in "$SRCDIR"/examples/*.c; do
    source=${source##*/}
    [ -e "$source" ] || failed "$source is not installed"
    [ "$source" != common.c ] || continue
    command=$(sed -n 's/^ \*     cc /${CC:-cc} -Wall -Wextra -Werror /p' "$source")
    case $command in
    *" $source "*) ;;
    *) failed "$source does not say how it is compiled" ;;
    esac
    eval "$command" >cc 2>&1 || failed "$command" cc
    built=$((built + 1))
done
[ $built -gt 10 ] || failed "only $built examples"

# run_pair SERVER -- CLIENT, without the launcher
ANYWARP=$dir/direct
printf '#!/bin/sh\nshift\nexec "$@"\n' >"$ANYWARP"
chmod +x "$ANYWARP"
run_pair()
{
    local server=()
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    start_server server "$port" "${server[@]}" -p "$port"
    start client "${@:1:1}" -p "$port" "${@:2}" 127.0.0.1
    expect_status "$*" client 20 0 server
    expect_status "${server[*]}" server 20 0 client
}
port=$(free_port)
ldd ./ping >ldd 2>&1
[ "$(grep -c "$prefix/lib/anywarp" ldd)" = 2 ] || failed 'ping has other libraries' ldd
run_pair ./ping -- ./ping
run_pair ./counter -- ./counter
rping=$prefix/lib/anywarp/bin/rping
run_pair "$rping" -s -C 5 -- "$rping" -c -C 5 -a

quietly "${user[@]}" make -C build/home uninstall
left=$(find "$prefix" ! -type d -o -name 'anywarp*')
[ -z "$left" ] || failed "left by uninstall: $left"

finish
