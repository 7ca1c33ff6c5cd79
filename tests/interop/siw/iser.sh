# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The guest's iSER initiator, of the kernel, with stock tgtd on anywarp. The disk is a file here;
# its target's portal over TCP has a port of its own.
# shellcheck disable=SC2154 # variables of guest.sh

iser_target=iqn.2020-01.invalid.anywarp:disk
iser_initiator=iqn.2020-01.invalid.anywarp:guest # as siw/build names it
iser_mb=32

# iser_missing: says why these rows cannot be played; fails if they can.
iser_missing()
{
    cat "$siw_cache/no-iscsi" 2>/dev/null
}

# build_disk: what works on the disk in the guest.
build_disk()
{
    mkdir -p "$dir/overlay/usr/bin"
    cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -o "$dir/overlay/usr/bin/disk" \
        "$siw/disk.c" || exit 99
}

# tgt COMMAND...: with the libraries and the socket of our tgtd.
tgt()
{
    LD_LIBRARY_PATH=$siw_cache/tgt TGT_IPC_SOCKET=$dir/tgtd.socket "$@"
}

target_admin()
{
    tgt "$siw_cache/tgt/tgtadm" --lld iser --tid 1 "$@" >>"$dir/tgtadm" 2>&1
}

has_target()
{
    target_admin --mode target --op new -T "$iser_target"
}

start_target()
{
    tgt launch_server anywarp tgtd "$port" "$siw_cache/tgt/tgtd" -f \
        --iscsi "portal=${address_of[anywarp]}:$((port + 1))" --iser "port=$port" || return
    : >"$dir/tgtadm"
    within 10 has_target &&
        target_admin --mode logicalunit --op new --lun 1 -b "$dir/lun" &&
        target_admin --mode target --op bind -I ALL &&
        target_admin --mode target --op bind -Q "$iser_initiator" && return
    failed "no target" tgtadm tgtd
    return 1
}

node()
{
    in_guest "iscsiadm -m node -T $iser_target -p ${address_of[anywarp]}:$port $*" >"$dir/iscsiadm"
}

guest_disk()
{
    iser_disk=$(in_guest 'cd /sys/class/iscsi_session/session*/device/target*/*/block && ls') &&
        in_guest "test -b /dev/$iser_disk"
}

log_in()
{
    launch siw iscsid iscsid -f
    if node -o new -I iser && within 20 node -l; then
        within 20 guest_disk && return
    fi
    failed "no disk" iscsiadm iscsid tgtd
    return 1
}

# hung_up: tgtd was told of the end of each connection, and none is left. It goes on listing the
# session, until an event comes that iWARP does not have.
hung_up()
{
    local ended established
    established=$(grep -c 'iser_cm_conn_established' "$dir/tgtd.err")
    ended=$(grep -c 'RDMA_CM_EVENT_DISCONNECTED' "$dir/tgtd.err")
    [ "$established" != 0 ] && [ "$ended" = "$established" ] &&
        ! grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") [0-9A-F:]+ 01 " /proc/net/tcp
}

log_out()
{
    node -u || failed "log-out" iscsiadm iscsid
    node -o delete || failed "the node stays" iscsiadm
    in_guest "test ! -e /sys/block/$iser_disk" || failed "the disk is still there"
    within 10 hung_up || failed "the target still has a connection" tgtd
}

# start_io SECONDS [same]
start_io()
{
    launch siw io disk "/dev/$iser_disk" "$@"
    within 20 grep -q '^disk: busy' "$dir/io" || failed "no I/O" io
}

# end_io SECONDS: the disk has what was written, for the guest and for us.
end_io()
{
    expect_status "disk" io "$1" 0 tgtd iscsid
    grep -q '^disk: done' "$dir/io" || failed "I/O has not come to its end" io
    [ "$(in_guest "sha256sum </dev/$iser_disk")" = "$(sha256sum <"$dir/lun")" ] ||
        failed "not the same bytes on both sides"
}

guest_again()
{
    guest_down
    start_guest "$accelerator" 120 || failed "the guest does not start again" qemu console
}

# iser_case FUNCTION ARGUMENT...: with a target; what went wrong may have left a session behind.
iser_case()
{
    local before=$failures
    port=$((port + 2))
    truncate -s 0 "$dir/lun"
    truncate -s "${iser_mb}M" "$dir/lun"
    start_target && "$@"
    [ "$failures" = "$before" ] || guest_again
}

iser_log_in_case()
{
    log_in || return
    in_guest 'iscsiadm -m session' | grep -q '^iser:' || failed "not over iSER"
    [ "$(in_guest "cat /sys/block/$iser_disk/size")" = $((iser_mb * 2048)) ] || failed "its size"
    log_out
}

iser_io_case()
{
    log_in || return
    start_io 6
    end_io 60
    log_out
}

session_is()
{
    [ "$(in_guest 'cat /sys/class/iscsi_session/session*/state')" = "$1" ]
}

# The initiator holds its requests back until there is a target again, and gives them once more.
iser_target_killed_case()
{
    log_in || return
    start_io 20
    sleep 2
    kill_end tgtd
    ended tgtd 10
    within 30 session_is FAILED || failed "the initiator has not noticed" iscsid
    start_target || return
    within 60 session_is LOGGED_IN || failed "the initiator has not come back" iscsid tgtd
    end_io 60
    log_out
}

# Nothing comes from the guest any more; keepalive and unanswered data tell.
iser_guest_killed_case()
{
    log_in || return
    start_io 60
    sleep 2
    ! hung_up || failed "no connection" tgtd
    guest_down
    ended io 1
    ended iscsid 1
    within 100 hung_up || failed "the target has not noticed" tgtd
    guest_again
    iser_log_in_case
}

# Longer than the initiator waits for an answer to its pings: it gives up the connection. What that
# still has to send comes when the link is back, and tgtd, which goes on with the tasks of a session
# that was logged in again, writes it over what the new connection brought (captured: 0.4 s later).
iser_link_cut_case()
{
    local cut='traffic qdisc replace dev eth0 root netem loss 100%'
    local show='traffic -s qdisc show dev eth0' mend='traffic qdisc replace dev eth0 root fq_codel'
    log_in || return
    start_io 30 same
    in_guest "(sleep 1; $cut; sleep 15; $show >/tmp/cut; $mend) >/dev/null 2>&1 &"
    end_io 90
    in_guest 'cat /tmp/cut' >"$dir/cut"
    grep -q 'dropped [1-9]' "$dir/cut" || failed "nothing was cut" cut
    log_out
}
