/* SPDX-License-Identifier: BSD-2-Clause */
/* What <linux/...> has besides verbs: waiting, threads, work, lists, memory, numbers, files. */
#include "kverbs_kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/time.h>
#include <linux/timex.h>

struct cell {
    struct list_head entry;
    int n;
};

static void lists(void **state)
{
    (void)state;
    LIST_HEAD(a);
    LIST_HEAD(b);
    struct cell c[5], *at, *next;
    assert_true(list_empty(&a));
    assert_null(list_first_entry_or_null(&a, struct cell, entry));
    for (int i = 0; i < 5; i++) {
        c[i].n = i;
        list_add_tail(&c[i].entry, &a);
    }
    int n = 0;
    list_for_each_entry(at, &a, entry) assert_int_equal(at->n, n++);
    assert_int_equal(n, 5);
    list_move(&c[4].entry, &a);
    assert_int_equal(list_first_entry(&a, struct cell, entry)->n, 4);
    assert_int_equal(list_last_entry(&a, struct cell, entry)->n, 3);
    list_for_each_entry_safe(at, next, &a, entry)
    {
        if (at->n % 2)
            list_move_tail(&at->entry, &b);
    }
    list_splice_tail_init(&b, &a);
    assert_true(list_empty(&b));
    list_splice_init(&b, &a); /* nothing */
    static const int order[] = {4, 0, 2, 1, 3};
    n = 0;
    list_for_each_entry(at, &a, entry) assert_int_equal(at->n, order[n++]);
    struct list_head *p, *q;
    n = 0;
    list_for_each (p, &a)
        n++;
    list_for_each_safe (p, q, &a) {
        list_del(p);
        n--;
    }
    assert_int_equal(n, 0);
    assert_ptr_not_equal(c[0].entry.next, &a);
}

static void released(struct kref *k)
{
    k->refcount.refs.counter = -100;
}

static void counting(void **state)
{
    (void)state;
    atomic_t a = ATOMIC_INIT(1);
    atomic_inc(&a);
    assert_int_equal(atomic_add_return(5, &a), 7);
    assert_false(atomic_dec_and_test(&a));
    assert_int_equal(atomic_cmpxchg(&a, 6, 9), 6);
    assert_int_equal(atomic_cmpxchg(&a, 6, 10), 9);
    assert_int_equal(atomic_read(&a), 9);
    assert_true(atomic_add_unless(&a, 1, 3));
    assert_false(atomic_add_unless(&a, 1, 10));
    assert_true(atomic_inc_not_zero(&a));
    atomic_set(&a, 0);
    assert_false(atomic_inc_not_zero(&a));
    struct kref k;
    kref_init(&k);
    kref_get(&k);
    assert_int_equal(kref_put(&k, released), 0);
    assert_int_equal(kref_get_unless_zero(&k), 1);
    assert_int_equal(kref_put(&k, released), 0);
    assert_int_equal(kref_put(&k, released), 1);
    assert_int_equal((int)refcount_read(&k.refcount), -100);
    unsigned long bits[2] = {0};
    set_bit(70, bits);
    assert_true(test_bit(70, bits) && !test_bit(6, bits));
    assert_true(test_and_clear_bit(70, bits));
    assert_false(test_and_set_bit(70, bits));
    clear_bit(70, bits);
    assert_int_equal(bits[1], 0);
}

static void numbers_and_strings(void **state)
{
    (void)state;
    int i;
    unsigned u;
    unsigned long ul;
    char *end, text[8];
    assert_int_equal(kstrtoint("-42\n", 0, &i), 0);
    assert_int_equal(i, -42);
    assert_int_equal(kstrtoint("42x", 0, &i), -EINVAL);
    assert_int_equal(kstrtoint("", 0, &i), -EINVAL);
    assert_int_equal(kstrtoint("99999999999", 0, &i), -ERANGE);
    assert_int_equal(kstrtouint("0x10", 0, &u), 0);
    assert_int_equal(u, 16);
    assert_int_equal(kstrtouint("-1", 0, &u), -EINVAL);
    assert_int_equal(kstrtouint("99999999999", 0, &u), -ERANGE);
    assert_int_equal(kstrtoul("999999999999999999999", 0, &ul), -ERANGE);
    assert_int_equal(simple_strtoul("17,", &end, 0), 17);
    assert_string_equal(end, ",");
    assert_int_equal(simple_strtol("-17", NULL, 10), -17);
    assert_int_equal(scnprintf(text, sizeof text, "%s", "long enough"), 7);
    assert_int_equal(scnprintf(text, sizeof text, "%s", "ab"), 2);
    assert_int_equal(scnprintf(text, 0, "%s", "ab"), 0);
    assert_int_equal(strlcpy(text, "long enough", sizeof text), 11);
    assert_string_equal(text, "long en");
    assert_int_equal(strlcpy(text, "x", 0), 1);
    assert_int_equal(min(3, 4) + max(3, 4) + clamp(9, 1, 5), 12);
    assert_int_equal(ALIGN(13, 8), 16);
    assert_int_equal(DIV_ROUND_UP(13, 8), 2);
    assert_int_equal(get_order(PAGE_SIZE + 1), 1);
    assert_true(IS_ERR(ERR_PTR(-ENOMEM)) && !IS_ERR(&i) && IS_ERR_OR_NULL(NULL));
    assert_int_equal(PTR_ERR_OR_ZERO(&i), 0);
    assert_int_equal(PTR_ERR_OR_ZERO(ERR_PTR(-5)), -5);
}

static void addresses(void **state)
{
    (void)state;
    static const u8 v4[] = {10, 0, 0, 7};
    u8 a[16];
    const char *end;
    assert_int_equal(in4_pton("10.0.0.7", -1, a, -1, &end), 1);
    assert_memory_equal(a, v4, 4);
    assert_int_equal(*end, 0);
    assert_int_equal(in4_pton("10.0.0.7/24", -1, a, '/', &end), 1);
    assert_int_equal(*end, '/');
    assert_int_equal(in4_pton("10.0.0.77", 8, a, -1, NULL), 1);
    assert_int_equal(a[3], 7);
    assert_int_equal(in4_pton("10.0.0", -1, a, -1, NULL), 0);
    assert_int_equal(in6_pton("fe80::1", -1, a, -1, NULL), 1);
    assert_int_equal(a[0], 0xfe);
    assert_int_equal(in6_pton("0123456789012345678901234567890123456789012345678", -1, a, -1, NULL),
                     0);
    assert_int_equal(be32_to_cpu(in_aton("127.0.0.1")), INADDR_LOOPBACK);
    struct net_device *lo = dev_get_by_name(&init_net, "lo");
    assert_non_null(lo);
    assert_string_equal(lo->name, "lo");
    assert_ptr_equal(__dev_get_by_name(&init_net, "lo"), lo);
    dev_put(lo);
    assert_null(dev_get_by_name(&init_net, "no such"));
}

static void constructor(void *p)
{
    memset(p, 7, 24);
}

static void memory(void **state)
{
    (void)state;
    u8 *p = kzalloc(100, GFP_KERNEL);
    assert_int_equal(p[0] | p[99], 0);
    p[99] = 5;
    p = krealloc(p, 2000, GFP_KERNEL);
    assert_int_equal(p[99], 5);
    u8 *copy = kmemdup(p, 100, GFP_ATOMIC);
    assert_int_equal(copy[99], 5);
    kfree(copy);
    kfree(p);
    kfree(NULL);
    char *s = kstrdup("text", GFP_KERNEL);
    assert_string_equal(s, "text");
    kfree(s);
    assert_null(kstrdup(NULL, GFP_KERNEL));
    volatile size_t many = ~0UL / 2;
    assert_null(kcalloc(many, 4, GFP_KERNEL));
    p = kmalloc_array(3, 5, GFP_KERNEL);
    kfree(p);
    p = vzalloc(10);
    vfree(p);
    struct kmem_cache *c = kmem_cache_create("cells", 24, 0, 0, constructor);
    u8 *o = kmem_cache_alloc(c, GFP_KERNEL);
    assert_int_equal(o[23], 7);
    kmem_cache_free(c, o);
    kmem_cache_destroy(c);
    struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO, 2);
    assert_int_equal((unsigned long)page_address(page) % PAGE_SIZE, 0);
    assert_int_equal(((u8 *)page_address(page))[4 * PAGE_SIZE - 1], 0);
    __free_pages(page, 2);
    char from[4] = "abc", to[4];
    assert_int_equal(copy_from_user(to, from, 4) + copy_to_user(from, to, 4), 0);
    assert_string_equal(to, "abc");
    u32 r[4];
    get_random_bytes(r, sizeof r);
    assert_true(r[0] != r[1] || r[1] != r[2] || r[2] != prandom_u32());
}

static void print_all(void *arg)
{
    (void)arg;
    pr_err("an %s\n", "error");
    pr_debug("not compiled in\n");
    printk("plain\n");
    assert_true(WARN_ON(1 + 1 == 2));
    for (int i = 0; i < 3; i++)
        assert_true(WARN_ON_ONCE(i < 3));
    assert_false(WARN_ON(0));
    assert_true(WARN(1, "with %d\n", 4711));
    for (int i = 0; i < 2; i++)
        WARN_ONCE(1, "one time\n");
}

static void messages(void **state)
{
    (void)state;
    char said[2048];
    kit_stderr(said, sizeof said, print_all, NULL);
    assert_non_null(strstr(said, "an error\nplain\nWARNING: at "));
    assert_non_null(strstr(said, "1 + 1 == 2"));
    assert_non_null(strstr(said, "with 4711\n"));
    const char *once = strstr(said, "i < 3");
    assert_non_null(once);
    assert_null(strstr(once + 1, "i < 3"));
    once = strstr(said, "one time\n");
    assert_null(strstr(once + 1, "one time\n"));
}

static void time_passes(void **state)
{
    (void)state;
    unsigned long start = jiffies;
    ktime_t t = ktime_get();
    cycles_t c = get_cycles();
    msleep(20);
    usleep_range(1000, 2000);
    udelay(1000);
    assert_true(time_after_eq(jiffies, start + msecs_to_jiffies(20)));
    assert_true(ktime_us_delta(ktime_get(), t) >= 20000);
    assert_true(ktime_to_ns(ktime_sub(ktime_get(), t)) >= 20000000);
    assert_true(get_cycles() > c);
    struct timeval tv;
    do_gettimeofday(&tv);
    assert_true(get_seconds() - (unsigned long)tv.tv_sec <= 1);
    assert_true(ktime_get_seconds() >= 0);
    assert_int_equal(msleep_interruptible(5), 0);
    assert_int_equal(schedule_timeout_uninterruptible(2), 0);
}

struct place {
    wait_queue_head_t q;
    struct completion done;
    int value;
};

static int sets_value(void *data)
{
    struct place *p = data;
    msleep(10);
    WRITE_ONCE(p->value, 1);
    wake_up(&p->q);
    msleep(10);
    WRITE_ONCE(p->value, 2);
    wake_up_all(&p->q);
    complete(&p->done);
    return 5;
}

static void waiting(void **state)
{
    (void)state;
    struct place p = {.value = 0};
    init_waitqueue_head(&p.q);
    init_completion(&p.done);
    assert_false(waitqueue_active(&p.q));
    assert_int_equal(wait_event_timeout(p.q, READ_ONCE(p.value) == 1, 5), 0);
    struct task_struct *t = kthread_run(sets_value, &p, "setter");
    assert_string_equal(t->comm, "setter");
    wait_event(p.q, READ_ONCE(p.value) >= 1);
    assert_true(wait_event_timeout(p.q, READ_ONCE(p.value) == 2, 30 * HZ) > 0);
    assert_int_equal(wait_event_interruptible(p.q, READ_ONCE(p.value) == 2), 0);
    assert_true(wait_event_interruptible_timeout(p.q, READ_ONCE(p.value) == 2, HZ) > 0);
    assert_int_equal(wait_event_interruptible_timeout(p.q, READ_ONCE(p.value) == 3, 3), 0);
    wait_for_completion(&p.done);
    assert_false(try_wait_for_completion(&p.done));
    assert_int_equal(wait_for_completion_timeout(&p.done, 3), 0);
    assert_int_equal(kthread_stop(t), 5);
    complete_all(&p.done);
    assert_true(completion_done(&p.done));
    for (int i = 0; i < 3; i++)
        assert_int_equal(wait_for_completion_interruptible(&p.done), 0);
    reinit_completion(&p.done);
    assert_false(completion_done(&p.done));
}

static int until_stopped(void *data)
{
    struct place *p = data;
    int rounds = 1000;
    complete(&p->done);
    while (!kthread_should_stop()) {
        set_current_state(TASK_INTERRUPTIBLE);
        if (!kthread_should_stop())
            schedule();
        __set_current_state(TASK_RUNNING);
        rounds++;
    }
    return rounds;
}

static int in_queue(void *data)
{
    struct place *p = data;
    complete(&p->done);
    wait_event(p->q, kthread_should_stop());
    return 1;
}

/* False once, though the thread has just been stopped, and kthread_stop() has done what it does. */
static bool looks_too_early(struct place *p)
{
    if (p->value++)
        return kthread_should_stop();
    complete(&p->done);
    while (!kthread_should_stop())
        cond_resched();
    allow_signal(SIGTERM); /* under the lock that kthread_stop() had */
    return false;
}

static int nearly_asleep(void *data)
{
    struct place *p = data;
    wait_event(p->q, looks_too_early(p));
    return 1;
}

static void a_thread_is_stopped_before_it_sleeps(void **state)
{
    (void)state;
    struct place p = {.value = 0};
    init_waitqueue_head(&p.q);
    init_completion(&p.done);
    struct task_struct *t = kthread_run(nearly_asleep, &p, "nearly");
    wait_for_completion(&p.done);
    assert_int_equal(kthread_stop(t), 1);
}

static void threads_are_stopped_where_they_sleep(void **state)
{
    (void)state;
    struct place p = {.value = 0};
    init_waitqueue_head(&p.q);
    init_completion(&p.done);
    struct task_struct *t = kthread_create(until_stopped, &p, "sleeper/%d", 1);
    get_task_struct(t);
    assert_false(completion_done(&p.done));
    wake_up_process(t);
    wait_for_completion(&p.done);
    wake_up_process(t);
    assert_true(kthread_stop(t) >= 1000);
    put_task_struct(t);
    t = kthread_run(in_queue, &p, "in queue");
    wait_for_completion(&p.done);
    assert_int_equal(kthread_stop(t), 1);
    t = kthread_create(in_queue, &p, "never");
    assert_int_equal(kthread_stop(t), -EINTR); /* it was not woken once */
    assert_false(completion_done(&p.done));
    assert_int_equal(signal_pending(current), 0);
    flush_signals(current);
    schedule(); /* in state TASK_RUNNING it returns */
    assert_true(current->pid > 0);
}

struct job {
    struct work_struct work;
    struct delayed_work later;
    struct completion began, go;
    int *order, runs, want;
    bool blocks, again;
};

static void do_job(struct work_struct *w)
{
    struct job *j = container_of(w, struct job, work);
    j->runs++;
    if (j->order)
        assert_int_equal((*j->order)++, j->want);
    complete(&j->began);
    if (j->blocks)
        wait_for_completion(&j->go);
    if (j->again && j->runs < 3)
        queue_work(w->wq, w);
}

static void do_later(struct work_struct *w)
{
    struct job *j = container_of(to_delayed_work(w), struct job, later);
    j->runs++;
    complete(&j->began);
}

static void job_init(struct job *j)
{
    *j = (struct job){.runs = 0};
    INIT_WORK(&j->work, do_job);
    INIT_DELAYED_WORK(&j->later, do_later);
    init_completion(&j->began);
    init_completion(&j->go);
}

struct locks {
    spinlock_t spin;
    struct mutex mutex;
};

static int tries_locks(void *data)
{
    struct locks *l = data;
    int spin = spin_trylock(&l->spin), mutex = mutex_trylock(&l->mutex);
    if (spin)
        spin_unlock(&l->spin);
    if (mutex)
        mutex_unlock(&l->mutex);
    return 10 * spin + mutex;
}

static void locks_that_are_held(void **state)
{
    (void)state;
    struct locks l;
    spin_lock_init(&l.spin);
    mutex_init(&l.mutex);
    mutex_lock(&l.mutex);
    struct task_struct *t = kthread_run(tries_locks, &l, "tries");
    assert_int_equal(kthread_stop(t), 10);
    mutex_unlock(&l.mutex);
    t = kthread_create(tries_locks, &l, "tries");
    struct task_struct *u = kthread_run(tries_locks, &l, "tries");
    assert_int_equal(kthread_stop(u), 11);
    spin_lock_bh(&l.spin);
    wake_up_process(t);
    spin_unlock_bh(&l.spin);
    assert_int_equal(kthread_stop(t) % 10, 1);
    mutex_destroy(&l.mutex);
}

static void work_is_done_in_order(void **state)
{
    (void)state;
    struct workqueue_struct *wq = alloc_ordered_workqueue("order/%d", 0, 1);
    struct job j[20], first;
    int order = 0;
    job_init(&first);
    first.blocks = true;
    assert_true(queue_work(wq, &first.work));
    wait_for_completion(&first.began);
    for (int i = 0; i < 20; i++) {
        job_init(&j[i]);
        j[i].order = &order;
        j[i].want = i;
        assert_true(queue_work(wq, &j[i].work));
        assert_false(queue_work(wq, &j[i].work));
    }
    complete(&first.go);
    flush_workqueue(wq);
    assert_int_equal(order, 20);
    assert_false(flush_work(&j[0].work));
    job_init(&first);
    first.again = true;
    assert_true(queue_work(wq, &first.work));
    while (flush_work(&first.work))
        continue;
    assert_int_equal(first.runs, 3);
    destroy_workqueue(wq);
}

static void work_is_cancelled(void **state)
{
    (void)state;
    struct workqueue_struct *wq = create_singlethread_workqueue("cancel");
    struct job a, b;
    job_init(&a);
    job_init(&b);
    a.blocks = true;
    assert_true(queue_work(wq, &a.work));
    wait_for_completion(&a.began);
    assert_true(queue_work(wq, &b.work));
    assert_true(cancel_work_sync(&b.work));
    assert_false(cancel_work_sync(&b.work));
    complete(&a.go);
    assert_false(cancel_work_sync(&a.work)); /* waits for it */
    assert_int_equal(a.runs, 1);
    assert_int_equal(b.runs, 0);
    destroy_workqueue(wq);
}

struct restless {
    struct work_struct work;
    struct workqueue_struct *wq;
    int runs;
};

/* Queues itself until it is told that it is being cancelled, or has got away with it. */
static void do_restless(struct work_struct *w)
{
    struct restless *r = container_of(w, struct restless, work);
    int queued = 0;
    WRITE_ONCE(r->runs, r->runs + 1);
    while (queued < 2) {
        if (queue_work(r->wq, w))
            queued++;
        else if (!READ_ONCE(w->pending))
            break;
        cond_resched();
    }
}

static void work_that_queues_itself_is_cancelled(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct restless r = {.wq = create_singlethread_workqueue("restless")};
        INIT_WORK(&r.work, do_restless);
        queue_work(r.wq, &r.work);
        while (!READ_ONCE(r.runs))
            cond_resched();
        cancel_work_sync(&r.work);
        assert_false(r.work.pending);
        flush_workqueue(r.wq);
        assert_int_equal(r.runs, 1);
        destroy_workqueue(r.wq);
        assert_false(cancel_work_sync(&r.work)); /* where it ran is gone */
        assert_false(flush_work(&r.work));
    }
}

struct traveller {
    struct work_struct work;
    struct workqueue_struct *next;
    bool arrived;
};

/* Is in the next queue while it runs in the first. */
static void do_travel(struct work_struct *w)
{
    struct traveller *t = container_of(w, struct traveller, work);
    queue_work(t->next, w);
    while (READ_ONCE(w->pending))
        cond_resched();
    for (int i = 0; i < 100; i++)
        cond_resched();
    WRITE_ONCE(t->arrived, true);
}

static void work_is_cancelled_wherever_it_is(void **state)
{
    (void)state;
    struct workqueue_struct *first = create_singlethread_workqueue("first");
    struct traveller t = {.next = create_singlethread_workqueue("next")};
    struct job j;
    job_init(&j);
    j.blocks = true;
    queue_work(t.next, &j.work);
    wait_for_completion(&j.began);
    INIT_WORK(&t.work, do_travel);
    queue_work(first, &t.work);
    while (READ_ONCE(t.work.wq) != t.next)
        cond_resched();
    assert_true(cancel_work_sync(&t.work));
    assert_true(t.arrived);
    complete(&j.go);
    destroy_workqueue(first);
    destroy_workqueue(t.next);
}

static void do_again(struct work_struct *w)
{
    queue_delayed_work(w->wq, to_delayed_work(w), 100 * HZ);
}

/* What a queue's last work has queued for later is not in it when it is gone. */
static void a_queue_leaves_nothing(void **state)
{
    (void)state;
    struct workqueue_struct *wq = create_singlethread_workqueue("last");
    struct delayed_work again;
    struct job j;
    job_init(&j);
    j.blocks = true;
    INIT_DELAYED_WORK(&again, do_again);
    queue_work(wq, &j.work);
    wait_for_completion(&j.began);
    queue_delayed_work(wq, &again, 0);
    complete(&j.go);
    destroy_workqueue(wq);
    assert_false(cancel_delayed_work_sync(&again));
}

static void work_for_later(void **state)
{
    (void)state;
    struct workqueue_struct *wq = alloc_workqueue("later", WQ_UNBOUND, 0);
    struct job soon, late, never;
    job_init(&soon);
    job_init(&late);
    job_init(&never);
    unsigned long start = jiffies;
    assert_true(queue_delayed_work(wq, &late.later, 30));
    assert_true(queue_delayed_work(wq, &never.later, 100 * HZ));
    assert_true(queue_delayed_work(wq, &soon.later, 10));
    assert_false(queue_delayed_work(wq, &soon.later, 10));
    wait_for_completion(&soon.began);
    assert_true(time_after_eq(jiffies, start + 10));
    wait_for_completion(&late.began);
    assert_true(time_after_eq(jiffies, start + 30));
    assert_true(cancel_delayed_work(&never.later));
    assert_false(cancel_delayed_work_sync(&never.later));
    assert_true(queue_delayed_work(wq, &never.later, 100 * HZ));
    assert_true(queue_delayed_work(wq, &soon.later, 0));
    wait_for_completion(&soon.began);
    destroy_workqueue(wq); /* what is for later is forgotten */
    assert_int_equal(never.runs, 0);
    assert_true(schedule_work(&soon.work));
    wait_for_completion(&soon.began);
    flush_scheduled_work();
    assert_true(schedule_delayed_work(&late.later, 1));
    wait_for_completion(&late.began);
}

static int shows_nothing(struct seq_file *m, void *v)
{
    (void)m, (void)v;
    return 0;
}

static int opens(struct inode *inode, struct file *f)
{
    return single_open(f, shows_nothing, PDE_DATA(inode));
}

static void remove_twice(void *name)
{
    remove_proc_entry(name, NULL);
}

static void files_in_proc(void **state)
{
    (void)state;
    static const struct file_operations ops = {
        .open = opens, .read = seq_read, .llseek = seq_lseek, .release = single_release};
    char said[512];
    struct proc_dir_entry *dir = proc_mkdir("a folder", NULL);
    assert_non_null(dir);
    assert_null(proc_mkdir("a folder", NULL));
    struct proc_dir_entry *e = proc_create_data("file", 0644, dir, &ops, said);
    assert_non_null(e);
    assert_null(proc_create("file", 0644, dir, &ops));
    struct proc_dir_entry *other = proc_create("file", 0644, NULL, &ops); /* in another folder */
    assert_non_null(other);
    proc_remove(other);
    proc_remove(e);
    proc_remove(NULL);
    remove_proc_entry("a folder", NULL);
    struct file f = {.f_pos = 7};
    assert_int_equal(seq_lseek(&f, -1, SEEK_SET), -EINVAL);
    assert_int_equal(seq_lseek(&f, 1, SEEK_END), -EINVAL);
    assert_int_equal(seq_lseek(&f, 3, SEEK_SET), 3);
    assert_int_equal(f.f_pos, 3);
    kit_stderr(said, sizeof said, remove_twice, "a folder");
    assert_non_null(strstr(said, "WARNING"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(counting),
        cmocka_unit_test(numbers_and_strings),
        cmocka_unit_test(addresses),
        cmocka_unit_test(memory),
        cmocka_unit_test(messages),
        cmocka_unit_test(time_passes),
        cmocka_unit_test(waiting),
        cmocka_unit_test(threads_are_stopped_where_they_sleep),
        cmocka_unit_test(a_thread_is_stopped_before_it_sleeps),
        cmocka_unit_test(locks_that_are_held),
        cmocka_unit_test(work_is_done_in_order),
        cmocka_unit_test(work_is_cancelled),
        cmocka_unit_test(work_that_queues_itself_is_cancelled),
        cmocka_unit_test(work_is_cancelled_wherever_it_is),
        cmocka_unit_test(a_queue_leaves_nothing),
        cmocka_unit_test(work_for_later),
        cmocka_unit_test(files_in_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
