/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_ring BYTES: messages one way through a bare ring of 1 MB in memory that two processes share:
 * copied in, copied out, and nothing else. Prints the bandwidth.
 */
#include "kit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RING (1u << 20)
#define PART 32768u /* copied before it is published */

struct ring {
    _Alignas(128) _Atomic uint64_t head; /* bytes ever published */
    _Alignas(128) _Atomic uint64_t tail; /* bytes ever used */
    _Alignas(4096) uint8_t data[RING];
};

struct test {
    struct ring *ring;
    size_t bytes;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** The next part of a message, of which @p at bytes are done: in one stretch of the ring. */
static size_t part(size_t bytes, size_t at, uint64_t pos)
{
    return least(least(PART, bytes - at), RING - pos % RING);
}

static void serve(void *arg)
{
    const struct test *t = arg;
    uint8_t *message = kit_pages(t->bytes);
    uint64_t used = 0, head = 0;
    for (size_t at = 0, n;; at = (at + n) % t->bytes) {
        n = part(t->bytes, at, used);
        while (head - used < n)
            head = atomic_load_explicit(&t->ring->head, memory_order_acquire);
        memcpy(message + at, t->ring->data + used % RING, n);
        used += n;
        atomic_store_explicit(&t->ring->tail, used, memory_order_release);
    }
}

/** Messages for @p ns, until the server has used them. @param sent  bytes so far, moved on */
static void stream(const struct test *t, const uint8_t *message, uint64_t *sent, uint64_t ns)
{
    uint64_t start = kit_ns(), used = *sent;
    do {
        for (size_t at = 0, n; at < t->bytes; at += n) {
            n = part(t->bytes, at, *sent);
            while (*sent + n - used > RING)
                used = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
            memcpy(t->ring->data + *sent % RING, message + at, n);
            *sent += n;
            atomic_store_explicit(&t->ring->head, *sent, memory_order_release);
        }
    } while (kit_ns() - start < ns);
    while (used < *sent)
        used = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: raw_ring BYTES\n");
        return 2;
    }
    struct test t = {.bytes = kit_number(argv[1])};
    t.ring = mmap(NULL, sizeof(*t.ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    KIT_CHECK(t.ring != MAP_FAILED);
    kit_start(serve, &t);
    uint8_t *message = kit_pages(t.bytes);
    uint64_t sent = 0;
    stream(&t, message, &sent, kit_duration() / 5);

    uint64_t before = sent, start = kit_ns();
    stream(&t, message, &sent, kit_duration());
    printf("bw %.6f GB/s\n", (double)(sent - before) / (double)(kit_ns() - start));
    return 0;
}
