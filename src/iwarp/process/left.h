/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_PROCESS_LEFT_H
#define ANYWARP_PROCESS_LEFT_H

/** Called at exit(): objects, and descriptors of the program, that are left go to the log of
 * faults. */
void iw_tell_left(void);

#endif
