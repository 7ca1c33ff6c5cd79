/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiled for the build tree, for the installation, and for a folder that can be moved. */
#include "tools/folders.h"
#include "tools/tool.h"

const char tool_libraries_at[] = TOOL_LIBRARIES;
const char tool_programs_at[] = TOOL_PROGRAMS;
const char tool_preload[] = TOOL_PRELOAD;
