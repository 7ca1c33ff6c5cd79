#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A session as Wireshark sees it: every byte belongs to a frame it knows, every CRC is good.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
need rping tshark
[ "$(id -u)" = 0 ] || skip "capturing needs root"

pings=20
port=$(free_port)
start_capture "$dir/capture.pcapng" lo "tcp port $port" ||
    skip "tshark cannot capture here: $(tail -n 1 "$dir/tshark.err")"

export ANYWARP_CRC=on
options=(-a 127.0.0.1 -p "$port" -C "$pings" -S 1000)
start_server server "$port" rping -s "${options[@]}"
start client rping -c "${options[@]}"
expect_status "captured rping" client 60 0 server
expect_status "captured rping" server 30 0

end_capture
expect_decoded
expect_none 'iwarp_rdma.terminate'

# Each ping is an advertisement, a Read, a go-ahead, an advertisement, a Write and a go-ahead.
expect_opcode $pings 0 'RDMA Write'
expect_opcode $pings 1 'Read Request'
expect_opcode $pings 2 'Read Response'
expect_opcode $((4 * pings)) 3 'Send'

finish
