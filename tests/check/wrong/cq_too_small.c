/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    must(!ibv_resize_cq(a.cq, 4));
    for (int i = 0; i < DEPTH; i++)
        receive_it(&a, 1); /* wrong */
    ends_close();
    return 0;
}
