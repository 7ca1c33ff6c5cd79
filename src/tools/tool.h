/* SPDX-License-Identifier: BSD-2-Clause */
/* The command anywarp: one row of the table in main.c for each subcommand, one file each. */
#ifndef ANYWARP_TOOLS_TOOL_H
#define ANYWARP_TOOLS_TOOL_H

struct tool {
    const char *name;
    const char *arguments; /* what follows the name in the synopsis */
    const char *summary;   /* a line of "anywarp --help" */
    /* The body of "anywarp NAME --help". Its options stand on lines of their own, after two blanks;
     * shell completion reads them there. */
    const char *help;
    /** argv[0] is "anywarp NAME", for getopt(). @return the exit status */
    int (*run)(int argc, char **argv);
};

extern const struct tool tool_chaos;
extern const struct tool tool_check;
extern const struct tool tool_config;
extern const struct tool tool_devices;
extern const struct tool tool_doctor;
extern const struct tool tool_env;
extern const struct tool tool_explain;
extern const struct tool tool_keys;
extern const struct tool tool_ping;
extern const struct tool tool_record;
extern const struct tool tool_run;
extern const struct tool tool_shrink;
extern const struct tool tool_stat;
extern const struct tool tool_top;

/* Where things are, for the build tree, as installed, or beside the command; see folders.h. */
extern const char *tool_libraries; /* the folder of the libraries */
extern const char *tool_programs;  /* the folder of ibv_devinfo and others */
extern const char tool_preload[];  /* the sanitizer's library that must be loaded first, or empty */

/* Exit statuses; those of a program that cannot be run are the shell's. */
enum { TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_CANNOT_RUN = 126, TOOL_NOT_FOUND = 127 };

/** Prints "anywarp: " and the message on standard error, and exits. */
_Noreturn void tool_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Makes the environment of programs that run on anywarp. */
void tool_set_environment(void);

/** Becomes the program @p argv, on anywarp's libraries, or ends the process with the shell's
 * status. */
_Noreturn void tool_exec(char **argv);

/**
 * The library to preload for programs that look for devices by paths.
 * @return NULL: it is not wanted, not there, or in a folder of which the loader would see a part
 */
const char *tool_paths(void);

/** Ends the process if one of the two libraries is not where it should be. */
void tool_check_libraries(void);

#endif
