/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct ibv_wc wc;
    ends_open();
    struct ibv_cq *cq = a.cq;
    ends_close();
    return ibv_poll_cq(cq, 1, &wc) > 0; /* wrong */
}
