/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    cqe = 4;
    ends_open();
    for (int i = 0; i < DEPTH; i++)
        receive_it(&a, 1); /* wrong */
    ends_close();
    return 0;
}
