/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/elf_dynamic.h"

#include <stdlib.h>
#include <string.h>

/* More than any real file has; a damaged one could make us read for ever. */
#define ENTRIES_MAX 65536
#define RECORDS_MAX 65536

struct section {
    const struct elf *elf;
    ElfW(Dyn) * entries;
    size_t n_entries;
    size_t strings_size;
    size_t n_records; /* of versions, read so far */
};

static const ElfW(Dyn) * find(const struct section *s, ElfW(Sxword) tag)
{
    for (size_t i = 0; i < s->n_entries; i++)
        if (s->entries[i].d_tag == tag)
            return &s->entries[i];
    return NULL;
}

static bool read_entries(struct section *s, const ElfW(Phdr) * segment)
{
    size_t n = segment->p_filesz / sizeof(*s->entries);
    if (n == 0 || n > ENTRIES_MAX)
        return false;
    s->entries = calloc(n, sizeof(*s->entries));
    if (!s->entries || !elf_read(s->elf, s->entries, n * sizeof(*s->entries), segment->p_offset))
        return false;
    while (s->n_entries < n && s->entries[s->n_entries].d_tag != DT_NULL)
        s->n_entries++;
    return true;
}

static bool read_strings(struct section *s, struct elf_dynamic *d)
{
    const ElfW(Dyn) *table = find(s, DT_STRTAB), *size = find(s, DT_STRSZ);
    if (!table || !size || size->d_un.d_val > s->elf->size)
        return false;
    s->strings_size = size->d_un.d_val;
    d->strings = calloc(1, s->strings_size + 1);
    return d->strings &&
           elf_read(s->elf, d->strings, s->strings_size, elf_offset(s->elf, table->d_un.d_ptr));
}

/** The string at that place of the table, which ends with a zero of ours; NULL: outside. */
static const char *string_at(const struct section *s, const struct elf_dynamic *d, uint64_t place)
{
    return place < s->strings_size ? d->strings + place : NULL;
}

static bool read_names(const struct section *s, struct elf_dynamic *d)
{
    d->needed = calloc(s->n_entries + 1, sizeof(*d->needed));
    if (!d->needed)
        return false;
    for (const ElfW(Dyn) *e = s->entries; e < s->entries + s->n_entries; e++) {
        const char *text = string_at(s, d, e->d_un.d_val);
        if (e->d_tag != DT_NEEDED && e->d_tag != DT_RPATH && e->d_tag != DT_RUNPATH)
            continue;
        if (!text)
            return false;
        if (e->d_tag == DT_NEEDED)
            d->needed[d->n_needed++] = text;
        else if (e->d_tag == DT_RPATH)
            d->rpath = text;
        else
            d->runpath = text;
    }
    return true;
}

static bool add_version(struct elf_dynamic *d, const char *library, const char *name)
{
    if (!name)
        return false;
    struct elf_version *more = reallocarray(d->versions, d->n_versions + 1, sizeof(*d->versions));
    if (!more)
        return false;
    d->versions = more;
    d->versions[d->n_versions++] = (struct elf_version){library, name};
    return true;
}

static bool read_record(struct section *s, void *record, size_t len, uint64_t offset)
{
    return s->n_records++ < RECORDS_MAX && elf_read(s->elf, record, len, offset);
}

static bool read_wanted_of(struct section *s, struct elf_dynamic *d, const char *library,
                           uint64_t offset)
{
    ElfW(Vernaux) v;
    do {
        if (!read_record(s, &v, sizeof(v), offset))
            return false;
        if (!(v.vna_flags & VER_FLG_WEAK) && !add_version(d, library, string_at(s, d, v.vna_name)))
            return false;
        offset += v.vna_next;
    } while (v.vna_next);
    return true;
}

static bool read_wanted(struct section *s, struct elf_dynamic *d)
{
    const ElfW(Dyn) *table = find(s, DT_VERNEED);
    uint64_t offset = table ? elf_offset(s->elf, table->d_un.d_ptr) : 0;
    ElfW(Verneed) v = {.vn_next = table ? 1 : 0};
    for (; v.vn_next; offset += v.vn_next) {
        if (!read_record(s, &v, sizeof(v), offset))
            return false;
        const char *library = string_at(s, d, v.vn_file);
        if (!library || !read_wanted_of(s, d, library, offset + v.vn_aux))
            return false;
    }
    return true;
}

static bool read_offered(struct section *s, struct elf_dynamic *d)
{
    const ElfW(Dyn) *table = find(s, DT_VERDEF);
    uint64_t offset = table ? elf_offset(s->elf, table->d_un.d_ptr) : 0;
    ElfW(Verdef) v = {.vd_next = table ? 1 : 0};
    for (; v.vd_next; offset += v.vd_next) {
        ElfW(Verdaux) name;
        if (!read_record(s, &v, sizeof(v), offset) ||
            !read_record(s, &name, sizeof(name), offset + v.vd_aux))
            return false;
        if (!(v.vd_flags & VER_FLG_BASE) && !add_version(d, NULL, string_at(s, d, name.vda_name)))
            return false;
    }
    return true;
}

bool elf_dynamic_init(struct elf_dynamic *d, const struct elf *e)
{
    const ElfW(Phdr) *segment = elf_segment(e, PT_DYNAMIC);
    struct section s = {.elf = e};
    *d = (struct elf_dynamic){0};
    bool ok = !segment || (read_entries(&s, segment) && read_strings(&s, d) && read_names(&s, d) &&
                           read_wanted(&s, d) && read_offered(&s, d));
    free(s.entries);
    return ok;
}

void elf_dynamic_fini(struct elf_dynamic *d)
{
    free(d->needed);
    free(d->versions);
    free(d->strings);
}
