/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests/abi/aix_orders.sh compiles, in C and in C++, with headers that it chooses in front of
 * this: the rules for errors of AIX are in force wherever one of ours was included. Linked against
 * the libraries and run: status 0 if all is so.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(const char *call, int found, int wanted)
{
    if (found == wanted)
        return;
    fprintf(stderr, "%s: %d, wanted %d\n", call, found, wanted);
    failures++;
}

#define EXPECT(call, wanted) expect(#call, call, wanted)

static void verbs(void)
{
    struct ibv_wc wc;
    struct ibv_qp_attr attr;
    struct ibv_port_attr port;
    struct ibv_context context;
    struct ibv_qp qp;
    struct ibv_sge sge;
    struct ibv_recv_wr receive, *bad_receive;
    struct ibv_send_wr send, *bad_send;
    memset(&attr, 0, sizeof attr);
    memset(&context, 0, sizeof context);
    memset(&qp, 0, sizeof qp);
    memset(&sge, 0, sizeof sge);
    memset(&receive, 0, sizeof receive);
    memset(&send, 0, sizeof send);
    EXPECT(ibv_poll_cq(NULL, 1, &wc), -EINVAL);
    EXPECT(ibv_req_notify_cq(NULL, 0), EINVAL);
    EXPECT(ibv_query_port(NULL, 1, &port), EINVAL);
    EXPECT(ibv_modify_qp(&qp, &attr, IBV_QP_STATE), EINVAL);
    EXPECT(ibv_resize_cq(NULL, 1), ENOSYS);
    EXPECT(ibv_query_qp(&qp, &attr, IBV_QP_STATE, NULL), ENOSYS);
    EXPECT(ibv_attach_mcast(&qp, NULL, 0), ENOSYS);
    EXPECT(ibv_detach_mcast(&qp, NULL, 0), ENOSYS);
    EXPECT(ibv_fork_init(), ENOSYS);
    EXPECT(strcmp(ibv_node_type_str(IBV_NODE_UNKNOWN), "<<unknown>>"), 0);
    qp.context = &context; /* whose operations nobody may call */
    EXPECT(ibv_post_recv(&qp, &receive, &bad_receive), EINVAL);
    EXPECT(ibv_post_send(&qp, &send, &bad_send), EINVAL);
    send.sg_list = &sge;
    send.opcode = IBV_WR_SEND_WITH_IMM;
    EXPECT(ibv_post_send(&qp, &send, &bad_send), ENOTSUP);
    EXPECT(bad_send == &send, 1);
}

#ifdef RDMA_CMA_H
static void cm(void)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    EXPECT(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), -EINVAL);
    EXPECT(rdma_get_cm_event(NULL, &event), -EINVAL);
    EXPECT(rdma_set_option(NULL, 0, 0, NULL, 0), -ENOSYS);
}
#else
static void cm(void)
{
}
#endif

int main(void)
{
    verbs();
    cm();
    return failures != 0;
}
