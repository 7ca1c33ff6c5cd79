/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port as interfaces come and go: its state, MTU and speed, and the events that tell. The test
 * makes network namespaces and interfaces of its own; the program runs itself once for each way to
 * configure the devices, as the library reads its knobs once.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>
#include <infiniband/verbs.h>

#define SKIPPED      77
#define LINK_DOWN    3 /* phys_state */
#define LINK_UP      5
#define WAIT_MS      20000
#define QUIET_MS     200
#define LOG_TEMPLATE "test-log-XXXXXX"

/* ---- interfaces ---- */

static int interface_ioctl(unsigned long request, struct ifreq *r)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = ioctl(fd, request, r);
    close(fd);
    return result;
}

static void set_up(const char *name, bool up)
{
    struct ifreq r = {0};
    strcpy(r.ifr_name, name);
    assert_int_equal(interface_ioctl(SIOCGIFFLAGS, &r), 0);
    r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
    assert_int_equal(interface_ioctl(SIOCSIFFLAGS, &r), 0);
}

static void wait_running(const char *name)
{
    struct ifreq r = {0};
    strcpy(r.ifr_name, name);
    for (int ms = 0; ms < WAIT_MS && !(r.ifr_flags & IFF_RUNNING); ms++) {
        assert_int_equal(interface_ioctl(SIOCGIFFLAGS, &r), 0);
        usleep(1000);
    }
    assert_true(r.ifr_flags & IFF_RUNNING);
}

static void set_mtu(const char *name, int mtu)
{
    struct ifreq r = {.ifr_mtu = mtu};
    strcpy(r.ifr_name, name);
    assert_int_equal(interface_ioctl(SIOCSIFMTU, &r), 0);
}

static void add_address(const char *label, uint32_t address)
{
    struct ifreq r = {0};
    strcpy(r.ifr_name, label);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(&r.ifr_addr, &in, sizeof(in));
    assert_int_equal(interface_ioctl(SIOCSIFADDR, &r), 0);
}

/** v0 and v1, joined, both down. */
static bool make_veth(void)
{
    return system("ip link add v0 type veth peer name v1 2>/dev/null") == 0;
}

/* ---- the library ---- */

static struct ibv_context *open_named(const char *name)
{
    struct ibv_context *ctx = NULL;
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    for (struct ibv_device **d = list; *d && !ctx; d++)
        if (strcmp(ibv_get_device_name(*d), name) == 0)
            ctx = ibv_open_device(*d);
    ibv_free_device_list(list);
    assert_non_null(ctx);
    return ctx;
}

static struct ibv_port_attr port_of(struct ibv_context *ctx)
{
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    return port;
}

static void expect_state(struct ibv_context *ctx, enum ibv_port_state state)
{
    struct ibv_port_attr port = port_of(ctx);
    assert_int_equal(port.state, state);
    assert_int_equal(port.phys_state, state == IBV_PORT_ACTIVE ? LINK_UP : LINK_DOWN);
}

/** The next event, found as event loops do: by poll() on the descriptor. */
static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
{
    struct ibv_async_event event;
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(ibv_get_async_event(ctx, &event), 0);
    assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    assert_int_equal(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    expect_state(ctx, type == IBV_EVENT_PORT_ACTIVE ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
}

static void expect_no_event(struct ibv_context *ctx)
{
    struct ibv_async_event event;
    int flags = fcntl(ctx->async_fd, F_GETFL);
    fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
    errno = 0;
    assert_int_equal(ibv_get_async_event(ctx, &event), -1);
    assert_int_equal(errno, EAGAIN);
    fcntl(ctx->async_fd, F_SETFL, flags);
}

/** No event comes of what just happened. */
static void expect_quiet(struct ibv_context *ctx)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, QUIET_MS), 0);
}

static int threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *d; (d = readdir(tasks));)
        n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* ---- one device for all interfaces ---- */

/** First: nothing has opened a device yet. */
static void test_listing_starts_nothing(void **state)
{
    int n = 0, before = threads();
    (void)state;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_int_equal(n, 1);
    assert_int_not_equal(ibv_get_device_guid(list[0]), 0);
    ibv_free_device_list(list);
    assert_int_equal(threads(), before);
}

static void test_up_and_down(void **state)
{
    struct ibv_context *ctx = open_named("anywarp0");
    (void)state;
    expect_state(ctx, IBV_PORT_DOWN);
    for (int i = 0; i < 3; i++) {
        set_up("lo", true);
        expect_event(ctx, IBV_EVENT_PORT_ACTIVE);
        set_up("lo", false);
        expect_event(ctx, IBV_EVENT_PORT_ERR);
    }
    expect_no_event(ctx);
    assert_int_equal(ibv_close_device(ctx), 0);
}

static void *get_event(void *arg)
{
    struct ibv_async_event *event = arg;
    struct ibv_context *ctx = event->element.qp->context;
    return (void *)(intptr_t)ibv_get_async_event(ctx, event);
}

static void test_blocking_getter(void **state)
{
    struct ibv_context *ctx = open_named("anywarp0");
    struct ibv_qp carrier = {.context = ctx};
    struct ibv_async_event event = {.element.qp = &carrier};
    pthread_t thread;
    void *result;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, get_event, &event), 0);
    set_up("lo", true);
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
    set_up("lo", false);
    expect_event(ctx, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_close_device(ctx), 0);
}

/** A new address is a new GID, and no event of the port: the next one is that of the state. */
static void test_address(void **state)
{
    struct ibv_context *ctx = open_named("anywarp0");
    union ibv_gid gid;
    bool found = false;
    (void)state;
    set_up("lo", true);
    expect_event(ctx, IBV_EVENT_PORT_ACTIVE);
    int before = port_of(ctx).gid_tbl_len;
    add_address("lo:1", 0x7f000107);
    int after = port_of(ctx).gid_tbl_len;
    assert_int_equal(after, before + 1);
    for (int i = 0; i < after; i++) {
        assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
        found |= memcmp(gid.raw + 12, (uint8_t[]){127, 0, 1, 7}, 4) == 0;
    }
    assert_true(found);
    set_up("lo", false);
    expect_event(ctx, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_close_device(ctx), 0);
}

/** Every context has its own events; those that nobody read go with it. */
static void test_contexts(void **state)
{
    struct ibv_context *a = open_named("anywarp0"), *b = open_named("anywarp0");
    (void)state;
    set_up("lo", true);
    expect_event(a, IBV_EVENT_PORT_ACTIVE);
    expect_event(b, IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(ibv_close_device(a), 0);
    set_up("lo", false);
    expect_event(b, IBV_EVENT_PORT_ERR);
    set_up("lo", true);
    struct pollfd p = {.fd = b->async_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(ibv_close_device(b), 0);
    set_up("lo", false);
}

/** The port stays ACTIVE while one interface is left. */
static void test_last_interface(void **state)
{
    (void)state;
    if (!make_veth())
        skip();
    struct ibv_context *ctx = open_named("anywarp0");
    set_up("lo", true);
    expect_event(ctx, IBV_EVENT_PORT_ACTIVE);
    set_up("v0", true);
    set_up("v1", true);
    wait_running("v0");
    set_up("lo", false);
    expect_quiet(ctx);
    set_up("v0", false);
    set_up("v1", false);
    expect_event(ctx, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_close_device(ctx), 0);
}

/* ---- a device for each interface: "l=lo v=v0 n=none" ---- */

static void test_own_interface(void **state)
{
    struct ibv_context *l = open_named("l"), *n = open_named("n");
    (void)state;
    expect_state(n, IBV_PORT_DOWN);
    set_up("lo", true);
    expect_event(l, IBV_EVENT_PORT_ACTIVE);
    expect_quiet(n);
    set_up("lo", false);
    expect_event(l, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_close_device(l), 0);
    assert_int_equal(ibv_close_device(n), 0);
}

/** Whether the kernel passes questions on to drivers; what stands in for one may not. */
static bool can_ask(const char *interface)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq r = {.ifr_data = (void *)&info};
    strncpy(r.ifr_name, interface, IFNAMSIZ - 1);
    bool can = interface_ioctl(SIOCETHTOOL, &r) == 0;
    if (!can)
        print_message("no SIOCETHTOOL: the speed is not looked at\n");
    return can;
}

/** An interface that is made and removed under the device's name; its cable pulled by the other. */
static void test_interface_comes_and_goes(void **state)
{
    static const struct {
        int bytes;
        enum ibv_mtu mtu;
    } mtus[] = {
        {300, IBV_MTU_256},   {512, IBV_MTU_512},   {1500, IBV_MTU_1024},
        {2048, IBV_MTU_2048}, {9000, IBV_MTU_4096},
    };
    struct ibv_context *v = open_named("v");
    (void)state;
    expect_state(v, IBV_PORT_DOWN);
    if (!make_veth()) {
        ibv_close_device(v);
        skip();
    }
    set_up("v0", true);
    expect_quiet(v); /* no carrier */
    set_up("v1", true);
    expect_event(v, IBV_EVENT_PORT_ACTIVE);
    for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
        set_mtu("v0", mtus[i].bytes);
        assert_int_equal(port_of(v).active_mtu, mtus[i].mtu);
    }
    if (can_ask("v0")) {
        struct ibv_port_attr port = port_of(v); /* 10 Gb/s, says the driver */
        assert_int_equal(port.active_width, 1);
        assert_int_equal(port.active_speed, 8);
    }
    set_up("v1", false);
    expect_event(v, IBV_EVENT_PORT_ERR);
    set_up("v1", true);
    expect_event(v, IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(system("ip link del v0"), 0);
    expect_event(v, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_close_device(v), 0);
}

/* ---- where a sandbox allows no netlink socket ---- */

static void test_netlink_denied(void **state)
{
    union ibv_gid gid;
    char text[4096];
    (void)state;
    struct ibv_context *ctx = open_named("anywarp0");
    assert_int_equal(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), -1);
    expect_state(ctx, IBV_PORT_DOWN);
    set_up("lo", true);
    add_address("lo:1", 0x7f000107);
    expect_state(ctx, IBV_PORT_ACTIVE);
    assert_int_equal(port_of(ctx).active_mtu, IBV_MTU_4096);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
        const uint8_t ip[] = {127, 0, i == 1 ? 0 : 1, i == 1 ? 1 : 7};
        assert_memory_equal(gid.raw + 12, ip, sizeof(ip));
    }
    if (ibv_query_gid(ctx, 1, 3, &gid) == 0 && gid.raw[15])
        assert_memory_equal(gid.raw, &in6addr_loopback, sizeof(gid.raw));
    expect_no_event(ctx);
    assert_int_equal(ibv_close_device(ctx), 0);

    FILE *log = fopen(getenv("VERBS_LOG_FILE"), "r");
    assert_non_null(log);
    text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
    fclose(log);
    assert_non_null(strstr(text, "interfaces cannot be watched"));
}

static bool deny_netlink(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ---- */

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing_starts_nothing),
        cmocka_unit_test(test_up_and_down),
        cmocka_unit_test(test_blocking_getter),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_last_interface),
    };
    return cmocka_run_group_tests_name("one device", tests, NULL, NULL);
}

static int run_named(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_interface),
        cmocka_unit_test(test_interface_comes_and_goes),
    };
    setenv("ANYWARP_DEVICES", "l=lo v=v0 n=none", 1);
    return cmocka_run_group_tests_name("a device each", tests, NULL, NULL);
}

static int run_denied(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_netlink_denied)};
    char log[] = LOG_TEMPLATE;
    int fd = mkstemp(log);
    if (fd < 0 || !deny_netlink())
        return SKIPPED;
    close(fd);
    setenv("VERBS_LOG_LEVEL", "3", 1);
    setenv("VERBS_LOG_FILE", log, 1);
    int failed = cmocka_run_group_tests_name("no netlink", tests, NULL, NULL);
    unlink(log);
    return failed;
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {{"all", run_all}, {"named", run_named}, {"denied", run_denied}};

#define MODES (sizeof(modes) / sizeof(modes[0]))

static int run_mode(const char *name)
{
    for (size_t i = 0; i < MODES; i++)
        if (strcmp(modes[i].name, name) == 0)
            return modes[i].run();
    return 99;
}

/** @return the exit status of this program in that mode */
static int run_again(const char *mode)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "port_test", mode, (char *)NULL);
        _exit(99);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int argc, char **argv)
{
    int result = 0;
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    if (argc > 1) {
        if (unshare(CLONE_NEWNET) == 0)
            return run_mode(argv[1]);
        print_message("no network namespace of its own: %s\n", strerror(errno));
        return SKIPPED;
    }
    for (size_t i = 0; i < MODES; i++) {
        int status = run_again(modes[i].name);
        if (status && result != 1)
            result = status == SKIPPED ? SKIPPED : 1;
    }
    return result;
}
