/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/refuse.h"

#include <stdio.h>

#define REASON_MAX 256

static const int errors[] = {
#define X(name, err, text) [IW_REFUSED_##name] = err,
    IW_REFUSALS(X)
#undef X
};

/** @return whether it was told of before */
static bool told(struct iw_refused *refused, enum iw_refusal why)
{
    uint64_t bit = UINT64_C(1) << why % 64;
    return refused &&
           (atomic_fetch_or_explicit(&refused->told[why / 64], bit,
                                     memory_order_relaxed) & /* a line too many is no harm */
            bit);
}

int iw_cm_refuse(struct iw_refused *refused, const char *call, enum iw_refusal why,
                 const char *text, ...)
{
    char reason[REASON_MAX];
    va_list ap;
    if (!iw_log_on(IW_LOG_WARN) || told(refused, why))
        return errors[why];
    va_start(ap, text);
    vsnprintf(reason, sizeof(reason), text, ap);
    va_end(ap);
    iw_log(IW_LOG_WARN, "%s: %s", call, reason);
    return errors[why];
}
