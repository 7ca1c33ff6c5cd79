/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/keys.h"

#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAYS_DEFAULT 365
#define DAYS_MAX     36500
#define NAME_MAX_    64 /* that X.509 has room for */

static const char *folder;

static char *path_of(const char *name, const char *suffix)
{
    char *path;
    if (asprintf(&path, "%s/%s%s", folder, name, suffix) < 0)
        tool_die(TOOL_FAILED, "out of memory");
    return path;
}

static FILE *open_file(const char *path, int flags, const char *mode)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (!f)
        tool_die(TOOL_FAILED, "keys: %s: %s", path, strerror(errno));
    return f;
}

/** A new file; one that is there stays as it is. */
static FILE *create(const char *path)
{
    return open_file(path, O_WRONLY | O_CREAT | O_EXCL, "w");
}

static void finish(FILE *f, const char *path)
{
    if (fclose(f))
        tool_die(TOOL_FAILED, "keys: %s: %s", path, strerror(errno));
}

static void make_authority(int days)
{
    char *crt = path_of("ca", ".crt"), *key = path_of("ca", ".key");
    if (access(crt, F_OK) == 0) {
        printf("authority: %s, as it is\n", crt);
    } else {
        FILE *c = create(crt), *k = create(key);
        keys_make_authority(c, k, days);
        finish(c, crt);
        finish(k, key);
        printf("authority: %s; keep %s where only you are\n", crt, key);
    }
    free(crt);
    free(key);
}

/** As it is in a file name, and in a subject without quotes. */
static void check_name(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";
    if (!*name || *name == '.' || name[strspn(name, good)] || strlen(name) > NAME_MAX_ ||
        !strcmp(name, "ca"))
        tool_die(TOOL_USAGE, "keys: %s: a name has up to %d letters, digits and . _ @ -", name,
                 NAME_MAX_);
}

static void make_certificate(const char *name, const char *addresses, int days)
{
    char *ca = path_of("ca", ".crt"), *ca_key = path_of("ca", ".key");
    char *crt = path_of(name, ".crt"), *key = path_of(name, ".key");
    FILE *a = open_file(ca, O_RDONLY, "r"), *ak = open_file(ca_key, O_RDONLY, "r");
    FILE *c = create(crt), *k = create(key);
    keys_make_certificate(a, ak, name, addresses, days, c, k);
    fclose(a);
    fclose(ak);
    finish(c, crt);
    finish(k, key);
    printf("\nfor %s, with the three files:\n"
           "    export ANYWARP_TLS=require ANYWARP_TLS_CA=%s\n"
           "    export ANYWARP_TLS_CERT=%s ANYWARP_TLS_KEY=%s\n",
           name, ca, crt, key);
    free(ca);
    free(ca_key);
    free(crt);
    free(key);
}

static void add_psk(const char *path, const char *name)
{
    FILE *f = open_file(path, O_WRONLY | O_CREAT | O_APPEND, "a");
    keys_make_psk(f, name);
    finish(f, path);
    printf("at both ends, with the same file, which nobody else may read:\n"
           "    export ANYWARP_TLS=require ANYWARP_TLS_PSK=%s\n",
           path);
}

static int days_of(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (!*text || *end || n < 1 || n > DAYS_MAX)
        tool_die(TOOL_USAGE, "keys: --days %s: 1 to %d", text, DAYS_MAX);
    return (int)n;
}

static int keys(int argc, char **argv)
{
    static const struct option options[] = {{"address", required_argument, NULL, 'a'},
                                            {"days", required_argument, NULL, 'd'},
                                            {"psk", required_argument, NULL, 'p'},
                                            {0}};
    const char *addresses = NULL, *psk = NULL;
    int days = DAYS_DEFAULT;
    for (int c; (c = getopt_long(argc, argv, "a:d:p:", options, NULL)) != -1;) {
        if (c == 'a')
            addresses = optarg;
        else if (c == 'd')
            days = days_of(optarg);
        else if (c == 'p')
            psk = optarg;
        else
            return TOOL_USAGE;
    }
    if (optind == argc)
        tool_die(TOOL_USAGE, "keys: where to? Try: anywarp keys my-keys server client");
    char **names = argv + optind + 1;
    if (psk && *names)
        tool_die(TOOL_USAGE, "keys: --psk NAME goes with one file");
    for (char **n = psk ? (char *[]){(char *)psk, NULL} : names; *n; n++)
        check_name(*n);
    if (psk) {
        add_psk(argv[optind], psk);
        return 0;
    }
    folder = argv[optind];
    if (mkdir(folder, 0700) && errno != EEXIST)
        tool_die(TOOL_FAILED, "keys: %s: %s", folder, strerror(errno));
    make_authority(days);
    for (; *names; names++)
        make_certificate(*names, addresses, days);
    return 0;
}

const struct tool tool_keys = {
    .name = "keys",
    .arguments = "[--days N] [--address LIST] FOLDER [NAME...]\n"
                 "       anywarp keys --psk NAME FILE",
    .summary = "make certificates, or a pre-shared key, for ANYWARP_TLS",
    .help = "Makes an authority in FOLDER, unless one is there: ca.crt, and ca.key, which\n"
            "signs; and for each NAME a certificate of it, NAME.crt, and its key, NAME.key.\n"
            "A program of NAME gets ca.crt and these two, by the variables that are printed.\n"
            "Files that are there are not touched, and nobody else may read what is new.\n"
            "\n"
            "  -a, --address LIST  as 10.0.0.1,fd00::1: the certificates are good for\n"
            "                      listeners at these addresses alone\n"
            "  -d, --days N        how long they are good, 365\n"
            "  -p, --psk NAME      instead: adds a pre-shared key to FILE, for both ends\n",
    .run = keys,
};
