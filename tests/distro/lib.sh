# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Releases of Debian in folders, made by mmdebstrap from the mirror of this machine and kept in
# ~/.cache/anywarp/distro, or where XDG_CACHE_HOME says. After tests/apps/lib.sh.

# shellcheck disable=SC2154 # dir is of tests/apps/lib.sh
cache=${XDG_CACHE_HOME:-$HOME/.cache}/anywarp/distro

# What the stock programs of a release need.
stock_packages=(
    binutils iproute2 rdmacm-utils ibverbs-utils ibverbs-providers perftest python3-pyverbs xz-utils
)

# need_releases RELEASE...: skips the test where they cannot be made; leaves the mirror in $mirror.
need_releases()
{
    local release
    [ "$(id -u)" = 0 ] || skip 'only root can make a root file system'
    need mmdebstrap ip
    unshare -mnpf mount -t proc proc /proc 2>"$dir/unshare.err" ||
        skip "nothing can be mounted here: $(cat "$dir/unshare.err")"
    mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 'Origin: Debian' |
        grep -v security | sort -u | head -n 1)
    mirror=${mirror%/}
    [ -n "$mirror" ] || skip 'the package sources of this machine name no mirror of Debian'
    for release; do
        [ -e "$cache/$release/.made" ] ||
            timeout 60 /usr/lib/apt/apt-helper -o Acquire::Retries=3 download-file "$mirror/dists/$release/Release" \
                "$dir/Release" >"$dir/helper" 2>&1 ||
            skip "$mirror does not give $release: $(tail -n 1 "$dir/helper")"
    done
}

# empty_folder FOLDER: there is nothing in it. Who was killed while making a release left it with mounts.
empty_folder()
{
    awk -v root="$1/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount
    rm -rf --one-file-system "$1"
    mkdir -p "$1"
}

# make_release RELEASE [PACKAGE...]: with these, apt and no more.
make_release()
{
    local release=$1 system=$cache/$1 packages
    shift
    [ ! -e "$system/.made" ] || return 0
    packages=$(IFS=, && echo "$*")
    empty_folder "$system"
    mmdebstrap --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt=force-unsafe-io --include="$packages" \
        "$release" "$system" "deb $mirror $release main" >"$dir/$release.made" 2>&1 &&
        printf '127.0.0.1 localhost\n::1 localhost\n' >"$system/etc/hosts" &&
        touch "$system/.made"
}

# enter NETWORK SYSTEM COMMAND...: as root of the system in that folder; NETWORK is "host" or "none".
# Where $over is "FROM TO", the folder FROM is on TO there.
# shellcheck disable=SC2016
enter()
{
    local options=-mpf system=$2 from='' to=''
    [ "$1" = host ] || options=-mnpf
    shift 2
    read -r from to <<<"${over-}"
    cp /etc/resolv.conf "$system/etc/resolv.conf"
    FROM=$from TO=$to timeout 1800 unshare $options sh -c 'ip link set lo up 2>/dev/null
        mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmp "$0/run" &&
        { [ -z "$FROM" ] || mount --bind "$FROM" "$0$TO"; } &&
        exec chroot "$0" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$system" "$@"
}
