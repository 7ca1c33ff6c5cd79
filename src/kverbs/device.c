/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/element.h"
#include "compat/version.h"
#include "kverbs/cm_port.h"
#include "kverbs/context.h"
#include "kverbs/cq.h"
#include "kverbs/qp.h"
#include "kverbs/srq.h"

#include <linux/mutex.h>

static struct kv_device *devices;

struct client_data {
    struct list_head entry;
    struct ib_device *device;
    struct ib_client *client;
    void *data;
};

static DEFINE_MUTEX(clients_lock);
static LIST_HEAD(clients);
static LIST_HEAD(data);
static DEFINE_SPINLOCK(handlers_lock);
static LIST_HEAD(handlers);

static void tell_handlers(struct ib_event *e)
{
    struct ib_event_handler *h;
    spin_lock(&handlers_lock);
    list_for_each_entry(h, &handlers, list)
    {
        if (h->device == e->device)
            h->handler(h, e);
    }
    spin_unlock(&handlers_lock);
}

static void tell(struct ib_event *e, const struct ibv_async_event *from)
{
    switch (event_element(from->event_type)) {
    case ELEMENT_CQ:
        kv_cq_event(from->element.cq->cq_context, e);
        break;
    case ELEMENT_SRQ:
        kv_srq_event(from->element.srq->srq_context, e);
        break;
    case ELEMENT_QP:
        kv_qp_event(from->element.qp->qp_context, e);
        break;
    case ELEMENT_PORT:
        e->element.port_num = (u8)from->element.port_num;
        kv_interrupt_begin(e->device);
        tell_handlers(e);
        kv_interrupt_end();
    }
}

static void on_async(struct event_source *s)
{
    struct kv_device *d = container_of(s, struct kv_device, async);
    struct ibv_async_event from;
    if (ibv_get_async_event(d->verbs, &from) != 0)
        return;
    struct ib_event e = {.device = &d->ib, .event = (enum ib_event_type)from.event_type};
    tell(&e, &from);
    ibv_ack_async_event(&from);
}

static void fill_attrs(struct ib_device_attr *a, const struct ibv_device_attr *v)
{
    *a = (struct ib_device_attr){
        .fw_ver = version_number(v->fw_ver),
        .sys_image_guid = v->sys_image_guid,
        .max_mr_size = v->max_mr_size,
        .page_size_cap = v->page_size_cap,
        .vendor_id = v->vendor_id,
        .vendor_part_id = v->vendor_part_id,
        .hw_ver = v->hw_ver,
        .max_qp = v->max_qp,
        .max_qp_wr = v->max_qp_wr,
        .device_cap_flags =
            v->device_cap_flags | IB_DEVICE_LOCAL_DMA_LKEY | IB_DEVICE_MEM_MGT_EXTENSIONS,
        .max_sge = v->max_sge,
        .max_sge_rd = v->max_sge_rd,
        .max_cq = v->max_cq,
        .max_cqe = v->max_cqe,
        .max_mr = v->max_mw, /* each is a window */
        .max_pd = v->max_pd,
        .max_qp_rd_atom = v->max_qp_rd_atom,
        .max_res_rd_atom = v->max_res_rd_atom,
        .max_qp_init_rd_atom = v->max_qp_init_rd_atom,
        .atomic_cap = (enum ib_atomic_cap)v->atomic_cap,
        .max_mw = v->max_mw,
        .max_ah = v->max_ah,
        .max_srq = v->max_srq,
        .max_srq_wr = v->max_srq_wr,
        .max_srq_sge = v->max_srq_sge,
        .max_fast_reg_page_list_len = 65536,
        .max_pkeys = v->max_pkeys,
        .local_ca_ack_delay = v->local_ca_ack_delay,
    };
}

static int fill(struct kv_device *d)
{
    struct ibv_device_attr v;
    int e = ibv_query_device(d->verbs, &v);
    if (e)
        return e;
    struct ib_device *ib = &d->ib;
    snprintf(ib->name, sizeof ib->name, "%s", ibv_get_device_name(d->verbs->device));
    ib->dev.init_name = ib->name;
    ib->dma_device = &ib->dev;
    ib->node_guid = v.node_guid;
    ib->node_type = (u8)d->verbs->device->node_type;
    ib->phys_port_cnt = v.phys_port_cnt;
    ib->num_comp_vectors = d->verbs->num_comp_vectors;
    fill_attrs(&ib->attrs, &v);
    return 0;
}

static struct kv_device *open_device(struct ibv_context *verbs)
{
    struct kv_device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->verbs = verbs;
    d->async = (struct event_source){.fd = verbs->async_fd, .ready = on_async};
    pthread_mutex_init(&d->qps_lock, NULL);
    pthread_rwlock_init(&d->dma_lock, NULL);
    int flags = fcntl(verbs->async_fd, F_GETFL);
    fcntl(verbs->async_fd, F_SETFL, flags | O_NONBLOCK);
    if (fill(d) != 0 || event_thread_watch(&d->async) != 0) {
        free(d);
        return NULL;
    }
    return d;
}

static void add_device(struct ibv_context *verbs)
{
    struct kv_device **last = &devices;
    while (*last)
        last = &(*last)->next;
    *last = open_device(verbs);
}

static bool is_known(const char *name)
{
    const struct kv_device *d = devices;
    while (d && strcmp(d->ib.name, name) != 0)
        d = d->next;
    return d;
}

/* And those that librdmacm does not know, if any: their QPs connect by number. */
static void open_all(void)
{
    if (event_thread_get("kverbs") != 0)
        return;
    struct ibv_context **contexts = cm_port_devices();
    for (struct ibv_context **at = contexts; at && *at; at++)
        add_device(*at);
    cm_port_devices_free(contexts);
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (struct ibv_device **at = list; at && *at; at++) {
        struct ibv_context *verbs =
            is_known(ibv_get_device_name(*at)) ? NULL : ibv_open_device(*at);
        if (verbs)
            add_device(verbs);
    }
    if (list)
        ibv_free_device_list(list);
}

struct kv_device *kv_devices(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_all);
    return devices;
}

struct ib_device *kv_device_of(const struct ibv_context *verbs)
{
    struct kv_device *d = kv_devices();
    while (d && d->verbs != verbs)
        d = d->next;
    return d ? &d->ib : NULL;
}

int ib_register_client(struct ib_client *client)
{
    mutex_lock(&clients_lock);
    list_add_tail(&client->list, &clients);
    for (struct kv_device *d = kv_devices(); d && client->add; d = d->next)
        client->add(&d->ib);
    mutex_unlock(&clients_lock);
    return 0;
}

static struct client_data *find_data(struct ib_device *device, struct ib_client *client)
{
    struct client_data *c;
    list_for_each_entry(c, &data, entry)
    {
        if (c->device == device && c->client == client)
            return c;
    }
    return NULL;
}

void ib_unregister_client(struct ib_client *client)
{
    mutex_lock(&clients_lock);
    for (struct kv_device *d = kv_devices(); d; d = d->next) {
        if (client->remove)
            client->remove(&d->ib, ib_get_client_data(&d->ib, client));
        ib_set_client_data(&d->ib, client, NULL);
    }
    list_del(&client->list);
    mutex_unlock(&clients_lock);
}

/* Called from add() and remove(), too, by whom the lock of the clients is held. */
static DEFINE_SPINLOCK(data_lock);

void *ib_get_client_data(struct ib_device *device, struct ib_client *client)
{
    spin_lock(&data_lock);
    struct client_data *c = find_data(device, client);
    void *found = c ? c->data : NULL;
    spin_unlock(&data_lock);
    return found;
}

void ib_set_client_data(struct ib_device *device, struct ib_client *client, void *value)
{
    spin_lock(&data_lock);
    struct client_data *c = find_data(device, client);
    if (!c && value) {
        c = calloc(1, sizeof *c);
        BUG_ON(!c);
        c->device = device;
        c->client = client;
        list_add(&c->entry, &data);
    }
    if (c)
        c->data = value;
    if (c && !value) {
        list_del(&c->entry);
        free(c);
    }
    spin_unlock(&data_lock);
}

int ib_register_event_handler(struct ib_event_handler *h)
{
    spin_lock(&handlers_lock);
    list_add_tail(&h->list, &handlers);
    spin_unlock(&handlers_lock);
    return 0;
}

int ib_unregister_event_handler(struct ib_event_handler *h)
{
    spin_lock(&handlers_lock);
    list_del(&h->list);
    spin_unlock(&handlers_lock);
    return 0;
}

int ib_query_port(struct ib_device *device, u8 port, struct ib_port_attr *attr)
{
    struct ibv_port_attr v;
    int e = rdma_is_port_valid(device, port) ? ibv_query_port(kv_device(device)->verbs, port, &v)
                                             : EINVAL;
    if (e)
        return -e;
    *attr = (struct ib_port_attr){
        .state = (enum ib_port_state)v.state,
        .max_mtu = (enum ib_mtu)v.max_mtu,
        .active_mtu = (enum ib_mtu)v.active_mtu,
        .gid_tbl_len = v.gid_tbl_len,
        .port_cap_flags = v.port_cap_flags,
        .max_msg_sz = v.max_msg_sz,
        .pkey_tbl_len = v.pkey_tbl_len,
        .lid = v.lid,
        .active_width = v.active_width,
        .active_speed = v.active_speed,
        .phys_state = v.phys_state,
    };
    return 0;
}

int ib_query_gid(struct ib_device *device, u8 port, int index, union ib_gid *gid, void *no_attr)
{
    union ibv_gid v;
    if (no_attr || ibv_query_gid(kv_device(device)->verbs, port, index, &v) != 0)
        return -EINVAL;
    memcpy(gid->raw, v.raw, sizeof gid->raw);
    return 0;
}

int ib_query_pkey(struct ib_device *device, u8 port, u16 index, u16 *pkey)
{
    __be16 v;
    if (ibv_query_pkey(kv_device(device)->verbs, port, index, &v) != 0)
        return -EINVAL;
    *pkey = be16_to_cpu(v);
    return 0;
}

const char *ib_event_msg(enum ib_event_type event)
{
    return ibv_event_type_str((enum ibv_event_type)event);
}

const char *ib_wc_status_msg(enum ib_wc_status status)
{
    return ibv_wc_status_str((enum ibv_wc_status)status);
}
