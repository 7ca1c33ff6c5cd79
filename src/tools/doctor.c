/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor.h"

#include "tools/reach.h"
#include "tools/text.h"
#include "tools/tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define INDENT     6
#define CONNECT_MS 5000

static enum doctor_level worst;

void doctor_say(enum doctor_level level, const char *todo, const char *fmt, ...)
{
    static const char *const labels[] = {[DOCTOR_GOOD] = "ok",
                                         [DOCTOR_NOTE] = "note",
                                         [DOCTOR_WARN] = "warn",
                                         [DOCTOR_FAIL] = "FAIL"};
    char *text;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        tool_die(TOOL_FAILED, "out of memory");
    va_end(ap);
    text_wrap(stdout, INDENT, labels[level], text);
    if (todo)
        text_wrap(stdout, INDENT + 4, "      ->", todo);
    free(text);
    if (level > worst)
        worst = level;
}

static void say_step(const struct reach_step *s)
{
    doctor_say(s->good ? DOCTOR_GOOD : DOCTOR_WARN, s->todo, "%s, in %.3f ms: %s", s->name, s->ms,
               s->text);
}

/** @param where  HOST:PORT @return the port, which is cut off */
static const char *split(char *where)
{
    char *port = strrchr(where, ':');
    if (!port || port == where || !reach_is_port(port + 1))
        tool_die(TOOL_USAGE, "doctor: --connect %s: should be HOST:PORT", where);
    *port = '\0';
    return port + 1;
}

static void check_connection(const char *host, const char *port)
{
    if (!reach(host, port, CONNECT_MS, say_step))
        doctor_say(DOCTOR_FAIL, NULL, "no connection to %s, port %s", host, port);
}

static int doctor(int argc, char **argv)
{
    static const struct option options[] = {{"connect", required_argument, NULL, 'c'},
                                            {"system-libraries", no_argument, NULL, 's'},
                                            {0}};
    const char *host = NULL, *port = NULL;
    bool system = false;
    for (int c; (c = getopt_long(argc, argv, "+c:", options, NULL)) != -1;) {
        if (c == '?')
            return TOOL_USAGE;
        if (c == 's') {
            system = true;
            continue;
        }
        port = split(optarg);
        host = optarg;
    }
    doctor_installation();
    doctor_machine();
    doctor_tls();
    if (system)
        doctor_system();
    if (host)
        check_connection(host, port);
    if (optind < argc)
        doctor_program(argv[optind], system);
    static const char *const verdicts[] = {
        [DOCTOR_GOOD] = "Nothing is in the way.",
        [DOCTOR_NOTE] = "Nothing is in the way.",
        [DOCTOR_WARN] = "It should work; look at the warnings if it does not.",
        [DOCTOR_FAIL] = "It will not work before what is marked FAIL is mended.",
    };
    printf("\n%s\n", verdicts[worst]);
    return worst == DOCTOR_FAIL ? TOOL_FAILED : 0;
}

const struct tool tool_doctor = {
    .name = "doctor",
    .arguments = "[--connect HOST:PORT] [--system-libraries]\n"
                 "           [COMMAND [ARGUMENT...]]",
    .summary = "find out what keeps anywarp, or a program on it, from working",
    .help = "Examines the installation, the environment and the machine, and the program if\n"
            "one is named, without running it. Each finding says what to do about it. The\n"
            "exit status is 0 if nothing is in the way, 1 if something is.\n"
            "\n"
            "  -c, --connect HOST:PORT   connect to an RDMA listener, too, as anywarp ping\n"
            "  --system-libraries        for anywarp run --system-libraries, and its needs\n",
    .run = doctor,
};
