# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The cases. Each function plays one; its first argument is the side of the server, and what it
# finds wrong it tells with "failed". Ports are counted up, so that no case meets the last one's.
# shellcheck disable=SC2154 # variables of guest.sh

port=28100 # and on: Wireshark gives them to no other protocol
other_side()
{
    [ "$1" = anywarp ] && echo siw || echo anywarp
}

# play SERVER-SIDE SERVER-COMMAND CLIENT-COMMAND [SECONDS]: both must end with 0. In the commands @
# is the server's address and % the port.
play()
{
    local server=$1 seconds=${4:-60}
    port=$((port + 1))
    local commands=("${2//@/${address_of[$server]}}" "${3//@/${address_of[$server]}}")
    # The commands are lists of words.
    # shellcheck disable=SC2086
    launch_server "$server" server $port ${commands[0]//%/$port} || return
    # shellcheck disable=SC2086
    launch "$(other_side "$server")" client ${commands[1]//%/$port}
    expect_status "$3" client "$seconds" 0 server
    expect_status "$2" server 20 0 client
}

# rping SERVER-SIDE SIZE [OPTION...]
rping_case()
{
    local server=$1 options="-a @ -p % -C 20 -V -v -S $2 ${*:3}"
    play "$server" "rping -s $options" "rping -c $options"
    [ "$(grep -c '^ping data' "$dir/client")" = 20 ] || failed "not 20 pings" client server
}

# own_qp SERVER-SIDE: queue pairs that rping makes and moves itself. As a client of siw it cannot:
# the kernel has no rdma_establish() for iWARP.
own_qp_case()
{
    local options='-a @ -p % -C 20 -V -v' client=
    [ "$1" = anywarp ] || client=-q
    play "$1" "rping -s -q $options" "rping -c $client $options"
    [ "$(grep -c '^ping data' "$dir/client")" = 20 ] || failed "not 20 pings" client server
}

# What "run --like siw" refuses is what the guest's driver says.
like_case()
{
    in_guest 'ibv_devinfo -v' >"$dir/server"
    "$ANYWARP" run --like list >"$dir/client"
    awk 'NR == FNR { has[$1] = $2; next }
        $1 ~ /:$/ { here = $1 == "siw:"; next }
        here && $1 ~ /^max_/ {
            name = $1 ~ /^max_(send|recv)_sge$/ ? "max_sge:" : $1 ":"
            if (has[name] != ($2 == "none" ? 0 : $2)) { print $1, $2, "siw has " has[name]; wrong = 1 }
            compared++
        }
        END { exit wrong || compared < 10 }' "$dir/server" "$dir/client" >"$dir/compared" ||
        failed "siw has other limits: $(cat "$dir/compared")" server client
}

crc_case()
{
    ANYWARP_CRC=$2 rping_case "$1" 65535
}

ucmatose_case()
{
    play "$1" "ucmatose -b @ -p % -c $2 -C 10 -S 1000" "ucmatose -s @ -p % -c $2 -C 10 -S 1000"
    grep -q 'data transfers complete' "$dir/client" || failed "no transfers" client
}

rdma_client_case()
{
    play "$1" 'rdma_server -p %' 'rdma_client -s @ -p %'
}

# rsocket SERVER-SIDE PROGRAM OPTION...: rdma-core's rsockets in the guest.
rsocket_case()
{
    local options="${*:3} -p %"
    play "$1" "$2 -b @ $options" "$2 -s @ $options"
    grep -q '^custom' "$dir/client" || failed "no result" client server
}

# A copied file; the server stays.
rcopy_case()
{
    local server=$1 client
    client=$(other_side "$1")
    port=$((port + 1))
    in_guest 'head -c 3000001 /dev/urandom >/tmp/from; md5sum </tmp/from' >"$dir/guest-sum"
    head -c 3000001 /dev/urandom >"$dir/from"
    local from=$dir/from to=/tmp/to
    [ "$client" = anywarp ] || from=/tmp/from to=$dir/to
    launch_server "$server" server $port rcopy -p $port || return
    launch "$client" client rcopy "$from" "${address_of[$server]}:$to" -p $port
    expect_status rcopy client 60 0 server
    kill_end server
    ended server 10
    if [ "$client" = anywarp ]; then
        md5sum <"$dir/from" >"$dir/sum"
        in_guest 'md5sum </tmp/to; rm /tmp/to' >"$dir/sum-there"
    else
        cp "$dir/guest-sum" "$dir/sum"
        md5sum <"$dir/to" >"$dir/sum-there"
    fi
    cmp "$dir/sum" "$dir/sum-there" || failed "the copy is another" client server
}

# all SERVER-SIDE SERVER-ACTION CLIENT-ACTION
all_case()
{
    local server='' client=-k
    [ "$1" = anywarp ] || server=-k client=''
    ANYWARP_CRC=on play "$1" "end -p % $server $2" "end -c @ -p % $client $3"
}

# guest_network [NETEM-OPTION...]: what the guest does to all that it sends; nothing if without.
guest_network()
{
    in_guest "traffic qdisc replace dev eth0 root ${*:+netem }${*:-fq_codel}" || failed "netem: $*"
}

loss_case()
{
    guest_network delay 2ms loss 2% reorder 5%
    rping_case "$1" 65535
    in_guest 'traffic -s qdisc show dev eth0' >"$dir/network"
    grep -q 'dropped [1-9]' "$dir/network" || failed "nothing was lost" network
    guest_network
}

# perftest SERVER-SIDE PROGRAM SIZE COUNT [OPTION...]
perftest_case()
{
    local options="-R -p % -s $3 -n $4 -F ${*:5}"
    # Its client connects twice; a slow server may not listen again when the second attempt comes.
    # And siw fails a Send if the answer and the FIN come in before it has noted that it is sent.
    guest_network delay 30ms
    play "$1" "$2 $options" "$2 $options @" 90
    # The line of results begins with the size.
    grep -qE "^ *$3 +" "$dir/client" || failed "no result" client server
    guest_network
}

# Private data both ways, with an acceptance.
private_case()
{
    play "$1" "end -p % -d $2 disconnect" "end -c @ -p % -d $2 wait"
}

# The same with rejections. When siw finds the FIN before it has read the Reply, it reports the
# rejection without the data: then once more.
reject_case()
{
    local server=$1 overtaken='^end: failed: 0 bytes of private data, not the' try
    for try in 1 2 3 4 5; do
        port=$((port + 1))
        launch_server "$server" server $port end -p $port -d "$2" -r wait || return
        launch "$(other_side "$server")" client \
            end -c "${address_of[$server]}" -p $port -d "$2" -r wait
        ended client 30
        expect_status server server 20 0 client
        [ "$server" = anywarp ] && grep -q "$overtaken" "$dir/client" || break
    done
    grep -q '^end: rejected' "$dir/client" || failed "$try attempts" client server
}

many_case()
{
    play "$1" "end -p % -n $2 wait" "end -c @ -p % -n $2 disconnect" 120
}

# result NAME FIELD PATTERN: of the "end:" line of an end.
result()
{
    grep -qE "^end: (.* )?$2=$3" "$dir/$1" || failed "$1: $2 is not $3" client server
}

# both_ended NAME...: however it came, there was one DISCONNECTED, and all work requests of anywarp
# are done; siw loses the receive that it was working on.
both_ended()
{
    local name
    for name in "$@"; do
        result "$name" disconnected '1 '
        [ "${side_of[$name]}" = siw ] || result "$name" missing '0 '
    done
}

# disconnect SERVER-SIDE WHO: the server or the client begins.
disconnect_case()
{
    local server=wait client=wait
    declare "$2=disconnect"
    play "$1" "end -p % $server" "end -c @ -p % $client"
    both_ended server client
}

connected()
{
    grep -q '^end: connected' "$dir/$1"
}

both_connected()
{
    connected server && connected client
}

# killed SERVER-SIDE VICTIM
killed_case()
{
    local survivor=server server=$1
    [ "$2" = client ] || survivor=client
    port=$((port + 1))
    launch_server "$server" server $port end -p $port wait || return
    launch "$(other_side "$server")" client end -c "${address_of[$server]}" -p $port wait
    within 20 both_connected || failed "no connection" client server
    kill_end "$2"
    ended "$2" 10
    expect_status "survivor" $survivor 30 0
    both_ended $survivor
}

# wrong SERVER-SIDE WHO ACTION: WHO does what its peer must refuse. The work request of an RDMA Read
# has the reason; that of a Write or Send is complete when TCP has it.
wrong_case()
{
    local server=wait client=wait actor=$2
    declare "$2=$3"
    play "$1" "end -p % $server" "end -c @ -p % $client"
    both_ended server client
    result "$actor" post 'ok '
    # When siw refuses an RDMA Read its receives are not flushed before the QP goes.
    [ "$1" = siw ] || result server flushed '[1-9]'
    [ "$1" = anywarp ] || result client flushed '[1-9]'
    [ "${side_of[$actor]}" = anywarp ] || return 0
    case $3 in
    read-*) result "$actor" status 'remote access error ' ;;
    fetch-add | compare-swap) result "$actor" status 'remote invalid request error ' ;;
    esac
}

# unknown SERVER-SIDE ACTION NAME: anywarp sends what siw does not know; its log names the opcode.
unknown_case()
{
    local actor=server try
    [ "$1" = anywarp ] || actor=client
    for try in 1 2 3 4 5 6 7 8; do # siw does not send its Terminate each time before it closes
        wrong_case "$1" $actor "$2"
        grep -qE '^end: (.* )?async=.' "$dir/$actor" && break
    done
    result $actor async '.+'
    grep -q "$3" "$dir/$actor.err" || failed "the log does not name $3" $actor
}

# refused SERVER-SIDE ACTION: what anywarp's post refuses to send to a peer that is not anywarp.
refused_case()
{
    local server=wait client=wait actor=server
    [ "$1" = anywarp ] || actor=client
    declare "$actor=$2"
    play "$1" "end -p % $server" "end -c @ -p % $client"
    both_ended server client
    result $actor post 'Operation not supported '
}

# With Wireshark as the judge of what both sides send.
wire_rping_case()
{
    start_capture "$dir/wire.pcapng" tap0 "$filter" || failed "no capture" tshark
    ANYWARP_CRC=on rping_case "$1" 65535
    end_capture
    expect_decoded
    expect_none 'iwarp_rdma.terminate'
}

# wire_all SERVER-SIDE SERVER-ACTION CLIENT-ACTION: opcodes 0 to 6, and what each of them carries.
wire_all_case()
{
    local from_anywarp="ip.src == ${address_of[anywarp]}" opcode
    start_capture "$dir/wire.pcapng" tap0 "$filter" || failed "no capture" tshark
    all_case "$@"
    end_capture
    expect_decoded
    expect_none 'iwarp_rdma.terminate'
    for opcode in 0 1 2; do
        expect_opcode 1 $opcode "opcode $opcode"
    done
    for opcode in 3 4 5 6; do
        expect_opcode 1 $opcode "opcode $opcode" "$from_anywarp"
    done
}

# The Terminate that anywarp sends: DDP, tagged buffer error, invalid STag.
wire_terminate_case()
{
    local actor=client
    [ "$1" = anywarp ] || actor=server
    start_capture "$dir/wire.pcapng" tap0 "$filter" || failed "no capture" tshark
    ANYWARP_CRC=on wrong_case "$1" $actor write-key
    end_capture
    expect_decoded
    expect_opcode 1 7 Terminate "ip.src == ${address_of[anywarp]}"
    decode -Y "ip.src == ${address_of[anywarp]} && iwarp_rdma.terminate" -T fields \
        -e iwarp_rdma.term_layer -e iwarp_rdma.term_etype_ddp \
        -e iwarp_rdma.term_errcode_ddp_tagged >"$dir/terminate"
    [ "$(tr '\t' ' ' <"$dir/terminate")" = '0x01 0x01 0x00' ] ||
        failed "another Terminate" terminate
}
