#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What stock programs say about the device.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_devices ibv_devinfo python3

# run NAME STATUS COMMAND...
run()
{
    local name=$1 want=$2
    shift 2
    start "$name" "$@"
    expect_status "$*" "$name" 20 "$want"
}

# expect COUNT PATTERN NAME: lines of the output that match.
expect()
{
    [ "$(grep -cP -- "$2" "$dir/$3")" = "$1" ] || failed "not $1 times /$2/" "$3"
}

run devices 0 ibv_devices
expect 1 '^ +anywarp0 +\t[0-9a-f]{16}$' devices
[ "$(sed 1,2d "$dir/devices" | wc -l)" = 1 ] || failed "not one device" devices

run list 0 ibv_devinfo -l
expect 1 '^1 HCA' list

run info 0 ibv_devinfo -v
expect 1 '^hca_id:' info
expect 1 '^hca_id:\tanywarp0$' info
expect 1 '\ttransport:\t+iWARP \(1\)$' info
expect 1 '\tphys_port_cnt:\t+1$' info
expect 1 '\tport:\t' info
expect 1 '\tstate:\t+PORT_ACTIVE \(4\)$' info
expect 1 '\tlink_layer:\t+Ethernet$' info
expect 1 '\tGID\[ +1\]:' info

# ibv_devinfo leaves out a GID whose last half is zero, as is GID 0: a MAC address and zeros.
cat >"$dir/gid.py" <<'PYTHON'
import ctypes

verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
verbs.ibv_query_gid.argtypes = [ctypes.c_void_p, ctypes.c_uint8, ctypes.c_int, ctypes.c_char_p]
context = verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0])
gid = ctypes.create_string_buffer(16)
print(verbs.ibv_query_gid(context, 1, 0, gid), gid.raw.hex())
PYTHON
run gid 0 "$(python3 -c 'import sys; print(sys.executable)')" "$dir/gid.py"
expect 1 '^0 [0-9a-f]{12}0{20}$' gid
expect 0 '^0 0{12}' gid

# Both kinds, the other one first: programs of rdma_cm get the one that it has, on the system's
# libraries as well, which find it by its GUID.
export ANYWARP_DEVICES='anyroce0=roce: anywarp0=iwarp:'
run both 0 ibv_devices
expect 1 '^ +anyroce0 ' both
expect 1 '^ +anywarp0 ' both
[ "$(sed -n '3,$s/.*\t *//p' "$dir/both" | sort -u | wc -l)" = 2 ] || failed 'one node GUID for both' both
run both_info 0 ibv_devinfo -v -d anyroce0
expect 1 '\ttransport:\t+InfiniBand \(0\)$' both_info
expect 1 '\tGID\[ +0\]:.*, RoCE v2$' both_info

# pair ADDRESS [OPTION]: a server and a client with this option of "anywarp run".
pair()
{
    local port what="rping, two devices, $1, ${2:-our libraries}"
    port=$(free_port)
    start_server server "$port" ${2:+"$2"} rping -s -a "$1" -p "$port" -C 5
    start client ${2:+"$2"} rping -c -a "$1" -p "$port" -C 5
    expect_status "$what" client 60 0 server
    expect_status "$what" server 30 0 client
}
if command -v rping >/dev/null; then
    addresses=(127.0.0.1)
    # Of this one the first device has no GID.
    ! grep -qs '^0*1 ' /proc/net/if_inet6 || addresses+=(::1)
    for address in "${addresses[@]}"; do
        pair "$address"
        ! compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null ||
            pair "$address" --system-libraries
    done
fi
address=$(own_addresses | head -n 1)
if [ -n "$address" ] && command -v fi_pingpong >/dev/null; then
    port=$(free_port)
    start_server server "$port" fi_pingpong -p verbs -e msg -I 20 -B "$port"
    start client fi_pingpong -p verbs -e msg -I 20 -P "$port" "$address"
    expect_status 'fi_pingpong, two devices' client 60 0 server
    expect_status 'fi_pingpong, two devices' server 30 0 client
fi
unset ANYWARP_DEVICES

# A folder of driver files without ours switches the device off.
mkdir "$dir/drivers"
export IBV_CONFIG_DIR=$dir/drivers
run off 0 ibv_devices
[ "$(sed 1,2d "$dir/off" | wc -l)" = 0 ] || failed "a device in spite of IBV_CONFIG_DIR" off
run info_off 255 ibv_devinfo
expect 1 'No IB devices found' info_off.err

echo 'driver anywarp' >"$dir/drivers/anywarp.driver"
run on 0 ibv_devices
expect 1 '^ +anywarp0 ' on

finish
