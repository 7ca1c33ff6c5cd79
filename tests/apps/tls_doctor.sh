#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the doctor says of certificates, keys and rules.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need openssl
no_test_variables
unset IBV_CONFIG_DIR ANYWARP_DEVICES SYSFS_PATH
umask 077
need_tls

# expect STATUS PATTERN VARIABLE...: what the doctor finds with these.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$(timeout 30 env "$@" "$ANYWARP" doctor 2>&1)
    status=$?
    if [ $status != "$want" ] || ! tr -s ' \n' ' ' <<<"$output" | grep -qaE -- "$pattern"; then
        failed "$*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}

"$ANYWARP" keys "$dir" good other >/dev/null || failed "anywarp keys"
"$ANYWARP" keys --days 3 "$dir" short >/dev/null
"$ANYWARP" keys --address 192.0.2.1 "$dir" elsewhere >/dev/null
"$ANYWARP" keys --address 127.0.0.1 "$dir" here >/dev/null
"$ANYWARP" keys "$dir/theirs" stranger >/dev/null
dated_certificate old ca 20200101000000Z 20210101000000Z
cp "$dir/theirs/stranger."* "$dir"

on=ANYWARP_TLS=require
# knobs NAME [KEY]
knobs()
{
    echo "$on ANYWARP_TLS_CA=$dir/ca.crt ANYWARP_TLS_CERT=$dir/$1.crt ANYWARP_TLS_KEY=$dir/${2-$1}.key"
}

# shellcheck disable=SC2046 # words
{
    expect 0 'ok ANYWARP_TLS has the keys .* ok the certificate CN=good is good until' $(knobs good)
    expect 0 'ok ANYWARP_TLS has the keys' $on ANYWARP_TLS_PSK="$dir/psk"
    expect 0 'warn the certificate CN=short expires on' $(knobs short)
    expect 0 'warn the certificate CN=elsewhere is for addresses of other hosts' $(knobs elsewhere)
    expect 0 'ok the certificate CN=here is good' $(knobs here)
    expect 1 'FAIL the certificate CN=old expired on 20.*; it is 20' $(knobs old)
    expect 1 'FAIL .*/ca.crt does not vouch for CN=stranger' $(knobs stranger)
    expect 1 'FAIL ANYWARP_TLS: .*other.key: not the key of ' $(knobs good other)
    expect 1 'FAIL ANYWARP_TLS: .*nothing.key: cannot be opened' $(knobs good nothing)
    expect 1 'FAIL ANYWARP_TLS: neither certificates .* nor ANYWARP_TLS_PSK' $on
    expect 1 'FAIL ANYWARP_TLS: ANYWARP_TLS_CERT, ANYWARP_TLS_KEY and ANYWARP_TLS_CA belong' \
        $on ANYWARP_TLS_CERT="$dir/good.crt"
    expect 0 'note ANYWARP_TLS=allow: connections that are begun here are in the clear' \
        $(knobs good) ANYWARP_TLS=allow
    expect 0 'warn keys are set, but ANYWARP_TLS is off' $(knobs good) ANYWARP_TLS=off
}

printf 'allow from any\n' >"$dir/rules"
expect 0 'ok the rules of .*/rules can be used' ANYWARP_ACCESS="$dir/rules"
printf 'allow from any\nallow everybody\n' >"$dir/rules"
expect 1 'FAIL ANYWARP_ACCESS: .*/rules: line 2 is not understood' ANYWARP_ACCESS="$dir/rules"
expect 1 'FAIL ANYWARP_ACCESS: /nowhere: cannot be opened' ANYWARP_ACCESS=/nowhere
chmod 644 "$dir/psk"
expect 1 'FAIL ANYWARP_TLS: .*psk: others may read it \(chmod 600\)' $on ANYWARP_TLS_PSK="$dir/psk"

finish
