/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes for bpftrace, perf, SystemTap and gdb, provider "anywarp". Off, each is one
 * instruction that does nothing; without <sys/sdt.h> at configure time there are none.
 *
 *     connection  QP number, 1 active side or 0 passive, MPA revision, agreed IRD, agreed ORD
 *     state       QP number, old state, new state (enum ibv_qp_state)
 *     post        QP number, wr_id, enum ibv_wr_opcode, bytes
 *     completion  QP number, wr_id, enum ibv_wc_status, enum ibv_wc_opcode, bytes
 *     error       QP number, enum iw_err, the sentence about it (a string)
 *
 * They are part of what users' scripts depend on: arguments are added at the end only.
 */
#ifndef ANYWARP_USDT_H
#define ANYWARP_USDT_H

#ifdef ANYWARP_USDT
#include <sys/sdt.h>
#define USDT3(name, a, b, c)       DTRACE_PROBE3(anywarp, name, a, b, c)
#define USDT4(name, a, b, c, d)    DTRACE_PROBE4(anywarp, name, a, b, c, d)
#define USDT5(name, a, b, c, d, e) DTRACE_PROBE5(anywarp, name, a, b, c, d, e)
#else
#define USDT3(name, a, b, c)       ((void)(a), (void)(b), (void)(c))
#define USDT4(name, a, b, c, d)    ((void)(a), (void)(b), (void)(c), (void)(d))
#define USDT5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

#endif
