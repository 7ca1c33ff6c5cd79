#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that look for devices by paths: every call of libc that libanywarp-paths.so takes, and stock
# programs, which see what libibverbs tells.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
paths=$BUILDDIR/tests/apps/paths
library=$BUILDDIR/.libs/libanywarp-paths.so
# What a machine with adapters has is beside it, and this test knows none of that.
for folder in /sys/class/infiniband /sys/class/infiniband_verbs /dev/infiniband; do
    [ ! -e "$folder" ] || skip "this machine has $folder"
done
! sanitized || skip 'a sanitizer has to be the first library'

start calls "$paths"
expect_status 'every call' calls 60 0
start off -e ANYWARP_PATHS=off "$paths" none
expect_status 'off' off 20 0
mkdir "$dir/drivers"
IBV_CONFIG_DIR=$dir/drivers start none "$paths" none
expect_status 'no device' none 20 0
# A shell of "anywarp env".
(eval "$("$ANYWARP" env)" && exec "$paths") >"$dir/shell" 2>&1 || failed 'anywarp env' shell
(eval "$("$ANYWARP" env)" && ANYWARP_PATHS=off exec "$paths" none) >"$dir/shell" 2>&1 ||
    failed 'off, with anywarp env' shell
(eval "$(ANYWARP_PATHS=off "$ANYWARP" env)" && ! grep -q paths <<<"${LD_PRELOAD:-}") ||
    failed 'ANYWARP_PATHS=off anywarp env'
(eval "$("$ANYWARP" env)" && eval "$("$ANYWARP" env)" && "$ANYWARP" run printenv LD_PRELOAD) >"$dir/shell"
[ "$("$ANYWARP" run -- "$ANYWARP" run printenv LD_PRELOAD)" = "$library" ] ||
    failed 'one in the other names it twice'
[ "$(LD_PRELOAD=libdl.so.2 "$ANYWARP" run printenv LD_PRELOAD)" = "libdl.so.2:$library" ] ||
    failed "what was preloaded does not come first"
start strange -e ANYWARP_PATHS=yes true
expect_status 'a strange value' strange 20 0
grep -q '^anywarp: ANYWARP_PATHS=yes is not understood (on, off): ignored$' "$dir/strange.err" ||
    failed 'a strange value is not told' strange

# It asks for no other library of ours, loads none before it is needed, and has the names of libc only.
start maps cat /proc/self/maps
expect_status 'no path of a device' maps 20 0
grep -q libanywarp-paths "$dir/maps" && ! grep -q 'libibverbs\|librdmacm' "$dir/maps" ||
    failed 'a program without RDMA has libibverbs' maps
start late cat /sys/class/infiniband/anywarp0/node_guid /proc/self/maps
expect_status 'a path of a device' late 20 0
grep -q libibverbs "$dir/late" || failed 'who describes the devices?' late
if command -v nm >/dev/null; then
    sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' "$SRCDIR/src/preload/paths.map" | sort >"$dir/wanted"
    nm -D --defined-only "$library" | awk '$2 ~ /[TWDBV]/ { print $3 }' | sed 's/@.*//' | sort >"$dir/names"
    diff "$dir/wanted" "$dir/names" >"$dir/differ" || failed 'other names than those of libc' differ
fi

# A program with AddressSanitizer, which wants to be first.
printf '#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }\n' >"$dir/main.c"
if ${CC:-cc} -fsanitize=address -o "$dir/main" "$dir/main.c" 2>/dev/null && "$dir/main"; then
    start sanitized "$dir/main"
    expect_status 'with AddressSanitizer' sanitized 30 0
fi

# Python, ls and the shell.
if command -v python3 >/dev/null; then
    cat >"$dir/list.py" <<'PYTHON'
import os, stat
assert os.listdir("/sys/class/infiniband") == ["anywarp0"]
assert [e.name for e in os.scandir("/dev/infiniband")] == ["uverbs192"]
assert stat.S_ISCHR(os.stat("/dev/infiniband/uverbs192").st_mode)
files = [os.path.join(d, f) for d, _, names in os.walk("/sys/class/infiniband") for f in names]
assert len(files) > 20 and all(open(f).read().endswith("\n") for f in files), files
PYTHON
    start python "$(python3 -c 'import sys; print(sys.executable)')" "$dir/list.py"
    expect_status 'Python' python 30 0
fi
start ls ls -l /sys/class/infiniband /dev/infiniband
expect_status 'ls' ls 20 0
grep -q '^crw-rw-rw- .* 231, 384 .* uverbs192$' "$dir/ls" || failed 'ls shows no device' ls
[ ! -s "$dir/ls.err" ] || failed 'ls complains' ls
start shell bash -c 'cd /sys/class/infiniband && for f in */ports/1/state; do read -r line <$f; echo $f: $line; done
    echo /sys/class/infiniband/*; for f in /sys/class/infiniband/*/ports/1/rate; do cat "$f"; done'
expect_status 'bash' shell 20 0
grep -q '^anywarp0/ports/1/state: 4: ACTIVE$' "$dir/shell" && grep -q '^/sys/class/infiniband/anywarp0$' "$dir/shell" &&
    grep -q ' Gb/sec (' "$dir/shell" || failed 'bash sees something else' shell

# ibstatus of infiniband-diags is a script, which reads nothing else.
if command -v ibstatus >/dev/null; then
    start ibstatus ibstatus
    expect_status 'ibstatus' ibstatus 20 0
    grep -q "^Infiniband device 'anywarp0' port 1 status:" "$dir/ibstatus" &&
        grep -q 'phys state:.*5: LinkUp$' "$dir/ibstatus" || failed 'ibstatus sees something else' ibstatus
fi

# Files say what the calls say.
if command -v ibv_devinfo >/dev/null; then
    start info ibv_devinfo -v
    expect_status 'ibv_devinfo' info 20 0
    start guid cat /sys/class/infiniband/anywarp0/node_guid
    expect_status 'node_guid' guid 20 0
    grep -q "node_guid:[[:space:]]*$(cat "$dir/guid")$" "$dir/info" || failed 'another GUID' info guid
fi

# An address that comes while a program runs is there.
if unshare -rn true 2>/dev/null; then
    cat >"$dir/script" <<'END'
ip link set lo up
cat /sys/class/infiniband/anywarp0/ports/1/gids/0 >/dev/null
ip addr add 192.0.2.77/32 dev lo
while read -r line; do echo "$line"; done < <(cat /sys/class/infiniband/anywarp0/ports/1/gids/*)
END
    timeout 60 unshare -rn "$ANYWARP" run bash "$dir/script" >"$dir/gids" 2>&1
    [ "$(grep -c ':ffff:c000:024d$' "$dir/gids")" = 1 ] || failed 'no GID of a new address' gids
fi

# What the machine has stays, and is listed beside ours.
if unshare -rm true 2>/dev/null; then
    cat >"$dir/adapter" <<'END'
mount -t tmpfs none /sys/class || exit
mkdir -p /sys/class/infiniband/mlx5_0 /sys/class/infiniband_verbs
echo '1: CA' >/sys/class/infiniband/mlx5_0/node_type
echo 5 >/sys/class/infiniband_verbs/abi_version
exec "$ANYWARP" run sh -c 'ls /sys/class/infiniband /sys/class/infiniband_verbs
    cat /sys/class/infiniband/*/node_type /sys/class/infiniband_verbs/abi_version
    echo more >/sys/class/infiniband/mlx5_0/node_desc; cat /sys/class/infiniband/mlx5_0/node_desc'
END
    unshare -rm bash "$dir/adapter" >"$dir/both" 2>&1
    [ "$(tr -s '\n' ' ' <"$dir/both")" = "/sys/class/infiniband: anywarp0 mlx5_0 /sys/class/infiniband_verbs: \
abi_version uverbs192 4: RNIC 1: CA 5 more " ] || failed 'beside an adapter' both
fi

# tag_latency WHAT [TEST]: UCX's messages with tags, or another of its tests, over whatever it finds.
tag_latency()
{
    local port
    port=$(free_port)
    start_server server "$port" "${ucx_perftest[@]}" -t "${2-tag_lat}" -n 100 -w 10 -p "$port"
    start client "${ucx_perftest[@]}" -t "${2-tag_lat}" -n 100 -w 10 -p "$port" 127.0.0.1
    expect_status "UCX's ${2-tags}, $1" client 60 0 server
    expect_status "UCX's ${2-tags}, $1" server 30 0 client
}

# UCX asks for a device node, and takes RoCE devices alone.
if command -v ucx_perftest >/dev/null && compgen -G '/usr/lib/*/ucx/libuct_ib.so*' >/dev/null; then
    tag_latency 'an iWARP device'
    export ANYWARP_DEVICES=anyroce0=roce:
    for transport in rc_v ud_verbs; do
        for what in tag_lat tag_bw ucp_put_lat ucp_get ucp_fadd ucp_am_lat; do
            UCX_TLS=$transport,self UCX_NET_DEVICES=anyroce0:1 tag_latency $transport $what
        done
    done
    start ucx_info ucx_info -d
    expect_status 'ucx_info' ucx_info 60 0
    tr -s ' \n#' ' ' <"$dir/ucx_info" | grep -q 'Transport: rc_verbs Device: anyroce0:1 ' ||
        failed 'UCX does not see the device' ucx_info
    for how in 'put_bw -D bcopy -s 4096' 'put_bw -D zcopy -s 65536' 'am_bw -D zcopy -s 4096' \
        'get -D zcopy -s 65536' 'am_lat -s 8'; do
        port=$(free_port)
        read -ra options <<<"-x rc_verbs -d anyroce0:1 -n 500 -p $port -t $how"
        start_server server "$port" "${ucx_perftest[@]}" "${options[@]}"
        start client "${ucx_perftest[@]}" "${options[@]}" 127.0.0.1
        expect_status "UCX, $how" client 60 0 server
        expect_status "UCX, $how" server 30 0 client
    done
fi

finish
