/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rsockets say to each other over iWARP. Private data of the MPA Request and Reply; then
 * messages of four bytes, each a Send in the host's byte order, behind the RDMA Write that carries
 * what the message is about.
 */
#ifndef ANYWARP_RS_WIRE_H
#define ANYWARP_RS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RS_HELLO_SIZE 40
#define RS_VERSION    1

enum rs_op { RS_OP_DATA = 0, RS_OP_CREDIT = 4, RS_OP_IOMAP = 6, RS_OP_CTRL = 7 };
enum rs_ctrl { RS_CTRL_DISCONNECT = 0, RS_CTRL_SHUTDOWN = 2 };

#define RS_MESSAGE(op, data) ((uint32_t)(op) << 29 | (uint32_t)(data))
#define RS_MESSAGE_OP(m)     ((m) >> 29)
#define RS_MESSAGE_DATA(m)   ((m)&0x1fffffff)

/** Memory of the peer. As it is written into a table, in the host's byte order. */
struct rs_buffer {
    uint64_t addr;
    uint32_t key;
    uint32_t length;
};

/** A mapping of the peer; in a table, too. */
struct rs_mapping {
    uint64_t offset;
    struct rs_buffer memory;
};

#define RS_MAPPING_SIZE 24
#define RS_TARGETS      2

/** What each side tells when the connection is made. */
struct rs_hello {
    uint16_t credits;        /* messages that may be outstanding */
    uint16_t mappings;       /* entries of its table of mappings */
    struct rs_buffer tables; /* length: number of buffers that are told in turn */
    struct rs_buffer data;   /* the first buffer */
};

/** Number of mappings as it is encoded: exact up to 128, then rounded down to multiples of 256. */
uint8_t rs_encode_mappings(unsigned n);
unsigned rs_decode_mappings(uint8_t scaled);

void rs_encode_hello(const struct rs_hello *hello, uint8_t out[RS_HELLO_SIZE]);

/**
 * @param len  bytes of private data there are; more than RS_HELLO_SIZE are ignored
 * @return 0; -EPROTO if it is not a hello; -ENOTSUP for another version or byte order
 */
int rs_decode_hello(const void *private_data, size_t len, struct rs_hello *hello);

#endif
