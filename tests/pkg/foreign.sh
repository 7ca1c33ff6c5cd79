#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The rpm spec and the PKGBUILD: what "make dist" packs is built by rpmbuild and by makepkg of this
# Debian, and what is in the packages runs, laid over this system's /usr for the while. What they depend
# on has other names there, so that only who has such a system can tell whether those are right.
# usage: tests/pkg/foreign.sh BUILD-TREE [rpm | arch], one of them alone

SRCDIR=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=tests/pkg/lib.sh
. "$SRCDIR/tests/pkg/lib.sh"
[ $# -ge 1 ] || die "usage: tests/pkg/foreign.sh BUILD-TREE [rpm | arch]"
need rpmbuild rpm2cpio cpio makepkg pacman fakeroot bsdtar rping setpriv man
[ "$(id -u)" = 0 ] || skip 'only root can lay a folder over /usr'
mkdir "$dir/rpm" "$dir/fedora" "$dir/arch" "$dir/arch/packages" "$dir/archlinux"
no_test_variables

# over FOLDER: $over is what runs a command with FOLDER/usr over /usr.
over()
{
    # shellcheck disable=SC2016
    over=(unshare -m sh -c 'mount -t overlay -o lowerdir="$0/usr:/usr" overlay /usr && exec "$@"' "$1")
    "${over[@]}" true 2>"$dir/log" || skip "nothing can be laid over /usr here: $(cat "$dir/log")"
}

# runs FOLDER: the pages are there, the doctor is content, and stock rping runs.
runs()
{
    local what=${1##*/} port
    over "$1"
    [ "$("${over[@]}" anywarp --version)" = "anywarp $version" ] || failed "$what: another version"
    "${over[@]}" anywarp doctor rping >"$dir/doctor" 2>&1 || failed "$what: doctor" doctor
    "${over[@]}" man -w 1 anywarp >"$dir/page" 2>&1 || failed "$what: man 1 anywarp" page
    port=$(free_port)
    "${over[@]}" anywarp run rping -s -a 127.0.0.1 -p "$port" -C 5 >"$dir/server" 2>"$dir/server.err" &
    pids[server]=$!
    wait_listening "$port" "${pids[server]}" || failed "$what: no server" server
    "${over[@]}" anywarp run rping -c -a 127.0.0.1 -p "$port" -C 5 -v >"$dir/client" 2>"$dir/client.err" &
    pids[client]=$!
    expect_status "$what: rping" client 30 0 server
    expect_status "$what: rping" server 30 0 client
    grep -q 'ping data: rdma-ping-4' "$dir/client" || failed "$what: no pings" client
    "${over[@]}" anywarp run --rsocket true >"$dir/rsocket" 2>&1 || failed "$what: --rsocket" rsocket
}

mkdir "$dir/usr"
over "$dir" # asked before what takes minutes
unpacked "$(readlink -f "$1")" "$dir"
quietly tar -C "$dir" -I 'xz -0' -cf "$dir/$name.tar.xz" "$name"

build_rpm()
{
    local package packages
    quietly rpmbuild -bb --nodeps --define "_topdir $dir/rpm" --define "_sourcedir $dir" \
        --define 'debug_package %{nil}' "$SRCDIR/packaging/anywarp.spec"
    packages=("$dir"/rpm/RPMS/*/*.rpm)
    [ ${#packages[@]} = 2 ] || failed "not two rpms: ${packages[*]}"
    # Who asks for libibverbs.so.1 is not to get this one.
    rpm -qp --provides "${packages[@]}" >"$dir/provides"
    ! grep '^lib' "$dir/provides" || failed 'libraries of the system are provided'
    for package in "${packages[@]}"; do
        (cd "$dir/fedora" && rpm2cpio "$package" | cpio -idm --quiet) || failed "$package"
        [ "$package" != "${packages[0]}" ] || runs "$dir/fedora" # without what is for development
    done
    [ -e "$(echo "$dir"/fedora/usr/lib*/anywarp/pkgconfig/librdmacm.pc)" ] || failed 'rpm: no librdmacm.pc'
}

build_arch()
{
    local package
    cp "$SRCDIR/packaging/PKGBUILD" "$dir/$name.tar.xz" "$dir/arch"
    chown -R nobody "$dir/arch" # makepkg is nothing for root
    quietly setpriv --reuid nobody --clear-groups env -C "$dir/arch" HOME="$dir/arch" \
        PKGEXT=.pkg.tar BUILDDIR="$dir/arch" PKGDEST="$dir/arch/packages" makepkg --nodeps --noconfirm
    for package in "$dir"/arch/packages/anywarp-"$version"-*.pkg.tar; do
        bsdtar -C "$dir/archlinux" -xf "$package" usr || failed "$package"
    done
    runs "$dir/archlinux"
}

for kind in ${2-rpm arch}; do
    "build_$kind"
done
finish
