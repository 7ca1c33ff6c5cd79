/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/access.h"

#include <infiniband/verbs.h>
#include <stddef.h>

static const struct {
    ib_access_t al;
    unsigned verbs;
} bits[] = {
    {IB_AC_RDMA_READ, IBV_ACCESS_REMOTE_READ}, {IB_AC_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
    {IB_AC_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC},  {IB_AC_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE},
    {IB_AC_MW_BIND, IBV_ACCESS_MW_BIND},
};

ib_api_status_t al_access_check(ib_access_t access)
{
    if (access & ~(AL_AC_REMOTE | IB_AC_LOCAL_WRITE | IB_AC_MW_BIND))
        return IB_UNSUPPORTED;
    if ((access & (IB_AC_RDMA_WRITE | IB_AC_ATOMIC)) && !(access & IB_AC_LOCAL_WRITE))
        return IB_INVALID_PERMISSION;
    return IB_SUCCESS;
}

int al_access_to_verbs(ib_access_t access)
{
    unsigned flags = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        if (access & bits[i].al)
            flags |= bits[i].verbs;
    }
    return (int)flags;
}

ib_access_t al_access_of_verbs(unsigned flags)
{
    ib_access_t access = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        if (flags & bits[i].verbs)
            access |= bits[i].al;
    }
    return access;
}
