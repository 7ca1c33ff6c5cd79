/* SPDX-License-Identifier: BSD-2-Clause */
/* GID and P_Key tables. */
#include "device/context.h"
#include "faults/chaos.h"
#include "verbs/export.h"

#include <endian.h>
#include <string.h>

#define DEFAULT_PKEY 0xffff
#define GID_EX       "ibv_query_gid_ex"
#define GID_TABLE    "ibv_query_gid_table"

/** @return 0 or EINVAL: every entry of the table holds something, so none is missing inside it */
static int query(const char *call, struct ibv_context *context, uint32_t port, uint32_t index,
                 struct ibv_gid_entry *e)
{
    if (!context)
        return iw_refuse(call, ARGUMENT);
    if (port != 1)
        return iw_refuse(call, VALUE, ONE_PORT);
    return iw_device_gid(iw_device(context->device), 1, index, e)
               ? iw_refuse(call, GID_INDEX, index)
               : 0;
}

VERBS_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                               union ibv_gid *gid)
{
    struct ibv_gid_entry e;
    if (!gid)
        return minus_errno(iw_refuse(__func__, ARGUMENT));
    int r = query(__func__, context, port_num, (uint32_t)index, &e);
    if (!r && iw_chaos(IW_FAULT_QUERY_GID, NULL))
        r = ENOMEM;
    if (r)
        return minus_errno(r);
    *gid = e.gid;
    return 0;
}

/** Callers newer than we are have a larger entry: what we do not know in it is zero. */
static void put_entry(void *out, size_t size, const struct ibv_gid_entry *e)
{
    memset(out, 0, size);
    memcpy(out, e, sizeof(*e));
}

VERBS_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                                   uint32_t gid_index, struct ibv_gid_entry *entry, uint32_t flags,
                                   size_t entry_size)
{
    struct ibv_gid_entry e;
    if (!entry || flags || entry_size < sizeof(e))
        return iw_refuse(GID_EX, VALUE, "no entry, flags, or so small an entry");
    int r = query(GID_EX, context, port_num, gid_index, &e);
    if (r)
        return r;
    put_entry(entry, entry_size, &e);
    return 0;
}

VERBS_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
                                          struct ibv_gid_entry *entries, size_t max_entries,
                                          uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry e;
    if (!context || (!entries && max_entries) || flags || entry_size < sizeof(e))
        return -iw_refuse(GID_TABLE, VALUE, "no entries, flags, or so small an entry");
    size_t n = 0;
    for (; n < iw_device_gids(iw_device(context->device)); n++) {
        if (iw_device_gid(iw_device(context->device), 1, (uint32_t)n, &e))
            break; /* an address went away meanwhile */
        if (n == max_entries)
            return -iw_refuse(GID_TABLE, VALUE, "room for fewer entries than there are");
        put_entry((char *)entries + n * entry_size, entry_size, &e);
    }
    return (ssize_t)n;
}

VERBS_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
                                __be16 *pkey)
{
    if (!context || !pkey || port_num != 1 || index != 0)
        return minus_errno(iw_refuse(__func__, VALUE, "another P_Key than 0 of port 1"));
    *pkey = htobe16(DEFAULT_PKEY);
    return 0;
}

VERBS_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    if (!context || port_num != 1 || pkey != htobe16(DEFAULT_PKEY))
        return minus_errno(iw_refuse(__func__, VALUE, "another P_Key than 0xffff of port 1"));
    return 0;
}

VERBS_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                             uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context, (void)attr, (void)eth_mac, (void)vid;
    return -iw_refuse(__func__, OFFERED);
}
