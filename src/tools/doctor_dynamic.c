/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor.h"
#include "tools/elf_dynamic.h"
#include "tools/loader.h"
#include "tools/mention.h"
#include "tools/tool.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of the pair: where it is, and the symbol versions that it offers. */
struct own {
    const char *name;
    char path[PATH_MAX];
    struct elf_dynamic dynamic;
};

struct patient {
    const char *path;
    struct loader_list loaded;
    struct elf_dynamic *dynamics; /* of loaded.libraries */
    struct own own[2];
    bool uses; /* one of the pair, loaded with it */
};

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/** Reads a file's dynamic section; an empty one if there is none, or it is damaged. */
static void read_dynamic(struct elf_dynamic *d, const char *path)
{
    struct elf e = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *d = (struct elf_dynamic){0};
    if (fd < 0)
        return;
    elf_init(&e, fd);
    if (e.kind == ELF_NATIVE && !elf_dynamic_init(d, &e)) {
        elf_dynamic_fini(d);
        *d = (struct elf_dynamic){0};
        doctor_say(DOCTOR_FAIL, "build or install it again", "%s: its dynamic section is damaged",
                   path);
    }
    elf_fini(&e);
    close(fd);
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static const struct own *own_named(const struct patient *p, const char *name)
{
    for (size_t i = 0; i < sizeof(p->own) / sizeof(p->own[0]); i++)
        if (!strcmp(p->own[i].name, last_part(name)))
            return &p->own[i];
    return NULL;
}

static bool offers(const struct elf_dynamic *d, const char *version)
{
    for (size_t i = 0; i < d->n_versions; i++)
        if (!d->versions[i].library && !strcmp(d->versions[i].name, version))
            return true;
    return false;
}

static bool has_versions(const struct elf_dynamic *d)
{
    for (size_t i = 0; i < d->n_versions; i++)
        if (!d->versions[i].library)
            return true;
    return false;
}

/** A library of others. The loader takes one without versions for any. */
static void check_version(const struct patient *p, const char *path, const struct elf_version *v)
{
    for (size_t i = 0; i < p->loaded.n; i++) {
        const struct loaded *l = &p->loaded.libraries[i];
        const struct elf_dynamic *d = &p->dynamics[i];
        if (strcmp(last_part(l->name), v->library) != 0 || !has_versions(d) || offers(d, v->name))
            continue;
        if (!strncmp(v->name, "GLIBC_", strlen("GLIBC_")))
            doctor_say(DOCTOR_FAIL, "use a build of it for this system or an older one",
                       "%s is built for a newer C library: it wants version %s, which %s does not "
                       "have",
                       path, v->name, l->path);
        else
            doctor_say(DOCTOR_FAIL, "install a newer one, or use a build of it for this system",
                       "%s wants version %s of %s, which %s does not have", path, v->name,
                       v->library, l->path);
    }
}

static void check_versions(const struct patient *p, const char *path, const struct elf_dynamic *d)
{
    for (size_t i = 0; i < d->n_versions; i++) {
        const struct elf_version *v = &d->versions[i];
        const struct own *own = v->library ? own_named(p, v->library) : NULL;
        if (v->library && !own)
            check_version(p, path, v);
        else if (own && !offers(&own->dynamic, v->name))
            doctor_say(
                DOCTOR_FAIL, "use a build of it for rdma-core 65 or older, whose ABI anywarp has",
                "%s wants version %s of %s, which anywarp does not have", path, v->name, own->name);
    }
}

/** A search path that the loader looks at before LD_LIBRARY_PATH. */
static const char *winning_path(const struct elf_dynamic *d)
{
    return d->runpath ? NULL : d->rpath;
}

/* Direct calls to an adapter's driver go past verbs. */
static bool is_provider(const char *name)
{
    static const char *const names[] = {"libmlx4.so", "libmlx5.so", "libefa.so", "libmana.so",
                                        "libhns.so"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return true;
    return false;
}

static void explain_other(const struct own *own, const struct loaded *l, const char *rpath)
{
    char todo[3 * PATH_MAX];
    snprintf(todo, sizeof(todo),
             "remove it (chrpath -d, or patchelf --remove-rpath), or: anywarp run -e "
             "LD_PRELOAD=%s/libibverbs.so.1:%s/librdmacm.so.1 ...",
             tool_libraries, tool_libraries);
    if (strchr(l->name, '/'))
        doctor_say(DOCTOR_FAIL, "link it with a soname: patchelf --replace-needed",
                   "%s is asked for by its path, so that anywarp's is not loaded", l->name);
    else if (rpath)
        doctor_say(DOCTOR_FAIL, todo, "%s is loaded from %s: RPATH %s wins over LD_LIBRARY_PATH",
                   own->name, l->path, rpath);
    else
        doctor_say(DOCTOR_FAIL, "look at LD_PRELOAD and /etc/ld.so.preload",
                   "%s is loaded from %s, not from anywarp", own->name, l->path);
}

static void check_library(struct patient *p, const struct loaded *l, const char *rpath)
{
    const struct own *own = own_named(p, l->name);
    p->uses |= own != NULL;
    if (own && !same_file(l->path, own->path))
        explain_other(own, l, rpath);
    else if (own)
        doctor_say(DOCTOR_GOOD, NULL, "%s loads anywarp's %s", p->path, own->name);
    if (is_provider(l->name))
        doctor_say(DOCTOR_NOTE, NULL, "%s: direct calls to that driver fail on anywarp", l->name);
}

/** For a program that is not linked with the pair. */
static void check_mentions(const struct patient *p)
{
    enum mention worst = mention_in(p->path);
    const char *where = p->path;
    for (size_t i = 0; i < p->loaded.n; i++) {
        const char *path = p->loaded.libraries[i].path;
        enum mention m = mention_in(path);
        if (m > worst) {
            worst = m;
            where = path;
        }
    }
    if (worst == MENTION_PATH)
        doctor_say(
            DOCTOR_WARN, "if it takes a name or a path as a setting, give it the name alone",
            "%s has the path of an RDMA library in it: loaded by a path, it is not anywarp's",
            where);
    else if (worst == MENTION_NAME)
        doctor_say(DOCTOR_GOOD, NULL,
                   "%s has the name of an RDMA library in it, and gets anywarp's if it loads that",
                   where);
    else
        doctor_say(DOCTOR_NOTE, NULL,
                   "%s uses neither libibverbs nor librdmacm: anywarp changes nothing for it; "
                   "programs that it starts, and modules that it loads later, get anywarp",
                   p->path);
}

static void check_objects(struct patient *p)
{
    const size_t n = p->loaded.n;
    struct elf_dynamic program;
    p->dynamics = calloc(n, sizeof(*p->dynamics));
    if (!p->dynamics)
        tool_die(TOOL_FAILED, "out of memory");
    for (size_t i = 0; i < n; i++)
        read_dynamic(&p->dynamics[i], p->loaded.libraries[i].path);
    read_dynamic(&program, p->path);
    check_versions(p, p->path, &program);
    for (size_t i = 0; i < n; i++) {
        const struct loaded *l = &p->loaded.libraries[i];
        check_library(p, l, winning_path(&program));
        check_versions(p, l->path, &p->dynamics[i]);
    }
    elf_dynamic_fini(&program);
    for (size_t i = 0; i < n; i++)
        elf_dynamic_fini(&p->dynamics[i]);
    free(p->dynamics);
}

static bool is_musl(const char *loader)
{
    const char *slash = strrchr(loader, '/');
    return slash && !strncmp(slash, "/ld-musl-", strlen("/ld-musl-"));
}

/** Whether the program asks for the loader of this machine's libraries, as this command does. */
static bool check_loader(const char *path, const char *loader)
{
    struct elf self;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    elf_init(&self, fd);
    bool exists = access(loader, X_OK) == 0, same = same_file(loader, self.interpreter);
    elf_fini(&self);
    close(fd);
    if (is_musl(loader))
        doctor_say(DOCTOR_FAIL, "use a build of it for glibc",
                   "%s is for the C library musl, on which anywarp does not run", path);
    else if (!exists)
        doctor_say(DOCTOR_FAIL, "install the C library that it was built for",
                   "%s wants the loader %s, which is not here", path, loader);
    else if (!same)
        doctor_say(DOCTOR_FAIL, "use a build of it for the C library of this system",
                   "%s is for another C library (its loader is %s): it cannot load anywarp", path,
                   loader);
    return same;
}

/** What Debian calls the package of a library, as a rule: libpci.so.3 is in libpci3, libnl-3.so.200
 * in libnl-3-200. @return false if @p soname has another form */
static bool debian_package(const char *soname, char *package, size_t size)
{
    const char *so = strstr(soname, ".so.");
    if (!so || so == soname)
        return false;
    bool digit = isdigit((unsigned char)so[-1]);
    const char *version = so + strlen(".so.");
    snprintf(package, size, "%.*s%s%s", (int)(so - soname), soname, digit ? "-" : "", version);
    for (char *c = package; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return true;
}

/** All of them at once: who installs one should not have to ask again. */
static void say_missing(const struct patient *p, const char *name)
{
    char package[NAME_MAX], advice[4 * NAME_MAX];
    if (strchr(name, '/'))
        snprintf(advice, sizeof(advice), "put it there, or link the program anew");
    else if (debian_package(name, package, sizeof(package)))
        snprintf(advice, sizeof(advice),
                 "install it: on Debian and Ubuntu as a rule package %s, elsewhere dnf install "
                 "'%s()%s'; or add its folder to LD_LIBRARY_PATH",
                 package, name, sizeof(void *) == 8 ? "(64bit)" : "");
    else
        snprintf(advice, sizeof(advice), "install it, or add its folder to LD_LIBRARY_PATH");
    doctor_say(DOCTOR_FAIL, advice, "the loader does not find %s for %s", name, p->path);
}

void doctor_dynamic(const char *path, const struct elf *e)
{
    struct patient p = {.path = path,
                        .own = {{.name = "libibverbs.so.1"}, {.name = "librdmacm.so.1"}}};
    if (!check_loader(path, e->interpreter))
        return;
    loader_list_init(&p.loaded, e->interpreter, path);
    for (size_t i = 0; i < sizeof(p.own) / sizeof(p.own[0]); i++) {
        snprintf(p.own[i].path, sizeof(p.own[i].path), "%s/%s", tool_libraries, p.own[i].name);
        read_dynamic(&p.own[i].dynamic, p.own[i].path);
    }
    for (size_t i = 0; i < p.loaded.n_missing; i++)
        say_missing(&p, p.loaded.missing[i]);
    if (p.loaded.n == 0 && p.loaded.error)
        doctor_say(DOCTOR_FAIL, "if the program is damaged, install it again",
                   "the loader does not take %s: %s", path, p.loaded.error);
    else
        check_objects(&p);
    if (p.loaded.n > 0 && !p.uses)
        check_mentions(&p);
    for (size_t i = 0; i < sizeof(p.own) / sizeof(p.own[0]); i++)
        elf_dynamic_fini(&p.own[i].dynamic);
    loader_list_fini(&p.loaded);
}
