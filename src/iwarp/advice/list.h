/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every finding there is: name, level, what it is, what to do. Its page, with wrong and right code,
 * is the section of its name in doc/findings.md.
 */
#ifndef ANYWARP_ADVICE_LIST_H
#define ANYWARP_ADVICE_LIST_H

#define IW_FINDING_LIST(X)                                                                         \
    X(DESTROYED_OBJECT, "destroyed_object", ERROR, "a call on an object that is destroyed",        \
      "Destroy objects when nothing uses them any more, and once")                                 \
    X(POST_AFTER_FAILURE, "post_after_failure", WARNING,                                           \
      "work is posted to a QP whose failure the same thread has polled",                           \
      "Stop posting at the first completion in error; connect again, or reset the QP")             \
    X(CQ_TOO_SMALL, "cq_too_small", ERROR, "more work is posted than the CQ has entries",          \
      "Create it with an entry for each work request of all its QPs, as all may be flushed")       \
    X(NEVER_SIGNALS, "never_signals", ERROR,                                                       \
      "a send queue is full of work requests none of which will signal",                           \
      "Set IBV_SEND_SIGNALED at least once in max_send_wr work requests, and poll it")             \
    X(LOST_WAKEUP, "lost_wakeup", ERROR,                                                           \
      "a thread polls a CQ empty, arms it and sleeps: what came in between wakes nobody",          \
      "Arm first, then poll until the CQ is empty, then sleep")                                    \
    X(UNACKED_EVENT, "unacked_event", ERROR,                                                       \
      "an object is destroyed while events of it are not acknowledged: that waits for ever",       \
      "Acknowledge each event that you take before you destroy what it is about")                  \
    X(ACKED_DATA, "acked_data", ERROR,                                                             \
      "the private data of a CM event is read after the event was acknowledged",                   \
      "Copy what you need of an event before rdma_ack_cm_event()")                                 \
    X(SEND_CHANGED, "send_changed", ERROR,                                                         \
      "a send buffer was changed before its completion was polled",                                \
      "Leave the buffer alone until the completion is polled, or post with IBV_SEND_INLINE")       \
    X(DEAD_KEY, "dead_key", ERROR, "work is posted with the key of a region that is deregistered", \
      "Deregister a region when all work that uses it is completed")                               \
    X(SWAPPED_KEY, "swapped_key", ERROR, "work is posted with a key in the wrong byte order",      \
      "Convert keys and addresses that go over the wire once on each side: htobe32(), be32toh()")  \
    X(DEREG_IN_USE, "dereg_in_use", ERROR,                                                         \
      "a region is deregistered while work that is not completed uses it",                         \
      "Poll the completions of all that uses a region, then deregister it")                        \
    X(DEREG_POSTED, "dereg_posted", WARNING,                                                       \
      "a region is deregistered while a receive of a connected QP names it",                       \
      "Disconnect, or destroy the QP, before you deregister what its receives name")               \
    X(UNMAPPED_MEMORY, "unmapped_memory", ERROR,                                                   \
      "work that is posted uses memory that is unmapped",                                          \
      "Deregister the region when its work is completed, then unmap or free the memory")           \
    X(READ_DEPTH, "read_depth", ERROR,                                                             \
      "a Read or atomic is posted where the connection allows none",                               \
      "Connect with initiator_depth, and accept with responder_resources, of at least 1")          \
    X(READ_SINK, "read_sink", WARNING,                                                             \
      "the sink of an RDMA Read has no REMOTE_WRITE, which iWARP adapters want",                   \
      "Register the sink of Reads with IBV_ACCESS_REMOTE_WRITE on iWARP devices")                  \
    X(BEYOND_IWARP, "beyond_iwarp", WARNING,                                                       \
      "an operation is posted that iWARP adapters do not have",                                    \
      "Use a Send, or a Write followed by a Send, on iWARP devices")                               \
    X(BEYOND_ADAPTERS, "beyond_adapters", WARNING, "a QP is larger than any adapter has it",       \
      "Ask for what ibv_query_device() of your adapter tells; see anywarp run --like list")        \
    X(EMPTY_ENTRY, "empty_entry", WARNING,                                                         \
      "an entry of a scatter/gather list has length 0, which some adapters take for 2^31",         \
      "Leave the entry out; num_sge may be 0")                                                     \
    X(LATE_RECEIVE, "late_receive", WARNING,                                                       \
      "a message came when no receive was posted: an adapter retries, or ends the connection",     \
      "Post receives before you connect or accept, and before the peer may send again")            \
    X(SOLICITED_WAIT, "solicited_wait", WARNING,                                                   \
      "a thread waits for solicited events only, and completions wait that are none",              \
      "Arm with ibv_req_notify_cq(cq, 0), or send with IBV_SEND_SOLICITED")                        \
    X(SILENT_WAIT, "silent_wait", WARNING,                                                         \
      "a thread waits for a completion event that nothing is going to raise",                      \
      "Arm the CQ, and post work that completes with an event, before you wait")                   \
    X(FORK_REGISTERED, "fork_registered", WARNING,                                                 \
      "fork() with registered memory, and without ibv_fork_init()",                                \
      "Call ibv_fork_init() before anything else, or fork before you register memory")             \
    X(CQ_SIZE, "cq_size", NOTE, "a CQ is smaller, or much larger, than the queues of its QPs",     \
      "Create it with the sum of max_send_wr and max_recv_wr of the QPs that use it")              \
    X(LEFT_OPEN, "left_open", NOTE, "objects are not destroyed when the process exits",            \
      "Destroy what you create; the system does it for you at exit only")

enum iw_finding_level { IW_FINDING_NOTE, IW_FINDING_WARNING, IW_FINDING_ERROR };

#define IW_FINDING_ENUM(name, text, level, meaning, remedy) IW_FINDING_##name,
enum iw_finding { IW_FINDING_LIST(IW_FINDING_ENUM) IW_FINDINGS };
#undef IW_FINDING_ENUM

#endif
