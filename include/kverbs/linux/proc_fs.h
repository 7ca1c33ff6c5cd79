/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_PROC_FS_H
#define KVERBS_LINUX_PROC_FS_H

#include <linux/fs.h>
#include <linux/seq_file.h>

struct proc_dir_entry;

/**
 * A file that main() reads for an argument /proc/NAME, and writes for /proc/NAME=TEXT.
 * @param parent NULL: /proc itself
 */
struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
                                   const struct file_operations *ops);
struct proc_dir_entry *proc_create_data(const char *name, umode_t mode,
                                        struct proc_dir_entry *parent,
                                        const struct file_operations *ops, void *data);
struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent);
void proc_remove(struct proc_dir_entry *e);
void remove_proc_entry(const char *name, struct proc_dir_entry *parent);
void *PDE_DATA(const struct inode *inode);

#endif
