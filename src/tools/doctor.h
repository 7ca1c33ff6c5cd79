/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of "anywarp doctor". Each says what it finds, and what to do about it. */
#ifndef ANYWARP_TOOLS_DOCTOR_H
#define ANYWARP_TOOLS_DOCTOR_H

#include <stdbool.h>

enum doctor_level {
    DOCTOR_GOOD,
    DOCTOR_NOTE, /* good to know */
    DOCTOR_WARN, /* may be in the way */
    DOCTOR_FAIL, /* is in the way */
};

/** Prints a finding; @p todo, which may be NULL, says what to do. */
void doctor_say(enum doctor_level level, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** The installation: libraries, devices, variables. */
void doctor_installation(void);

/** The machine: network and limits. */
void doctor_machine(void);

/** Certificates, keys and rules, where they are asked for. */
void doctor_tls(void);

/** What "anywarp run --system-libraries" needs. */
void doctor_system(void);

/** The program that "anywarp run NAME" would run; @p system: with --system-libraries. */
void doctor_program(const char *name, bool system);

/** A native program with a dynamic loader: what it loads. */
struct elf;
void doctor_dynamic(const char *path, const struct elf *e);

#endif
