#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI over libfabric's verbs provider, 2 and 4 ranks: with the iWARP device alone, with a RoCE one
# beside it, and with that alone; and over UCX, which takes a RoCE device, connected and by datagrams.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need mpirun mpicc

cat >"$dir/sums.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* What the neighbours put into a window, and all add to it, is there. */
static void window(int rank, int ranks)
{
    enum { N = 1024 };
    int *w, own[N], got[N], to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, sum = 0;
    MPI_Win win;
    MPI_Win_allocate(2 * N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w, &win);
    for (int i = 0; i < 2 * N; i++)
        w[i] = 0;
    for (int i = 0; i < N; i++)
        own[i] = rank + 10;
    MPI_Win_fence(0, win);
    MPI_Put(own, N, MPI_INT, to, 0, N, MPI_INT, win);
    for (int r = 0; r < ranks; r++) {
        MPI_Accumulate(own, N, MPI_INT, r, N, N, MPI_INT, MPI_SUM, win);
        sum += r + 10;
    }
    MPI_Win_fence(0, win);
    MPI_Get(got, N, MPI_INT, to, N, N, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++)
        if (w[i] != from + 10 || w[N + i] != sum || got[i] != sum)
            MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Win_free(&win);
}

/* Sums of 4 bytes to 4 MB over all ranks, each looked at. */
int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int n = 1; n <= 1 << 20; n *= 4) {
        int *own = malloc(n * sizeof(int)), *sum = malloc(n * sizeof(int));
        for (int i = 0; i < n; i++)
            own[i] = rank + i;
        MPI_Allreduce(own, sum, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            if (sum[i] != ranks * i + ranks * (ranks - 1) / 2)
                MPI_Abort(MPI_COMM_WORLD, 1);
        free(own);
        free(sum);
    }
    if (argc > 1)
        window(rank, ranks);
    if (rank == 0)
        printf("%d ranks agree\n", ranks);
    MPI_Finalize();
    return 0;
}
END
mpicc -o "$dir/program" "$dir/sums.c" 2>"$dir/mpicc" || skip "mpicc does not work: $(head -1 "$dir/mpicc")"
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

for devices in anywarp0=iwarp: 'anywarp0=iwarp: anyroce0=roce:' anyroce0=roce:; do
    for ranks in 2 4; do
        start sums -e "ANYWARP_DEVICES=$devices" mpirun --oversubscribe -np "$ranks" --mca pml cm --mca mtl ofi \
            --mca mtl_ofi_provider_include 'verbs;ofi_rxm' "$dir/program"
        expect_status "$ranks ranks, $devices" sums 120 0
        grep -q "^$ranks ranks agree" "$dir/sums" ||
            failed "$ranks ranks, $devices: no result" sums
    done
done

if ompi_info 2>/dev/null | grep -q 'MCA pml: ucx' && ! sanitized; then
    for transport in rc_v ud_verbs; do
        for ranks in 2 4; do
            start sums -e ANYWARP_DEVICES=anyroce0=roce: -e UCX_TLS=$transport,self -e UCX_NET_DEVICES=anyroce0:1 \
                mpirun --oversubscribe -np "$ranks" --mca pml ucx --mca osc ucx --mca btl ^openib "$dir/program" window
            expect_status "$ranks ranks over UCX, $transport" sums 120 0
            grep -q "^$ranks ranks agree" "$dir/sums" ||
                failed "$ranks ranks over UCX, $transport: no result" sums
        done
    done
fi

finish
