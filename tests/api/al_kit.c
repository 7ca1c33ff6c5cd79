/* SPDX-License-Identifier: BSD-2-Clause */
#include "al_kit.h"

#include <arpa/inet.h>
#include <complib/cl_thread.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

void al_open(struct al_world *world)
{
    size_t count = 1;
    OK(ib_open_al(&world->al));
    IS(ib_get_ca_guids(world->al, NULL, &count), INSUFFICIENT_MEMORY);
    assert_true(count >= 1);
    ib_net64_t guids[16];
    count = 16;
    OK(ib_get_ca_guids(world->al, guids, &count));
    world->guid = guids[0];
    OK(ib_open_ca(world->al, world->guid, NULL, NULL, &world->ca));
    OK(ib_alloc_pd(world->ca, IB_PDT_NORMAL, NULL, &world->pd));
}

void al_close(struct al_world *world)
{
    OK(ib_close_al(world->al));
}

struct al_world w;

int al_setup(void **state)
{
    (void)state;
    al_open(&w);
    return 0;
}

int al_teardown(void **state)
{
    (void)state;
    al_close(&w);
    return 0;
}

void al_await(atomic_int *count, int at_least)
{
    for (int ms = 0; *count < at_least; ms++) {
        if (ms == PATIENCE_MS)
            fail_msg("%d callbacks, wanted %d", *count, at_least);
        cl_thread_suspend(1);
    }
}

void al_count(void *context)
{
    ++*(atomic_int *)context;
}

/* ---- one end ---- */

static void completed(const ib_cq_handle_t h_cq, void *context)
{
    struct al_end *e = context;
    assert_ptr_equal(h_cq, e->cq);
    e->completions++;
}

static void happened(ib_async_event_rec_t *rec)
{
    struct al_end *e = ((struct al_end **)rec->context)[0];
    e->event_handle = rec->handle.h_qp;
    e->event = (int)rec->code;
    e->events++;
}

static void cq_happened(ib_async_event_rec_t *rec)
{
    struct al_end *e = rec->context;
    e->event_handle = rec->handle.h_cq;
    e->event = (int)rec->code;
    e->events++;
}

ib_qp_create_t al_end_create(const struct al_end *e)
{
    return (ib_qp_create_t){
        .qp_type = IB_QPT_RELIABLE_CONN,
        .sq_depth = 32,
        .rq_depth = 32,
        .sq_sge = 2,
        .rq_sge = 2,
        .h_sq_cq = e->cq,
        .h_rq_cq = e->cq,
        .sq_signaled = TRUE,
    };
}

/* The context of a queue pair is a pointer to the end it is of, and behind it that to its link. */
static struct al_contexts {
    struct al_end *end;
    struct al_link *link;
} contexts[64];
static atomic_uint next_context;

static struct al_link *link_of(const void *context)
{
    return ((const struct al_contexts *)context)->link;
}

static struct al_link *the_link;

void al_end_queue(struct al_end *e, const ib_qp_create_t *how)
{
    struct al_contexts *c = &contexts[next_context++ % 64];
    *c = (struct al_contexts){e, the_link};
    if (e->qp)
        OK(ib_destroy_qp(e->qp, ib_sync_destroy));
    OK(ib_create_qp(e->w->pd, how, c, happened, &e->qp));
}

void al_end_make(struct al_end *e, struct al_world *world)
{
    *e = (struct al_end){.w = world};
    ib_cq_create_t cq = {.size = 64, .pfn_comp_cb = completed};
    OK(ib_create_cq(world->ca, &cq, e, cq_happened, &e->cq));
    ib_mr_create_t mr = {
        .vaddr = e->data,
        .length = sizeof e->data,
        .access_ctrl =
            IB_AC_LOCAL_WRITE | IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC | IB_AC_MW_BIND,
    };
    OK(ib_reg_mem(world->pd, &mr, &e->lkey, &e->rkey, &e->mr));
    ib_qp_create_t how = al_end_create(e);
    al_end_queue(e, &how);
}

void al_end_drop(struct al_end *e)
{
    OK(ib_destroy_qp(e->qp, ib_sync_destroy));
    OK(ib_destroy_cq(e->cq, ib_sync_destroy));
    OK(ib_dereg_mr(e->mr));
}

void al_recv(struct al_end *e, unsigned word)
{
    ib_local_ds_t ds = {(uintptr_t)&e->data[word], 8, e->lkey};
    ib_recv_wr_t wr = {.wr_id = 100 + word, .num_ds = 1, .ds_array = &ds};
    OK(ib_post_recv(e->qp, &wr, NULL));
}

ib_send_wr_t al_wr(struct al_end *e, ib_local_ds_t *ds, unsigned word, ib_wr_type_t type)
{
    *ds = (ib_local_ds_t){(uintptr_t)&e->data[word], 8, e->lkey};
    return (ib_send_wr_t){.wr_id = word, .ds_array = ds, .num_ds = 1, .wr_type = type};
}

ib_api_status_t al_post(struct al_end *e, ib_send_wr_t *wr)
{
    ib_send_wr_t *failure = NULL;
    ib_api_status_t status = ib_post_send(e->qp, wr, &failure);
    if (status != IB_SUCCESS)
        assert_ptr_equal(failure, wr);
    return status;
}

ib_wc_t al_poll(struct al_end *e)
{
    ib_wc_t wc = {0}, *unused = &wc, *done = NULL;
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (ib_poll_cq(e->cq, &unused, &done) == IB_SUCCESS)
            return wc;
        cl_thread_suspend(1);
    }
    fail_msg("no completion");
    return wc;
}

/* ---- a connection ---- */

static void saw_req(ib_cm_req_rec_t *rec)
{
    struct al_link *l = (struct al_link *)(uintptr_t)rec->context;
    l->req = rec->h_cm_req;
    memcpy(l->private_data, rec->p_req_pdata, IB_REQ_PDATA_SIZE);
    if (l->reply)
        ib_cm_rep(rec->h_cm_req, &l->how); /* if the queue pair is gone the peer hears of it */
    l->reqs++;
}

static void saw_rep(ib_cm_rep_rec_t *rec)
{
    struct al_link *l = link_of(rec->qp_context);
    ib_cm_rtu_t rtu = al_ready();
    l->rep = rec->h_cm_rep;
    memcpy(l->private_data, rec->p_rep_pdata, IB_REP_PDATA_SIZE);
    if (l->ready)
        ib_cm_rtu(rec->h_cm_rep, &rtu);
    l->reps++;
}

static void saw_rtu(ib_cm_rtu_rec_t *rec)
{
    link_of(rec->qp_context)->rtus++;
}

static void saw_rej(ib_cm_rej_rec_t *rec)
{
    struct al_link *l = link_of(rec->qp_context);
    l->rej_status = rec->rej_status;
    memcpy(l->private_data, rec->p_rej_pdata, IB_REJ_PDATA_SIZE);
    l->rejs++;
}

void al_saw_dreq(ib_cm_dreq_rec_t *rec)
{
    struct al_link *l = link_of(rec->qp_context);
    l->dreq = rec->h_cm_dreq;
    l->dreqs++;
}

void al_saw_drep(ib_cm_drep_rec_t *rec)
{
    struct al_link *l = link_of(rec->qp_context);
    OK(rec->cm_status);
    l->dreps++;
}

/* A port that nobody has, of IPv6 either where there is that. */
uint16_t al_free_port(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t len = sizeof six;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&six, sizeof six) == 0 &&
        getsockname(fd, (struct sockaddr *)&six, &len) == 0) {
        close(fd);
        return ntohs(six.sin6_port);
    }
    close(fd);
    len = sizeof four;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&four, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&four, &len), 0);
    close(fd);
    return ntohs(four.sin_port);
}

void al_link_listen(struct al_link *l, struct al_world *world)
{
    *l = (struct al_link){.reply = true, .ready = true};
    the_link = l;
    al_end_make(&l->a, world);
    al_end_make(&l->b, world);
    l->how = al_reply(l);
    ib_cm_listen_t listen = {.pfn_cm_req_cb = saw_req, .qp_type = IB_QPT_RELIABLE_CONN};
    ib_api_status_t status;
    int tries = 0;
    do {
        l->svc_id = CL_HTON64(0x1060000ULL | al_free_port());
        listen.svc_id = l->svc_id;
        status = ib_cm_listen(world->al, &listen, l, &l->listen);
    } while (status == IB_INVALID_SETTING && ++tries < 100);
    OK(status);
}

ib_path_rec_t al_loopback(void)
{
    return (ib_path_rec_t){
        .dgid.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
    };
}

ib_cm_req_t al_request(struct al_link *l, ib_path_rec_t *path)
{
    return (ib_cm_req_t){
        .svc_id = l->svc_id,
        .p_primary_path = path,
        .pfn_cm_rep_cb = saw_rep,
        .pfn_cm_rej_cb = saw_rej,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .h_qp = l->a.qp,
        .resp_res = 4,
        .init_depth = 4,
    };
}

void al_link_request(struct al_link *l)
{
    ib_path_rec_t path = al_loopback();
    ib_cm_req_t req = al_request(l, &path);
    OK(ib_cm_req(&req));
}

ib_cm_rep_t al_reply(struct al_link *l)
{
    return (ib_cm_rep_t){
        .h_qp = l->b.qp,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .access_ctrl = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC | IB_AC_LOCAL_WRITE,
        .init_depth = 4,
        .pfn_cm_rej_cb = saw_rej,
        .pfn_cm_rtu_cb = saw_rtu,
        .pfn_cm_dreq_cb = al_saw_dreq,
    };
}

ib_cm_rtu_t al_ready(void)
{
    return (ib_cm_rtu_t){
        .access_ctrl = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC | IB_AC_LOCAL_WRITE,
        .pfn_cm_dreq_cb = al_saw_dreq,
    };
}

void al_link_connect(struct al_link *l, struct al_world *world)
{
    al_link_listen(l, world);
    al_link_request(l);
    al_await(&l->reps, 1);
    al_await(&l->rtus, 1);
}

void al_link_close(struct al_link *l)
{
    OK(ib_cm_cancel(l->listen, ib_sync_destroy));
    al_end_drop(&l->a);
    al_end_drop(&l->b);
}
