/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/mention.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK   65536
#define OVERLAP 32 /* more than a name and the byte before it */

static enum mention look(const char *buf, size_t len)
{
    static const char *const names[] = {"libibverbs.so", "librdmacm.so"};
    enum mention worst = MENTION_NONE;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *end = buf + len, *p = buf;
        while ((p = memmem(p, (size_t)(end - p), names[i], strlen(names[i])))) {
            enum mention m = p > buf && p[-1] == '/' ? MENTION_PATH : MENTION_NAME;
            worst = m > worst ? m : worst;
            p++;
        }
    }
    return worst;
}

enum mention mention_in(const char *path)
{
    static char buf[OVERLAP + CHUNK];
    enum mention worst = MENTION_NONE;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t kept = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, buf + kept, CHUNK)) > 0;) {
        size_t len = kept + (size_t)n;
        enum mention m = look(buf, len);
        worst = m > worst ? m : worst;
        kept = len < OVERLAP ? len : OVERLAP;
        memmove(buf, buf + len - kept, kept);
    }
    if (fd >= 0)
        close(fd);
    return worst;
}
