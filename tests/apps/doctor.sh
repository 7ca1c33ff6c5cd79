#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The doctor: what it finds in the installation, the machine and programs, none of which it runs.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
cc=${CC:-cc}
libraries=$BUILDDIR/.libs
no_test_variables
preload=$("$ANYWARP" env | sed -n '/libanywarp-paths/d; s/^export LD_PRELOAD=//p')
unset IBV_CONFIG_DIR ANYWARP_DEVICES ANYWARP_CONGESTION SYSFS_PATH
printf 'int main(void) { return 7; }\n' >"$dir/main.c"

# expect STATUS PATTERN COMMAND...: its exit status; what it says, in one line, matches the pattern.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$(timeout 30 "$@" 2>&1)
    status=$?
    if [ $status != "$want" ] || ! tr -s ' \n' ' ' <<<"$output" | grep -qaE -- "$pattern"; then
        failed "$*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}

# build NAME ARGUMENT...: a program of main.c; false if this system cannot.
build()
{
    local name=$1
    shift
    "$cc" -o "$dir/$name" "$dir/main.c" "$@" 2>"$dir/$name.log"
}

# The machine and the installation.
expect 0 'ok programs see the iWARP device anywarp0 .* Nothing is in the way' "$ANYWARP" doctor
expect 0 "ok libibverbs.so.1 and librdmacm.so.1 of $libraries load" "$ANYWARP" doctor
expect 2 "unrecognized option" "$ANYWARP" doctor --none
expect 127 'no-such-program: command not found' "$ANYWARP" doctor no-such-program
mkdir -p "$dir/drivers" "$dir/sys/class/infiniband/mlx5_0"
expect 1 'FAIL there is no device: no \*.driver file in IBV_CONFIG_DIR=.*-> unset' \
    env IBV_CONFIG_DIR="$dir/drivers" "$ANYWARP" doctor
for devices in none 'aw0=lo aw1' 'aw0=lo aw0=lo'; do
    expect 0 "warn entries of ANYWARP_DEVICES=$devices are not understood" \
        env ANYWARP_DEVICES="$devices" "$ANYWARP" doctor
done
expect 0 'ok programs see the iWARP device aw0 warn the device aw1 is down' \
    env ANYWARP_DEVICES='aw0=lo,aw1=none' "$ANYWARP" doctor
expect 0 'ok programs see the iWARP device aw0 ok programs see the RoCE device aw1' \
    env ANYWARP_DEVICES='aw0=lo,aw1=roce:lo' "$ANYWARP" doctor
expect 0 'note programs on anywarp do not see .*: mlx5_0 ->' \
    env SYSFS_PATH="$dir/sys" "$ANYWARP" doctor
output=$(eval "$("$ANYWARP" env)" && "$ANYWARP" doctor | tr -s ' \n' ' ')
[[ $output == *'see the iWARP device anywarp0'* && $output != *'do not see'*': anywarp0'* ]] ||
    failed "with libanywarp-paths.so: $output"
expect 0 'warn ANYWARP_CRC=maybe is not understood.* -> auto, on, off ' \
    env ANYWARP_CRC=maybe "$ANYWARP" doctor
expect 0 'warn ANYWARP_CRCS is set, but there is no such' env ANYWARP_CRCS=on "$ANYWARP" doctor
expect 0 'ok processes of this host, of one user, can leave TCP' "$ANYWARP" doctor
expect 0 'warn processes of this host stay on TCP' \
    sh -c 'ulimit -f 0; trap "" XFSZ; "$ANYWARP" doctor'
expect 0 'warn ANYWARP_CONGESTION=none is refused' env ANYWARP_CONGESTION=none "$ANYWARP" doctor
expect 0 'note queue pairs by GID and number are reached at TCP ports 20000-20009, not through NAT' \
    env ANYWARP_PORTS=20000-20009 "$ANYWARP" doctor
expect 0 'warn a process may open 500 descriptors' sh -c 'ulimit -n 500; "$ANYWARP" doctor'
mkdir "$dir/before"
touch "$dir/before/libibverbs.so.1"
expect 0 "warn $dir/before/libibverbs.so.1 comes before" \
    env LD_LIBRARY_PATH="$dir/before:$libraries" "$ANYWARP" doctor
if unshare -rn true 2>/dev/null; then
    expect 1 'FAIL the loopback interface is down -> ip link set' unshare -rn "$ANYWARP" doctor
    expect 0 'ok TCP connections over .* note no IPv4: a TCP connection to 127.0.0.1 fails' \
        unshare -rn sh -c 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && "$ANYWARP" doctor'
fi

# What a container's filter of system calls refuses.
refused=$BUILDDIR/tests/apps/refused
if "$refused" socket=0 true; then
    expect 1 'FAIL no IPv4: a TCP .* Operation not permitted -> .* FAIL no IPv6: a TCP connection to ::1 fails: Op' \
        "$refused" socket "$ANYWARP" doctor
    expect 0 'ok TCP .* note no IPv4: a TCP connection to 127.0.0.1 fails: Operation not permitted' \
        "$refused" socket=2 "$ANYWARP" doctor
    expect 0 'ok TCP .* note no IPv6: a TCP connection to ::1 fails' "$refused" socket=10 "$ANYWARP" doctor
    expect 0 'warn devices have no GIDs, .* cannot be listed: Operation not permitted -> look for' \
        "$refused" socket=16 "$ANYWARP" doctor
    for call in accept4 sendmsg recvfrom; do
        expect 1 'FAIL no IPv4: a TCP connection to 127.0.0.1 fails: Operation not permitted -> look' \
            "$refused" $call "$ANYWARP" doctor
    done
    for call in epoll_create1 epoll_ctl epoll_pwait eventfd2 getrandom timerfd_create; do
        expect 1 "FAIL the system call $call fails: Operation not permitted -> look for a seccomp" \
            "$refused" $call "$ANYWARP" doctor
    done
fi

expect 0 'warn LD_PRELOAD=/none/librspreload.so comes before' \
    env LD_PRELOAD=/none/librspreload.so "$ANYWARP" doctor

# What the system's own libraries need.
if compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null; then
    expect 0 "ok .*libanywarp-uverbs-preload.so is there ok the system's libibverbs.so.1 is /.*ok its \
provider for anywarp is .*/libipathverbs-rdmav.* ok the system's librdmacm.so.1 is /" \
        "$ANYWARP" doctor --system-libraries
fi
expect 1 "FAIL libibverbs.so.1 is found in $libraries/libibverbs.so.1, which is anywarp's" \
    env LD_LIBRARY_PATH="$libraries" "$ANYWARP" doctor --system-libraries
mkdir "$dir/vendor"
printf 'int none;\n' >"$dir/vendor.c"
"$cc" -shared -fPIC -o "$dir/vendor/libibverbs.so.1" "$dir/vendor.c" &&
    expect 1 "FAIL there is no $dir/vendor/libibverbs/libipathverbs-rdmav\*.so, the provider .*-> install it" \
        env LD_LIBRARY_PATH="$dir/vendor" "$ANYWARP" doctor --system-libraries

# Programs that work.
build plain || skip "no C compiler"
expect 0 "note $dir/plain uses neither libibverbs nor librdmacm" "$ANYWARP" doctor "$dir/plain"
if compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null; then
    expect 0 "ok $dir/plain is dynamically linked, so it gets" \
        "$ANYWARP" doctor --system-libraries "$dir/plain"
fi
expect 0 "note $dir/plain uses neither" env PATH="$dir:$PATH" "$ANYWARP" doctor plain -x --help
build linked -Wl,--no-as-needed "$libraries/librdmacm.so" "$libraries/libibverbs.so"
expect 0 "ok $dir/linked loads anywarp's librdmacm.so.1 ok $dir/linked loads anywarp's libibverbs" \
    "$ANYWARP" doctor "$dir/linked"
printf 'const char *name = "libibverbs.so.1"; int main(void) { return !name; }\n' >"$dir/main.c"
build opens
expect 0 "ok $dir/opens has the name of an RDMA library in it" "$ANYWARP" doctor "$dir/opens"
sed -i 's,libi,/usr/lib/libi,' "$dir/main.c"
build opens_path
expect 0 "warn $dir/opens_path has the path of an RDMA library" "$ANYWARP" doctor "$dir/opens_path"

# Programs that do not.
build static -static &&
    expect 1 "FAIL $dir/static is statically linked.* -> link it" "$ANYWARP" doctor "$dir/static"
for how in static static-pie; do
    build $how -$how &&
        expect 1 "FAIL $dir/$how is statically linked" \
            "$ANYWARP" doctor --system-libraries "$dir/$how"
done
build loader -Wl,--dynamic-linker=/none/ld.so
expect 1 "wants the loader /none/ld.so, which is not here" "$ANYWARP" doctor "$dir/loader"
build musl -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
expect 1 "FAIL $dir/musl is for the C library musl, on which anywarp does not run" \
    "$ANYWARP" doctor "$dir/musl"
echo 'unsigned long confstr(int n, char *s, unsigned long z) { return (void)n, (void)s, z - z; }' \
    >"$dir/confstr.c"
"$cc" -shared -fPIC -o "$dir/confstr.so" "$dir/confstr.c" && [ -z "$preload" ] &&
    expect 1 'FAIL the C library of this system is not glibc; musl' \
        env LD_PRELOAD="$dir/confstr.so" "$ANYWARP" doctor
cp "$(type -P true)" "$dir/ld.so"
build libc -Wl,--dynamic-linker="$dir/ld.so"
expect 1 "is for another C library" "$ANYWARP" doctor "$dir/libc"
printf 'int newer(void);\nint main(void) { return newer(); }\n' >"$dir/main.c"
mkdir "$dir/lib"
echo 'int newer(void) { return 0; }' >"$dir/newer.c"
echo 'IBVERBS_1.99 { global: newer; };' >"$dir/newer.map"
"$cc" -shared -fPIC -Wl,-soname,libibverbs.so.1 -Wl,--version-script="$dir/newer.map" \
    -o "$dir/lib/libibverbs.so.1" "$dir/newer.c"
build newer -L"$dir/lib" -l:libibverbs.so.1
expect 1 "FAIL $dir/newer wants version IBVERBS_1.99 of libibverbs.so.1" \
    "$ANYWARP" doctor "$dir/newer"
timeout 30 "$ANYWARP" run "$dir/newer" >"$dir/out" 2>&1 && failed 'newer runs' out
grep -q "version .IBVERBS_1.99' not found" "$dir/out" || failed 'the loader takes it' out
printf 'int newer(void);\nint call(void) { return newer(); }\n' >"$dir/call.c"
"$cc" -shared -fPIC -Wl,-soname,libcall.so -o "$dir/lib/libcall.so" "$dir/call.c" -L"$dir/lib" \
    -l:libibverbs.so.1
printf 'int call(void);\nint main(void) { return call(); }\n' >"$dir/main.c"
build indirect -L"$dir/lib" -lcall -Wl,--allow-shlib-undefined,-rpath-link,"$dir/lib"
expect 1 "FAIL $dir/lib/libcall.so wants version IBVERBS_1.99" \
    env LD_LIBRARY_PATH="$dir/lib" "$ANYWARP" doctor "$dir/indirect"
expect 1 "the loader does not find libcall.so for $dir/indirect -> install it, or add its folder" \
    "$ANYWARP" doctor "$dir/indirect"

# All libraries that are missing, not only the first, and those that what is found asks for.
echo 'int one(void) { return 1; }' >"$dir/one.c"
for soname in libalpha.so.3 libbeta-2.so.200 libGamma.so.1; do
    "$cc" -shared -fPIC -Wl,-soname,$soname -o "$dir/lib/$soname" "$dir/one.c"
done
mkdir "$dir/found"
"$cc" -shared -fPIC -Wl,-soname,libfound.so.1 -o "$dir/found/libfound.so.1" "$dir/one.c" \
    -Wl,--no-as-needed "$dir/lib/libGamma.so.1"
printf 'int main(void) { return 0; }\n' >"$dir/main.c"
build lacks -Wl,--no-as-needed -L"$dir/lib" -l:libalpha.so.3 -l:libbeta-2.so.200 \
    "$dir/found/libfound.so.1" "$libraries/libibverbs.so" \
    -Wl,--allow-shlib-undefined,-rpath-link,"$dir/lib:$libraries",--enable-new-dtags,-rpath,"$dir/found"
for missing in 'libalpha.so.3 .*-> .*package libalpha3,.*libalpha.so.3..\(64bit\)' \
    'libbeta-2.so.200 .*-> .*package libbeta-2-200,' 'libGamma.so.1 .*-> .*package libgamma1,'; do
    expect 1 "FAIL the loader does not find $missing" "$ANYWARP" doctor "$dir/lacks"
done
expect 1 "ok $dir/lacks loads anywarp's libibverbs.so.1" "$ANYWARP" doctor "$dir/lacks"
expect 0 "ok $dir/lacks loads anywarp's libibverbs.so.1" \
    env LD_LIBRARY_PATH="$dir/lib" "$ANYWARP" doctor "$dir/lacks"
printf 'int newer(void);\nint main(void) { return newer(); }\n' >"$dir/main.c"
build rpath -L"$dir/lib" -l:libibverbs.so.1 -Wl,--disable-new-dtags,-rpath,"$dir/lib"
expect 1 "FAIL libibverbs.so.1 is loaded from $dir/lib/libibverbs.so.1: RPATH .* wins over" \
    "$ANYWARP" doctor "$dir/rpath"
build runpath -L"$dir/lib" -l:libibverbs.so.1 -Wl,--enable-new-dtags,-rpath,"$dir/lib"
expect 1 "ok $dir/runpath loads anywarp's libibverbs.so.1" "$ANYWARP" doctor "$dir/runpath"

# Of a later C library, or a later library of others: the loader refuses it, and the doctor says why.
for node in GLIBC_2.999 OTHER_2; do
    soname=libm.so.6
    [ $node != OTHER_2 ] || soname=libother.so.1
    mkdir -p "$dir/now" "$dir/later"
    printf 'int newer(void) { return 0; }\n' >"$dir/newer.c"
    echo "OTHER_1 { global: older; };" >"$dir/now.map"
    echo "$node { global: newer; };" >"$dir/later.map"
    printf 'int older(void) { return 0; }\n' >"$dir/older.c"
    "$cc" -shared -fPIC -Wl,-soname,$soname -Wl,--version-script="$dir/later.map" \
        -o "$dir/later/$soname" "$dir/newer.c"
    [ $node = GLIBC_2.999 ] || "$cc" -shared -fPIC -Wl,-soname,$soname \
        -Wl,--version-script="$dir/now.map" -o "$dir/now/$soname" "$dir/older.c"
    build "wants_$node" -L"$dir/later" -l:$soname
    export LD_LIBRARY_PATH=$dir/now
    timeout 30 "$ANYWARP" run "$dir/wants_$node" >"$dir/out" 2>&1 && failed "$node runs" out
    grep -q "version .$node' not found" "$dir/out" || failed "$node: the loader does not say so" out
    expect 1 "FAIL $dir/wants_$node .*wants version $node.*, which .*/$soname does not have ->" \
        "$ANYWARP" doctor "$dir/wants_$node"
    unset LD_LIBRARY_PATH
done
mkdir "$dir/bare"
"$cc" -shared -fPIC -o "$dir/bare/libibverbs.so.1" "$dir/newer.c"
build by_path "$dir/bare/libibverbs.so.1"
expect 1 "FAIL $dir/bare/libibverbs.so.1 is asked for by its path" "$ANYWARP" doctor "$dir/by_path"
if [ "$(id -u)" = 0 ]; then
    for bit in u g; do
        cp "$dir/plain" "$dir/set$bit"
        chown nobody:nogroup "$dir/set$bit"
        chmod $bit+s "$dir/set$bit"
        expect 1 "FAIL $dir/set$bit is set${bit}id: the loader ignores LD_LIBRARY_PATH" \
            "$ANYWARP" doctor "$dir/set$bit"
        expect 1 "FAIL $dir/set$bit is set${bit}id: the loader ignores LD_PRELOAD" \
            "$ANYWARP" doctor --system-libraries "$dir/set$bit"
    done
    chmod 755 "$dir"
    cp "$dir/plain" "$dir/capable"
    if setcap cap_net_raw+ep "$dir/capable" 2>/dev/null &&
        setpriv --reuid 65534 --clear-groups "$ANYWARP" --version >/dev/null 2>&1; then
        expect 1 "$dir/capable has file capabilities" \
            setpriv --reuid 65534 --clear-groups "$ANYWARP" doctor "$dir/capable"
    fi
fi

# Scripts.
# script NAME TEXT: TEXT may have escape sequences.
script()
{
    printf %b "$2" >"$dir/$1"
    chmod +x "$dir/$1"
}
script sh '#!/bin/sh\necho no >&2\n'
expect 0 "ok $dir/sh is a script for /bin/sh note /bin/sh uses neither" "$ANYWARP" doctor "$dir/sh"
script env '#! /usr/bin/env -S A=b plain -x\n'
expect 0 "ok $dir/env is a script for $dir/plain note $dir/plain uses" \
    env PATH="$dir:$PATH" "$ANYWARP" doctor "$dir/env"
script env_none '#!/usr/bin/env no-such-program\n'
expect 1 "FAIL $dir/env_none is a script for a program, which" "$ANYWARP" doctor "$dir/env_none"
script none '#!/no/such/program\n'
expect 1 "FAIL $dir/none is a script for /no/such/program, which" "$ANYWARP" doctor "$dir/none"
[ ! -e "$dir/static" ] || {
    script static_script "#!$dir/static\n"
    expect 0 "note $dir/static is statically linked; programs that" \
        "$ANYWARP" doctor "$dir/static_script"
}
script itself "#!$dir/itself\n"
expect 1 'script: too many' "$ANYWARP" doctor "$dir/itself"
script text 'echo no first line\n'
expect 0 "warn $dir/text is not a program and .*: /bin/sh gets it" "$ANYWARP" doctor "$dir/text"
for text in '#!' '#!   ' '#!\n' '#!/usr/bin/env' '#!/usr/bin/env -S'; do
    script odd "$text"
    timeout 30 "$ANYWARP" doctor "$dir/odd" >"$dir/out" 2>&1
    [ $? -le 1 ] || failed "doctor of a script that begins with $text" out
done

# Garbage.
script empty ''
expect 0 "warn $dir/empty is not a program" "$ANYWARP" doctor "$dir/empty"
script zeros '\0\0\0'
expect 1 "FAIL $dir/zeros is neither a program nor a script" "$ANYWARP" doctor "$dir/zeros"
head -c 100000 /dev/urandom | tr -d '#' >"$dir/zeros"
printf '\0' | dd of="$dir/zeros" bs=1 conv=notrunc status=none
expect 1 "FAIL $dir/zeros is neither a program nor a script" "$ANYWARP" doctor "$dir/zeros"
size=$(stat -c %s "$dir/linked")
for cut in 4 20 63 64 100 500 1000 2000 4096 $((size / 2)); do
    head -c "$cut" "$dir/linked" >"$dir/cut"
    chmod +x "$dir/cut"
    expect 1 "FAIL $dir/cut is a damaged program" "$ANYWARP" doctor "$dir/cut"
done
head -c $((size - 64)) "$dir/linked" >"$dir/cut"
expect 0 "ok $dir/cut loads anywarp's libibverbs" "$ANYWARP" doctor "$dir/cut"
cp "$dir/linked" "$dir/foreign"
printf '\1' | dd of="$dir/foreign" bs=1 seek=18 conv=notrunc status=none
expect 1 "FAIL $dir/foreign is a program for another machine" "$ANYWARP" doctor "$dir/foreign"
expect 126 'foreign: is for another machine: it cannot load' "$ANYWARP" run "$dir/foreign"
cp "$dir/linked" "$dir/words" # of the other size
[ "$(getconf LONG_BIT)" = 64 ] && class='\1' || class='\2'
printf "$class" | dd of="$dir/words" bs=1 seek=4 conv=notrunc status=none
expect 1 "FAIL $dir/words is a program for another machine" "$ANYWARP" doctor "$dir/words"
expect 126 'words: is for another machine: it cannot load' "$ANYWARP" run "$dir/words"
# The dynamic section, overwritten: its place is in the table that readelf prints.
offset=$(readelf -lW "$dir/linked" | awk '$1 == "DYNAMIC" { print $2 }')
cp "$dir/linked" "$dir/damaged"
head -c 256 /dev/urandom | dd of="$dir/damaged" bs=1 seek=$((offset)) conv=notrunc status=none
timeout 30 "$ANYWARP" doctor "$dir/damaged" >"$dir/out" 2>&1
[ $? = 1 ] || failed "a damaged dynamic section is no finding" out
ln -s plain "$dir/"$'odd\e[31m'
expect 0 'odd\?\[31m uses neither' "$ANYWARP" doctor "$dir/"$'odd\e[31m'

finish
