# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shell functions of ./quickstart and ./check, which run at the top of the sources, of bench/run
# and of tests.

step()
{
    printf '==> %s\n' "$*"
}

die()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# install_packages NAME...: those that are missing, with apt-get, as root.
install_packages()
{
    local package root=() missing=()
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    if [ ${#missing[@]} = 0 ]; then
        step "All packages are installed"
        return
    fi
    step "Installing packages: ${missing[*]}"
    command -v apt-get >/dev/null || die "no apt-get here: install these by hand: ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "run as root, or install these first: ${missing[*]}"
        root=(sudo)
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install "${missing[@]}"
}

# build_in FOLDER [CONFIGURE-OPTION...]: configures again only when the options changed.
build_in()
{
    local dir=$1 source=$PWD
    shift
    [ ! -e config.status ] || die "there is a build in the source tree: run make distclean first"
    if [ ! -x configure ]; then
        step "Generating configure"
        mkdir -p build-aux/m4 && autoreconf -fi || return
    fi
    mkdir -p "$dir" || return
    if [ ! -e "$dir/Makefile" ] || [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; then
        step "Configuring in $dir${*:+ with $*}"
        (cd "$dir" && "$source/configure" --quiet "$@") || return
        printf '%s\n' "$*" >"$dir/options"
    fi
    step "Building in $dir"
    make -C "$dir" --no-print-directory -j"$(nproc)"
}

# Variables of the tests themselves, of which the doctor would tell: no libraries know them.
no_test_variables()
{
    unset "${!ANYWARP_SIW@}" "${!ANYWARP_WALK@}" "${!ANYWARP_TEST@}"
}

# listening PORT: whether a TCP socket of this machine listens there.
listening()
{
    grep -qhE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# A TCP port that nobody listens on and the kernel does not hand out by itself.
free_port()
{
    local port
    for _ in {1..100}; do
        port=$((20000 + RANDOM % 10000))
        listening $port || break
    done
    echo $port
}

# wait_listening PORT PID: until process PID listens there; fails if it ends first or takes 10 s.
wait_listening()
{
    for _ in {1..200}; do
        listening "$1" && return
        kill -0 "$2" 2>/dev/null || return
        sleep 0.05
    done
    return 1
}
