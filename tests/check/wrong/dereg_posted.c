/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    receive_it(&b, 1);
    must(!ibv_dereg_mr(b.mr)); /* wrong */
    return 0;
}
