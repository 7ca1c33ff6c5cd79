/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks around fork(): the forking thread has all of a class, and has written none of them. */
#include "common/lock.h"

#include "vectors.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE    4096
#define LOCKS   100
#define THREADS 4
#define FORKS   200

static struct lock_class outer = LOCK_CLASS(outer, LOCK_CM);
static struct lock_class inner = LOCK_CLASS(inner, LOCK_CQ);

struct object {
    struct lock outer, inner;
    unsigned a, b, c; /* a and b under the outer lock, b and c under the inner one; all are equal */
};

static struct object *objects;
static size_t objects_size;
static atomic_bool end;

static int make(void **state)
{
    (void)state;
    objects_size = (LOCKS * sizeof(*objects) + PAGE - 1) / PAGE * PAGE;
    objects = mmap(NULL, objects_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(objects != MAP_FAILED);
    for (int i = 0; i < LOCKS; i++) {
        lock_init_in(&objects[i].outer, &outer);
        lock_init_in(&objects[i].inner, &inner);
    }
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    for (int i = 0; i < LOCKS; i++) {
        lock_fini(&objects[i].outer);
        lock_fini(&objects[i].inner);
    }
    return munmap(objects, objects_size);
}

static void step(enum fork_step s)
{
    if (s == FORK_PREPARE)
        lock_class_fork(&outer, s);
    lock_class_fork(&inner, s);
    if (s != FORK_PREPARE)
        lock_class_fork(&outer, s);
}

static void no_lock_is_written(void **state)
{
    (void)state;
#ifdef LOCK_OWNERS
    skip(); /* these write who holds it */
#endif
    assert_int_equal(mprotect(objects, objects_size, PROT_READ), 0);
    step(FORK_PREPARE);
    step(FORK_PARENT);
    step(FORK_PREPARE);
    step(FORK_CHILD);
    assert_int_equal(mprotect(objects, objects_size, PROT_READ | PROT_WRITE), 0);
}

/* A thread that has, or wants, one lock. */
static atomic_int has, wants;

static void *holder(void *arg)
{
    struct object *o = arg;
    lock_get(&o->outer);
    has = 1;
    while (!wants)
        usleep(100);
    usleep(20000); /* in which fork() begins, and waits */
    lock_get(&o->inner);
    o->a = o->b = o->c = 7;
    lock_put(&o->inner);
    lock_put(&o->outer);
    return NULL;
}

static void who_has_one_is_waited_for(void **state)
{
    pthread_t t;
    (void)state;
    has = wants = 0;
    pthread_create(&t, NULL, holder, &objects[3]);
    while (!has)
        usleep(100);
    wants = 1;
    step(FORK_PREPARE);
    assert_int_equal(objects[3].c, 7);
    objects[3].a = objects[3].b = objects[3].c = 0;
    step(FORK_PARENT);
    pthread_join(t, NULL);
}

static void *comer(void *arg)
{
    struct object *o = arg;
    wants = !lock_try(&o->outer);
    lock_get(&o->outer);
    has = 1;
    lock_put(&o->outer);
    return NULL;
}

static void who_comes_waits(void **state)
{
    pthread_t t;
    (void)state;
    has = wants = 0;
    step(FORK_PREPARE);
    pthread_create(&t, NULL, comer, &objects[5]);
    while (!wants)
        usleep(100);
    usleep(20000);
    assert_int_equal(has, 0);
    step(FORK_PARENT);
    pthread_join(t, NULL);
    assert_int_equal(has, 1);
}

static void *user(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!end) {
        struct object *o = &objects[rand_r(&seed) % LOCKS];
        if (rand_r(&seed) % 4) {
            lock_get(&o->outer);
        } else if (!lock_try(&o->outer)) {
            continue;
        }
        o->a++;
        lock_get(&o->inner);
        o->b++;
        o->c++;
        lock_put(&o->inner);
        lock_put(&o->outer);
    }
    return NULL;
}

/** @return how many objects are not whole, or have locks that are not free; takes all that are */
static int broken(void)
{
    int n = 0;
    for (int i = 0; i < LOCKS; i++) {
        struct object *o = &objects[i];
        if (!lock_try(&o->outer)) {
            n++;
            continue;
        }
        n += !lock_try(&o->inner) || o->a != o->b || o->b != o->c;
        o->a++;
    }
    return n;
}

static void a_child_finds_all_free_and_whole(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    end = false;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, user, (void *)(i + 1));
    for (int i = 0; i < FORKS; i++) {
        int status;
        step(FORK_PREPARE);
        pid_t pid = fork();
        if (pid == 0) {
            step(FORK_CHILD);
            _exit(broken() != 0);
        }
        step(FORK_PARENT);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    end = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(broken(), 0);
    for (int i = 0; i < LOCKS; i++) {
        lock_put(&objects[i].inner);
        lock_put(&objects[i].outer);
    }
}

static struct lock door = LOCK(LOCK_TIMERS);
static struct lock_cond opened;

static void *opener(void *arg)
{
    lock_get(&door);
    *(bool *)arg = true;
    lock_wake_all(&opened);
    lock_put(&door);
    return NULL;
}

static void waits_end_by_waking_or_by_time(void **state)
{
    pthread_t t;
    bool open = false;
    (void)state;
    lock_get(&door);
    assert_true(lock_wait_ms(&door, &opened, 10));
    lock_wake_all(&opened); /* nobody waits */
    pthread_create(&t, NULL, opener, &open);
    while (!open)
        lock_wait(&door, &opened);
    lock_put(&door);
    pthread_join(t, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_lock_is_written, make, destroy),
        cmocka_unit_test_setup_teardown(who_has_one_is_waited_for, make, destroy),
        cmocka_unit_test_setup_teardown(who_comes_waits, make, destroy),
        cmocka_unit_test_setup_teardown(a_child_finds_all_free_and_whole, make, destroy),
        cmocka_unit_test(waits_end_by_waking_or_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
