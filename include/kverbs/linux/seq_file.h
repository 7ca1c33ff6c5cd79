/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SEQ_FILE_H
#define KVERBS_LINUX_SEQ_FILE_H

#include <linux/fs.h>

struct seq_file {
    char *text;
    size_t length, size;
    int (*show)(struct seq_file *m, void *v);
    void *private;
};

int single_open(struct file *f, int (*show)(struct seq_file *m, void *v), void *data);
int single_release(struct inode *inode, struct file *f);
ssize_t seq_read(struct file *f, char __user *to, size_t n, loff_t *at);
loff_t seq_lseek(struct file *f, loff_t offset, int whence);
void seq_printf(struct seq_file *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void seq_puts(struct seq_file *m, const char *s);
void seq_putc(struct seq_file *m, char c);

#endif
