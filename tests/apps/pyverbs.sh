#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tests of rdma-core itself, which Debian's python3-pyverbs brings along: what they have for a
# device like ours passes, verbs and rdma_cm, queue pairs connected by number among them.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"

# The interpreter of the distribution, for which the modules are.
python=/usr/bin/python3
theirs=/usr/share/doc/rdma-core/tests
"$python" -c 'import pyverbs' 2>/dev/null || skip 'python3-pyverbs is not installed'
[ -e "$theirs/run_tests.py" ] || skip "$theirs is not there: documentation is left out here"
cp -r "$theirs" "$dir/tests"
gzip -df "$dir"/tests/*.gz

# They take the address of a device from sysfs, where ours is not, and skip what needs one without.
cat >"$dir/tests/ours.py" <<'END'
import os, sys, time, unittest
from importlib.machinery import SourceFileLoader
from args_parser import parser
tests = SourceFileLoader("tests", sys.path[0] + "/__init__.py").load_module()
parser.parse_args()
try:
    import pyverbs.cm_enums as ce
except ImportError: # as in rdma-core 65
    from pyverbs.librdmacm_enums import rdma_cm_event_type as ce
from tests.base import RDMATestCase
from tests.base_rdmacm import AsyncCMResources
from tests.rdmacm_utils import CMConnection
from tests.test_device import DeviceTest
from tests.test_rdmacm import CMTestCase
import tests.utils
RDMATestCase._get_ip_mac = lambda self, dev, port, gid: \
    self.args.append([dev, port, gid, "127.0.0.1", "00:00:00:00:00:00"])
if os.environ.get("CONNECTIONS_ONLY"):
    for name in dir(CMTestCase):
        if "udp" in name or "multicast" in name:
            setattr(CMTestCase, name, unittest.skip("for datagrams")(getattr(CMTestCase, name)))
        if "resolve_addrinfo" in name:
            setattr(CMTestCase, name, unittest.skip("has no WRITE_CM_EVENT")(getattr(CMTestCase, name)))
# Since a release between 44 and 56 this one compares with what sysfs says.
if hasattr(tests.utils, "get_pkey_from_kernel"):
    DeviceTest.test_get_pkey_index = unittest.skip("not in sysfs")(DeviceTest.test_get_pkey_index)
if "roce" not in os.environ.get("ANYWARP_DEVICES", ""):
    # Who connects a QP that is not the id's hears CONNECT_RESPONSE with InfiniBand, and sees to its states;
    # over iWARP it is ESTABLISHED, with siw, too, and the QP in RTS.
    handler = CMConnection.event_handler
    CMConnection.event_handler = lambda self, expected_event=None: handler(
        self, {ce.RDMA_CM_EVENT_CONNECT_RESPONSE: ce.RDMA_CM_EVENT_ESTABLISHED}.get(expected_event, expected_event))
    AsyncCMResources.modify_ext_qp_to_rts = lambda self, conn_idx=0: None
    # The writer's completion says with iWARP that its buffer is its own again, not that the bytes are there.
    class Written:
        def __init__(self, syncer, memory, size):
            self.syncer, self.memory, self.size, self.waits = syncer, memory, size, 0
        def wait(self):
            self.syncer.wait()
            self.waits += 1
            for _ in range(1000 if self.waits == 2 else 0):
                if self.memory.read(self.size, 0) == b"c" * self.size:
                    break
                time.sleep(0.01)
    traffic = CMConnection.remote_traffic
    def remote_traffic(self, passive, remote_op="write"):
        syncer = self.syncer
        if passive and remote_op == "write":
            self.syncer = Written(syncer, self.cm_res.mr, self.cm_res.msg_size)
        traffic(self, passive, remote_op)
        self.syncer = syncer
    CMConnection.remote_traffic = remote_traffic
unittest.main(module=tests)
END

start all "$python" "$dir/tests/ours.py" -v
expect_status "rdma-core's tests" all 240 0
passed=$(grep -ac '\.\.\. ok$' "$dir/all.err")
echo "$passed passed, $(grep -ac '\.\.\. skipped' "$dir/all.err") skipped"
[ "$passed" -ge 99 ] || failed "only $passed of rdma-core's tests ran" all

# On a RoCE device they are as they stand.
start roce -e 'ANYWARP_DEVICES=anyroce0=roce:' "$python" "$dir/tests/ours.py" -v
expect_status "rdma-core's tests on a RoCE device" roce 240 0
[ "$(grep -ac '\.\.\. ok$' "$dir/roce.err")" -ge 99 ] || failed "too few of them ran" roce

# Those of rdma_cm on the system's own libraries, too: connections, as anywarp-uverbs(7) says.
if compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null; then
    start system --system-libraries -e CONNECTIONS_ONLY=1 "$python" "$dir/tests/ours.py" -v -k rdmacm
    expect_status "rdma-core's tests of rdma_cm on the system's libraries" system 120 0
    [ "$(grep -ac '\.\.\. ok$' "$dir/system.err")" -ge 5 ] || failed "they did not run" system
fi

finish
