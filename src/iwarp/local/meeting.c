/* SPDX-License-Identifier: BSD-2-Clause */
#include "local/meeting.h"

#include "common/sys.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "env/fd.h"
#include "env/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define GUESTS      16  /* at a time; who comes when they are there goes on over TCP */
#define GUEST_MS    100 /* for one to say what it wants */
#define BACKLOG     64
#define GREETING    0x61777232 /* version of what follows */
#define ACCEPTS     16         /* a pass */
#define DESCRIPTORS 4          /* more are refused by the kernel's count */
#define UID_OF_ANY  65534      /* as whom the kernel shows a user that has no number here */

/** What a guest says; its memory goes with it. Both are on one host: no byte order. */
struct greeting {
    uint32_t version, ring;
    uint8_t token[IW_MEETING_TOKEN];
};

/** Somebody who has come, and said nothing yet. */
struct guest {
    struct iw_source source;
    int fd;        /* -1: nobody */
    bool attended; /* a thread is at it */
    uint64_t since;
};

_Static_assert(IW_MEETING_NAME + IW_MEETING_TOKEN == MPA_OFFER, "a Reply has room for both");

static struct {
    struct lock lock;
    struct list offers;
    bool open;
    int fd;
    uint8_t name[IW_MEETING_NAME];
    struct iw_source source;
    struct iw_timer timer;
    struct guest guests[GUESTS];
} meeting = {.lock = LOCK(LOCK_MEETING), .offers = {&meeting.offers, &meeting.offers}, .fd = -1};

static int random_bytes(uint8_t *p, size_t n)
{
    uint32_t word;
    int r = 0;
    for (size_t i = 0; i < n && !r; i += sizeof(word)) {
        r = iw_random32(&word);
        memcpy(p + i, &word, sizeof(word));
    }
    return r;
}

static socklen_t address(struct sockaddr_un *a, const uint8_t *name)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    char *p = a->sun_path + 1;
    size_t size = sizeof(a->sun_path) - 1;
    int len = snprintf(p, size, "anywarp-");
    for (int i = 0; i < IW_MEETING_NAME; i++)
        len += snprintf(p + len, size - (size_t)len, "%02x", name[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int local_socket(void)
{
    long fd = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? (int)fd : iw_fd_high((int)fd);
}

/** Whether the other end is of the user that this process runs as, and that can be told. */
static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid() &&
           peer.uid != UID_OF_ANY;
}

/* ---- guests ---- */

/** The descriptors that came with a message; all but the first are closed. @return -1: none */
static int descriptor(struct msghdr *m)
{
    int fd = -1, got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(got) <= c->cmsg_len; at += sizeof(got)) {
            memcpy(&got, (uint8_t *)c + at, sizeof(got));
            if (fd < 0)
                fd = got;
            else
                sys_close(got);
        }
    }
    return fd;
}

/** @param memory  [out] -1: none came @return as recv */
static long greeted(int fd, struct greeting *g, int *memory)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec v = {.iov_base = g, .iov_len = sizeof(*g)};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    *memory = -1;
    long n = sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n >= 0)
        *memory = descriptor(&m);
    return n;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
    unsigned differ = 0; /* takes as long whatever is the first to differ */
    for (int i = 0; i < IW_MEETING_TOKEN; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

/** The offer with that token, taken off, and its owner held. @return NULL: there is none */
static struct iw_offer *find(const uint8_t *token)
{
    struct iw_offer *found = NULL;
    lock_get(&meeting.lock);
    list_for_each (it, &meeting.offers) {
        struct iw_offer *o = container_of(it, struct iw_offer, link);
        if (same(o->token, token))
            found = o;
    }
    if (found) {
        list_del(&found->link);
        found->hold(found);
    }
    lock_put(&meeting.lock);
    return found;
}

/** @return whether this thread has the guest to itself now */
static bool attend(struct guest *g)
{
    lock_get(&meeting.lock);
    bool free = g->fd >= 0 && !g->attended;
    g->attended |= free;
    lock_put(&meeting.lock);
    return free;
}

static void dismiss(struct guest *g, bool gone)
{
    lock_get(&meeting.lock);
    g->attended = false;
    if (gone)
        g->fd = -1;
    lock_put(&meeting.lock);
}

static bool guest_ready(struct iw_source *s, uint32_t events)
{
    struct guest *guest = container_of(s, struct guest, source);
    struct greeting said;
    int memory;
    if (!events || !attend(guest))
        return false;
    long n = greeted(guest->fd, &said, &memory);
    if (n == -EAGAIN || n == -EINTR) {
        dismiss(guest, false);
        return false;
    }
    int fd = guest->fd;
    bool clear = n == (long)sizeof(said) && said.version == GREETING && memory >= 0;
    struct iw_offer *o = clear ? find(said.token) : NULL;
    iw_source_del(&guest->source);
    dismiss(guest, true);
    if (o) {
        o->taken(o, fd, iw_fd_high(memory), said.ring);
        return false;
    }
    sys_close(fd);
    if (memory >= 0)
        sys_close(memory);
    return false;
}

static void send_away(struct iw_timer *t)
{
    uint64_t now = iw_now();
    bool more = false;
    for (struct guest *g = meeting.guests; g < meeting.guests + GUESTS; g++) {
        if (!attend(g))
            continue;
        bool late = now - g->since >= GUEST_MS * 1000000ull;
        int fd = g->fd;
        if (late)
            iw_source_del(&g->source);
        dismiss(g, late);
        if (late)
            sys_close(fd);
        more |= !late;
    }
    if (more)
        iw_timer_set(t, GUEST_MS, send_away);
}

static void welcome(int fd)
{
    struct guest *guest = NULL;
    lock_get(&meeting.lock);
    for (struct guest *g = meeting.guests; g < meeting.guests + GUESTS && !guest; g++)
        if (meeting.open && g->fd < 0 && !g->attended)
            guest = g;
    if (guest) {
        guest->fd = fd;
        guest->attended = true;
        guest->since = iw_now();
    }
    lock_put(&meeting.lock);
    if (!guest || iw_source_add(&guest->source, fd, EPOLLIN, guest_ready)) {
        sys_close(fd);
        if (guest)
            dismiss(guest, true);
        return;
    }
    dismiss(guest, false);
    iw_timer_set(&meeting.timer, GUEST_MS, send_away);
}

static bool door_ready(struct iw_source *s, uint32_t events)
{
    (void)s;
    for (int i = 0; events && i < ACCEPTS; i++) {
        long fd = sys_accept4(meeting.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        if (same_user((int)fd))
            welcome(iw_fd_high((int)fd));
        else
            sys_close((int)fd);
    }
    return false;
}

/* ---- offers ---- */

/** @return 0 or a negative errno */
static int open_locked(void)
{
    struct sockaddr_un a;
    assert_held(&meeting.lock);
    int r = random_bytes(meeting.name, sizeof(meeting.name));
    int fd = r ? r : local_socket();
    if (fd < 0)
        return fd;
    socklen_t len = address(&a, meeting.name);
    r = (int)sys_bind(fd, (struct sockaddr *)&a, len);
    if (!r)
        r = (int)sys_listen(fd, BACKLOG);
    meeting.fd = fd;
    for (int i = 0; i < GUESTS; i++)
        meeting.guests[i].fd = -1;
    if (!r)
        r = -iw_source_add(&meeting.source, fd, EPOLLIN, door_ready);
    meeting.open = !r;
    if (r) {
        sys_close(fd);
        meeting.fd = -1;
    }
    return r;
}

int iw_offer_make(struct iw_offer *o, uint8_t say[MPA_OFFER])
{
    int r = random_bytes(o->token, sizeof(o->token));
    lock_get(&meeting.lock);
    if (!r && !meeting.open)
        r = open_locked();
    if (!r) {
        memcpy(say, meeting.name, IW_MEETING_NAME);
        memcpy(say + IW_MEETING_NAME, o->token, IW_MEETING_TOKEN);
        list_add_tail(&meeting.offers, &o->link);
    }
    lock_put(&meeting.lock);
    return r;
}

void iw_offer_withdraw(struct iw_offer *o)
{
    lock_get(&meeting.lock);
    list_del(&o->link);
    lock_put(&meeting.lock);
}

int iw_offer_greet(int bell, const uint8_t said[MPA_OFFER], int memory, uint32_t ring)
{
    struct greeting g = {.version = GREETING, .ring = ring};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec v = {.iov_base = &g, .iov_len = sizeof(g)};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    memcpy(g.token, said + IW_MEETING_NAME, sizeof(g.token));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(memory));
    memcpy(CMSG_DATA(c), &memory, sizeof(memory));
    long n = sys_sendmsg(bell, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (long)sizeof(g) ? 0 : n < 0 ? (int)n : -EIO;
}

int iw_offer_visit(const uint8_t said[MPA_OFFER])
{
    struct sockaddr_un a;
    socklen_t len = address(&a, said);
    int fd = local_socket();
    if (fd < 0)
        return fd;
    int r = (int)sys_connect(fd, (struct sockaddr *)&a, len);
    if (!r && !same_user(fd))
        r = -EPERM;
    if (!r)
        return fd;
    sys_close(fd);
    return r;
}

/* ---- fork ---- */

/** The name is the parent's, and so are its offers; the child opens one of its own. */
static void forget_locked(void)
{
    assert_held(&meeting.lock);
    iw_timer_cancel(&meeting.timer);
    iw_source_del(&meeting.source);
    iw_fd_leave_socket(meeting.fd);
    for (struct guest *g = meeting.guests; g < meeting.guests + GUESTS; g++) {
        if (g->fd >= 0) {
            iw_source_del(&g->source);
            iw_fd_leave_socket(g->fd);
        }
        g->fd = -1;
        g->attended = false;
    }
    while (list_pop(&meeting.offers))
        ;
    meeting.fd = -1;
    meeting.open = false;
}

void iw_meeting_fork(enum fork_step step)
{
    if (step == FORK_CHILD && meeting.open)
        forget_locked();
    lock_fork(&meeting.lock, step);
}
