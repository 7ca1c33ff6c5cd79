/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_idle CONNECTIONS: two processes that have so many connections and nothing to do, after one
 * message each way on each of them. Prints the wake-ups a second of all threads, and the resident
 * memory a connection, of the process where it is more.
 */
#include "kit.h"
#include "rdma.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES      64
#define SETTLED_NS 1500000000 /* by then each has looked once whether its peer has answered */

static void answer(struct rdma_end *e)
{
    struct ibv_wc wc;
    do
        wc = rdma_wait(e->cq);
    while (!(wc.opcode & IBV_WC_RECV));
    rdma_post(e, (struct rdma_cm_id *)(uintptr_t)wc.wr_id, IBV_WR_SEND, 0, BYTES, 0);
    rdma_wait(e->cq);
}

static void serve(struct rdma_end *e)
{
    for (unsigned long left = *(unsigned long *)e->arg; left > 0; left--) {
        rdma_take(e, 1);
        answer(e);
    }
}

static void talk(struct rdma_end *e)
{
    struct rdma_cm_id *id = rdma_join(e);
    struct ibv_wc wc;
    rdma_post_recv(e, id, 0, BYTES);
    rdma_post(e, id, IBV_WR_SEND, 0, BYTES, 0);
    do
        wc = rdma_wait(e->cq);
    while (!(wc.opcode & IBV_WC_RECV));
}

static double resident(pid_t pid)
{
    char path[64];
    unsigned long total, pages;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    KIT_CHECK(f && fscanf(f, "%lu %lu", &total, &pages) == 2);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static unsigned long thread_wakes(const char *path)
{
    char line[128];
    unsigned long n, sum = 0;
    FILE *f = fopen(path, "r");
    KIT_CHECK(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
            sum += n;
    fclose(f);
    return sum;
}

/** Of all threads of the process but @p except. */
static unsigned long wakes(pid_t pid, pid_t except)
{
    char path[400];
    struct dirent *entry;
    unsigned long sum = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    KIT_CHECK(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || kit_number(entry->d_name) == (unsigned long)except)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
        sum += thread_wakes(path);
    }
    closedir(dir);
    return sum;
}

static void rest(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    KIT_CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0);
}

int main(int argc, char **argv)
{
    pid_t self = getpid();
    if (argc != 2) {
        fprintf(stderr, "usage: rdma_idle CONNECTIONS\n");
        return 2;
    }
    unsigned long connections = kit_number(argv[1]) + 1;
    struct rdma_end e = {.bytes = 4096, .cqe = 65536};
    pid_t peer = rdma_start(&e, serve, &connections);

    /* The first one brings what a process needs anyway. */
    talk(&e);
    double own_before = resident(self), peer_before = resident(peer);
    for (unsigned long i = 1; i < connections; i++)
        talk(&e);
    double own = resident(self) - own_before, others = resident(peer) - peer_before;

    rest(SETTLED_NS);
    unsigned long before = wakes(self, self) + wakes(peer, 0);
    uint64_t start = kit_ns();
    rest(kit_duration() * 6);
    double seconds = (double)(kit_ns() - start) / 1e9;
    unsigned long n = wakes(self, self) + wakes(peer, 0) - before;
    printf("wakeups %.2f /s\n", (double)n / seconds);
    double more = own > others ? own : others;
    printf("resident %.2f KB\n", (more > 0 ? more : 0) / 1024 / (double)(connections - 1));
    return 0;
}
