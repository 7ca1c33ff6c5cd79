/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that a libibverbs and a librdmacm write to the kernel's uverbs and rdma_cm devices,
 * answered inside the process by anywarp. See anywarp-uverbs(7).
 *
 * A command is what <rdma/ib_user_verbs.h> (struct ib_uverbs_cmd_hdr, then the command's struct)
 * and <rdma/rdma_user_cm.h> (struct rdma_ucm_cmd_hdr, then the command's struct) describe. Every
 * function may be called by any thread.
 */
#ifndef ANYWARP_UVERBS_COMMANDS_H
#define ANYWARP_UVERBS_COMMANDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The commands, and their structs, that illumos has for what Linux reads from /sys. */
enum { IB_USER_VERBS_CMD_QUERY_GID = 45, IB_USER_VERBS_CMD_QUERY_PKEY = 46 };

struct ib_uverbs_query_gid {
    uint64_t response;
    uint32_t gid_index;
    uint8_t port_num;
    uint8_t reserved[3];
};

struct ib_uverbs_query_gid_resp {
    uint8_t gid[16];
};

struct ib_uverbs_query_pkey {
    uint64_t response;
    uint32_t pkey_index;
    uint8_t port_num;
    uint8_t reserved[3];
};

struct ib_uverbs_query_pkey_resp {
    uint16_t pkey;
    uint8_t reserved[2];
};

/**
 * Opens a device for verbs commands; GET_CONTEXT is the first that it takes.
 *
 * @param device its name, or NULL for the first
 * @return a descriptor, or -1 and errno: ENODEV (no such device), EMFILE, ENOMEM
 */
int anywarp_uverbs_open(const char *device);

/** Opens a channel for rdma_cm commands. @return a descriptor, or -1 and errno */
int anywarp_ucm_open(void);

/**
 * Executes one command. Descriptors in responses are good for poll() and anywarp_uverbs_read().
 *
 * @param len of the command, in bytes
 * @return len, or -1 and errno; EBADF: not a descriptor of this library
 */
ssize_t anywarp_uverbs_write(int fd, const void *command, size_t len);

/**
 * Reads events from a descriptor of GET_CONTEXT (struct ib_uverbs_async_event_desc) or
 * CREATE_COMP_CHANNEL (struct ib_uverbs_comp_event_desc). Waits for the first unless the descriptor
 * is O_NONBLOCK.
 *
 * @return the length of the record, 0 when the device was closed, or -1 and errno: EINVAL (not even
 *         one record fits, or commands are taken here), EAGAIN, EBADF, EFAULT
 */
ssize_t anywarp_uverbs_read(int fd, void *events, size_t len);

/**
 * Executes a verbs command that the attributes of a struct ib_uverbs_ioctl_hdr describe, as
 * RDMA_VERBS_IOCTL of <rdma/rdma_user_ioctl_cmds.h> does: object DEVICE, method INVOKE_WRITE.
 *
 * @return 0, or -1 and errno: ENOTTY (another request), EPROTONOSUPPORT (another method), ENOSPC
 *         (the command's struct, or the room for the response, is too short), else as
 *         anywarp_uverbs_write()
 */
int anywarp_uverbs_ioctl(int fd, unsigned long request, void *argument);

/** Closes any descriptor of this library; with the last of a device go its objects.
 * @return 0, or -1 and errno: EBADF */
int anywarp_uverbs_close(int fd);

#ifdef __cplusplus
}
#endif
#endif
