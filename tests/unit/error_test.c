/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/error.h"

#include "wire/terminate.h"

#include "vectors.h"
#include "wire/terminate_text.h"

#include <stdio.h>

static void success(void **state)
{
    const struct iw_err_info *i = iw_err_info(IW_OK);

    (void)state;
    assert_string_equal(i->name, "OK");
    assert_string_equal(i->text, "success");
    assert_int_equal(i->status, IBV_WC_SUCCESS);
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (int err = IW_OK + 1; err < IW_ERR_COUNT; err++) {
        const struct iw_err_info *i = iw_err_info(err);
        assert_non_null(i->name);
        check(i->name, i->layer <= TERM_MPA && i->etype <= 2);
        check(i->name, i->layer != TERM_MPA || i->etype == 0);
        check(i->name, i->status != IBV_WC_SUCCESS);
        check(i->name, i->event == IW_EVENT_QP_FATAL || i->event == IW_EVENT_QP_REQ_ERR ||
                           i->event == IW_EVENT_QP_ACCESS_ERR || i->event == IW_EVENT_NONE);
        check(i->name, strlen(i->text) > 0);
        for (int other = err + 1; other < IW_ERR_COUNT; other++)
            check(i->name, strcmp(i->text, iw_err_info(other)->text) != 0);
    }
}

/** Each row, and the name that its Terminate has in the RFCs. */
static void every_row(void **state)
{
    static const struct {
        enum iw_err err;
        uint8_t layer, etype, code;
        enum ibv_wc_status status;
        enum iw_event event;
        const char *rfc;
    } rows[] = {
        {IW_ERR_LLP_CLOSED, 2, 0, 0x01, IBV_WC_WR_FLUSH_ERR, IW_EVENT_NONE,
         "TCP connection closed, terminated, or lost"},
        {IW_ERR_LLP_LOST, 2, 0, 0x01, IBV_WC_WR_FLUSH_ERR, IW_EVENT_NONE,
         "TCP connection closed, terminated, or lost"},
        {IW_ERR_CRC, 2, 0, 0x02, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL, "MPA CRC does not match"},
        {IW_ERR_FRAMING, 2, 0, 0x03, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "MPA Marker and ULPDU_Length mismatch"},
        {IW_ERR_START_FRAME, 2, 0, 0x04, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Invalid MPA Request or Reply Frame"},
        {IW_ERR_MPA_LOCAL, 2, 0, 0x05, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Local Catastrophic Error"},
        {IW_ERR_IRD_SHORT, 2, 0, 0x06, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Insufficient IRD Resources"},
        {IW_ERR_NO_RTR, 2, 0, 0x07, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "No Matching RTR Option"},
        {IW_ERR_TAGGED_STAG, 1, 1, 0x00, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Invalid STag"},
        {IW_ERR_TAGGED_BOUNDS, 1, 1, 0x01, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Base or bounds violation"},
        {IW_ERR_TAGGED_STREAM, 1, 1, 0x02, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "STag not associated with DDP Stream"},
        {IW_ERR_TAGGED_WRAP, 1, 1, 0x03, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR, "TO wrap"},
        {IW_ERR_TAGGED_VERSION, 1, 1, 0x04, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Invalid DDP version"},
        {IW_ERR_TAGGED_ACCESS, 1, 1, 0x00, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Invalid STag"},
        {IW_ERR_UNTAGGED_QN, 1, 2, 0x01, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL, "Invalid QN"},
        {IW_ERR_UNTAGGED_NO_BUFFER, 1, 2, 0x02, IBV_WC_REM_OP_ERR, IW_EVENT_QP_FATAL,
         "Invalid MSN - no buffer available"},
        {IW_ERR_UNTAGGED_MSN, 1, 2, 0x03, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL,
         "Invalid MSN - MSN range is not valid"},
        {IW_ERR_UNTAGGED_MO, 1, 2, 0x04, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL, "Invalid MO"},
        {IW_ERR_UNTAGGED_TOO_LONG, 1, 2, 0x05, IBV_WC_LOC_LEN_ERR, IW_EVENT_QP_FATAL,
         "DDP Message too long for available buffer"},
        {IW_ERR_UNTAGGED_VERSION, 1, 2, 0x06, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Invalid DDP version"},
        {IW_ERR_DDP_LOCAL, 1, 0, 0x00, IBV_WC_GENERAL_ERR, IW_EVENT_QP_FATAL,
         "Local Catastrophic Error"},
        {IW_ERR_READ_STAG, 0, 1, 0x00, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Invalid STag"},
        {IW_ERR_READ_BOUNDS, 0, 1, 0x01, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Base or bounds violation"},
        {IW_ERR_READ_ACCESS, 0, 1, 0x02, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Access rights violation"},
        {IW_ERR_READ_STREAM, 0, 1, 0x03, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "STag not associated with RDMAP Stream"},
        {IW_ERR_READ_WRAP, 0, 1, 0x04, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR, "TO wrap"},
        {IW_ERR_INVALIDATE_STREAM, 0, 1, 0x09, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_ACCESS_ERR,
         "STag cannot be Invalidated"},
        {IW_ERR_PROTECTION, 0, 1, 0xff, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Unspecified Error"},
        {IW_ERR_RDMAP_VERSION, 0, 2, 0x05, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL,
         "Invalid RDMAP version"},
        {IW_ERR_OPCODE, 0, 2, 0x06, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL, "Unexpected OpCode"},
        {IW_ERR_STREAM_OP, 0, 2, 0x07, IBV_WC_REM_OP_ERR, IW_EVENT_QP_FATAL,
         "Catastrophic error, localized to RDMAP Stream"},
        {IW_ERR_IRD_EXCEEDED, 0, 2, 0x07, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_FATAL,
         "Catastrophic error, localized to RDMAP Stream"},
        {IW_ERR_ATOMIC_ALIGN, 0, 2, 0x07, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Catastrophic error, localized to RDMAP Stream"},
        {IW_ERR_GLOBAL_OP, 0, 2, 0x08, IBV_WC_REM_OP_ERR, IW_EVENT_QP_FATAL,
         "Catastrophic error, global"},
        {IW_ERR_INVALIDATE, 0, 2, 0x09, IBV_WC_REM_INV_REQ_ERR, IW_EVENT_QP_ACCESS_ERR,
         "STag cannot be Invalidated"},
        {IW_ERR_OPERATION, 0, 2, 0xff, IBV_WC_REM_OP_ERR, IW_EVENT_QP_FATAL, "Unspecified Error"},
        {IW_ERR_RDMAP_LOCAL, 0, 0, 0x00, IBV_WC_WR_FLUSH_ERR, IW_EVENT_NONE,
         "Local Catastrophic Error"},
        {IW_ERR_RESPONSE_STAG, 1, 1, 0x00, IBV_WC_BAD_RESP_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Invalid STag"},
        {IW_ERR_RESPONSE_BOUNDS, 1, 1, 0x01, IBV_WC_BAD_RESP_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Base or bounds violation"},
        {IW_ERR_RESPONSE_ATOMIC, 1, 2, 0x03, IBV_WC_BAD_RESP_ERR, IW_EVENT_QP_FATAL,
         "Invalid MSN - MSN range is not valid"},
        {IW_ERR_LOCAL_LENGTH, 0, 0, 0x00, IBV_WC_LOC_LEN_ERR, IW_EVENT_QP_REQ_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_LOCAL_PROT, 0, 0, 0x00, IBV_WC_LOC_PROT_ERR, IW_EVENT_QP_REQ_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_LOCAL_SINK, 0, 0, 0x00, IBV_WC_LOC_PROT_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_LOCAL_OP, 0, 0, 0x00, IBV_WC_LOC_QP_OP_ERR, IW_EVENT_QP_REQ_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_CQ_OVERRUN, 0, 0, 0x00, IBV_WC_WR_FLUSH_ERR, IW_EVENT_QP_FATAL,
         "Local Catastrophic Error"},
        {IW_ERR_LOCAL_MW_BIND, 0, 0, 0x00, IBV_WC_MW_BIND_ERR, IW_EVENT_QP_REQ_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_PEER_TERMINATE, 0, 0, 0x00, IBV_WC_WR_FLUSH_ERR, IW_EVENT_QP_FATAL,
         "Local Catastrophic Error"},
        {IW_ERR_TAGGED_GONE, 1, 1, 0x01, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Base or bounds violation"},
        {IW_ERR_READ_GONE, 0, 1, 0x01, IBV_WC_REM_ACCESS_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Base or bounds violation"},
        {IW_ERR_LOCAL_GONE, 0, 0, 0x00, IBV_WC_LOC_PROT_ERR, IW_EVENT_QP_ACCESS_ERR,
         "Local Catastrophic Error"},
        {IW_ERR_DATAGRAM_LENGTH, 0, 0, 0x00, IBV_WC_LOC_LEN_ERR, IW_EVENT_NONE,
         "Local Catastrophic Error"},
    };

    (void)state;
    assert_int_equal(COUNT(rows), IW_ERR_COUNT - 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct iw_err_info *info = iw_err_info(rows[i].err);
        struct terminate t;
        char text[128];
        check(info->name, rows[i].err == (enum iw_err)(i + 1));
        check(info->name, info->status == rows[i].status && info->event == rows[i].event);
        terminate_from_error(&t, rows[i].err, NULL, 0);
        check(info->name,
              t.layer == rows[i].layer && t.etype == rows[i].etype && t.code == rows[i].code);
        terminate_describe(&t, text, sizeof(text));
        check(info->name, strstr(text, rows[i].rfc) != NULL);
    }
}

/** Every code that RFC 5040, 5041, 5044 and 6581 assign, and which row stands for it. */
static const struct {
    uint8_t layer, etype, code;
    enum iw_err err;
} assigned[] = {
    {0, 1, 0x00, IW_ERR_READ_STAG},
    {0, 1, 0x01, IW_ERR_READ_BOUNDS},
    {0, 1, 0x02, IW_ERR_READ_ACCESS},
    {0, 1, 0x03, IW_ERR_READ_STREAM},
    {0, 1, 0x04, IW_ERR_READ_WRAP},
    {0, 1, 0x09, IW_ERR_INVALIDATE_STREAM},
    {0, 1, 0xff, IW_ERR_PROTECTION},
    {0, 2, 0x05, IW_ERR_RDMAP_VERSION},
    {0, 2, 0x06, IW_ERR_OPCODE},
    {0, 2, 0x07, IW_ERR_STREAM_OP},
    {0, 2, 0x08, IW_ERR_GLOBAL_OP},
    {0, 2, 0x09, IW_ERR_INVALIDATE},
    {0, 2, 0xff, IW_ERR_OPERATION},
    {1, 0, 0x00, IW_ERR_DDP_LOCAL},
    {1, 1, 0x00, IW_ERR_TAGGED_STAG},
    {1, 1, 0x01, IW_ERR_TAGGED_BOUNDS},
    {1, 1, 0x02, IW_ERR_TAGGED_STREAM},
    {1, 1, 0x03, IW_ERR_TAGGED_WRAP},
    {1, 1, 0x04, IW_ERR_TAGGED_VERSION},
    {1, 2, 0x01, IW_ERR_UNTAGGED_QN},
    {1, 2, 0x02, IW_ERR_UNTAGGED_NO_BUFFER},
    {1, 2, 0x03, IW_ERR_UNTAGGED_MSN},
    {1, 2, 0x04, IW_ERR_UNTAGGED_MO},
    {1, 2, 0x05, IW_ERR_UNTAGGED_TOO_LONG},
    {1, 2, 0x06, IW_ERR_UNTAGGED_VERSION},
    {2, 0, 0x01, IW_ERR_LLP_CLOSED},
    {2, 0, 0x02, IW_ERR_CRC},
    {2, 0, 0x03, IW_ERR_FRAMING},
    {2, 0, 0x04, IW_ERR_START_FRAME},
    {2, 0, 0x05, IW_ERR_MPA_LOCAL},
    {2, 0, 0x06, IW_ERR_IRD_SHORT},
    {2, 0, 0x07, IW_ERR_NO_RTR},
};

static enum iw_err expected(unsigned layer, unsigned etype, unsigned code)
{
    if (layer == 0 && etype == 0)
        return IW_ERR_RDMAP_LOCAL;
    for (size_t i = 0; i < COUNT(assigned); i++)
        if (assigned[i].layer == layer && assigned[i].etype == etype && assigned[i].code == code)
            return assigned[i].err;
    return IW_ERR_PEER_TERMINATE;
}

static void every_triple(void **state)
{
    (void)state;
    for (unsigned layer = 0; layer < 16; layer++)
        for (unsigned etype = 0; etype < 16; etype++)
            for (unsigned code = 0; code < 256; code++) {
                char name[32];
                snprintf(name, sizeof(name), "%x/%x/%02x", layer, etype, code);
                check(name,
                      iw_err_from_terminate(layer, etype, code) == expected(layer, etype, code));
            }
}

static void headers(void **state)
{
    static const struct {
        enum iw_err err;
        bool ddp, rdmap;
    } rows[] = {
        {IW_OK, false, false},
        {IW_ERR_RDMAP_LOCAL, false, false},
        {IW_ERR_LOCAL_PROT, false, false},
        {IW_ERR_READ_STAG, true, true},
        {IW_ERR_INVALIDATE_STREAM, true, true},
        {IW_ERR_PROTECTION, true, true},
        {IW_ERR_RDMAP_VERSION, true, false},
        {IW_ERR_OPCODE, true, false},
        {IW_ERR_IRD_EXCEEDED, true, false},
        {IW_ERR_DDP_LOCAL, true, false},
        {IW_ERR_TAGGED_BOUNDS, true, false},
        {IW_ERR_UNTAGGED_TOO_LONG, true, false},
        {IW_ERR_CRC, false, false},
        {IW_ERR_NO_RTR, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool ddp = !rows[i].ddp, rdmap = !rows[i].rdmap;
        iw_err_headers(rows[i].err, &ddp, &rdmap);
        check(iw_err_info(rows[i].err)->name, ddp == rows[i].ddp && rdmap == rows[i].rdmap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success),   cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(every_row), cmocka_unit_test(every_triple),
        cmocka_unit_test(headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
