#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp chaos: stock programs, and each fault in rping.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ib_send_bw

# chaos OPTION...: rping's client with these faults, against a server without; exit status in $result.
chaos()
{
    port=$(free_port)
    start_server server "$port" rping -s -P -a 127.0.0.1 -p "$port"
    timeout -k 5 20 "$ANYWARP" chaos "$@" rping -c -a 127.0.0.1 -p "$port" -C 20 -v \
        >"$dir/client" 2>"$dir/client.err"
    result=$?
    [ $result -lt 128 ] || [ $result = 255 ] || [ $result = 143 ] || [ $result = "${falls-}" ] ||
        failed "chaos $*: exit status $result" client
    ! grep -aE 'runtime error:|ERROR: [A-Za-z]*Sanitizer' "$dir/client.err" | grep -vE "${report-^$}" ||
        failed "chaos $*: sanitizer report" client
    kill "${pids[server]}" 2>/dev/null
    ended server 10
}

# pings: how many came back.
pings()
{
    grep -c '^ping data' "$dir/client"
}

"$ANYWARP" chaos --list >"$dir/list" || failed "--list" list
[ "$(wc -l <"$dir/list")" -ge 50 ] || failed "few faults" list

# expect STATUS PATTERN OPTION...
expect()
{
    local want=$1 pattern=$2
    shift 2
    "$ANYWARP" chaos "$@" >"$dir/out" 2>"$dir/out.err"
    status=$?
    [ $status = "$want" ] && grep -qE -- "$pattern" "$dir/out.err" || failed "chaos $*: $status" out
}
expect 2 'which command'
expect 2 'no fault of that name' --only nothing true
expect 2 'is no number' --seed x true
expect 2 'every is no number above 0' --every 0 true
expect 2 'No such file' --replay "$dir/nowhere" true
echo nonsense >"$dir/nonsense"
expect 2 'is no log of anywarp chaos' --replay "$dir/nonsense" true
expect 127 'command not found' --seed 1 no-such-program
expect 3 'again: anywarp chaos --seed 9 --every 5 --only late\+burst sh -c .exit 3.' \
    --seed 9 --every 5 --only late,burst sh -c 'exit 3'

# A log that may not grow takes no faults, which is told of, and ends no program.
said=$(ulimit -f 0 && ANYWARP_CHAOS="every=1,only=create_cq,log=$dir/full" \
    "$ANYWARP" run ibv_rc_pingpong 2>&1)
status=$?
[ $status = 1 ] && [[ $said == *"anywarp: ANYWARP_CHAOS: log=$dir/full: File too large: "* ]] ||
    failed "a log that may not grow: status $status, $said"

# What is not understood, or not there, is told of at any level, and nothing happens.
for settings in nonsense every=0 "replay=$dir/nowhere" "places=$dir/nowhere"; do
    said=$(VERBS_LOG_LEVEL=0 ANYWARP_CHAOS=$settings "$ANYWARP" run ibv_devinfo 2>&1)
    [[ $said == *"anywarp: ANYWARP_CHAOS"*"$settings: "*"; no faults"* ]] || failed "$settings: $said"
done

# What only changes times and sizes changes nothing else.
for only in late burst single spurious short_read short_write slow_peer \
    late,burst,single,spurious,short_read,short_write,slow_peer; do
    chaos --seed 1 --every 1 --only $only
    [ $result = 0 ] && [ "$(pings)" = 20 ] || failed "$only: status $result, $(pings) pings" client
done

# What fails is what the program sees.
sees()
{
    local only=$1 pattern=$2
    chaos --seed 3 --every 1 --only "$only"
    grep -qE -- "$pattern" "$dir/client" "$dir/client.err" || failed "$only: no /$pattern/" client
    grep -qE "^anywarp: +[0-9]+ $only\$" "$dir/client.err" || failed "$only: not told" client
    [ "$(pings)" -lt 20 ] || failed "$only: harmless" client
}
sees create_event_channel 'RDMA CM event channel: Too|rdma_create_event_channel: Too many open files'
# rping of rdma-core 65 then joins a thread that it has not started.
! rping_since 65 || { falls=139 report='AddressSanitizer: Joining already joined thread'; }
sees create_id 'rdma_create_id: Cannot allocate memory'
unset falls report
sees resolve_addr 'rdma_resolve_addr: Cannot allocate memory'
sees resolve_route 'rdma_resolve_route: Cannot allocate memory'
sees connect 'rdma_connect: Cannot allocate memory'
sees addr_error 'RDMA_CM_EVENT_ADDR_ERROR'
sees route_error 'RDMA_CM_EVENT_ROUTE_ERROR'
sees rejected 'RDMA_CM_EVENT_REJECTED'
sees unreachable 'RDMA_CM_EVENT_UNREACHABLE'
sees connect_error 'RDMA_CM_EVENT_CONNECT_ERROR'
sees create_comp_channel 'ibv_create_comp_channel failed'
sees create_cq 'ibv_create_cq failed'
sees create_qp 'rdma_create_qp: Cannot allocate memory'

# A log is replayed: what happened happens, and nothing else.
chaos --seed 4 --every 3 --only late,spurious --log "$dir/first"
faults=$(grep -c '^rping ' "$dir/first")
[ "$faults" -ge 5 ] || failed "few faults" client first
{ head -n 1 "$dir/first" && grep '^rping late ' "$dir/first" | head -n 3; } >"$dir/some"
chaos --replay "$dir/some" --log "$dir/second"
cmp -s "$dir/some" "$dir/second" || failed "the replay differs" some second

# Of several faults, the one by which it fails is found.
port=$(free_port)
start_server server "$port" rping -s -P -a 127.0.0.1 -p "$port"
{
    head -n 1 "$dir/first"
    printf 'rping %s\n' 'late cq 1 2' 'burst cq 1 3' 'create_id process 0 1' 'single cq 1 1' \
        'spurious cq 1 2'
} >"$dir/five"
"$ANYWARP" shrink "$dir/five" rping -c -a 127.0.0.1 -p "$port" -C 2 >"$dir/least" 2>"$dir/least.err" ||
    failed "shrink" least
{ head -n 1 "$dir/first" && echo 'rping create_id process 0 1'; } | cmp -s - "$dir/least" ||
    failed "shrink finds something else" least
grep -q 'with 1 of 5 faults' "$dir/least.err" || failed "shrink does not tell" least
grep -v create_id "$dir/five" >"$dir/four"
"$ANYWARP" shrink "$dir/four" -- rping -c -a 127.0.0.1 -p "$port" -C 2 >"$dir/least" 2>"$dir/least.err"
[ $? = 1 ] && grep -q 'does not fail' "$dir/least.err" || failed "shrink without a failure" least
"$ANYWARP" shrink --timeout 1 "$dir/four" sleep 60 >"$dir/least" 2>"$dir/least.err"
[ $? = 0 ] && grep -q 'exit status 124 with 0 of 4' "$dir/least.err" || failed "shrink: a hang" least
kill "${pids[server]}" 2>/dev/null
ended server 10

# A completion in error. (rping may end by the disconnection before it polls that.)
for row in wc_rem_access_err:10 wc_retry_exc_err:12; do
    port=$(free_port)
    start_server server "$port" ib_send_bw -R -n 50 -p "$port"
    timeout -k 5 60 "$ANYWARP" chaos --seed 3 --every 1 --only "${row%:*}" \
        ib_send_bw -R -n 50 -p "$port" 127.0.0.1 >"$dir/client" 2>"$dir/client.err"
    grep -qiE "status:? ${row#*:}\>" "$dir/client" "$dir/client.err" || failed "$row" client
    kill "${pids[server]}" 2>/dev/null
    ended server 10
done

# Whatever ends a connection or comes at another time: the program may fail, it does not crash, and
# neither do we. (Of calls that fail, perftest destroys what it has not made.)
ends=cut_fin,cut_rst,corrupt,wc_loc_prot_err,wc_rem_op_err,wc_rnr_retry_exc_err,post_send,late,burst,slow_peer
for seed in 1 2 3 4 5 6; do
    port=$(free_port)
    start_server server "$port" ib_send_bw -R -n 50 -p "$port"
    timeout -k 5 20 "$ANYWARP" chaos --seed "$seed" --only $ends --every 20 \
        ib_send_bw -R -n 50 -p "$port" 127.0.0.1 >"$dir/client" 2>"$dir/client.err"
    result=$?
    [ $result -lt 128 ] || [ $result = 143 ] || failed "ib_send_bw, seed $seed: $result" client
    ! grep -qaE 'runtime error:|ERROR: [A-Za-z]*Sanitizer' "$dir/client.err" ||
        failed "ib_send_bw, seed $seed: sanitizer report" client
    kill "${pids[server]}" 2>/dev/null
    ended server 10
done

finish
