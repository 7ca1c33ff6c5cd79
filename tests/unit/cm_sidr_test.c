/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions and answers over UDP, with ends of our own and with sockets that say what they like. */
#include "cm/endpoint.h"
#include "cm/udp.h"
#include "common/addr.h"
#include "vectors.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PS         0x111
#define OTHER_PS   2
#define PATIENCE   "2500" /* ms: ANYWARP_CONNECT_MS */
#define EVENTS_MAX (IW_SIDR_UNDECIDED + 64)
#define ACCESS     "cm_sidr_test.access"

/* ---- what the handler hears ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t more;
    unsigned n;
    struct iw_cm_event events[EVENTS_MAX];
    char data[EVENTS_MAX][SIDR_REQUEST_DATA];
    bool refuse;
} heard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static int hear(void *owner, const struct iw_cm_event *event)
{
    (void)owner;
    pthread_mutex_lock(&heard.mutex);
    bool refuse = heard.refuse;
    assert_true(heard.n < EVENTS_MAX);
    if (event->private_data_len)
        memcpy(heard.data[heard.n], event->private_data, event->private_data_len);
    heard.events[heard.n++] = *event;
    pthread_cond_broadcast(&heard.more);
    pthread_mutex_unlock(&heard.mutex);
    return refuse;
}

/** From now on the handler takes requests, or none. */
static void take(bool some)
{
    pthread_mutex_lock(&heard.mutex);
    heard.refuse = !some;
    pthread_mutex_unlock(&heard.mutex);
}

/** The event number @p i, waited for. */
static struct iw_cm_event *event(unsigned i)
{
    pthread_mutex_lock(&heard.mutex);
    while (heard.n <= i)
        pthread_cond_wait(&heard.more, &heard.mutex);
    pthread_mutex_unlock(&heard.mutex);
    return &heard.events[i];
}

static unsigned events(void)
{
    pthread_mutex_lock(&heard.mutex);
    unsigned n = heard.n;
    pthread_mutex_unlock(&heard.mutex);
    return n;
}

/** All events from this one on. */
static void forget(unsigned i)
{
    pthread_mutex_lock(&heard.mutex);
    heard.n = i;
    pthread_mutex_unlock(&heard.mutex);
}

/* ---- ends ---- */

static struct sockaddr_storage loopback(int family)
{
    struct sockaddr_storage addr = {.ss_family = (sa_family_t)family};
    if (family == AF_INET)
        ((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
    return addr;
}

static struct iw_sidr *endpoint(const struct sockaddr_storage *addr, bool afonly)
{
    struct iw_sidr *s;
    assert_int_equal(iw_sidr_create(&s, PS, hear, NULL), 0);
    assert_int_equal(iw_sidr_bind(s, (const struct sockaddr *)addr, afonly), 0);
    return s;
}

static struct sockaddr_storage place(struct iw_sidr *s)
{
    struct sockaddr_storage addr;
    iw_sidr_addresses(s, &addr, NULL);
    return addr;
}

static struct iw_sidr *listener(int family, struct sockaddr_storage *addr)
{
    struct sockaddr_storage any = loopback(family);
    struct iw_sidr *s = endpoint(&any, false);
    assert_int_equal(iw_sidr_listen(s), 0);
    *addr = place(s);
    return s;
}

static struct iw_sidr *asker(const struct sockaddr_storage *to, const char *data)
{
    struct sockaddr_storage any = loopback(to->ss_family);
    struct iw_sidr *s = endpoint(&any, false);
    struct iw_sidr_param param = {
        .private_data = data, .private_data_len = data ? (uint8_t)strlen(data) : 0, .ib = true};
    assert_int_equal(iw_sidr_ask(s, (const struct sockaddr *)to, &param), 0);
    return s;
}

/** A socket that no endpoint of ours has. */
static int stranger(struct sockaddr_storage *addr)
{
    struct sockaddr_storage any = loopback(AF_INET);
    socklen_t len = sizeof(*addr);
    int fd = iw_udp_open((struct sockaddr *)&any, false);
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

static struct sidr request(uint64_t id)
{
    return (struct sidr){.ps = PS, .id = id, .data_len = 2, .data = "hi"};
}

static void say(int fd, const struct sockaddr_storage *to, const struct sidr *s)
{
    uint8_t bytes[SIDR_BYTES];
    sidr_encode(bytes, s);
    assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)to,
                            addr_len((const struct sockaddr *)to)),
                     sizeof(bytes));
}

/** The next datagram, waited for. */
static struct sidr next(int fd, struct sockaddr_storage *from)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t bytes[SIDR_BYTES];
    struct iw_udp_way way;
    struct sidr s;
    assert_int_equal(poll(&p, 1, -1), 1);
    assert_int_equal(iw_udp_recv(fd, bytes, sizeof(bytes), &way), sizeof(bytes));
    assert_true(sidr_decode(bytes, sizeof(bytes), &s));
    if (from)
        *from = way.peer;
    return s;
}

/** Whatever comes behind this from @p fd is heard later than what came before. */
static void barrier(int fd, const struct sockaddr_storage *to)
{
    static uint64_t id = UINT64_C(1) << 63;
    struct sidr s = request(++id);
    unsigned n = events();
    say(fd, to, &s);
    struct iw_sidr *r = event(n)->datagrams;
    assert_int_equal(events(), n + 1);
    assert_int_equal(iw_sidr_reject(r, NULL, 0), 0);
    iw_sidr_destroy(r);
    assert_int_equal(next(fd, NULL).id, s.id);
    forget(n);
}

/* ---- tests ---- */

static void write_rules(const char *rules)
{
    FILE *f = fopen(ACCESS, "w");
    assert_non_null(f);
    fputs(rules, f);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    take(true);
    forget(0);
    write_rules("allow from any\nallow to any\n");
    return 0;
}

static void accept_it(struct iw_sidr *r)
{
    assert_int_equal(iw_sidr_accept(r, &(struct iw_sidr_param){.private_data = "yes",
                                                               .private_data_len = 3,
                                                               .qpn = 0x1234,
                                                               .qkey = 99}),
                     0);
}

static void question_and_answer(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};
    (void)state;
    for (size_t i = 0; i < COUNT(families); i++) {
        struct sockaddr_storage to, local, peer;
        setup(NULL);
        struct iw_sidr *l = listener(families[i], &to), *a = asker(&to, "who?");
        struct sockaddr_storage from = place(a);
        const struct iw_cm_event *e = event(0);
        assert_int_equal(e->type, IW_CM_CONNECT_REQUEST);
        assert_int_equal(e->private_data_len, 4);
        assert_memory_equal(heard.data[0], "who?", 4);
        assert_true(e->ib);
        iw_sidr_addresses(e->datagrams, &local, &peer);
        assert_true(iw_cm_same_address(&local, &to));
        assert_true(iw_cm_same_address(&peer, &from));
        assert_int_equal(addr_port((struct sockaddr *)&local), addr_port((struct sockaddr *)&to));
        assert_int_equal(addr_port((struct sockaddr *)&peer), addr_port((struct sockaddr *)&from));

        accept_it(e->datagrams);
        e = event(1);
        assert_int_equal(e->type, IW_CM_ESTABLISHED);
        assert_int_equal(e->status, 0);
        assert_int_equal(e->peer_qpn, 0x1234);
        assert_int_equal(e->qkey, 99);
        assert_int_equal(e->private_data_len, 3);
        assert_memory_equal(heard.data[1], "yes", 3);
        iw_sidr_destroy(heard.events[0].datagrams);
        iw_sidr_destroy(a);
        iw_sidr_destroy(l);
        assert_int_equal(events(), 2);
    }
}

static void rejected(void **state)
{
    struct sockaddr_storage to;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to), *a = asker(&to, NULL);
    assert_int_equal(iw_sidr_reject(event(0)->datagrams, "no", 2), 0);
    assert_int_equal(event(1)->type, IW_CM_UNREACHABLE);
    assert_int_equal(event(1)->status, SIDR_REJECT);
    assert_memory_equal(heard.data[1], "no", 2);
    iw_sidr_destroy(a);

    a = asker(&to, NULL);
    iw_sidr_destroy(event(2)->datagrams); /* that is an answer, too */
    assert_int_equal(event(3)->status, SIDR_REJECT);
    iw_sidr_destroy(event(0)->datagrams);
    iw_sidr_destroy(a);
    iw_sidr_destroy(l);
}

static void nobody_listens(void **state)
{
    struct sockaddr_storage to;
    (void)state;
    close(stranger(&to));
    struct iw_sidr *a = asker(&to, NULL);
    assert_int_equal(event(0)->type, IW_CM_UNREACHABLE);
    assert_int_equal(event(0)->status, SIDR_UNSUPPORTED);
    iw_sidr_destroy(a);
    assert_int_equal(events(), 1);
}

static void nobody_answers(void **state)
{
    struct sockaddr_storage to;
    (void)state;
    int fd = stranger(&to), n = 0;
    struct iw_sidr *a = asker(&to, NULL);
    assert_int_equal(event(0)->type, IW_CM_UNREACHABLE);
    assert_int_equal(event(0)->status, -ETIMEDOUT);
    uint8_t bytes[SIDR_BYTES];
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        n++;
    assert_int_equal(n, 5); /* after 0, 100, 300, 700 and 1500 ms */
    iw_sidr_destroy(a);
    close(fd);
}

/** What is no answer to this question changes nothing. */
static void false_answers(void **state)
{
    struct sockaddr_storage at, from;
    (void)state;
    int fd = stranger(&at), other = stranger(&from);
    struct iw_sidr *a = asker(&at, "who?");
    struct sidr asked = next(fd, &from);
    struct sidr good = {.reply = true, .ps = PS, .id = asked.id, .qpn = 77, .qkey = 5};
    assert_int_equal(asked.ps, PS);
    assert_memory_equal(asked.data, "who?", 4);

    struct sidr bad = good;
    bad.id++;
    say(fd, &from, &bad);
    bad = good;
    bad.ps = OTHER_PS;
    say(fd, &from, &bad);
    say(fd, &from, &asked);
    bad = good;
    bad.qpn = 78;
    say(other, &from, &bad); /* of another address */
    assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&from, sizeof(struct sockaddr_in)),
                     1);
    assert_int_equal(next(fd, NULL).id, asked.id); /* repeated */
    assert_int_equal(events(), 0);
    say(fd, &from, &good);
    assert_int_equal(event(0)->type, IW_CM_ESTABLISHED);
    assert_int_equal(event(0)->peer_qpn, 77);
    say(fd, &from, &good);
    iw_sidr_destroy(a);
    assert_int_equal(events(), 1);
    close(fd);
    close(other);
}

/** A Request that comes again is known, and so is its answer. */
static void asked_again(void **state)
{
    struct sockaddr_storage to, own, own2;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to);
    int fd = stranger(&own), fd2 = stranger(&own2);
    struct sidr s = request(1);
    say(fd, &to, &s);
    struct iw_sidr *r = event(0)->datagrams;
    say(fd, &to, &s);
    barrier(fd, &to);
    accept_it(r);
    assert_int_equal(next(fd, NULL).qpn, 0x1234);
    say(fd, &to, &s);
    assert_int_equal(next(fd, NULL).qpn, 0x1234);
    iw_sidr_destroy(r);
    say(fd, &to, &s);
    assert_int_equal(next(fd, NULL).qkey, 99);
    assert_int_equal(events(), 1);

    say(fd2, &to, &s); /* the same number of somebody else */
    iw_sidr_destroy(event(1)->datagrams);
    assert_int_equal(next(fd2, NULL).status, SIDR_REJECT);
    iw_sidr_destroy(l);
    close(fd);
    close(fd2);
}

static void not_for_us(void **state)
{
    struct sockaddr_storage to, own;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to);
    int fd = stranger(&own);
    struct sidr s = request(1);
    s.ps = OTHER_PS;
    say(fd, &to, &s);
    s = (struct sidr){.reply = true, .ps = PS, .id = 1, .qpn = 5};
    say(fd, &to, &s);
    uint8_t noise[SIDR_BYTES * 2] = {'A', 'W', 'S', 'R', 1, 1};
    /* That of 256 bytes is a question of port space 0. */
    for (size_t len = 0; len <= sizeof(noise); len += 64)
        sendto(fd, noise, len, 0, (struct sockaddr *)&to, sizeof(struct sockaddr_in));
    barrier(fd, &to);
    assert_int_equal(events(), 0);
    iw_sidr_destroy(l);
    close(fd);
}

static void the_handler_takes_none(void **state)
{
    struct sockaddr_storage to, own;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to);
    int fd = stranger(&own);
    struct sidr s = request(1);
    take(false);
    say(fd, &to, &s);
    event(0);
    take(true);
    /* It was dropped without a word, as if it had never come. */
    struct pollfd p = {.fd = fd, .events = POLLIN};
    do
        say(fd, &to, &s);
    while (events() == 1 && poll(&p, 1, 10) == 0);
    accept_it(event(1)->datagrams);
    assert_int_equal(next(fd, NULL).qpn, 0x1234);
    iw_sidr_destroy(event(1)->datagrams);
    iw_sidr_destroy(l);
    close(fd);
}

/** Who asks without end gets no more than its place, and the listener remembers no more. */
static void flood(void **state)
{
    struct sockaddr_storage to, own;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to);
    int fd = stranger(&own);
    for (unsigned i = 0; i < IW_SIDR_UNDECIDED; i++) {
        struct sidr s = request(i);
        say(fd, &to, &s);
        event(i); /* so that no socket drops it */
    }
    for (unsigned i = 0; i < 32; i++) {
        struct sidr s = request(IW_SIDR_UNDECIDED + i);
        say(fd, &to, &s);
    }
    for (unsigned i = 0; i < IW_SIDR_UNDECIDED; i++) {
        accept_it(event(i)->datagrams);
        assert_int_equal(next(fd, NULL).id, i);
    }
    unsigned late = events() - IW_SIDR_UNDECIDED; /* those that were still in the socket */
    assert_in_range(late, 0, 32);
    struct sidr s = request(IW_SIDR_UNDECIDED - 1);
    say(fd, &to, &s); /* its answer is known */
    assert_int_equal(next(fd, NULL).id, IW_SIDR_UNDECIDED - 1);
    s = request(0);
    say(fd, &to, &s); /* and that of this is not any more */
    event(IW_SIDR_UNDECIDED + late);
    for (unsigned i = 0; i < events(); i++)
        iw_sidr_destroy(event(i)->datagrams);
    iw_sidr_destroy(l);
    close(fd);
}

static void a_request_outlives_its_listener(void **state)
{
    struct sockaddr_storage to, own;
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to);
    int fd = stranger(&own);
    struct sidr s = request(1);
    say(fd, &to, &s);
    struct iw_sidr *r = event(0)->datagrams;
    iw_sidr_destroy(l);
    accept_it(r);
    assert_int_equal(next(fd, NULL).qpn, 0x1234);
    iw_sidr_destroy(r);
    iw_sidr_destroy(endpoint(&to, false)); /* the port is free */
    close(fd);
}

static void ipv4_at_a_wildcard_of_ipv6(void **state)
{
    struct sockaddr_storage any = {.ss_family = AF_INET6}, to, local, peer;
    (void)state;
    struct iw_sidr *l = endpoint(&any, true);
    assert_int_equal(iw_sidr_set_afonly(l, true), 0);
    assert_int_equal(iw_sidr_set_tos(l, 0x20), 0);
    assert_int_equal(iw_sidr_set_afonly(l, false), 0);
    assert_int_equal(iw_sidr_listen(l), 0);
    struct sockaddr_storage at = place(l);
    assert_int_equal(iw_sidr_set_afonly(l, true), -EINVAL); /* too late */
    to = loopback(AF_INET);
    addr_set_port((struct sockaddr *)&to, addr_port((struct sockaddr *)&at));
    struct iw_sidr *a = asker(&to, NULL);
    struct iw_sidr *r = event(0)->datagrams;
    iw_sidr_addresses(r, &local, &peer);
    assert_int_equal(local.ss_family, AF_INET6);
    uint8_t want[16], got[16];
    addr_ip6((struct sockaddr *)&to, want);
    addr_ip6((struct sockaddr *)&local, got);
    assert_memory_equal(got, want, sizeof(want));
    accept_it(r);
    assert_int_equal(event(1)->type, IW_CM_ESTABLISHED);
    iw_sidr_destroy(r);
    iw_sidr_destroy(a);
    iw_sidr_destroy(l);
}

static void what_is_no_call_for_it(void **state)
{
    struct sockaddr_storage to, any = loopback(AF_INET);
    struct sockaddr_storage unix_addr = {.ss_family = AF_UNIX};
    const struct sockaddr *addr = (const struct sockaddr *)&any;
    static const uint8_t data[255];
    struct iw_sidr_param none = {0}, long_data = {.private_data = data, .private_data_len = 255};
    struct iw_sidr *s, *l = listener(AF_INET, &to), *a = asker(&to, NULL);
    (void)state;
    assert_int_equal(iw_sidr_create(&s, PS, hear, NULL), 0);
    iw_sidr_addresses(s, &any, &to);
    assert_int_equal(any.ss_family, AF_UNSPEC);
    assert_int_equal(to.ss_family, AF_UNSPEC);
    any = loopback(AF_INET);
    to = place(l);
    assert_int_equal(iw_sidr_set_tos(s, 1), 0); /* kept for the socket */
    assert_int_equal(iw_sidr_set_afonly(s, true), -EINVAL);
    assert_int_equal(iw_sidr_listen(s), -EINVAL);
    assert_int_equal(iw_sidr_ask(s, addr, &none), -EINVAL);
    assert_int_equal(iw_sidr_accept(s, &none), -EINVAL);
    assert_int_equal(iw_sidr_reject(s, NULL, 0), -EINVAL);
    assert_int_equal(iw_sidr_bind(s, (struct sockaddr *)&unix_addr, false), -EAFNOSUPPORT);
    assert_int_equal(iw_sidr_bind(s, (struct sockaddr *)&to, false), -EADDRINUSE);
    assert_int_equal(iw_sidr_bind(s, addr, false), 0);
    assert_int_equal(iw_sidr_bind(s, addr, false), -EINVAL);
    assert_int_equal(iw_sidr_ask(s, (struct sockaddr *)&unix_addr, &none), -EINVAL);
    assert_int_equal(iw_sidr_ask(s, (struct sockaddr *)&to, &long_data), -EINVAL);
    assert_int_equal(iw_sidr_ask(a, (struct sockaddr *)&to, &none), -EINVAL); /* it has */

    struct iw_sidr *r = event(0)->datagrams;
    long_data.qpn = 2;
    assert_int_equal(iw_sidr_accept(r, &long_data), -EINVAL);
    assert_int_equal(iw_sidr_reject(r, data, sizeof(data)), -EINVAL);
    accept_it(r);
    assert_int_equal(iw_sidr_reject(r, NULL, 0), -EINVAL);
    iw_sidr_destroy(r);
    iw_sidr_destroy(s);
    iw_sidr_destroy(a);
    iw_sidr_destroy(l);
}

static void whom_the_rules_refuse(void **state)
{
    struct sockaddr_storage to, any = loopback(AF_INET);
    (void)state;
    struct iw_sidr *l = listener(AF_INET, &to), *s = endpoint(&any, false);
    write_rules("allow from any\n");
    assert_int_equal(iw_sidr_ask(s, (struct sockaddr *)&to, &(struct iw_sidr_param){0}), -EACCES);
    iw_sidr_destroy(s);
    write_rules("allow to any\n");
    s = asker(&to, NULL);
    assert_int_equal(event(0)->status, -ETIMEDOUT); /* nobody says why */
    assert_int_equal(events(), 1);
    iw_sidr_destroy(s);
    iw_sidr_destroy(l);
}

static int cleanup(void **state)
{
    (void)state;
    return unlink(ACCESS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        TEST(question_and_answer),
        TEST(rejected),
        TEST(nobody_listens),
        TEST(nobody_answers),
        TEST(false_answers),
        TEST(asked_again),
        TEST(not_for_us),
        TEST(the_handler_takes_none),
        TEST(flood),
        TEST(a_request_outlives_its_listener),
        TEST(ipv4_at_a_wildcard_of_ipv6),
        TEST(what_is_no_call_for_it),
        TEST(whom_the_rules_refuse),
    };
    setenv("ANYWARP_CONNECT_MS", PATIENCE, 1);
    setenv("ANYWARP_ACCESS", ACCESS, 1);
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
