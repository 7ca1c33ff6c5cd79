/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    struct ibv_cq *cq = ibv_create_cq(a.id->verbs, 1, NULL, NULL, 0); /* wrong */
    must(cq);
    ends_close();
    return 0;
}
