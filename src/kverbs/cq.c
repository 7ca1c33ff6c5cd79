/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/cq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kverbs/census.h"
#include "kverbs/context.h"
#include "kverbs/qp.h"

void kv_cq_event(struct kv_cq *cq, struct ib_event *e)
{
    e->element.cq = &cq->ib;
    if (!cq->ib.event_handler)
        return;
    kv_interrupt_begin(cq);
    cq->ib.event_handler(e, cq->ib.cq_context);
    kv_interrupt_end();
}

/* Are there enough? If not, the next completion is to tell. */
static bool enough_locked(struct kv_cq *cq)
{
    if (fifo_pull(&cq->fifo, cq->enough) >= (int)cq->enough)
        return true;
    ibv_req_notify_cq(cq->verb, 0);
    return fifo_pull(&cq->fifo, cq->enough) >= (int)cq->enough;
}

/* Each request is answered once; an answer is to all that were asked. */
static void notify(struct kv_cq *cq)
{
    pthread_mutex_lock(&cq->lock);
    bool tell = cq->asked || (cq->enough > 0 && enough_locked(cq));
    if (tell) {
        cq->asked = false;
        cq->enough = 0;
    }
    pthread_mutex_unlock(&cq->lock);
    if (!tell || !cq->ib.comp_handler)
        return;
    kv_interrupt_begin(cq);
    cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
    kv_interrupt_end();
}

static void on_event(struct event_source *s)
{
    struct kv_cq *cq = container_of(s, struct kv_cq, events);
    struct ibv_cq *from;
    void *context;
    if (ibv_get_cq_event(cq->channel, &from, &context) != 0)
        return;
    ibv_ack_cq_events(from, 1);
    notify(cq);
}

static void on_kick(struct event_source *s)
{
    uint64_t n;
    if (read(s->fd, &n, sizeof n) == (ssize_t)sizeof n)
        notify(container_of(s, struct kv_cq, kick));
}

static void free_cq(struct kv_cq *cq)
{
    event_thread_forget(&cq->events);
    event_thread_forget(&cq->kick);
    if (cq->channel)
        ibv_destroy_comp_channel(cq->channel);
    if (cq->kick.fd >= 0)
        close(cq->kick.fd);
    fifo_fini(&cq->fifo);
    pthread_mutex_destroy(&cq->lock);
    free(cq);
}

/* @return 0, or errno */
static int open_cq(struct kv_cq *cq, const struct ib_cq_init_attr *attr)
{
    struct ibv_context *verbs = kv_device(cq->ib.device)->verbs;
    cq->channel = ibv_create_comp_channel(verbs);
    cq->kick.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!cq->channel || cq->kick.fd < 0)
        return errno;
    cq->events.fd = cq->channel->fd;
    int flags = fcntl(cq->events.fd, F_GETFL);
    fcntl(cq->events.fd, F_SETFL, flags | O_NONBLOCK);
    int e = event_thread_watch(&cq->events);
    if (e == 0)
        e = event_thread_watch(&cq->kick);
    if (e)
        return e;
    cq->verb = ibv_create_cq(verbs, (int)attr->cqe, cq, cq->channel, attr->comp_vector);
    return cq->verb ? 0 : errno;
}

struct ib_cq *ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
                           void (*event_handler)(struct ib_event *, void *), void *cq_context,
                           const struct ib_cq_init_attr *cq_attr)
{
    might_sleep();
    if (cq_attr->flags)
        return ERR_PTR(-EOPNOTSUPP);
    struct kv_cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return ERR_PTR(-ENOMEM);
    cq->ib.device = device;
    cq->ib.comp_handler = comp_handler;
    cq->ib.event_handler = event_handler;
    cq->ib.cq_context = cq_context;
    cq->events.ready = on_event;
    cq->kick.ready = on_kick;
    pthread_mutex_init(&cq->lock, NULL);
    int e = open_cq(cq, cq_attr);
    if (e) {
        free_cq(cq);
        return ERR_PTR(-e);
    }
    cq->fifo.cq = cq->verb;
    cq->ib.cqe = cq->verb->cqe;
    kv_count(KV_CQ, 1);
    return &cq->ib;
}

int ib_destroy_cq(struct ib_cq *ib)
{
    might_sleep();
    struct kv_cq *cq = kv_cq(ib);
    if (atomic_read(&ib->usecnt) > 0)
        return -EBUSY;
    if (kv_interrupted_for() == cq) {
        printk(KERN_ERR "%s: a CQ's handler destroys the CQ\n", ib->device->name);
        return -EDEADLK;
    }
    event_thread_forget(&cq->events);
    event_thread_forget(&cq->kick);
    if (ib->poll_ctx == IB_POLL_WORKQUEUE) /* its handler may have queued it just now */
        cancel_work_sync(&ib->work);
    int e = ibv_destroy_cq(cq->verb);
    if (e)
        return -e;
    free_cq(cq);
    kv_count(KV_CQ, -1);
    return 0;
}

int ib_resize_cq(struct ib_cq *ib, int cqe)
{
    might_sleep();
    struct kv_cq *cq = kv_cq(ib);
    int e = ibv_resize_cq(cq->verb, cqe);
    ib->cqe = cq->verb->cqe;
    return -e;
}

int ib_modify_cq(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
    struct ibv_modify_cq_attr attr = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = {.cq_count = cq_count, .cq_period = cq_period},
    };
    int e = ibv_modify_cq(kv_cq(cq)->verb, &attr);
    return e == EOPNOTSUPP ? -ENOSYS : -e;
}

static enum ib_wc_opcode opcode_of(enum ibv_wc_opcode v)
{
    switch (v) {
    case IBV_WC_BIND_MW:
        return IB_WC_REG_MR;
    case IBV_WC_LOCAL_INV:
        return IB_WC_LOCAL_INV;
    case IBV_WC_TSO:
        return IB_WC_LSO;
    default:
        return (enum ib_wc_opcode)v;
    }
}

static int flags_of(unsigned v)
{
    return (v & IBV_WC_GRH ? IB_WC_GRH : 0) | (v & IBV_WC_WITH_IMM ? IB_WC_WITH_IMM : 0) |
           (v & IBV_WC_WITH_INV ? IB_WC_WITH_INVALIDATE : 0) |
           (v & IBV_WC_IP_CSUM_OK ? IB_WC_IP_CSUM_OK : 0);
}

static void convert(struct kv_device *d, struct ib_wc *wc, const struct ibv_wc *v)
{
    *wc = (struct ib_wc){
        .wr_id = v->wr_id,
        .status = (enum ib_wc_status)v->status,
        .opcode = opcode_of(v->opcode),
        .vendor_err = v->vendor_err,
        .byte_len = v->byte_len,
        .ex.imm_data = v->imm_data,
        .src_qp = v->src_qp,
        .slid = v->slid,
        .wc_flags = flags_of(v->wc_flags),
        .pkey_index = v->pkey_index,
        .sl = v->sl,
        .dlid_path_bits = v->dlid_path_bits,
        .port_num = 1,
    };
    wc->qp = kv_qp_completed(d, v);
}

int ib_poll_cq(struct ib_cq *ib, int num_entries, struct ib_wc *wc)
{
    enum { SOME = 16 };
    struct kv_cq *cq = kv_cq(ib);
    struct kv_device *d = kv_device(ib->device);
    int done = 0;
    pthread_mutex_lock(&cq->lock);
    while (done < num_entries) {
        struct ibv_wc some[SOME];
        int want = min(num_entries - done, (int)SOME);
        int n = fifo_poll(&cq->fifo, want, some);
        if (n < 0) {
            done = done > 0 ? done : n;
            break;
        }
        for (int i = 0; i < n; i++)
            convert(d, &wc[done + i], &some[i]);
        done += n;
        if (n < want)
            break;
    }
    pthread_mutex_unlock(&cq->lock);
    return done;
}

int ib_peek_cq(struct ib_cq *ib, int wc_cnt)
{
    if (wc_cnt < 0)
        return -EINVAL;
    struct kv_cq *cq = kv_cq(ib);
    pthread_mutex_lock(&cq->lock);
    int n = fifo_pull(&cq->fifo, (u32)wc_cnt);
    pthread_mutex_unlock(&cq->lock);
    return min(n, wc_cnt);
}

int ib_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
    struct kv_cq *cq = kv_cq(ib);
    int which = flags & IB_CQ_SOLICITED_MASK;
    if (which == 0 || which == IB_CQ_SOLICITED_MASK)
        return -EINVAL;
    pthread_mutex_lock(&cq->lock);
    cq->asked = true;
    int ret = -ibv_req_notify_cq(cq->verb, which == IB_CQ_SOLICITED);
    if (ret == 0 && flags & IB_CQ_REPORT_MISSED_EVENTS)
        ret = fifo_pull(&cq->fifo, 1) > 0;
    pthread_mutex_unlock(&cq->lock);
    return ret;
}

int ib_req_ncomp_notif(struct ib_cq *ib, int wc_cnt)
{
    struct kv_cq *cq = kv_cq(ib);
    if (wc_cnt <= 0 || wc_cnt > ib->cqe)
        return -EINVAL;
    pthread_mutex_lock(&cq->lock);
    cq->enough = (u32)wc_cnt;
    bool now = enough_locked(cq);
    pthread_mutex_unlock(&cq->lock);
    if (now && write(cq->kick.fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return -errno;
    return 0;
}
