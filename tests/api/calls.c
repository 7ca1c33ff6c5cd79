/* SPDX-License-Identifier: BSD-2-Clause */
#include "calls.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define IS_NOT_OK ((unsigned long)-4096)

atomic_uint calls_sends, calls_epoll_changes;
__thread unsigned calls_sends_here;
int (*_Atomic calls_before)(long number, const long args[6]);

static void count(long number)
{
    if (number == SYS_sendmsg || number == SYS_sendto) {
        atomic_fetch_add(&calls_sends, 1);
        calls_sends_here++;
    }
    atomic_fetch_add(&calls_epoll_changes, number == SYS_epoll_ctl);
}

static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                     x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e,
                     x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}

/** As libc's: six arguments, -1 and errno. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
    va_list ap;
    long a[6];
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    count(number);
    int (*before)(long, const long *) = atomic_load(&calls_before);
    int refused = before ? before(number, a) : 0;
    long r = refused ? -refused : kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if ((unsigned long)r <= IS_NOT_OK)
        return r;
    errno = (int)-r;
    return -1;
}
