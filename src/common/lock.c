/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/lock.h"

#ifdef LOCK_OWNERS
__thread bool lock_barred_;
__thread unsigned lock_held_[LOCK_RANKS];
#endif
