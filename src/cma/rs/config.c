/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of /etc/rdma/rsocket: one decimal number each. */
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLDER "/etc/rdma/rsocket"

static struct rs_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

static uint32_t number(const char *name, uint32_t low, uint32_t high, uint32_t otherwise)
{
    const char *folder = getenv("ANYWARP_RSOCKET_CONF");
    char path[4096], text[32];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : FOLDER, name);
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return otherwise;
    long n = sys_read((int)fd, text, sizeof text - 1);
    sys_close((int)fd);
    if (n <= 0)
        return otherwise;
    text[n] = '\0';
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text)
        return otherwise;
    return value < low ? low : value > high ? high : (uint32_t)value;
}

static void read_config(void)
{
    config.sizes.rbuf = number("mem_default", 1, 1U << 30, 1 << 17);
    config.sizes.sbuf = number("wmem_default", 1, 1U << 30, 1 << 17);
    config.sizes.sq = (uint16_t)number("sqsize_default", 1, 0xfffe, 384);
    config.sizes.rq = (uint16_t)number("rqsize_default", 1, 0xfffe, 384);
    config.sizes.inlined = (uint16_t)number("inline_default", 0, 0xffff, 64);
    config.sizes.mappings =
        (uint16_t)rs_decode_mappings(rs_encode_mappings(number("iomap_size", 0, 0x7f00, 0)));
    config.polling_us = number("polling_time", 0, 1000000, 10);
}

const struct rs_config *rs_config(void)
{
    pthread_once(&config_once, read_config);
    return &config;
}
