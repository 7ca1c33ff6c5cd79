/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    receive_it(&b, BYTES);
    send_it(&a, BYTES, IBV_SEND_SIGNALED); /* wrong */
    strcpy(a.buffer, "too early");
    wait_for(&a);
    ends_close();
    return 0;
}
