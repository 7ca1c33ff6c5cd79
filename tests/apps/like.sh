#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp run --like: stock programs on the limits of adapters.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ibv_devinfo ib_atomic_lat

"$ANYWARP" run --like list >"$dir/list" || failed "--like list" list
mapfile -t adapters < <(sed -n 's/^\([a-z][^:]*\):.*/\1/p' "$dir/list")
[ "${adapters[*]}" = "cxgb4 i40iw irdma irdma-roce mlx5-cx5 mlx5-cx6 qedr qedr-iwarp rxe siw" ] ||
    failed "adapters: ${adapters[*]}"
# A limit without a source is none.
! grep -E '^ ' "$dir/list" | grep -vqE '^    [a-z_ ]+ +([0-9]+|none)  [^ ]' ||
    failed "lines without a source" list

"$ANYWARP" run --like no-such true 2>"$dir/none"
[ $? = 2 ] && grep -q 'no-such: no such adapter' "$dir/none" || failed "an unknown adapter" none

for adapter in "${adapters[@]}"; do
    # What the list says is what programs are told.
    "$ANYWARP" run --like "$adapter" ibv_devinfo -v >"$dir/info" 2>&1 ||
        failed "$adapter: ibv_devinfo" info
    grep -qE '^hca_id:[[:space:]]anywarp0' "$dir/info" || failed "$adapter: another name" info
    told=$(awk '$1 == "max_sge_rd:" { print $2 }' "$dir/info")
    has=$(awk -v a="$adapter:" '$1 ~ /:$/ { here = $1 == a } here && $1 == "max_sge_rd" { print $2 }' \
        "$dir/list")
    [ "${has:-16}" -le 16 ] || has=16
    [ "$told" = "${has:-16}" ] || failed "$adapter: max_sge_rd $told, the list has $has" info

    # rping asks for nothing that any of them would refuse.
    port=$(free_port)
    start_server server "$port" --like "$adapter" rping -s -a 127.0.0.1 -p "$port" -C 10 -V
    start client --like "$adapter" rping -c -a 127.0.0.1 -p "$port" -C 10 -V
    expect_status "like $adapter" client 60 0 server
    expect_status "like $adapter" server 30 0 client
    ! grep -q refused "$dir/server.err" "$dir/client.err" ||
        failed "$adapter refuses rping" server client
done

# Atomics: an adapter that has them, and one that has not.
atomics()
{
    port=$(free_port)
    start_server server "$port" --like "$1" ib_atomic_lat -R -n 5 -p "$port"
    start client --like "$1" ib_atomic_lat -R -n 5 -p "$port" 127.0.0.1
}
atomics rxe
expect_status 'atomics like rxe' client 60 0 server
expect_status 'atomics like rxe' server 60 0 client
atomics siw
ended client 60
case $status in
none | 0) failed "atomics like siw: exit status $status" client ;;
esac
grep -q 'refused as siw would: atomics, it has none (sw/siw/siw_verbs.c)' "$dir/client.err" ||
    failed "the log does not say why" client
ended server 60

finish
