/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/conf.h"

#include "rnic/log.h"
#include "wire/fpdu.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_US_MAX    1000000
#define CONNECT_MS_MIN 100
#define CONNECT_MS_MAX 600000

static struct iw_conf conf = {.ext = true, .connect_ms = 20000, .spin_us = 50};

/* Each parser changes the knob and says true, or leaves it alone and says false. */

static bool parse_number(const char *s, unsigned long min, unsigned long max, unsigned long *out)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(s, &end, 10);
    if (!isdigit((unsigned char)*s) || *end || errno || n < min || n > max)
        return false;
    *out = n;
    return true;
}

static bool parse_on_off(const char *s, bool *out)
{
    bool on = !strcmp(s, "on");
    if (!on && strcmp(s, "off") != 0)
        return false;
    *out = on;
    return true;
}

static bool parse_string(const char *s, char *out, size_t size)
{
    if (strlen(s) >= size)
        return false;
    strcpy(out, s);
    return true;
}

static bool parse_crc(const char *s)
{
    bool on;
    if (!strcmp(s, "auto"))
        conf.crc = IW_AUTO;
    else if (parse_on_off(s, &on))
        conf.crc = on ? IW_ON : IW_OFF;
    else
        return false;
    return true;
}

static bool parse_fpdu(const char *s)
{
    unsigned long n;
    if (!strcmp(s, "auto")) {
        conf.fpdu = IW_AUTO;
    } else if (!strcmp(s, "mss")) {
        conf.fpdu = IW_ON;
    } else if (parse_number(s, FPDU_MULPDU_MIN, FPDU_ULPDU_MAX, &n)) {
        conf.fpdu = IW_OFF;
        conf.fpdu_bytes = (uint32_t)n;
    } else {
        return false;
    }
    return true;
}

static bool parse_ext(const char *s)
{
    return parse_on_off(s, &conf.ext);
}

static bool parse_spin_us(const char *s)
{
    unsigned long n;
    if (!parse_number(s, 0, SPIN_US_MAX, &n))
        return false;
    conf.spin_us = (unsigned)n;
    return true;
}

static bool parse_connect_ms(const char *s)
{
    unsigned long n;
    if (!parse_number(s, CONNECT_MS_MIN, CONNECT_MS_MAX, &n))
        return false;
    conf.connect_ms = (unsigned)n;
    return true;
}

static bool parse_congestion(const char *s)
{
    return parse_string(s, conf.congestion, sizeof(conf.congestion));
}

static bool parse_devices(const char *s)
{
    return parse_string(s, conf.devices, sizeof(conf.devices));
}

static const struct {
    const char *name;
    bool (*parse)(const char *value);
    const char *legal;
} knobs[] = {
    {"ANYWARP_CRC", parse_crc, "auto, on or off"},
    {"ANYWARP_FPDU", parse_fpdu, "auto, mss or 128 to 64768 bytes"},
    {"ANYWARP_EXT", parse_ext, "on or off"},
    {"ANYWARP_CONNECT_MS", parse_connect_ms, "100 to 600000 milliseconds"},
    {"ANYWARP_SPIN_US", parse_spin_us, "0 to 1000000 microseconds"},
    {"ANYWARP_CONGESTION", parse_congestion, "a name of at most 15 bytes"},
    {"ANYWARP_DEVICES", parse_devices, "a list of at most 255 bytes"},
};

static void read_environment(void)
{
    for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
        const char *value = getenv(knobs[i].name);
        if (value && *value && !knobs[i].parse(value))
            iw_log(IW_LOG_WARN, "%s=%s is not understood (%s): ignored", knobs[i].name, value,
                   knobs[i].legal);
    }
}

const struct iw_conf *iw_conf(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &conf;
}
