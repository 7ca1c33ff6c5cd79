/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of keys_openssl.c, in a build without OpenSSL. */
#include "tools/keys.h"

#include "tools/tool.h"

static _Noreturn void no(void)
{
    tool_die(TOOL_FAILED, "keys: this build has no TLS (--with-random=kernel); openssl(1) makes "
                          "certificates, too");
}

void keys_make_authority(FILE *certificate, FILE *key, int days)
{
    (void)certificate, (void)key, (void)days;
    no();
}

void keys_make_certificate(FILE *authority, FILE *authority_key, const char *name,
                           const char *addresses, int days, FILE *certificate, FILE *key)
{
    (void)authority, (void)authority_key, (void)name, (void)addresses, (void)days;
    (void)certificate, (void)key;
    no();
}

void keys_make_psk(FILE *f, const char *name)
{
    (void)f, (void)name;
    no();
}

bool keys_examine(const char *certificate, const char *authority, struct keys_certificate *out)
{
    (void)certificate, (void)authority, (void)out;
    return false;
}
