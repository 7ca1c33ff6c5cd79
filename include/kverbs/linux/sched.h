/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SCHED_H
#define KVERBS_LINUX_SCHED_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/types.h>

struct task_struct {
    char comm[16];
    int pid;
};

/** A thread of the module, or the program that talks to it. */
struct task_struct *kverbs_current(void);
#define current kverbs_current()

/** SIGINT or SIGTERM came for the program; a kthread sees it only after allow_signal(). */
int signal_pending(struct task_struct *t);
void allow_signal(int sig);
void flush_signals(struct task_struct *t);

#define TASK_RUNNING         0
#define TASK_INTERRUPTIBLE   1
#define TASK_UNINTERRUPTIBLE 2

void set_current_state(int state);
#define __set_current_state(state) set_current_state(state)

/** Waits for wake_up_process() since set_current_state(); TASK_RUNNING: only gives way. */
void schedule(void);
void cond_resched(void);

/** As schedule(), but for so many jiffies at most; @return what is left of them */
long schedule_timeout(long timeout);
long schedule_timeout_interruptible(long timeout);
long schedule_timeout_uninterruptible(long timeout);

#endif
