/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program as on Linux 4.18: a filter answers what is newer as that kernel would.
 * usage: old_linux [-m] COMMAND [ARGUMENT...]
 *   -m  one that was built without membarrier(2), too
 * Exit status 77: this kernel takes no filter.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH         AUDIT_ARCH_X86_64
#define LAST_SYSCALL 334 /* rseq */
#elif defined(__aarch64__)
#define ARCH         AUDIT_ARCH_AARCH64
#define LAST_SYSCALL 293 /* rseq */
#endif

#define LAST_MADVISE  18 /* MADV_KEEPONFORK; 100 and more are older */
#define MADVISE_OLDER 100
#define LAST_SOCKET   61         /* SO_TXTIME */
#define LAST_TCP      36         /* TCP_INQ */
#define QUERY_MAPS    0xc0686611 /* PROCMAP_QUERY */

#define LOAD(member)           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(op, value, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, value, yes, no)
#define ANSWER(error)          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#ifdef ARCH
/* The lower half of an argument, on the two machines that are known here. */
#define ARGUMENT(n) LOAD(args[n])

static int become_old(bool membarrier)
{
    struct sock_filter rules[] = {
        LOAD(arch),
        IF(BPF_JEQ, ARCH, 1, 0),
        ALLOW,
        LOAD(nr),
        IF(BPF_JGT, LAST_SYSCALL, 0, 1),
        ANSWER(ENOSYS),
        IF(BPF_JEQ, membarrier ? (unsigned)-1 : SYS_membarrier, 0, 1),
        ANSWER(ENOSYS),

        IF(BPF_JEQ, SYS_madvise, 0, 5),
        ARGUMENT(2),
        IF(BPF_JGT, LAST_MADVISE, 0, 2),
        IF(BPF_JGE, MADVISE_OLDER, 1, 0),
        ANSWER(EINVAL),
        ALLOW,

        IF(BPF_JEQ, SYS_ioctl, 0, 4),
        ARGUMENT(1),
        IF(BPF_JEQ, QUERY_MAPS, 0, 1),
        ANSWER(ENOTTY),
        ALLOW,

        IF(BPF_JEQ, SYS_setsockopt, 1, 0),
        IF(BPF_JEQ, SYS_getsockopt, 0, 9),
        ARGUMENT(1),
        IF(BPF_JEQ, SOL_SOCKET, 0, 3),
        ARGUMENT(2),
        IF(BPF_JGT, LAST_SOCKET, 4, 0),
        ALLOW,
        IF(BPF_JEQ, IPPROTO_TCP, 0, 3),
        ARGUMENT(2),
        IF(BPF_JGT, LAST_TCP, 0, 1),
        ANSWER(ENOPROTOOPT),
        ALLOW,
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program);
}
#else
static int become_old(bool membarrier)
{
    (void)membarrier;
    errno = ENOSYS;
    return -1;
}
#endif

/** Whether the filter does what it says. */
static const char *mistake(bool membarrier)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (syscall(SYS_pidfd_open, getpid(), 0) != -1 || errno != ENOSYS)
        return "pidfd_open() is there";
    if ((syscall(SYS_membarrier, 0, 0, 0) >= 0) != membarrier)
        return "membarrier() is not as it should be";
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(page, 4096, 22) != -1 || errno != EINVAL || madvise(page, 4096, MADV_DONTFORK))
        return "madvise() is not as it should be";
    if (setsockopt(fd, IPPROTO_TCP, 44, &on, sizeof(on)) != -1 || errno != ENOPROTOOPT ||
        setsockopt(fd, IPPROTO_TCP, 1, &on, sizeof(on)) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
        return "setsockopt() is not as it should be";
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    bool membarrier = argc < 2 || strcmp(argv[1], "-m") != 0;
    argv += membarrier ? 1 : 2;
    if (argc < 2 || !*argv)
        return 2;
    if (become_old(membarrier)) {
        fprintf(stderr, "old_linux: no filter of system calls: %s\n", strerror(errno));
        return 77;
    }
    const char *why = mistake(membarrier);
    if (why) {
        fprintf(stderr, "old_linux: %s\n", why);
        return 99;
    }
    execvp(*argv, argv);
    perror(*argv);
    return 127;
}
