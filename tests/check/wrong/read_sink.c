/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    struct ibv_mr *sink = ibv_reg_mr(a.pd, a.buffer, BYTES, IBV_ACCESS_LOCAL_WRITE);
    must(sink);
    read_it(sink, 8); /* wrong */
    wait_for(&a);
    must(!ibv_dereg_mr(sink));
    ends_close();
    return 0;
}
