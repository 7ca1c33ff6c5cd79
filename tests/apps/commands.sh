# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Functions of the tests that run what documents show, as written there: commands behind a $, their
# further lines behind a >, and below them lines of what they print. In a private network, where
# whatever begins to listen is the server that was started last.

# private_network: the script again, from its first line, in a network of its own: loopback, and an
# interface with address 192.0.2.1, which some programs want.
private_network()
{
    if [ "${1-}" != inside ]; then
        unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
        exec unshare -n bash "$0" inside
    fi
    ip link set lo up || exit 99
    { ip link add near type veth peer name far && ip addr add 192.0.2.1/24 dev near &&
        ip link set near up && ip link set far up; } || { echo "SKIP: no veth here" && exit 77; }
}

listeners()
{
    # Of TCP, and of UDP for anybody.
    awk '$4 == "0A" || $4 == "07"' /proc/net/{tcp,tcp6,udp,udp6} 2>/dev/null | wc -l
}

# more_listeners THAN: waits for one.
more_listeners()
{
    for _ in {1..200}; do
        [ "$(listeners)" -le "$1" ] || return 0
        sleep 0.05
    done
    echo "the server does not listen"
    return 1
}
export -f listeners more_listeners

# script_of LINES: the commands; after one that goes to the background, until it listens.
script_of()
{
    sed -n 's/^\$ //p; s/^> //p' "$1" |
        sed '/&$/ { s/^/listening=$(listeners)\n/; s/$/\nmore_listeners $listening/ }'
}

# shape: text without what differs from run to run: keys, addresses, numbers of QPs, GUIDs, times.
shape()
{
    sed -E 's/0x[0-9a-f]+/0x#/g; s/[0-9a-f]{16}/#/g; s/([0-9a-f]{4}:){3}[0-9a-f]{4}/#/g; s/[0-9]+\.[0-9]+ ms/# ms/g
        s/[[:space:]]+/ /g; s/^ //; s/ ?(\.\.\.)?$//'
}

# play NAME LINES [BASH-OPTION...]: runs the commands in $dir/work; each line that is shown must be
# a part of what they print, where a line may be folded.
play()
{
    local name=$1 lines=$2 line printed pid
    shift 2
    script_of "$lines" >"$dir/script"
    [ -s "$dir/script" ] || failed "$name: no commands"
    mkdir -p "$dir/work"
    (cd "$dir/work" && exec timeout 60 bash "$@" "$dir/script") >"$dir/out" 2>&1 &
    pid=$!
    wait $pid || failed "$name: exit status $?" script out
    kill -KILL -- -$pid 2>/dev/null # servers that were left behind
    printed=$(shape <"$dir/out" | tr '\n' ' ')
    while IFS= read -r line; do
        [[ $printed = *"$line"* ]] || failed "$name: does not print: $line" script out
    done < <(grep -v '^[$>] ' "$lines" | shape | grep .)
}
