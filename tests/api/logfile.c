/* SPDX-License-Identifier: BSD-2-Clause */
#include "logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_BYTES 1200
#define KEPT_MAX   16
#define TRIES      100
#define TRY_MS     20

static struct {
    struct ibv_qp *qp;
    unsigned events;
} kept[KEPT_MAX]; /* read, and of another QP than was asked for */
static unsigned nkept;

static char name[] = "/tmp/anywarp-log-XXXXXX";

int log_setup(void **state)
{
    (void)state;
    int fd = mkstemp(name);
    if (fd < 0)
        return -1;
    close(fd);
    return setenv("VERBS_LOG_LEVEL", "2", 1) || setenv("VERBS_LOG_FILE", name, 1);
}

int log_teardown(void **state)
{
    (void)state;
    return unlink(name);
}

/** Leaves the last line of that QP, or nothing, in @p found. @return how many there are */
static unsigned lines_of(uint32_t qp_num, char found[LINE_BYTES])
{
    char line[LINE_BYTES], start[64];
    unsigned n = 0;
    found[0] = 0;
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    snprintf(start, sizeof(start), "anywarp: QP 0x%06x: ", qp_num);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, start, strlen(start)) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        memcpy(found, line + strlen(start), strlen(line + strlen(start)) + 1);
        n++;
    }
    fclose(f);
    return n;
}

void log_expect(uint32_t qp_num, const char *pattern)
{
    char found[LINE_BYTES];
    unsigned n;
    /* The end of a connection is told first, and logged when its work is flushed. */
    for (int tries = 0; (n = lines_of(qp_num, found)) == 0 && pattern && tries < TRIES; tries++)
        poll(NULL, 0, TRY_MS);
    if (n != (pattern != NULL) || (pattern && fnmatch(pattern, found, 0)))
        fail_msg("wanted one line \"%s\", got %u: \"%s\"", pattern ? pattern : "(none)", n, found);
}

bool log_has(const char *pattern)
{
    char line[LINE_BYTES];
    bool has = false;
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    while (!has && fgets(line, sizeof(line), f))
        has = fnmatch(pattern, line, 0) == 0;
    fclose(f);
    return has;
}

bool stat_has(const char *pattern)
{
    char line[LINE_BYTES];
    bool has = false;
    snprintf(line, sizeof(line), "%s stat %d 2>/dev/null", getenv("ANYWARP"), (int)getpid());
    FILE *f = popen(line, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        has |= fnmatch(pattern, line, 0) == 0;
    pclose(f);
    return has;
}

void log_clear(void)
{
    assert_int_equal(truncate(name, 0), 0);
    nkept = 0;
}

unsigned async_events(struct ibv_qp *qp)
{
    struct ibv_async_event ev;
    unsigned events = 0;
    int flags = fcntl(qp->context->async_fd, F_GETFL);
    assert_return_code(fcntl(qp->context->async_fd, F_SETFL, flags | O_NONBLOCK), errno);
    while (ibv_get_async_event(qp->context, &ev) == 0) {
        assert_true(nkept < KEPT_MAX);
        kept[nkept].qp = ev.element.qp;
        kept[nkept++].events = 1u << ev.event_type;
        ibv_ack_async_event(&ev);
    }
    assert_int_equal(errno, EAGAIN);
    for (unsigned i = 0; i < nkept;) {
        if (kept[i].qp == qp) {
            events |= kept[i].events;
            kept[i] = kept[--nkept];
        } else {
            i++;
        }
    }
    return events;
}
