#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An installed anywarp, in a folder of its own: the examples build there with the line that each has
# in its first comment, run without the launcher, and nothing stays after "make uninstall".

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need pkg-config make

# Installing links libraries anew, in the build tree where other tests are using them; so this one
# has a build tree of its own, and one for all sanitizers is enough.
! "$ANYWARP" env | grep -q LD_PRELOAD || skip 'the plain build installs the same files'
prefix=$dir/prefix
mkdir "$dir/build"
cd "$dir/build" || exit 99
quietly()
{
    MAKEFLAGS='' "$@" >"$dir/log" 2>&1 || {
        failed "$*" log
        exit 1
    }
}
quietly "$SRCDIR/configure" --prefix="$prefix" --libdir="$prefix/lib64/odd" CC="${CC:-cc}" CFLAGS=-O0
quietly make -j2

# As README says, with that folder.
sed -n '/^    \$ make -C build install/,/^$/s/^    \$ //p' "$SRCDIR/README.md" >"$dir/install"
grep -q pkg-config "$dir/install" || failed "README does not say how to install"
sed -i "s|/usr/local/lib/|$prefix/lib64/odd/|" "$dir/install"
cp "$SRCDIR/examples/endpoint.c" "$dir/app.c"
cd "$dir" || exit 99
command -v man >/dev/null || sed -i '/^man /d' "$dir/install"
quietly bash -e "$dir/install"
ldd app | grep -q "$prefix/lib64/odd/anywarp/librdmacm" || failed "app has other libraries"

expect_file()
{
    [ -e "$prefix/$1" ] || failed "not installed: $1"
}
for file in bin/anywarp bin/rdma_sum_client lib64/odd/anywarp/libibverbs.so.1 \
    lib64/odd/anywarp/librdmacm.so.1 lib64/odd/anywarp/pkgconfig/librdmacm.pc \
    include/anywarp/rdma/rdma_cma.h lib64/odd/anywarp/bin/rping \
    share/doc/anywarp/examples/README.md share/man/man1/rping.1anywarp \
    share/man/man7/anywarp-examples.7; do
    expect_file $file
done
[ ! -e "$prefix/bin/rping" ] || failed "rping is in the way of the system's"

# From here on as somebody who has the installed files only.
export PKG_CONFIG_PATH=$prefix/lib64/odd/anywarp/pkgconfig
expect_version()
{
    [ "$(pkg-config --modversion "$1")" = "$2" ] ||
        failed "version of $1: $(pkg-config --modversion "$1"), wanted $2"
}
expect_version libibverbs "$(PKG_CONFIG_PATH='' pkg-config --modversion libibverbs)"
expect_version librdmacm 1.5.65.0
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
unset LD_LIBRARY_PATH
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
[ "$(grep -c "$prefix/lib64/odd/anywarp" ldd)" = 2 ] || failed 'ping has other libraries' ldd
run_pair ./ping -- ./ping
run_pair ./counter -- ./counter
rping=$prefix/lib64/odd/anywarp/bin/rping
run_pair "$rping" -s -C 5 -- "$rping" -c -C 5 -a

cd "$dir/build" || exit 99
quietly make uninstall
left=$(find "$prefix" ! -type d -o -name 'anywarp*')
[ -z "$left" ] || failed "left by uninstall: $left"

finish
