/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a libibverbs does for a program, done by hand: a device is opened, memory registered, a
 * completion queue polled by the kernel's commands alone, which anywarp answers in the process.
 *
 *     cc uverbs_commands.c $(pkg-config --cflags --libs libibverbs) -lanywarp-uverbs -o uverbs
 *     uverbs [DEVICE]
 */
#include <anywarp/uverbs.h>
#include <err.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>

static int device;
static char memory[4096];

/*
 * Every command is a header, which counts its words of four bytes, and a struct, which begins with
 * the address of the response if there is one.
 */
static void command(uint32_t number, const char *name, void *in, size_t in_len, void *out,
                    size_t out_len)
{
    uint64_t bytes[32], address = (uintptr_t)out;
    struct ib_uverbs_cmd_hdr hdr = {number, (uint16_t)((sizeof hdr + in_len) / 4),
                                    (uint16_t)(out_len / 4)};
    if (out)
        memcpy(in, &address, sizeof address);
    memcpy(bytes, &hdr, sizeof hdr);
    memcpy((char *)bytes + sizeof hdr, in, in_len);
    if (anywarp_uverbs_write(device, bytes, sizeof hdr + in_len) < 0)
        err(1, "%s", name);
}

#define COMMAND(name, in, in_len, out)                                                             \
    command(IB_USER_VERBS_CMD_##name, #name, in, in_len, out, sizeof *(out))
#define TELL(name, in, in_len) command(IB_USER_VERBS_CMD_##name, #name, in, in_len, NULL, 0)

/* A receive: the command's struct, behind it the work request, and behind that its piece of memory.
 */
static void post_receive(uint32_t qp, uint32_t lkey)
{
    uint64_t in[(sizeof(struct ib_uverbs_post_recv) + sizeof(struct ib_uverbs_recv_wr) +
                 sizeof(struct ib_uverbs_sge)) /
                8];
    struct ib_uverbs_post_recv *head = (void *)in;
    struct ib_uverbs_recv_wr *wr = (void *)(head + 1);
    struct ib_uverbs_sge *sge = (void *)(wr + 1);
    struct ib_uverbs_post_recv_resp resp;
    *head = (struct ib_uverbs_post_recv){
        .qp_handle = qp, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof *wr};
    *wr = (struct ib_uverbs_recv_wr){.wr_id = 4711, .num_sge = 1};
    *sge = (struct ib_uverbs_sge){(uintptr_t)memory, sizeof memory, lkey};
    COMMAND(POST_RECV, in, sizeof in, &resp);
}

static void modify(uint32_t qp, enum ibv_qp_state state, uint32_t mask)
{
    struct ib_uverbs_modify_qp in = {
        .qp_handle = qp, .attr_mask = IBV_QP_STATE | mask, .qp_state = (uint8_t)state};
    in.port_num = 1;
    TELL(MODIFY_QP, &in, 112);
}

static void poll(uint32_t cq)
{
    struct ib_uverbs_poll_cq in = {.cq_handle = cq, .ne = 1};
    uint64_t out[(sizeof(struct ib_uverbs_poll_cq_resp) + sizeof(struct ib_uverbs_wc)) / 8];
    const struct ib_uverbs_poll_cq_resp *head = (void *)out;
    const struct ib_uverbs_wc *wc = (const void *)(head + 1);
    COMMAND(POLL_CQ, &in, sizeof in, &out);
    if (head->count)
        printf("work request %llu is done, status %u\n", (unsigned long long)wc->wr_id, wc->status);
    else
        printf("nothing is done\n");
}

int main(int argc, char **argv)
{
    struct ib_uverbs_get_context none = {0};
    struct ib_uverbs_get_context_resp context;
    struct ib_uverbs_query_device_resp limits;
    if (argc > 2) {
        fprintf(stderr, "usage: uverbs_commands [DEVICE]\n");
        return 2;
    }
    device = anywarp_uverbs_open(argv[1]);
    if (device < 0)
        err(1, "no device");
    COMMAND(GET_CONTEXT, &none, 8, &context);
    COMMAND(QUERY_DEVICE, &none, 8, &limits);
    printf("a device of %u port, with %u queue pairs\n", limits.phys_port_cnt, limits.max_qp);

    uint32_t pd;
    COMMAND(ALLOC_PD, &none, 8, &pd);
    struct ib_uverbs_reg_mr reg = {.start = (uintptr_t)memory, .length = sizeof memory};
    struct ib_uverbs_reg_mr_resp mr;
    reg.hca_va = reg.start; /* what it is called by those who use the keys */
    reg.pd_handle = pd;
    reg.access_flags = IBV_ACCESS_LOCAL_WRITE;
    COMMAND(REG_MR, &reg, 40, &mr);
    printf("%zu bytes of memory have the key 0x%08x\n", sizeof memory, mr.lkey);

    struct ib_uverbs_create_cq make_cq = {.cqe = 4, .comp_channel = -1};
    struct ib_uverbs_create_cq_resp made;
    COMMAND(CREATE_CQ, &make_cq, 32, &made);
    poll(made.cq_handle);

    /* A queue pair that fails gives back the receives that it had. */
    struct ib_uverbs_create_qp make_qp = {.pd_handle = pd, .qp_type = IBV_QPT_RC};
    struct ib_uverbs_create_qp_resp qp;
    make_qp.send_cq_handle = make_qp.recv_cq_handle = made.cq_handle;
    make_qp.max_send_wr = make_qp.max_recv_wr = 1;
    make_qp.max_send_sge = make_qp.max_recv_sge = 1;
    COMMAND(CREATE_QP, &make_qp, 56, &qp);
    modify(qp.qp_handle, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    post_receive(qp.qp_handle, mr.lkey);
    modify(qp.qp_handle, IBV_QPS_ERR, 0);
    poll(made.cq_handle);

    /* All objects go with the device, as they do when a program ends. */
    return anywarp_uverbs_close(device) ? 1 : 0;
}
