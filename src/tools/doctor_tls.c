/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor.h"

#include "env/access.h"
#include "env/conf.h"
#include "env/tls.h"
#include "tools/keys.h"

#include <stdbool.h>
#include <sys/timex.h>
#include <time.h>

#define DAY_S  86400
#define SOON_S (14 * DAY_S)

static void date_of(time_t t, char text[32])
{
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M UTC", &tm))
        text[0] = 0;
}

static void check_time(const struct keys_certificate *c)
{
    time_t now = time(NULL);
    char from[32], to[32], today[32];
    date_of(c->from, from);
    date_of(c->to, to);
    date_of(now, today);
    if (now > c->to)
        doctor_say(DOCTOR_FAIL, "make a new one: anywarp keys, or whoever made it",
                   "the certificate %s expired on %s; it is %s", c->subject, to, today);
    else if (now < c->from)
        doctor_say(DOCTOR_FAIL, "set the clock, if that is not the time",
                   "the certificate %s is good from %s on; the clock says %s", c->subject, from,
                   today);
    else if (c->to - now < SOON_S)
        doctor_say(DOCTOR_WARN, "make a new one in time", "the certificate %s expires on %s",
                   c->subject, to);
    else
        doctor_say(DOCTOR_GOOD, NULL, "the certificate %s is good until %s", c->subject, to);
}

/** Certificates are good for a time, so the clock has to be right. */
static void check_clock(void)
{
    struct timex t = {0};
    if (adjtimex(&t) == TIME_ERROR && (t.status & STA_UNSYNC))
        doctor_say(DOCTOR_NOTE, "a clock that is wrong makes good certificates bad ones",
                   "no other clock keeps this machine's right, as far as the kernel knows");
}

static void check_certificate(const struct iw_conf *conf)
{
    struct keys_certificate c;
    if (!conf->tls_cert[0] || !keys_examine(conf->tls_cert, conf->tls_ca, &c))
        return;
    check_time(&c);
    if (c.untrusted[0])
        doctor_say(DOCTOR_FAIL,
                   "peers with the same authority refuse it: use one of that authority",
                   "%s does not vouch for %s: %s", conf->tls_ca, c.subject, c.untrusted);
    if (!c.here)
        doctor_say(DOCTOR_WARN, "who connects to this host refuses it: anywarp keys --address",
                   "the certificate %s is for addresses of other hosts", c.subject);
    check_clock();
}

static void check_tls(const struct iw_conf *conf)
{
    const char *why;
    if (conf->tls == IW_TLS_OFF) {
        if (conf->tls_cert[0] || conf->tls_psk[0])
            doctor_say(DOCTOR_WARN, "set ANYWARP_TLS=require",
                       "keys are set, but ANYWARP_TLS is off: connections are in the clear");
        return;
    }
    if (!iw_tls_context(&why))
        doctor_say(DOCTOR_FAIL, "no connection is made as it is; anywarp keys makes keys",
                   "ANYWARP_TLS: %s", why);
    else
        doctor_say(DOCTOR_GOOD, NULL, "ANYWARP_TLS has the keys that it needs");
    if (conf->tls == IW_TLS_ALLOW)
        doctor_say(DOCTOR_NOTE, NULL,
                   "ANYWARP_TLS=allow: connections that are begun here are in the clear");
    check_certificate(conf);
}

static void check_access(const struct iw_conf *conf)
{
    char why[IW_ACCESS_WHY_MAX];
    if (!conf->access[0])
        return;
    if (iw_access_usable(conf->access, why))
        doctor_say(DOCTOR_GOOD, NULL, "the rules of %s can be used", conf->access);
    else
        doctor_say(DOCTOR_FAIL, "nobody may connect as it is", "ANYWARP_ACCESS: %s", why);
}

void doctor_tls(void)
{
    const struct iw_conf *conf = iw_conf();
    check_tls(conf);
    check_access(conf);
}
