/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/interfaces.h"

#include "common/sys.h"
#include "env/error_text.h"
#include "env/log.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct ifaddrs pub;
    struct sockaddr_storage addr;
    char name[IFNAMSIZ];
};

static char ours; /* ifa_data of an entry that is not libc's */

/** Those of IPv6 come last, by interface, link-local ones behind the others. */
static uint64_t place_of(const struct ifaddrs *i)
{
    const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
    if (six->sin6_family != AF_INET6)
        return 0;
    return 2 * (uint64_t)six->sin6_scope_id + IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static void ask(int fd, unsigned long request, const char *name, struct ifreq *r)
{
    *r = (struct ifreq){0};
    memcpy(r->ifr_name, name, strnlen(name, IFNAMSIZ - 1));
    if (sys_ioctl(fd, request, r) < 0)
        memset(&r->ifr_ifru, 0, sizeof(r->ifr_ifru));
}

/** These have no room for the carrier: who has none does not run. */
static unsigned flags_of(int fd, const char *name)
{
    struct ifreq r;
    ask(fd, SIOCGIFFLAGS, name, &r);
    unsigned flags = (unsigned short)r.ifr_flags;
    return flags & IFF_RUNNING ? flags | IW_IFF_CARRIER : flags;
}

static void add(int fd, struct ifaddrs **list, const char *name, const void *addr, size_t len)
{
    struct entry *e = calloc(1, sizeof(*e));
    if (!e)
        return;
    memcpy(e->name, name, strnlen(name, IFNAMSIZ - 1));
    memcpy(&e->addr, addr, len);
    e->pub = (struct ifaddrs){.ifa_name = e->name,
                              .ifa_addr = (struct sockaddr *)&e->addr,
                              .ifa_flags = flags_of(fd, name),
                              .ifa_data = &ours};
    while (*list && place_of(*list) <= place_of(&e->pub))
        list = &(*list)->ifa_next;
    e->pub.ifa_next = *list;
    *list = &e->pub;
}

static void add_link(int fd, struct ifaddrs **list, const char *name)
{
    struct sockaddr_ll ll = {.sll_family = AF_PACKET};
    struct ifreq r;
    ask(fd, SIOCGIFINDEX, name, &r);
    ll.sll_ifindex = r.ifr_ifindex;
    ask(fd, SIOCGIFHWADDR, name, &r);
    ll.sll_hatype = r.ifr_hwaddr.sa_family;
    if (ll.sll_hatype == ARPHRD_ETHER) {
        ll.sll_halen = IFHWADDRLEN;
        memcpy(ll.sll_addr, r.ifr_hwaddr.sa_data, IFHWADDRLEN);
    }
    add(fd, list, name, &ll, sizeof(ll));
}

static void add_links(int fd, struct ifaddrs **list)
{
    char line[512], name[IFNAMSIZ];
    FILE *f = fopen("/proc/self/net/dev", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, " %15[^:| ]:", name) == 1 && strchr(line, ':'))
            add_link(fd, list, name);
    if (f)
        fclose(f);
}

/** @return 0 or a negative errno */
static int add_ipv4(int fd, struct ifaddrs **list)
{
    struct ifconf c = {0};
    int r = (int)sys_ioctl(fd, SIOCGIFCONF, &c);
    if (r < 0)
        return r;
    c.ifc_buf = malloc((size_t)c.ifc_len + 1);
    if (!c.ifc_buf)
        return -ENOMEM;
    r = (int)sys_ioctl(fd, SIOCGIFCONF, &c);
    for (int i = 0; r == 0 && i < c.ifc_len / (int)sizeof(struct ifreq); i++)
        add(fd, list, c.ifc_req[i].ifr_name, &c.ifc_req[i].ifr_addr, sizeof(struct sockaddr_in));
    free(c.ifc_buf);
    return r;
}

static void add_ipv6(int fd, struct ifaddrs **list)
{
    char line[256], name[IFNAMSIZ];
    FILE *f = fopen("/proc/self/net/if_inet6", "re");
    while (f && fgets(line, sizeof(line), f)) {
        struct sockaddr_in6 six = {.sin6_family = AF_INET6};
        int end = 0;
        sscanf(line, "%*32x %x %*x %*x %*x %15s%n", &six.sin6_scope_id, name, &end);
        for (int i = 0; end > 0 && i < 16; i++)
            sscanf(line + 2 * i, "%2hhx", &six.sin6_addr.s6_addr[i]);
        if (end > 0)
            add(fd, list, name, &six, sizeof(six));
    }
    if (f)
        fclose(f);
}

/** @return 0 or a negative errno */
static int ask_all(struct ifaddrs **list)
{
    int fd = (int)sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    add_links(fd, list);
    int r = add_ipv4(fd, list);
    add_ipv6(fd, list);
    sys_close(fd);
    return r;
}

static void complain(int error)
{
    static atomic_bool told;
    char text[IW_ERROR_TEXT_MAX];
    if (atomic_exchange(&told, true))
        return;
    iw_error_text(error, text);
    iw_log(IW_LOG_WARN, "no interface is known: neither netlink nor ioctl tells, %s", text);
}

int iw_interfaces(struct ifaddrs **list)
{
    int saved = errno, r = 0;
    *list = NULL;
    if (getifaddrs(list)) {
        *list = NULL;
        r = ask_all(list);
    }
    if (r) {
        iw_interfaces_free(*list);
        *list = NULL;
        complain(-r);
    }
    errno = saved;
    return r;
}

void iw_interfaces_free(struct ifaddrs *list)
{
    if (!list || list->ifa_data != &ours) {
        freeifaddrs(list);
        return;
    }
    while (list) {
        struct ifaddrs *next = list->ifa_next;
        free(list);
        list = next;
    }
}
