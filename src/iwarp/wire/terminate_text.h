/* SPDX-License-Identifier: BSD-2-Clause */
/* A Terminate message in words: layers, types and codes by their names in the RFCs. */
#ifndef ANYWARP_WIRE_TERMINATE_TEXT_H
#define ANYWARP_WIRE_TERMINATE_TEXT_H

#include "wire/terminate.h"

/**
 * In words: layer, type and code by their names in the RFCs, their numbers, and the header of the
 * segment at fault if it is there.
 */
void terminate_describe(const struct terminate *t, char *buf, size_t size);

#endif
