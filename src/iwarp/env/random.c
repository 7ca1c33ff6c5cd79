/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/random.h"

#include "common/sys.h"
#include "env/log.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define NUMBERS 16

/* The generator's own locks know nothing of fork(). */
static struct lock lock = LOCK(LOCK_RANDOM);
static atomic_uint life; /* of the process; a child has another */

/** A thread's own, so that threads which register memory seldom meet at the lock. */
static __thread struct {
    uint32_t numbers[NUMBERS];
    unsigned left; /* the first ones; the others are given out */
    unsigned life; /* in which they were made */
} buffer;

void iw_random_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        atomic_fetch_add(&life, 1);
    lock_fork(&lock, step);
}

/* Its clean-up at exit() frees memory: a signal handler that calls exit() may have interrupted
 * malloc(), and the program would hang for a library that it does not know of. */
static void no_cleanup(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

/* OpenSSL does not say what the kernel has against it. */
static void tell(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    uint8_t byte;
    long r = sys_getrandom(&byte, 1);
    if (!atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_WARN, "no random numbers, and so no keys and no queue pairs: %s",
               r < 0 ? strerror((int)-r) : "OpenSSL has none");
}

static int fill(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno; /* it may look for a configuration that is not there */
    pthread_once(&once, no_cleanup);
    lock_get(&lock);
    int r = RAND_bytes((unsigned char *)buffer.numbers, sizeof(buffer.numbers));
    lock_put(&lock);
    errno = saved;
    if (r != 1) {
        tell();
        return -EIO;
    }
    buffer.left = NUMBERS;
    buffer.life = atomic_load(&life);
    return 0;
}

int iw_random32(uint32_t *out)
{
    bool fresh = buffer.left && buffer.life == atomic_load(&life);
    int r = fresh ? 0 : fill();
    if (!r)
        *out = buffer.numbers[--buffer.left];
    return r;
}
