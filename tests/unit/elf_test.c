/* SPDX-License-Identifier: BSD-2-Clause */
/* Program files as they are, cut short at any byte, and with bytes that lie. */
#include "tools/elf_dynamic.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MUTATIONS 20000

static unsigned char *self; /* this very program, as far as it is loaded and parsed */
static size_t self_size;
static int copy; /* a file that each test may overwrite */

static int read_self(void **state)
{
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    self_size = (size_t)lseek(fd, 0, SEEK_END);
    self = malloc(self_size);
    copy = memfd_create("elf_test", MFD_CLOEXEC);
    bool ok = self && copy >= 0 && pread(fd, self, self_size, 0) == (ssize_t)self_size;
    close(fd);
    return !ok;
}

static int free_self(void **state)
{
    (void)state;
    free(self);
    return close(copy);
}

static void write_copy(size_t size)
{
    assert_int_equal(ftruncate(copy, 0), 0);
    assert_int_equal(pwrite(copy, self, size, 0), size);
}

/** Everything that is read must be whole strings, wherever they end up. */
static size_t read_all(const struct elf_dynamic *d)
{
    size_t sum = d->rpath ? strlen(d->rpath) : 0;
    sum += d->runpath ? strlen(d->runpath) : 0;
    for (size_t i = 0; i < d->n_needed; i++)
        sum += strlen(d->needed[i]);
    for (size_t i = 0; i < d->n_versions; i++)
        sum += strlen(d->versions[i].name) +
               (d->versions[i].library ? strlen(d->versions[i].library) : 0);
    return sum;
}

/** @return the kind of the copy; *sound says whether its dynamic section is */
static enum elf_kind examine(bool *sound)
{
    struct elf e;
    struct elf_dynamic d;
    elf_init(&e, copy);
    *sound = false;
    if (e.kind == ELF_NATIVE) {
        assert_true(strlen(e.interpreter) < sizeof(e.interpreter));
        *sound = elf_dynamic_init(&d, &e);
        read_all(&d);
        elf_dynamic_fini(&d);
    }
    elf_fini(&e);
    return e.kind;
}

static void a_program(void **state)
{
    (void)state;
    struct elf e;
    struct elf_dynamic d;
    bool libc = false, version = false;
    write_copy(self_size);
    elf_init(&e, copy);
    assert_int_equal(e.kind, ELF_NATIVE);
    assert_non_null(strstr(e.interpreter, "ld"));
    assert_true(elf_dynamic_init(&d, &e));
    for (size_t i = 0; i < d.n_needed; i++)
        libc |= strstr(d.needed[i], "libc.so") != NULL;
    for (size_t i = 0; i < d.n_versions; i++)
        version |= d.versions[i].library && strstr(d.versions[i].library, "libc.so") &&
                   strstr(d.versions[i].name, "GLIBC_");
    assert_true(libc && version);
    elf_dynamic_fini(&d);
    elf_fini(&e);
}

static void other_files(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        unsigned char flip;
        enum elf_kind kind;
    } rows[] = {
        {0, 0x01, ELF_NONE},
        {EI_CLASS, ELFCLASS32 ^ ELFCLASS64, ELF_FOREIGN},
        {EI_DATA, ELFDATA2LSB ^ ELFDATA2MSB, ELF_FOREIGN},
        {offsetof(ElfW(Ehdr), e_machine), 0x01, ELF_FOREIGN},
        {offsetof(ElfW(Ehdr), e_type), 0x10, ELF_BROKEN},
        {offsetof(ElfW(Ehdr), e_phentsize), 0x01, ELF_BROKEN},
        {offsetof(ElfW(Ehdr), e_phnum) + 1, 0xff, ELF_BROKEN},
        {offsetof(ElfW(Ehdr), e_phoff) + 7, 0xff, ELF_BROKEN},
    };
    bool sound;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        self[rows[i].at] ^= rows[i].flip;
        write_copy(self_size);
        self[rows[i].at] ^= rows[i].flip;
        assert_int_equal(examine(&sound), rows[i].kind);
    }
}

static void cut_short(void **state)
{
    (void)state;
    bool sound;
    for (size_t size = 0; size < 8192; size++) {
        write_copy(size);
        enum elf_kind kind = examine(&sound);
        assert_int_equal(kind, size < SELFMAG ? ELF_NONE : ELF_BROKEN);
    }
}

/* Bytes of the headers and of the first pages, where the tables of the loader are. */
static void bytes_that_lie(void **state)
{
    (void)state;
    size_t kinds[ELF_NATIVE + 1] = {0}, damaged = 0, reach = self_size < 16384 ? self_size : 16384;
    uint64_t random = 1;
    write_copy(self_size);
    for (int i = 0; i < MUTATIONS; i++) {
        bool sound;
        size_t at[4];
        for (size_t j = 0; j < 4; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at[j] = (random >> 33) % (j == 0 ? 1024 : reach);
            unsigned char byte = (unsigned char)(random >> 24);
            assert_int_equal(pwrite(copy, &byte, 1, (off_t)at[j]), 1);
        }
        enum elf_kind kind = examine(&sound);
        kinds[kind]++;
        damaged += kind == ELF_NATIVE && !sound;
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(pwrite(copy, &self[at[j]], 1, (off_t)at[j]), 1);
    }
    assert_true(kinds[ELF_NATIVE] > damaged && damaged > 0 && kinds[ELF_BROKEN] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program),
        cmocka_unit_test(other_files),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(bytes_that_lie),
    };
    return cmocka_run_group_tests(tests, read_self, free_self);
}
