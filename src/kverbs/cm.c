/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/cm_port.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compat/thread.h"
#include "kverbs/census.h"
#include "kverbs/pd.h"
#include "kverbs/qp.h"

#include <linux/mutex.h>
#include <rdma/rdma_cm.h>

struct kv_id {
    struct rdma_cm_id ib;
    void *port;
    bool dying;
};

static DEFINE_MUTEX(lock);
static bool runs; /* the thread that calls handlers */
static __thread struct {
    struct kv_id *id; /* whose handler the thread is in */
    bool destroyed;   /* there */
} here;

static struct kv_id *kv_id(const struct rdma_cm_id *id)
{
    return container_of(id, struct kv_id, ib);
}

static void refresh(struct kv_id *id)
{
    id->ib.device = kv_device_of(cm_port_verbs(id->port));
    id->ib.port_num = cm_port_number(id->port);
    cm_port_addresses(id->port, &id->ib.route.addr.src_addr, &id->ib.route.addr.dst_addr);
}

static struct kv_id *new_id(rdma_cm_event_handler handler, void *context, enum rdma_port_space ps,
                            enum ib_qp_type type)
{
    struct kv_id *id = calloc(1, sizeof *id);
    if (!id)
        return NULL;
    id->ib.event_handler = handler;
    id->ib.context = context;
    id->ib.ps = ps;
    id->ib.qp_type = type;
    kv_count(KV_ID, 1);
    return id;
}

static void free_id(struct kv_id *id)
{
    free(id);
    kv_count(KV_ID, -1);
}

static void destroy(struct kv_id *id)
{
    if (id->ib.qp)
        kv_qp_disown(kv_qp(id->ib.qp));
    cm_port_destroy(id->port);
    free_id(id);
}

static struct kv_id *adopt(struct kv_id *listener, void *port)
{
    const struct rdma_cm_id *l = &listener->ib;
    struct kv_id *id = new_id(l->event_handler, l->context, l->ps, l->qp_type);
    if (!id)
        return NULL;
    id->port = port;
    cm_port_own(port, id);
    return id;
}

static struct rdma_cm_event to_kernel(const struct cm_port_event *e)
{
    return (struct rdma_cm_event){
        .event = (enum rdma_cm_event_type)e->event,
        .status = e->status,
        .param.conn = {.private_data = e->param.private_data,
                       .private_data_len = e->param.private_data_len,
                       .responder_resources = e->param.responder_resources,
                       .initiator_depth = e->param.initiator_depth,
                       .flow_control = e->param.flow_control,
                       .retry_count = e->param.retry_count,
                       .rnr_retry_count = e->param.rnr_retry_count,
                       .srq = e->param.srq,
                       .qp_num = e->param.qp_num},
    };
}

/* The event is held meanwhile, so that rdma_destroy_id() elsewhere waits for the handler; what that
 * returns does not count then. */
static void handle(struct cm_port_event *e)
{
    struct kv_id *id = e->owner;
    if (e->new_port) {
        id = adopt(id, e->new_port);
        if (!id) {
            cm_port_ack(e);
            cm_port_destroy(e->new_port);
            return;
        }
    }
    refresh(id);
    struct rdma_cm_event event = to_kernel(e);
    here.id = id;
    here.destroyed = false;
    int ret = id->ib.event_handler(&id->ib, &event);
    here.id = NULL;
    /* Before it is acknowledged: then who destroys it elsewhere goes on. */
    bool ends = (ret || here.destroyed) && !__atomic_exchange_n(&id->dying, true, __ATOMIC_SEQ_CST);
    cm_port_ack(e);
    if (ends)
        destroy(id);
}

static void *serve(void *arg)
{
    struct pollfd p = {.fd = (int)(intptr_t)arg, .events = POLLIN};
    for (;;) {
        struct cm_port_event e;
        if (poll(&p, 1, -1) == 1 && cm_port_next(&e) == 0)
            handle(&e);
    }
    return NULL;
}

/* One thread for the ids of the whole program; it ends with that. */
static int start(void)
{
    int fd = cm_port_open();
    if (fd < 0)
        return fd;
    pthread_t thread;
    int e = thread_start(&thread, serve, (void *)(intptr_t)fd);
    if (e)
        return -e;
    pthread_setname_np(thread, "rdma_cm");
    pthread_detach(thread);
    return 0;
}

static int run(void)
{
    mutex_lock(&lock);
    int ret = runs ? 0 : start();
    runs = runs || ret == 0;
    mutex_unlock(&lock);
    return ret;
}

struct rdma_cm_id *rdma_create_id(struct net *net, rdma_cm_event_handler event_handler,
                                  void *context, enum rdma_port_space ps, enum ib_qp_type qp_type)
{
    (void)net;
    might_sleep();
    int ret = kv_devices() ? run() : -ENODEV;
    if (ret)
        return ERR_PTR(ret);
    struct kv_id *id = new_id(event_handler, context, ps, qp_type);
    if (!id)
        return ERR_PTR(-ENOMEM);
    int e = cm_port_create(&id->port, id, (int)ps);
    if (e) {
        free_id(id);
        return ERR_PTR(-e);
    }
    return &id->ib;
}

void rdma_destroy_id(struct rdma_cm_id *ib)
{
    might_sleep();
    struct kv_id *id = kv_id(ib);
    if (here.id == id) {
        printk(KERN_ERR
               "rdma_cm: an id's handler destroys the id; it should return other than 0\n");
        here.destroyed = true;
        return;
    }
    if (!__atomic_exchange_n(&id->dying, true, __ATOMIC_SEQ_CST))
        destroy(id);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    int e = cm_port_bind(kv_id(id)->port, addr);
    if (e == 0)
        refresh(kv_id(id));
    return -e;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
    return -cm_port_resolve_addr(kv_id(id)->port, src_addr, dst_addr, timeout_ms);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    return -cm_port_resolve_route(kv_id(id)->port, timeout_ms);
}

int rdma_create_qp(struct rdma_cm_id *ib, struct ib_pd *pd, struct ib_qp_init_attr *init)
{
    might_sleep();
    struct kv_id *id = kv_id(ib);
    if (ib->device != pd->device || ib->qp)
        return -EINVAL;
    struct ibv_qp_init_attr v;
    struct kv_qp *qp = kv_qp_begin(pd, init, &v);
    if (IS_ERR(qp))
        return (int)PTR_ERR(qp);
    struct ibv_qp *verb = cm_port_create_qp(id->port, kv_pd(pd)->verb, &v);
    if (!verb) {
        int e = errno;
        kv_qp_abort(qp);
        return -e;
    }
    kv_qp_finish(qp, verb, init, &v);
    qp->port = id->port;
    qp->held = &ib->qp;
    ib->qp = &qp->ib;
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
    if (id->qp)
        ib_destroy_qp(id->qp);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr, int *qp_attr_mask)
{
    struct ibv_qp_attr v = {.qp_state = (enum ibv_qp_state)qp_attr->qp_state};
    int e = cm_port_init_qp_attr(kv_id(id)->port, &v, qp_attr_mask);
    if (e)
        return -e;
    *qp_attr = kv_qp_attr_from_verb(&v);
    return 0;
}

static struct cm_port_param to_port(const struct rdma_conn_param *p)
{
    return (struct cm_port_param){
        .private_data = p->private_data,
        .private_data_len = p->private_data_len,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .flow_control = p->flow_control,
        .retry_count = p->retry_count,
        .rnr_retry_count = p->rnr_retry_count,
        .srq = p->srq,
        .qp_num = p->qp_num,
    };
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    struct cm_port_param p = to_port(conn_param);
    return -cm_port_connect(kv_id(id)->port, &p);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    struct cm_port_param p = to_port(conn_param);
    return -cm_port_accept(kv_id(id)->port, &p);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    int e = cm_port_listen(kv_id(id)->port, backlog);
    if (e == 0)
        refresh(kv_id(id));
    return -e;
}

int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event)
{
    return -cm_port_notify(kv_id(id)->port, (enum ibv_event_type)event);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, u8 private_data_len)
{
    return -cm_port_reject(kv_id(id)->port, private_data, private_data_len);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
    return -cm_port_disconnect(kv_id(id)->port);
}

void rdma_set_service_type(struct rdma_cm_id *id, int tos)
{
    cm_port_set(kv_id(id)->port, CM_PORT_TOS, tos);
}

int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse)
{
    return -cm_port_set(kv_id(id)->port, CM_PORT_REUSEADDR, reuse);
}

int rdma_set_afonly(struct rdma_cm_id *id, int afonly)
{
    return -cm_port_set(kv_id(id)->port, CM_PORT_AFONLY, afonly);
}

const char *rdma_event_msg(enum rdma_cm_event_type event)
{
    return cm_port_event_text((int)event);
}

/* iWARP's CM gives an errno: that nobody listens, or that the program there refused. */
bool rdma_is_consumer_reject(struct rdma_cm_id *id, int reason)
{
    (void)id;
    return abs(reason) == ECONNREFUSED;
}

const char *rdma_reject_msg(struct rdma_cm_id *id, int reason)
{
    return rdma_is_consumer_reject(id, reason) ? "refused" : strerror(abs(reason));
}

const void *rdma_consumer_reject_data(struct rdma_cm_id *id, struct rdma_cm_event *event,
                                      u8 *data_len)
{
    bool has = rdma_is_consumer_reject(id, event->status) && event->param.conn.private_data_len > 0;
    *data_len = has ? event->param.conn.private_data_len : 0;
    return has ? event->param.conn.private_data : NULL;
}
