#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ./quickstart and ./check on a system that is not Debian 12 or later: they list what is missing, and
# leave apt-get alone.

# The file that says which system this is is another one in a mount namespace.
if [ "${1-}" != inside ]; then
    unshare -rm true 2>/dev/null || { echo "SKIP: no mount namespaces here" && exit 77; }
    exec unshare -rm bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
[ -e /etc/os-release ] || skip "there is no /etc/os-release"
: >"$dir/os-release"
mount --bind "$dir/os-release" /etc/os-release || skip "nothing can be mounted here"

# A system with hardly a program: bash and these.
bare=$dir/bare
mkdir "$bare"
ln -s "$(type -P dirname)" "$(type -P cat)" "$bare"
for program in apt-get sudo; do
    printf '#!/bin/bash\necho "%s $*" >>%s\n' $program "$dir/called" >"$bare/$program"
    chmod +x "$bare/$program"
done

# is ID VERSION_ID NAME: so is this system from now on.
is()
{
    printf 'ID=%s\nVERSION_ID="%s"\nPRETTY_NAME="%s"\n' "$@" >"$dir/os-release"
}

# lists FILE NAME WHAT PACKAGE [WHAT PACKAGE...]: they are among what it lists; nothing was tried.
lists()
{
    local file=$1 name=$2
    shift 2
    timeout 30 env PATH="$bare" "$SRCDIR/$file" >"$dir/out" 2>"$dir/out.err"
    [ $? = 1 ] || failed "$name, $file: not exit status 1" out
    grep -qF "$name: packages are installed for you on Debian 12 and later only" "$dir/out.err" ||
        failed "$name, $file: does not say which system" out
    while [ $# -gt 0 ]; do
        grep -qE "^ +$1 +$2\$" "$dir/out.err" || failed "$name, $file: does not list $1, $2" out
        shift 2
    done
    ! grep -qiE 'apt|dpkg|command not found|line [0-9]+:' "$dir/out.err" ||
        failed "$name, $file: an error of something else" out
    [ ! -e "$dir/called" ] || failed "$name, $file: ran $(cat "$dir/called")"
    rm -f "$dir/called"
}

while IFS=, read -r id version name; do
    is "$id" "$version" "$name"
    lists quickstart "$name" autoreconf autoconf gcc gcc '<infiniband/verbs.h>' libibverbs-dev \
        rping rdmacm-utils
    lists check "$name" autoreconf autoconf '<rdma/rdma_cma.h>' librdmacm-dev fio fio \
        ib_send_bw perftest
done <<'SYSTEMS'
fedora,41,Fedora Linux 41
ubuntu,24.04,Ubuntu 24.04.1 LTS
debian,11,Debian GNU/Linux 11 (bullseye)
SYSTEMS

# said STATUS TEXT PACKAGE...: what becomes of these.
said()
{
    local status=$1 text=$2 out
    shift 2
    out=$(install_packages "$@" 2>&1)
    { [ $? = "$status" ] && grep -qF "$text" <<<"$out"; } || failed "$*: no \"$text\": $out"
}

# What is there is enough, whatever package it is from; Debian asks its packages.
is fedora 41 'Fedora Linux 41'
said 0 'All that is needed is installed' make gcc libc6-dev
said 1 'no-such-program  ' make no-such-program
is debian 13 'Debian GNU/Linux 13 (trixie)'
printf '#!/bin/bash\necho installed\n' >"$bare/dpkg-query"
chmod +x "$bare/dpkg-query"
PATH=$bare:$PATH
said 0 'All packages are installed' make no-such-program
is debian '' 'Debian GNU/Linux forky/sid'
said 0 'All packages are installed' no-such-program
printf '#!/bin/bash\nexit 1\n' >"$bare/dpkg-query"
said 0 'Installing packages: no-such-program' no-such-program
grep -q 'install no-such-program' "$dir/called" || failed 'apt-get was not asked'
finish
