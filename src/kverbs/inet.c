/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text: <linux/inet.h>. */
#include <arpa/inet.h>
#include <string.h>

#include <linux/inet.h>
#include <linux/kernel.h>
#include <net/net_namespace.h>

struct net init_net;

static int pton(int family, const char *s, int len, u8 *to, int delim, const char **end)
{
    char text[INET6_ADDRSTRLEN];
    size_t n = len < 0 ? strlen(s) : strnlen(s, (size_t)len);
    const char *stop = delim > 0 ? memchr(s, delim, n) : NULL;
    if (stop)
        n = (size_t)(stop - s);
    if (end)
        *end = s + n;
    if (n >= sizeof text)
        return 0;
    memcpy(text, s, n);
    text[n] = 0;
    return inet_pton(family, text, to) == 1;
}

int in4_pton(const char *s, int len, u8 *to, int delim, const char **end)
{
    return pton(AF_INET, s, len, to, delim, end);
}

int in6_pton(const char *s, int len, u8 *to, int delim, const char **end)
{
    return pton(AF_INET6, s, len, to, delim, end);
}

__be32 in_aton(const char *s)
{
    return inet_addr(s);
}
