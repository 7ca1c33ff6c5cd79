/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy and CRC32c of whole blocks in one pass, on processors with carry-less multiplication of 512
 * bits: as fast as the copy alone, where copy and CRC one after the other take twice the time.
 *
 * V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel, 2009.
 */
#ifndef ANYWARP_WIRE_CRC32C_FOLD_H
#define ANYWARP_WIRE_CRC32C_FOLD_H

#include <stddef.h>
#include <stdint.h>

/**
 * As crc32c_copy(), of as much as stands in whole blocks.
 * @param running  [in,out]
 * @return how many bytes were copied and added; 0 where the processor cannot
 */
size_t crc32c_fold_copy(uint32_t *running, void *dst, const void *src, size_t len);

#endif
