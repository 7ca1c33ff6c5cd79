#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ANYWARP_TLS=require by the other doors: rsockets, programs of sockets on them, the system's own
# libraries; and a capture of our own, which is in the clear.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
need rping rstream riostream udpong python3
export VERBS_LOG_LEVEL=2
need_tls
clear=(ANYWARP_TLS=off)
key=(ANYWARP_TLS=require "ANYWARP_TLS_PSK=$dir/psk")

# both PROGRAM OPTION...: with the key; then a client without.
both()
{
    port=$(free_port)
    start_server server "$port" env "${key[@]}" "$@" -p "$port"
    start client env "${key[@]}" "$@" -p "$port" -s 127.0.0.1
    expect_status "$*" client 60 0 server
    expect_status "$*: server" server 10 0 client
    port=$(free_port)
    start_server server "$port" env "${key[@]}" "$@" -p "$port"
    start client env "${clear[@]}" "$@" -p "$port" -s 127.0.0.1
    ended client 30
    [ "$status" != 0 ] || failed "$*: without the key the client ends well" client server
    grep -q 'the peer spoke plain MPA' "$dir/server.err" || failed "$*: no word" server
    kill "${pids[server]}" 2>/dev/null
    ended server 10
}
both rstream -T b -T v -S 65536 -C 50
both rstream -T n -T v -S 64 -C 50
both riostream -T v -S 4096 -C 50

# Datagrams have no TLS.
start server env "${key[@]}" udpong -b 127.0.0.1 -p "$(free_port)"
ended server 20
[ "$status" != 0 ] && [ "$status" != none ] || failed "udpong runs without TLS: $status" server
grep -q 'rsocket: ANYWARP_TLS=require: there is no TLS for this' "$dir/server.err" ||
    failed "udpong: no word" server

# A program of sockets speaks TLS with an rsocket, and nothing with plain TCP.
echo file >"$dir/file"
fetch='import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read())'
export "${key[@]}"
for option in --rsocket ''; do
    port=$(free_port)
    start_server server "$port" $option python3 -m http.server "$port" --bind 127.0.0.1 --directory "$dir"
    start client --rsocket python3 -c "$fetch" "http://127.0.0.1:$port/file"
    ended client 60
    [ "$option" = '' ] || [ "$status" = 0 ] || failed "http over TLS: status $status" client server
    [ "$option" != '' ] || [ "$status" != 0 ] || failed "http in the clear" client server
    [ "$option" != '' ] || grep -q 'Permission denied' "$dir/client.err" ||
        failed "plain TCP: no word" client
    kill "${pids[server]}"
    ended server 10
done

# The system's own libraries, with ours at the other end.
system=--system-libraries
if command -v ibv_devices >/dev/null && compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null; then
    port=$(free_port)
    start_server server "$port" $system rping -s -a 127.0.0.1 -p "$port" -V -C 20
    start client rping -c -a 127.0.0.1 -p "$port" -V -C 20
    expect_status "$system, with the key" client 60 0 server
    expect_status "$system, with the key" server 30 0 client
    port=$(free_port)
    start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -V -C 20
    ANYWARP_TLS=off start client $system rping -c -a 127.0.0.1 -p "$port" -V -C 20
    ended client 30
    [ "$status" != 0 ] || failed "$system: without the key the client ends well" client server
    kill "${pids[server]}" 2>/dev/null
    ended server 10
fi

# What a capture of ours has: FPDUs in the clear, without CRC.
command -v tshark >/dev/null || finish
port=$(free_port)
start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 20 -S 1000
ANYWARP_CRC=on ANYWARP_PCAP=$dir/tls.pcapng start client rping -c -a 127.0.0.1 -p "$port" -C 20 -S 1000
expect_status "rping with a capture" client 60 0 server
ended server 30
capture=$dir/tls.pcapng
[ "$(decode -Y iwarp_rdma.opcode | wc -l)" -gt 100 ] || failed "no FPDUs in the capture"
! decode -Y 'iwarp_mpa.crc_flag == 1 || tls' | grep -q . || failed "a CRC inside TLS, or TLS, in the capture"

finish
