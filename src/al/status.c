/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/status.h"

#include <errno.h>
#include <stddef.h>

static const struct {
    int error;
    ib_api_status_t status;
} table[] = {
    {0, IB_SUCCESS},
    {ENOMEM, IB_INSUFFICIENT_MEMORY},
    {EAGAIN, IB_INSUFFICIENT_RESOURCES},
    {EMFILE, IB_INSUFFICIENT_RESOURCES},
    {ENFILE, IB_INSUFFICIENT_RESOURCES},
    {ENOSPC, IB_INSUFFICIENT_RESOURCES},
    {EBUSY, IB_RESOURCE_BUSY},
    {EOPNOTSUPP, IB_UNSUPPORTED},
    {ENOSYS, IB_UNSUPPORTED},
    {EACCES, IB_INVALID_PERMISSION},
    {EPERM, IB_INVALID_PERMISSION},
    {ETIMEDOUT, IB_TIMEOUT},
    {ENODEV, IB_ERROR},
};

ib_api_status_t al_status(int error, ib_api_status_t invalid)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].error == error)
            return table[i].status;
    }
    return invalid;
}
