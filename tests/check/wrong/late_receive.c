/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    send_it(&a, 1, IBV_SEND_SIGNALED);
    wait_for(&a);
    usleep(100000); /* it is sent; it shall have come */
    for (struct ibv_wc wc; ibv_poll_cq(b.cq, 1, &wc) == 0;)
        receive_it(&b, 1); /* wrong: this late; no stack tells of it */
    ends_close();
    return 0;
}
