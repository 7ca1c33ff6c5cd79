/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel and the dynamic loader read in a program file. The bytes may be anything: every
 * offset, length and count is checked against the file, and the file is read, not mapped, so that
 * one that shrinks meanwhile does no harm.
 */
#ifndef ANYWARP_TOOLS_ELF_H
#define ANYWARP_TOOLS_ELF_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum elf_kind {
    ELF_NONE,    /* not ELF: a script, or garbage */
    ELF_BROKEN,  /* ELF, but damaged: parts lie outside the file, or are not what they should be */
    ELF_FOREIGN, /* for another machine, word size or byte order */
    ELF_NATIVE,
};

struct elf {
    int fd; /* the caller's */
    uint64_t size;
    enum elf_kind kind;
    /* of native files: */
    char interpreter[PATH_MAX]; /* the dynamic loader it asks for; empty: none, as a static program
                                 */
    ElfW(Phdr) * segments;      /* heap */
    size_t n_segments;
};

/** Reads the headers of the file open as @p fd. Whatever was found, elf_fini() ends it. */
void elf_init(struct elf *e, int fd);
void elf_fini(struct elf *e);

/** Reads bytes of the file; false: they are not all there. */
bool elf_read(const struct elf *e, void *buf, size_t len, uint64_t offset);

/** Where in the file the loader finds the address, or UINT64_MAX: nowhere. */
uint64_t elf_offset(const struct elf *e, ElfW(Addr) address);

/** The first segment of that type, or NULL. */
const ElfW(Phdr) * elf_segment(const struct elf *e, ElfW(Word) type);

#endif
