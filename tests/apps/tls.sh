#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock rping over TLS: with pre-shared keys and certificates, by rules of access; and who is refused,
# which both ends tell.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping openssl
export VERBS_LOG_LEVEL=2
umask 077

ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

# certificate NAME AUTHORITY [OPTION...]: of the authority; the options are of "openssl x509".
certificate()
{
    local name=$1 ca=$2
    shift 2
    openssl req "${ec[@]}" -keyout "$dir/$name.key" -out "$dir/csr" -subj "/CN=$name" 2>/dev/null
    openssl x509 -req -in "$dir/csr" -CA "$dir/$ca.crt" -CAkey "$dir/$ca.key" -set_serial "$RANDOM" \
        -out "$dir/$name.crt" "$@" 2>/dev/null || failed "no certificate $name"
}

# knobs NAME: the variables for it, with the authority "ca".
knobs()
{
    echo "ANYWARP_TLS=require ANYWARP_TLS_CERT=$dir/$1.crt ANYWARP_TLS_KEY=$dir/$1.key" \
        "ANYWARP_TLS_CA=$dir/ca.crt"
}

# rpings WHAT CLIENT-STATUS SERVER-KNOBS CLIENT-KNOBS: a server and a client with these knobs
rpings()
{
    local port server client
    port=$(free_port)
    what=$1
    read -ra server <<<"$3"
    read -ra client <<<"$4"
    start_server server "$port" env "${server[@]}" rping -s -a 127.0.0.1 -p "$port" -C 20 -V -S 65535
    start client env "${client[@]}" rping -c -a 127.0.0.1 -p "$port" -C 20 -V -S 65535
    expect_status "$1" client 60 "$2" server
    [ "$2" = 0 ] || { kill "${pids[server]}" && ended server 10; }
}

# said NAME SENTENCE
said()
{
    grep -q -- "$2" "$dir/$1.err" || failed "$what: $1 does not say: $2" "$1"
}

# refused WHAT SERVER-KNOBS CLIENT-KNOBS SERVER-SENTENCE CLIENT-SENTENCE
refused()
{
    rpings "$1" 255 "$2" "$3"
    said server "$4"
    said client "$5"
}

# The command makes keys of both kinds.
need_tls
"$ANYWARP" keys "$dir" ours other >"$dir/keys" 2>&1 || failed "anywarp keys" keys
"$ANYWARP" keys --address 127.0.0.1,::1 "$dir" here >/dev/null || failed "anywarp keys --address"
"$ANYWARP" keys --address 192.0.2.1 "$dir" elsewhere >/dev/null || failed "anywarp keys --address"
! "$ANYWARP" keys "$dir" ours >/dev/null 2>&1 || failed "anywarp keys writes over a key"
! "$ANYWARP" keys "$dir" ../ours >/dev/null 2>&1 || failed "anywarp keys takes a path for a name"
"$ANYWARP" keys --psk try "$dir/psk2" >/dev/null
"$ANYWARP" keys --psk else "$dir/psk3" >/dev/null
[ -z "$(find "$dir" -name '*key' -perm /077)" ] || failed "others may read a key"
cat "$dir/psk3" "$dir/psk" >"$dir/both"
on=ANYWARP_TLS=require
psk="$on ANYWARP_TLS_PSK=$dir/psk"

rpings "a pre-shared key" 0 "$psk" "$psk"
rpings "one of several pre-shared keys" 0 "$on ANYWARP_TLS_PSK=$dir/both" "$psk"
rpings "certificates" 0 "$(knobs ours)" "$(knobs other)"
rpings "certificates and a key at the server, certificates" 0 "$psk $(knobs ours)" "$(knobs other)"
rpings "certificates and a key at the server, the key" 0 "$psk $(knobs ours)" "$psk"
rpings "a server at its address" 0 "$(knobs here)" "$(knobs ours)"
rpings "allow, a client with TLS" 0 "$(knobs ours) ANYWARP_TLS=allow" "$(knobs other)"
rpings "allow, a client without" 0 "$(knobs ours) ANYWARP_TLS=allow" ANYWARP_TLS=off

refused "another key of the same name" "$psk" "$on ANYWARP_TLS_PSK=$dir/psk2" \
    'TLS: the peer has another pre-shared key of the same name' \
    'TLS: the peer \(refused\|says that our proof is wrong\)' # as OpenSSL 3.0 and 3.5 say it
refused "a key of another name" "$psk" "$on ANYWARP_TLS_PSK=$dir/psk3" \
    'TLS: no pre-shared key that both have' 'TLS: the peer refused'
refused "a key, and certificates there" "$(knobs ours)" "$psk" 'TLS: ' "TLS: the peer's certificate: "
refused "certificates, and a key there" "$psk" "$(knobs ours)" \
    'TLS: no pre-shared key that both have' 'TLS: the peer refused'
refused "a client without TLS" "$psk" ANYWARP_TLS=off \
    'the peer spoke plain MPA' 'it wants TLS (ANYWARP_TLS=require), this end spoke plain MPA'
refused "a server without TLS" ANYWARP_TLS=off "$psk" \
    'the peer speaks TLS, ANYWARP_TLS=off here' 'it may not speak TLS'
refused "a server at another address" "$(knobs elsewhere)" "$(knobs ours)" \
    "TLS: the peer's access rules refuse" "TLS: the peer's certificate is for other addresses"

# Certificates of every wrong kind.
mkdir "$dir/theirs"
"$ANYWARP" keys "$dir/theirs" stranger >/dev/null
cp "$dir/theirs/stranger."* "$dir"
openssl req -x509 "${ec[@]}" -keyout "$dir/self.key" -out "$dir/self.crt" -subj /CN=self -days 2 2>/dev/null
printf 'extendedKeyUsage=serverAuth\n' >"$dir/server_only"
printf 'extendedKeyUsage=clientAuth\n' >"$dir/client_only"
printf 'keyUsage=critical,keyCertSign\n' >"$dir/sign_only"
certificate server_only ca -days 2 -extfile "$dir/server_only"
certificate client_only ca -days 2 -extfile "$dir/client_only"
certificate sign_only ca -days 2 -extfile "$dir/sign_only"
certificate by_ours ours -days 2
cat "$dir/ours.crt" >>"$dir/by_ours.crt"
dated_certificate expired ca 20200101000000Z 20210101000000Z
dated_certificate unripe ca 21260101000000Z 21270101000000Z
certificate altered ca -days 2
# Another signature, of the right form.
openssl x509 -in "$dir/altered.crt" -outform DER -out "$dir/der"
size=$(stat -c %s "$dir/der")
printf '\001' | dd of="$dir/der" bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null
openssl x509 -in "$dir/der" -inform DER -out "$dir/altered.crt"

refused "a certificate of another authority" "$(knobs ours)" "$(knobs stranger)" \
    "the peer's certificate: " 'TLS: the peer does not know the authority'
refused "a server of another authority" "$(knobs stranger)" "$(knobs ours)" \
    'TLS: the peer does not know the authority' "the peer's certificate: "
refused "a certificate that it signed itself" "$(knobs ours)" "$(knobs self)" \
    "the peer's certificate: self" 'TLS: the peer'
refused "a certificate that has expired" "$(knobs ours)" "$(knobs expired)" \
    "the peer's certificate expired on 20" 'TLS: the peer says that our certificate has expired'
refused "a server's that has expired" "$(knobs expired)" "$(knobs ours)" \
    'TLS: the peer says that our certificate has expired' "the peer's certificate expired on 20"
refused "a certificate that is not valid yet" "$(knobs ours)" "$(knobs unripe)" \
    "the peer's certificate is valid from 2126-01-01 00:00 UTC on: or is the clock wrong?" \
    'TLS: the peer refused: bad certificate'
refused "a client with a server's" "$(knobs ours)" "$(knobs server_only)" \
    "the peer's certificate: unsuitable certificate purpose" 'TLS: the peer'
refused "a server with a client's" "$(knobs client_only)" "$(knobs ours)" 'TLS: the peer' \
    "the peer's certificate: unsuitable certificate purpose"
refused "one that may only sign" "$(knobs ours)" "$(knobs sign_only)" "the peer's certificate: " \
    'TLS: the peer'
refused "one by somebody who may not sign" "$(knobs ours)" "$(knobs by_ours)" \
    "the peer's certificate: " 'TLS: the peer'
refused "one with another signature" "$(knobs ours)" "$(knobs altered)" "the peer's certificate: " \
    'TLS: the peer'

# Rules of access, by both ends.
rules=$dir/rules
# rule LINE...
rule()
{
    printf '%s\n' "$@" >"$rules"
}
access=ANYWARP_ACCESS=$rules
rule 'allow from 127.0.0.0/8 identity CN=other'
rpings "an identity" 0 "$(knobs ours) $access" "$(knobs other)"
refused "another identity" "$(knobs ours) $access" "$(knobs here)" \
    "ANYWARP_ACCESS: no line of $rules fits: 127.0.0.1:[0-9]* (CN=here)" \
    "TLS: the peer's access rules refuse this end"
rule 'deny from any identity psk:try' 'allow from any'
refused "the name of a key" "$psk $access" "$psk" "ANYWARP_ACCESS: line 1 of $rules" \
    "TLS: the peer's access rules refuse"
rpings "no TLS, and nothing against it" 0 "ANYWARP_TLS=off $access" ANYWARP_TLS=off
rule 'allow from any identity *'
refused "no TLS, and so no identity" "ANYWARP_TLS=off $access" ANYWARP_TLS=off \
    "ANYWARP_ACCESS: no line of $rules fits: .* (without TLS)" 'it closed the connection before it answered'
rule 'allow from 10.0.0.0/8' 'allow from any port 1'
refused "another network" "$psk $access" "$psk" "ANYWARP_ACCESS: no line of $rules" 'TLS: the peer hung up'
rule 'allow to 127.0.0.1 identity CN=ours'
rpings "a server of the right name" 0 "$(knobs ours)" "$(knobs other) $access"
refused "a server of another name" "$(knobs here)" "$(knobs other) $access" \
    "TLS: the peer's access rules refuse" "TLS: ANYWARP_ACCESS refuses the peer"
said client '(CN=here)'

# Stock rping does not end when rdma_connect() fails.
# stays WHAT SENTENCE KNOB...: the client of stock rping, which says that
stays()
{
    what=$1
    start client env "${@:3}" rping -c -a 127.0.0.1 -p 1 -C 1
    within 60 grep -q -- "$2" "$dir/client.err" || failed "$what: no word of that" client
    kill "${pids[client]}"
    ended client 10
}
stays "to whom it may not connect" "rdma_connect: ANYWARP_ACCESS: no line of $rules fits" "$access"
rule 'allow to any' 'allow whom'
stays "rules that are not understood" "rdma_connect: ANYWARP_ACCESS: $rules: line 2 is not understood" "$access"
stays "rules that are not there" 'rdma_connect: ANYWARP_ACCESS: /nowhere: cannot be opened' ANYWARP_ACCESS=/nowhere
chmod 644 "$dir/psk"
stays "a key that others may read" 'rdma_connect: .*others may read it' "$on" "ANYWARP_TLS_PSK=$dir/psk"
chmod 600 "$dir/psk"

# A server that stays hears of new rules at once, and anywarp stat tells who is there.
port=$(free_port)
rule 'allow from any'
# shellcheck disable=SC2046 # words
start_server server "$port" env $(knobs ours) "$access" rping -s -P -a 127.0.0.1 -p "$port"
# shellcheck disable=SC2046
start client env $(knobs other) rping -c -a 127.0.0.1 -p "$port" -C 100000000
connected()
{
    "$ANYWARP" stat "${pids[server]}" | grep -q 'tls TLS_AES_128_GCM_SHA256 identity "CN=other"' &&
        "$ANYWARP" stat --json "${pids[client]}" | grep -q '"identity": "CN=ours"'
}
within 20 connected || failed "anywarp stat does not tell who is there" server
rule 'deny from any'
what="rules that have changed"
# shellcheck disable=SC2046
start late env $(knobs other) rping -c -a 127.0.0.1 -p "$port" -C 1
expect_status "$what" late 60 255 server
said server "ANYWARP_ACCESS: line 1 of $rules"
running client || failed "new rules end a connection that was there" client
kill "${pids[client]}" "${pids[server]}"

finish
