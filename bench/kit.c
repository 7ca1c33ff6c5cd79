/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_TRIPS (1 << 20)

noreturn void kit_die(const char *what)
{
    fprintf(stderr, "%s: failed: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    _exit(1);
}

/** @param side  0: client, 1: server */
static void pin(int side)
{
    const char *cpus = getenv("BENCH_CPUS");
    int cpu[2];
    cpu_set_t set;
    if (!cpus || !*cpus)
        return;
    KIT_CHECK(sscanf(cpus, "%d,%d", &cpu[0], &cpu[1]) == 2);
    CPU_ZERO(&set);
    CPU_SET(cpu[side], &set);
    KIT_CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static pid_t child;

/** Before the libraries' destructors, whose end of connections the server would take for errors. */
static void end_child(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

pid_t kit_start(void (*server)(void *arg), void *arg)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    KIT_CHECK(pid >= 0);
    pin(pid == 0);
    if (pid > 0) {
        child = pid;
        KIT_CHECK(atexit(end_child) == 0);
        return pid;
    }
    KIT_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (getppid() == parent)
        server(arg);
    _exit(0);
}

uint64_t kit_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t kit_duration(void)
{
    const char *ms = getenv("BENCH_MS");
    return (ms ? kit_number(ms) : 300) * 1000000;
}

void *kit_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                   -1, 0);
    KIT_CHECK(p != MAP_FAILED);
    return p;
}

unsigned long kit_number(const char *text)
{
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (n == 0 || *end) {
        fprintf(stderr, "%s: not a number: %s\n", program_invocation_short_name,
                text ? text : "(missing)");
        _exit(1);
    }
    return n;
}

void kit_trips_init(struct kit_trips *t)
{
    *t = (struct kit_trips){
        .ns = kit_pages(MAX_TRIPS * sizeof(*t->ns)),
        .max = MAX_TRIPS,
    };
}

void kit_trips_add(struct kit_trips *t, uint64_t ns)
{
    if (t->n < t->max)
        t->ns[t->n++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double kit_trips_half_us(struct kit_trips *t, double fraction)
{
    KIT_CHECK(t->n > 0);
    qsort(t->ns, t->n, sizeof(*t->ns), compare);
    return t->ns[(size_t)((double)(t->n - 1) * fraction)] / 2000.0;
}

static double half_mean_us(const struct kit_trips *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->ns[i];
    return sum / (double)t->n / 2000.0;
}

void kit_trips_print(struct kit_trips *t)
{
    printf("lat %.3f us\n", kit_trips_half_us(t, 0.5));
    printf("mean %.3f us\n", half_mean_us(t));
    printf("p999 %.3f us\n", kit_trips_half_us(t, 0.999));
}
