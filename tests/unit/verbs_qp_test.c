/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroying a QP whose asynchronous events were read: verbs/qp.c on a scripted RNIC. */
#include "device/context.h"
#include "qp/qp.h"
#include "qp/rx_late.h"
#include "qpn/dial.h"
#include "ud/ud.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/late_recv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static struct iw_context context;
static struct iw_qp qp;
static atomic_int drops, destroyed;
static int drops_before;

unsigned iw_async_drop(struct iw_context *ctx, const void *element)
{
    assert_ptr_equal(ctx, &context);
    assert_ptr_equal(element, &qp);
    atomic_fetch_add(&drops, 1);
    return 0;
}

void iw_qp_stop(struct iw_qp *q)
{
    assert_ptr_equal(q, &qp);
    drops_before = drops;
}

void iw_qp_free(struct iw_qp *q)
{
    assert_ptr_equal(q, &qp);
    atomic_store(&destroyed, 1);
}

struct iw_qp *iw_qp_create(struct iw_pd *pd, struct ibv_qp_init_attr *attr, uint32_t number,
                           const struct iw_datagrams *datagrams)
{
    (void)pd, (void)attr, (void)number, (void)datagrams;
    errno = EMFILE;
    return NULL;
}

int iw_qp_modify(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask)
{
    (void)q, (void)attr;
    return mask;
}

void verbs_check_qp(struct iw_qp *q, const struct ibv_qp_init_attr *asked)
{
    (void)q, (void)asked;
}

void iw_qp_query(struct iw_qp *q, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
    (void)q;
    attr->qp_state = IBV_QPS_RTS;
    init->qp_type = IBV_QPT_RC;
}

/* It is not reached by number. */

struct iw_dial *iw_dial_new(bool numbered)
{
    (void)numbered;
    static char any;
    return (struct iw_dial *)&any;
}

uint32_t iw_dial_number(const struct iw_dial *d)
{
    (void)d;
    return 0;
}

void iw_dial_attach(struct iw_dial *d, struct iw_qp *q)
{
    (void)d, (void)q;
}

void iw_dial_free(struct iw_dial *d)
{
    (void)d;
}

int iw_dial_check(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    (void)d, (void)attr, (void)mask;
    return 0;
}

void iw_dial_moved(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    (void)d, (void)attr, (void)mask;
}

void iw_dial_stop(struct iw_dial *d)
{
    (void)d;
}

void iw_dial_renew(struct iw_dial *d)
{
    (void)d;
}

/* Nothing of it lands late. */

void iw_late_init(struct iw_qp *q)
{
    (void)q;
}

void late_recv_forget(struct ibv_qp *q)
{
    (void)q;
}

/* Nor is it one of datagrams. */

struct iw_ud *iw_ud_new(uint32_t max)
{
    (void)max;
    return NULL;
}

void iw_ud_attach(struct iw_ud *ud, struct iw_qp *q)
{
    (void)ud, (void)q;
}

int iw_ud_moved(struct iw_ud *ud)
{
    (void)ud;
    return 0;
}

void iw_ud_stop(struct iw_ud *ud)
{
    (void)ud;
}

void iw_ud_free(struct iw_ud *ud)
{
    (void)ud;
}

int iw_device_query_port(const struct iw_device *dev, uint8_t port, struct ibv_port_attr *attr)
{
    (void)dev, (void)port, (void)attr;
    return 0;
}

static int setup(void **state)
{
    (void)state;
    lock_init(&context.lock, LOCK_CONTEXT);
    qp = (struct iw_qp){.pub.context = &context.vctx.context};
    pthread_mutex_init(&qp.pub.mutex, NULL);
    pthread_cond_init(&qp.pub.cond, NULL);
    drops = destroyed = 0;
    return 0;
}

static void *destroy(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)ibv_destroy_qp(&qp.pub);
}

static void acknowledge(void)
{
    pthread_mutex_lock(&qp.pub.mutex);
    qp.pub.events_completed++;
    pthread_cond_signal(&qp.pub.cond);
    pthread_mutex_unlock(&qp.pub.mutex);
}

static void test_destroy_waits(void **state)
{
    pthread_t thread;
    void *result;
    (void)state;
    qp.async_events_read = 2;
    assert_int_equal(pthread_create(&thread, NULL, destroy, NULL), 0);
    acknowledge();
    usleep(50000);
    assert_int_equal(atomic_load(&destroyed), 0);
    acknowledge();
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(destroyed, 1);
    assert_int_equal(drops_before, 0);
    assert_int_equal(drops, 1);
}

/** Some programs acknowledge more than they read. */
static void test_too_many_acks(void **state)
{
    (void)state;
    qp.async_events_read = 1;
    qp.pub.events_completed = 3;
    assert_int_equal(ibv_destroy_qp(&qp.pub), 0);
    assert_int_equal(destroyed, 1);
}

static void test_passed_on(void **state)
{
    struct iw_pd pd;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    (void)state;
    assert_null(ibv_create_qp(&pd.pub, &init));
    assert_int_equal(errno, EMFILE);
    assert_int_equal(ibv_modify_qp(&qp.pub, &attr, IBV_QP_STATE), IBV_QP_STATE);
    assert_int_equal(ibv_query_qp(&qp.pub, &attr, 0, NULL), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(ibv_query_qp(&qp.pub, &attr, 0, &init), 0);
    assert_int_equal(init.qp_type, IBV_QPT_RC);
    assert_null(ibv_qp_to_qp_ex(&qp.pub));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_destroy_waits, setup),
        cmocka_unit_test_setup(test_too_many_acks, setup),
        cmocka_unit_test_setup(test_passed_on, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
