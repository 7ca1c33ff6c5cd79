/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/rs_rules.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FOLDER "/etc/rdma/rsocket"
#define RULES  64
#define ANY    (-1)

struct rule {
    int domain, type, protocol;
};

static struct rule rules[RULES]; /* those for this program */
static int count;
static bool some;  /* the file has rules, for whomever */
static bool never; /* RDMAV_FORK_SAFE */
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct word {
    const char *text;
    int value;
};

static const struct word domains[] = {{"INET", AF_INET}, {"INET6", AF_INET6}, {"IB", 27}, {0}};
static const struct word types[] = {{"STREAM", SOCK_STREAM}, {"DGRAM", SOCK_DGRAM}, {0}};
static const struct word protocols[] = {{"TCP", IPPROTO_TCP}, {"UDP", IPPROTO_UDP}, {0}};

/** @param prefixes  what may stand before a word, or does not have to */
static bool find(const char *text, const struct word *words, const char *const prefixes[2], int *to)
{
    if (!strcmp(text, "*")) {
        *to = ANY;
        return true;
    }
    for (int i = 0; i < 2 && prefixes[i]; i++)
        if (strncasecmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            text += strlen(prefixes[i]);
    for (; words->text; words++)
        if (strcasecmp(text, words->text) == 0) {
            *to = words->value;
            return true;
        }
    return false;
}

static bool is_prefix(const char *name)
{
    return !strcmp(name, "*") ||
           strncasecmp(name, program_invocation_short_name, strlen(name)) == 0;
}

static void take(char *line)
{
    static const char *const pf_af[2] = {"AF_", "PF_"}, *const sock[2] = {"SOCK_"},
                             *const ipproto[2] = {"IPPROTO_"};
    char *rest, *word[4];
    struct rule rule;
    line[strcspn(line, "#\n")] = '\0';
    for (int i = 0; i < 4; i++, line = NULL)
        if (!(word[i] = strtok_r(line, " \t\r", &rest)))
            return;
    if (!find(word[1], domains, pf_af, &rule.domain) || !find(word[2], types, sock, &rule.type) ||
        !find(word[3], protocols, ipproto, &rule.protocol))
        return;
    some = true;
    if (is_prefix(word[0]) && count < RULES)
        rules[count++] = rule;
}

static void read_rules(void)
{
    const char *fork_safe = getenv("RDMAV_FORK_SAFE"), *folder = getenv("ANYWARP_RSOCKET_CONF");
    char path[4096], line[256];
    never = fork_safe && atoi(fork_safe) != 0;
    snprintf(path, sizeof path, "%s/preload_config", folder ? folder : FOLDER);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        take(line);
    fclose(file);
}

bool pre_may_be_plain(void)
{
    const char *tls = getenv("ANYWARP_TLS");
    return !tls || !*tls || !strcmp(tls, "off") || !strcmp(tls, "allow");
}

bool pre_wanted(int domain, int type, int protocol)
{
    pthread_once(&once, read_rules);
    bool tcp = (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM &&
               (!protocol || protocol == IPPROTO_TCP);
    if (!tcp || never)
        return false;
    for (int i = 0; i < count; i++)
        if ((rules[i].domain == ANY || rules[i].domain == domain) &&
            (rules[i].type == ANY || rules[i].type == type) &&
            (rules[i].protocol == ANY || rules[i].protocol == IPPROTO_TCP))
            return true;
    return !some;
}
