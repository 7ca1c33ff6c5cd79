/* SPDX-License-Identifier: BSD-2-Clause */
#include "local/meeting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RING   65536u
#define NOBODY 65534

static struct taken {
    struct iw_offer offer;
    atomic_uint held, taken;
    int bell, memory;
    uint32_t ring;
} one, two;

static void hold(struct iw_offer *o)
{
    atomic_fetch_add(&container_of(o, struct taken, offer)->held, 1);
}

static void taken(struct iw_offer *o, int bell, int memory, uint32_t ring)
{
    struct taken *t = container_of(o, struct taken, offer);
    t->bell = bell;
    t->memory = memory;
    t->ring = ring;
    atomic_fetch_add(&t->taken, 1);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void make(struct taken *t, uint8_t say[MPA_OFFER])
{
    *t = (struct taken){.offer = {.hold = hold, .taken = taken}, .bell = -1, .memory = -1};
    assert_int_equal(iw_offer_make(&t->offer, say), 0);
}

static bool await(struct taken *t)
{
    for (int i = 0; i < 1000 && !atomic_load(&t->taken); i++)
        pause_ms(10);
    return atomic_load(&t->taken);
}

/** The other end hangs up, soon. */
static void expect_hung_up(int bell)
{
    char c;
    for (int i = 0; i < 1000 && recv(bell, &c, 1, 0) != 0; i++)
        pause_ms(10);
    assert_int_equal(recv(bell, &c, 1, 0), 0);
    close(bell);
}

static int some_memory(void)
{
    int fd = memfd_create("some", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/**
 * In a user namespace all that have no number there look like this one. The first test, as a child
 * of a process without threads may start some.
 */
static void of_who_may_be_anybody(void **state)
{
    uint8_t say[MPA_OFFER];
    int status;
    (void)state;
    if (geteuid())
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(NOBODY))
            _exit(1);
        make(&one, say);
        _exit(iw_offer_visit(say) != -EPERM);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void an_offer_is_taken_once(void **state)
{
    uint8_t say[MPA_OFFER], other[MPA_OFFER];
    int fd = some_memory();
    char c;
    (void)state;
    make(&one, say);
    make(&two, other);
    assert_memory_equal(say, other, IW_MEETING_NAME); /* one place for all */
    assert_memory_not_equal(say, other, MPA_OFFER);
    int bell = iw_offer_visit(say);
    assert_true(bell >= 0);
    assert_int_equal(iw_offer_greet(bell, say, fd, RING), 0);
    assert_true(await(&one));
    assert_int_equal(atomic_load(&one.held), 1);
    assert_int_equal(one.ring, RING);
    assert_int_equal(atomic_load(&two.taken), 0);
    assert_int_equal(write(fd, "same", 4), 4);
    assert_int_equal(lseek(one.memory, 0, SEEK_END), 4);
    assert_int_equal(send(one.bell, "x", 1, 0), 1);
    assert_int_equal(recv(bell, &c, 1, 0), 1);
    int again = iw_offer_visit(say);
    assert_int_equal(iw_offer_greet(again, say, fd, RING), 0);
    expect_hung_up(again);
    assert_int_equal(atomic_load(&one.taken), 1);
    iw_offer_withdraw(&one.offer);
    iw_offer_withdraw(&two.offer);
    close(bell);
    close(one.bell);
    close(one.memory);
    close(fd);
}

static void without_the_token(void **state)
{
    uint8_t say[MPA_OFFER], wrong[MPA_OFFER];
    int fd = some_memory();
    (void)state;
    make(&one, say);
    for (unsigned i = IW_MEETING_NAME; i < MPA_OFFER; i++) {
        memcpy(wrong, say, sizeof(say));
        wrong[i] ^= 1;
        int bell = iw_offer_visit(wrong);
        assert_int_equal(iw_offer_greet(bell, wrong, fd, RING), 0);
        expect_hung_up(bell);
    }
    assert_int_equal(atomic_load(&one.taken), 0);
    memcpy(wrong, say, sizeof(say));
    wrong[0] ^= 1;
    assert_true(iw_offer_visit(wrong) < 0); /* nobody is there */
    iw_offer_withdraw(&one.offer);
    close(fd);
}

static void of_another_user(void **state)
{
    uint8_t say[MPA_OFFER];
    int status;
    (void)state;
    if (geteuid())
        skip();
    make(&one, say);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setuid(NOBODY) || iw_offer_visit(say) != -EPERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&one.taken), 0);
    iw_offer_withdraw(&one.offer);
}

/** Those of another user take no place from others. */
static void guests_of_another_user(void **state)
{
    uint8_t say[MPA_OFFER];
    int bells[64], status;
    (void)state;
    if (geteuid())
        skip();
    make(&one, say);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        char *p = a.sun_path + 1;
        p += sprintf(p, "anywarp-");
        for (int i = 0; i < IW_MEETING_NAME; i++)
            p += sprintf(p, "%02x", say[i]);
        socklen_t len = (socklen_t)(p - (char *)&a);
        char c;
        bool all = setuid(NOBODY) == 0;
        for (int i = 0; i < 64; i++) {
            bells[i] = socket(AF_UNIX, SOCK_STREAM, 0);
            all &= connect(bells[i], (struct sockaddr *)&a, len) == 0;
        }
        for (int i = 0; i < 64; i++) /* and hung up on */
            all &= recv(bells[i], &c, 1, 0) == 0;
        _exit(!all);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    int fd = some_memory(), bell = iw_offer_visit(say);
    assert_int_equal(iw_offer_greet(bell, say, fd, RING), 0);
    assert_true(await(&one));
    close(bell);
    close(one.bell);
    close(one.memory);
    close(fd);
}

static void guests_that_say_something_else(void **state)
{
    static const char texts[][40] = {"", "x", "GET / HTTP/1.0"};
    uint8_t say[MPA_OFFER];
    (void)state;
    make(&one, say);
    for (unsigned i = 0; i < 3; i++) {
        int bell = iw_offer_visit(say);
        assert_int_equal(send(bell, texts[i], sizeof(texts[i]) - i, 0), sizeof(texts[i]) - i);
        expect_hung_up(bell);
    }
    iw_offer_withdraw(&one.offer);
}

/** More than there is room for, and they say nothing: they are sent away, and one comes in then. */
static void guests_that_say_nothing(void **state)
{
    uint8_t say[MPA_OFFER];
    int silent[40], fd = some_memory(), came = 0;
    (void)state;
    make(&one, say);
    for (int i = 0; i < 40; i++) {
        silent[i] = iw_offer_visit(say);
        came += silent[i] >= 0;
    }
    assert_true(came >= 16);
    pause_ms(400);
    int bell = iw_offer_visit(say);
    assert_int_equal(iw_offer_greet(bell, say, fd, RING), 0);
    assert_true(await(&one));
    for (int i = 0; i < 40; i++)
        if (silent[i] >= 0)
            expect_hung_up(silent[i]);
    close(bell);
    close(one.bell);
    close(one.memory);
    close(fd);
}

static void an_offer_that_was_withdrawn(void **state)
{
    uint8_t say[MPA_OFFER];
    int fd = some_memory();
    (void)state;
    make(&one, say);
    int bell = iw_offer_visit(say);
    iw_offer_withdraw(&one.offer);
    iw_offer_withdraw(&one.offer);
    assert_int_equal(iw_offer_greet(bell, say, fd, RING), 0);
    expect_hung_up(bell);
    assert_int_equal(atomic_load(&one.taken), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_who_may_be_anybody),   cmocka_unit_test(an_offer_is_taken_once),
        cmocka_unit_test(without_the_token),       cmocka_unit_test(of_another_user),
        cmocka_unit_test(guests_of_another_user),  cmocka_unit_test(guests_that_say_something_else),
        cmocka_unit_test(guests_that_say_nothing), cmocka_unit_test(an_offer_that_was_withdrawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
