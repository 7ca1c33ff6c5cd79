/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/random.h"

#include <errno.h>
#include <openssl/rand.h>

int iw_random32(uint32_t *out)
{
    return RAND_bytes((unsigned char *)out, sizeof(*out)) == 1 ? 0 : -EIO;
}
