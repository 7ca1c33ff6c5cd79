/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiled twice, with the paths of the build tree and with those of the installation. */
#include "tools/tool.h"

const char tool_libraries[] = TOOL_LIBRARIES;
const char tool_programs[] = TOOL_PROGRAMS;
const char tool_preload[] = TOOL_PRELOAD;
