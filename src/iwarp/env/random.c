/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/random.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

/* The generator's own locks know nothing of fork(). */
static struct lock lock = LOCK(LOCK_RANDOM);

void iw_random_fork(enum fork_step step)
{
    lock_fork(&lock, step);
}

/* Its clean-up at exit() frees memory: a signal handler that calls exit() may have interrupted
 * malloc(), and the program would hang for a library that it does not know of. */
static void no_cleanup(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

int iw_random32(uint32_t *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno; /* it may look for a configuration that is not there */
    pthread_once(&once, no_cleanup);
    lock_get(&lock);
    int r = RAND_bytes((unsigned char *)out, sizeof(*out));
    lock_put(&lock);
    errno = saved;
    return r == 1 ? 0 : -EIO;
}
