/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of a connection: a byte stream over another. What happens is decided when it is attached,
 * by positions in the stream, so that it does not depend on how TCP cuts it.
 */
#ifndef ANYWARP_FAULTS_STREAM_H
#define ANYWARP_FAULTS_STREAM_H

#include "conn/stream.h"

/**
 * Puts faults between @p s and its operations, if there are to be any. Call before anybody else
 * does so, and again when the stream begins anew.
 */
void iw_chaos_attach(struct iwc_stream *s);

enum iw_chaos_cut { IW_CUT_FIN, IW_CUT_RST, IW_CUT_SILENCE };

/** Ends it here and now, if it has faults. Call when nobody sends or receives. */
void iw_chaos_cut(struct iwc_stream *s, enum iw_chaos_cut how);

/** Takes them away, if there are any; closing does so, too. Call when nobody else is in between. */
void iw_chaos_detach(struct iwc_stream *s);

#endif
