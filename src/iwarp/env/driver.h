/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver files: whether the program's environment wants this device at all. */
#ifndef ANYWARP_ENV_DRIVER_H
#define ANYWARP_ENV_DRIVER_H

#include <stdbool.h>

/**
 * IBV_CONFIG_DIR unset or empty: enabled. Else it names a directory, and the device is enabled if a
 * file *.driver in it has a line "driver anywarp".
 */
bool iw_driver_enabled(void);

#endif
