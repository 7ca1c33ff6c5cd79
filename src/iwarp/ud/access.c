/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/access.h"

#include "common/addr.h"
#include "device/netif.h"
#include "env/access.h"
#include "env/conf.h"
#include "env/log.h"

#include <stdlib.h>
#include <string.h>

#define PLACES 64
#define VALID  1000000000 /* ns */
#define LOOKS  256        /* at the rules in that time; strangers beyond are refused */

struct verdict {
    struct in6_addr from;
    uint16_t port;
    bool here, yes;
    uint64_t until;
};

static struct {
    struct lock lock;
    struct verdict place[PLACES];
    unsigned looks;
    uint64_t since;
} known = {.lock = LOCK(LOCK_UD_ACCESS)};

bool iw_ud_stays_here(void)
{
    return iw_conf()->tls == IW_TLS_REQUIRE;
}

static void to_sockaddr(struct sockaddr_storage *out, const struct in6_addr *ip, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    *out = (struct sockaddr_storage){0};
    if (IN6_IS_ADDR_V4MAPPED(ip)) {
        four->sin_family = AF_INET;
        memcpy(&four->sin_addr, ip->s6_addr + 12, 4);
    } else {
        six->sin6_family = AF_INET6;
        six->sin6_addr = *ip;
    }
    addr_set_port((struct sockaddr *)out, port);
}

bool iw_ud_access_to(const char *call, const struct in6_addr *to, bool here)
{
    char why[IW_ACCESS_WHY_MAX], where[ADDR_TEXT_MAX];
    struct sockaddr_storage peer;
    to_sockaddr(&peer, to, 0);
    if (!here && iw_ud_stays_here()) {
        addr_text(&peer, where);
        iw_log(IW_LOG_WARN, "%s: ANYWARP_TLS=require: datagrams to %s would be in the clear", call,
               where);
        return false;
    }
    if (!iw_conf()->access[0])
        return true;
    struct iw_access_ask ask = {.to = true, .peer = &peer, .identity = ""};
    if (iw_access(&ask, why) == IW_ACCESS_YES)
        return true;
    addr_text(&peer, where);
    iw_log(IW_LOG_WARN, "%s: ANYWARP_ACCESS: %s: %s", call, why, where);
    return false;
}

static bool is_of_this_host(const struct in6_addr *ip)
{
    struct iw_cm_local *list = NULL;
    int n = iw_netif_locals(&list);
    bool found = IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127;
    for (int i = 0; !found && i < n; i++)
        found = memcmp(&list[i].gid, ip, sizeof(*ip)) == 0;
    free(list);
    return found;
}

static bool judge(const struct in6_addr *from, bool here, uint16_t port)
{
    char why[IW_ACCESS_WHY_MAX] = "this host has no such address", where[ADDR_TEXT_MAX];
    struct sockaddr_storage peer;
    to_sockaddr(&peer, from, 0);
    struct iw_access_ask ask = {.peer = &peer, .port = port, .identity = ""};
    if ((!here || is_of_this_host(from)) && iw_access(&ask, why) == IW_ACCESS_YES)
        return true;
    addr_text(&peer, where);
    iw_log(IW_LOG_WARN, "datagrams dropped: ANYWARP_ACCESS: %s: %s", why, where);
    return false;
}

static unsigned place_of(const struct in6_addr *from, uint16_t port)
{
    uint32_t hash = port;
    for (unsigned i = 0; i < sizeof(from->s6_addr); i++)
        hash = hash * 31 + from->s6_addr[i];
    return hash % PLACES;
}

static bool known_locked(struct verdict *v, const struct in6_addr *from, bool here, uint16_t port,
                         uint64_t now)
{
    assert_held(&known.lock);
    if (v->until > now && v->port == port && v->here == here &&
        memcmp(&v->from, from, sizeof(*from)) == 0)
        return v->yes;
    if (now - known.since >= VALID) {
        known.since = now;
        known.looks = 0;
    }
    if (known.looks++ >= LOOKS)
        return false;
    *v = (struct verdict){.from = *from,
                          .port = port,
                          .here = here,
                          .yes = judge(from, here, port),
                          .until = now + VALID};
    return v->yes;
}

bool iw_ud_access_from(const struct in6_addr *from, bool here, uint16_t port, uint64_t now)
{
    if (!iw_conf()->access[0])
        return true;
    lock_get(&known.lock);
    bool yes = known_locked(&known.place[place_of(from, port)], from, here, port, now);
    lock_put(&known.lock);
    return yes;
}

void iw_ud_access_fork(enum fork_step step)
{
    lock_fork(&known.lock, step);
}
