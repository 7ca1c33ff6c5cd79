/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/elf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The header of this very program: the libraries are for the same machine. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

bool elf_read(const struct elf *e, void *buf, size_t len, uint64_t offset)
{
    for (char *p = buf; len > 0;) {
        ssize_t n = offset > INT64_MAX ? -1 : pread(e->fd, p, len, (off_t)offset);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

const ElfW(Phdr) * elf_segment(const struct elf *e, ElfW(Word) type)
{
    for (size_t i = 0; i < e->n_segments; i++)
        if (e->segments[i].p_type == type)
            return &e->segments[i];
    return NULL;
}

uint64_t elf_offset(const struct elf *e, ElfW(Addr) address)
{
    for (const ElfW(Phdr) *s = e->segments; s < e->segments + e->n_segments; s++)
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return s->p_offset + (address - s->p_vaddr);
    return UINT64_MAX;
}

static bool is_native(const ElfW(Ehdr) * h)
{
    return h->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] &&
           h->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA] &&
           h->e_machine == __ehdr_start.e_machine;
}

static bool read_segments(struct elf *e, const ElfW(Ehdr) * h)
{
    size_t len = h->e_phnum * sizeof(*e->segments);
    if (h->e_phentsize != sizeof(*e->segments) || len == 0)
        return false;
    e->segments = malloc(len);
    if (!e->segments || !elf_read(e, e->segments, len, h->e_phoff))
        return false;
    e->n_segments = h->e_phnum;
    return true;
}

static bool segments_are_whole(const struct elf *e)
{
    for (const ElfW(Phdr) *s = e->segments; s < e->segments + e->n_segments; s++)
        if (s->p_type == PT_LOAD && (s->p_offset > e->size || s->p_filesz > e->size - s->p_offset))
            return false;
    return true;
}

static bool read_interpreter(struct elf *e)
{
    const ElfW(Phdr) *segment = elf_segment(e, PT_INTERP);
    if (!segment)
        return true;
    size_t len = segment->p_filesz;
    return len > 1 && len <= sizeof(e->interpreter) &&
           elf_read(e, e->interpreter, len, segment->p_offset) && !e->interpreter[len - 1];
}

void elf_init(struct elf *e, int fd)
{
    ElfW(Ehdr) h = {0};
    struct stat st;
    *e = (struct elf){.fd = fd, .kind = ELF_NONE};
    if (fstat(fd, &st) != 0 || !elf_read(e, h.e_ident, SELFMAG, 0) ||
        memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    e->kind = ELF_BROKEN;
    e->size = (uint64_t)st.st_size;
    if (!elf_read(e, &h, offsetof(ElfW(Ehdr), e_version), 0))
        return;
    if (!is_native(&h))
        e->kind = ELF_FOREIGN;
    else if (elf_read(e, &h, sizeof(h), 0) && (h.e_type == ET_EXEC || h.e_type == ET_DYN) &&
             read_segments(e, &h) && segments_are_whole(e) && read_interpreter(e))
        e->kind = ELF_NATIVE;
}

void elf_fini(struct elf *e)
{
    free(e->segments);
    e->segments = NULL;
    e->n_segments = 0;
}
