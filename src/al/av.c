/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/av.h"

#include "al/ca.h"
#include "al/pd.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct al_av {
    struct al_object o; /* the parent is a struct al_pd */
    pthread_mutex_t lock;
    ib_av_attr_t attr;
};

static void release(struct al_object *o)
{
    struct al_av *av = container_of(o, struct al_av, o);
    pthread_mutex_destroy(&av->lock);
}

static const struct al_kind kind = {
    .type = AL_AV,
    .invalid = IB_INVALID_AV_HANDLE,
    .anywhere = true,
    .release = release,
};

static ib_api_status_t create(struct al_object *pd, const ib_av_attr_t *attr,
                              ib_av_handle_t *handle)
{
    if (!attr || !handle)
        return IB_INVALID_PARAMETER;
    if (attr->port_num != AL_PORT)
        return IB_INVALID_PORT;
    struct al_av *av = calloc(1, sizeof *av);
    if (av) {
        av->attr = *attr;
        pthread_mutex_init(&av->lock, NULL);
    }
    ib_api_status_t status = al_add(av ? &av->o : NULL, &kind, pd, NULL);
    if (status != IB_SUCCESS)
        return status;
    *handle = av->o.handle;
    al_put(&av->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_create_av(const ib_pd_handle_t h_pd, const ib_av_attr_t *const p_av_attr,
                             ib_av_handle_t *const ph_av)
{
    struct al_object *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    ib_api_status_t status = create(pd, p_av_attr, ph_av);
    al_put(pd);
    return status;
}

ib_api_status_t ib_query_av(const ib_av_handle_t h_av, ib_av_attr_t *const p_av_attr,
                            ib_pd_handle_t *const ph_pd)
{
    struct al_av *av = al_get(&kind, h_av);
    if (!av)
        return IB_INVALID_AV_HANDLE;
    bool ok = p_av_attr && ph_pd;
    if (ok) {
        pthread_mutex_lock(&av->lock);
        *p_av_attr = av->attr;
        pthread_mutex_unlock(&av->lock);
        *ph_pd = av->o.parent->handle;
    }
    al_put(&av->o);
    return ok ? IB_SUCCESS : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_modify_av(const ib_av_handle_t h_av, const ib_av_attr_t *const p_av_attr)
{
    struct al_av *av = al_get(&kind, h_av);
    if (!av)
        return IB_INVALID_AV_HANDLE;
    ib_api_status_t status = !p_av_attr                       ? IB_INVALID_PARAMETER
                             : p_av_attr->port_num != AL_PORT ? IB_INVALID_PORT
                                                              : IB_SUCCESS;
    if (status == IB_SUCCESS) {
        pthread_mutex_lock(&av->lock);
        av->attr = *p_av_attr;
        pthread_mutex_unlock(&av->lock);
    }
    al_put(&av->o);
    return status;
}

ib_api_status_t ib_destroy_av(const ib_av_handle_t h_av)
{
    return al_destroy(&kind, h_av, ib_sync_destroy);
}

/* ---- for the verbs ---- */

static bool is_ipv4(const union ibv_gid *gid)
{
    struct in6_addr address;
    memcpy(&address, gid, sizeof address);
    return IN6_IS_ADDR_V4MAPPED(&address);
}

/* Our GID: the one that is wanted, or, where none is, the first that speaks the peer's IP. */
static bool choose_source(struct ibv_context *verbs, const ib_gid_t *wanted,
                          const union ibv_gid *peer, uint8_t *index)
{
    static const ib_gid_t none;
    bool any = memcmp(wanted, &none, sizeof none) == 0;
    struct ibv_port_attr port;
    if (ibv_query_port(verbs, AL_PORT, &port) != 0)
        return false;
    for (int i = 0; i < port.gid_tbl_len; i++) {
        union ibv_gid gid;
        if (ibv_query_gid(verbs, AL_PORT, i, &gid) != 0)
            continue;
        *index = (uint8_t)i;
        if (any ? is_ipv4(&gid) == is_ipv4(peer) : memcmp(&gid, wanted, sizeof gid) == 0)
            return true;
    }
    *index = 0;
    return any;
}

static bool by_gid(struct ibv_context *verbs, const ib_grh_t *grh, struct ibv_ah_attr *ah)
{
    uint32_t flow = ntohl(grh->ver_class_flow);
    memcpy(&ah->grh.dgid, &grh->dest_gid, sizeof ah->grh.dgid);
    ah->grh.flow_label = flow & 0xfffff;
    ah->grh.traffic_class = (uint8_t)(flow >> 20);
    ah->grh.hop_limit = grh->hop_limit;
    return choose_source(verbs, &grh->src_gid, &ah->grh.dgid, &ah->grh.sgid_index);
}

/* The only port whose LID is known is the adapter's own. */
static bool by_lid(struct ibv_context *verbs, ib_net16_t lid, struct ibv_ah_attr *ah)
{
    struct ibv_port_attr port;
    return ibv_query_port(verbs, AL_PORT, &port) == 0 && lid == htons(port.lid) &&
           ibv_query_gid(verbs, AL_PORT, 0, &ah->grh.dgid) == 0;
}

bool al_av_to_verbs(struct ibv_context *verbs, const ib_av_attr_t *av, struct ibv_ah_attr *ah)
{
    *ah = (struct ibv_ah_attr){
        .port_num = av->port_num,
        .sl = av->sl,
        .src_path_bits = av->path_bits,
        .static_rate = av->static_rate,
        .is_global = 1,
    };
    return av->port_num == AL_PORT &&
           (av->grh_valid ? by_gid(verbs, &av->grh, ah) : by_lid(verbs, av->dlid, ah));
}
