/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disk DEVICE SECONDS [same]
 * Eight threads, each in a part of its own of a disk that is all zeros, read and write at random
 * without the page cache, from one block to half a megabyte at once. What is read must be what the
 * thread wrote last there; with "same", it writes the same to a block each time. When the time is
 * over each reads its part once more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define BLOCK   4096
#define LONGEST 128 /* blocks of one request */
#define WORDS   (BLOCK / sizeof(uint64_t))

struct part {
    pthread_t thread;
    uint64_t first, blocks, seed;
    uint32_t *writes; /* how often each block was written */
    uint64_t *buffer;
    unsigned long done_reads, done_writes;
};

static int fd;
static time_t deadline;
static bool same;

static void __attribute__((format(printf, 1, 2))) die(const char *format, ...)
{
    int error = errno;
    va_list args;

    fputs("disk: failed: ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" (errno %d: %s)\n", error, strerror(error));
    fflush(stdout);
    _exit(1);
}

static time_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static uint64_t random_below(struct part *part, uint64_t limit)
{
    part->seed += 0x9e3779b97f4a7c15U;
    return mix(part->seed) % limit;
}

/* What word @p i of a block has after so many writes. */
static uint64_t word(uint64_t block, uint32_t writes, size_t i)
{
    return writes == 0 ? 0 : mix((block << 32 | writes) * WORDS + i);
}

static void write_blocks(struct part *part, uint64_t at, uint64_t count)
{
    for (uint64_t b = 0; b < count; b++) {
        uint32_t *writes = &part->writes[at + b];

        if (!same || *writes == 0)
            ++*writes;
        for (size_t i = 0; i < WORDS; i++)
            part->buffer[b * WORDS + i] = word(part->first + at + b, *writes, i);
    }
    if (pwrite(fd, part->buffer, count * BLOCK, (off_t)((part->first + at) * BLOCK)) !=
        (ssize_t)(count * BLOCK))
        die("write of %lu blocks at %lu", count, part->first + at);
    part->done_writes++;
}

static void read_blocks(struct part *part, uint64_t at, uint64_t count)
{
    if (pread(fd, part->buffer, count * BLOCK, (off_t)((part->first + at) * BLOCK)) !=
        (ssize_t)(count * BLOCK))
        die("read of %lu blocks at %lu", count, part->first + at);
    for (uint64_t b = 0; b < count; b++)
        for (size_t i = 0; i < WORDS; i++) {
            uint64_t want = word(part->first + at + b, part->writes[at + b], i);

            if (part->buffer[b * WORDS + i] != want)
                die("block %lu, word %zu: 0x%lx, not 0x%lx", part->first + at + b, i,
                    part->buffer[b * WORDS + i], want);
        }
    part->done_reads++;
}

static void *work(void *argument)
{
    struct part *part = argument;

    while (now() < deadline) {
        uint64_t count = 1 + random_below(part, random_below(part, 4) == 0 ? LONGEST : 4);
        uint64_t at = random_below(part, part->blocks - count + 1);

        if (random_below(part, 2) == 0)
            write_blocks(part, at, count);
        else
            read_blocks(part, at, count);
    }
    for (uint64_t at = 0; at < part->blocks; at += LONGEST)
        read_blocks(part, at, part->blocks - at < LONGEST ? part->blocks - at : LONGEST);
    return NULL;
}

static void start(struct part *part, uint64_t number, uint64_t blocks)
{
    part->blocks = blocks;
    part->first = number * blocks;
    part->seed = number << 32;
    part->writes = calloc(blocks, sizeof(*part->writes));
    if (part->writes == NULL || posix_memalign((void **)&part->buffer, BLOCK, LONGEST * BLOCK) != 0)
        die("memory");
    if (pthread_create(&part->thread, NULL, work, part) != 0)
        die("pthread_create");
}

int main(int argc, char **argv)
{
    static struct part parts[THREADS];
    unsigned long reads = 0, writes = 0;
    uint64_t size;

    same = argc == 4 && !strcmp(argv[3], "same");
    if (argc != 3 && !same)
        die("usage: disk DEVICE SECONDS [same]");
    fd = open(argv[1], O_RDWR | O_DIRECT | O_EXCL);
    if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size) != 0 || size < (uint64_t)THREADS * LONGEST * BLOCK)
        die("%s", argv[1]);
    deadline = now() + atoi(argv[2]);
    for (unsigned i = 0; i < THREADS; i++)
        start(&parts[i], i, size / BLOCK / THREADS);
    puts("disk: busy");
    fflush(stdout);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(parts[i].thread, NULL);
        reads += parts[i].done_reads;
        writes += parts[i].done_writes;
    }
    if (close(fd) != 0)
        die("close");
    printf("disk: done, %lu reads, %lu writes\n", reads, writes);
    return 0;
}
