/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the access layer share: an open adapter, and two connected queue pairs. */
#ifndef ANYWARP_TESTS_AL_KIT_H
#define ANYWARP_TESTS_AL_KIT_H

#include <iba/ib_al.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OK(call)         assert_int_equal((call), IB_SUCCESS)
#define IS(call, status) assert_string_equal(ib_get_err_str(call), ib_get_err_str(IB_##status))

struct al_world {
    ib_al_handle_t al;
    ib_net64_t guid;
    ib_ca_handle_t ca;
    ib_pd_handle_t pd;
};

/** Opens the first adapter, with one domain. */
void al_open(struct al_world *world);
void al_close(struct al_world *world);

/** The one of a test program, from al_setup() to al_teardown(). */
extern struct al_world w;
int al_setup(void **state);
int al_teardown(void **state);

/** Waits until a callback has counted so far; fails the test after 20 s. */
void al_await(atomic_int *count, int at_least);

/** Counts; @param context an atomic_int */
void al_count(void *context);

enum { AL_WORDS = 32 };

struct al_end {
    struct al_world *w;
    ib_cq_handle_t cq;
    ib_qp_handle_t qp;
    ib_mr_handle_t mr;
    net32_t lkey, rkey;
    atomic_int completions, events, event; /* callbacks; the last event's code */
    void *event_handle;
    uint64_t data[AL_WORDS];
};

/** A completion queue with callback, memory with all rights, a queue pair in RESET. */
void al_end_make(struct al_end *e, struct al_world *world);
void al_end_queue(struct al_end *e, const ib_qp_create_t *how); /* its queue pair, made anew */
void al_end_drop(struct al_end *e);
ib_qp_create_t al_end_create(const struct al_end *e);

/** One receive of a word of data, or one work request for it. */
void al_recv(struct al_end *e, unsigned word);
ib_send_wr_t al_wr(struct al_end *e, ib_local_ds_t *ds, unsigned word, ib_wr_type_t type);
ib_api_status_t al_post(struct al_end *e, ib_send_wr_t *wr);

/** One completion; fails the test after 20 s. */
ib_wc_t al_poll(struct al_end *e);

/** A connection from a to b, and what its callbacks have seen. */
struct al_link {
    struct al_end a, b;
    ib_listen_handle_t listen;
    ib_net64_t svc_id;
    atomic_int reqs, reps, rtus, rejs, dreqs, dreps, cancels;
    ib_cm_handle_t req, rep, dreq;
    ib_rej_status_t rej_status;
    uint8_t private_data[256];
    bool reply; /* the Request is answered by its callback */
    bool ready; /* and the Reply by its */
    ib_cm_rep_t how;
};

/** One that nobody listens at, for now. */
uint16_t al_free_port(void);

/** Both ends, and a listener of a free port at b. */
void al_link_listen(struct al_link *l, struct al_world *world);
ib_path_rec_t al_loopback(void);
ib_cm_req_t al_request(struct al_link *l, ib_path_rec_t *path);
void al_link_request(struct al_link *l); /* by loopback */
ib_cm_rep_t al_reply(struct al_link *l);
ib_cm_rtu_t al_ready(void);
void al_link_connect(struct al_link *l, struct al_world *world);
void al_link_close(struct al_link *l);

/** Callbacks of al_request(), al_reply() and al_ready(); the context of queue pairs is the link. */
void al_saw_dreq(ib_cm_dreq_rec_t *rec);
void al_saw_drep(ib_cm_drep_rec_t *rec);

#endif
