/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    cap.max_recv_wr = 2 * DEPTH;
    cqe = 4 * DEPTH;
    ends_open();
    for (int i = 0; i <= DEPTH; i++)
        receive_it(&b, 1);
    for (int i = 0; i <= DEPTH; i++)
        send_it(&a, 1, 0); /* wrong */
    ends_close();
    return 0;
}
