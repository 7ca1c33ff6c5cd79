/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/vouch.h"

#include "common/addr.h"
#include "env/random.h"

#include <string.h>

struct entry {
    struct sockaddr_in6 process; /* family, address and port alone */
    uint64_t token;              /* 0: the entry is free */
};

/** The oldest makes room. */
struct ledger {
    unsigned next;
    struct entry entries[IW_VOUCH_MAX];
};

static struct lock lock = LOCK(LOCK_VOUCH);
static struct ledger given, got;

uint64_t iw_vouch_draw(void)
{
    uint32_t high, low;
    if (iw_random32(&high) || iw_random32(&low))
        return 0;
    return (uint64_t)high << 32 | low;
}

static struct sockaddr_in6 key_of(const struct sockaddr_storage *process)
{
    const struct sockaddr *addr = (const struct sockaddr *)process;
    struct sockaddr_in6 key = {.sin6_family = addr->sa_family, .sin6_port = htons(addr_port(addr))};
    addr_ip(addr, key.sin6_addr.s6_addr);
    return key;
}

static struct entry *find_locked(struct ledger *l, const struct sockaddr_in6 *key)
{
    assert_held(&lock);
    for (unsigned i = 0; i < IW_VOUCH_MAX && l->entries[i].token; i++)
        if (memcmp(&l->entries[i].process, key, sizeof(*key)) == 0)
            return &l->entries[i];
    return NULL;
}

static void enter(struct ledger *l, const struct sockaddr_storage *process, uint64_t token)
{
    struct sockaddr_in6 key = key_of(process);
    if (!token)
        return;
    lock_get(&lock);
    struct entry *e = find_locked(l, &key);
    if (!e)
        e = &l->entries[l->next++ % IW_VOUCH_MAX];
    *e = (struct entry){.process = key, .token = token};
    lock_put(&lock);
}

static uint64_t look_up(struct ledger *l, const struct sockaddr_storage *process)
{
    struct sockaddr_in6 key = key_of(process);
    lock_get(&lock);
    const struct entry *e = find_locked(l, &key);
    uint64_t token = e ? e->token : 0;
    lock_put(&lock);
    return token;
}

void iw_vouch_given(const struct sockaddr_storage *process, uint64_t token)
{
    enter(&given, process, token);
}

bool iw_vouch_is_given(const struct sockaddr_storage *process, uint64_t token)
{
    return token && look_up(&given, process) == token;
}

void iw_vouch_got(const struct sockaddr_storage *process, uint64_t token)
{
    enter(&got, process, token);
}

uint64_t iw_vouch_token(const struct sockaddr_storage *process)
{
    return look_up(&got, process);
}

void iw_vouch_fork(enum fork_step step)
{
    lock_fork(&lock, step);
    if (step == FORK_CHILD) {
        memset(&given, 0, sizeof(given));
        memset(&got, 0, sizeof(got));
    }
}
