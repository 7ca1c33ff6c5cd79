/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <sys/wait.h>

int main(void)
{
    ends_open();
    pid_t child = fork(); /* wrong */
    if (child == 0)
        _exit(0);
    must(waitpid(child, NULL, 0) == child);
    ends_close();
    return 0;
}
