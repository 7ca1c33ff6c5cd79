/* SPDX-License-Identifier: BSD-2-Clause */
/* A module of the kernel for kverbs.sh: its parameters, a file in /proc, and ends of several kinds.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

MODULE_LICENSE("Dual BSD/GPL");
MODULE_AUTHOR("nobody");
MODULE_VERSION("1");

static int an_int = -1;
module_param(an_int, int, 0444);
static uint a_uint = 1;
module_param(a_uint, uint, 0444);
static short a_short = -2;
module_param(a_short, short, 0444);
static ushort a_ushort = 2;
module_param(a_ushort, ushort, 0444);
static unsigned char a_byte = 3;
module_param(a_byte, byte, 0444);
static long a_long = -4;
module_param(a_long, long, 0444);
static ulong a_ulong = 4;
module_param(a_ulong, ulong, 0444);
static char *a_charp = "five";
module_param(a_charp, charp, 0444);
static bool a_bool;
module_param(a_bool, bool, 0444);
static int inside = 6;
module_param_named(outside, inside, int, 0444);
MODULE_PARM_DESC(outside, "known by another name");
static char *mode = "";
module_param(mode, charp, 0444);

static char text[64] = "nothing yet\n";
static DECLARE_WAIT_QUEUE_HEAD(nobody_wakes);
static struct task_struct *thread;
static struct ib_client client;
static struct ib_device *device;

static int show(struct seq_file *m, void *v)
{
    int i;

    for (i = 0; i < 1000; i++) /* more than one read takes */
        seq_puts(m, "line\n");
    seq_printf(m, "%s", text);
    seq_putc(m, '\n');
    return 0;
}

static int open_file(struct inode *inode, struct file *f)
{
    return single_open(f, show, PDE_DATA(inode));
}

static ssize_t write_file(struct file *f, const char __user *from, size_t n, loff_t *at)
{
    if (n >= sizeof(text))
        return -EINVAL;
    if (!strncmp(from, "wait",
                 4)) /* as a user's program does that writes, until it is interrupted */
        return wait_event_interruptible(nobody_wakes, false);
    if (copy_from_user(text, from, n))
        return -EFAULT;
    text[n] = 0;
    return n;
}

static const struct file_operations ops = {
    .owner = THIS_MODULE,
    .open = open_file,
    .read = seq_read,
    .write = write_file,
    .llseek = seq_lseek,
    .release = single_release,
};

static const struct file_operations no_ops;

static int sleeps(void *data)
{
    allow_signal(SIGTERM);
    pr_info("sleeps\n");
    wait_event_interruptible(nobody_wakes, kthread_should_stop());
    pr_info("signal: %d\n", signal_pending(current));
    return 0;
}

static int fails(void *data)
{
    return -EIO;
}

static void add(struct ib_device *d)
{
    device = d;
}

static int __init start(void)
{
    if (!strcmp(mode, "values"))
        pr_info("%d %u %d %u %u %ld %lu %s %d %d\n", an_int, a_uint, a_short, a_ushort, a_byte,
                a_long, a_ulong, a_charp, a_bool, inside);
    if (!strcmp(mode, "init fails"))
        return -ENODEV;
    if (!strcmp(mode, "leaves")) {
        client.add = add;
        ib_register_client(&client);
        ib_unregister_client(&client);
        return PTR_ERR_OR_ZERO(ib_alloc_pd(device, 0));
    }
    if (!strcmp(mode, "fails"))
        kthread_run(fails, NULL, "module");
    if (!strcmp(mode, "sleeps"))
        thread = kthread_run(sleeps, NULL, "module");
    if (!strcmp(mode, "bug"))
        BUG_ON(1);
    proc_mkdir("folder", NULL);
    proc_create("no_ops", 0444, NULL, &no_ops);
    return proc_create("file", 0644, NULL, &ops) ? 0 : -ENOMEM;
}

static void __exit end(void)
{
    if (thread)
        kthread_stop(thread);
    remove_proc_entry("file", NULL);
    remove_proc_entry("no_ops", NULL);
    remove_proc_entry("folder", NULL);
    pr_info("end\n");
}

module_init(start);
module_exit(end);
