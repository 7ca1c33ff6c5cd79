/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    for (int i = 0; i < DEPTH; i++)
        send_it(&a, BYTES,
                IBV_SEND_SIGNALED); /* no receive: some stay in the queue; also: late_receive */
    must(!ibv_dereg_mr(a.mr));      /* wrong */
    return 0;
}
