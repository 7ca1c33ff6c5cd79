/* SPDX-License-Identifier: BSD-2-Clause */
/* A direction of a connection, cut into frames, however the bytes come. */
#include "conn/frames.h"
#include "wire/bytes.h"
#include "wire/fpdu.h"
#include "wire/mpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAM_MAX 300000
#define FRAMES_MAX 64

/** Frames that a stream is made of, and those that came out. */
struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t len, want[FRAMES_MAX], got[FRAMES_MAX], nwant, ngot, at;
    uint64_t fpdus_from; /* where the start-up frame ends */
    size_t keep;
};

static void frame(void *arg, const uint8_t *p, size_t kept, size_t len)
{
    struct stream *s = arg;
    assert_true(s->ngot < FRAMES_MAX);
    if (s->keep)
        assert_int_equal(kept, len < s->keep ? len : s->keep);
    else
        assert_int_equal(kept, len);
    assert_memory_equal(p, s->bytes + s->at, kept);
    s->got[s->ngot++] = len;
    s->at += len;
}

static void add_start(struct stream *s, uint8_t flags, uint16_t pd_len)
{
    static const uint8_t pd[MPA_START_PD_MAX] = {1, 2, 3};
    struct mpa_start m = {.flags = flags, .rev = 1, .pd = pd, .pd_len = pd_len};
    s->len = s->want[s->nwant++] = mpa_start_encode(s->bytes, &m);
    s->fpdus_from = s->len;
}

static void add_fpdu(struct stream *s, uint32_t ulpdu, bool markers)
{
    static uint8_t plain[FPDU_MAX];
    uint8_t *dst = s->bytes + s->len;
    uint64_t pos = s->len - s->fpdus_from;
    size_t len = fpdu_size(ulpdu);
    memset(plain, (int)ulpdu & 0xff, sizeof(plain));
    put_be16(plain, (uint16_t)ulpdu);
    if (markers)
        len = fpdu_mark(dst, plain, len, pos, pos, NULL);
    else
        memcpy(dst, plain, len);
    s->len += len;
    s->want[s->nwant++] = len;
}

/** Gives the stream in pieces of @p chunk bytes; of each frame so many bytes are kept, 0: all. */
static void run_keeping(struct stream *s, size_t chunk, bool markers, size_t keep)
{
    uint8_t buf[128];
    struct iwc_frames f = {.markers = markers, .keep = keep, .buf = keep ? buf : NULL};
    s->keep = keep;
    s->ngot = s->at = 0;
    for (size_t at = 0; at < s->len; at += chunk) {
        size_t n = s->len - at < chunk ? s->len - at : chunk;
        assert_true(iwc_frames_add(&f, s->bytes + at, n, frame, s));
    }
    iwc_frames_end(&f, frame, s);
    assert_int_equal(s->ngot, s->nwant);
    assert_memory_equal(s->got, s->want, s->nwant * sizeof(s->want[0]));
    assert_int_equal(s->at, s->len);
}

static void run(struct stream *s, size_t chunk, bool markers)
{
    run_keeping(s, chunk, markers, 0);
    run_keeping(s, chunk, markers, IWC_FRAMES_KEEP);
    run_keeping(s, chunk, markers, 80);
}

static void every_chunk(struct stream *s, bool markers)
{
    static const size_t chunks[] = {1, 2, 3, 7, 19, 20, 21, 511, 512, 513, 4096, STREAM_MAX};
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
        run(s, chunks[i], markers);
    free(s);
}

static void whole_session(void **state)
{
    struct stream *s = calloc(1, sizeof(*s));
    (void)state;
    add_start(s, MPA_FLAG_C, 17);
    for (uint32_t ulpdu = FPDU_ULPDU_MIN; ulpdu < 40; ulpdu++)
        add_fpdu(s, ulpdu, false);
    add_fpdu(s, FPDU_ULPDU_MAX, false);
    add_fpdu(s, 1446, false);
    every_chunk(s, false);
}

static void markers_belong_to_frames(void **state)
{
    struct stream *s = calloc(1, sizeof(*s));
    (void)state;
    add_start(s, 0, 0);
    for (uint32_t ulpdu = 480; ulpdu < 530; ulpdu += 3) /* some begin with a marker */
        add_fpdu(s, ulpdu, true);
    add_fpdu(s, FPDU_ULPDU_MAX, true);
    add_fpdu(s, 14, true);
    every_chunk(s, true);
}

static void the_other_side_is_asked_for_markers(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        struct stream *s = calloc(1, sizeof(*s));
        struct iwc_frames f = {0};
        add_start(s, m ? MPA_FLAG_M : 0, 0);
        assert_true(iwc_frames_add(&f, s->bytes, s->len, frame, s));
        assert_int_equal(f.asks_markers, m);
        iwc_frames_end(&f, frame, s);
        free(s);
    }
}

/** What is no MPA is given out all the same, and so is a frame that was cut short. */
static void everything_comes_out(void **state)
{
    static const struct {
        const char *name;
        size_t good;  /* FPDUs in front */
        uint16_t bad; /* a length field that is none; 0: the last FPDU is cut short */
        bool no_mpa;
    } rows[] = {
        {"no MPA", 0, 0, true},
        {"length too small", 2, 13, false},
        {"too large", 1, 64769, false},
        {"cut short", 2, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t chunk = 1; chunk < 3000; chunk += 271) {
            struct stream *s = calloc(1, sizeof(*s));
            struct iwc_frames f = {0};
            print_message("  %s, %zu\n", rows[i].name, chunk);
            add_start(s, 0, 4);
            for (size_t k = 0; k < rows[i].good; k++)
                add_fpdu(s, 100, false);
            if (rows[i].bad)
                put_be16(s->bytes + s->len, rows[i].bad);
            if (rows[i].bad)
                s->len += 1000;
            else
                s->len -= 5;
            if (rows[i].no_mpa)
                s->bytes[3] = 'x';
            for (size_t at = 0; at < s->len; at += chunk) {
                size_t n = s->len - at < chunk ? s->len - at : chunk;
                assert_true(iwc_frames_add(&f, s->bytes + at, n, frame, s));
                if (s->ngot > FRAMES_MAX / 2)
                    s->ngot = 0;
            }
            iwc_frames_end(&f, frame, s);
            assert_int_equal(s->at, s->len);
            free(s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_session),
        cmocka_unit_test(markers_belong_to_frames),
        cmocka_unit_test(the_other_side_is_asked_for_markers),
        cmocka_unit_test(everything_comes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
