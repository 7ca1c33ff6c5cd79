/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/uverbs_text.h"

#include <anywarp/uverbs.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 512, UNTOUCHED = 0xee };

static uint64_t memory[8], response_bytes[ROOM / 8];
uint32_t uv_kept[128];

/* The bytes that a text stands for; known is false where they may be any. */
struct bytes {
    uint8_t bytes[ROOM];
    bool known[ROOM];
    size_t len;
};

static void put(struct bytes *b, const void *from, size_t len)
{
    assert_true(b->len + len <= ROOM);
    for (size_t i = 0; i < len; i++) {
        b->known[b->len] = from != NULL;
        b->bytes[b->len++] = from ? ((const uint8_t *)from)[i] : 0;
    }
}

/* One word. @p found is the response that is read, or NULL: what is kept comes from there. */
static void put_word(struct bytes *b, const char *word, const uint8_t *found)
{
    static const uint8_t zeros[ROOM];
    uint64_t address = (uintptr_t)response_bytes, where = (uintptr_t)memory;
    uint32_t *kept = &uv_kept[(word[1] & 127)];
    if (*word == '@') {
        put(b, &address, sizeof address);
    } else if (*word == 'M') {
        put(b, &where, sizeof where);
    } else if (*word == '>') {
        put(b, kept, sizeof *kept);
    } else if (*word == '<') {
        memcpy(kept, found + b->len, sizeof *kept);
        put(b, NULL, sizeof *kept);
    } else if (*word == '*') {
        put(b, NULL, strtoul(word + 1, NULL, 10));
    } else if (!strncmp(word, "0*", 2)) {
        put(b, zeros, strtoul(word + 2, NULL, 10));
    } else {
        for (; *word; word += 2) {
            const char digits[] = {word[0], word[1], '\0'};
            uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);
            put(b, &byte, 1);
        }
    }
}

static struct bytes read_text(const char *text, const uint8_t *found)
{
    struct bytes b = {.len = 0};
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strsep(&rest, " "));)
        put_word(&b, word, found);
    return b;
}

void uv_play(int fd, const struct uv_step *s)
{
    uint8_t *response = (uint8_t *)response_bytes;
    struct bytes command = read_text(s->command, NULL);
    memset(response, UNTOUCHED, ROOM);
    assert_memory_equal(command.bytes, &s->number, 4);
    errno = 0;
    ssize_t n = anywarp_uverbs_write(fd, command.bytes, command.len);
    if (n != (s->error ? -1 : (ssize_t)command.len) || errno != s->error)
        fail_msg("%s: %zd, errno %d, wanted %d", s->command, n, errno, s->error);
    struct bytes want = read_text(s->response, response);
    for (size_t i = 0; i < ROOM; i++) {
        if (i < want.len ? want.known[i] && response[i] != want.bytes[i] : response[i] != UNTOUCHED)
            fail_msg("%s: byte %zu of the response is %02x", s->command, i, response[i]);
    }
}
