/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENV_EXPORT_H
#define ANYWARP_ENV_EXPORT_H

/* Exported to librdmacm under the version node ANYWARP_PRIVATE_1. */
#define IW_CM_EXPORT __attribute__((visibility("default")))

#endif
