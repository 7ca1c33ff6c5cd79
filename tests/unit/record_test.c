/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process leaves in its record, whatever ends it, and what reads it; and what is no record.
 */
#include "observe/record.h"
#include "tools/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define EACH    5000
#define HOSTILE 12

static char path[] = "/tmp/anywarp-record-XXXXXX";
static char wrong[256];

/** In a child, where cmocka has no say. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/** Runs @p body in a process that records. @return its status */
static int records(const char *pattern, void (*body)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        setenv("ANYWARP_RECORD", pattern, 1);
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static struct recording read_it(void)
{
    struct recording r;
    if (!recording_read(&r, path, wrong, sizeof(wrong)))
        fail_msg("%s: %s", path, wrong);
    return r;
}

static char *text_of(const struct recording *r)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    recording_print(f, r);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void says(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("not said: %s\n%s", wanted, text);
}

/* ---- events ---- */

static void some_calls(void)
{
    int made;
    struct iw_recorded r = iw_record(CREATE_QP, 0, 2, 0x10, 0x20, 7, 8);
    iw_record_made(r, &made, 0x1234, 0);
    must(iw_record_end(iw_record(POST_SEND, 0x1234, 2, 7, 100, 0), ENOMEM) == ENOMEM);
    iw_record_made(iw_record(ALLOC_PD, 0), NULL, 0, ENOSPC);
    iw_record_note(COMPLETION, 0x10, 0x1234, 7, 5, 0, 64, 0);
    iw_record_put(RECORD_CM_RAISED, false, IW_RECORD_ARG(0x99, (uint64_t)-111),
                  "RDMA_CM_EVENT_REJECTED and whatever does not fit");
    for (int i = 0; i < 100; i++)
        iw_record_empty(&made);
    iw_record(DESTROY_QP, 0x1234);
}

static void calls_and_what_became_of_them(void **state)
{
    (void)state;
    assert_int_equal(records(path, some_calls), 0);
    struct recording r = read_it();
    assert_int_equal(r.n, 7);
    assert_false(r.running);
    char *text = text_of(&r);
    says(text, "it ended by exit()");
    says(text, "ibv_create_qp QP 0x001234 type RC send_cq 0x10 recv_cq 0x20 max_send_wr 7 "
               "max_recv_wr 8\n");
    says(text, "ibv_post_send QP 0x001234 SEND wr_id 0x7 length 100 send_flags 0x0 = ENOMEM, "
               "Cannot allocate memory\n");
    says(text, "ibv_alloc_pd PD 0x0 = ENOSPC, No space left on device\n");
    says(text, "ibv_poll_cq CQ 0x10 QP 0x001234 wr_id 0x7 WR_FLUSH_ERR SEND byte_len "
               "64 vendor_err 0\n");
    says(text, "raised RDMA_CM_EVENT_REJECTED and whate id 0x99 status -111\n");
    says(text, "ibv_destroy_qp QP 0x001234 ... has not returned\n");
    says(text, "events of the verbs: 6; of the connection manager: 1; frames: 0\n");
    free(text);
    recording_free(&r);
}

static void killed(void)
{
    some_calls();
    raise(SIGKILL);
}

static void aborted(void)
{
    some_calls();
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void whatever_ends_the_process(void **state)
{
    (void)state;
    void (*const ends[])(void) = {killed, aborted};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        assert_true(WIFSIGNALED(records(path, ends[i])));
        struct recording r = read_it();
        assert_int_equal(r.n, 7);
        char *text = text_of(&r);
        says(text, "it did not end by exit()");
        free(text);
        recording_free(&r);
    }
}

static void many(void)
{
    iw_record_end(iw_record(CLOSE_DEVICE, 1), 0);
    iw_record_put(RECORD_CM_CALL, false, IW_RECORD_ARG(2), "rdma_connect");
    struct iw_recorded first = iw_record(OPEN_DEVICE, 3);
    for (uint64_t i = 0; i < 3 * RECORD_EVENTS; i++)
        iw_record_note(POST_RECV, 1, i, 0);
    iw_record_end(first, EIO);                       /* whose place is another's */
    for (uint32_t i = 0; i < RECORD_EVENTS + 5; i++) /* that came at once */
        iw_record_frame(iw_record_page(), 7, 0, &(struct record_frame){.position = i}, NULL, 0);
}

static void the_last_ones(void **state)
{
    (void)state;
    assert_int_equal(records(path, many), 0);
    struct recording r = read_it();
    assert_int_equal(r.n, 2 * RECORD_EVENTS + 1);
    uint64_t next = 2 * RECORD_EVENTS, position = 5;
    for (size_t i = 0; i < r.n; i++) {
        if (r.events[i]->what == RECORD_FRAME) {
            assert_int_equal(r.events[i]->frame.position, position++);
            continue;
        }
        if (r.events[i]->what == RECORD_CM_CALL)
            continue;
        assert_int_equal(r.events[i]->what, RECORD_POST_RECV);
        assert_int_equal(r.events[i]->arg[1], next++);
        assert_int_equal(r.events[i]->result, 0);
    }
    char *text = text_of(&r);
    says(text, "events of the verbs: 3074, the last 1024; of the connection manager: 1;");
    free(text);
    recording_free(&r);
}

static void *in_a_thread(void *arg)
{
    uint64_t number = (uintptr_t)arg;
    for (uint64_t i = 0; i < EACH; i++) {
        struct iw_recorded r = iw_record(POST_RECV, number, i, ~i, number * i);
        iw_record_end(r, (int)(i % 100));
        if (i % 3 == 0)
            iw_record_put(RECORD_CM_CALL, false, IW_RECORD_ARG(number, i), "x");
        if (i % 5 == 0)
            iw_record_frame(iw_record_page(), iw_record_now(), 0,
                            &(struct record_frame){
                                .qp_num = (uint32_t)number, .position = (uint32_t)i, .len = 4},
                            (const uint8_t *)&i, 4);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        must(!pthread_create(&t[i], NULL, in_a_thread, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static void several_threads(void **state)
{
    (void)state;
    assert_int_equal(records(path, threads), 0);
    struct recording r = read_it();
    uint64_t seen[THREADS + 1] = {0}, verbs = 0;
    assert_int_equal(r.page->ring[RECORD_VERBS].next, THREADS * EACH);
    assert_int_equal(r.unfinished, 0);
    for (size_t i = 0; i < r.n; i++) {
        const struct record_event *e = r.events[i];
        if (e->what != RECORD_POST_RECV)
            continue;
        verbs++;
        assert_true(e->arg[0] >= 1 && e->arg[0] <= THREADS);
        assert_int_equal(e->arg[2], ~e->arg[1]);
        assert_int_equal(e->arg[3], e->arg[0] * e->arg[1]);
        assert_int_equal(e->result, (int)(e->arg[1] % 100));
        assert_int_equal(e->flags, 0);
        assert_true(e->arg[1] >= seen[e->arg[0]]); /* its own are in order */
        seen[e->arg[0]] = e->arg[1];
    }
    assert_true(verbs + r.page->ring[RECORD_VERBS].lost >= RECORD_EVENTS);
    recording_free(&r);
}

/* Who is interrupted in the middle of an event keeps its place, and nobody waits for him. */
static void interrupted(void)
{
    iw_record_note(POST_RECV, 1, 0);
    struct record_page *page = iw_record_page();
    must(page);
    page->events[RECORD_VERBS][0].seq--; /* as in the middle */
    for (uint64_t i = 1; i < 2 * RECORD_EVENTS; i++)
        iw_record_note(POST_RECV, 1, i);
}

static void an_event_that_was_being_written(void **state)
{
    (void)state;
    assert_int_equal(records(path, interrupted), 0);
    struct recording r = read_it();
    assert_int_equal(r.n, RECORD_EVENTS - 1);
    assert_int_equal(r.unfinished, 1);
    assert_int_equal(r.page->ring[RECORD_VERBS].lost, 1);
    char *text = text_of(&r);
    says(text, "1 lost");
    says(text, "; 1 were being written");
    free(text);
    recording_free(&r);
}

/* ---- processes ---- */

static void fork_one(void (*body)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        iw_record_fork(FORK_CHILD);
        body();
        exit(0);
    }
    must(pid > 0);
    iw_record_fork(FORK_PARENT);
    must(waitpid(pid, &status, 0) == pid && status == 0);
}

static void note_more(void)
{
    iw_record_note(POST_RECV, 2, 2);
    iw_record_note(POST_RECV, 2, 3);
}

static void with_a_child(void)
{
    iw_record_note(POST_RECV, 1, 1);
    iw_record_fork(FORK_PREPARE);
    fork_one(note_more);
    iw_record_note(POST_RECV, 1, 4);
}

static void a_child(void **state)
{
    (void)state;
    assert_int_equal(records(path, with_a_child), 0);
    struct recording r = read_it();
    assert_int_equal(r.n, 2);
    for (size_t i = 0; i < r.n; i++)
        assert_int_equal(r.events[i]->arg[0], 1);
    recording_free(&r);
}

static char own[64];

static void read_own(void)
{
    struct recording r;
    snprintf(own, sizeof(own), "%s.%d", path, (int)getpid());
    must(recording_read(&r, own, wrong, sizeof(wrong)));
    must(r.running && r.n == 2 && r.page->head.pid == (uint32_t)getpid());
    recording_free(&r);
    must(!unlink(own));
}

static void note_own(void)
{
    note_more();
    read_own();
}

static void with_a_child_of_its_own(void)
{
    iw_record_note(POST_RECV, 1, 1);
    iw_record_fork(FORK_PREPARE);
    fork_one(note_own);
    iw_record_note(POST_RECV, 1, 4);
    read_own();
}

static void a_child_with_its_number(void **state)
{
    char pattern[64];
    (void)state;
    snprintf(pattern, sizeof(pattern), "%s.%%p", path);
    assert_int_equal(records(pattern, with_a_child_of_its_own), 0);
}

static void look_at_itself(void)
{
    char found[4096 + 64];
    struct recording r;
    iw_record_note(POST_RECV, 1, 1);
    must(recording_find((unsigned long)getpid(), found, sizeof(found)));
    must(recording_read(&r, found, wrong, sizeof(wrong)));
    must(r.running && r.n == 1);
    recording_free(&r);
    must(!recording_find((unsigned long)getppid(), found, sizeof(found)));
}

static void found_by_the_number_of_the_process(void **state)
{
    (void)state;
    assert_int_equal(records(path, look_at_itself), 0);
}

static void go_on(void)
{
    must(!iw_record_page());
    some_calls();
}

static void no_place_for_it(void **state)
{
    (void)state;
    assert_int_equal(records("/tmp", go_on), 0);
    assert_int_equal(records("/nowhere/at/all", go_on), 0);
}

/* ---- what is no record ---- */

static struct record_page *whole;

static void write_page(size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(whole, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static const struct damage {
    const char *name, *said;
    size_t at, len;
    uint64_t value;
} damages[] = {
#define AT(field) offsetof(struct record_page, field), sizeof(((struct record_page *)0)->field)
    {"magic", "is no record", AT(head.magic), 0},
    {"version", "of version 9,", AT(head.version), 9},
    {"seq", "is damaged: event 0 of ring 0", AT(events[0][0].seq), 4},
    {"seq of the future", "is damaged: event 0 of ring 0", AT(events[0][0].seq),
     2 * 100 * RECORD_EVENTS + 2},
    {"what", "is damaged: event 1 of ring 0", AT(events[0][1].what), RECORD_WHATS},
    {"ring", "is damaged: event 1 of ring 0", AT(events[0][1].what), RECORD_FRAME},
    {"flags", "is damaged: event 1 of ring 0", AT(events[0][1].flags), 0x8000},
    {"frame", "is damaged: event 0 of ring 2", AT(events[2][0].frame.len), UINT32_MAX},
    {"start", "is damaged: a connection", AT(conn[3].start[1].len), MPA_START_MAX + 1},
#undef AT
};

static void a_frame_and_calls(void)
{
    some_calls();
    iw_record_frame(iw_record_page(), 1, 0, &(struct record_frame){.len = 3},
                    (const uint8_t *)"abc", 3);
}

static bool is_refused(const char *name, const char *said)
{
    struct recording r;
    bool read = recording_read(&r, path, wrong, sizeof(wrong));
    if (read || !strstr(wrong, said))
        print_message("%s: %s\n", name, read ? "is read" : wrong);
    recording_free(&r);
    return !read && strstr(wrong, said);
}

static void damaged_ones(void **state)
{
    (void)state;
    assert_int_equal(records(path, a_frame_and_calls), 0);
    struct recording good = read_it();
    whole = malloc(sizeof(*whole));
    assert_non_null(whole);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        const struct damage *d = &damages[i];
        memcpy(whole, good.page, sizeof(*whole));
        memcpy((char *)whole + d->at, &d->value,
               d->len < sizeof(d->value) ? d->len : sizeof(d->value));
        write_page(sizeof(*whole));
        assert_true(is_refused(d->name, d->said));
    }
    memcpy(whole, good.page, sizeof(*whole));
    static const size_t lengths[] = {0, 1, sizeof(struct record_head) - 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        write_page(lengths[i]);
        assert_true(is_refused("a short one", "is no record"));
    }
    write_page(sizeof(*whole) - 1);
    assert_true(is_refused("one that was cut", "is damaged: it has"));
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputs("more", f);
    fclose(f);
    assert_true(is_refused("one that grew", "is damaged: it has"));
    recording_free(&good);
    free(whole);
}

/* Any bytes in what is whole otherwise: it may be refused, or printed. */
static void hostile_ones(void **state)
{
    (void)state;
    assert_int_equal(records(path, a_frame_and_calls), 0);
    struct recording good = read_it();
    FILE *nowhere = fopen("/dev/null", "w");
    unsigned seed = 1, printed = 0;
    whole = malloc(sizeof(*whole));
    assert_non_null(whole);
    assert_non_null(nowhere);
    for (unsigned i = 0; i < HOSTILE; i++) {
        struct recording r;
        memcpy(whole, good.page, sizeof(*whole));
        whole->ring[RECORD_WIRE].next = whole->ring[RECORD_CM].next = RECORD_EVENTS;
        for (unsigned n = 0; n < RECORD_EVENTS; n++) {
            struct record_event *e = &whole->events[RECORD_WIRE][n];
            for (size_t k = 0; k < sizeof(*e); k++)
                ((uint8_t *)e)[k] = (uint8_t)(rand_r(&seed) >> 8);
            e->seq = 2 * n + 2;
            e->what = RECORD_FRAME;
            e->flags &= (uint16_t)(RECORD_OUT | (n % 3 ? 0 : RECORD_START | RECORD_OTHER));
            e->frame.len %= n % 2 ? 100 : 65536;
            e->frame.conn = n % 5;
        }
        for (uint32_t n = 0; n < 4; n++) {
            struct record_conn *c = &whole->conn[n];
            for (size_t k = 0; k < sizeof(*c); k++)
                ((uint8_t *)c)[k] = (uint8_t)(rand_r(&seed) >> 8);
            c->id = n + 1;
            c->ipv6 &= 1;
            c->start[0].len %= MPA_START_MAX + 1;
            c->start[1].len %= MPA_START_MAX + 1;
        }
        write_page(sizeof(*whole));
        if (recording_read(&r, path, wrong, sizeof(wrong))) {
            recording_print(nowhere, &r);
            assert_true(recording_capture(nowhere, &r));
            printed++;
        }
        recording_free(&r);
    }
    assert_int_equal(printed, HOSTILE);
    fclose(nowhere);
    recording_free(&good);
    free(whole);
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_what_became_of_them),
        cmocka_unit_test(whatever_ends_the_process),
        cmocka_unit_test(the_last_ones),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(an_event_that_was_being_written),
        cmocka_unit_test(a_child),
        cmocka_unit_test(a_child_with_its_number),
        cmocka_unit_test(found_by_the_number_of_the_process),
        cmocka_unit_test(no_place_for_it),
        cmocka_unit_test(damaged_ones),
        cmocka_unit_test(hostile_ones),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
