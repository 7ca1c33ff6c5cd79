/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/sys.h"
#include "tools/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Below these it is worth a word. */
#define DESCRIPTORS_FEW 4096
#define PORTS_FEW       1024

/** false: it is up, or nobody says. */
static bool loopback_is_down(void)
{
    struct ifreq r = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool down = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0 && !(r.ifr_flags & IFF_UP);
    if (fd >= 0)
        close(fd);
    return down;
}

/** Takes a connection, and sends a byte over it, with the calls that the libraries use. */
static bool pass_byte(int from, int listener)
{
    char byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    int to = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    bool ok = to >= 0 && sendmsg(from, &m, 0) == 1 && recvmsg(to, &m, MSG_PEEK) == 1 &&
              recv(to, &byte, 1, 0) == 1;
    int err = errno;
    if (to >= 0)
        close(to);
    errno = err;
    return ok;
}

/** Connects to itself by TCP. @return 0 or an errno */
static int talk_to_self(const struct sockaddr *any, socklen_t len)
{
    struct sockaddr_storage addr;
    int listener = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = listener < 0 ? -1 : socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(listener, any, len) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (struct sockaddr *)&addr, &len) == 0 &&
              connect(fd, (struct sockaddr *)&addr, len) == 0 && pass_byte(fd, listener);
    int err = ok ? 0 : errno;
    if (fd >= 0)
        close(fd);
    if (listener >= 0)
        close(listener);
    return err;
}

static void say_of_family(const char *family, const char *address, int error, bool other)
{
    if (error)
        doctor_say(other ? DOCTOR_NOTE : DOCTOR_FAIL,
                   other ? NULL
                         : "look for a firewall, a seccomp filter or a container without network",
                   "no %s: a TCP connection to %s fails: %s", family, address, strerror(error));
}

static void check_sockets(void)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int no4 = talk_to_self((struct sockaddr *)&v4, sizeof(v4));
    int no6 = talk_to_self((struct sockaddr *)&v6, sizeof(v6));
    if (no4 && no6 && loopback_is_down()) {
        doctor_say(DOCTOR_FAIL, "ip link set lo up", "the loopback interface is down");
        return;
    }
    if (!no4 || !no6)
        doctor_say(DOCTOR_GOOD, NULL, "TCP connections over the loopback interface work");
    say_of_family("IPv4", "127.0.0.1", no4, !no6);
    say_of_family("IPv6", "::1", no6, !no4);
}

/** @return @p r, of a system call; what is refused is told of */
static int tried(const char *call, long r)
{
    if (r < 0)
        doctor_say(DOCTOR_FAIL, "look for a seccomp filter, or a limit of descriptors",
                   "the system call %s fails: %s", call, strerror((int)-r));
    return (int)r;
}

/** What connections cannot do without, besides sockets. */
static void check_calls(void)
{
    char byte;
    struct epoll_event ev = {.events = EPOLLIN};
    int set = tried("epoll_create1", sys_epoll_create());
    int event = tried("eventfd2", sys_eventfd(0, 0));
    int timer = tried("timerfd_create", sys_timerfd());
    tried("getrandom", sys_getrandom(&byte, 1));
    if (set >= 0 && event >= 0)
        tried("epoll_ctl", sys_epoll_ctl(set, EPOLL_CTL_ADD, event, &ev));
    if (set >= 0)
        tried("epoll_pwait", sys_epoll_look(set, &ev, 1));
    sys_close(set);
    sys_close(event);
    sys_close(timer);
}

static void check_addresses(void)
{
    struct ifaddrs *list = NULL;
    bool found = false;
    if (getifaddrs(&list) != 0) {
        doctor_say(DOCTOR_WARN, "look for a seccomp filter that refuses AF_NETLINK sockets",
                   "devices have no GIDs, as the addresses of this machine cannot be listed: %s",
                   strerror(errno));
        return;
    }
    for (struct ifaddrs *a = list; a; a = a->ifa_next)
        found |= a->ifa_addr && !(a->ifa_flags & IFF_LOOPBACK) && (a->ifa_flags & IFF_UP) &&
                 (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6);
    freeifaddrs(list);
    if (!found)
        doctor_say(DOCTOR_NOTE, NULL,
                   "only loopback addresses: programs of other machines cannot be reached");
}

static void check_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_max < DESCRIPTORS_FEW)
        doctor_say(DOCTOR_WARN, "raise it: ulimit -Hn as root, or LimitNOFILE of the service",
                   "a process may open %llu descriptors at most; each connection takes one",
                   (unsigned long long)limit.rlim_max);
    else
        doctor_say(DOCTOR_GOOD, NULL, "a process may open %llu descriptors",
                   (unsigned long long)limit.rlim_max);
}

/** Queue pairs that are connected by number are found at ports of their own. */
static void say_of_numbers(int low, int high)
{
    const char *ports = getenv("ANYWARP_PORTS");
    char range[32];
    snprintf(range, sizeof(range), "%d-%d", low, high);
    doctor_say(DOCTOR_NOTE,
               "open them both ways where a firewall is between the hosts; ANYWARP_PORTS has fewer",
               "queue pairs by GID and number are reached at TCP ports %s, not through NAT",
               ports && *ports ? ports : range);
}

static void check_ports(void)
{
    int low, high;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (f && fscanf(f, "%d %d", &low, &high) == 2) {
        if (high - low < PORTS_FEW)
            doctor_say(DOCTOR_WARN, "widen it: sysctl net.ipv4.ip_local_port_range",
                       "connections have only the ports %d to %d to start from", low, high);
        say_of_numbers(low, high);
    }
    if (f)
        fclose(f);
}

static void check_congestion(void)
{
    const char *name = getenv("ANYWARP_CONGESTION");
    int fd = name && *name ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
        doctor_say(DOCTOR_WARN,
                   "sysctl net.ipv4.tcp_allowed_congestion_control has what is allowed",
                   "ANYWARP_CONGESTION=%s is refused: %s", name, strerror(errno));
    close(fd);
}

/** What two processes of this host need to leave TCP. @return 0 or an errno */
static int share_memory(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("anywarp", MFD_CLOEXEC | MFD_ALLOW_SEALING), err = errno;
    if (fd < 0)
        return err;
    bool sealed = ftruncate(fd, (off_t)page) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0;
    void *p = sealed ? mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    err = p == MAP_FAILED ? errno : 0;
    if (!err)
        munmap(p, page);
    close(fd);
    return err;
}

/** A name that the kernel chooses. @return 0 or an errno */
static int meet_locally(void)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err = errno;
    if (fd < 0)
        return err;
    err = bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) ? errno : 0;
    close(fd);
    return err;
}

static void check_rings(void)
{
    const char *on = getenv("ANYWARP_SHM");
    if (on && strcmp(on, "off") == 0)
        return;
    int err = share_memory();
    if (!err)
        err = meet_locally();
    if (err)
        doctor_say(DOCTOR_WARN, "look for a seccomp filter, a limit of memory or of descriptors",
                   "processes of this host stay on TCP, as they can share no memory: %s",
                   strerror(err));
    else
        doctor_say(DOCTOR_GOOD, NULL,
                   "processes of this host, of one user, can leave TCP for shared memory");
}

/** With a layer that stands in for glibc's loader, this command runs where the libraries do not. */
static void check_libc(void)
{
    char name[64];
    if (!confstr(_CS_GNU_LIBC_VERSION, name, sizeof(name)))
        doctor_say(DOCTOR_FAIL, "use a system or a container with glibc",
                   "the C library of this system is not glibc; musl and others are not supported");
    else
        doctor_say(DOCTOR_GOOD, NULL, "the C library is %s", name);
}

void doctor_machine(void)
{
    check_libc();
    check_sockets();
    check_calls();
    check_addresses();
    check_descriptors();
    check_ports();
    check_congestion();
    check_rings();
}
