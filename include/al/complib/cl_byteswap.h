/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the order of this host and that of the network; constant if the number is. */
#ifndef _CL_BYTESWAP_H_
#define _CL_BYTESWAP_H_

#include <complib/cl_types.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CL_NTOH16(x) ((uint16_t)((uint16_t)((uint16_t)(x) << 8) | (uint16_t)((uint16_t)(x) >> 8)))
#define CL_NTOH32(x)                                                                               \
    ((uint32_t)CL_NTOH16((uint32_t)(x)&0xffff) << 16 | CL_NTOH16((uint32_t)(x) >> 16))
#define CL_NTOH64(x)                                                                               \
    ((uint64_t)CL_NTOH32((uint64_t)(x)&0xffffffff) << 32 | CL_NTOH32((uint64_t)(x) >> 32))
#else
#define CL_NTOH16(x) ((uint16_t)(x))
#define CL_NTOH32(x) ((uint32_t)(x))
#define CL_NTOH64(x) ((uint64_t)(x))
#endif
#define CL_HTON16 CL_NTOH16
#define CL_HTON32 CL_NTOH32
#define CL_HTON64 CL_NTOH64

#define cl_ntoh16 CL_NTOH16
#define cl_ntoh32 CL_NTOH32
#define cl_ntoh64 CL_NTOH64
#define cl_hton16 CL_HTON16
#define cl_hton32 CL_HTON32
#define cl_hton64 CL_HTON64

#endif
