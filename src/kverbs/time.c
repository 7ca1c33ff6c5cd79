/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks, delays and random numbers. */
#include "kverbs/time.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/timex.h>

ktime_t ktime_get(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ktime_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

time64_t ktime_get_seconds(void)
{
    return ktime_get() / 1000000000;
}

cycles_t get_cycles(void)
{
    return (cycles_t)ktime_get();
}

unsigned long kverbs_jiffies(void)
{
    return (unsigned long)(ktime_get() / (1000000000 / HZ));
}

struct timespec kv_deadline(long left)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += left / HZ;
    end.tv_nsec += left % HZ * (1000000000 / HZ);
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    return end;
}

void do_gettimeofday(struct timeval *tv)
{
    gettimeofday(tv, NULL);
}

unsigned long get_seconds(void)
{
    return (unsigned long)time(NULL);
}

void msleep(unsigned ms)
{
    for (long left = (long)ms; left > 0;)
        left = schedule_timeout_uninterruptible(left);
}

unsigned long msleep_interruptible(unsigned ms)
{
    long left = (long)ms;
    while (left > 0 && !signal_pending(current))
        left = schedule_timeout_interruptible(left);
    return (unsigned long)left;
}

void usleep_range(unsigned long least, unsigned long most)
{
    (void)most;
    might_sleep();
    struct timespec ts = {.tv_sec = (time_t)(least / 1000000),
                          .tv_nsec = (long)(least % 1000000 * 1000)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        continue;
}

void udelay(unsigned long us)
{
    ktime_t end = ktime_get() + (ktime_t)us * 1000;
    while (ktime_get() < end)
        continue;
}

void get_random_bytes(void *to, int n)
{
    for (int done = 0; done < n;) {
        ssize_t got = getrandom((char *)to + done, (size_t)(n - done), 0);
        if (got > 0)
            done += (int)got;
        else if (errno != EINTR)
            BUG();
    }
}

u32 get_random_u32(void)
{
    u32 n;
    get_random_bytes(&n, sizeof n);
    return n;
}
