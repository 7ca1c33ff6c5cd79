#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp stat and anywarp top on a live pair of rping, and programs whose statistics have no place.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping python3

export ANYWARP_STATS=$dir/stats

# Servers that wait: with one connection each that is open.
port=$(free_port)
start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 1000000 -S 100
start client rping -c -a 127.0.0.1 -p "$port" -C 1000000 -S 100

connected()
{
    [ "$("$ANYWARP" stat | grep -cE '^process [0-9]+ command rping state alive qp 1 connected 1 in ')" = 2 ]
}
within 20 connected || failed "stat does not show the two ends" server client

"$ANYWARP" stat --json >"$dir/json" || failed "stat --json: status $?"
"$ANYWARP" stat --json "${pids[client]}" >"$dir/one" || failed "stat --json PID: status $?"
cat >"$dir/check.py" <<'PYTHON'
import json, sys

port, server, client = sys.argv[2:5]
processes = json.load(open(sys.argv[1] + "/json"))
one, = json.load(open(sys.argv[1] + "/one"))
assert sorted(p["pid"] for p in processes) == sorted([int(server), int(client)]), processes
assert one["pid"] == int(client)
for p in processes:
    assert p["command"] == "rping" and p["state"] == "alive" and p["devices"], p
    assert p["objects"]["qp"] == len(p["qps"]) == 1 and p["objects"]["mr"] >= 3, p["objects"]
    q, = p["qps"]
    assert q["state"] == "RTS" and q["mpa"] == 2 and q["crc"] is False and q["cause"] is None, q
    end = q["peer"] if p["pid"] == int(client) else q["local"]
    assert end == "127.0.0.1:" + port and q["active"] == (p["pid"] == int(client)), q
    assert len(p["cqs"]) == 1 and p["cqs"][0]["completions"] > 0, p["cqs"]
    assert q["counters"]["iwOutRdmaSends"] > 0 and q["counters"]["iwInRdmaSends"] > 0
    assert p["errors"] == []
served = next(p for p in processes if p["pid"] == int(server))["counters"]
assert served["iwOutRdmaReads"] > 0 and served["iwOutRdmaWrites"] > 0, served
PYTHON
python3 "$dir/check.py" "$dir" "$port" "${pids[server]}" "${pids[client]}" 2>"$dir/check" ||
    failed "stat --json" check json

# One line a process; all of it by name, by number, or for all.
[ "$("$ANYWARP" stat | wc -l)" = 2 ] || failed "stat: not a line a process"
for how in rping --full; do
    [ "$("$ANYWARP" stat "$how" | grep -c '^  qp 0x[0-9a-f]* state RTS ')" = 2 ] || failed "stat $how"
done
[ "$("$ANYWARP" stat "${pids[server]}" | grep -c "^  listener 127\.0\.0\.1:$port waiting 0/[1-9]")" = 1 ] ||
    failed "stat: no listener"
"$ANYWARP" stat "${pids[client]}" >"$dir/full" || failed "stat PID"
[ "$(grep -c '^process ' "$dir/full")" = 1 ] || failed "stat PID: not one process" full
! grep -qE '^ +(objects|in|out) (.* )?0( |$)' "$dir/full" || failed "stat shows what is 0" full
[ "$("$ANYWARP" stat --errors)" = "No error of a connection." ] || failed "stat --errors"

# In no terminal the table comes once.
"$ANYWARP" top --delay 0.2 >"$dir/top" </dev/null || failed "top: status $?"
grep -qE '^anywarp: 2 processes, 2 QPs, 0 errors; ' "$dir/top" || failed "top: no summary" top
[ "$(grep -cE "^ +[0-9]+ rping +0x[0-9a-f]{6} RC +iWARP +RTS +127\.0\.0\.1:[0-9]+ +[1-9]" "$dir/top")" = 2 ] ||
    failed "top: not two busy QPs" top

# In a terminal it is drawn again and again; the terminal is as before at any end.
cat >"$dir/terminal.py" <<'PYTHON'
import fcntl, os, pty, select, signal, struct, sys, termios, time

def top(end, status):
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 60, 0, 0))
    before = termios.tcgetattr(child)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(child, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(child, fd)
        os.execv(sys.argv[1], [sys.argv[1], "top", "-d", "0.1"])
    seen, limit = b"", time.monotonic() + 20
    def read():
        nonlocal seen
        if select.select([parent], [], [], 0.05)[0]:
            seen += os.read(parent, 65536)
    while seen.count(b"\033[H") < 3 and time.monotonic() < limit:
        read()
    pictures = seen.count(b"\033[H")
    assert not termios.tcgetattr(child)[3] & termios.ICANON
    end(parent, pid)
    while True:
        read()
        done, how = os.waitpid(pid, os.WNOHANG)
        if done or time.monotonic() > limit:
            break
    while select.select([parent], [], [], 0)[0]:
        read()
    assert done, "it does not end"
    assert os.waitstatus_to_exitcode(how) == status, how
    assert termios.tcgetattr(child) == before, "the terminal is not as before"
    assert pictures >= 3 and b"2 QPs" in seen and seen.rstrip().endswith(b"\033[?1049l"), seen
    longest = max(len(line) for line in seen.split(b"\033[H")[1].replace(b"\033[K", b"").split(b"\r\n"))
    assert longest <= 60, longest

top(lambda fd, pid: os.write(fd, b"xq"), 0)
for sig in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
    top(lambda fd, pid: os.kill(pid, sig), -sig)
top(lambda fd, pid: os.write(fd, b"\003"), -signal.SIGINT)
PYTHON
python3 "$dir/terminal.py" "$ANYWARP" 2>"$dir/terminal" || failed "top in a terminal" terminal

# One that is killed stays to be seen, until it is forgotten.
pid=${pids[client]}
kill -KILL "$pid"
{ expect_status "killed client" client 10 137; } 2>/dev/null
ended server 10
[ "$("$ANYWARP" stat --all | grep -c "^process $pid .* state ended ")" = 1 ] ||
    failed "stat --all does not show the killed process"
"$ANYWARP" stat | grep -q '^Of [12] that failed' || failed "stat does not tell of the killed process"
"$ANYWARP" stat --clear >/dev/null
[ -z "$(ls "$ANYWARP_STATS")" ] || failed "files are left: $(ls "$ANYWARP_STATS")"

# expect_use STATUS PATTERN ARGUMENT...
expect_use()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$("$ANYWARP" "$@" 2>&1 </dev/null)
    status=$?
    if [ $status != "$want" ] || ! grep -qE -- "$pattern" <<<"$output"; then
        failed "$*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}
expect_use 0 '^No process of this user runs on anywarp' stat
expect_use 0 '^\[\]$' stat -j
expect_use 1 'no statistics of process 1$' stat 1
expect_use 1 'no statistics of process x$' stat x
expect_use 1 'no errors of process x$' stat --errors x
expect_use 2 'no process ID' stat 0
expect_use 2 'no process ID' stat ''
expect_use 2 'one process ID or name' stat 1 2
expect_use 2 '.' stat -x
expect_use 2 'delay' top -d 0
expect_use 2 'no argument' top 1

# Whatever becomes of the statistics, programs run.
ping()
{
    local port
    port=$(free_port)
    start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 2
    start client rping -c -a 127.0.0.1 -p "$port" -C 2
    expect_status "$1" client 30 0 server
    expect_status "$1" server 30 0 client
}
# told PATTERN: who names a folder for them hears that there are none.
told()
{
    grep -q "^anywarp: no statistics in $ANYWARP_STATS: $1\$" "$dir/client.err" || failed "not told: $1" client
}
named=$ANYWARP_STATS
mkdir -m 0755 "$dir/open" && ANYWARP_STATS=$dir/open && ping "a directory that others may enter"
told "others may use it, or it is another's"
[ -z "$(ls "$dir/open")" ] || failed "a file in a directory that others may enter"
ln -s "$dir/open" "$dir/link" && ANYWARP_STATS=$dir/link && ping "a symbolic link"
told 'Not a directory'
ANYWARP_STATS=/proc/nowhere && ping "no directory"
told 'No such file or directory'
ANYWARP_STATS=off && ping "off"
! grep -q statistics "$dir/client.err" || failed "off is told" client
ANYWARP_STATS=$named
(ulimit -f 8 && ping "a limit on the size of files" && [ $failures = 0 ]) || failures=1
ping "the usual"
[ -z "$(ls "$ANYWARP_STATS")" ] || failed "files are left: $(ls "$ANYWARP_STATS")"

# A full file system; only the super-user of a namespace of mounts can make one.
full()
{
    mkdir -p "$dir/full" && mount -t tmpfs -o size=16k,mode=0700 none "$dir/full" || return
    export ANYWARP_STATS=$dir/full
    ping "a full file system"
    umount "$dir/full"
    [ $failures = 0 ]
}
export -f full ping
if unshare -rm true 2>/dev/null; then
    unshare -rm bash -c ". '$SRCDIR/tests/apps/lib.sh'; full" || failed "a full file system"
fi

finish
