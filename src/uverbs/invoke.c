/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/invoke.h"

#include "uverbs/command.h"
#include "uverbs/trace.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES_MAX = 64, INLINED = 8 };

/* The attributes of the method. Each comes once at most. */
enum slot { WRITE_CMD, CORE_IN, UHW_IN, CORE_OUT, UHW_OUT, SLOTS };

static const struct {
    uint16_t id;
    bool in;      /* read, from the attribute itself if it is short */
    uint16_t len; /* 0: any */
} attributes[SLOTS] = {
    [WRITE_CMD] = {UVERBS_ATTR_WRITE_CMD, true, 8}, [CORE_IN] = {UVERBS_ATTR_CORE_IN, true, 0},
    [UHW_IN] = {UVERBS_ATTR_UHW_IN, true, 0},       [CORE_OUT] = {UVERBS_ATTR_CORE_OUT, false, 0},
    [UHW_OUT] = {UVERBS_ATTR_UHW_OUT, false, 0},
};

struct part {
    uint64_t at;
    size_t len;
    bool there;
};

/** The parts of a command, and its bytes in one piece. */
struct invocation {
    struct part parts[SLOTS];
    const uint8_t *in;
    size_t in_len;
    uint8_t *copy; /* NULL: they were in one piece */
};

static int take(struct invocation *v, struct ib_uverbs_attr *a)
{
    enum slot slot = 0;
    while (slot < SLOTS && attributes[slot].id != a->attr_id)
        slot++;
    if (slot == SLOTS)
        return a->flags & UVERBS_ATTR_F_MANDATORY ? EPROTONOSUPPORT : 0;
    struct part *p = &v->parts[slot];
    if (p->there || a->attr_data.reserved ||
        (attributes[slot].len && a->len != attributes[slot].len))
        return EINVAL;
    bool inlined = attributes[slot].in && a->len <= INLINED;
    *p = (struct part){inlined ? (uintptr_t)&a->data : a->data, a->len, true};
    if (p->len && attributes[slot].in && !uv_readable(p->at, p->len, true))
        return EFAULT;
    return 0;
}

static int take_all(struct invocation *v, struct ib_uverbs_ioctl_hdr *hdr)
{
    if (!uv_readable((uintptr_t)hdr, sizeof *hdr, true))
        return EFAULT;
    if (hdr->num_attrs > ATTRIBUTES_MAX ||
        hdr->length != sizeof *hdr + hdr->num_attrs * sizeof hdr->attrs[0])
        return EINVAL;
    if (!uv_readable((uintptr_t)hdr, hdr->length, true))
        return EFAULT;
    if (hdr->reserved1 || hdr->reserved2 || hdr->object_id != UVERBS_OBJECT_DEVICE ||
        hdr->method_id != UVERBS_METHOD_INVOKE_WRITE)
        return EPROTONOSUPPORT;
    for (int i = 0; i < hdr->num_attrs; i++) {
        int err = take(v, &hdr->attrs[i]);
        if (err)
            return err;
    }
    return v->parts[WRITE_CMD].there ? 0 : EINVAL;
}

/* What is the provider's follows the struct, mostly in memory, too. */
static int join(struct invocation *v)
{
    const struct part *core = &v->parts[CORE_IN], *rest = &v->parts[UHW_IN];
    v->in = (const uint8_t *)(uintptr_t)core->at;
    if (!rest->len || rest->at == core->at + core->len)
        return 0;
    v->copy = malloc(v->in_len);
    if (!v->copy)
        return ENOMEM;
    if (core->len)
        memcpy(v->copy, v->in, core->len);
    memcpy(v->copy + core->len, (const void *)(uintptr_t)rest->at, rest->len);
    v->in = v->copy;
    return 0;
}

static int execute(struct uv_file *f, struct invocation *v, const struct uv_command *row)
{
    const struct part *core = &v->parts[CORE_OUT], *rest = &v->parts[UHW_OUT];
    bool apart = rest->len && rest->at != core->at + core->len;
    size_t out_len = core->len + (apart ? 0 : rest->len);
    v->in_len = v->parts[CORE_IN].len + v->parts[UHW_IN].len;
    if (v->in_len < row->in || out_len < row->out_linux)
        return ENOSPC;
    if (apart && !uv_writable(rest->at, rest->len, true))
        return EFAULT;
    int err = join(v);
    if (!err)
        err = uv_execute(f, row, v->in, v->in_len, core->at, out_len);
    if (!err && apart) /* of providers' answers there are none */
        memset((void *)(uintptr_t)rest->at, 0, rest->len);
    free(v->copy);
    return err;
}

int uv_ioctl(struct uv_file *f, unsigned long request, void *argument)
{
    struct invocation v = {0};
    if (request != RDMA_VERBS_IOCTL)
        return -ENOTTY;
    int err = take_all(&v, argument);
    if (err)
        return -err;
    uint64_t number;
    memcpy(&number, (const void *)(uintptr_t)v.parts[WRITE_CMD].at, sizeof number);
    const struct uv_command *row = number < UINT32_MAX ? uv_command_row((uint32_t)number) : NULL;
    if (row)
        err = execute(f, &v, row);
    else
        err = number & IB_USER_VERBS_CMD_FLAG_EXTENDED ? ENOSYS : EINVAL;
    size_t in = 2 + v.in_len / 4; /* with the header that a written command has */
    size_t out = (v.parts[CORE_OUT].len + v.parts[UHW_OUT].len) / 4;
    uv_trace(row ? row->name : "unknown", (unsigned)in, (unsigned)out, -err);
    return -err;
}
