#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On Linux 4.18, the oldest that is supported: what came later is answered as that kernel would, and
# once more without membarrier(2), which a kernel may be built without. Programs are those that go
# through what has another way there: memory that is not there any more, keys that are taken back,
# listeners of a process that forked, statistics, the end of a process.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
old=$BUILDDIR/tests/bundle/old_linux
"$old" true 2>"$dir/old.err"
status=$?
[ $status != 77 ] || skip "$(cat "$dir/old.err")"
[ $status = 0 ] || failed 'old_linux' old

programs=(
    unit/probe_test unit/quiesce_test unit/random_test unit/stats_test
    api/cm_connect_test api/copying_test api/exit_test api/fork_test api/gone_test api/memory_test
    api/rc_test api/stats_test api/walk_test hostile/revoked_test
)
for option in '' -m; do
    for program in "${programs[@]}"; do
        # shellcheck disable=SC2086 # no word where there is no option
        timeout 120 "$old" $option "$BUILDDIR/tests/$program" >"$dir/program" 2>"$dir/program.err"
        status=$?
        [ $status = 0 ] || [ $status = 77 ] ||
            failed "old_linux $option $program: exit status $status" program
    done
    command -v rping >/dev/null || continue
    port=$(free_port)
    # shellcheck disable=SC2086
    start_server server "$port" "$old" $option rping -s -a 127.0.0.1 -p "$port" -V -C 20
    # shellcheck disable=SC2086
    start client "$old" $option rping -c -a 127.0.0.1 -p "$port" -V -C 20
    expect_status "rping, old_linux $option" client 30 0 server
    expect_status "rping, old_linux $option" server 30 0 client
done
finish
