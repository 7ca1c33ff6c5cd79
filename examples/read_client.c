/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the file of a read_server by RDMA Reads and writes it to standard output.
 *
 *     cc read_client.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o read_client
 *     read_client [-p PORT] SERVER >FILE
 */
#include "common.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READS 16          /* under way at a time, as many as the server allows */
#define CHUNK (1UL << 18) /* bytes of one */

const char usage_text[] = "read_client [-p port] server\n";

static size_t chunk_size(const struct region *file, uint64_t i)
{
    uint64_t left = file->length - i * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void copy(struct rdma_cm_id *id)
{
    char *buf = allocate(READS * CHUNK);
    struct ibv_mr *mr =
        register_memory(id, buf, READS * CHUNK, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    connect_to_server(id, READS, NULL, 0);
    struct region file = region_of_server(id, 1);

    uint64_t count = (file.length - 1) / CHUNK + 1;
    for (uint64_t i = 0; i < count + READS; i++) {
        char *chunk = buf + i % READS * CHUNK;
        if (i >= READS && i - READS < count) {
            await_sent(id, "RDMA Read");
            size_t size = chunk_size(&file, i - READS);
            if (fwrite(chunk, 1, size, stdout) != size)
                err(1, "standard output");
        }
        if (i < count && rdma_post_read(id, NULL, chunk, chunk_size(&file, i), mr,
                                        IBV_SEND_SIGNALED, file.addr + i * CHUNK, file.rkey))
            err(1, "rdma_post_read");
    }
    if (fflush(stdout))
        err(1, "standard output");
    post_send(id, mr, 0);
    await_sent(id, "goodbye");

    rdma_disconnect(id);
    ibv_dereg_mr(mr);
    free(buf);
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = READS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const char *port = DEFAULT_PORT;
    for (int c; (c = getopt(argc, argv, "p:")) != -1;) {
        if (c != 'p')
            usage();
        port = optarg;
    }
    if (optind != argc - 1)
        usage();
    struct rdma_cm_id *id = resolve(argv[optind], port, &cap);
    copy(id);
    rdma_destroy_ep(id);
    return 0;
}
