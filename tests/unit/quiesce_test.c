/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections and grace periods. Another thread, the copier, does one step at a time, so that each
 * order of a section and a period is played; and all at once, for ThreadSanitizer.
 */
#include "mem/quiesce.h"

#include "common/sys.h"
#include "engine/deferred.h"
#include "mem/region.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct iw_pd pds[2]; /* for their addresses only */

/* ---- a thread that copies when it is told ---- */

enum step { REST, BEGIN, BEGIN_OTHER, END, LEAVE };

struct worker {
    pthread_t thread;
    _Atomic int step; /* REST: done */
    struct iw_copier *copier;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (;;) {
        int step;
        while ((step = atomic_load(&w->step)) == REST)
            sched_yield();
        if (step == BEGIN || step == BEGIN_OTHER)
            iw_copy_begin(&pds[step == BEGIN_OTHER]);
        if (step == END)
            iw_copy_end();
        w->copier = iw_copier;
        atomic_store(&w->step, REST);
        if (step == LEAVE)
            return NULL;
    }
}

static void does(struct worker *w, enum step step)
{
    atomic_store(&w->step, step);
    while (atomic_load(&w->step) != REST)
        sched_yield();
}

static void worker_start(struct worker *w)
{
    *w = (struct worker){.step = REST};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    does(w, BEGIN);
    does(w, END);
}

static void worker_join(struct worker *w)
{
    does(w, LEAVE);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* ---- which sections a period waits for ---- */

static void only_sections_of_before_in_the_domain_count(void **state)
{
    static const struct {
        const char *name;
        enum step before, after[3];
        bool over;
    } rows[] = {
        {"nobody copies", END, {REST}, true},
        {"a copy runs", BEGIN, {REST}, false},
        {"it has ended", BEGIN, {END}, true},
        {"the next one runs", BEGIN, {END, BEGIN}, true},
        {"one of another domain runs", BEGIN_OTHER, {REST}, true},
        {"it has ended, one of the domain runs", BEGIN_OTHER, {END, BEGIN}, true},
        {"it has ended, one of another domain runs", BEGIN, {END, BEGIN_OTHER}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct worker w;
        struct iw_grace g;
        bool running = rows[i].before != END;
        worker_start(&w);
        iw_grace_init(&g);
        if (running)
            does(&w, rows[i].before);
        iw_grace_begin(&g, &pds[0]);
        bool at_once = iw_grace_over(&g);
        assert_int_equal(at_once, rows[i].before != BEGIN);
        for (int k = 0; k < 3 && rows[i].after[k] != REST; k++) {
            does(&w, rows[i].after[k]);
            running = rows[i].after[k] != END;
        }
        if (iw_grace_over(&g) != rows[i].over)
            fail_msg("%s", rows[i].name);
        if (running)
            does(&w, END);
        assert_true(iw_grace_over(&g));
        worker_join(&w);
    }
}

/** The section that this thread begins later is none that it waits for. */
static void a_section_of_ones_own_does_not_count(void **state)
{
    struct worker w;
    struct iw_grace g;
    (void)state;
    worker_start(&w);
    iw_grace_init(&g);
    does(&w, BEGIN);
    iw_grace_begin(&g, &pds[0]);
    iw_copy_begin(&pds[0]);
    assert_false(iw_grace_over(&g));
    does(&w, END);
    assert_true(iw_grace_over(&g));
    iw_copy_end();
    worker_join(&w);
}

/** Each of many threads is waited for, whichever is the last. */
static void every_thread_counts(void **state)
{
    enum { THREADS = 5 };
    struct worker w[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        worker_start(&w[i]);
    for (int last = 0; last < THREADS; last++) {
        struct iw_grace g;
        iw_grace_init(&g);
        for (int i = 0; i < THREADS; i++)
            does(&w[i], BEGIN);
        iw_grace_begin(&g, &pds[0]);
        for (int i = 0; i < THREADS; i++)
            if (i != last) {
                does(&w[i], END);
                assert_false(iw_grace_over(&g));
            }
        does(&w[last], END);
        assert_true(iw_grace_over(&g));
    }
    for (int i = 0; i < THREADS; i++)
        worker_join(&w[i]);
}

/* ---- being told ---- */

static atomic_uint told;

static void note(struct iw_deferred *d)
{
    (void)d;
    atomic_fetch_add(&told, 1);
}

static void whoever_asked_is_told_once(void **state)
{
    struct worker w;
    struct iw_grace g;
    struct iw_deferred then = {.run = note};
    (void)state;
    worker_start(&w);
    iw_grace_init(&g);
    atomic_store(&told, 0);
    for (unsigned i = 1; i <= 3; i++) {
        does(&w, BEGIN);
        iw_grace_begin(&g, &pds[0]);
        assert_false(iw_grace_ask(&g, &then));
        assert_false(iw_grace_ask(&g, &then));
        iw_deferred_wait(&then);
        assert_int_equal(atomic_load(&told), i - 1);
        does(&w, END);
        iw_deferred_wait(&then);
        assert_int_equal(atomic_load(&told), i);
        assert_true(iw_grace_ask(&g, &then));
        does(&w, BEGIN);
        does(&w, END);
        iw_deferred_wait(&then);
        assert_int_equal(atomic_load(&told), i);
    }
    does(&w, BEGIN);
    iw_grace_begin(&g, &pds[0]);
    assert_false(iw_grace_ask(&g, &then));
    iw_grace_drop(&g);
    iw_grace_drop(&g);
    does(&w, END);
    iw_deferred_wait(&then);
    assert_int_equal(atomic_load(&told), 3);
    worker_join(&w);
}

/* ---- threads ---- */

static void a_thread_that_ends_leaves_its_copier_to_another(void **state)
{
    struct worker w[2];
    (void)state;
    worker_start(&w[0]);
    worker_start(&w[1]);
    struct iw_copier *had[] = {w[0].copier, w[1].copier};
    assert_ptr_not_equal(had[0], had[1]);
    assert_int_equal((uintptr_t)had[0] % 64, 0);
    worker_join(&w[0]);
    worker_start(&w[0]);
    assert_ptr_equal(w[0].copier, had[0]);
    worker_join(&w[0]);
    worker_join(&w[1]);
}

/** The copy that runs in the parent is none of the child's. */
static void a_child_waits_for_nobody(void **state)
{
    struct worker w;
    int status;
    (void)state;
    worker_start(&w);
    does(&w, BEGIN);
    iw_quiesce_fork(FORK_PREPARE);
    pid_t pid = fork();
    iw_quiesce_fork(pid == 0 ? FORK_CHILD : FORK_PARENT);
    if (pid == 0) {
        alarm(10);
        iw_quiesce(&pds[0]);
        iw_copy_begin(&pds[0]);
        iw_copy_end();
        iw_quiesce(&pds[0]);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct iw_grace g;
    iw_grace_init(&g);
    iw_grace_begin(&g, &pds[0]);
    assert_false(iw_grace_over(&g));
    does(&w, END);
    worker_join(&w);
}

/* ---- all at once ---- */

#define COPIERS 3
#define ROUNDS  300

static int *_Atomic shared;
static atomic_bool stop;
static atomic_uint copies;

static void *copy_thread(void *arg)
{
    struct iw_pd *pd = arg;
    while (!atomic_load(&stop)) {
        iw_copy_begin(pd);
        int *p = atomic_load_explicit(&shared, memory_order_acquire);
        if (p && pd == &pds[0]) {
            __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
            atomic_fetch_add_explicit(&copies, 1, memory_order_relaxed);
        }
        iw_copy_end();
        sched_yield();
    }
    return NULL;
}

/** Memory goes the moment the period is over, waited for or asked about. */
static void nobody_copies_behind_a_period(void **state)
{
    pthread_t t[COPIERS + 1];
    (void)state;
    atomic_store(&stop, false);
    for (int i = 0; i <= COPIERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, copy_thread, &pds[i == COPIERS]), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int *p = calloc(1, sizeof(*p));
        unsigned before = atomic_load(&copies);
        atomic_store(&shared, p);
        while (i % 8 == 0 && atomic_load(&copies) == before)
            sched_yield();
        atomic_store(&shared, NULL);
        if (i % 2) {
            iw_quiesce(&pds[0]);
        } else {
            struct iw_grace g;
            struct iw_deferred then = {.run = note};
            iw_grace_init(&g);
            iw_grace_begin(&g, &pds[0]);
            while (!iw_grace_ask(&g, &then))
                iw_deferred_wait(&then);
            iw_deferred_wait(&then);
        }
        *p = -1;
        free(p);
    }
    atomic_store(&stop, true);
    for (int i = 0; i <= COPIERS; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
}

/** The same where membarrier(2) is missing. */
static void nor_with_fences(void **state)
{
    bool before = atomic_exchange(&iw_copy_fences, true);
    nobody_copies_behind_a_period(state);
    atomic_store(&iw_copy_fences, before);
}

#ifdef ANYWARP_TSAN
/* No handler of this program runs, but after fork() among threads it sometimes thinks that one
 * does. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_signal_unsafe=0";
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_sections_of_before_in_the_domain_count),
        cmocka_unit_test(a_section_of_ones_own_does_not_count),
        cmocka_unit_test(every_thread_counts),
        cmocka_unit_test(whoever_asked_is_told_once),
        cmocka_unit_test(a_thread_that_ends_leaves_its_copier_to_another),
        cmocka_unit_test(a_child_waits_for_nobody),
        cmocka_unit_test(nobody_copies_behind_a_period),
        cmocka_unit_test(nor_with_fences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
