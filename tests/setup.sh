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

# os_release NAME: what it says there.
os_release()
{
    (. /etc/os-release && echo "${!1-}") 2>/dev/null || true
}

# Whether packages can be installed here: Debian 12 or later, which has no number before its release.
is_debian()
{
    local version
    version=$(os_release VERSION_ID)
    [ "$(os_release ID)" = debian ] && command -v apt-get >/dev/null &&
        { [ -z "$version" ] || [ "${version%%.*}" -ge 12 ]; }
}

# purpose_of PACKAGE: what it is needed for, a command or <header>.
purpose_of()
{
    case $1 in
    autoconf) echo autoreconf ;;
    binutils) echo readelf ;;
    debhelper) echo dh ;;
    dpkg-dev) echo dpkg-buildpackage ;;
    gnuplot-nox) echo gnuplot ;;
    ibverbs-utils) echo ibv_devinfo ;;
    iproute2) echo ip ;;
    libc6-dev) echo '<stdio.h>' ;;
    libclang-rt-dev) echo '<sanitizer/asan_interface.h>' ;;
    libcmocka-dev) echo '<cmocka.h>' ;;
    libarchive-tools) echo bsdtar ;;
    libfabric-bin) echo fi_pingpong ;;
    libgloo-dev) echo '<gloo/config.h>' ;;
    libibverbs-dev) echo '<infiniband/verbs.h>' ;;
    libisal-dev) echo '<isa-l/crc.h>' ;;
    librdmacm-dev) echo '<rdma/rdma_cma.h>' ;;
    libssl-dev) echo '<openssl/evp.h>' ;;
    libtool) echo libtoolize ;;
    man-db) echo man ;;
    pacman-package-manager) echo pacman ;;
    perftest) echo ib_send_bw ;;
    procps) echo ps ;;
    rdmacm-utils) echo rping ;;
    rpm) echo rpmbuild ;;
    systemtap-sdt-dev) echo '<sys/sdt.h>' ;;
    ucx-utils) echo ucx_perftest ;;
    xz-utils) echo xz ;;
    *) echo "$1" ;;
    esac
}

# is_here WHAT: as purpose_of() says.
is_here()
{
    case $1 in
    '<'*) printf '#if !__has_include(%s)\n#error\n#endif\n' "$1" | ${CC:-gcc} -E -x c - ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# list_packages NAME...: where they have other names, or come another way; ends if one is missing.
list_packages()
{
    local package what missing=()
    for package in "$@"; do
        what=$(purpose_of "$package")
        is_here "$what" || missing+=("$(printf '    %-28s %s' "$what" "$package")")
    done
    if [ ${#missing[@]} = 0 ]; then
        step "All that is needed is installed"
        return
    fi
    {
        printf '%s: packages are installed for you on Debian 12 and later only.\n' \
            "$(os_release PRETTY_NAME)"
        echo "Missing here: a command or <header>, and the package that has it in Debian:"
        printf '%s\n' "${missing[@]}"
    } >&2
    die "install these, and run it again"
}

# install_packages NAME...: those that are missing, with apt-get, as root.
install_packages()
{
    local package root=() missing=()
    if ! is_debian; then
        list_packages "$@"
        return
    fi
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    if [ ${#missing[@]} = 0 ]; then
        step "All packages are installed"
        return
    fi
    step "Installing packages: ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "run as root, or install these first: ${missing[*]}"
        root=(sudo)
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install "${missing[@]}"
}

# build_in FOLDER [CONFIGURE-OPTION...]: configures again only when the options changed. configure and
# libtool would take bash if they could; where sh is another one they take half the time with that.
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
        (cd "$dir" && CONFIG_SHELL=/bin/sh "$source/configure" --quiet "$@") || return
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

# listening PORT: whether a TCP socket of this machine listens there, or one of UDP is for anybody.
listening()
{
    grep -qhE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0[A7] " \
        /proc/net/{tcp,tcp6,udp,udp6} 2>/dev/null
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
