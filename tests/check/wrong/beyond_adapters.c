/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    cap.max_inline_data = 512;
    struct ibv_qp_init_attr attr = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = cap};
    struct ibv_qp *qp = ibv_create_qp(a.pd, &attr); /* wrong */
    must(qp && !ibv_destroy_qp(qp));
    ends_close();
    return 0;
}
