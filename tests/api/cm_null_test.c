/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of librdmacm without the pointers it needs. Where rdma-core would crash the answer
 * is -EINVAL, with errno EINVAL; where it answers, that answer.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static char called[4096]; /* " name name ", for the last test */

static void note(const char *name)
{
    assert_true(strlen(called) + strlen(name) + 2 < sizeof called);
    strcat(called, name);
    strcat(called, " ");
}

static void check(const char *name, int line, int result, int want, int want_errno)
{
    note(name);
    if (result != want || errno != want_errno)
        fail_msg("line %d: %s: %d, errno %d; wanted %d, errno %d", line, name, result, errno, want,
                 want_errno);
}

#define RESULT(want, want_errno, name, ...)                                                        \
    (errno = 0, check(#name, __LINE__, (int)(intptr_t)name(__VA_ARGS__), want, want_errno))
#define NO_HANDLE(name, ...)     RESULT(-EINVAL, EINVAL, name, __VA_ARGS__)
#define ERROR(error, name, ...)  RESULT(-1, error, name, __VA_ARGS__)
#define HARMLESS(name, ...)      (note(#name), name(__VA_ARGS__))
#define NOTHING_THERE(name, ...) RESULT(0, 0, name, __VA_ARGS__)

static int setup(void **unused)
{
    (void)unused;
    channel = rdma_create_event_channel();
    return channel ? rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return 0;
}

static void channels_and_events(void **unused)
{
    (void)unused;
    struct rdma_cm_event *event;
    note("rdma_create_event_channel"); /* takes nothing */
    HARMLESS(rdma_destroy_event_channel, NULL);
    NO_HANDLE(rdma_get_cm_event, NULL, &event);
    ERROR(EINVAL, rdma_get_cm_event, channel, NULL);
    ERROR(EINVAL, rdma_ack_cm_event, NULL);
    assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
    note("rdma_event_str");
}

static void ids(void **unused)
{
    (void)unused;
    int value = 1;
    NO_HANDLE(rdma_create_id, channel, NULL, NULL, RDMA_PS_TCP);
    NO_HANDLE(rdma_destroy_id, NULL);
    NO_HANDLE(rdma_migrate_id, NULL, channel);
    NO_HANDLE(rdma_migrate_id, NULL, NULL);
    NO_HANDLE(rdma_set_option, NULL, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof value);
    ERROR(EINVAL, rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1);
    ERROR(EINVAL, rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, NULL, 4);
    ERROR(EINVAL, rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, NULL, 4);
    ERROR(EINVAL, rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, NULL, 1);
    ERROR(EINVAL, rdma_set_option, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, NULL, 72);
}

static void addresses(void **unused)
{
    (void)unused;
    struct sockaddr_in sin = {.sin_family = AF_INET};
    struct sockaddr *any = (struct sockaddr *)&sin;
    struct rdma_addrinfo *res;
    NO_HANDLE(rdma_bind_addr, NULL, any);
    ERROR(EINVAL, rdma_bind_addr, id, NULL);
    NO_HANDLE(rdma_resolve_addr, NULL, NULL, any, 1);
    ERROR(EINVAL, rdma_resolve_addr, id, NULL, NULL, 1);
    NO_HANDLE(rdma_resolve_route, NULL, 1);
    NOTHING_THERE(rdma_get_src_port, NULL);
    NOTHING_THERE(rdma_get_dst_port, NULL);
    ERROR(EINVAL, rdma_getaddrinfo, NULL, NULL, NULL, &res);
    ERROR(EINVAL, rdma_getaddrinfo, "127.0.0.1", NULL, NULL, NULL);
    HARMLESS(rdma_freeaddrinfo, NULL);
}

static void queues(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    struct ibv_qp_init_attr_ex attr_ex = {.qp_type = IBV_QPT_RC};
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1}};
    struct ibv_srq_init_attr_ex srq_ex = {.attr = {.max_wr = 1}};
    struct ibv_qp_attr modify = {.qp_state = IBV_QPS_INIT};
    int mask;
    NO_HANDLE(rdma_create_qp, NULL, NULL, &attr);
    NO_HANDLE(rdma_create_qp, id, NULL, NULL);
    NO_HANDLE(rdma_create_qp_ex, NULL, &attr_ex);
    NO_HANDLE(rdma_create_qp_ex, id, NULL);
    HARMLESS(rdma_destroy_qp, NULL);
    HARMLESS(rdma_destroy_qp, id); /* has none */
    NO_HANDLE(rdma_create_srq, NULL, NULL, &srq);
    NO_HANDLE(rdma_create_srq, id, NULL, NULL);
    NO_HANDLE(rdma_create_srq_ex, NULL, &srq_ex);
    NO_HANDLE(rdma_create_srq_ex, id, NULL);
    HARMLESS(rdma_destroy_srq, NULL);
    HARMLESS(rdma_destroy_srq, id); /* has none */
    NO_HANDLE(rdma_init_qp_attr, NULL, &modify, &mask);
    ERROR(EINVAL, rdma_init_qp_attr, id, NULL, &mask);
    ERROR(EINVAL, rdma_init_qp_attr, id, &modify, NULL);
}

static void connections(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {.qp_num = 1};
    struct ibv_ece ece = {.vendor_id = 1};
    NO_HANDLE(rdma_connect, NULL, &conn);
    NO_HANDLE(rdma_connect, NULL, NULL);
    ERROR(EINVAL, rdma_connect, id, NULL);
    NO_HANDLE(rdma_listen, NULL, 1);
    NO_HANDLE(rdma_accept, NULL, &conn);
    NO_HANDLE(rdma_accept, NULL, NULL);
    ERROR(EINVAL, rdma_accept, id, NULL);
    NO_HANDLE(rdma_reject, NULL, NULL, 0);
    NO_HANDLE(rdma_reject_ece, NULL, NULL, 0);
    NO_HANDLE(rdma_disconnect, NULL);
    NO_HANDLE(rdma_establish, NULL);
    NO_HANDLE(rdma_notify, NULL, IBV_EVENT_COMM_EST);
    NO_HANDLE(rdma_set_local_ece, NULL, &ece);
    ERROR(EINVAL, rdma_set_local_ece, id, NULL);
    NO_HANDLE(rdma_get_remote_ece, NULL, &ece);
    ERROR(EINVAL, rdma_get_remote_ece, id, NULL);
}

static void endpoints(void **unused)
{
    (void)unused;
    struct rdma_addrinfo empty = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
    struct rdma_addrinfo passive = empty;
    struct rdma_cm_id *out;
    passive.ai_flags = RAI_PASSIVE;
    NO_HANDLE(rdma_create_ep, NULL, &empty, NULL, NULL);
    NO_HANDLE(rdma_create_ep, &out, NULL, NULL, NULL);
    ERROR(EINVAL, rdma_create_ep, &out, &empty, NULL, NULL);   /* without destination */
    ERROR(EINVAL, rdma_create_ep, &out, &passive, NULL, NULL); /* without source */
    HARMLESS(rdma_destroy_ep, NULL);
    NO_HANDLE(rdma_get_request, NULL, &out);
    NO_HANDLE(rdma_get_request, id, NULL);
}

static void multicast(void **unused)
{
    (void)unused;
    struct sockaddr_in sin = {.sin_family = AF_INET};
    struct sockaddr *group = (struct sockaddr *)&sin;
    struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS};
    NO_HANDLE(rdma_join_multicast, NULL, group, NULL);
    ERROR(EINVAL, rdma_join_multicast, id, NULL, NULL);
    NO_HANDLE(rdma_join_multicast_ex, NULL, &attr, NULL);
    NO_HANDLE(rdma_join_multicast_ex, id, NULL, NULL);
    ERROR(EINVAL, rdma_join_multicast_ex, id, &attr, NULL); /* without address */
    NO_HANDLE(rdma_leave_multicast, NULL, group);
    ERROR(EINVAL, rdma_leave_multicast, id, NULL);
}

static void devices(void **unused)
{
    (void)unused;
    struct ibv_context **list = rdma_get_devices(NULL);
    note("rdma_get_devices");
    assert_non_null(list);
    rdma_free_devices(list);
    HARMLESS(rdma_free_devices, NULL);
}

/* rsocket functions take descriptors, no handles; tests/abi/later_cm_test.c has what is at 1.4. */
static void none_is_forgotten(void **unused)
{
    (void)unused;
    char line[128], name[64], node[16], word[80], path[4096];
    const char *sources = getenv("SRCDIR");
    int found = 0;
    if (!sources)
        skip();
    snprintf(path, sizeof path, "%s/tests/abi/librdmacm.symbols", sources);
    FILE *symbols = fopen(path, "r");
    assert_non_null(symbols);
    while (fgets(line, sizeof line, symbols)) {
        if (sscanf(line, "rdma_%50[a-z_]@%15s", name, node) != 2 || !strcmp(node, "RDMACM_1.4"))
            continue;
        snprintf(word, sizeof word, " rdma_%s ", name);
        if (!strstr(called, word))
            fail_msg("%s is not called here", word);
        found++;
    }
    fclose(symbols);
    assert_true(found > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_and_events), cmocka_unit_test(ids),
        cmocka_unit_test(addresses),           cmocka_unit_test(queues),
        cmocka_unit_test(connections),         cmocka_unit_test(endpoints),
        cmocka_unit_test(multicast),           cmocka_unit_test(devices),
        cmocka_unit_test(none_is_forgotten),
    };
    called[0] = ' ';
    return cmocka_run_group_tests(tests, setup, teardown);
}
