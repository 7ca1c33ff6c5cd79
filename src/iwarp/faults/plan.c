/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024

#define ROW(name, text, every, error, meaning) [IW_FAULT_##name] = {text, every, error, meaning},
static const struct iw_fault_info faults[IW_FAULTS] = {IW_FAULT_LIST(ROW)};
#undef ROW

const struct iw_fault_info *iw_fault_info(enum iw_fault fault)
{
    return &faults[fault];
}

enum iw_fault iw_fault_find(const char *name)
{
    enum iw_fault f = 0;
    while (f < IW_FAULTS && strcmp(faults[f].name, name) != 0)
        f++;
    return f;
}

static bool parse_number(const char *s, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || n > max)
        return false;
    *out = n;
    return true;
}

static bool parse_path(const char *s, char *out, size_t size)
{
    return *s && (size_t)snprintf(out, size, "%s", s) < size;
}

static const char *parse_only(char *names, bool chosen[IW_FAULTS])
{
    char *rest;
    for (char *name = strtok_r(names, "+", &rest); name; name = strtok_r(NULL, "+", &rest)) {
        enum iw_fault f = iw_fault_find(name);
        if (f == IW_FAULTS)
            return "there is no fault of that name";
        chosen[f] = true;
    }
    return NULL;
}

const char *iw_plan_parse(struct iw_plan *plan, const char *text)
{
    char copy[TEXT_MAX], *rest;
    bool chosen[IW_FAULTS] = {false}, some = false, placement = false;
    uint64_t every = 0;
    *plan = (struct iw_plan){0};
    if (!parse_path(text, copy, sizeof(copy)))
        return "it is empty or too long";
    for (char *key = strtok_r(copy, ",", &rest); key; key = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(key, '=');
        const char *wrong = NULL;
        if (!value)
            return "a setting has no value";
        *value++ = '\0';
        if (!strcmp(key, "seed"))
            wrong = parse_number(value, UINT64_MAX, &plan->seed) ? NULL : "seed is no number";
        else if (!strcmp(key, "every"))
            wrong = parse_number(value, UINT32_MAX, &every) && every ? NULL
                                                                     : "every is no number above 0";
        else if (!strcmp(key, "only"))
            wrong = parse_only(value, chosen), some = true;
        else if (!strcmp(key, "log"))
            wrong = parse_path(value, plan->log, sizeof(plan->log)) ? NULL : "log is too long";
        else if (!strcmp(key, "replay"))
            wrong =
                parse_path(value, plan->replay, sizeof(plan->replay)) ? NULL : "replay is too long";
        else if (!strcmp(key, "places"))
            wrong =
                parse_path(value, plan->places, sizeof(plan->places)) ? NULL : "places is too long";
        else if (!strcmp(key, "placement"))
            wrong = (placement = !strcmp(value, "on")) ? NULL : "placement is not on";
        else if (!strcmp(key, "ends"))
            wrong = (plan->ends = !strcmp(value, "on")) ? NULL : "ends is not on";
        else
            wrong = "a setting is unknown";
        if (wrong)
            return wrong;
    }
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        plan->every[f] = (some || placement) && !chosen[f] ? 0
                         : every                           ? (uint32_t)every
                                                           : faults[f].every;
    if (placement)
        plan->every[IW_FAULT_PLACEMENT] = 1;
    return NULL;
}

void iw_plan_line(char *line, unsigned size, const char *process, enum iw_fault fault,
                  const char *kind, uint64_t number, uint64_t call)
{
    snprintf(line, size, "%s %s %s %" PRIu64 " %" PRIu64, process, faults[fault].name, kind, number,
             call);
}

static uint64_t mix(uint64_t x) /* the finalizer of SplitMix64 */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t mix_text(uint64_t hash, const char *s)
{
    for (; *s; s++)
        hash = (hash ^ (uint8_t)*s) * 0x100000001b3; /* FNV-1a */
    return mix(hash);
}

/* By names, not numbers: a log stays good when faults are added. */
static uint64_t hash_of(const struct iw_plan *plan, const char *process, enum iw_fault fault,
                        const char *kind, uint64_t number, uint64_t call)
{
    uint64_t hash = mix(plan->seed + 0x9e3779b97f4a7c15);
    hash = mix_text(mix_text(mix_text(hash, process), faults[fault].name), kind);
    return mix(mix(hash + number) + call);
}

bool iw_plan_decide(const struct iw_plan *plan, const char *process, enum iw_fault fault,
                    const char *kind, uint64_t number, uint64_t call)
{
    uint32_t every = plan->every[fault];
    return every && hash_of(plan, process, fault, kind, number, call) % every == 0;
}

uint64_t iw_plan_detail(const struct iw_plan *plan, const char *process, enum iw_fault fault,
                        const char *kind, uint64_t number, uint64_t call)
{
    uint64_t detail = mix(hash_of(plan, process, fault, kind, number, call) + 1);
    return detail ? detail : 1;
}
