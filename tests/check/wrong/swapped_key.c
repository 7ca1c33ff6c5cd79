/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <arpa/inet.h>

int main(void)
{
    ends_open();
    receive_it(&b, 1);
    struct ibv_mr turned = *a.mr;
    turned.lkey = htonl(turned.lkey);
    a.mr = &turned;
    send_it(&a, 1, IBV_SEND_SIGNALED); /* wrong */
    return 0;
}
