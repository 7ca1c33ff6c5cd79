#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock rping over TLS: with a pre-shared key, with certificates, and who is refused.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping openssl
export VERBS_LOG_LEVEL=2
umask 077

# authority NAME: a certificate authority in NAME.ca, and a certificate of it in NAME.crt, NAME.key
authority()
{
    local ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    openssl req -x509 "${ec[@]}" -keyout "$dir/$1.cakey" -out "$dir/$1.ca" -subj "/CN=$1 CA" \
        -days 2 2>/dev/null
    openssl req "${ec[@]}" -keyout "$dir/$1.key" -out "$dir/$1.csr" -subj "/CN=$1" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/$1.ca" -CAkey "$dir/$1.cakey" -CAcreateserial \
        -out "$dir/$1.crt" -days "${2-2}" 2>/dev/null
}

# rpings WHAT CLIENT-STATUS SERVER-KNOBS CLIENT-KNOBS: a server and a client with these knobs
rpings()
{
    local port server client
    port=$(free_port)
    read -ra server <<<"$3"
    read -ra client <<<"$4"
    start_server server "$port" env "${server[@]}" rping -s -a 127.0.0.1 -p "$port" -C 20 -V -S 65535
    start client env "${client[@]}" rping -c -a 127.0.0.1 -p "$port" -C 20 -V -S 65535
    expect_status "$1" client 60 "$2" server
}

# said NAME SENTENCE
said()
{
    grep -q -- "$2" "$dir/$1.err" || failed "$1 does not say: $2" "$1"
}

echo 'try:00112233445566778899aabbccddeeff' >"$dir/psk"
echo 'try:ffeeddccbbaa99887766554433221100' >"$dir/other"
authority ours
authority theirs
on=ANYWARP_TLS=require
psk="$on ANYWARP_TLS_PSK=$dir/psk"
certificates="ANYWARP_TLS_CERT=$dir/ours.crt ANYWARP_TLS_KEY=$dir/ours.key ANYWARP_TLS_CA=$dir/ours.ca"
foreign="ANYWARP_TLS_CERT=$dir/theirs.crt ANYWARP_TLS_KEY=$dir/theirs.key ANYWARP_TLS_CA=$dir/ours.ca"

rpings "a pre-shared key" 0 "$psk" "$psk"
rpings "certificates" 0 "$on $certificates" "$on $certificates"
rpings "allow, a client with TLS" 0 "ANYWARP_TLS=allow $certificates" "$on $certificates"
rpings "allow, a client without" 0 "ANYWARP_TLS=allow $certificates" ANYWARP_TLS=off

rpings "another key" 255 "$psk" "$on ANYWARP_TLS_PSK=$dir/other"
said client TLS:
said server TLS:
rpings "a certificate of another authority" 255 "$on $certificates" "$on $foreign"
said server "the peer's certificate"
rpings "a client without TLS" 255 "$psk" ANYWARP_TLS=off
said server "the peer spoke plain MPA"

chmod 644 "$dir/psk"
# Stock rping does not end when rdma_connect() fails.
start client env "$on" "ANYWARP_TLS_PSK=$dir/psk" rping -c -a 127.0.0.1 -p 1 -C 1
within 60 grep -q 'rdma_connect: .*others may read it' "$dir/client.err" ||
    failed "a key that others may read: no word of that" client
kill "${pids[client]}"
