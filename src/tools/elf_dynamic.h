/* SPDX-License-Identifier: BSD-2-Clause */
/* The dynamic section of a program or library: what it wants from others, and what it offers. */
#ifndef ANYWARP_TOOLS_ELF_DYNAMIC_H
#define ANYWARP_TOOLS_ELF_DYNAMIC_H

#include "tools/elf.h"

/* A symbol version; both strings are of the file's string table. */
struct elf_version {
    const char *library; /* wanted from this one; NULL: offered */
    const char *name;
};

struct elf_dynamic {
    const char *rpath, *runpath; /* or NULL */
    const char **needed;         /* sonames or paths of libraries */
    size_t n_needed;
    struct elf_version *versions; /* wanted or offered; weak ones, which may be missing, left out */
    size_t n_versions;
    char *strings;
};

/** Reads the dynamic section of a native file, if it has one. Whatever comes back,
 * elf_dynamic_fini() ends it. @return false if it is damaged */
bool elf_dynamic_init(struct elf_dynamic *d, const struct elf *e);
void elf_dynamic_fini(struct elf_dynamic *d);

#endif
