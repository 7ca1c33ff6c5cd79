#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of sockets under anywarp run --rsocket: their connections are rsockets, and plain TCP where
# the other end is.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3 curl

head -c 3000001 /dev/urandom >"$dir/blob"
cat >"$dir/fetch.py" <<'END'
import sys, urllib.request
with open(sys.argv[1], "wb") as copy:
    for url in sys.argv[2:]:
        copy.write(urllib.request.urlopen(url, timeout=60).read())
END
fetch=(curl -s -S -m 60 -o)
# Debian's curl and the sanitizers of gcc 12 do not start together.
! sanitized || fetch=(python3 "$dir/fetch.py")

# serve NAME [OPTION...]: a server of files on $port, with these options of run.
serve()
{
    local name=$1
    shift
    port=$(free_port)
    start_server "$name" "$port" "$@" python3 -m http.server "$port" --bind 127.0.0.1 --directory "$dir"
}

# get NAME [OPTION...]: fetches the file from $port, with these options of run; true if it is that.
get()
{
    local name=$1
    shift
    rm -f "$dir/copy"
    start "$name" "$@" "${fetch[@]}" "$dir/copy" "http://127.0.0.1:$port/blob"
    expect_status "${fetch[0]} $*" "$name" 60 0
    cmp "$dir/blob" "$dir/copy" || failed "${fetch[0]} $*: the file is another" "$name"
}

# http.server prints the first line of what it is asked.
serve server --rsocket
for _ in 1 2 3; do
    get client --rsocket --pcap "$dir/pcap"
done
[ -s "$dir/pcap" ] || failed 'no RDMA was spoken' client server
# Clients of plain TCP are served, too, beside those.
get plain
get client --rsocket
stop server
! grep -q MPA "$dir/server.err" || failed 'the server saw an MPA Request' server

# Not where all have to speak TLS.
(umask 077 && echo 'try:00112233445566778899aabbccddeeff' >"$dir/psk")
tls=(env ANYWARP_TLS=require "ANYWARP_TLS_PSK=$dir/psk")
serve server --rsocket "${tls[@]}"
start plain "${fetch[@]}" "$dir/copy" "http://127.0.0.1:$port/blob"
ended plain 30
[ "$status" != 0 ] || failed 'a client without TLS was served' server plain
start client --rsocket "${tls[@]}" "${fetch[@]}" "$dir/copy" "http://127.0.0.1:$port/blob"
expect_status 'over TLS' client 30 0 server
stop server

# A client whose server speaks plain TCP finds out, comes again, and remembers it.
serve server
get client --rsocket
start client --rsocket python3 "$dir/fetch.py" "$dir/copy" "http://127.0.0.1:$port/blob"{,,}
expect_status 'three times from a plain server' client 60 0 server
cmp <(cat "$dir"/blob{,,}) "$dir/copy" || failed 'three times from a plain server: other bytes' client
stop server
[ "$(grep -ac '"MPA ID' "$dir/server.err")" = 2 ] || failed 'a plain address was not remembered' server

# Who says nothing is of plain TCP, too, after a second; and who begins like an MPA Request, but does
# not go on like one.
cat >"$dir/first.py" <<'END'
import socket, sys, time
address, role = ("127.0.0.1", int(sys.argv[2])), sys.argv[1]
if role == "server":
    listener = socket.create_server(address)
    for first in b"welcome", b"welcome", b"":
        peer, name = listener.accept()
        assert name[0] == "127.0.0.1" and peer.getpeername() == name
        peer.sendall(first)
        text = b""
        while more := peer.recv(100):
            text += more
        peer.sendall(text[::-1])
        peer.close()
else:
    peer = socket.create_connection(address, 30)
    if role == "listens":
        assert peer.recv(7, socket.MSG_WAITALL) == b"welcome"
    parts = [b"MPA ID", b" is", b" not this"] if role == "pretends" else [b"hello"]
    for part in parts:
        peer.sendall(part)
        time.sleep(0.1)
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(100, socket.MSG_WAITALL) == b"".join(parts)[::-1]
END
port=$(free_port)
start_server server "$port" --rsocket python3 "$dir/first.py" server "$port"
start client --rsocket python3 "$dir/first.py" listens "$port"
expect_status 'the server speaks first' client 30 0 server
start client python3 "$dir/first.py" listens "$port"
expect_status 'the server speaks first, by TCP' client 30 0 server
start client python3 "$dir/first.py" pretends "$port"
expect_status 'something like an MPA Request' client 30 0 server
expect_status 'a server of both' server 30 0 client

# A server of plain TCP may hang up on who does not speak its language.
cat >"$dir/curt.py" <<'END'
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
greeting = b""
while greeting != b"hello":
    peer, _ = listener.accept()
    greeting = peer.recv(5)
    if greeting == b"hello":
        peer.sendall(b"welcome")
    peer.close()
END
cat >"$dir/polite.py" <<'END'
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.sendall(b"hello")
assert peer.recv(7, socket.MSG_WAITALL) == b"welcome"
END
port=$(free_port)
start_server server "$port" python3 "$dir/curt.py" "$port"
start client --rsocket python3 "$dir/polite.py" "$port"
expect_status 'a server that hangs up on RDMA' client 30 0 server
expect_status 'the server itself' server 30 0 client

# With RDMAV_FORK_SAFE, and where no rule is for the program, nothing changes.
serve server
RDMAV_FORK_SAFE=1 get client --rsocket
mkdir "$dir/rules"
printf '# comment\nnobody AF_INET SOCK_STREAM *\n' >"$dir/rules/preload_config"
ANYWARP_RSOCKET_CONF=$dir/rules get client --rsocket
stop server
! grep -q MPA "$dir/server.err" || failed 'a rule or RDMAV_FORK_SAFE was not obeyed' server
printf 'CUR * stream *\npYTHon inet SOCK_STREAM IPPROTO_TCP\n' >"$dir/rules/preload_config"
export ANYWARP_RSOCKET_CONF=$dir/rules
serve server --rsocket
rm -f "$dir/pcap"
get client --rsocket --pcap "$dir/pcap"
[ -s "$dir/pcap" ] || failed 'a rule was not found' client server
stop server
unset ANYWARP_RSOCKET_CONF

# Nobody listens.
port=$(free_port)
start client --rsocket "${fetch[@]}" "$dir/copy" "http://127.0.0.1:$port/"
ended client 30
[[ $status = 7 || ${fetch[0]}$status = python31 ]] || failed "nobody listens: exit status $status" client

# Who was refused comes by RDMA when the server is there, also on the same socket.
cat >"$dir/again.py" <<'END'
import errno, select, socket, sys
address = ("127.0.0.1", int(sys.argv[1]))
for bound in False, True:
    peer = socket.socket()
    if bound:
        peer.bind(("127.0.0.1", 0))
    peer.setblocking(False)
    for _ in range(2):
        result = peer.connect_ex(address)
        if result == errno.EINPROGRESS:
            select.select([], [peer], [], 30)
    assert result == errno.ECONNREFUSED
    peer.setblocking(True)
    listener = socket.create_server(address)
    peer.connect(address)
    other, _ = listener.accept()
    peer.sendall(b"x" * 5000)
    assert len(other.recv(5000, socket.MSG_WAITALL)) == 5000
    for end in peer, other, listener:
        end.close()
END
rm -f "$dir/pcap"
port=$(free_port)
start client --rsocket --pcap "$dir/pcap" python3 "$dir/again.py" "$port"
expect_status 'refused, and again' client 60 0
[ "$(stat -c %s "$dir/pcap" || echo 0)" -gt 10000 ] || failed 'refused, and again: not by RDMA' client

if command -v nc >/dev/null && nc -h 2>&1 | grep -q OpenBSD; then
    port=$(free_port)
    start_server server "$port" --rsocket nc -l -N 127.0.0.1 "$port"
    start client --rsocket sh -c 'exec nc -N 127.0.0.1 "$1" <"$2"' sh "$port" "$dir/blob"
    expect_status nc client 60 0 server
    expect_status 'nc -l' server 20 0 client
    cmp "$dir/blob" "$dir/server" || failed 'nc: the bytes are others'
fi

if command -v iperf3 >/dev/null; then
    for manner in '' '-R' '-P 4' '--bidir'; do
        port=$(free_port)
        start_server server "$port" --rsocket iperf3 -s -1 -p "$port" -B 127.0.0.1
        # shellcheck disable=SC2086
        start client --rsocket iperf3 -c 127.0.0.1 -p "$port" -n 20M $manner
        expect_status "iperf3 $manner" client 60 0 server
        expect_status "iperf3 -s, $manner" server 20 0 client
    done
fi

# Threads that are cancelled wherever they are, as those of newer iperf3.
if ! sanitized; then
    port=$(free_port)
    start cancelled --rsocket "$BUILDDIR/tests/apps/cancelled" "$port"
    expect_status 'threads that are cancelled' cancelled 120 0
fi

# What TCP answers.
for manner in '' --rsocket; do
    port=$(free_port)
    start sockets ${manner:+"$manner"} "$BUILDDIR/tests/apps/sockets" "$port"
    expect_status "sockets $manner" sockets 120 0
done

# The library of that name that rdma-core brings, over our librdmacm.
theirs=$(compgen -G '/usr/lib/*/rsocket/librspreload.so' | head -n 1)
if [ -n "$theirs" ] && command -v iperf >/dev/null && ! sanitized; then
    port=$(free_port)
    rm -f "$dir/pcap"
    start_server server "$port" env LD_PRELOAD="$theirs" iperf -s -p "$port" -B 127.0.0.1
    start client --pcap "$dir/pcap" env LD_PRELOAD="$theirs" iperf -c 127.0.0.1 -p "$port" -n 20M
    expect_status "iperf on rdma-core's librspreload" client 60 0 server
    grep -q '20.0 MBytes' "$dir/client" || failed "rdma-core's librspreload: not all arrived" client server
    [ "$(stat -c %s "$dir/pcap" || echo 0)" -gt 20000000 ] ||
        failed "rdma-core's librspreload did not speak RDMA" client server
    stop server
fi

# 100 connections at a time, each answered with its own bytes, and one side killed.
cat >"$dir/many.py" <<'END'
import hashlib, os, selectors, socket, sys
address, role = ("127.0.0.1", int(sys.argv[2])), sys.argv[1]
if role == "server":
    selector = selectors.EpollSelector()
    listener = socket.create_server(address, backlog=200)
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                peer, _ = listener.accept()
                peer.setblocking(False)
                selector.register(peer, selectors.EVENT_READ)
                continue
            try:
                data = key.fileobj.recv(65536)
            except BlockingIOError:
                continue
            except ConnectionError:
                data = b""
            if not data:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                continue
            key.fileobj.setblocking(True)
            key.fileobj.sendall(data)
            key.fileobj.setblocking(False)
peers = [socket.create_connection(address, 30) for _ in range(100)]
texts = [os.urandom(2000 + i) for i in range(100)]
for round in range(3):
    for peer, text in zip(peers, texts):
        peer.sendall(text)
    for peer, text in zip(peers, texts):
        got = b""
        while len(got) < len(text):
            more = peer.recv(65536)
            assert more, "the server has gone"
            got += more
        assert got == text
print("echoed", flush=True)
if role == "stays":
    assert peers[0].recv(1) == b""
    print("heard", flush=True)
END
port=$(free_port)
start_server server "$port" --rsocket python3 "$dir/many.py" server "$port"
start killed --rsocket python3 "$dir/many.py" stays "$port"
within 60 lines_at_least killed 1 || failed '100 connections' killed server
kill -KILL "${pids[killed]}"
ended killed 10
start client --rsocket python3 "$dir/many.py" client "$port"
expect_status 'a peer was killed' client 60 0 server
start stays --rsocket python3 "$dir/many.py" stays "$port"
within 60 lines_at_least stays 1 || failed '100 connections again' stays server
kill -KILL "${pids[server]}"
ended server 10
ended stays 30
grep -q -e heard -e ConnectionResetError "$dir/stays" "$dir/stays.err" ||
    failed 'the server was killed, and its peer did not hear' stays

# The server is in redis-tools, too; the package of its name would start it. From 8 on it asks
# AddressSanitizer for the size of what is not of it.
if command -v redis-check-rdb >/dev/null &&
    { ! sanitized || redis-benchmark --version | grep -q ' [67]\.'; }; then
    port=$(free_port)
    ln -s "$(command -v redis-check-rdb)" "$dir/redis-server"
    start_server server "$port" --rsocket "$dir/redis-server" --port "$port" --bind 127.0.0.1 --save '' \
        --dir "$dir"
    start client --rsocket redis-benchmark -p "$port" -n 5000 -c 100 -q -t set,get,lrange_100
    expect_status redis-benchmark client 60 0 server
    base64 -w 0 <"$dir/blob" >"$dir/value"
    start client --rsocket sh -c 'exec redis-cli -p "$1" -x set key <"$2"' sh "$port" "$dir/value"
    expect_status 'redis-cli set' client 30 0 server
    start client --rsocket redis-cli -p "$port" bgsave
    expect_status 'redis-cli bgsave' client 30 0 server
    within 20 test -s "$dir/dump.rdb" || failed 'BGSAVE saved nothing' server client
    # After BGSAVE, by RDMA and by TCP; what it saved is read by another server.
    for manner in --rsocket '' again; do
        if [ "$manner" = again ]; then
            stop server
            port=$(free_port)
            start_server server "$port" "$dir/redis-server" --port "$port" --bind 127.0.0.1 --save '' \
                --dir "$dir"
            manner=
        fi
        start client ${manner:+"$manner"} redis-cli -p "$port" --raw get key
        expect_status "redis-cli $manner get" client 30 0 server
        cmp "$dir/value" <(head -c -1 "$dir/client") || failed "redis, $manner: another value" server
    done
    stop server
fi

finish
