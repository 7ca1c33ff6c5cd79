/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reach.h"

#include "cm/reason.h"
#include "common/addr.h"
#include "env/conf.h"
#include "env/limits.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define PORT_MAX  65535
#define TEXT_MAX  (IW_CM_REASON_MAX + 64)

/** One address, one attempt. */
struct attempt {
    reach_tell *tell;
    unsigned timeout_ms;
    uint64_t since; /* when the present step began, ns */
    int fd;
    char where[ADDR_TEXT_MAX];
    struct mpa_nego nego;
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 * NS_PER_MS + (uint64_t)t.tv_nsec;
}

__attribute__((format(printf, 5, 6))) static void
tell(const struct attempt *a, const char *name, bool good, const char *todo, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    a->tell(&(struct reach_step){.name = name,
                                 .good = good,
                                 .ms = (double)(now() - a->since) / NS_PER_MS,
                                 .text = text,
                                 .todo = todo});
}

/** @return 0, or -ETIMEDOUT at the end of the step's time */
static int wait_for(const struct attempt *a, short events)
{
    struct pollfd p = {.fd = a->fd, .events = events};
    int r;
    do {
        uint64_t gone = (now() - a->since) / NS_PER_MS;
        r = poll(&p, 1, gone < a->timeout_ms ? (int)(a->timeout_ms - gone) : 0);
    } while (r < 0 && errno == EINTR);
    return r > 0 ? 0 : -ETIMEDOUT;
}

/* ---- TCP ---- */

static int connect_tcp(struct attempt *a, const struct addrinfo *ai)
{
    int error = 0;
    socklen_t len = sizeof(error);
    a->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (a->fd < 0)
        return -errno;
    if (connect(a->fd, ai->ai_addr, ai->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    int r = wait_for(a, POLLOUT);
    if (!r)
        getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    return r ? r : -error;
}

static const char *tcp_todo(int status)
{
    switch (-status) {
    case ECONNREFUSED:
        return "does the server run, at this port? On its host: ss -ltnp";
    case ETIMEDOUT:
    case EHOSTUNREACH:
        return "is this the address of a host that is up, and does a firewall let the port "
               "through?";
    case ENETUNREACH:
        return "ip route get ADDRESS tells which way the kernel would take";
    case EINVAL:
        return "a link-local address needs its interface: fe80::1%eth0";
    default:
        return NULL;
    }
}

static bool reach_tcp(struct attempt *a, const struct addrinfo *ai)
{
    char reason[IW_CM_REASON_MAX];
    a->since = now();
    int status = connect_tcp(a, ai);
    if (status) {
        iw_cm_reason(NULL, status, a->timeout_ms, reason);
        tell(a, "tcp", false, tcp_todo(status), "%s: %s", a->where, reason);
        return false;
    }
    struct sockaddr_storage local = {0};
    char from[ADDR_TEXT_MAX];
    getsockname(a->fd, (struct sockaddr *)&local, &(socklen_t){sizeof(local)});
    addr_text(&local, from);
    tell(a, "tcp", true, NULL, "%s: connected from %s", a->where, from);
    return true;
}

/* ---- MPA ---- */

static int send_request(struct attempt *a)
{
    for (uint32_t at = 0; at < a->nego.out_len;) {
        ssize_t r = send(a->fd, a->nego.out + at, a->nego.out_len - at, MSG_NOSIGNAL);
        if (r > 0)
            at += (uint32_t)r;
        else if (errno == EAGAIN && wait_for(a, POLLOUT))
            return -ETIMEDOUT;
        else if (errno != EAGAIN && errno != EINTR)
            return -ECONNRESET;
    }
    return 0;
}

/** Without a peer-to-peer's RTR: the listener takes the connection for made when it has accepted.
 */
static int negotiate(struct attempt *a, uint8_t revision)
{
    const struct mpa_conf conf = {.rev = revision,
                                  .crc = iw_conf()->crc == IW_ON,
                                  .ext = iw_conf()->ext && revision == 2,
                                  .ird = IW_MAX_DEPTH,
                                  .ord = IW_MAX_DEPTH};
    uint8_t bytes[MPA_START_MAX];
    mpa_nego_connect(&a->nego, &conf, NULL, 0);
    int r = send_request(a);
    while (!r && a->nego.state == MPA_NEGO_WAIT_REPLY) {
        r = wait_for(a, POLLIN);
        if (r)
            break;
        ssize_t n = recv(a->fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            mpa_nego_input(&a->nego, bytes, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            mpa_nego_closed(&a->nego);
    }
    if (r)
        return r;
    return a->nego.state == MPA_NEGO_AGREED ? 0 : iw_cm_reason_status(&a->nego);
}

static const char *mpa_todo(const struct attempt *a, int status)
{
    switch (-status) {
    case ETIMEDOUT:
        return "a server of another protocol that waits for a word of it, or an RDMA program that "
               "does not take its events: rdma_get_cm_event(3), rdma_accept(3); anywarp stat";
    case ECONNRESET:
        return "a server of another protocol, or a listener that wants TLS (ANYWARP_TLS), which "
               "this is not";
    case EPROTO:
        return "is this the port of the RDMA server? On its host: ss -ltnp";
    case ECONNREFUSED:
        return a->nego.result.full
                   ? "the program there does not take its events: rdma_get_cm_event(3)"
                   : "an RDMA program is there, and says no: it may want private data";
    default:
        return NULL;
    }
}

static void tell_agreed(const struct attempt *a, uint8_t revision)
{
    const struct mpa_result *r = &a->nego.result;
    tell(a, "mpa", true, NULL, "accepted: revision %u, CRC %s, at most %u reads out and %u in%s",
         revision, r->crc ? "on" : "off", r->ord, r->ird, r->ext ? ", by anywarp" : "");
}

/** @return whether an older listener may be there, that hung up on a Request it does not know */
static bool hung_up(const struct attempt *a, int status)
{
    return status == -ECONNRESET && !mpa_nego_heard(&a->nego);
}

static bool reach_mpa(struct attempt *a, const struct addrinfo *ai)
{
    char reason[IW_CM_REASON_MAX];
    uint8_t revision = 2;
    a->since = now();
    int status = negotiate(a, revision);
    if (hung_up(a, status)) {
        close(a->fd);
        revision = 1;
        status = connect_tcp(a, ai);
        status = status ? -ECONNRESET : negotiate(a, revision);
    }
    if (!status) {
        tell_agreed(a, revision);
        return true;
    }
    iw_cm_reason(&a->nego, status, a->timeout_ms, reason);
    tell(a, "mpa", false, mpa_todo(a, status), "%s", reason);
    return false;
}

/* ---- all of it ---- */

static bool reach_address(struct attempt *a, const struct addrinfo *ai)
{
    struct sockaddr_storage addr = {0};
    memcpy(&addr, ai->ai_addr, ai->ai_addrlen);
    addr_text(&addr, a->where);
    a->fd = -1;
    bool good = reach_tcp(a, ai) && reach_mpa(a, ai);
    if (a->fd >= 0)
        close(a->fd);
    return good;
}

/* The C library takes the lowest 16 bits of a number. */
bool reach_is_port(const char *port)
{
    if (port[strspn(port, "0123456789")])
        return true;
    unsigned long n = strtoul(port, NULL, 10);
    return n >= 1 && n <= PORT_MAX;
}

/** getaddrinfo(), which knows no brackets. */
static int look_up(const char *host, const char *port, struct addrinfo **list)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    size_t len = strlen(host);
    if (len < 2 || host[0] != '[' || host[len - 1] != ']')
        return getaddrinfo(host, port, &hints, list);
    char *bare = strndup(host + 1, len - 2);
    int code = bare ? getaddrinfo(bare, port, &hints, list) : EAI_MEMORY;
    free(bare);
    return code;
}

bool reach(const char *host, const char *port, unsigned timeout_ms, reach_tell *to)
{
    struct addrinfo *list;
    struct attempt a = {.tell = to, .timeout_ms = timeout_ms, .since = now()};
    bool good = false;
    int n = 0, code = look_up(host, port, &list);
    if (code) {
        tell(&a, "name", false, "getent ahosts HOST tells what the system knows", "%s, port %s: %s",
             host, port, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
        return false;
    }
    for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
        n++;
    tell(&a, "name", true, NULL, "%s, port %s: %d address%s", host, port, n, n == 1 ? "" : "es");
    for (const struct addrinfo *ai = list; ai && !good; ai = ai->ai_next)
        good = reach_address(&a, ai);
    freeaddrinfo(list);
    return good;
}
