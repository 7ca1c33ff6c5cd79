/* SPDX-License-Identifier: BSD-2-Clause */
/* main() of a module: its parameters, its files, its end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs/census.h"
#include "kverbs/proc.h"
#include "kverbs/thread.h"
#include "kverbs/work.h"

#include <linux/kernel.h>
#include <linux/moduleparam.h>

enum { PARAMS = 128 };

struct param {
    const char *name, *text;
    enum kverbs_param_type type;
    void *value;
};

static int (*init)(void);
static void (*end)(void);
static struct param params[PARAMS];
static int count;

void kverbs_module_init(int (*f)(void))
{
    init = f;
}

void kverbs_module_exit(void (*f)(void))
{
    end = f;
}

/* The description may come before the parameter. */
static struct param *param(const char *name)
{
    int i = 0;
    while (i < count && strcmp(params[i].name, name) != 0)
        i++;
    BUG_ON(i == PARAMS);
    params[i].name = name;
    count = max(count, i + 1);
    return &params[i];
}

void kverbs_module_param(const char *name, enum kverbs_param_type type, void *value)
{
    struct param *p = param(name);
    p->type = type;
    p->value = value;
}

void kverbs_module_param_says(const char *name, const char *text)
{
    param(name)->text = text;
}

/* strtobool() of the kernel: the first letter counts, or the second of "on" and "off". */
static int set_bool(bool *value, const char *text)
{
    char c = text[0] == 'o' ? text[1] : text[0];
    if (c == 0 || !strchr(text[0] == 'o' ? "nf" : "yY1nN0", c))
        return -EINVAL;
    *value = text[0] == 'o' ? c == 'n' : !strchr("nN0", c);
    return 0;
}

static int set_signed(const struct param *p, const char *text)
{
    char *stop;
    errno = 0;
    long n = strtol(text, &stop, 0);
    if (*stop || stop == text)
        return -EINVAL;
    bool fits = p->type == KVERBS_PARAM_long    ? errno == 0
                : p->type == KVERBS_PARAM_short ? n == (short)n
                                                : n == (int)n;
    if (!fits)
        return -ERANGE;
    if (p->type == KVERBS_PARAM_long)
        *(long *)p->value = n;
    else if (p->type == KVERBS_PARAM_short)
        *(short *)p->value = (short)n;
    else
        *(int *)p->value = (int)n;
    return 0;
}

static int set_unsigned(const struct param *p, const char *text)
{
    unsigned long n;
    int ret = kstrtoul(text, 0, &n);
    if (ret)
        return ret;
    switch (p->type) {
    case KVERBS_PARAM_ulong:
        *(unsigned long *)p->value = n;
        return 0;
    case KVERBS_PARAM_byte:
        *(unsigned char *)p->value = (unsigned char)n;
        return n == (unsigned char)n ? 0 : -ERANGE;
    case KVERBS_PARAM_ushort:
        *(unsigned short *)p->value = (unsigned short)n;
        return n == (unsigned short)n ? 0 : -ERANGE;
    default:
        *(unsigned *)p->value = (unsigned)n;
        return n == (unsigned)n ? 0 : -ERANGE;
    }
}

static int set(const struct param *p, char *text)
{
    switch (p->type) {
    case KVERBS_PARAM_charp:
        *(char **)p->value = text;
        return 0;
    case KVERBS_PARAM_bool:
        return set_bool(p->value, text);
    case KVERBS_PARAM_int:
    case KVERBS_PARAM_short:
    case KVERBS_PARAM_long:
        return set_signed(p, text);
    default:
        return set_unsigned(p, text);
    }
}

static int usage(const char *program)
{
    fprintf(stderr, "Usage: %s [NAME=VALUE...] [/proc/FILE[=TEXT]...]\n", program);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "  %-20s %s\n", params[i].name, params[i].text ? params[i].text : "");
    return 2;
}

static int take(char *arg)
{
    char *value = strchr(arg, '=');
    for (int i = 0; value && i < count; i++) {
        size_t n = strlen(params[i].name);
        if ((size_t)(value - arg) == n && memcmp(arg, params[i].name, n) == 0 && params[i].value)
            return set(&params[i], value + 1);
    }
    return -ENOENT;
}

static bool is_file(const char *arg)
{
    return strncmp(arg, "/proc/", strlen("/proc/")) == 0;
}

static int use_file(char *arg)
{
    char *text = strchr(arg, '=');
    if (!text)
        return kv_proc_read(arg);
    *text = 0;
    return kv_proc_write(arg, text + 1);
}

/* SIGINT and SIGTERM end what waits; a second one ends the program. */
static void *take_signals(void *arg)
{
    int sig;
    sigset_t *set = arg;
    sigwait(set, &sig);
    kv_signal(sig);
    kv_give_up();
    sigwait(set, &sig);
    _Exit(128 + sig);
}

static void watch_signals(void)
{
    static sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, take_signals, &set) == 0)
        pthread_detach(thread);
}

static int use_files(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc && !signal_pending(current); i++) {
        int ret = is_file(argv[i]) ? use_file(argv[i]) : 0;
        if (ret) {
            fprintf(stderr, "%s: %s\n", argv[i], strerror(-ret));
            status = 1;
        }
    }
    return status;
}

__attribute__((visibility("default"))) int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        int ret = is_file(argv[i]) ? 0 : take(argv[i]);
        files += is_file(argv[i]);
        if (ret) {
            fprintf(stderr, "%s: %s\n", argv[i],
                    ret == -ENOENT ? "no such parameter" : strerror(-ret));
            return usage(argv[0]);
        }
    }
    watch_signals();
    (void)signal_pending(current); /* this thread can be told of signals from now on */
    int ret = init ? init() : 0;
    if (ret < 0) {
        fprintf(stderr, "%s: %s\n", argv[0], strerror(-ret));
        return 1;
    }
    int status = use_files(argc, argv);
    if (files == 0)
        kv_wait_idle();
    if (end)
        end();
    kv_end_system_wq();
    kv_forget_threads();
    if (kv_report_left() > 0)
        return 3;
    return kv_thread_has_failed() ? 1 : status;
}
