/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates, and the memory of a driver's counters: what wants no device. */
#include <stdlib.h>

#include <rdma/ib_verbs.h>

/* Rates of later lanes are no multiple of 2.5 Gb/s: the kernel rounds them. */
static const struct {
    enum ib_rate rate;
    int mult, mbps;
} rates[] = {
    {IB_RATE_2_5_GBPS, 1, 2500},    {IB_RATE_5_GBPS, 2, 5000},       {IB_RATE_10_GBPS, 4, 10000},
    {IB_RATE_20_GBPS, 8, 20000},    {IB_RATE_30_GBPS, 12, 30000},    {IB_RATE_40_GBPS, 16, 40000},
    {IB_RATE_60_GBPS, 24, 60000},   {IB_RATE_80_GBPS, 32, 80000},    {IB_RATE_120_GBPS, 48, 120000},
    {IB_RATE_14_GBPS, 6, 14062},    {IB_RATE_56_GBPS, 22, 56250},    {IB_RATE_112_GBPS, 45, 112500},
    {IB_RATE_168_GBPS, 67, 168750}, {IB_RATE_25_GBPS, 10, 25781},    {IB_RATE_100_GBPS, 40, 103125},
    {IB_RATE_200_GBPS, 80, 206250}, {IB_RATE_300_GBPS, 120, 309375},
};

int ib_rate_to_mult(enum ib_rate rate)
{
    for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
        if (rates[i].rate == rate)
            return rates[i].mult;
    }
    return -1;
}

int ib_rate_to_mbps(enum ib_rate rate)
{
    for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
        if (rates[i].rate == rate)
            return rates[i].mbps;
    }
    return -1;
}

enum ib_rate mult_to_ib_rate(int mult)
{
    for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
        if (rates[i].mult == mult)
            return rates[i].rate;
    }
    return IB_RATE_PORT_CURRENT;
}

struct rdma_hw_stats *rdma_alloc_hw_stats_struct(const char *const *names, int num_counters,
                                                 unsigned long lifespan)
{
    struct rdma_hw_stats *s =
        calloc(1, sizeof *s + (size_t)max(num_counters, 0) * sizeof s->value[0]);
    if (!s)
        return NULL;
    s->names = names;
    s->num_counters = num_counters;
    s->lifespan = msecs_to_jiffies(lifespan);
    return s;
}
