# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The guest and the programs of both sides: "anywarp" is this machine, "siw" the guest. They are
# joined by a tap device in a network namespace that goes with the last process of the script.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/siw/cache.sh
. "$SRCDIR/tests/interop/siw/cache.sh"

siw=$SRCDIR/tests/interop/siw
declare -A address_of=([anywarp]=10.77.0.1 [siw]=10.77.0.2)
declare -A side_of=()
guest_pid=
accelerator=kvm

# enter_namespace SCRIPT ARGUMENT...: goes on in a network namespace of its own.
enter_namespace()
{
    local user=()
    [ "${SIW_NAMESPACE-}" != entered ] || return 0
    [ "$(id -u)" = 0 ] || user=(--map-root-user)
    unshare --net "${user[@]}" true 2>/dev/null || skip "no network namespaces here"
    SIW_NAMESPACE=entered exec unshare --net "${user[@]}" bash "$@"
}

# build_end: our own program of both sides.
build_end()
{
    cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -o "$dir/end" "$siw"/{main,end,action}.c \
        -lrdmacm -libverbs || exit 99
}

guest_link()
{
    ip link set lo up
    ip tuntap add tap0 mode tap 2>/dev/null || skip "no tap devices here"
    ip addr add "${address_of[anywarp]}/24" dev tap0
    ip link set tap0 up
}

guest_ready()
{
    grep -q '^GUEST READY' "$dir/console" || gone guest
}

# start_guest ACCELERATOR SECONDS: fails if the guest does not come up. The kernel's test of its timer
# takes a busy machine for a broken one.
start_guest()
{
    : >"$dir/console"
    console_read=0
    qemu-system-x86_64 -accel "$1" -cpu max -smp 2 -m 1024 -no-reboot \
        -display none -monitor none -serial "file:$dir/console" \
        -kernel "$siw_cache/vmlinuz" -initrd "$dir/initramfs" \
        -append 'console=ttyS0 quiet panic=-1 oops=panic no_timer_check' \
        -netdev tap,id=net,ifname=tap0,script=no,downscript=no -device virtio-net-pci,netdev=net \
        </dev/null >"$dir/qemu" 2>&1 &
    guest_pid=$!
    pids[guest]=$guest_pid
    within "$2" guest_ready && running guest &&
        within 20 in_guest 'test -e /dev/infiniband/uverbs0' && return
    guest_down
    return 1
} 2>/dev/null

# guest_up: what is newer than the cached image goes into an archive before it. Not every
# machine that has /dev/kvm can run a guest with it.
guest_up()
{
    mkdir -p "$dir/overlay/usr/bin"
    cp "$siw/init" "$dir/overlay/init"
    cp "$dir/end" "$(command -v ibv_devinfo)" "$dir/overlay/usr/bin/"
    (cd "$dir/overlay" && find . | cpio -o -H newc --quiet && cat "$siw_cache/initramfs.gz") \
        >"$dir/initramfs"
    if [ "$accelerator" = kvm ]; then
        [ -w /dev/kvm ] && start_guest kvm 30 && return
        accelerator=tcg,thread=multi
    fi
    start_guest "$accelerator" 120 && return
    failed "the guest does not start" qemu console
    exit 1
}

guest_down()
{
    kill -KILL "$guest_pid" 2>/dev/null
    wait "$guest_pid" 2>/dev/null
    unset 'pids[guest]'
}

# What the guest's kernel complained of since the last call; fails if it did not.
guest_complaint()
{
    local found size
    local words='BUG:|Oops|WARNING:|general protection|RIP:|Kernel panic|hung_task|refcount_t'
    size=$(stat -c %s "$dir/console")
    found=$(tail -c +$((console_read + 1)) "$dir/console" | tr -d '\r' | grep -aE "$words" |
        head -n 4)
    console_read=$size
    [ -n "$found" ] && printf '%s\n' "$found"
}

# in_guest COMMAND: output and exit status are the command's; fails if it did not come to its end.
in_guest()
{
    local line status=99 shell
    { exec {shell}<>"/dev/tcp/${address_of[siw]}/2323"; } 2>/dev/null || return
    printf '(%s\n) </dev/null 2>&1\nprintf "\\n@@%%d\\n" $?\nexit\n' "$1" >&"$shell"
    while IFS= read -r -u "$shell" line; do
        case $line in
        @@*) status=${line#@@} ;;
        ?*) printf '%s\n' "$line" ;;
        esac
    done
    exec {shell}<&-
    return "$status"
}

# launch SIDE NAME COMMAND...: in the background, as "start" of lib.sh does.
launch()
{
    local side=$1 name=$2
    shift 2
    side_of[$name]=$side
    if [ "$side" = anywarp ]; then
        PATH=$dir:$PATH start "$name" "$@"
        return
    fi
    : >"$dir/$name.err"
    in_guest "exec timeout -s KILL 100 sh -c 'echo \$\$ >/tmp/$name.pid; exec $*'" \
        >"$dir/$name" 2>>"$dir/$name.err" &
    pids[$name]=$!
}

guest_listening()
{
    in_guest "grep -q ':$(printf %04X "$1") 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6"
}

# launch_server SIDE NAME PORT COMMAND...: returns when it listens; fails if it never does.
launch_server()
{
    local side=$1 name=$2 port=$3
    shift 3
    launch "$side" "$name" "$@"
    if [ "$side" = anywarp ]; then
        wait_listening "$port" "${pids[$name]}" && return
    else
        within 20 guest_listening "$port" && return
    fi
    failed "$*: does not listen on port $port" "$name"
    return 1
}

# kill_end NAME: SIGKILL, to the program itself.
kill_end()
{
    if [ "${side_of[$1]}" = siw ]; then
        in_guest "kill -KILL \$(cat /tmp/$1.pid)" >/dev/null 2>&1
    else
        kill -KILL "${pids[$1]}" 2>/dev/null
    fi
}

# kill_ends: whatever a case left running, on both sides.
kill_ends()
{
    local name
    for name in "${!pids[@]}"; do
        case $name in guest | tshark) continue ;; esac
        kill_end "$name"
        ended "$name" 5
    done
}
