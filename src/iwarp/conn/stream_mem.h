/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_CONN_STREAM_MEM_H
#define ANYWARP_CONN_STREAM_MEM_H

#include "conn/stream.h"

/**
 * Two memory streams joined end to end, for tests: single-threaded, deterministic. Each direction
 * delivers at most @p chunk bytes a recv, takes at most @p chunk bytes a send and holds at most
 * @p window bytes.
 */
struct iwc_stream_mem;
/** @return 0 or -ENOMEM */
int iwc_stream_mem_pair(struct iwc_stream_mem *pair[2], size_t chunk, size_t window);
void iwc_stream_mem_free(struct iwc_stream_mem *pair[2]);
struct iwc_stream *iwc_stream_mem_stream(struct iwc_stream_mem *s);
/** Changes the chunk of what @p s sends: a test that splits at byte n sets n, then the rest. */
void iwc_stream_mem_chunk(struct iwc_stream_mem *s, size_t chunk);
/**
 * Flips the bits of @p mask in the byte at stream offset @p at of what @p s sends; offsets count
 * from the start of the stream, bytes already sent stay as they are. Mask 0 ends it.
 */
void iwc_stream_mem_corrupt(struct iwc_stream_mem *s, uint64_t at, uint8_t mask);

#endif
