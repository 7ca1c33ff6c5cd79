#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian packages, from the tarball of "make dist" on: built, examined by lintian, installed in
# a fresh Debian in a folder, used there without privileges or network, removed without a trace.
# Needs root and the package mirror. For another RELEASE than this system's they are built in a folder,
# too. With a FOLDER, the packages are left there.
# usage: tests/pkg/chroot.sh BUILD-TREE [RELEASE [FOLDER]]

SRCDIR=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=tests/pkg/lib.sh
. "$SRCDIR/tests/pkg/lib.sh"
# shellcheck source=tests/distro/lib.sh
. "$SRCDIR/tests/distro/lib.sh"
[ $# -ge 1 ] || die "usage: tests/pkg/chroot.sh BUILD-TREE [RELEASE [FOLDER]]"
build=$(readlink -f "$1")
here=$(os_release VERSION_CODENAME)
release=${2:-$here}
keep=${3:+$(readlink -f "$3")}
[ "$(id -u)" = 0 ] || skip 'only root can make the packages of a root file system its own'
[ "$release" != "$here" ] || need dpkg-buildpackage lintian
need_releases "$release"
system=$dir/root
base=(--variant=apt --dpkgopt=force-unsafe-io --aptopt='Acquire::Check-Valid-Until "false"')

# inside COMMAND...: by nobody in the new system, in a network that is loopback only.
# shellcheck disable=SC2016
inside()
{
    unshare -mnpf sh -c 'ip link set lo up && mount -t proc proc "$0/proc" &&
        exec chroot --userspec=65534:65534 "$0" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin "$@"' \
        "$system" "$@"
}

# apt-get, with the network of this machine; its lists and packages are left out of all comparisons.
apt()
{
    chroot "$system" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@"
}

# Every file of the system: kind, rights, owner, target, sum. Caches, logs and the list of what is
# installed are dpkg's and apt's own.
inventory()
{
    local found=(find . -xdev '(' -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o
        -path ./debs -o -path './var/cache/*' -o -path ./var/log -o -path ./var/lib/apt -o
        -path './var/lib/dpkg/status*' -o -path './var/lib/dpkg/*-old' -o -path ./etc/ld.so.cache ')' -prune -o)
    (cd "$system" && "${found[@]}" -printf '%p %y %m %U:%G %l\n' &&
        "${found[@]}" -type f -print0 | xargs -0 sha256sum) | sort
}

if [ "$release" = "$here" ]; then
    source=$dir/source
    builder=()
    apt-get indextargets --format "deb \$(SITE) \$(RELEASE) \$(COMPONENT)" \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$dir/sources.list"
else
    source=$dir/builder/root/source
    builder=(enter host "$dir/builder")
    echo "deb $mirror $release main" >"$dir/sources.list"
    quietly mmdebstrap "${base[@]}" --include=build-essential,debhelper,iproute2,lintian \
        "$release" "$dir/builder" "$dir/sources.list"
fi
mkdir "$source"
quietly make -s -C "$build" dist
quietly tar -C "$source" --strip-components=1 --one-top-level=anywarp -xf "$build"/anywarp-*.tar.xz
[ ${#builder[@]} = 0 ] || quietly "${builder[@]}" \
    sh -c 'cd /root/source/anywarp && apt-get -q update && apt-get -q -y --no-install-recommends build-dep ./'
quietly "${builder[@]}" sh -c "cd '${source#"$dir/builder"}/anywarp' &&
    dpkg-buildpackage -us -uc -b -j$(nproc)"
quietly "${builder[@]}" sh -c "lintian --fail-on error --allow-root \
    '${source#"$dir/builder"}'/anywarp_*.changes"
sed 's/^/    /' "$dir/log"
[ -z "$keep" ] || cp "$source"/*.deb "$keep"

quietly mmdebstrap "${base[@]}" --include=gcc,libc6-dev,pkg-config,rdmacm-utils "$release" \
    "$system" "$dir/sources.list"
quietly apt update
mkdir "$system/debs"
find "$source" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$system/debs" \;
packages=$(cd "$system" && printf '/%s ' debs/*.deb)
[ "$(wc -w <<<"$packages")" = 3 ] || failed "not three packages: $packages"
inventory >"$dir/before"
[ "$(wc -l <"$dir/before")" -gt 5000 ] || failed 'too short a list of files'

# shellcheck disable=SC2086
quietly apt install $packages
grep -q '^Setting up anywarp ' "$dir/log" || failed 'not installed' log
quietly inside anywarp doctor /usr/bin/rping
quietly inside anywarp devices
quietly inside sh -ec '
    ldd /usr/bin/rping | grep -q "=> /lib/.*/librdmacm.so.1" # the stock one, not redirected
    anywarp run rping -s -a 127.0.0.1 -p 7200 -V -C 10 &
    for try in 1 2 3 4 5 6 7 8 9; do
        sleep 0.2
        anywarp run rping -c -a 127.0.0.1 -p 7200 -V -v -C 10 && wait $! && exit
    done
    exit 1'
[ "$(grep -c 'ping data: rdma-ping-' "$dir/log")" = 10 ] || failed 'rping: not 10 pings' log
quietly inside sh -ec '
    cd /tmp && cp /usr/share/doc/anywarp/examples/*.[ch] .
    export PKG_CONFIG_PATH=$(echo /usr/lib/*/anywarp/pkgconfig)
    cc -o ping ping.c common.c $(pkg-config --cflags --libs librdmacm libibverbs)
    ./ping & sleep 1; ./ping 127.0.0.1; wait $!'
quietly inside anywarp-bench --quick --no-netns --rounds 1 --who raw --only '/connect/'

quietly apt purge anywarp anywarp-tests libanywarp-dev
quietly apt autoremove --purge -o APT::AutoRemove::RecommendsImportant=false
inventory >"$dir/after"
diff "$dir/before" "$dir/after" >"$dir/traces" || failed 'not as before the installation' traces
finish
