/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/recording.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS     (RECORD_OPEN | RECORD_OUT | RECORD_START | RECORD_FIN | RECORD_RESET | RECORD_OTHER)
#define FRAME_MAX 65536 /* a few bytes more than any has */

static const uint8_t rings[RECORD_WHATS] = {
#define X(name, ring, call, arguments) [RECORD_##name] = RECORD_##ring,
    RECORD_LIST(X)
#undef X
};

static bool read_all(int fd, void *buf, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* ---- is it one, and whole? ---- */

static bool judge_head(struct record_head *h, char *wrong, size_t size)
{
    h->release[sizeof(h->release) - 1] = 0;
    h->command[sizeof(h->command) - 1] = 0;
    if (memcmp(h->magic, RECORD_MAGIC, sizeof(h->magic)) != 0)
        snprintf(wrong, size, "is no record of the flight recorder");
    else if (h->version != RECORD_VERSION)
        snprintf(wrong, size, "is a record of version %u, and this anywarp reads version %u",
                 h->version, RECORD_VERSION);
    else
        return true;
    return false;
}

static bool is_sound(const struct record_event *e, unsigned ring)
{
    if (e->what >= RECORD_WHATS || rings[e->what] != ring || (e->flags & ~FLAGS))
        return false;
    return e->what != RECORD_FRAME || e->frame.len <= FRAME_MAX;
}

/** Whether the event @p e, which is in this place of a ring, can be one. */
static bool belongs(const struct recording *r, const struct record_event *e, unsigned ring,
                    uint64_t place)
{
    uint64_t n = e->seq / 2 - 1;
    return e->seq >= 2 && n % RECORD_EVENTS == place &&
           (r->running || n < r->page->ring[ring].next) && is_sound(e, ring);
}

static bool judge_conns(const struct record_page *p)
{
    for (const struct record_conn *c = p->conn; c < p->conn + RECORD_CONNS; c++)
        if (c->start[0].len > MPA_START_MAX || c->start[1].len > MPA_START_MAX || c->ipv6 > 1)
            return false;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct record_event *x = *(const struct record_event *const *)a;
    const struct record_event *y = *(const struct record_event *const *)b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (rings[x->what] != rings[y->what])
        return rings[x->what] < rings[y->what] ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/** @param again  the same file, read later */
static bool take_events(struct recording *r, const struct record_page *again, char *wrong,
                        size_t size)
{
    for (unsigned ring = 0; ring < RECORD_RINGS; ring++)
        for (size_t i = 0; i < RECORD_EVENTS; i++) {
            const struct record_event *e = &r->page->events[ring][i];
            if (!e->seq)
                continue;
            if (e->seq % 2 || memcmp(e, &again->events[ring][i], sizeof(*e)) != 0) {
                r->unfinished++;
            } else if (belongs(r, e, ring, i)) {
                r->events[r->n++] = e;
            } else {
                snprintf(wrong, size, "is damaged: event %zu of ring %u", i, ring);
                return false;
            }
        }
    qsort(r->events, r->n, sizeof(*r->events), by_time);
    return true;
}

static bool read_open(struct recording *r, int fd, char *wrong, size_t size)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        snprintf(wrong, size, "is no regular file");
        return false;
    }
    r->page = calloc(1, sizeof(*r->page));
    r->events = calloc((size_t)RECORD_RINGS * RECORD_EVENTS, sizeof(*r->events));
    if (!r->page || !r->events) {
        snprintf(wrong, size, "no memory");
        return false;
    }
    if (!read_all(fd, r->page, sizeof(r->page->head))) {
        snprintf(wrong, size, "is no record of the flight recorder");
        return false;
    }
    if (!judge_head(&r->page->head, wrong, size))
        return false;
    if (st.st_size != (off_t)sizeof(*r->page)) {
        snprintf(wrong, size, "is damaged: it has %jd bytes instead of %zu", (intmax_t)st.st_size,
                 sizeof(*r->page));
        return false;
    }
    struct record_page *again = calloc(1, sizeof(*again));
    r->running = flock(fd, LOCK_SH | LOCK_NB) != 0;
    bool ok =
        again && read_all(fd, r->page, sizeof(*r->page)) && read_all(fd, again, sizeof(*again));
    if (!ok)
        snprintf(wrong, size, "cannot be read");
    else
        ok = judge_head(&r->page->head, wrong, size) && take_events(r, again, wrong, size);
    if (ok && !judge_conns(r->page)) {
        snprintf(wrong, size, "is damaged: a connection");
        ok = false;
    }
    free(again);
    return ok;
}

bool recording_read(struct recording *r, const char *path, char *wrong, size_t size)
{
    *r = (struct recording){0};
    /* O_NONBLOCK: a FIFO of that name must not hang us */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        snprintf(wrong, size, "%s", strerror(errno));
        return false;
    }
    bool ok = read_open(r, fd, wrong, size);
    close(fd);
    return ok;
}

void recording_free(struct recording *r)
{
    free(r->page);
    free(r->events);
    *r = (struct recording){0};
}

/* ---- of a process ---- */

static bool is_record(const char *path)
{
    char magic[sizeof(RECORD_MAGIC) - 1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
              read_all(fd, magic, sizeof(magic)) && !memcmp(magic, RECORD_MAGIC, sizeof(magic));
    if (fd >= 0)
        close(fd);
    return is;
}

bool recording_find(unsigned long pid, char *path, size_t size)
{
    char maps[64], line[PATH_MAX + 128], name[PATH_MAX];
    bool found = false;
    snprintf(maps, sizeof(maps), "/proc/%lu/maps", pid);
    FILE *f = fopen(maps, "re");
    while (!found && f && fgets(line, sizeof(line), f)) {
        char rights[5];
        if (sscanf(line, "%*s %4s %*s %*s %*s %4095[^\n]", rights, name) != 2 ||
            strcmp(rights, "rw-s") != 0 || *name != '/')
            continue;
        int n = snprintf(path, size, "/proc/%lu/root%s", pid, name);
        found = n > 0 && (size_t)n < size && is_record(path);
    }
    if (f)
        fclose(f);
    return found;
}

/* ---- what is in it ---- */

uint64_t recording_time(const struct recording *r, uint64_t ns)
{
    return r->page->head.realtime + (ns - r->page->head.monotonic);
}

const struct record_conn *recording_conn(const struct recording *r, uint32_t id)
{
    for (const struct record_conn *c = r->page->conn; id && c < r->page->conn + RECORD_CONNS; c++)
        if (c->id == id)
            return c;
    return NULL;
}

uint32_t recording_kept(const struct record_frame *f)
{
    return f->len < RECORD_BYTES ? f->len : RECORD_BYTES;
}

void recording_address(const struct record_conn *c, bool peer, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    inet_ntop(c->ipv6 ? AF_INET6 : AF_INET, peer ? c->peer : c->local, ip, sizeof(ip));
    snprintf(text, size, c->ipv6 ? "[%s]:%u" : "%s:%u", ip, peer ? c->peer_port : c->local_port);
}
