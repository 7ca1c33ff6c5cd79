/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets clients read a file by RDMA Reads. The program says where the file is in its memory and then
 * sleeps: the device answers.
 *
 *     cc read_server.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o read_server
 *     read_server [-a ADDRESS] [-p PORT] [-c CLIENTS] FILE
 *
 * Clients come one after another, CLIENTS of them, or without an end. The other end is
 * read_client.c.
 */
#include "common.h"

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READS 16 /* under way at a time */

const char usage_text[] = "read_server [-a address] [-p port] [-c clients] file\n";

static void *map_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        err(1, "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        errx(1, "%s: not a file with something in it", path);
    *size = (size_t)st.st_size;
    void *file = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED)
        err(1, "%s: mmap", path);
    close(fd);
    return file;
}

/* The receive completes when the client says goodbye, or fails when the connection ends without. */
static void serve(struct rdma_cm_id *id, void *file, size_t size)
{
    char goodbye;
    struct ibv_wc wc;
    /* This key is the client's alone. Access to read is all that it gives. */
    struct ibv_mr *file_mr = register_memory(id, file, size, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *goodbye_mr = register_memory(id, &goodbye, 1, IBV_ACCESS_LOCAL_WRITE);
    post_receive(id, goodbye_mr);
    if (accept_client(id, READS, file_mr)) {
        if (rdma_get_recv_comp(id, &wc) < 0)
            err(1, "rdma_get_recv_comp");
        if (succeeded(&wc, "a client that reads"))
            printf("a client has read all\n");
        rdma_disconnect(id);
    }
    ibv_dereg_mr(goodbye_mr);
    ibv_dereg_mr(file_mr);
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const char *address = "::", *port = DEFAULT_PORT;
    unsigned long clients = ULONG_MAX;
    for (int c; (c = getopt(argc, argv, "a:c:p:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'c')
            clients = number(optarg, 1, ULONG_MAX);
        else if (c == 'p')
            port = optarg;
        else
            usage();
    }
    if (optind != argc - 1)
        usage();

    size_t size;
    void *file = map_file(argv[optind], &size);
    struct rdma_cm_id *listener = listen_on(address, port, &cap);
    while (clients-- > 0) {
        struct rdma_cm_id *id = next_client(listener);
        serve(id, file, size);
        rdma_destroy_ep(id);
        fflush(stdout);
    }
    rdma_destroy_ep(listener);
    munmap(file, size);
    return 0;
}
