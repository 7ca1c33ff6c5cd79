/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device whose commands are what the input says: numbers, lengths and bytes. Handles are those
 * that were given, or near them, and addresses lead to memory of ours, or to none. Whatever comes,
 * the answer is the length or an errno, nothing is written beyond a response, and with the
 * descriptors everything is gone.
 */
#include "fuzz/fuzz.h"

#include <anywarp/uverbs.h>

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <unistd.h>

enum { COMMANDS = 64, GIVEN = 16, ARENA = 4096, OUT = 512, GUARD = 0x5a, CHANNELS = 4 };

static struct {
    int fd;
    uint32_t given[GIVEN]; /* handles, and what else responses begin with */
    unsigned n;
    int events[CHANNELS]; /* descriptors from responses */
    unsigned n_events;
    union {
        uint8_t bytes[OUT + 64];
        uint64_t aligned;
    } out;
    uint8_t memory[ARENA + OUT] __attribute__((aligned(4096))); /* a response fits behind each */
} world;

static uint32_t any_given(struct fuzz_in *in)
{
    uint8_t which = fuzz_u8(in);
    uint32_t handle = world.n ? world.given[which % GIVEN % world.n] : 0;
    return which < 0xe0 ? handle : handle + ((uint32_t)(which & 1) << 20) + (which & 2);
}

static uint64_t any_address(struct fuzz_in *in)
{
    uint16_t which = fuzz_u16(in);
    return which >= 0xff00 ? which & 0xff : (uintptr_t)world.memory + which % ARENA;
}

static void put(uint8_t *bytes, size_t len, size_t at, const void *value, size_t size)
{
    if (at + size <= len)
        memcpy(bytes + at, value, size);
}

/* Numbers that only this process can know take the place of some of the input's bytes. */
static void patch(struct fuzz_in *in, uint32_t number, uint8_t *bytes, size_t len)
{
    uint64_t address;
    uint32_t handle;
    for (unsigned i = fuzz_u8(in) % 8; i; i--) {
        handle = any_given(in);
        put(bytes, len, fuzz_u8(in) % 32 * 4u, &handle, 4);
    }
    if (number == IB_USER_VERBS_CMD_REG_MR) { /* of others, no memory is registered */
        address = any_address(in);
        put(bytes, len, 8, &address, 8);
        put(bytes, len, 24, &address, 8);
        uint64_t room = fuzz_u16(in) % ARENA;
        if (address >= (uintptr_t)world.memory)
            room %= (uintptr_t)world.memory + ARENA - address;
        put(bytes, len, 16, &room, 8);
    } else if (number == IB_USER_VERBS_CMD_POST_SEND || number == IB_USER_VERBS_CMD_POST_RECV ||
               number == IB_USER_VERBS_CMD_POST_SRQ_RECV) {
        address = any_address(in);
        put(bytes, len, number == IB_USER_VERBS_CMD_POST_SEND ? 80 : 40, &address, 8);
    } else if (number == IB_USER_VERBS_CMD_MODIFY_QP) { /* and nobody is called */
        static const uint8_t nowhere[16];
        put(bytes, len, 0, nowhere, sizeof nowhere);
    } else if (number == IB_USER_VERBS_CMD_CREATE_CQ) {
        int32_t channel = world.n_events ? world.events[fuzz_u8(in) % world.n_events] : -1;
        put(bytes, len, 24, &channel, 4);
    }
}

static bool opens(uint32_t number)
{
    return number == IB_USER_VERBS_CMD_GET_CONTEXT ||
           number == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL;
}

static void remember(uint32_t number)
{
    uint32_t first;
    memcpy(&first, world.out.bytes, sizeof first);
    if (opens(number)) {
        if (world.n_events < CHANNELS)
            world.events[world.n_events++] = (int)first;
        else
            FUZZ_CHECK(anywarp_uverbs_close((int)first) == 0);
    } else {
        world.given[world.n++ % GIVEN] = first;
        if (world.n > 2 * GIVEN)
            world.n -= GIVEN;
    }
}

/* All others have something else where that has its address. */
static bool has_response(uint32_t number)
{
    switch (number) {
    case IB_USER_VERBS_CMD_DEALLOC_PD:
    case IB_USER_VERBS_CMD_DESTROY_AH:
    case IB_USER_VERBS_CMD_DEREG_MR:
    case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
    case IB_USER_VERBS_CMD_MODIFY_QP:
    case IB_USER_VERBS_CMD_ATTACH_MCAST:
    case IB_USER_VERBS_CMD_DETACH_MCAST:
    case IB_USER_VERBS_CMD_MODIFY_SRQ:
        return false;
    default:
        return true;
    }
}

static bool makes(uint32_t number)
{
    return opens(number) || number == IB_USER_VERBS_CMD_ALLOC_PD ||
           number == IB_USER_VERBS_CMD_REG_MR || number == IB_USER_VERBS_CMD_CREATE_CQ ||
           number == IB_USER_VERBS_CMD_CREATE_QP || number == IB_USER_VERBS_CMD_CREATE_SRQ ||
           number == IB_USER_VERBS_CMD_CREATE_AH;
}

static ssize_t by_write(uint32_t number, const uint8_t *bytes, size_t len, size_t out_len)
{
    uint8_t *command = malloc(len + sizeof(struct ib_uverbs_cmd_hdr));
    struct ib_uverbs_cmd_hdr hdr = {number, (uint16_t)((len + sizeof hdr) / 4),
                                    (uint16_t)(out_len / 4)};
    FUZZ_CHECK(command);
    memcpy(command, &hdr, sizeof hdr);
    memcpy(command + sizeof hdr, bytes, len);
    ssize_t n = anywarp_uverbs_write(world.fd, command, len + sizeof hdr);
    FUZZ_CHECK(n == -1 || n == (ssize_t)(len + sizeof hdr));
    free(command);
    return n;
}

static ssize_t by_ioctl(struct fuzz_in *in, uint32_t number, const uint8_t *bytes, size_t len,
                        size_t out_len)
{
    struct {
        struct ib_uverbs_ioctl_hdr hdr;
        struct ib_uverbs_attr attrs[5];
    } call = {.hdr = {.object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE}};
    size_t core = len ? fuzz_u8(in) % (len + 1) : 0;
    core = core <= 8 ? len : core; /* what is in the attribute itself would be another's part */
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = UVERBS_ATTR_WRITE_CMD, .len = 8, .data = number},
        {.attr_id = UVERBS_ATTR_CORE_IN, .len = (uint16_t)core, .data = (uintptr_t)bytes},
        {.attr_id = UVERBS_ATTR_CORE_OUT, .len = (uint16_t)out_len, .data = (uintptr_t)&world.out},
        {.attr_id = UVERBS_ATTR_UHW_IN,
         .len = (uint16_t)(len - core),
         .data = (uintptr_t)bytes + core},
    };
    memcpy(call.attrs, attrs, sizeof attrs);
    if (core <= 8)
        memcpy(&call.attrs[1].data, bytes, core);
    if (len - core <= 8)
        memcpy(&call.attrs[3].data, bytes + core, len - core);
    call.hdr.num_attrs = 4;
    call.hdr.length = (uint16_t)(sizeof call.hdr + 4 * sizeof call.attrs[0]);
    uint8_t change = fuzz_u8(in);
    if (change < 16)
        call.attrs[change % 4].attr_id = fuzz_u8(in);
    return anywarp_uverbs_ioctl(world.fd, RDMA_VERBS_IOCTL, &call);
}

static void one_command(struct fuzz_in *in)
{
    uint64_t address = (uintptr_t)&world.out;
    uint8_t how = fuzz_u8(in);
    uint32_t number = fuzz_u8(in) % 50;
    size_t len = fuzz_u8(in) / 4 * 4u, out_len = fuzz_u8(in) * 4u % OUT, got;
    const uint8_t *p = fuzz_bytes(in, len, &got);
    uint8_t *bytes = calloc(len + 1, 1);
    FUZZ_CHECK(bytes);
    memcpy(bytes, p, got);
    patch(in, number, bytes, len);
    bool elsewhere = (how & 0x3f) == 0 && !opens(number); /* who would close that? */
    if (elsewhere)
        address = any_address(in);
    if (has_response(number))
        put(bytes, len, 0, &address, 8);
    memset(&world.out, GUARD, sizeof world.out);
    errno = 0;
    ssize_t n = how & 0x80 ? by_ioctl(in, number, bytes, len, out_len)
                           : by_write(number, bytes, len, out_len);
    FUZZ_CHECK(n >= 0 || (errno > 0 && errno < 200));
    for (size_t i = out_len; i < sizeof world.out; i++)
        FUZZ_CHECK(world.out.bytes[i] == GUARD);
    if (n >= 0 && out_len >= 4 && makes(number) && (!elsewhere || how & 0x80))
        remember(number);
    free(bytes);
}

static void read_events(struct fuzz_in *in)
{
    uint64_t record[2];
    if (!world.n_events)
        return;
    int fd = world.events[fuzz_u8(in) % world.n_events];
    int flags = fcntl(fd, F_GETFL);
    FUZZ_CHECK(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    ssize_t n = anywarp_uverbs_read(fd, record, fuzz_u8(in) % 17);
    FUZZ_CHECK(n == 8 || n == 16 || n == 0 || (n == -1 && errno > 0));
}

/** The number that the next descriptor gets: all that an input opened is closed behind it. */
static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);
    FUZZ_CHECK(fd >= 0);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    memset(&world, 0, sizeof world);
    int next = next_descriptor();
    world.fd = anywarp_uverbs_open(NULL);
    FUZZ_CHECK(world.fd >= 0);
    for (int i = 0; i < COMMANDS && in.left; i++) {
        if (*in.p == 0xff)
            read_events(&in);
        one_command(&in);
    }
    FUZZ_CHECK(anywarp_uverbs_close(world.fd) == 0);
    while (world.n_events)
        FUZZ_CHECK(anywarp_uverbs_close(world.events[--world.n_events]) == 0);
    FUZZ_CHECK(next_descriptor() == next);
    return 0;
}
