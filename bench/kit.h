/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of the benchmark share. Each forks: the parent is the client, which measures,
 * the child is the server. A result is one line on the standard output: NAME VALUE UNIT. Whatever
 * fails ends the program with a message and status 1.
 *
 * bench/run tells them through the environment:
 *   BENCH_CPUS        "0,1": CPU of the client and of the server; unset or empty: no pinning
 *   BENCH_MS          how long to measure, default 300
 *   BENCH_CONGESTION  TCP congestion control of raw sockets; unset: the system's
 */
#ifndef ANYWARP_BENCH_KIT_H
#define ANYWARP_BENCH_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#define KIT_BULK_RECV (256 * 1024) /* what a receiver of a stream asks for at a time */

noreturn void kit_die(const char *what);

/** Ends the program if the condition is false. */
#define KIT_CHECK(x)                                                                               \
    do {                                                                                           \
        if (!(x))                                                                                  \
            kit_die(#x);                                                                           \
    } while (0)

/**
 * Forks. The child runs @p server and exits; it is killed when the parent ends. Both are pinned to
 * their CPUs. @return the child
 */
pid_t kit_start(void (*server)(void *arg), void *arg);

uint64_t kit_ns(void);
/** Nanoseconds that a measurement takes. */
uint64_t kit_duration(void);

/** Zeroed pages, all present. */
void *kit_pages(size_t bytes);
/** The operand as a positive number; ends the program if it is not one. */
unsigned long kit_number(const char *text);

/** Round trips: adds are dropped when it is full. */
struct kit_trips {
    uint32_t *ns;
    size_t n, max;
};

void kit_trips_init(struct kit_trips *t);
void kit_trips_add(struct kit_trips *t, uint64_t ns);
/** Half of the round trip at @p fraction of all of them, in microseconds. Sorts them. */
double kit_trips_half_us(struct kit_trips *t, double fraction);
/** Prints "lat", "mean" and "p999". */
void kit_trips_print(struct kit_trips *t);

#endif
