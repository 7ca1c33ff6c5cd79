/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target over files: those named, else the target's own corpus. A name that ends in
 * .hex is a corpus: an input a line, in hexadecimal digits; empty lines and those with # do not
 * count. Any other file is one input as it is, such as libFuzzer leaves behind.
 */
#include "fuzz/fuzz.h"

#include <errno.h>

/** Digits to bytes in place. @return how many, or -1 */
static long unhex(char *s)
{
    uint8_t *out = (uint8_t *)s;
    long n = 0;
    size_t digits = strcspn(s, " \t\r\n");
    if (digits % 2 || strspn(s, "0123456789abcdef") != digits)
        return -1;
    for (; n < (long)digits / 2; n++) {
        const char pair[] = {s[2 * n], s[2 * n + 1], '\0'};
        out[n] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return n;
}

static void run(const uint8_t *p, size_t len)
{
    uint8_t *copy = fuzz_exact(p, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

/** @return the number of inputs, or -1 */
static int run_corpus(FILE *f, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    int inputs = 0;
    for (int at = 1; inputs >= 0 && getline(&line, &room, f) > 0; at++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        long n = unhex(line);
        if (n < 0) {
            fprintf(stderr, "%s:%d: not a line of hexadecimal digits\n", path, at);
            inputs = -1;
            break;
        }
        run((uint8_t *)line, (size_t)n);
        inputs++;
    }
    free(line);
    return inputs;
}

static int run_input(FILE *f)
{
    char *bytes = NULL;
    size_t room = 0;
    ssize_t n = getdelim(&bytes, &room, EOF, f);
    run((uint8_t *)bytes, n > 0 ? (size_t)n : 0);
    free(bytes);
    return 1;
}

/** @return whether it could be read and has at least one input */
static bool run_file(const char *path)
{
    const char *end = strrchr(path, '.');
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    int inputs = end && strcmp(end, ".hex") == 0 ? run_corpus(f, path) : run_input(f);
    fclose(f);
    printf("%s: %d inputs\n", path, inputs);
    return inputs > 0;
}

/** NAME_fuzz has its corpus in tests/fuzz/corpus/NAME.hex. */
static bool run_own(const char *program)
{
    char path[4096];
    const char *src = getenv("SRCDIR"), *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    if (strncmp(name, "lt-", 3) == 0)
        name += 3;
    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%.*s.hex", src ? src : ".",
             (int)strcspn(name, "_"), name);
    return run_file(path);
}

int main(int argc, char **argv)
{
    bool good = argc > 1 || run_own(argv[0]);
    for (int i = 1; i < argc; i++)
        good = run_file(argv[i]) && good;
    return good ? 0 : 1;
}
