/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct mock mock;

static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IWARP};

static struct verbs_context context = {
    .sz = sizeof(struct verbs_context),
    .context = {.device = &device, .num_comp_vectors = 1, .abi_compat = (void *)UINTPTR_MAX},
};

/* Counters are touched by several threads. */
static void count(int *counter, int by)
{
    __atomic_add_fetch(counter, by, __ATOMIC_RELAXED);
}

static int failure(void)
{
    int err = mock.fail;
    mock.fail = 0;
    return err;
}

void mock_reset(void)
{
    memset(&mock, 0, sizeof mock);
    mock.device = true;
    mock.max_depth = 128;
}

struct iw_cm *mock_cm(struct rdma_cm_id *id)
{
    return cma_id(id)->cm;
}

void mock_event_with(struct rdma_cm_id *id, struct iw_cm_event *event, const char *private_data)
{
    struct iw_cm *cm = mock_cm(id);
    event->private_data = private_data;
    event->private_data_len = private_data ? (uint16_t)strlen(private_data) : 0;
    cm->handler(cm->owner, event);
}

void mock_event(struct rdma_cm_id *id, enum iw_cm_event_type type, int status)
{
    struct iw_cm_event event = {.type = type, .status = status};
    mock_event_with(id, &event, NULL);
}

int mock_request(struct rdma_cm_id *listener, const char *private_data)
{
    struct iw_cm *cm = mock_cm(listener), *request;
    if (iw_cm_create(&request, NULL, NULL))
        return -1;
    struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_port = htons(7000)};
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_port = htons(40001)};
    inet_pton(AF_INET6, "::ffff:192.0.2.7", &local.sin6_addr);
    inet_pton(AF_INET6, "2001:db8::9", &peer.sin6_addr);
    memcpy(&request->local, &local, sizeof local);
    memcpy(&request->peer, &peer, sizeof peer);
    struct iw_cm_event event = {
        .type = IW_CM_CONNECT_REQUEST,
        .request = request,
        .initiator_depth = 5,
        .responder_resources = 6,
        .private_data = private_data,
        .private_data_len = private_data ? (uint16_t)strlen(private_data) : 0,
    };
    int r = cm->handler(cm->owner, &event);
    if (r)
        iw_cm_destroy(request);
    return r;
}

struct iw_sidr *mock_sidr(struct rdma_cm_id *id)
{
    return cma_id(id)->sidr;
}

void mock_answer(struct rdma_cm_id *id, const struct iw_cm_event *event, const char *private_data)
{
    struct iw_sidr *s = mock_sidr(id);
    struct iw_cm_event e = *event;
    e.private_data = private_data;
    e.private_data_len = private_data ? (uint16_t)strlen(private_data) : 0;
    s->handler(s->owner, &e);
}

int mock_question(struct rdma_cm_id *listener, const char *private_data)
{
    struct iw_sidr *s = mock_sidr(listener), *request;
    if (iw_sidr_create(&request, s->ps, NULL, NULL))
        return -1;
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(7000)};
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(40001)};
    inet_pton(AF_INET, "192.0.2.7", &local.sin_addr);
    inet_pton(AF_INET, "192.0.2.9", &peer.sin_addr);
    memcpy(&request->local, &local, sizeof local);
    memcpy(&request->peer, &peer, sizeof peer);
    struct iw_cm_event event = {.type = IW_CM_CONNECT_REQUEST,
                                .datagrams = request,
                                .private_data = private_data,
                                .private_data_len =
                                    private_data ? (uint16_t)strlen(private_data) : 0};
    int r = s->handler(s->owner, &event);
    if (r)
        iw_sidr_destroy(request);
    return r;
}

/* ---- cm/sidr.h ---- */

int iw_sidr_create(struct iw_sidr **s, uint16_t ps, iw_sidr_handler *handler, void *owner)
{
    int err = failure();
    if (err)
        return -err;
    *s = calloc(1, sizeof **s);
    if (!*s)
        return -ENOMEM;
    (*s)->ps = ps;
    (*s)->handler = handler;
    (*s)->owner = owner;
    count(&mock.cms, 1);
    return 0;
}

int iw_sidr_bind(struct iw_sidr *s, const struct sockaddr *addr, bool afonly)
{
    int err = failure();
    if (err)
        return -err;
    memcpy(&s->local, addr, addr_len(addr));
    if (addr_port(addr) == 0)
        addr_set_port((struct sockaddr *)&s->local, 50001);
    s->afonly = afonly;
    return 0;
}

int iw_sidr_set_afonly(struct iw_sidr *s, bool afonly)
{
    s->afonly = afonly;
    return 0;
}

int iw_sidr_set_tos(struct iw_sidr *s, uint8_t tos)
{
    s->tos = tos;
    return 0;
}

int iw_sidr_listen(struct iw_sidr *s)
{
    s->listens = true;
    return -failure();
}

static int say(struct iw_sidr *s, const struct iw_sidr_param *param)
{
    int err = failure();
    if (err)
        return -err;
    s->param = *param;
    if (param->private_data_len)
        memcpy(s->private_data, param->private_data, param->private_data_len);
    return 0;
}

int iw_sidr_ask(struct iw_sidr *s, const struct sockaddr *dst, const struct iw_sidr_param *param)
{
    memcpy(&s->dst, dst, addr_len(dst));
    return say(s, param);
}

int iw_sidr_accept(struct iw_sidr *s, const struct iw_sidr_param *param)
{
    s->accepted = true;
    return say(s, param);
}

int iw_sidr_reject(struct iw_sidr *s, const void *private_data, uint8_t len)
{
    s->rejected = true;
    return say(s, &(struct iw_sidr_param){.private_data = private_data, .private_data_len = len});
}

void iw_sidr_destroy(struct iw_sidr *s)
{
    count(&mock.cms, -1);
    free(s);
}

void iw_sidr_addresses(struct iw_sidr *s, struct sockaddr_storage *local,
                       struct sockaddr_storage *peer)
{
    if (local)
        *local = s->local;
    if (peer)
        *peer = s->peer;
}

/* ---- cm/port.h ---- */

int iw_cm_create(struct iw_cm **cm, iw_cm_handler *handler, void *owner)
{
    int err = failure();
    if (err)
        return -err;
    *cm = calloc(1, sizeof **cm);
    if (!*cm)
        return -ENOMEM;
    (*cm)->handler = handler;
    (*cm)->owner = owner;
    count(&mock.cms, 1);
    return 0;
}

void iw_cm_set_handler(struct iw_cm *cm, iw_cm_handler *handler, void *owner)
{
    cm->handler = handler;
    cm->owner = owner;
}

int iw_cm_bind(struct iw_cm *cm, const struct sockaddr *addr, bool afonly)
{
    static uint16_t next_port = 50000;
    int err = failure();
    if (err)
        return -err;
    memcpy(&cm->local, addr, addr_len(addr));
    if (addr_port(addr) == 0)
        addr_set_port((struct sockaddr *)&cm->local, next_port++);
    cm->afonly = afonly;
    return 0;
}

void iw_cm_take_strangers(struct iw_cm *cm)
{
    cm->strangers = true;
}

int iw_cm_bind_active(struct iw_cm *cm, const struct sockaddr *addr)
{
    return iw_cm_bind(cm, addr, false);
}

int iw_cm_set_afonly(struct iw_cm *cm, bool afonly)
{
    int err = failure();
    if (!err)
        cm->afonly = afonly;
    return -err;
}

int iw_cm_set_tos(struct iw_cm *cm, uint8_t tos)
{
    cm->tos = tos;
    return 0;
}

void iw_cm_will_move(struct iw_cm *cm)
{
    (void)cm;
}

int iw_cm_listen(struct iw_cm *cm, int backlog)
{
    cm->backlog = backlog;
    return -failure();
}

static int begin(struct iw_cm *cm, const struct iw_cm_param *param)
{
    int err = failure();
    if (err)
        return -err;
    cm->param = *param;
    if (param->private_data_len)
        memcpy(cm->private_data, param->private_data, param->private_data_len);
    return 0;
}

int iw_cm_connect(struct iw_cm *cm, const struct sockaddr *dst, const struct iw_cm_param *param)
{
    memcpy(&cm->dst, dst, addr_len(dst));
    return begin(cm, param);
}

int iw_cm_accept(struct iw_cm *cm, const struct iw_cm_param *param)
{
    cm->accepted = true;
    return begin(cm, param);
}

int iw_cm_reject(struct iw_cm *cm, const void *private_data, uint8_t len)
{
    cm->rejected = true;
    if (len)
        memcpy(cm->private_data, private_data, len);
    return -failure();
}

int iw_cm_disconnect(struct iw_cm *cm)
{
    cm->disconnects++;
    return -failure();
}

void iw_cm_destroy(struct iw_cm *cm)
{
    count(&mock.cms, -1);
    free(cm);
}

void iw_cm_addresses(struct iw_cm *cm, struct sockaddr_storage *local,
                     struct sockaddr_storage *peer)
{
    if (local)
        *local = cm->local;
    if (peer)
        *peer = cm->peer;
}

static void (*host_changed)(void);

void mock_host_changed(void)
{
    host_changed();
}

void iw_cm_watch_host(void (*changed)(void))
{
    host_changed = changed;
}

int iw_cm_locals(struct iw_cm_local **list)
{
    if (mock.nlocals < 0)
        return mock.nlocals;
    *list = calloc((size_t)mock.nlocals + 1, sizeof **list);
    if (!*list)
        return -ENOMEM;
    memcpy(*list, mock.locals, (size_t)mock.nlocals * sizeof **list);
    return mock.nlocals;
}

bool iw_cm_device_present(struct ibv_context *ctx)
{
    (void)ctx;
    return !mock.absent;
}

struct ibv_context *const *iw_cm_contexts(void)
{
    static struct ibv_context *const all[] = {&context.context, NULL};
    if (mock.device)
        return all;
    errno = ENODEV;
    return NULL;
}

struct ibv_context *iw_cm_context_of(const struct sockaddr *local, enum iw_cm_kind_of_device kind)
{
    struct ibv_context *const *all = iw_cm_contexts();
    (void)local, (void)kind;
    return all ? all[0] : NULL;
}

/* ---- verbs ---- */

static void *create(size_t size, int *counter)
{
    int err = failure();
    if (err) {
        errno = err;
        return NULL;
    }
    void *object = calloc(1, size);
    if (object)
        count(counter, 1);
    return object;
}

static int destroy(void *object, int *counter)
{
    count(counter, -1);
    free(object);
    return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    (void)ctx;
    memset(attr, 0, sizeof *attr);
    attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = mock.max_depth;
    return 0;
}

int(ibv_query_port)(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    (void)ctx, (void)port, (void)attr;
    return EINVAL;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    (void)ctx, (void)port, (void)index;
    memset(gid, 0x42, sizeof *gid);
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
    if (mock.cancel)
        pthread_cancel(pthread_self());
    pthread_testcancel();
    struct ibv_pd *pd = create(sizeof *pd, &mock.pds);
    if (pd)
        pd->context = ctx;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return destroy(pd, &mock.pds);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
    (void)ctx;
    return create(sizeof(struct ibv_comp_channel), &mock.channels);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    return destroy(channel, &mock.channels);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *cq = create(sizeof *cq, &mock.cqs);
    (void)vector;
    if (!cq)
        return NULL;
    cq->context = ctx;
    cq->cqe = cqe;
    cq->cq_context = cq_context;
    cq->channel = channel;
    return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    return destroy(cq, &mock.cqs);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = create(sizeof *srq, &mock.srqs);
    if (srq)
        srq->pd = pd;
    attr->attr.max_wr *= 2;
    return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    return destroy(srq, &mock.srqs);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_qp *qp = create(sizeof *qp, &mock.qps);
    if (!qp)
        return NULL;
    qp->pd = pd;
    qp->send_cq = attr->send_cq;
    qp->recv_cq = attr->recv_cq;
    qp->srq = attr->srq;
    qp->context = &context.context;
    qp->qp_num = 77;
    qp->qp_type = attr->qp_type;
    attr->cap.max_inline_data = 512;
    return qp;
}

struct ibv_qp *iw_cm_create_qp(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
    (void)c;
    return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr); /* it begins like that */
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    return destroy(qp, &mock.qps);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_STATE)
        qp->state = attr->qp_state;
    if (mask & IBV_QP_QKEY)
        mock.qkey = attr->qkey;
    return failure();
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    int err = failure();
    (void)qp, (void)gid, (void)lid;
    mock.attached += !err;
    return err;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    mock.attached--;
    return failure();
}

void iw_cm_at_fork(void (*outer)(enum fork_step))
{
    (void)outer;
}

bool iw_cm_in_the_clear(const char *call)
{
    (void)call;
    return true;
}

void iw_cm_advise(enum iw_finding finding, const char *object, const char *sentence)
{
    (void)finding, (void)object, (void)sentence;
}

void iw_cm_life_begin(const void *object, const char *kind)
{
    (void)object, (void)kind;
}

void iw_cm_life_end(void *object)
{
    free(object);
}

void *iw_cm_lend(const void *data, size_t len)
{
    (void)data, (void)len;
    return NULL;
}

void iw_cm_lend_over(void *lent)
{
    (void)lent;
}

bool iw_cm_life_over(const void *object, const char *call)
{
    (void)object, (void)call;
    return false;
}

struct iw_recorded iw_cm_record(const char *call, const void *object)
{
    (void)call, (void)object;
    return (struct iw_recorded){NULL, 0};
}

void iw_cm_record_end(struct iw_recorded r, int result)
{
    (void)r, (void)result;
}

void iw_cm_record_raised(const char *event, const void *id, int status)
{
    (void)event, (void)id, (void)status;
}

void iw_cm_record_got(const char *event, const void *id, int status)
{
    (void)event, (void)id, (void)status;
}

bool iw_cm_chaos(enum iw_fault fault, const void *object)
{
    (void)fault, (void)object;
    return false;
}

void iw_cm_resume(struct iw_cm *cm)
{
    (void)cm;
}

int iw_cm_wait(int fd)
{
    return iw_eventfd_wait(fd);
}
