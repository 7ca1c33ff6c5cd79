/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_net.h"
#include "cm_kit.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char network[] = "exec >/dev/null 2>&1; set -e\n"
                              "ip link set lo up\n"
                              "ip link add v0 type veth peer name v1\n"
                              "for i in 0 1; do\n"
                              "    ip link set v$i addrgenmode none\n"
                              "    ip link set v$i up\n"
                              "    ip addr add 10.77.$i.1/24 dev v$i\n"
                              "    ip addr add fd77:$i::1/64 dev v$i nodad\n"
                              "    ip addr add fe80::7$i/64 dev v$i nodad\n"
                              "done\n"
                              "ip neigh add 10.77.0.98 lladdr 02:00:00:00:00:98 dev v0\n"
                              "ip ntable change name arp_cache dev v0 retrans 50\n"
                              "ip route add unreachable 10.98.0.0/16\n";

int cm_net_make(void)
{
    if (unshare(CLONE_NEWNET)) {
        print_message("SKIP: no network namespace: %s\n", strerror(errno));
        return CM_NET_SKIPPED;
    }
    if (system(network) != 0) {
        print_message("SKIP: no network can be made in a namespace\n");
        return CM_NET_SKIPPED;
    }
    return 0;
}

static int run(const struct cm_net_mode *mode)
{
    int skipped = cm_net_make();
    if (skipped)
        return skipped;
    if (mode->variable)
        setenv(mode->variable, mode->value, 1);
    return mode->run();
}

static int run_again(const char *mode)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", mode, mode, (char *)NULL);
        _exit(99);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int cm_net_main(int argc, char **argv, const struct cm_net_mode *modes, size_t n)
{
    int result = 0;
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    unsetenv("ANYWARP_CONNECT_MS");
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0)
            return run(&modes[i]);
        int status = argc > 1 ? 0 : run_again(modes[i].name);
        if (status && result != 1)
            result = status == CM_NET_SKIPPED ? CM_NET_SKIPPED : 1;
    }
    return argc > 1 ? 99 : result;
}

struct sockaddr_storage cm_net_address(const char *text, uint16_t port)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *ai;
    struct sockaddr_storage addr = {0};
    if (getaddrinfo(text, NULL, &hints, &ai) != 0)
        fail_msg("bad address %s", text);
    memcpy(&addr, ai->ai_addr, ai->ai_addrlen);
    freeaddrinfo(ai);
    ((struct sockaddr_in *)&addr)->sin_port = port; /* at one place in both families */
    return addr;
}

static void print(const struct sockaddr *addr, char *to, size_t size)
{
    char host[64] = "?", port[16] = "?";
    socklen_t len =
        addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    getnameinfo(addr, len, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(to, size, "%s port %s", host, port);
}

void cm_net_same(const struct sockaddr *a, const struct sockaddr *b)
{
    char text_a[96], text_b[96];
    print(a, text_a, sizeof(text_a));
    print(b, text_b, sizeof(text_b));
    assert_string_equal(text_a, text_b);
}

/* ---- ids ---- */

struct rdma_event_channel *cm_net_channel;

int cm_net_open(void **state)
{
    (void)state;
    cm_net_channel = rdma_create_event_channel();
    return cm_net_channel ? 0 : -1;
}

int cm_net_close(void **state)
{
    (void)state;
    rdma_destroy_event_channel(cm_net_channel);
    return 0;
}

struct rdma_cm_id *cm_net_id(void)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(cm_net_channel, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

int cm_net_set(struct rdma_cm_id *id, int option, int value)
{
    return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

int cm_net_bind(struct rdma_cm_id *id, const char *text, uint16_t port)
{
    struct sockaddr_storage addr = cm_net_address(text, port);
    return rdma_bind_addr(id, (struct sockaddr *)&addr) ? errno : 0;
}

int cm_net_listen(struct rdma_cm_id *id)
{
    return rdma_listen(id, 0) ? errno : 0;
}

int cm_net_resolve(struct rdma_cm_id *id, const char *src, const char *dst, uint16_t port)
{
    struct sockaddr_storage from, to = cm_net_address(dst, port);
    if (src)
        from = cm_net_address(src, 0);
    return rdma_resolve_addr(id, src ? (struct sockaddr *)&from : NULL, (struct sockaddr *)&to,
                             2000)
               ? errno
               : 0;
}

struct rdma_cm_id *cm_net_listener(const char *text, bool afonly)
{
    struct rdma_cm_id *id = cm_net_id();
    if (afonly)
        assert_int_equal(cm_net_set(id, RDMA_OPTION_ID_AFONLY, 1), 0);
    assert_int_equal(cm_net_bind(id, text, 0), 0);
    assert_int_equal(cm_net_listen(id), 0);
    assert_int_not_equal(rdma_get_src_port(id), 0);
    return id;
}

struct rdma_cm_id *cm_net_begin(const char *src, const char *dst, uint16_t port)
{
    struct rdma_cm_id *id = cm_net_id();
    assert_int_equal(cm_net_resolve(id, src, dst, port), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    cm_add_qp(id);
    assert_int_equal(rdma_connect(id, NULL), 0);
    return id;
}

struct rdma_cm_id *cm_net_finish(void)
{
    struct rdma_cm_id *id = cm_request(cm_net_channel);
    cm_add_qp(id);
    assert_int_equal(rdma_accept(id, NULL), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
    return id;
}

void cm_net_send(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
    struct ibv_mr *ms = cm_reg(from), *mr = cm_reg(to);
    struct ibv_sge out = {(uintptr_t)ms->addr, 8, ms->lkey};
    struct ibv_sge in = {(uintptr_t)mr->addr, CM_BYTES, mr->lkey};
    struct ibv_recv_wr rwr = {.sg_list = &in, .num_sge = 1}, *bad_r;
    struct ibv_send_wr swr = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_s;
    assert_int_equal(ibv_post_recv(to->qp, &rwr, &bad_r), 0);
    strcpy(ms->addr, "message");
    assert_int_equal(ibv_post_send(from->qp, &swr, &bad_s), 0);
    assert_int_equal(cm_poll(to->recv_cq).status, IBV_WC_SUCCESS);
    assert_string_equal(mr->addr, "message");
    assert_int_equal(cm_poll(from->send_cq).status, IBV_WC_SUCCESS);
    cm_unreg(ms);
    cm_unreg(mr);
}
