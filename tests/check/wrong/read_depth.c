/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    depth = 0;
    ends_open();
    read_it(a.mr, 8); /* wrong */
    return 0;
}
