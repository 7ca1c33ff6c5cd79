/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of /proc, for main() alone, and the text of seq_file. */
#include "kverbs/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs/census.h"

#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

struct proc_dir_entry {
    struct proc_dir_entry *next, *parent;
    const struct file_operations *ops; /* NULL: a folder */
    struct inode inode;
    char name[];
};

static DEFINE_MUTEX(lock);
static struct proc_dir_entry *entries;

static struct proc_dir_entry **find_locked(const char *name, size_t length,
                                           struct proc_dir_entry *parent)
{
    struct proc_dir_entry **at = &entries;
    while (*at && ((*at)->parent != parent || strlen((*at)->name) != length ||
                   memcmp((*at)->name, name, length) != 0))
        at = &(*at)->next;
    return at;
}

struct proc_dir_entry *proc_create_data(const char *name, umode_t mode,
                                        struct proc_dir_entry *parent,
                                        const struct file_operations *ops, void *data)
{
    (void)mode;
    struct proc_dir_entry *e = calloc(1, sizeof *e + strlen(name) + 1);
    if (!e)
        return NULL;
    strcpy(e->name, name);
    e->parent = parent;
    e->ops = ops;
    e->inode.i_private = data;
    mutex_lock(&lock);
    struct proc_dir_entry **at = find_locked(name, strlen(name), parent);
    if (*at) {
        free(e);
        e = NULL;
    } else {
        *at = e;
    }
    mutex_unlock(&lock);
    if (e)
        kv_count(KV_PROC, 1);
    return e;
}

struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
                                   const struct file_operations *ops)
{
    return proc_create_data(name, mode, parent, ops, NULL);
}

struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent)
{
    return proc_create_data(name, 0555, parent, NULL, NULL);
}

static void remove_locked(struct proc_dir_entry **at)
{
    struct proc_dir_entry *e = *at;
    *at = e->next;
    free(e);
    kv_count(KV_PROC, -1);
}

void remove_proc_entry(const char *name, struct proc_dir_entry *parent)
{
    mutex_lock(&lock);
    struct proc_dir_entry **at = find_locked(name, strlen(name), parent);
    if (!WARN_ON(!*at))
        remove_locked(at);
    mutex_unlock(&lock);
}

void proc_remove(struct proc_dir_entry *e)
{
    if (e)
        remove_proc_entry(e->name, e->parent);
}

void *PDE_DATA(const struct inode *inode)
{
    return inode->i_private;
}

/* @return a copy of what to open it with; the operations are the module's, and stay */
static int look_up(const char *path, const struct file_operations **ops, struct inode *inode)
{
    int ret = -ENOENT;
    struct proc_dir_entry *e = NULL;
    mutex_lock(&lock);
    for (const char *name = path + strlen("/proc/"); name;) {
        const char *slash = strchr(name, '/');
        e = *find_locked(name, slash ? (size_t)(slash - name) : strlen(name), e);
        name = e && slash ? slash + 1 : NULL;
    }
    if (e && e->ops) {
        *ops = e->ops;
        *inode = e->inode;
        ret = 0;
    }
    mutex_unlock(&lock);
    return ret;
}

static int open_file(const char *path, struct file *f, struct inode *inode)
{
    *f = (struct file){.f_pos = 0};
    int ret = look_up(path, &f->f_op, inode);
    if (ret == 0 && f->f_op->open)
        ret = f->f_op->open(inode, f);
    return ret;
}

static void close_file(struct file *f, struct inode *inode)
{
    if (f->f_op->release)
        f->f_op->release(inode, f);
}

int kv_proc_read(const char *path)
{
    struct file f;
    struct inode inode;
    int ret = open_file(path, &f, &inode);
    if (ret)
        return ret;
    char some[4096];
    ssize_t n = f.f_op->read ? 1 : -EINVAL;
    while (n > 0) {
        n = f.f_op->read(&f, some, sizeof some, &f.f_pos);
        if (n > 0)
            fwrite(some, 1, (size_t)n, stdout);
    }
    fflush(stdout);
    close_file(&f, &inode);
    return (int)n;
}

int kv_proc_write(const char *path, const char *text)
{
    struct file f;
    struct inode inode;
    int ret = open_file(path, &f, &inode);
    if (ret)
        return ret;
    char *line = NULL;
    ssize_t n = -EINVAL;
    if (f.f_op->write && asprintf(&line, "%s\n", text) >= 0)
        n = f.f_op->write(&f, line, strlen(line), &f.f_pos);
    free(line);
    close_file(&f, &inode);
    return n < 0 ? (int)n : 0;
}

int single_open(struct file *f, int (*show)(struct seq_file *m, void *v), void *data)
{
    struct seq_file *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->show = show;
    m->private = data;
    f->private_data = m;
    return 0;
}

int single_release(struct inode *inode, struct file *f)
{
    (void)inode;
    struct seq_file *m = f->private_data;
    free(m->text);
    free(m);
    return 0;
}

/* All is made at the first read, and given piece by piece. */
ssize_t seq_read(struct file *f, char *to, size_t n, loff_t *at)
{
    struct seq_file *m = f->private_data;
    if (*at == 0) {
        m->length = 0;
        int ret = m->show(m, NULL);
        if (ret < 0)
            return ret;
    }
    size_t from = min_t(size_t, (size_t)*at, m->length);
    size_t some = min(n, m->length - from);
    if (some > 0)
        memcpy(to, m->text + from, some);
    *at += (loff_t)some;
    return (ssize_t)some;
}

loff_t seq_lseek(struct file *f, loff_t offset, int whence)
{
    if (whence != SEEK_SET || offset < 0)
        return -EINVAL;
    return f->f_pos = offset;
}

static void append(struct seq_file *m, const char *s, size_t n)
{
    if (m->length + n > m->size) {
        size_t size = 2 * (m->length + n);
        char *text = realloc(m->text, size);
        if (!text)
            return;
        m->text = text;
        m->size = size;
    }
    memcpy(m->text + m->length, s, n);
    m->length += n;
}

void seq_printf(struct seq_file *m, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&s, format, ap);
    va_end(ap);
    if (n < 0)
        return;
    append(m, s, (size_t)n);
    free(s);
}

void seq_puts(struct seq_file *m, const char *s)
{
    append(m, s, strlen(s));
}

void seq_putc(struct seq_file *m, char c)
{
    append(m, &c, 1);
}
