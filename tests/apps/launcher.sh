#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The launcher: what it hands to the program, and what it refuses.

set -u
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failures=0

# expect STATUS PATTERN COMMAND...: its exit status; what both streams say matches the pattern.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$("$@" 2>&1)
    status=$?
    if [ $status != "$want" ] || ! grep -qE -- "$pattern" <<<"$output"; then
        printf 'FAILED: %s\n  status %s, wanted %s; output, wanted /%s/:\n%s\n' \
            "$*" $status "$want" "$pattern" "$output"
        failures=$((failures + 1))
    fi
}

libraries=$BUILDDIR/.libs

expect 0 '^usage: anywarp COMMAND' "$ANYWARP" --help
expect 0 '^usage: anywarp COMMAND' "$ANYWARP" help
for command in run env; do
    expect 0 "^  $command +[a-z]" "$ANYWARP" --help
    expect 0 "^usage: anywarp $command" "$ANYWARP" "$command" --help
    expect 0 "^usage: anywarp $command" "$ANYWARP" help "$command"
    expect 2 "anywarp $command: unrecognized option '--no-such'" "$ANYWARP" "$command" --no-such
done
expect 2 'nothing: unknown command' "$ANYWARP" help nothing
for command in '' $("$ANYWARP" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
    # shellcheck disable=SC2086 # none is the list of them
    expect 1 '^$' sh -c '"$@" | grep -E "^.{81}"' - "$ANYWARP" help $command
done
expect 0 '^anywarp [0-9]+\.[0-9]+' "$ANYWARP" --version
expect 2 '^usage: ' "$ANYWARP"
expect 2 'unknown command.*anywarp run rping' "$ANYWARP" rping
expect 2 'which command' "$ANYWARP" run
expect 2 'no argument' "$ANYWARP" env extra
expect 0 '^  1  TCP connection closed$' "$ANYWARP" explain 1
expect 0 'Terminate layer 1, type 1, code 0x00; event IBV_EVENT_QP_ACCESS_ERR$' "$ANYWARP" explain
expect 1 'no such vendor_err' "$ANYWARP" explain 200
expect 2 'explain: x: no number' "$ANYWARP" explain x
expect 1 'cannot write' sh -c '"$ANYWARP" --help >/dev/full'

# The program runs with our libraries first, its arguments and its exit status its own.
expect 0 "^$libraries\$" env -u LD_LIBRARY_PATH "$ANYWARP" run printenv LD_LIBRARY_PATH
expect 0 "^$libraries:/some/where\$" \
    env LD_LIBRARY_PATH=/some/where "$ANYWARP" run printenv LD_LIBRARY_PATH
expect 0 '^<a b> <\*> <>$' "$ANYWARP" run printf '<%s> <%s> <%s>' 'a b' '*' ''
expect 42 '' "$ANYWARP" run sh -c 'exit 42'
expect 0 '^ok$' "$ANYWARP" run -- echo ok
expect 0 '^--help$' "$ANYWARP" run printf '%s\n' --help
expect 0 '^on off=b$' "$ANYWARP" run -e ANYWARP_CRC=on --env=OFF=off=b \
    sh -c 'echo $ANYWARP_CRC $OFF'
expect 0 '^2 some.pcap off$' "$ANYWARP" run --log 2 --pcap some.pcap --crc=off \
    sh -c 'echo $VERBS_LOG_LEVEL $ANYWARP_PCAP $ANYWARP_CRC'
expect 2 'should be VARIABLE=VALUE' "$ANYWARP" run -e ANYWARP_CRC true

# Who asks for something that there is not is told, without a log.
expect 0 '^anywarp: ANYWARP_CRC=maybe is not understood \(auto, on, off\): ignored$' \
    "$ANYWARP" run --crc maybe ibv_devices
expect 0 '^anywarp: VERBS_LOG_LEVEL=debug is not understood' "$ANYWARP" run --log debug ibv_devices
expect 0 '^anywarp: VERBS_LOG_LEVEL=99 is more than 4: 4 is taken$' "$ANYWARP" run --log 99 ibv_devices
ping=(rping -c -a 127.0.0.1 -p 9 -C 1) # nobody is there; it stays when it may not connect
expect 255 '^anywarp: ANYWARP_CONGESTION=none_such: the kernel does not have it: the system.s is used$' \
    "$ANYWARP" run -e ANYWARP_CONGESTION=none_such "${ping[@]}"
expect 124 '^anywarp: ANYWARP_ACCESS: /nowhere: cannot be opened: nobody may connect$' \
    timeout 2 "$ANYWARP" run -e ANYWARP_ACCESS=/nowhere "${ping[@]}"
expect 2 'should be VARIABLE=VALUE' "$ANYWARP" run -e =on true
expect 0 "$libraries/libibverbs.so.1" "$ANYWARP" run ldd "$(type -P rping)"
expect 0 "$libraries/librdmacm.so.1" "$ANYWARP" run ldd "$(type -P rping)"
expect 0 "^$libraries:/some/where\$" \
    env LD_LIBRARY_PATH=/some/where sh -c 'eval "$("$ANYWARP" env)"; printenv LD_LIBRARY_PATH'
expect 0 "^/bin:$BUILDDIR/src/tools/bin\$" \
    env PATH=/bin sh -c 'eval "$("$ANYWARP" env)"; echo "$PATH"'

# The program takes the launcher's place: same process, signals reach it.
"$ANYWARP" run sleep 60 &
child=$!
for _ in $(seq 100); do
    [ "$(cat /proc/$child/comm 2>/dev/null)" = sleep ] && break
    sleep 0.05
done
expect 0 '^sleep$' cat /proc/$child/comm
kill -TERM $child
wait $child
expect 0 '^143$' echo $?

# What cannot work is refused, with the reason.
expect 127 'no-such-program: command not found' "$ANYWARP" run no-such-program
expect 127 'no such file' "$ANYWARP" run "$dir/none"
expect 126 'is a directory' "$ANYWARP" run "$dir"
echo 'not a program' >"$dir/plain"
expect 126 'not executable' "$ANYWARP" run "$dir/plain"
expect 126 'not executable' env PATH="$dir:$PATH" "$ANYWARP" run plain

printf '#!/bin/sh\necho script $1\n' >"$dir/script"
chmod +x "$dir/script"
expect 0 '^script one$' env PATH="$dir:$PATH" "$ANYWARP" run script one
mkdir "$dir/before"
echo >"$dir/before/script"
expect 0 '^script two$' env PATH="$dir/before:$dir:$PATH" "$ANYWARP" run script two

echo 'int main(void) { return 7; }' >"$dir/main.c"
if ${CC:-cc} -static -o "$dir/static" "$dir/main.c" 2>/dev/null; then
    expect 126 'statically linked' "$ANYWARP" run "$dir/static"
fi
if [ "$(id -u)" = 0 ]; then
    cp "$(type -P true)" "$dir/setuid"
    chown nobody "$dir/setuid"
    chmod u+s "$dir/setuid"
    expect 126 'is setuid' "$ANYWARP" run "$dir/setuid"
    cp "$(type -P true)" "$dir/setgid"
    chgrp nogroup "$dir/setgid"
    chmod g+s "$dir/setgid"
    expect 126 'is setgid' "$ANYWARP" run "$dir/setgid"
fi

[ $failures = 0 ]
