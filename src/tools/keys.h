/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates and keys, as "anywarp keys" makes them and "anywarp doctor" judges them. */
#ifndef ANYWARP_TOOLS_KEYS_H
#define ANYWARP_TOOLS_KEYS_H

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

/* Each ends the process with a message if it cannot, or if this build has no TLS. */

/** Makes an authority: its certificate, and the key that only the owner may read. */
void keys_make_authority(FILE *certificate, FILE *key, int days);

/**
 * Makes a certificate of it for @p name.
 * @param addresses  a list with commas, which it is good for alone; NULL: all
 */
void keys_make_certificate(FILE *authority, FILE *authority_key, const char *name,
                           const char *addresses, int days, FILE *certificate, FILE *key);

/** Adds a pre-shared key. */
void keys_make_psk(FILE *f, const char *name);

/* What a certificate is good for. */
struct keys_certificate {
    char subject[256];
    time_t from, to;
    char untrusted[128]; /* why the authority's certificate does not vouch for it; empty: it does */
    bool here;           /* it names no addresses, or one of this host */
};

/** @return false if one of the files has no certificate */
bool keys_examine(const char *certificate, const char *authority, struct keys_certificate *out);

#endif
