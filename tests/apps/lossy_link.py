#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# A link between the network namespace of the caller and that of a process: TUN devices "near" and
# "far". It loses some of the datagrams of UDP, and says at the end how many.
# Usage: lossy_link.py PID PERCENT

import ctypes
import fcntl
import os
import random
import select
import signal
import struct
import sys

TUNSETIFF, IFF_TUN_NO_PI = 0x400454ca, 0x1001
CLONE_NEWNET = 0x40000000
PROTOCOL, UDP = 9, 17  # of an IPv4 header


def device(name):
    fd = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH22x', name.encode(), IFF_TUN_NO_PI))
    return fd


def relay(near, far, percent):
    lost = passed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print('ready', flush=True)
    try:
        while True:
            for fd in select.select([near, far], [], [])[0]:
                packet = os.read(fd, 65536)
                if packet[PROTOCOL] == UDP and random.random() * 100 < percent:
                    lost += 1
                    continue
                try:
                    os.write(far if fd == near else near, packet)
                    passed += 1
                except OSError:  # it is not up yet
                    pass
    finally:
        print(f'{lost} lost, {passed} passed', flush=True)


if len(sys.argv) != 3:
    sys.exit('usage: lossy_link.py PID PERCENT')
own = device('near')
if ctypes.CDLL(None).setns(os.open(f'/proc/{sys.argv[1]}/ns/net', os.O_RDONLY), CLONE_NEWNET):
    sys.exit('setns failed')
relay(own, device('far'), float(sys.argv[2]))
