/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/events.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct bell {
    struct event_source source;
    sem_t rung;
    sem_t go; /* the callback waits for it */
    bool waits, forgets;
    bool inside;
};

static void on_bell(struct event_source *s)
{
    struct bell *b = (struct bell *)s;
    uint64_t n;
    assert_true(event_thread_is_me());
    assert_int_equal(read(s->fd, &n, sizeof n), sizeof n);
    __atomic_store_n(&b->inside, true, __ATOMIC_RELEASE);
    sem_post(&b->rung);
    if (b->waits)
        sem_wait(&b->go);
    if (b->forgets)
        event_thread_forget(s);
    __atomic_store_n(&b->inside, false, __ATOMIC_RELEASE);
}

static void bell_init(struct bell *b)
{
    *b = (struct bell){.source = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_bell}};
    sem_init(&b->rung, 0, 0);
    sem_init(&b->go, 0, 0);
}

static void bell_fini(struct bell *b)
{
    close(b->source.fd);
    sem_destroy(&b->rung);
    sem_destroy(&b->go);
}

static void strike(struct bell *b)
{
    assert_int_equal(write(b->source.fd, &(uint64_t){1}, 8), 8);
}

static void a_source_is_called_until_it_is_forgotten(void **state)
{
    (void)state;
    struct bell b;
    bell_init(&b);
    assert_int_equal(event_thread_watch(&b.source), EINVAL);
    assert_int_equal(event_thread_get("events"), 0);
    assert_false(event_thread_is_me());
    assert_int_equal(event_thread_watch(&b.source), 0);
    for (int i = 0; i < 10; i++) {
        strike(&b);
        sem_wait(&b.rung);
    }
    event_thread_forget(&b.source);
    event_thread_forget(&b.source);
    strike(&b);
    event_thread_put();
    event_thread_put(); /* one too many changes nothing */
    assert_int_equal(sem_trywait(&b.rung), -1);
    event_thread_forget(&b.source);
    bell_fini(&b);
}

static void what_is_no_descriptor_is_not_watched(void **state)
{
    (void)state;
    struct event_source s = {.fd = -1, .ready = on_bell};
    assert_int_equal(event_thread_get("events"), 0);
    assert_int_equal(event_thread_watch(&s), EBADF);
    assert_int_equal(s.number, 0);
    event_thread_put();
}

static void *forget(void *arg)
{
    event_thread_forget(arg);
    return NULL;
}

static void forgetting_waits_for_the_callback(void **state)
{
    (void)state;
    struct bell b;
    bell_init(&b);
    b.waits = true;
    assert_int_equal(event_thread_get("events"), 0);
    assert_int_equal(event_thread_watch(&b.source), 0);
    strike(&b);
    sem_wait(&b.rung);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, forget, &b.source), 0);
    for (int i = 0; i < 100; i++)
        sched_yield();
    assert_true(__atomic_load_n(&b.inside, __ATOMIC_ACQUIRE));
    assert_int_equal(pthread_tryjoin_np(t, NULL), EBUSY);
    sem_post(&b.go);
    pthread_join(t, NULL);
    assert_false(__atomic_load_n(&b.inside, __ATOMIC_ACQUIRE));
    event_thread_put();
    bell_fini(&b);
}

static void a_callback_may_forget_itself(void **state)
{
    (void)state;
    struct bell b;
    bell_init(&b);
    b.forgets = true;
    assert_int_equal(event_thread_get("events"), 0);
    assert_int_equal(event_thread_watch(&b.source), 0);
    strike(&b);
    sem_wait(&b.rung);
    event_thread_put();
    bell_fini(&b);
}

struct errand {
    struct event_task task;
    struct errand *and_then;
    int *done, want;
};

static void run_errand(struct event_task *t)
{
    struct errand *e = (struct errand *)t;
    assert_true(event_thread_is_me());
    assert_int_equal((*e->done)++, e->want);
    if (e->and_then)
        event_thread_run(&e->and_then->task);
    free(e);
}

static struct errand *errand(int *done, int want, struct errand *and_then)
{
    struct errand *e = calloc(1, sizeof *e);
    *e = (struct errand){
        .task = {.run = run_errand}, .done = done, .want = want, .and_then = and_then};
    return e;
}

/* The last user's going waits for all of them, for one that is given by another, too. */
static void tasks_run_in_order_before_the_end(void **state)
{
    (void)state;
    int done = 0;
    assert_int_equal(event_thread_get("events"), 0);
    assert_int_equal(event_thread_get("events"), 0);
    for (int i = 0; i < 99; i++)
        event_thread_run(&errand(&done, i, NULL)->task);
    event_thread_put();
    event_thread_run(&errand(&done, 99, errand(&done, 100, NULL))->task);
    event_thread_put();
    assert_int_equal(done, 101);
}

static sem_t last_words;

static void leave(struct event_task *t)
{
    (void)t;
    event_thread_put();
    assert_int_equal(event_thread_get("events"), 0); /* another one, meanwhile */
    assert_true(event_thread_is_me());
    sem_post(&last_words);
}

static void the_thread_may_be_the_last_user(void **state)
{
    (void)state;
    struct event_task t = {.run = leave};
    int done = 0;
    sem_init(&last_words, 0, 0);
    assert_int_equal(event_thread_get("events"), 0);
    event_thread_run(&t);
    sem_wait(&last_words);
    event_thread_run(&errand(&done, 0, NULL)->task);
    event_thread_put();
    assert_int_equal(done, 1);
    sem_destroy(&last_words);
}

static void *fire_at_will(void *arg)
{
    struct bell *b = arg;
    for (int i = 0; i < 2000; i++)
        strike(b);
    return NULL;
}

/* Sources come and go while they are rung. */
static void storm(void **state)
{
    (void)state;
    enum { BELLS = 4 };
    struct bell b[BELLS];
    pthread_t t[BELLS];
    assert_int_equal(event_thread_get("events"), 0);
    for (int i = 0; i < BELLS; i++) {
        bell_init(&b[i]);
        b[i].forgets = i == 0;
        assert_int_equal(pthread_create(&t[i], NULL, fire_at_will, &b[i]), 0);
    }
    for (int i = 0; i < 500; i++) {
        for (int j = 0; j < BELLS; j++)
            assert_int_equal(event_thread_watch(&b[j].source), 0);
        for (int j = 0; j < BELLS; j++) {
            event_thread_forget(&b[j].source);
            assert_false(__atomic_load_n(&b[j].inside, __ATOMIC_ACQUIRE));
        }
    }
    for (int i = 0; i < BELLS; i++)
        pthread_join(t[i], NULL);
    event_thread_put();
    for (int i = 0; i < BELLS; i++)
        bell_fini(&b[i]);
}

static bool all_blocked;

static void look_at_mask(struct event_task *t)
{
    (void)t;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    all_blocked = sigismember(&set, SIGINT) == 1 && sigismember(&set, SIGALRM) == 1;
}

static void it_takes_no_signals(void **state)
{
    (void)state;
    struct event_task t = {.run = look_at_mask};
    assert_int_equal(event_thread_get("events"), 0);
    event_thread_run(&t);
    event_thread_put();
    assert_true(all_blocked);
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGINT), 0);
}

static int in_child(void)
{
    int done = 0;
    event_thread_put(); /* the parent's: nothing to wait for */
    if (event_thread_get("child") != 0)
        return 1;
    event_thread_run(&errand(&done, 0, NULL)->task);
    event_thread_put();
    return done == 1 ? 0 : 2;
}

static void a_child_starts_anew(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
    assert_int_equal(event_thread_get("events"), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child());
    int status, done = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    event_thread_run(&errand(&done, 0, NULL)->task);
    event_thread_put();
    assert_int_equal(done, 1);
}

enum { ENDED = 42 };

static void end(void)
{
    _exit(ENDED); /* before anybody looks for what the parent's threads have left */
}

static pid_t forked;

static void fork_in_callback(struct event_source *s)
{
    forked = fork();
    if (forked == 0) {
        alarm(60);
        if (event_thread_is_me() || atexit(end))
            _exit(1);
        return;
    }
    on_bell(s);
}

/* The thread is all that the child has: that its callback returned ends it. */
static void a_callback_returns_in_a_child(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    struct bell b;
    bell_init(&b);
    b.source.ready = fork_in_callback;
    assert_int_equal(event_thread_get("events"), 0);
    assert_int_equal(event_thread_watch(&b.source), 0);
    strike(&b);
    sem_wait(&b.rung);
    int status;
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ENDED);
    event_thread_forget(&b.source);
    event_thread_put();
    bell_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_is_called_until_it_is_forgotten),
        cmocka_unit_test(what_is_no_descriptor_is_not_watched),
        cmocka_unit_test(forgetting_waits_for_the_callback),
        cmocka_unit_test(a_callback_may_forget_itself),
        cmocka_unit_test(tasks_run_in_order_before_the_end),
        cmocka_unit_test(the_thread_may_be_the_last_user),
        cmocka_unit_test(storm),
        cmocka_unit_test(it_takes_no_signals),
        cmocka_unit_test(a_child_starts_anew),
        cmocka_unit_test(a_callback_returns_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
