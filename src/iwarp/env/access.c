/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/access.h"

#include "env/conf.h"
#include "env/log.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_MAX_BYTES 512
#define BLANKS         " \t\r\n"

struct rule {
    bool allow, to;
    bool any; /* network */
    struct in6_addr network;
    unsigned bits;
    uint16_t low, high;   /* ports */
    const char *identity; /* NULL: whoever */
};

/* ---- a line ---- */

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

/** IPv4 addresses are as they are in IPv6. */
static void map(struct in6_addr *to, const void *four)
{
    memcpy(to->s6_addr, mapped, sizeof(mapped));
    memcpy(to->s6_addr + sizeof(mapped), four, 4);
}

static bool parse_number(const char *s, unsigned long max, unsigned long *n)
{
    char *end;
    errno = 0;
    *n = strtoul(s, &end, 10);
    return isdigit((unsigned char)*s) && !*end && !errno && *n <= max;
}

static bool parse_network(char *s, struct rule *r)
{
    struct in_addr four;
    unsigned long bits;
    char *slash = strchr(s, '/');
    if (!strcmp(s, "any"))
        return r->any = true;
    if (slash)
        *slash++ = 0;
    bool is_four = inet_pton(AF_INET, s, &four) == 1;
    if (is_four)
        map(&r->network, &four);
    else if (inet_pton(AF_INET6, s, &r->network) != 1)
        return false;
    unsigned most = is_four ? 32 : 128;
    if (slash && !parse_number(slash, most, &bits))
        return false;
    r->bits = 128 - most + (slash ? (unsigned)bits : most);
    return true;
}

static bool parse_ports(char *s, struct rule *r)
{
    unsigned long low, high;
    char *hyphen = strchr(s, '-');
    if (hyphen)
        *hyphen++ = 0;
    if (!parse_number(s, UINT16_MAX, &low) ||
        !parse_number(hyphen ? hyphen : s, UINT16_MAX, &high) || high < low)
        return false;
    r->low = (uint16_t)low;
    r->high = (uint16_t)high;
    return true;
}

/** The rest of the line, without the blanks around it. */
static bool parse_identity(char *s, struct rule *r)
{
    s += strspn(s, BLANKS);
    size_t len = strlen(s);
    while (len && strchr(BLANKS, s[len - 1]))
        s[--len] = 0;
    r->identity = s;
    return len != 0;
}

static bool parse_choice(const char *word, const char *yes, const char *no, bool *out)
{
    *out = word && !strcmp(word, yes);
    return word && (*out || !strcmp(word, no));
}

static bool parse(char *line, struct rule *r)
{
    char *rest = line, *word;
    *r = (struct rule){.high = UINT16_MAX};
    if (!parse_choice(strtok_r(rest, BLANKS, &rest), "allow", "deny", &r->allow) ||
        !parse_choice(strtok_r(NULL, BLANKS, &rest), "to", "from", &r->to))
        return false;
    word = strtok_r(NULL, BLANKS, &rest);
    if (!word || !parse_network(word, r))
        return false;
    while ((word = strtok_r(NULL, BLANKS, &rest))) {
        if (!strcmp(word, "identity"))
            return parse_identity(rest, r);
        if (strcmp(word, "port") != 0 || !(word = strtok_r(NULL, BLANKS, &rest)) ||
            !parse_ports(word, r))
            return false;
    }
    return true;
}

/* ---- whether it fits ---- */

static bool in_network(const struct rule *r, const struct sockaddr_storage *peer)
{
    struct in6_addr a = ((const struct sockaddr_in6 *)peer)->sin6_addr;
    if (r->any)
        return true;
    if (peer->ss_family == AF_INET)
        map(&a, &((const struct sockaddr_in *)peer)->sin_addr);
    for (unsigned bit = 0; bit < r->bits; bit += 8) {
        unsigned left = r->bits - bit;
        uint8_t mask = left >= 8 ? 0xff : (uint8_t)(0xff00 >> left);
        if ((a.s6_addr[bit / 8] ^ r->network.s6_addr[bit / 8]) & mask)
            return false;
    }
    return true;
}

/** A star stands for anything. */
static bool is_like(const char *pattern, const char *text)
{
    const char *star = NULL, *again = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            again = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++again;
        } else {
            return false;
        }
    }
    return !pattern[strspn(pattern, "*")];
}

/** @return whether the rule decides, and what */
static bool judge(const struct rule *r, const struct iw_access_ask *ask, enum iw_access *verdict)
{
    if (r->to != ask->to || ask->port < r->low || ask->port > r->high || !in_network(r, ask->peer))
        return false;
    if (r->identity && !ask->identity) {
        *verdict = IW_ACCESS_DEPENDS;
        return true;
    }
    *verdict = r->allow ? IW_ACCESS_YES : IW_ACCESS_NO;
    return !r->identity || (*ask->identity && is_like(r->identity, ask->identity));
}

/* ---- the file ---- */

static FILE *open_rules(const char *path, char why[IW_ACCESS_WHY_MAX])
{
    struct stat st;
    FILE *f = fopen(path, "re");
    if (f && !fstat(fileno(f), &st) && !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return f;
    snprintf(why, IW_ACCESS_WHY_MAX, "%s: %s", path,
             f ? "others may write it (chmod go-w)" : "cannot be opened");
    if (f)
        fclose(f);
    return NULL;
}

/** The file cannot be used, which who asked for it hears once; @p ask NULL: it is only tried. */
static enum iw_access unusable(const struct iw_access_ask *ask, const char *why)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (ask && !atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_ASKED, "ANYWARP_ACCESS: %s: nobody may connect", why);
    return IW_ACCESS_NO;
}

/** @param ask  NULL: every line is read, and none decides */
static enum iw_access read_rules(FILE *f, const char *path, const struct iw_access_ask *ask,
                                 char why[IW_ACCESS_WHY_MAX])
{
    char line[LINE_MAX_BYTES];
    struct rule r;
    bool decided = !ask;
    enum iw_access verdict = ask ? IW_ACCESS_NO : IW_ACCESS_YES, found;
    snprintf(why, IW_ACCESS_WHY_MAX, "no line of %s fits", path);
    for (unsigned n = 1; fgets(line, sizeof(line), f); n++) {
        bool whole = strchr(line, '\n') || feof(f);
        if (whole && strchr("#", line[strspn(line, BLANKS)])) /* or nothing */
            continue;
        if (!whole || !parse(line, &r)) {
            snprintf(why, IW_ACCESS_WHY_MAX, "%s: line %u is not understood", path, n);
            return unusable(ask, why);
        }
        if (decided || !judge(&r, ask, &found))
            continue;
        decided = true;
        verdict = found;
        snprintf(why, IW_ACCESS_WHY_MAX, "line %u of %s", n, path);
    }
    if (ferror(f)) {
        snprintf(why, IW_ACCESS_WHY_MAX, "%s: cannot be read", path);
        return unusable(ask, why);
    }
    return verdict;
}

static enum iw_access consult(const char *path, const struct iw_access_ask *ask,
                              char why[IW_ACCESS_WHY_MAX])
{
    FILE *f = open_rules(path, why);
    if (!f)
        return unusable(ask, why);
    enum iw_access verdict = read_rules(f, path, ask, why);
    fclose(f);
    return verdict;
}

enum iw_access iw_access(const struct iw_access_ask *ask, char why[IW_ACCESS_WHY_MAX])
{
    const char *path = iw_conf()->access;
    return path[0] ? consult(path, ask, why) : IW_ACCESS_YES;
}

bool iw_access_usable(const char *path, char why[IW_ACCESS_WHY_MAX])
{
    return consult(path, NULL, why) == IW_ACCESS_YES;
}
