/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_TOOLS_FRAME_H
#define ANYWARP_TOOLS_FRAME_H

#include <stddef.h>

/**
 * What people call a frame of a stack, "FILE+0xADDRESS" with the address behind a call, as
 * addr2line tells it: "main at ping.c:17"; else "FILE+0xADDRESS" without folders.
 */
void frame_name(char *text, size_t size, const char *frame);

#endif
