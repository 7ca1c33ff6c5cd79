/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands and responses as texts. In them are hexadecimal digits, and
 *
 *   @      the address of the response          M    the address of some memory
 *   >x     the 4 bytes that <x has kept         <x   4 bytes, kept under the letter x
 *   *N     N bytes, whatever they are           0*N  N bytes of zero
 */
#ifndef ANYWARP_TESTS_UVERBS_TEXT_H
#define ANYWARP_TESTS_UVERBS_TEXT_H

#include <stdint.h>

struct uv_step {
    uint32_t number;
    const char *command, *response;
    int error;
};

/** What is kept, by its letter. */
extern uint32_t uv_kept[128];

/** Writes the command, and compares what it says and each byte of the response. */
void uv_play(int fd, const struct uv_step *step);

#endif
