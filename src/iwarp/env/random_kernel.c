/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of random.c, without a library: what getrandom(2) gives. */
#include "env/random.h"

#include "common/sys.h"
#include "env/log.h"

#include <stdatomic.h>
#include <string.h>

#define NUMBERS 64 /* 256 bytes: no signal interrupts a call for that few */

static struct lock lock = LOCK(LOCK_RANDOM);

static struct {
    uint32_t numbers[NUMBERS];
    unsigned left; /* the first ones; the others are given out */
} buffer;

void iw_random_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        buffer.left = 0; /* they are the parent's */
    lock_fork(&lock, step);
}

static void tell(int error)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_WARN, "no random numbers, and so no keys and no queue pairs: %s",
               strerror(error));
}

static int fill_locked(void)
{
    assert_held(&lock);
    long n;
    do
        n = sys_getrandom(buffer.numbers, sizeof(buffer.numbers));
    while (n == -EINTR); /* early at boot it waits */
    if (n != sizeof(buffer.numbers)) {
        tell(n < 0 ? (int)-n : EIO);
        return -EIO;
    }
    buffer.left = NUMBERS;
    return 0;
}

int iw_random32(uint32_t *out)
{
    lock_get(&lock);
    int r = buffer.left ? 0 : fill_locked();
    if (!r)
        *out = buffer.numbers[--buffer.left];
    lock_put(&lock);
    return r;
}
