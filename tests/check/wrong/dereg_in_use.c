/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open(); /* one Read at a time: the last waits until all others are answered */
    for (int i = 0; i < DEPTH; i++)
        read_it(a.mr, BYTES);
    must(!ibv_dereg_mr(a.mr)); /* wrong */
    return 0;
}
