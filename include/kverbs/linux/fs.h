/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_FS_H
#define KVERBS_LINUX_FS_H

#include <linux/kernel.h>

struct module;
struct file;

struct inode {
    void *i_private;
};

/* As far as files of /proc need it. */
struct file_operations {
    struct module *owner;
    loff_t (*llseek)(struct file *f, loff_t offset, int whence);
    ssize_t (*read)(struct file *f, char __user *to, size_t n, loff_t *at);
    ssize_t (*write)(struct file *f, const char __user *from, size_t n, loff_t *at);
    int (*open)(struct inode *inode, struct file *f);
    int (*release)(struct inode *inode, struct file *f);
};

struct file {
    const struct file_operations *f_op;
    void *private_data;
    loff_t f_pos;
};

#endif
