/* SPDX-License-Identifier: BSD-2-Clause */
/* As order_test.c, where all connections are in rings: those that pollers run, those that are at
 * rest, and more of them than there are places. */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT  120 /* s */
#define WARM   80
#define FEW    3
#define MANY   20 /* connections with data, more than pollers run without being told */
#define ROUNDS 3000
#define RESTS  60
#define INBOX  4096 /* in the memory of who receives: for messages */

static struct pair data[MANY], word;

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static void tell(struct side *from, struct side *to, uint64_t value)
{
    memcpy(from->buf, &value, sizeof(value));
    side_recv(to, value, INBOX, sizeof(value));
    assert_int_equal(
        side_post(from, to, IBV_WR_SEND, value, 0, sizeof(value), 0, IBV_SEND_SIGNALED), 0);
    assert_int_equal(side_poll(to).wr_id, value);
}

static void told(struct side *from)
{
    assert_int_equal(side_poll(from).status, IBV_WC_SUCCESS);
}

static void open_one(struct pair *p)
{
    pair_open(p, &(struct pair_conf){0});
    for (unsigned i = 0; i < WARM; i++) {
        tell(&p->a, &p->b, i);
        told(&p->a);
        tell(&p->b, &p->a, i);
        told(&p->b);
    }
}

/** Writes over one connection and tells over the other; nobody polls for the first. */
static void write_and_tell(struct pair *d, uint64_t value, uint32_t len)
{
    uint64_t *from = (uint64_t *)d->a.buf, *to = (uint64_t *)d->b.buf;
    size_t last = len / sizeof(value) - 1;
    from[0] = from[last] = value;
    assert_int_equal(
        side_post(&d->a, &d->b, IBV_WR_RDMA_WRITE, value, 0, len, 0, IBV_SEND_SIGNALED), 0);
    tell(&word.a, &word.b, value);
    assert_int_equal(to[0], value);
    assert_int_equal(to[last], value);
    told(&word.a);
    told(&d->a);
}

static void among(unsigned n)
{
    uint64_t value = 0;
    open_one(&word);
    for (unsigned i = 0; i < n; i++)
        open_one(&data[i]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned k = i % 2 ? i % n : i / 100 % n; /* some of them more often */
        write_and_tell(&data[k], ++value, i % 7 ? 64 : INBOX);
    }
    for (unsigned i = 0; i < RESTS; i++) {
        rest();
        write_and_tell(&data[i % n], ++value, i % 7 ? 64 : INBOX);
    }
    for (unsigned i = 0; i < n; i++)
        pair_close(&data[i], 1);
    pair_close(&word, 1);
}

static void among_few(void **state)
{
    (void)state;
    among(FEW);
}

static void among_more_than_there_are_places(void **state)
{
    (void)state;
    among(MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(among_few),
        cmocka_unit_test(among_more_than_there_are_places),
    };
    alarm(LIMIT);
    return cmocka_run_group_tests_name("rings order", tests, NULL, NULL);
}
