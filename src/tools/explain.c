/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/text.h"
#include "tools/tool.h"
#include "wire/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *status, *event;
} names[] = {[IW_OK] = {"IBV_WC_SUCCESS", "none"},
#define X(name, layer, etype, code, status, event, text)                                           \
    [IW_ERR_##name] = {"IBV_WC_" #status, "IBV_EVENT_" #event},
             IW_ERRORS(X)
#undef X
};

static void print(enum iw_err err)
{
    const struct iw_err_info *e = iw_err_info(err);
    printf("%3d  %s\n", (int)err, e->text);
    printf("     %s", names[err].status);
    if (e->layer || e->etype || e->code)
        printf("; Terminate layer %u, type %u, code 0x%02x", e->layer, e->etype, e->code);
    if (e->event != IW_EVENT_NONE)
        printf("; event %s", names[err].event);
    putchar('\n');
}

static enum iw_err parse(const char *s)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(s, &end, 0);
    if (!isdigit((unsigned char)*s) || *end || errno)
        tool_die(TOOL_USAGE, "explain: %s: no number", s);
    if (n >= IW_ERR_COUNT)
        tool_die(TOOL_FAILED, "explain: %lu: there is no such vendor_err, they end at %d", n,
                 IW_ERR_COUNT - 1);
    return (enum iw_err)n;
}

static int explain(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-')
        return TOOL_USAGE;
    for (int i = 1; i < argc; i++)
        print(parse(argv[i]));
    for (int err = IW_OK + 1; argc == 1 && err < IW_ERR_COUNT; err++)
        print((enum iw_err)err);
    return 0;
}

const struct tool tool_explain = {
    .name = "explain",
    .arguments = "[NUMBER...]",
    .summary = "what the vendor_err of a completion means",
    .help = "Prints, for each vendor_err that a failed work completion has, what it stands\n"
            "for, the status that goes with it, what a Terminate message says of it, and the\n"
            "asynchronous event. Without a number, for all.\n",
    .run = explain,
};
