#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The small examples: both roles over IPv4 and IPv6, many clients at once, wrong arguments, peers
# that are not there, are something else, or are killed.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"

# Not what libtool has put before them: that runs other programs, which leak.
programs=$BUILDDIR/examples/.libs
no_leaks=use_sigaltstack=0:detect_leaks=1

addresses=(127.0.0.1)
! grep -qs '^0*1 ' /proc/net/if_inet6 || addresses+=(::1)

# expect_text WHAT NAME PATTERN: a line on standard output is like that; none is wanted by ''.
expect_text()
{
    if [ -z "$3" ]; then
        [ ! -s "$dir/$2" ] || failed "$1: wanted no output" "$2"
        return
    fi
    grep -qE -- "$3" "$dir/$2" || failed "$1: no line like \"$3\"" "$2"
}

# expect_error WHAT NAME PATTERN: a line on standard error is like that.
expect_error()
{
    grep -qE -- "$3" "$dir/$2.err" || failed "$1: no error like \"$3\"" "$2"
}

# expect_silence WHAT NAME: nothing on standard error.
expect_silence()
{
    [ ! -s "$dir/$2.err" ] || failed "$1: a message" "$2"
}

# serve NAME OPTION...: on a new $port, at every address
serve()
{
    local name=$1
    shift
    port=$(free_port)
    start_server server "$port" "$programs/$name" -p "$port" "$@"
}

# ask NAME ADDRESS ARGUMENT...: a client, options first, of the server at $port
ask()
{
    local name=$1
    shift
    start client "$programs/$name" -p "$port" "$@"
}

# pair SERVER OPTIONS CLIENT ARGUMENTS CLIENT-TEXT SERVER-TEXT: in ARGUMENTS @ is the address. Both
# end well, say so, and leak nothing.
pair()
{
    local server=$1 server_options=$2 client=$3 arguments=$4 address what
    for address in "${addresses[@]}"; do
        what="$server and $client ${arguments/@/$address}"
        # shellcheck disable=SC2086
        {
            ASAN_OPTIONS=$no_leaks serve "$server" $server_options
            ASAN_OPTIONS=$no_leaks ask "$client" ${arguments/@/$address}
        }
        expect_status "$what" client 30 0 server
        expect_status "$what" server 20 0 client
        expect_text "$what" client "$5"
        expect_text "$what" server "$6"
        expect_silence "$what" client
        expect_silence "$what" server
    done
}

seq 1 200000 >"$dir/file" # more than the reads that are under way at a time
trips='1000 round trips: [0-9.]+ us minimum'
pair endpoint '' endpoint '@ hello' '^HELLO$' '^hello$'
pair ping '' ping '@' "^64 bytes, $trips" ''
pair ping '' ping '-s 65536 -n 50 @' '^65536 bytes, 50 round' ''
pair ping -b ping '-b -s 1 -n 100 @' '^1 bytes, 100 round' ''
pair bulk_write '' bulk_write '@' '^1000 Writes of 65536 bytes: .* MB/s$' '^1000 Writes arrived$'
pair bulk_write '' bulk_write '-s 1000003 -d 7 -n 99 @' '^99 Writes of' '^99 Writes arrived$'
pair bulk_write '' bulk_write '-s 8 -d 256 -n 3 @' '^3 Writes of 8' '^3 Writes arrived$'
pair bulk_write '' bulk_write '-s 9 -d 1 -n 1 @' '^1 Writes of 9' '^1 Writes arrived$'
pair counter '' counter '-n 100 -i 5 @' 'came to 500$' \
    '^1 clients have added 500; the counter is at 500$'
pair event_loop '-c 1' ping '-n 100 @' '^64 bytes' '^1 clients have left, 0 were here$'
pair srq_server '-c 1' ping '-n 100 @' '^64 bytes' '^a client has left after 100 messages$'
pair rs_echo '-c 1' rs_echo '@ hello' '^hello$' ''
pair read_server "-c 1 $dir/file" read_client '@' '^200000$' '^a client has read all$'
cmp -s "$dir/file" "$dir/client" || failed 'read_client: the file is another'
port=$(free_port)
start_server server "$port" "$programs/rc_ping" "$port"
start client "$programs/rc_ping" "$port" 127.0.0.1
expect_status 'rc_ping with a server' client 30 0 server
expect_status 'rc_ping' server 20 0 client
expect_text 'rc_ping' client '^1000 round trips$'
port=$(free_port)
start_server server "$port" "$programs/ud_ping" "$port"
start client "$programs/ud_ping" "$port" 127.0.0.1
expect_status 'ud_ping with a server' client 60 0 server
expect_status 'ud_ping' server 20 0 client
expect_text 'ud_ping' client '^1000 round trips$'
port=$(free_port)
for times in 1 1000; do
    start_server server "$port" "$programs/al_echo" -p "$port"
    start client "$programs/al_echo" -p "$port" -n $times 127.0.0.1 hello
    expect_status 'al_echo with a server' client 30 0 server
    expect_status 'al_echo' server 20 0 client
    expect_text 'al_echo' client "^hello, $times times$"
done
start client "$programs/al_echo" -p "$port" 127.0.0.1 hello
expect_status 'al_echo without a server' client 20 1
expect_error 'al_echo without a server' client "127.0.0.1, port $port: refused, reason 8$"
start client "$programs/uverbs_commands"
expect_status 'uverbs_commands' client 20 0
expect_text 'uverbs_commands' client '^work request 4711 is done, status 5$'
expect_text 'uverbs_commands' client '^nothing is done$'
start client "$programs/uverbs_commands" none
expect_status 'uverbs_commands none' client 20 1
expect_error 'uverbs_commands none' client 'no device: No such device$'
printf x >"$dir/one"
pair read_server "-c 1 $dir/one" read_client '@' '^x$' '^a client has read all$'

# many COUNT SERVER-OPTIONS... -- CLIENT ARGUMENT...: COUNT clients at once of one server
many()
{
    local count=$1 server=() i
    shift
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    ASAN_OPTIONS=$no_leaks serve "${server[@]}" -c "$count"
    for ((i = 0; i < count; i++)); do
        ASAN_OPTIONS=$no_leaks start "client$i" "$programs/$1" -p "$port" "${@:2}"
    done
    for ((i = 0; i < count; i++)); do
        expect_status "$count clients of ${server[*]}" "client$i" 60 0 server
    done
    expect_status "$count clients" server 20 0
    expect_silence "$count clients" server
}
many 5 counter -- counter -n 300 -i 3 localhost
expect_text 'five clients' server '^5 clients have added 4500; the counter is at 4500$'
many 8 event_loop -- ping -n 200 localhost
expect_text 'eight clients' server '^8 clients have left, 0 were here$'
many 8 rs_echo -- rs_echo localhost one two three
many 8 srq_server -- ping -n 200 -s 30000 localhost
[ "$(grep -c 'left after 200 messages' "$dir/server")" = 8 ] ||
    failed 'srq_server: eight clients' server

# A store: what is put is got, entries are separate, and nobody sees half of what is being put.
kv()
{
    ask kv_client "$@"
    expect_status "kv_client $*" client 30 "$status_wanted" server
}
serve kv_server
status_wanted=0
for i in {1..20}; do
    kv ::1 put "key$i" "value $i"
done
kv 127.0.0.1 put key7 'another value'
kv 127.0.0.1 put empty ''
kv 127.0.0.1 get key8
expect_text 'get' client '^value 8$'
kv 127.0.0.1 get key7
expect_text 'get of what was put twice' client '^another value$'
kv 127.0.0.1 get empty
expect_text 'get of an empty value' client '^$'
status_wanted=1
kv 127.0.0.1 get key21
expect_error 'get of nothing' client '^kv_client: key21: no such key$'

# place KEY: leaves the first entry for it in $place
place()
{
    local i code
    place=$((0xcbf29ce484222325))
    for ((i = 0; i < ${#1}; i++)); do
        printf -v code %d "'${1:i:1}"
        place=$(((place ^ code) * 0x100000001b3))
    done
    place=$((place & 1023))
}

# Nine keys that want one entry: eight find room.
place k0
wanted=$place collisions=(k0)
for ((i = 1; ${#collisions[@]} < 9; i++)); do
    place k$i
    [ $place != $wanted ] || collisions+=("k$i")
done
status_wanted=0
for key in "${collisions[@]:0:8}"; do
    kv 127.0.0.1 put "$key" "$key"
done
kv 127.0.0.1 get "${collisions[7]}"
expect_text 'get of the eighth of one place' client "^${collisions[7]}\$"
status_wanted=1
kv 127.0.0.1 put "${collisions[8]}" x
expect_error 'put of the ninth of one place' client 'no room for this key$'
stop server

serve kv_server -w 2000
a=$(printf '%0200d' 0)
b=${a//0/1}
status_wanted=0
kv 127.0.0.1 put key "$a"
start put_a "$programs/kv_client" -p "$port" -n 600 127.0.0.1 put key "$a"
start put_b "$programs/kv_client" -p "$port" -n 600 127.0.0.1 put key "$b"
kv -n 300 127.0.0.1 get key
expect_status 'puts' put_a 60 0 server
expect_status 'puts' put_b 60 0 server
others=$(grep -vxE "$a|$b" "$dir/client")
[ -z "$others" ] || failed 'values that nobody put' client
expect_text 'gets while somebody puts' client .
expect_error 'gets while somebody puts' client \
    '^300 gets, [1-9][0-9]* reads of an entry that was being written$'
stop server

# wrong_usage PROGRAM ARGUMENT...
wrong_usage()
{
    local name=$1
    shift
    start wrong "$programs/$name" "$@"
    expect_status "$name $*" wrong 20 2
    expect_error "$name $*" wrong "^usage: $name "
    [ ! -s "$dir/wrong" ] || failed "$name $*: not only on standard error" wrong
}
long=$(printf '%0300d' 0)
for name in bulk_write counter endpoint event_loop kv_client kv_server ping read_client \
    read_server srq_server; do
    wrong_usage $name -x
    wrong_usage $name -p
    wrong_usage $name one two three four five
done
wrong_usage rs_echo -x
wrong_usage uverbs_commands one two
wrong_usage al_echo -x
wrong_usage al_echo one
wrong_usage al_echo one two three
wrong_usage rc_ping
wrong_usage ud_ping
wrong_usage ud_ping 1 2 3
wrong_usage rc_ping one two
wrong_usage rc_ping 1 2 3
wrong_usage rs_echo -p
wrong_usage bulk_write -s 7 127.0.0.1
wrong_usage bulk_write -s 67108864 -d 17 127.0.0.1
wrong_usage bulk_write -d 0 127.0.0.1
wrong_usage counter -c many
wrong_usage counter -n -1 127.0.0.1
wrong_usage endpoint 127.0.0.1
wrong_usage endpoint 127.0.0.1 "$long"
wrong_usage event_loop -c 0
wrong_usage kv_client 127.0.0.1 get
wrong_usage kv_client 127.0.0.1 put key
wrong_usage kv_client 127.0.0.1 take key
wrong_usage kv_client 127.0.0.1 get ''
wrong_usage kv_client 127.0.0.1 get "$long"
wrong_usage kv_client 127.0.0.1 put key "$long"
wrong_usage kv_server -w 1000000
wrong_usage ping -s 0 127.0.0.1
wrong_usage ping -s 65537 127.0.0.1
wrong_usage ping -n 1x 127.0.0.1
wrong_usage read_server
wrong_usage srq_server -c ''

# fails WHAT PATTERN PROGRAM ARGUMENT...: soon, and says why
fails()
{
    local what=$1 pattern=$2 name=$3
    shift 3
    start failing "$programs/$name" "$@"
    expect_status "$name: $what" failing 20 1 server
    expect_error "$name: $what" failing "^$name: .*$pattern"
}

declare -A clients=([bulk_write]='@' [counter]='@' [endpoint]='@ hello' [kv_client]='@ get key'
    [ping]='@' [read_client]='@')
declare -A servers=([bulk_write]='' [counter]='' [endpoint]='' [event_loop]='' [kv_server]=''
    [ping]='' [read_server]="$dir/file" [srq_server]='')
port=$(free_port)
for name in "${!clients[@]}"; do
    # shellcheck disable=SC2086
    {
        fails 'no server' 'rdma_connect: Connection refused' $name -p "$port" \
            ${clients[$name]/@/127.0.0.1}
        fails 'no such host' 'not-a-host' $name ${clients[$name]/@/not-a-host..invalid}
        fails 'no such port' 'no-such-port' $name -p no-such-port ${clients[$name]/@/127.0.0.1}
    }
done
for name in "${!servers[@]}"; do
    # shellcheck disable=SC2086
    {
        fails 'an address of nobody here' '192\.0\.2\.1, port ' $name -a 192.0.2.1 ${servers[$name]}
        fails 'no such port' 'no-such-port' $name -p no-such-port ${servers[$name]}
        serve $name ${servers[$name]}
        fails 'a port in use' 'Address already in use' $name -p "$port" ${servers[$name]}
        stop server
    }
done
fails 'no file' 'no-such-file: No such file' read_server "$dir/no-such-file"
fails 'a folder' 'not a file' read_server "$dir"
: >"$dir/empty"
fails 'an empty file' 'not a file' read_server "$dir/empty"
serve read_server -c 1 "$dir/file"
start full sh -c 'exec "$@" >/dev/full' sh "$programs/read_client" -p "$port" 127.0.0.1
expect_status 'read_client: a full disk' full 20 1
expect_error 'read_client: a full disk' full 'standard output: No space'
expect_status 'read_server: a client ends early' server 20 0

# Of another program they say so, and of half a conversation.
serve ping
fails 'a server of something else' 'another program' read_client -p "$port" 127.0.0.1
expect_status 'ping: a client of something else' server 20 1
expect_error 'ping: a client of something else' server 'the connection has ended$'
serve read_server -c 1 "$dir/one"
fails 'a server of something else' 'another program' kv_client -p "$port" 127.0.0.1 get key
expect_status 'read_server: a client of something else' server 20 0
expect_error 'read_server: a client of something else' server 'the connection has ended$'
serve bulk_write
fails 'a server that rejects' 'rdma_connect: ' ping -p "$port" 127.0.0.1
expect_status 'bulk_write: a client of something else' server 20 1
expect_error 'bulk_write: a client of something else' server 'does not say what it will write$'
serve kv_server -c 1
ask ping -s 100 127.0.0.1
expect_status 'kv_server: a client of something else' client 20 1
expect_status 'kv_server: a client of something else' server 20 0
expect_error 'kv_server: a client of something else' server 'something else$'

# connected PORT: a client on this machine is
# shellcheck disable=SC2317
connected()
{
    grep -qE "^ *[0-9]+: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]*:$(printf %04X "$1") 01 " /proc/net/tcp
}

# killed VICTIM SERVER-OPTIONS... -- CLIENT ARGUMENT...: one end in the middle of its work.
killed()
{
    local victim=$1 server=() what="$1 of $2 killed"
    shift
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    serve "${server[@]}"
    ask "$@"
    within 10 connected "$port" || failed "$what: no connection" client server
    sleep 0.2
    if ! running client || ! running server; then
        failed "$what: they were done before" client server
    fi
    kill -KILL "${pids[$victim]}" 2>/dev/null
    ended "$victim" 10
}
# The other end says so and ends, but servers of many go on and serve the next.
# shellcheck disable=SC2034
long_ping=(ping -n 10000000 127.0.0.1)
# shellcheck disable=SC2034
long_write=(bulk_write -n 100000000 127.0.0.1)
# shellcheck disable=SC2034
long_count=(counter -n 100000000 127.0.0.1)
for pair in ping:long_ping bulk_write:long_write counter:long_count event_loop:long_ping \
    srq_server:long_ping; do
    name=${pair%%:*}
    declare -n long_client=${pair#*:}
    killed server "$name" -- "${long_client[@]}"
    expect_status "server of $name killed" client 20 1
    expect_error "server of $name killed" client ': the connection has ended$'
    killed client "$name" -- "${long_client[@]}"
    case $name in
    event_loop | srq_server)
        within 10 grep -q 'without a goodbye' "$dir/server.err" ||
            failed "client of $name killed: no message" server
        ask ping -n 10 127.0.0.1
        expect_status "$name after a client was killed" client 20 0 server
        stop server
        ;;
    *)
        expect_status "client of $name killed" server 20 1
        expect_error "client of $name killed" server 'the connection has ended$'
        ;;
    esac
done
killed server kv_server -- kv_client -n 10000000 127.0.0.1 put key x
expect_status 'kv_server killed' client 20 1
expect_error 'kv_server killed' client ': the connection has ended$'
killed client kv_server -- kv_client -n 10000000 127.0.0.1 put key x
within 10 grep -q 'the connection has ended' "$dir/server.err" || failed 'kv_client killed' server
status_wanted=0
kv 127.0.0.1 get key
stop server

# One server more, with a client in its arms, ends at a signal.
ASAN_OPTIONS=$no_leaks serve event_loop
ask "${long_ping[@]}"
within 10 connected "$port" || failed 'event_loop: no connection' client server
sleep 0.2
kill -TERM "${pids[server]}"
expect_status 'event_loop at SIGTERM' server 20 0
expect_text 'event_loop at SIGTERM' server '^0 clients have left, 1 were here$'
expect_status 'a client of an event_loop that leaves' client 20 1

finish
