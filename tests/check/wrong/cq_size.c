/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    struct ibv_cq *large = ibv_create_cq(a.id->verbs, 4096, NULL, NULL, 0); /* wrong */
    struct ibv_qp_init_attr attr = {
        .send_cq = large, .recv_cq = large, .qp_type = IBV_QPT_RC, .cap = cap};
    struct ibv_qp *qp = ibv_create_qp(a.pd, &attr);
    must(large && qp);
    must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(large));
    ends_close();
    return 0;
}
