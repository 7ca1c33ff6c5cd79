/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of this process others can reach: a program that connects by rdma_cm alone has no port but
 * those that it listens on; queue pairs of the program's own have one from INIT on, until they go.
 */
#include "by_number.h"
#include "pair.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TCP_LISTENS 0x0a

/** Whether one of this process's descriptors is the socket. */
static bool is_ours(unsigned long inode)
{
    char want[32], is[64], path[300];
    DIR *dir = opendir("/proc/self/fd");
    bool found = false;
    assert_non_null(dir);
    snprintf(want, sizeof(want), "socket:[%lu]", inode);
    for (struct dirent *e; !found && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, is, sizeof(is) - 1);
        is[n < 0 ? 0 : n] = '\0';
        found = strcmp(is, want) == 0;
    }
    closedir(dir);
    return found;
}

/** Sockets of a table of IP that others can reach. @param state  in which they can; -1: any */
static int reachable(const char *table, int state)
{
    char line[512];
    FILE *f = fopen(table, "re");
    int count = 0;
    if (!f)
        return 0; /* no such family */
    while (fgets(line, sizeof(line), f)) {
        unsigned long inode;
        unsigned st;
        if (sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*d %*d %lu", &st, &inode) == 2)
            count += (state < 0 || st == (unsigned)state) && is_ours(inode);
    }
    fclose(f);
    return count;
}

/** Sockets of the unix family with a name, of either kind. */
static int named(void)
{
    char line[512];
    FILE *f = fopen("/proc/self/net/unix", "re");
    int count = 0;
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long inode;
        char name[200];
        if (sscanf(line, "%*x: %*x %*x %*x %*x %*x %lu %199s", &inode, name) == 2)
            count += is_ours(inode);
    }
    fclose(f);
    return count;
}

static int open_ports(void)
{
    return reachable("/proc/self/net/tcp", TCP_LISTENS) +
           reachable("/proc/self/net/tcp6", TCP_LISTENS) + reachable("/proc/self/net/udp", -1) +
           reachable("/proc/self/net/udp6", -1) + named();
}

/** rdma_cm alone: the listener's port is all there is. */
static void of_rdma_cm(void **state)
{
    static struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 8);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 8, 0, IBV_SEND_SIGNALED), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(open_ports(), 1);
    pair_close(&p, true);
    assert_int_equal(open_ports(), 0);
}

/** One port for all queue pairs: not before the first is in INIT, not after the last has gone. */
static void of_numbers(void **state)
{
    static struct end a, b;
    (void)state;
    end_make(&a);
    end_make(&b);
    assert_int_equal(open_ports(), 0);
    end_init(&a);
    assert_int_equal(open_ports(), 1);
    ends_connect(&a, &b);
    end_send_once(&a, &b, 1);
    assert_int_equal(open_ports(), 1);
    end_drop(&a);
    assert_int_equal(open_ports(), 1);
    end_drop(&b);
    assert_int_equal(open_ports(), 0);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(of_rdma_cm),
        cmocka_unit_test(of_numbers),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    setenv("ANYWARP_SHM", "off", 1); /* what rings are met at has a name, too */
    return ends_run(tests);
}
