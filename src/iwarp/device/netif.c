/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netif.h"

#include "common/addr.h"
#include "common/sys.h"
#include "device/interfaces.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static struct ifaddrs *interfaces(void)
{
    struct ifaddrs *list;
    iw_interfaces(&list);
    return list;
}

/** An address may be listed under a label, "eth0:1". */
static bool wanted(const struct ifaddrs *i, const char *interface)
{
    size_t len = strcspn(i->ifa_name, ":");
    return !*interface || (strlen(interface) == len && memcmp(i->ifa_name, interface, len) == 0);
}

static bool is_family(const struct ifaddrs *i, int family)
{
    return i->ifa_addr && i->ifa_addr->sa_family == family;
}

/** The interface's MAC as the kernel lists it, NULL if it has no Ethernet-like one. */
static const struct sockaddr_ll *mac_of(const struct ifaddrs *i)
{
    static const uint8_t none[6];
    if (!is_family(i, AF_PACKET) || (i->ifa_flags & IFF_LOOPBACK))
        return NULL;
    const struct sockaddr_ll *ll = (const void *)i->ifa_addr;
    return ll->sll_halen == 6 && memcmp(ll->sll_addr, none, 6) ? ll : NULL;
}

bool iw_netif_mac(const char *interface, uint8_t mac[6], unsigned *ifindex)
{
    struct ifaddrs *list = interfaces();
    const struct sockaddr_ll *first = NULL;
    bool first_up = false;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        const struct sockaddr_ll *ll = wanted(i, interface) ? mac_of(i) : NULL;
        bool up = i->ifa_flags & IFF_UP;
        if (!ll || (first && first_up > up) ||
            (first && first_up == up && first->sll_ifindex < ll->sll_ifindex))
            continue;
        first = ll;
        first_up = up;
    }
    if (first) {
        memcpy(mac, first->sll_addr, 6);
        *ifindex = (unsigned)first->sll_ifindex;
    }
    bool found = first != NULL;
    iw_interfaces_free(list);
    return found;
}

/** The IP address of @p i. @return false if it is of another kind */
static bool address_of(const struct ifaddrs *i, union ibv_gid *gid)
{
    if (!i->ifa_addr || !addr_len(i->ifa_addr))
        return false;
    addr_ip6(i->ifa_addr, gid->raw);
    return true;
}

/** What the list says of the interface of @p i, by its name without a label; NULL: nothing. */
static const struct sockaddr_ll *link_of(const struct ifaddrs *list, const struct ifaddrs *i)
{
    char name[IFNAMSIZ] = "";
    memcpy(name, i->ifa_name, strcspn(i->ifa_name, ":"));
    for (const struct ifaddrs *k = list; k; k = k->ifa_next)
        if (is_family(k, AF_PACKET) && strcmp(k->ifa_name, name) == 0)
            return (const void *)k->ifa_addr;
    return NULL;
}

static bool gid_of(const struct ifaddrs *list, const struct ifaddrs *i, struct ibv_gid_entry *e)
{
    *e = (struct ibv_gid_entry){0};
    if (!address_of(i, &e->gid))
        return false;
    const struct sockaddr_ll *link = link_of(list, i);
    e->ndev_ifindex = link ? (uint32_t)link->sll_ifindex : 0;
    return true;
}

/** Which are in the list rather than others, where not all have room. */
enum turn { FIRST_OF_LOOPBACK, FIRST_OF_ANOTHER, MORE, MORE_OF_LOOPBACK, TURNS };

/** Where a walk through the addresses is. */
struct walk {
    const struct ifaddrs *next, *last;
    struct ibv_gid_entry e; /* of last */
    bool loopback;
    enum turn turn;
};

/** Whether both are addresses of one interface, and of one version of IP. */
static bool go_together(const struct ifaddrs *a, const struct ifaddrs *b)
{
    size_t len = strcspn(a->ifa_name, ":");
    return a->ifa_addr->sa_family == b->ifa_addr->sa_family && strcspn(b->ifa_name, ":") == len &&
           memcmp(a->ifa_name, b->ifa_name, len) == 0;
}

/** @return false at the end */
static bool step(struct walk *w, const struct ifaddrs *list, const char *interface)
{
    const struct ifaddrs *i = w->last ? w->next : list;
    while (i && !(wanted(i, interface) && gid_of(list, i, &w->e)))
        i = i->ifa_next;
    if (!i)
        return false;
    bool first = !w->last || !go_together(w->last, i); /* they are listed together */
    w->loopback = i->ifa_flags & IFF_LOOPBACK;
    if (w->loopback)
        w->turn = first ? FIRST_OF_LOOPBACK : MORE_OF_LOOPBACK;
    else
        w->turn = first ? FIRST_OF_ANOTHER : MORE;
    w->last = i;
    w->next = i->ifa_next;
    return true;
}

unsigned iw_netif_gids(const char *interface, struct ibv_gid_entry *gids, unsigned max)
{
    struct ifaddrs *list = interfaces();
    unsigned room[TURNS] = {0}, left = max, all = 0, n = 0;
    for (struct walk w = {0}; step(&w, list, interface); all++)
        room[w.turn]++;
    for (int turn = 0; turn < TURNS; turn++) {
        room[turn] = room[turn] < left ? room[turn] : left;
        left -= room[turn];
    }
    for (int loopback = 0; loopback <= 1; loopback++)
        for (struct walk w = {0}; step(&w, list, interface);)
            if (w.loopback == loopback && room[w.turn]) {
                room[w.turn]--;
                gids[n++] = w.e;
            }
    iw_interfaces_free(list);
    return all;
}

bool iw_netif_has(const char *interface, const struct ibv_gid_entry *address)
{
    struct ifaddrs *list = interfaces();
    bool found = false;
    for (struct walk w = {0}; !found && step(&w, list, interface);)
        found = memcmp(&w.e.gid, &address->gid, sizeof(w.e.gid)) == 0 &&
                (!address->ndev_ifindex || w.e.ndev_ifindex == address->ndev_ifindex);
    iw_interfaces_free(list);
    return found;
}

/** Whether a line of the kernel's table of IPv4 routes is a default route; by which interface. */
static bool is_default4(const char *line, char name[IF_NAMESIZE])
{
    int end = 0;
    sscanf(line, "%15s 00000000 %*x %*x %*d %*d %*d 00000000%n", name, &end);
    return end > 0;
}

static bool is_default6(const char *line, char name[IF_NAMESIZE])
{
    int end = 0;
    sscanf(line, "00000000000000000000000000000000 00 %*x %*x %*x %*x %*x %*x %*x %15s%n", name,
           &end);
    return end > 0 && strcmp(name, "lo") != 0; /* that one has no way for what has none */
}

static bool find_route(const char *table, bool (*fits)(const char *line, char *name), char *name)
{
    char line[256];
    bool found = false;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = fits(line, name);
    if (f)
        fclose(f);
    return found;
}

/** The interface of the default route; empty: there is none, or the kernel does not tell. */
static void find_default(char name[IF_NAMESIZE])
{
    int saved = errno;
    if (!find_route("/proc/self/net/route", is_default4, name) &&
        !find_route("/proc/self/net/ipv6_route", is_default6, name))
        *name = '\0';
    errno = saved;
}

/** The lower, the rather it stands for others. */
static unsigned rank_of(const struct ifaddrs *i, const union ibv_gid *gid, const char *main)
{
    const struct in6_addr *six = (const struct in6_addr *)gid->raw;
    unsigned kind = IN6_IS_ADDR_V4MAPPED(six) ? 0 : IN6_IS_ADDR_LINKLOCAL(six) ? 2 : 1;
    unsigned place = *main && wanted(i, main)      ? 0
                     : i->ifa_flags & IFF_LOOPBACK ? 2
                     : i->ifa_flags & IFF_UP       ? 1
                                                   : 3;
    return 3 * place + kind;
}

bool iw_netif_address(const char *interface, struct ibv_gid_entry *gid)
{
    char main[IF_NAMESIZE] = "";
    struct ifaddrs *list = interfaces();
    const struct ifaddrs *best = NULL;
    union ibv_gid address;
    unsigned rank = 0;
    if (!*interface)
        find_default(main);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (wanted(i, interface) && address_of(i, &address) &&
            (!best || rank_of(i, &address, main) < rank)) {
            rank = rank_of(i, &address, main);
            best = i;
        }
    bool found = best && gid_of(list, best, gid);
    iw_interfaces_free(list);
    return found;
}

int iw_netif_locals(struct iw_cm_local **out)
{
    struct ifaddrs *list;
    int saved = errno, n = iw_interfaces(&list);
    if (n)
        return n;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        n++;
    *out = calloc((size_t)n + 1, sizeof(**out));
    n = *out ? 0 : -ENOMEM;
    for (const struct ifaddrs *i = list; *out && i; i = i->ifa_next) {
        struct iw_cm_local *local = &(*out)[n];
        if (!address_of(i, &local->gid))
            continue;
        n++;
        const struct sockaddr_ll *link = link_of(list, i);
        if (!link)
            continue;
        local->ifindex = (unsigned)link->sll_ifindex;
        if (link->sll_halen == sizeof(local->mac))
            memcpy(local->mac, link->sll_addr, sizeof(local->mac));
    }
    iw_interfaces_free(list);
    errno = saved;
    return n;
}

bool iw_netif_exists(const char *interface)
{
    int saved = errno;
    bool exists = !*interface || if_nametoindex(interface) || errno != ENODEV;
    errno = saved;
    return exists;
}

bool iw_netif_is_up(const char *interface)
{
    const unsigned up = IFF_UP | IFF_RUNNING | IW_IFF_CARRIER;
    struct ifaddrs *list = interfaces();
    bool found = list == NULL;
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
        found = wanted(i, interface) && (i->ifa_flags & up) == up;
    iw_interfaces_free(list);
    return found;
}

static unsigned ask_mtu(int fd, struct ifreq *r)
{
    return ioctl(fd, SIOCGIFMTU, r) == 0 && r->ifr_mtu > 0 ? (unsigned)r->ifr_mtu : 0;
}

static unsigned ask_speed(int fd, struct ifreq *r)
{
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    r->ifr_data = (void *)&cmd;
    if (ioctl(fd, SIOCETHTOOL, r))
        return 0;
    uint32_t mbps = (uint32_t)cmd.speed_hi << 16 | cmd.speed;
    return mbps == (uint32_t)SPEED_UNKNOWN ? 0 : mbps;
}

/** The largest answer of the interfaces that are wanted. */
static unsigned largest(const char *interface, unsigned (*ask)(int fd, struct ifreq *r))
{
    unsigned max = 0;
    long fd = sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    struct ifaddrs *list = interfaces();
    int saved = errno;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct ifreq r = {0};
        if (!wanted(i, interface) || !is_family(i, AF_PACKET))
            continue;
        memcpy(r.ifr_name, i->ifa_name, strnlen(i->ifa_name, IFNAMSIZ - 1));
        unsigned value = ask((int)fd, &r);
        if (value > max)
            max = value;
    }
    errno = saved;
    iw_interfaces_free(list);
    sys_close((int)fd);
    return max;
}

unsigned iw_netif_mtu(const char *interface)
{
    return largest(interface, ask_mtu);
}

unsigned iw_netif_mbps(const char *interface)
{
    return largest(interface, ask_speed);
}
