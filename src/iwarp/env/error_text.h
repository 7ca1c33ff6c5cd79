/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says against a connection, in words that depend on no locale and no C library. */
#ifndef ANYWARP_ENV_ERROR_TEXT_H
#define ANYWARP_ENV_ERROR_TEXT_H

#define IW_ERROR_TEXT_MAX 64

/** Writes for ECONNRESET "ECONNRESET, Connection reset by peer". @p error is positive. */
void iw_error_text(int error, char text[IW_ERROR_TEXT_MAX]);

#endif
