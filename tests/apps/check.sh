#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp check: each small wrong program has the finding of its name, in the line that says so; of
# programs that are right, nothing is said.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3

# ---- options ----

"$ANYWARP" check --list >"$dir/list" || failed "--list" list
while read -r name _; do
    "$ANYWARP" check --explain "$name" >"$dir/page" 2>&1 && grep -q '/\* right' "$dir/page" &&
        grep -q '/\* wrong' "$dir/page" || failed "no page of $name with wrong and right code" page
    [ -f "$SRCDIR/tests/check/wrong/$name.c" ] || failed "no program is wrong so: $name"
done <"$dir/list"

# expect STATUS PATTERN OPTION...
expect()
{
    local want=$1 pattern=$2
    shift 2
    "$ANYWARP" check "$@" >"$dir/out" 2>"$dir/out.err"
    status=$?
    [ $status = "$want" ] && grep -qE -- "$pattern" "$dir/out.err" || failed "check $*: $status" out
}
expect 2 'which command'
expect 2 'is none of text, json, junit, sarif' --format html true
expect 2 'is no exit status' --error-exit 256 true
expect 2 'is no exit status' --error-exit x true
expect 2 'No such file' --suppress "$dir/nowhere" true
expect 2 'there is no such finding' --explain nothing
expect 1 'nowhere/file' --output "$dir/nowhere/file" true
expect 127 'command not found' no-such-program
expect 7 'exit status 7, 0 errors, 0 warnings, 0 notes' sh -c 'exit 7'
expect 143 'exit status 143' sh -c 'kill $$'

# ---- wrong programs ----

wrong=$BUILDDIR/tests/check/wrong
# has JSON PROGRAM LINE [FINDING]: the finding is there, and, if LINE is not 0, one of its frames is in
# that line; beside it, and the other one, there are notes alone.
has()
{
    python3 - "$@" <<'EOF'
import json, sys
report, program, line = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
name = program.split('-')[0]
found = [f for f in report['findings'] if f['name'] == name]
lines = [s['line'] for f in found for s in f['frames'] if (s['source'] or '').endswith(f'/{program}.c')]
others = [f['name'] for f in report['findings'] if f['name'] not in (name, *sys.argv[4:]) and f['level'] != 'note']
assert found, f'not found; {[f["name"] for f in report["findings"]]}'
assert not line or line in lines, f'line {line} is not in {lines}'
assert not others, f'and {others}'
EOF
}

have_lines=$(command -v addr2line)
for file in "$SRCDIR"/tests/check/wrong/*.c; do
    name=$(basename "$file" .c)
    [ "$name" != kit ] || continue
    line=$(grep -n '/\* wrong \*/' "$file" | cut -d: -f1)
    also=$(sed -n 's|.* also: \([a-z_]*\) \*/.*|\1|p' "$file")
    [ -n "$have_lines" ] || line=0
    timeout -k 5 60 "$ANYWARP" check --format json --output "$dir/$name" "$wrong/$name" \
        >"$dir/out" 2>"$dir/out.err"
    status=$?
    has "$dir/$name" "$name" "${line:-0}" ${also:+"$also"} 2>"$dir/has.err" ||
        failed "$name: $(tail -n 1 "$dir/has.err")" "$name" out
    level=$(awk -v name="${name%-*}" '$1 == name { print $2 }' "$dir/list")
    { [ "$level" = error ] && [ $status != 99 ]; } || { [ "$level" != error ] && [ $status = 99 ]; } &&
        failed "$name is $level: status $status" "$name" out
    ! grep -qaE 'runtime error:|ERROR: [A-Za-z]*Sanitizer' "$dir/out.err" ||
        failed "$name: sanitizer report" out
done

# A program of which there is more to be said has all of it; the error is what counts.
expect 99 '^anywarp: error: cq_too_small, cq_too_small [0-9]+, CQ no\. 1$' "$wrong/cq_too_small"
expect 5 ' 1 error, ' --error-exit 5 "$wrong/cq_too_small"
expect 0 ' 1 error, ' --error-exit 0 "$wrong/cq_too_small"

# A file that may not grow takes no findings, which is told of, and ends no program.
said=$(ulimit -f 0 && ANYWARP_CHECK=$dir/full "$wrong/cq_too_small" 2>&1)
status=$?
[ $status = 0 ] &&
    [[ $said == *"anywarp: ANYWARP_CHECK=$dir/full: File too large: findings are missing there" ]] ||
    failed "a file that may not grow: status $status, $said"

# ---- formats ----

"$ANYWARP" check --format junit --output "$dir/junit" "$wrong/cq_too_small" 2>/dev/null
"$ANYWARP" check --format sarif --output "$dir/sarif" "$wrong/cq_too_small" 2>/dev/null
python3 - "$dir/junit" "$dir/sarif" <<'EOF' 2>"$dir/formats.err" || failed "formats" formats junit sarif
import json, sys
from xml.etree import ElementTree
suite = ElementTree.parse(sys.argv[1]).getroot()
failed = [c.get('name') for c in suite.iter('testcase') if c.find('failure') is not None]
assert failed == ['cq_too_small'] and suite.get('failures') == '1', failed
run = json.load(open(sys.argv[2]))['runs'][0]
rules = {r['id'] for r in run['tool']['driver']['rules']}
assert [r['ruleId'] for r in run['results']] == ['cq_too_small'] and 'cq_too_small' in rules
assert run['results'][0]['level'] == 'error' and run['results'][0]['locations']
EOF

# ---- suppressions ----

suppress()
{
    printf '%s\n' "$@" >"$dir/rules"
    "$ANYWARP" check --suppress "$dir/rules" "$wrong/cq_too_small" >"$dir/out" 2>"$dir/out.err"
}
suppress '# a comment' '' 'cq_*' && grep -q ' 0 errors, .* 1 suppressed' "$dir/out.err" ||
    failed "a finding by its name" out
suppress 'cq_too_small main */cq_too_small cq_too_smal?' || failed "by function, file, program" out
suppress 'cq_too_small nobody' && failed "a pattern that nothing matches" out
suppress 'lost_wakeup' && failed "another finding" out

# ---- nothing ----

# nothing NAME [FINDING...]: but for notes and these, nothing is said.
nothing()
{
    local file=$dir/$1.json name=$1
    shift
    python3 - "$file" "$@" <<'EOF' 2>"$dir/nothing.err" || failed "$name: $(tail -n 1 "$dir/nothing.err")"
import json, sys
said = {f['name'] for f in json.load(open(sys.argv[1]))['findings'] if f['level'] != 'note'}
assert said <= set(sys.argv[2:]), said
EOF
}

# quiet NAME COMMAND...: a command of its own.
quiet()
{
    local name=$1
    shift
    timeout -k 5 60 "$ANYWARP" check --format json --output "$dir/$name.json" "$@" \
        >"$dir/$name" 2>"$dir/$name.err" || failed "$name: status $?" "$name"
    nothing "$name"
}

# both NAME PORT SERVER -- CLIENT: both ends; what is true of one is in $known.
both()
{
    local name=$1 port=$2 server=() pid i
    shift 2
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    timeout -k 5 60 "$ANYWARP" check --error-exit 0 --format json --output "$dir/$name-server.json" \
        "${server[@]}" >"$dir/$name-server" 2>"$dir/$name-server.err" &
    pid=$!
    pids[$name]=$pid
    wait_listening "$port" "$pid" || failed "$name: the server does not listen" "$name-server"
    timeout -k 5 60 "$ANYWARP" check --error-exit 0 --format json --output "$dir/$name-client.json" "$@" \
        >"$dir/$name-client" 2>"$dir/$name-client.err" ||
        failed "$name: the client's status $?" "$name-client" "$name-server"
    for ((i = 0; i < 30; i++)); do # then it is one that serves for ever
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill "$pid" 2>/dev/null
    wait "$pid"
    unset "pids[$name]"
    # shellcheck disable=SC2086
    nothing "$name-server" $known
    # shellcheck disable=SC2086
    nothing "$name-client" $known
}

known=
quiet right "$BUILDDIR/tests/check/right"
quiet right_datagrams "$BUILDDIR/tests/check/right_datagrams"
known=
ex=$BUILDDIR/examples/.libs
seq 1 20000 >"$dir/numbers"
at=127.0.0.1
# pair NAME SERVER-COMMAND -- CLIENT-COMMAND, with PORT for the port; not if one is not installed
pair()
{
    local name=$1 port
    shift
    port=$(free_port)
    command -v "$1" >/dev/null || return
    both "$name" "$port" "${@//PORT/$port}"
}
known=beyond_iwarp # atomics, or immediate data
pair counter "$ex/counter" -p PORT -c 1 -- "$ex/counter" -p PORT -n 100 -i 5 $at
pair bulk_write "$ex/bulk_write" -p PORT -- "$ex/bulk_write" -p PORT -n 99 $at
known=
pair endpoint "$ex/endpoint" -p PORT -- "$ex/endpoint" -p PORT $at hello
pair ping "$ex/ping" -p PORT -- "$ex/ping" -p PORT $at
pair event_loop "$ex/event_loop" -p PORT -c 1 -- "$ex/ping" -p PORT -n 100 $at
pair srq_server "$ex/srq_server" -p PORT -c 1 -- "$ex/ping" -p PORT -n 100 $at
pair rs_echo "$ex/rs_echo" -p PORT -c 1 -- "$ex/rs_echo" -p PORT $at hello
pair read "$ex/read_server" -p PORT -c 1 "$dir/numbers" -- "$ex/read_client" -p PORT $at
pair rc_ping "$ex/rc_ping" PORT -- "$ex/rc_ping" PORT $at

pair rping rping -s -a $at -p PORT -- rping -c -a $at -p PORT -C 20 -v
pair ucmatose ucmatose -b $at -p PORT -- ucmatose -s $at -b $at -p PORT
pair rdma_client rdma_server -p PORT -- rdma_client -s $at -p PORT
for test in ib_write_bw ib_read_bw ib_send_lat ib_write_lat ib_read_lat; do
    pair $test $test -R -F -p PORT -n 200 -- $test -R -F -p PORT -n 200 $at
done
# run_iter_bw_server() in perftest_resources.c posts a Write of ctrl_buf[], the credits, and sets it
# anew before it has polled the completion of the one before.
known=send_changed
pair ib_send_bw ib_send_bw -R -F -p PORT -n 2000 -- ib_send_bw -R -F -p PORT -n 2000 $at
known=
pair ibv_rc_pingpong ibv_rc_pingpong -g 1 -p PORT -- ibv_rc_pingpong -g 1 -p PORT $at
pair ibv_srq_pingpong ibv_srq_pingpong -g 1 -e -p PORT -- ibv_srq_pingpong -g 1 -e -p PORT $at
pair fi_pingpong fi_pingpong -p verbs -e msg -I 20 -B PORT -- fi_pingpong -p verbs -e msg -I 20 -P PORT $at
known=late_receive # rd_server_def() in rdma.c posts again what it has polled; its client does not wait
pair qperf qperf -lp PORT -- qperf -lp PORT -cm1 -t 1 $at rc_lat rc_bw
known=
fio=(fio --ioengine=rdma --port=PORT --bs=64k --size=1m)
for verb in write read send; do
    # A server of engines/rdma.c posts receives as its jobs come to it; the client does not wait.
    [ $verb != send ] || known=late_receive
    pair fio_$verb "${fio[@]}" --name=server --rw=read -- "${fio[@]}" --name=client --rw=write \
        --hostname=$at --verb=$verb --iodepth=4
done

finish
