#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A letter from one process to another. The server ends with the client.
./letter & server=$!
sleep 0.2
if ! ./letter 127.0.0.1 'all is well'; then
    kill $server
    exit 1
fi
wait $server
