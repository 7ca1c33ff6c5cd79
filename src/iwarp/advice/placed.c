/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/placed.h"

#include "env/guard.h"
#include "wire/crc32c.h"

#include <stdatomic.h>

#define PAGE_SHIFT 12
#define PAGES      65536 /* counters; pages share them, which hides a change now and then */
#define WHOLE      4096  /* bytes: a buffer up to this is summed as a whole */
#define PIECE      256   /* of a larger one, so much in so many places */
#define PIECES     16

bool iw_placed_watched;

static _Atomic uint32_t pages[PAGES];

static uintptr_t first_page(const void *at)
{
    return (uintptr_t)at >> PAGE_SHIFT;
}

static uintptr_t count_of(const void *at, size_t len)
{
    uintptr_t n = len ? (((uintptr_t)at + len - 1) >> PAGE_SHIFT) - first_page(at) + 1 : 0;
    return n < PAGES ? n : PAGES;
}

void iw_placed_count(const void *at, size_t len)
{
    uintptr_t first = first_page(at), n = count_of(at, len);
    for (uintptr_t i = 0; i < n; i++)
        atomic_fetch_add_explicit(&pages[(first + i) % PAGES], 1, memory_order_release);
}

static uint64_t placed_in(const void *at, size_t len)
{
    uintptr_t first = first_page(at), n = count_of(at, len);
    uint64_t sum = 0;
    for (uintptr_t i = 0; i < n; i++)
        sum += atomic_load_explicit(&pages[(first + i) % PAGES], memory_order_acquire);
    return sum;
}

struct sampling {
    struct iovec of;
    uint64_t sum;
};

/* The program may write there meanwhile: that is what is looked for. */
static __attribute__((no_sanitize("thread"))) void sum(void *arg)
{
    struct sampling *s = arg;
    const uint8_t *p = s->of.iov_base;
    size_t len = s->of.iov_len;
    if (len <= WHOLE) {
        s->sum = crc32c_add(CRC32C_INIT, p, len);
        return;
    }
    for (unsigned i = 0; i < PIECES; i++)
        s->sum = s->sum * 31 + crc32c_add(CRC32C_INIT, p + i * (len - PIECE) / (PIECES - 1), PIECE);
}

static bool take(const void *at, size_t len, uint64_t *bytes)
{
    struct sampling s = {.of = {.iov_base = (void *)(uintptr_t)at, .iov_len = len}};
    bool readable = len && !iw_guarded(sum, &s, &s.of, 1);
    *bytes = s.sum;
    return readable;
}

/* What is placed between the two looks at the pages, is counted by then. */

struct iw_sample iw_sample(const void *at, size_t len)
{
    struct iw_sample sample = {.placed = placed_in(at, len)};
    sample.readable = take(at, len, &sample.bytes);
    return sample;
}

bool iw_sample_changed(const struct iw_sample *before, const void *at, size_t len)
{
    uint64_t bytes;
    return before->readable && take(at, len, &bytes) && bytes != before->bytes &&
           placed_in(at, len) == before->placed;
}
