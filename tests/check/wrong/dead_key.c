/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    receive_it(&b, 1);
    struct ibv_mr old = *a.mr;
    must(!ibv_dereg_mr(a.mr));
    a.mr = &old;
    send_it(&a, 1, IBV_SEND_SIGNALED); /* wrong */
    return 0;
}
