/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A busy neighbour: one thread for each processor streams through memory that fits into no cache,
 * until it is killed, or for a minute.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES   ((size_t)64 << 20)
#define SECONDS 60

static void *stream(void *memory)
{
    char *half = (char *)memory + BYTES / 2;
    while (memory) {
        memcpy(half, memory, BYTES / 2);
        memcpy(memory, half, BYTES / 2);
    }
    return NULL;
}

int main(void)
{
    alarm(SECONDS);
    for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--) {
        pthread_t t;
        char *memory = malloc(BYTES);
        if (!memory || pthread_create(&t, NULL, stream, memset(memory, 1, BYTES)))
            return EXIT_FAILURE;
    }
    pause();
    return EXIT_SUCCESS;
}
