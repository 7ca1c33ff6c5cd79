/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stats.h"

#include "tools/tool.h"
#include "wire/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOKS 8 /* at a row that changes */

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        tool_die(TOOL_FAILED, "no memory");
    return p;
}

/** @return whether all of it is in the file */
static bool read_at(int fd, void *buf, size_t len, size_t at)
{
    ssize_t n;
    do
        n = pread(fd, buf, len, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)len;
}

#define ROW_MAX sizeof(struct stats_qp)
_Static_assert(ROW_MAX >= sizeof(struct stats_error) && ROW_MAX >= sizeof(struct stats_cq),
               "the largest of them");

/**
 * Reads a row whose first field is its seq and whose first @p constant bytes change with it.
 * @return false if it is not in the file or does not come to rest
 */
static bool read_row(int fd, void *row, size_t size, size_t constant, size_t at)
{
    uint8_t again[ROW_MAX];
    uint32_t seq;
    for (int i = 0; i < LOOKS; i++) {
        if (!read_at(fd, row, size, at) || !read_at(fd, again, size, at))
            return false;
        memcpy(&seq, row, sizeof(seq));
        if (seq % 2 == 0 && !memcmp(row, again, constant))
            return true;
    }
    return false;
}

static uint32_t at_most(uint32_t n, uint32_t max)
{
    return n < max ? n : max;
}

static void read_cqs(struct stats *s, int fd)
{
    uint32_t rows = at_most(s->head.cq_rows, STATS_CQS);
    s->cqs = allocate(rows, sizeof(*s->cqs));
    for (uint32_t i = 0; i < rows; i++) {
        struct stats_cq *c = &s->cqs[s->ncqs];
        size_t at = offsetof(struct stats_page, cqs) + i * sizeof(*c);
        if (read_row(fd, c, sizeof(*c), offsetof(struct stats_cq, cqe), at) && c->id)
            s->ncqs++;
    }
}

static void read_listeners(struct stats *s, int fd)
{
    uint32_t rows = at_most(s->head.listener_rows, STATS_LISTENERS);
    s->listeners = allocate(rows, sizeof(*s->listeners));
    for (uint32_t i = 0; i < rows; i++) {
        struct stats_listener *l = &s->listeners[s->nlisteners];
        size_t at = offsetof(struct stats_page, listeners) + i * sizeof(*l);
        if (read_row(fd, l, sizeof(*l), offsetof(struct stats_listener, waiting), at) && l->id)
            s->nlisteners++;
    }
}

static void add_traffic(struct stats *s, const struct stats_qp *q)
{
    iwc_flow_add(&s->out, &q->out);
    iwc_flow_add(&s->in, &q->in);
    s->binds += q->binds;
}

static void read_qps(struct stats *s, int fd)
{
    uint32_t rows = at_most(s->head.qp_rows, STATS_QPS);
    s->qps = allocate(rows, sizeof(*s->qps));
    s->out = s->head.out;
    s->in = s->head.in;
    s->binds = (uint64_t)s->head.gauge[STATS_binds];
    for (uint32_t i = 0; i < rows; i++) {
        struct stats_qp *q = &s->qps[s->nqps];
        size_t at = offsetof(struct stats_page, qps) + i * sizeof(*q);
        if (!read_row(fd, q, sizeof(*q), offsetof(struct stats_qp, state), at) || !q->qp_num)
            continue;
        if (q->state > IBV_QPS_ERR)
            q->state = IBV_QPS_ERR + 1; /* unknown */
        if (q->error >= IW_ERR_COUNT)
            q->error = IW_OK;
        q->tls.cipher[sizeof(q->tls.cipher) - 1] = 0;
        q->tls.identity[sizeof(q->tls.identity) - 1] = 0;
        add_traffic(s, q);
        s->nqps++;
    }
}

static void read_errors(struct stats *s, int fd)
{
    uint32_t n = at_most(s->head.error_next, STATS_ERRORS);
    s->errors = allocate(n, sizeof(*s->errors));
    for (uint32_t i = s->head.error_next - n; i != s->head.error_next; i++) {
        struct stats_error *e = &s->errors[s->nerrors];
        size_t at = offsetof(struct stats_page, errors) + i % STATS_ERRORS * sizeof(*e);
        if (!read_row(fd, e, sizeof(*e), sizeof(*e), at))
            continue;
        e->text[sizeof(e->text) - 1] = 0;
        s->nerrors++;
    }
}

static bool read_head(struct stats *s, int fd)
{
    struct stats_head *h = &s->head;
    if (!read_at(fd, h, sizeof(*h), 0) || memcmp(h->magic, STATS_MAGIC, sizeof(h->magic)) != 0 ||
        h->version != STATS_VERSION)
        return false;
    h->release[sizeof(h->release) - 1] = 0;
    h->command[sizeof(h->command) - 1] = 0;
    h->devices[sizeof(h->devices) - 1] = 0;
    return true;
}

static void drop(struct stats *s)
{
    free(s->cqs);
    free(s->listeners);
    free(s->qps);
    free(s->errors);
}

bool stats_read(struct stats *s, int dir, const char *name, const struct stats_owner *owner)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO of that name must not hang us */
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    *s = (struct stats){.owner = *owner};
    if (fd < 0)
        return false;
    bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && read_head(s, fd);
    if (ok) {
        read_cqs(s, fd);
        read_listeners(s, fd);
        read_qps(s, fd);
        read_errors(s, fd);
    }
    close(fd);
    s->life = stats_life(owner);
    s->exited = ok && s->head.exited && s->life == STATS_ENDED;
    return ok;
}

/* ---- all files ---- */

static bool wanted(const struct stats *s, const struct stats_choice *c)
{
    if (c->failed && !s->nerrors)
        return false;
    if (c->name)
        return !strcmp(s->head.command, c->name);
    return c->pid ? s->owner.pid == c->pid : c->all || s->life != STATS_ENDED;
}

static void add(struct stats_set *set, int dir, const char *name, const struct stats_choice *choice)
{
    struct stats_owner owner;
    struct stats s;
    if (!stats_name_parse(name, &owner) || !stats_read(&s, dir, name, &owner))
        return;
    if (!wanted(&s, choice)) {
        set->ended += s.life == STATS_ENDED;
        drop(&s);
        return;
    }
    struct stats *more = realloc(set->process, (set->n + 1) * sizeof(s));
    if (!more)
        tool_die(TOOL_FAILED, "no memory");
    set->process = more;
    set->process[set->n++] = s;
}

static int by_pid(const void *a, const void *b)
{
    const struct stats *x = a, *y = b;
    if (x->owner.pid != y->owner.pid)
        return x->owner.pid < y->owner.pid ? -1 : 1;
    return x->owner.start < y->owner.start ? -1 : x->owner.start > y->owner.start;
}

void stats_read_all(struct stats_set *set, const struct stats_choice *choice)
{
    char dir[STATS_PATH_MAX];
    *set = (struct stats_set){0};
    for (unsigned i = 0; stats_dir(getenv("ANYWARP_STATS"), i, dir); i++) {
        int fd = stats_dir_open(dir);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        for (struct dirent *f; d && (f = readdir(d));)
            add(set, fd, f->d_name, choice);
        if (d)
            closedir(d);
    }
    if (set->n)
        qsort(set->process, set->n, sizeof(*set->process), by_pid);
}

void stats_free(struct stats_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        drop(&set->process[i]);
    free(set->process);
    *set = (struct stats_set){0};
}

unsigned stats_remove_ended(void)
{
    char dir[STATS_PATH_MAX];
    unsigned n = 0;
    for (unsigned i = 0; stats_dir(getenv("ANYWARP_STATS"), i, dir); i++) {
        int fd = stats_dir_open(dir);
        if (fd < 0)
            continue;
        n += stats_evict(fd, 0);
        close(fd);
    }
    return n;
}
