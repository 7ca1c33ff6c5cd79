#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp ping tells apart what keeps a connection from coming about, with the time of each step; and
# "doctor --connect" says the same. In a network of its own, where there is an address without a host.

if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ip rping ucmatose python3
no_test_variables
ip link set lo up || exit 99
# Nobody is at the other end of the wire; who sends to an address there is told so by the kernel.
ip link add near type veth peer name far && ip addr add 192.0.2.1/24 dev near &&
    ip link set near up && ip link set far up || skip 'no veth here'

ms='[0-9]+\.[0-9]{3} ms'

# expect STATUS PATTERN ARGUMENT...: of anywarp; what it says in one line.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$(timeout 30 "$ANYWARP" "$@" 2>&1)
    status=$?
    if [ $status != "$want" ] || ! tr -s ' \n' ' ' <<<"$output" | grep -qaE -- "$pattern"; then
        failed "$*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}

# Listeners of other kinds, each at a port of its own, which it prints: one that is silent, one that
# answers in its own protocol, one that hangs up, one whose queue of TCP is full, one that rejects, as
# MPA has it, with three bytes of private data, one that does so after it has hung up on revision 2.
cat >"$dir/others.py" <<'PYTHON'
import os, socket, sys, threading

FLAG_REJECT, KEY = 0x20, b"MPA ID Rep Frame"

def listener(backlog):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(backlog)
    return s

def each(s, answer):
    while True:
        answer(s.accept()[0])

def silent(c):
    kept.append(c)

def other(c):
    c.recv(1000)
    c.sendall(b"SSH-2.0-nobody\r\nand more of it")
    kept.append(c)

def hangs_up(c):
    c.recv(1000)
    c.close()

def rejects(c):
    revision = c.recv(1000)[17]
    c.sendall(KEY + bytes([FLAG_REJECT, revision, 0, 3]) + b"no.")
    c.close()

def old(c):
    request = c.recv(1000)
    if request[17] == 1:
        c.sendall(KEY + bytes([0, 1, 0, 0]))
    c.close()

kept = []
for answer in silent, other, hangs_up, rejects, old:
    s = listener(8)
    print(answer.__name__, s.getsockname()[1], flush=True)
    threading.Thread(target=each, args=(s, answer), daemon=True).start()
full = listener(0)
for _ in range(4):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(full.getsockname())
    kept.append(c)
print("full", full.getsockname()[1], flush=True)
sys.stdin.read()
PYTHON
mkfifo "$dir/stdin"
python3 "$dir/others.py" <"$dir/stdin" >"$dir/others" 2>"$dir/others.err" &
pids[others]=$!
exec 9>"$dir/stdin"
within 20 grep -q full "$dir/others" || failed 'the listeners' others
port_of()
{
    sed -n "s/^$1 //p" "$dir/others"
}

# It connects.
port=$(free_port)
start_server server "$port" rping -s -P -p "$port"
expect 0 "^name $ms 127.0.0.1, port $port: 1 address tcp $ms 127.0.0.1:$port: connected from 127.0.0.1:[0-9]+ mpa $ms accepted: revision 2, CRC off, at most [0-9]+ reads out and [0-9]+ in, by anywarp It connects. $" \
    ping 127.0.0.1 "$port"
ANYWARP_CRC=on expect 0 ', CRC on, .* It connects' ping 127.0.0.1 "$port"
stop server
expect 0 "mpa $ms accepted: revision 1, .* It connects" ping 127.0.0.1 "$(port_of old)"

# It does not: each reason is another.
no='It does not connect. $'
free=$(free_port)
expect 1 "tcp $ms 127.0.0.1:$free: nobody listens there: TCP refused it -> does the server run.* $no" \
    ping 127.0.0.1 "$free"
expect 1 "nobody answered TCP in 300 ms -> is this the address .* $no" \
    ping --timeout 0.3 127.0.0.1 "$(port_of full)"
expect 1 "tcp [2-4][0-9]{3}\.[0-9]* ms 192.0.2.9:7471: no host has this address, or no route leads there: EHOSTUNREACH" \
    ping -t 10 192.0.2.9 7471
expect 1 'tcp .*: ENETUNREACH, .* -> ip route get' ping 198.51.100.1 7471
expect 1 "connected from .* mpa 3[0-9]{2}\.[0-9]* ms TCP is connected, but nobody answered the MPA Request in 300 ms -> a server of another protocol" \
    ping -t 0.3 127.0.0.1 "$(port_of silent)"
expect 1 "mpa $ms it does not speak iWARP: .*, \"SSH-2.0-nobody\.\.\" -> is this the port" \
    ping 127.0.0.1 "$(port_of other)"
expect 1 "mpa $ms it closed the connection before it answered -> .*TLS" \
    ping 127.0.0.1 "$(port_of hangs_up)"
expect 1 "mpa $ms its program rejected it, with 3 bytes of private data -> an RDMA program is there" \
    ping 127.0.0.1 "$(port_of rejects)"
expect 1 "^name $ms no.such.host.invalid, port 7471: .* -> getent ahosts HOST tells .* $no" \
    ping no.such.host.invalid 7471
expect 1 "tcp $ms \[::1\]:$free: nobody listens there" ping '[::1]' "$free"
expect 1 'tcp .* -> a link-local address needs its interface' ping fe80::1 "$free"
for port in 0 65536 70000 99999999999999999999 ''; do
    expect 2 "port $port: should be 1 to 65535" ping 127.0.0.1 "$port"
    expect 2 "^anywarp: doctor: --connect 127.0.0.1:$port: should be HOST:PORT" doctor --connect "127.0.0.1:$port"
done

# An RDMA program that takes none of its events: first its silence, then its backlog.
cat >"$dir/idle.py" <<'PYTHON'
import ctypes, socket, struct, sys, time

cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = ctypes.c_void_p(cm.rdma_create_event_channel())
listener = ctypes.c_void_p()
assert cm.rdma_create_id(channel, ctypes.byref(listener), None, 0x106) == 0
address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", int(sys.argv[1]), bytes([127, 0, 0, 1]))
assert cm.rdma_bind_addr(listener, address) == 0
assert cm.rdma_listen(listener, 1) == 0
time.sleep(100)
PYTHON
port=$(free_port)
start_server idle "$port" python3 "$dir/idle.py" "$port"
"$ANYWARP" ping -t 20 127.0.0.1 "$port" >"$dir/first" 2>"$dir/first.err" &
pids[first]=$!
within 10 grep -q '^tcp' "$dir/first" || failed 'the first ping' first
within 10 test "$("$ANYWARP" ping 127.0.0.1 "$port" | grep -c 'backlog is full')" = 1 ||
    failed "no full backlog" first
stop first
stop idle

# The addresses of a host in turn.
if [ "$(getent ahosts localhost | awk '$2 == "STREAM"' | wc -l)" -gt 1 ]; then
    port=$(free_port)
    start_server server "$port" rping -s -P -a 127.0.0.1 -p "$port"
    expect 0 "localhost, port $port: 2 addresses .*127.0.0.1:$port: connected .* It connects" \
        ping localhost "$port"
    stop server
fi

# The doctor.
port=$(free_port)
start_server server "$port" rping -s -P -p "$port"
expect 0 "ok tcp, in $ms: 127.0.0.1:$port: connected .* ok mpa, in $ms: accepted: .* Nothing is in the way" \
    doctor --connect 127.0.0.1:"$port"
stop server
if ip -6 -o address show dev lo | grep -q ::1; then
    start_server server "$port" rping -s -P -a ::1 -p "$port"
    expect 0 "ok tcp, in $ms: \[::1\]:$port: connected" doctor -c "[::1]:$port"
    stop server
fi
expect 1 "warn tcp, .*nobody listens there.* FAIL no connection to 127.0.0.1, port $port" \
    doctor --connect 127.0.0.1:"$port"

for wrong in '' '127.0.0.1' '1 2 3' '--timeout x 1 2' '--timeout 0 1 2' '--none 1 2'; do
    # shellcheck disable=SC2086
    expect 2 . ping $wrong
done
expect 2 'should be HOST:PORT' doctor --connect localhost
expect 2 'should be HOST:PORT' doctor --connect :7
exec 9>&-
finish
