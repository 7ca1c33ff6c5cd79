/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CANARY 0xa5
#define RIGHTS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

void memory_open(struct memory *m, struct ibv_pd *pd)
{
    m->block = aligned_alloc(8, MEMORY_BYTES + 2 * MEMORY_CANARY);
    assert_non_null(m->block);
    memset(m->block, CANARY, MEMORY_BYTES + 2 * MEMORY_CANARY);
    m->bytes = m->block + MEMORY_CANARY;
    for (uint32_t i = 0; i < MEMORY_BYTES; i++)
        m->bytes[i] = m->image[i] = (uint8_t)(i * 2654435761u >> 24);
    memset(m->users, 0, sizeof(m->users));
    m->mr = ibv_reg_mr(pd, m->bytes, MEMORY_BYTES, RIGHTS);
    assert_non_null(m->mr);
}

void memory_close(struct memory *m)
{
    for (int i = 0; i < MEMORY_CANARY; i++) {
        assert_int_equal(m->block[i], CANARY);
        assert_int_equal(m->block[MEMORY_CANARY + MEMORY_BYTES + i], CANARY);
    }
    assert_int_equal(ibv_dereg_mr(m->mr), 0);
    free(m->block);
}

bool memory_is_free_of(const struct range *r, unsigned bits)
{
    for (int u = 0; u < MEMORY_USERS; u++)
        for (uint32_t i = 0; bits & MEMORY_BIT(u) && i < r->len; i++)
            if (r->memory->users[u][r->at + i])
                return false;
    return true;
}

void memory_use(const struct range *r, enum memory_user user)
{
    for (uint32_t i = 0; i < r->len; i++)
        assert_int_not_equal(++r->memory->users[user][r->at + i], 0);
}

void memory_leave(const struct range *r, enum memory_user user)
{
    for (uint32_t i = 0; i < r->len; i++)
        assert_int_not_equal(r->memory->users[user][r->at + i]--, 0);
}

void memory_abandon(const struct range *r, enum memory_user user)
{
    memory_leave(r, user);
    memcpy(range_image(r), r->memory->bytes + r->at, r->len);
}

bool memory_is_right(const struct range *r)
{
    return memcmp(r->memory->bytes + r->at, range_image(r), r->len) == 0;
}

bool memory_is_right_at_rest(const struct memory *m)
{
    for (uint32_t i = 0; i < MEMORY_BYTES; i++) {
        bool written =
            m->users[MEMORY_SINK][i] || m->users[MEMORY_RECV][i] || m->users[MEMORY_REMOTE][i];
        if (!written && m->bytes[i] != m->image[i])
            return false;
    }
    return true;
}
