/* SPDX-License-Identifier: BSD-2-Clause */
/* What the flight recorder has kept of a process. */
#include "tools/recording.h"
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/** The file, or that of the process whose number it is. */
static void find(const char *what, char *path, size_t size)
{
    char *end;
    unsigned long pid = strtoul(what, &end, 10);
    if (what[strspn(what, "0123456789")] || !*what) {
        snprintf(path, size, "%s", what);
        return;
    }
    if (!recording_find(pid, path, size))
        tool_die(TOOL_FAILED,
                 "record: no process %s that records, or it is another user's. Does it run with "
                 "ANYWARP_RECORD?",
                 what);
}

static void capture(const struct recording *r, const char *path)
{
    FILE *f = fopen(path, "wbe");
    bool ok = f && recording_capture(f, r);
    int error = errno;
    if (f && fclose(f) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok)
        tool_die(TOOL_FAILED, "record: %s: %s", path, strerror(error));
}

static int record(int argc, char **argv)
{
    static const struct option options[] = {{"pcap", required_argument, NULL, 'p'}, {0}};
    char path[PATH_MAX + 64], wrong[256];
    const char *pcap = NULL;
    struct recording r;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == '?')
            return TOOL_USAGE;
        pcap = optarg;
    }
    if (argc - optind != 1)
        tool_die(TOOL_USAGE, "record: one file or process. Try: anywarp record --help");
    find(argv[optind], path, sizeof(path));
    if (!recording_read(&r, path, wrong, sizeof(wrong)))
        tool_die(TOOL_FAILED, "record: %s: %s", argv[optind], wrong);
    if (pcap)
        capture(&r, pcap);
    else
        recording_print(stdout, &r);
    recording_free(&r);
    return 0;
}

const struct tool tool_record = {
    .name = "record",
    .arguments = "[--pcap FILE] FILE|PID",
    .summary = "what a program did last, after a crash or in a hang",
    .help = "Prints the last 1024 calls of the verbs, 1024 of the connection manager with\n"
            "its events, and 1024 frames on the wire, in the order of time, of a program\n"
            "that was run with ANYWARP_RECORD=FILE, as \"anywarp run --record FILE\" does.\n"
            "It may have ended, by whatever signal, or still run, then PID will do.\n"
            "\n"
            "  --pcap FILE   write the frames there, for Wireshark, instead of text\n",
    .run = record,
};
