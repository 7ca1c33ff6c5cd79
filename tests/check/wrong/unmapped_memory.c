/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <sys/mman.h>

int main(void)
{
    struct ibv_wc wc;
    ends_open();
    char *kept = b.buffer;
    must(!ibv_dereg_mr(b.mr));
    /* Where nothing else is mapped in its place. */
    b.buffer =
        mmap((void *)0x10000000, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(b.buffer != MAP_FAILED);
    must((b.mr = ibv_reg_mr(b.pd, b.buffer, BYTES, access_flags)));
    receive_it(&b, BYTES); /* wrong */
    must(!munmap(b.buffer, BYTES));
    send_it(&a, 1, IBV_SEND_SIGNALED);
    while (ibv_poll_cq(b.cq, 1, &wc) == 0)
        ;
    must(wc.status != IBV_WC_SUCCESS);
    b.buffer = kept;
    ends_close();
    return 0;
}
