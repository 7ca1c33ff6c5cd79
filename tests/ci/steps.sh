#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The CI examples of doc/ci, step by step, for a project with tests of its own: by a user without
# privileges, in a network namespace that has nothing but loopback.

SRCDIR=${SRCDIR:-$(readlink -f "$(dirname "$0")/../..")}
# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need autoreconf ip pkg-config python3 rping setpriv unshare

# as_user COMMAND...: as nobody if this is root, then as user 1000 of a namespace.
# shellcheck disable=SC2016
as_user()
{
    local nobody=()
    [ "$(id -u)" != 0 ] || nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${nobody[@]}" env -i HOME="$dir/work" PATH=/usr/bin:/bin:/usr/sbin:/sbin CFLAGS=-O0 \
        unshare -Urn sh -c 'ip link set lo up &&
            exec unshare -U --map-user=1000 --map-group=1000 "$@"' sh "$@"
}
as_user true 2>/dev/null || skip 'no user namespaces here'
[ "$(as_user id -u)" = 1000 ] || failed 'not user 1000'
[ "$(as_user ip -o link | wc -l)" = 1 ] || failed 'there are other interfaces than lo'

# The project: a program of its own, linked to the system's libraries, and stock rping.
project()
{
    cp "$SRCDIR"/examples/{ping.c,common.[ch]} .
    cat >Makefile <<'END'
check: ping
	./pair ./ping '-p 18515' '-p 18515 127.0.0.1'
	./pair rping '-s -C 10 -V -p 18516' '-c -C 10 -V -p 18516 -a 127.0.0.1'
ping: ping.c common.c
	cc -o $@ ping.c common.c -lrdmacm -libverbs
END
    cat >pair <<'END'
#!/bin/sh
$1 $2 &
for try in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.3
    $1 $3 && wait $! && echo "PASSED $1" && exit
done
kill $!
exit 1
END
    chmod +x pair
}

try()
{
    local file=$1 name=${1##*/} passed=$2 begin=$SECONDS
    shift 2
    mkdir "$dir/work" "$dir/work/anywarp"
    tar -C "$SRCDIR" -c --exclude=./build --exclude='./build-*' --exclude=./.git \
        --exclude='./_*' . | tar -C "$dir/work/anywarp" -x || failed "copying $SRCDIR"
    (cd "$dir/work" && project)
    chmod -R u+w "$dir/work"
    chmod 755 "$dir"
    [ "$(id -u)" != 0 ] || chown -R 65534:65534 "$dir/work"
    python3 "$SRCDIR/tests/ci/steps.py" "$file" >"$dir/steps" || failed "$name: no steps"
    grep -q 'make check\|COMMAND' "$dir/steps" || failed "$name: has no tests"
    (cd "$dir/work" && as_user env "$@" sh -c "$(cat "$dir/steps")") >"$dir/$name" 2>"$dir/$name.err" ||
        failed "$name: exit status $?" "$name"
    grep -q anywarp0 "$dir/$name" || failed "$name: no device" "$name"
    [ "$(grep -c '^PASSED' "$dir/$name")" = "$passed" ] || failed "$name: not all tests ran" "$name"
    [ "$(grep -c '^passed: with faults' "$dir/$name")" = 20 ] || failed "$name: no faults" "$name"
    echo "$name: $((SECONDS - begin)) s"
    rm -rf "$dir/work"
}
try "$SRCDIR/doc/ci/github-actions.yml" 2
try "$SRCDIR/doc/ci/gitlab-ci.yml" 2
try "$SRCDIR/doc/ci/action.yml" 0 SOURCES="$dir/work/anywarp" COMMAND='make check' SEEDS=20
finish
