/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/elf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header of this very program: the libraries are for the same machine. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static bool read_at(int fd, void *buf, size_t len, uint64_t offset)
{
    for (char *p = buf; len > 0;) {
        ssize_t n = offset > INT64_MAX ? -1 : pread(fd, p, len, (off_t)offset);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

static bool is_native(const ElfW(Ehdr) * h)
{
    return h->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] &&
           h->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA] &&
           h->e_machine == __ehdr_start.e_machine;
}

static bool read_segments(struct elf *e, const ElfW(Ehdr) * h)
{
    if (h->e_phentsize != sizeof(*e->segments) || h->e_phnum == 0)
        return false;
    e->segments = calloc(h->e_phnum, sizeof(*e->segments));
    e->n_segments = e->segments ? h->e_phnum : 0;
    return e->segments &&
           read_at(e->fd, e->segments, e->n_segments * sizeof(*e->segments), h->e_phoff);
}

/** The first segment of that type, or NULL. */
static const ElfW(Phdr) * find_segment(const struct elf *e, ElfW(Word) type)
{
    for (size_t i = 0; i < e->n_segments; i++)
        if (e->segments[i].p_type == type)
            return &e->segments[i];
    return NULL;
}

static bool read_interpreter(struct elf *e)
{
    const ElfW(Phdr) *segment = find_segment(e, PT_INTERP);
    if (!segment)
        return true;
    size_t len = segment->p_filesz;
    return len > 1 && len <= sizeof(e->interpreter) &&
           read_at(e->fd, e->interpreter, len, segment->p_offset) && !e->interpreter[len - 1];
}

void elf_init(struct elf *e, int fd)
{
    ElfW(Ehdr) h = {0};
    *e = (struct elf){.fd = fd, .kind = ELF_NONE};
    if (!read_at(fd, h.e_ident, SELFMAG, 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    e->kind = ELF_BROKEN;
    if (!read_at(fd, &h, offsetof(ElfW(Ehdr), e_version), 0))
        return;
    if (!is_native(&h))
        e->kind = ELF_FOREIGN;
    else if (read_at(fd, &h, sizeof(h), 0) && (h.e_type == ET_EXEC || h.e_type == ET_DYN) &&
             read_segments(e, &h) && read_interpreter(e))
        e->kind = ELF_NATIVE;
}

void elf_fini(struct elf *e)
{
    free(e->segments);
    e->segments = NULL;
    e->n_segments = 0;
}
