/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of the FPDUs that a QP sends: by ANYWARP_FPDU, by who and where the peer is. */
#include "qp/link.h"

#include "env/conf.h"
#include "vectors.h"
#include "wire/fpdu.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT 1448 /* of an Ethernet with time stamps */

static uint32_t segment(struct iwc_stream *s)
{
    (void)s;
    return SEGMENT;
}

static const struct row {
    const char *knob; /* ANYWARP_FPDU */
    bool ext, same_host, markers;
    uint32_t bytes; /* of an ULPDU; 0: what one segment holds */
} rows[] = {
    {"auto", false, false, false, 0},
    {"auto", false, true, false, 0},
    {"auto", false, true, true, 0},
    {"auto", true, false, false, 16384},
    {"auto", true, true, false, FPDU_ULPDU_MAX},
    {"mss", true, true, false, 0},
    {"mss", true, false, true, 0},
    {"mss", false, false, false, 0},
    {"128", true, true, false, 128},
    {"64768", false, false, false, 64768},
    {"9000", false, false, true, 9000},
};

/** @return whether it is as the row says; the knobs are read once, so each row has its process */
static bool holds(const struct row *r)
{
    static const struct iwc_stream_ops ops = {.emss = segment};
    static struct iwc_stream stream = {.ops = &ops};
    static struct iw_qp qp;
    qp.stream = &stream;
    qp.ext = r->ext;
    qp.same_host = r->same_host;
    qp.tx.half.markers = r->markers;
    lock_init(&qp.tx.lock, LOCK_QP_TX);
    lock_get(&qp.tx.lock);
    iw_qp_set_mulpdu_locked(&qp);
    lock_put(&qp.tx.lock);
    return qp.tx.half.mulpdu == (r->bytes ? r->bytes : fpdu_mulpdu(SEGMENT, r->markers));
}

static void the_size_of_what_is_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            setenv("ANYWARP_FPDU", rows[i].knob, 1);
            _exit(holds(&rows[i]) ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status)
            fail_msg("row %zu: status %d", i, status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_of_what_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
