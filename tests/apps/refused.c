/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program to which a system call is refused with EPERM, as by the filter of a container.
 * usage: refused CALL|socket=FAMILY COMMAND [ARGUMENT...]
 * Exit status 77: this kernel takes no filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number_of(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } rows[] = {
        {"accept4", SYS_accept4},     {"epoll_create1", SYS_epoll_create1},
        {"epoll_ctl", SYS_epoll_ctl}, {"epoll_pwait", SYS_epoll_pwait},
        {"eventfd2", SYS_eventfd2},   {"getrandom", SYS_getrandom},
        {"recvfrom", SYS_recvfrom},   {"sendmsg", SYS_sendmsg},
        {"socket", SYS_socket},       {"timerfd_create", SYS_timerfd_create},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!strncmp(name, rows[i].name, strlen(rows[i].name)))
            return rows[i].number;
    exit(2);
}

/** @param family  the lower half of the first argument that is meant; negative: each is */
static int refuse(int number, int family)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, family < 0 ? 2 : 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)family, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *family = strchr(argv[1], '=');
    if (refuse(number_of(argv[1]), family ? atoi(family + 1) : -1)) {
        fprintf(stderr, "refused: no filter of system calls: %s\n", strerror(errno));
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
