/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/probe.h"

#include "common/sys.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define POPULATE_MAX 65536

static bool populate(uintptr_t page, size_t len, bool write)
{
    int saved = errno;
    int r = madvise((void *)page, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    errno = saved;
    return r == 0;
}

static bool has_no_hole(uintptr_t page, size_t len)
{
    int saved = errno;
    /* MS_ASYNC writes nothing: it only walks the mappings. Not msync(), a cancellation point. */
    long r = syscall(SYS_msync, page, len, MS_ASYNC);
    errno = saved;
    return r == 0;
}

/** One walk over the text of /proc/self/maps: "start-end rw..." and more, line by line. */
struct walk {
    enum { START, END, READ, WRITE, REST } at;
    uintptr_t start, end;
    bool readable;
    uintptr_t covered, last; /* the range is good up to here; its last byte */
    bool write;
    enum { GOING, GOOD, BAD } verdict;
};

static void on_mapping(struct walk *w, bool writable)
{
    if (w->end <= w->covered)
        return;
    if (w->start > w->covered || !w->readable || (w->write && !writable))
        w->verdict = BAD;
    else if (w->end > w->last)
        w->verdict = GOOD;
    else
        w->covered = w->end;
}

static uintptr_t add_digit(uintptr_t n, char c)
{
    return n << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void on_char(struct walk *w, char c)
{
    switch (w->at) {
    case START:
        if (c == '-')
            w->at = END;
        else
            w->start = add_digit(w->start, c);
        break;
    case END:
        if (c == ' ')
            w->at = READ;
        else
            w->end = add_digit(w->end, c);
        break;
    case READ:
        w->readable = c == 'r';
        w->at = WRITE;
        break;
    case WRITE:
        on_mapping(w, c == 'w');
        w->at = REST;
        break;
    case REST:
        if (c == '\n') {
            w->at = START;
            w->start = w->end = 0;
        }
        break;
    }
}

static bool walk_maps(int fd, struct walk *w)
{
    char buf[4096];
    long n;
    while (w->verdict == GOING && (n = sys_read(fd, buf, sizeof(buf))) > 0)
        for (long i = 0; i < n && w->verdict == GOING; i++)
            on_char(w, buf[i]);
    return w->verdict == GOOD;
}

int iw_prefetch(const void *addr, size_t len, bool write)
{
    uintptr_t first = (uintptr_t)addr, page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    return populate(page, len + (first - page), write) ? 0 : iw_probe(addr, len, write);
}

int iw_probe(const void *addr, size_t len, bool write)
{
    uintptr_t first = (uintptr_t)addr, last = first + (len - 1);
    uintptr_t page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    size_t span = last - page + 1;

    if (span <= POPULATE_MAX && populate(page, span, write))
        return 0;
    int fd = (int)sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return has_no_hole(page, span) ? 0 : EFAULT;
    bool good = walk_maps(fd, &(struct walk){.covered = first, .last = last, .write = write});
    sys_close(fd);
    return good ? 0 : EFAULT;
}
