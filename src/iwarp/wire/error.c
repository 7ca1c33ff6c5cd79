/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/error.h"

static const struct iw_err_info infos[IW_ERR_COUNT] = {
    [IW_OK] = {.name = "OK", .status = IBV_WC_SUCCESS, .event = IW_EVENT_NONE, .text = "success"},
#define X(name, layer, etype, code, status, event, text)                                           \
    [IW_ERR_##name] = {#name, layer, etype, code, IBV_WC_##status, IW_EVENT_##event, text},
    IW_ERRORS(X)
#undef X
};

const struct iw_err_info *iw_err_info(enum iw_err err)
{
    return &infos[err];
}

enum iw_err iw_err_from_terminate(uint8_t layer, uint8_t etype, uint8_t code)
{
    /* RFC 5040 section 4.8 gives the code of an RDMAP local error no meaning. Errors that only
     * this side sees have this triple, too, and stand behind. */
    if (layer == TERM_RDMAP && etype == 0)
        return IW_ERR_RDMAP_LOCAL;
    for (int err = IW_OK + 1; err < IW_ERR_COUNT; err++) {
        const struct iw_err_info *i = &infos[err];
        if (i->layer == layer && i->etype == etype && i->code == code)
            return err;
    }
    return IW_ERR_PEER_TERMINATE;
}

void iw_err_headers(enum iw_err err, bool *ddp, bool *rdmap)
{
    const struct iw_err_info *i = &infos[err];

    *ddp = i->layer == TERM_DDP || (i->layer == TERM_RDMAP && i->etype != 0);
    *rdmap = i->layer == TERM_RDMAP && i->etype == 1;
}
