/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's limits: advertised by queries, enforced where objects are created. */
#ifndef ANYWARP_ENV_LIMITS_H
#define ANYWARP_ENV_LIMITS_H

#define IW_MAX_QP        65536
#define IW_MAX_QP_WR     32768
#define IW_MAX_SGE       16
#define IW_MAX_INLINE    512
#define IW_MAX_MSG       (1u << 31) /* bytes of a message that is sent; received ones may be longer */
#define IW_MAX_CQ        65536
#define IW_MAX_CQE       4194303
#define IW_MAX_MR        1048576
#define IW_MAX_MW        1048576
#define IW_MAX_PD        65536
#define IW_MAX_SRQ       65536
#define IW_MAX_AH        65536
#define IW_MAX_MCAST_GRP 8192
#define IW_MAX_MCAST     (20 * IW_MAX_QP) /* of IPv4 a socket joins 20, unless the system says more */
#define IW_MAX_COUNTER   65536
#define IW_MAX_SRQ_WR    32768
#define IW_MAX_DEPTH     128 /* IRD and ORD of one QP */

#endif
