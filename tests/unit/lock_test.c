/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG
#define LOCK_OWNERS 1    /* as with a sanitizer, in every build */
#include "common/lock.c" /* libraries have it with a sanitizer only */

#include "vectors.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock_class cms = LOCK_CLASS(cms, LOCK_CM);
static struct lock cm[2], cq, build[2], source = LOCK(LOCK_SOURCE);
static struct lock_cond cond;

static void make_all(void)
{
    lock_init_in(&cm[0], &cms);
    lock_init_in(&cm[1], &cms);
    lock_init(&cq, LOCK_CQ);
    lock_init(&build[0], LOCK_PROGRAM);
    lock_init(&build[1], LOCK_PROGRAM);
}

static void in_order(void)
{
    lock_get(&build[1]);
    lock_get(&cm[1]);
    lock_get(&cq);
    lock_get_leaf(&source);
}

static void outer_last(void)
{
    lock_get(&cq);
    lock_get(&cm[0]);
}

static void leaf_first(void)
{
    lock_get(&source);
    lock_get_leaf(&cq);
}

static void two_beside(void)
{
    lock_get(&cm[0]);
    lock_get(&cm[1]);
}

static void two_of_the_program(void)
{
    lock_get(&build[1]);
    lock_get(&build[0]);
}

static void program_below_ours(void)
{
    lock_get(&cm[0]);
    lock_get(&build[0]);
}

static void released_before(void)
{
    lock_get(&cq);
    lock_put(&cq);
    lock_get(&cm[0]);
}

static void tried(void)
{
    lock_get(&cq);
    assert(lock_try(&cm[0]));
}

static void after_one_tried(void)
{
    assert(lock_try(&cq));
    lock_get(&cm[0]);
}

static void waits_under_a_later_one(void)
{
    lock_get(&cm[0]);
    lock_get(&cq);
    lock_wait(&cm[0], &cond);
}

static void forks(void)
{
    lock_class_fork(&cms, FORK_PREPARE);
    lock_get(&cq);
    lock_put(&cq);
    lock_class_fork(&cms, FORK_PARENT);
    in_order();
}

static void forks_too_late(void)
{
    lock_get(&cq);
    lock_class_fork(&cms, FORK_PREPARE);
}

/** @return whether an assertion ends a process that calls @p take */
static bool asserts(void (*take)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        alarm(10);
        take();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void order(void **state)
{
    static const struct {
        const char *name;
        void (*take)(void);
        bool asserts;
    } rows[] = {
        {"in the order of the list", in_order, false},
        {"an outer one last", outer_last, true},
        {"a leaf first", leaf_first, true},
        {"two of one class", two_beside, true},
        {"two that the program holds", two_of_the_program, false},
        {"one of the program's below ours", program_below_ours, true},
        {"what is given back is not held", released_before, false},
        {"a try may come from anywhere", tried, false},
        {"what was tried is held", after_one_tried, true},
        {"a wait takes its lock again", waits_under_a_later_one, true},
        {"fork() takes the whole class", forks, false},
        {"fork() keeps the order", forks_too_late, true},
    };
    (void)state;
    make_all();
    for (size_t i = 0; i < COUNT(rows); i++)
        if (asserts(rows[i].take) != rows[i].asserts)
            fail_msg("%s: %s", rows[i].name, rows[i].asserts ? "no assertion" : "an assertion");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
