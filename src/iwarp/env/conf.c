/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/conf.h"

#include "env/log.h"
#include "wire/fpdu.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_US_MAX    1000000
#define CONNECT_MS_MIN 100
#define CONNECT_MS_MAX 600000
#define SILENCE_S_MIN  6
#define SILENCE_S_MAX  3600
#define PCAP_MB_MAX    1000000
#define PORT_MIN       1024
#define SHM_BYTES      (1024 * 1024)
#define SHM_MIN        (64 * 1024)
#define SHM_MAX        (16 * 1024 * 1024)

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

static bool parse_crc(struct iw_conf *conf, const char *s)
{
    bool on;
    if (!strcmp(s, "auto"))
        conf->crc = IW_AUTO;
    else if (parse_on_off(s, &on))
        conf->crc = on ? IW_ON : IW_OFF;
    else
        return false;
    return true;
}

static bool parse_fpdu(struct iw_conf *conf, const char *s)
{
    unsigned long n;
    if (!strcmp(s, "auto")) {
        conf->fpdu = IW_AUTO;
    } else if (!strcmp(s, "mss")) {
        conf->fpdu = IW_ON;
    } else if (parse_number(s, FPDU_MULPDU_MIN, FPDU_ULPDU_MAX, &n)) {
        conf->fpdu = IW_OFF;
        conf->fpdu_bytes = (uint32_t)n;
    } else {
        return false;
    }
    return true;
}

/** A power of two: rings are mapped by pages, and these are of 64 KB at most. */
static bool parse_shm(struct iw_conf *conf, const char *s)
{
    unsigned long n = SHM_BYTES;
    bool on = true;
    if (!parse_on_off(s, &on) && (!parse_number(s, SHM_MIN, SHM_MAX, &n) || (n & (n - 1))))
        return false;
    conf->shm_bytes = on ? (uint32_t)n : 0;
    return true;
}

static bool parse_ext(struct iw_conf *conf, const char *s)
{
    return parse_on_off(s, &conf->ext);
}

static bool parse_spin_us(struct iw_conf *conf, const char *s)
{
    unsigned long n;
    if (!parse_number(s, 0, SPIN_US_MAX, &n))
        return false;
    conf->spin_us = (unsigned)n;
    return true;
}

static bool parse_connect_ms(struct iw_conf *conf, const char *s)
{
    unsigned long n;
    if (!parse_number(s, CONNECT_MS_MIN, CONNECT_MS_MAX, &n))
        return false;
    conf->connect_ms = (unsigned)n;
    return true;
}

static bool parse_silence_s(struct iw_conf *conf, const char *s)
{
    unsigned long n;
    if (!parse_number(s, SILENCE_S_MIN, SILENCE_S_MAX, &n))
        return false;
    conf->silence_s = (unsigned)n;
    return true;
}

/** Two ports with a hyphen between them, or one. */
static bool parse_ports(struct iw_conf *conf, const char *s)
{
    char text[sizeof("65535-65535")];
    unsigned long low, high;
    if (!parse_string(s, text, sizeof(text)))
        return false;
    char *hyphen = strchr(text, '-');
    if (hyphen)
        *hyphen = '\0';
    if (!parse_number(text, PORT_MIN, UINT16_MAX, &low) ||
        !parse_number(hyphen ? hyphen + 1 : text, low, UINT16_MAX, &high))
        return false;
    conf->port_low = (uint16_t)low;
    conf->port_high = (uint16_t)high;
    return true;
}

static bool parse_congestion(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->congestion, sizeof(conf->congestion));
}

static bool parse_stats(struct iw_conf *conf, const char *s)
{
    if (*s != '/')
        return parse_on_off(s, &conf->stats);
    if (!parse_string(s, conf->stats_dir, sizeof(conf->stats_dir)))
        return false;
    conf->stats = true;
    return true;
}

static bool parse_pcap(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->pcap, sizeof(conf->pcap));
}

static bool parse_pcap_mb(struct iw_conf *conf, const char *s)
{
    unsigned long n;
    if (!parse_number(s, 1, PCAP_MB_MAX, &n))
        return false;
    conf->pcap_mb = (unsigned)n;
    return true;
}

static bool parse_record(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->record, sizeof(conf->record));
}

static bool parse_faults(struct iw_conf *conf, const char *s)
{
    return parse_on_off(s, &conf->faults);
}

static bool parse_devices(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->devices, sizeof(conf->devices));
}

static bool parse_chaos(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->chaos, sizeof(conf->chaos));
}

static bool parse_check(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->check, sizeof(conf->check));
}

static bool parse_like(struct iw_conf *conf, const char *s)
{
    const struct iw_adapter *a = iw_adapter_find(s);
    if (a)
        conf->like = a;
    return a != NULL;
}

static bool parse_tls(struct iw_conf *conf, const char *s)
{
    if (!strcmp(s, "off"))
        conf->tls = IW_TLS_OFF;
    else if (!strcmp(s, "allow"))
        conf->tls = IW_TLS_ALLOW;
    else
        conf->tls = IW_TLS_REQUIRE; /* who meant something else does not get less than he meant */
    return !strcmp(s, "off") || !strcmp(s, "allow") || !strcmp(s, "require");
}

static bool parse_tls_cert(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->tls_cert, sizeof(conf->tls_cert));
}

static bool parse_tls_key(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->tls_key, sizeof(conf->tls_key));
}

static bool parse_tls_ca(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->tls_ca, sizeof(conf->tls_ca));
}

static bool parse_tls_psk(struct iw_conf *conf, const char *s)
{
    return parse_string(s, conf->tls_psk, sizeof(conf->tls_psk));
}

static bool parse_access(struct iw_conf *conf, const char *s)
{
    if (parse_string(s, conf->access, sizeof(conf->access)))
        return true;
    strcpy(conf->access, "/dev/null/ANYWARP_ACCESS"); /* no file: then nobody may connect */
    return false;
}

/* The log reads it by itself, before the others, and tells of it. */
static bool judge_log_level(struct iw_conf *unused, const char *s)
{
    int level;
    (void)unused;
    return iw_log_level_of(s, &level);
}

static const struct iw_knob knobs[] = {
    {"ANYWARP_CRC", "choice", "auto, on, off", "auto",
     "CRC32c of each FPDU; auto is off between addresses of this host; a peer that asks always "
     "gets it",
     parse_crc},
    {"ANYWARP_FPDU", "size", "auto, mss, 128 to 64768", "auto",
     "size of the FPDUs that are sent; mss keeps to one TCP segment", parse_fpdu},
    {"ANYWARP_SHM", "size", "on, off, 65536 to 16777216", "on",
     "whether two processes of one host go on through rings in shared memory, and how large a ring "
     "is, a power of two; on is 1048576",
     parse_shm},
    {"ANYWARP_EXT", "choice", "on, off", "on", "whether to tell peers that this is anywarp",
     parse_ext},
    {"ANYWARP_CONNECT_MS", "number", "100 to 600000", "20000",
     "milliseconds that TCP may take to connect, and then the other side to answer; after them "
     "RDMA_CM_EVENT_UNREACHABLE; if shorter, also for an MPA Request (5000) and a first message "
     "(10000) to a listener",
     parse_connect_ms},
    {"ANYWARP_SILENCE_S", "number", "6 to 3600", "60",
     "seconds that a peer may leave unanswered what TCP sends and asks; after them it is dead",
     parse_silence_s},
    {"ANYWARP_SPIN_US", "number", "0 to 1000000", "50",
     "microseconds to look for work before a blocking wait sleeps; four times that for events of "
     "connections; at most 50 for the thread of anywarp where a peer by number waits for it",
     parse_spin_us},
    {"ANYWARP_PORTS", "range", "1024 to 65535, as 20000-20099", NULL,
     "TCP ports for queue pairs that are connected by number, 256 each; none: any that is free",
     parse_ports},
    {"ANYWARP_CONGESTION", "name", "at most 15 bytes", NULL,
     "TCP congestion control; none: the system's", parse_congestion},
    {"ANYWARP_DEVICES", "list", "aw0=eth0 rc0=roce:eth0, at most 255 bytes", NULL,
     "one device for each entry, NAME=INTERFACE or NAME=KIND:INTERFACE, instead of one for all; "
     "KIND is iwarp or roce; without INTERFACE behind the colon: of the host; an id gets the first "
     "whose interface has its local address, else the first of the host; loopback ones get the "
     "first",
     parse_devices},
    {"ANYWARP_STATS", "choice", "on, off, a directory", "on",
     "whether anywarp stat and anywarp top can see the process; on: by a file in "
     "XDG_RUNTIME_DIR/anywarp, else in /dev/shm/anywarp-UID",
     parse_stats},
    {"ANYWARP_PCAP", "path", "a file, at most 255 bytes", NULL,
     "capture what the connections carry, in the clear, for Wireshark; %p in the name is the "
     "number of the process",
     parse_pcap},
    {"ANYWARP_PCAP_MB", "number", "1 to 1000000", "64", "megabytes of such a file, then it ends",
     parse_pcap_mb},
    {"ANYWARP_RECORD", "path", "a file, at most 255 bytes", NULL,
     "keep the last calls and frames in this file, for anywarp record after a crash or a hang; %p "
     "in the name is the number of the process",
     parse_record},
    {"ANYWARP_TLS", "choice", "off, allow, require", "off",
     "TLS 1.3 under the connections; allow: listeners take both, connections are begun in the "
     "clear; require: nothing else in either direction",
     parse_tls},
    {"ANYWARP_TLS_CERT", "path", "a PEM file, at most 255 bytes", NULL,
     "own certificate, with its chain", parse_tls_cert},
    {"ANYWARP_TLS_KEY", "path", "a PEM file, at most 255 bytes", NULL,
     "its private key, which nobody else may read", parse_tls_key},
    {"ANYWARP_TLS_CA", "path", "a PEM file, at most 255 bytes", NULL,
     "whose certificates peers must have", parse_tls_ca},
    {"ANYWARP_TLS_PSK", "path", "a file, at most 255 bytes", NULL,
     "pre-shared keys, in lines NAME:HEX that nobody else may read; the first is offered",
     parse_tls_psk},
    {"ANYWARP_ACCESS", "path", "a file, at most 255 bytes", NULL,
     "who may connect to this process, and to whom it may connect: lines \"allow from 10.0.0.0/8 "
     "port 7471 identity CN=name\", the first that fits counts; none: everybody",
     parse_access},
    {"ANYWARP_FAULTS", "choice", "on, off", "on",
     "whether registered memory that is not mapped any more costs the connection that uses it, by "
     "a "
     "handler of SIGSEGV and SIGBUS where the program has none; off: the process",
     parse_faults},
    {"ANYWARP_CHAOS", "list", "what anywarp chaos sets, at most 767 bytes", NULL,
     "which faults happen, and by which seed; none: only those that happen by themselves",
     parse_chaos},
    {"ANYWARP_CHECK", "path", "a file, at most 255 bytes", NULL,
     "what anywarp check sets: findings are appended to this file; none: nobody looks",
     parse_check},
    {"ANYWARP_LIKE", "choice", "an adapter of anywarp run --like list", NULL,
     "refuse what this adapter would refuse; none: only what this one does", parse_like},
    {"ANYWARP_RSOCKET_CONF", "path", "a directory", "/etc/rdma/rsocket",
     "where rsockets find their defaults", NULL},
    {"ANYWARP_PATHS", "choice", "on, off", "on",
     "whether programs find the devices by paths below /sys/class/infiniband, "
     "/sys/class/infiniband_verbs and /dev/infiniband",
     NULL},
    {"ANYWARP_UVERBS_TRACE", "path", "a file", NULL,
     "a line for each command with anywarp run --system-libraries", NULL},
    {"ANYWARP_UVERBS_IOCTL", "choice", "on, off", "off",
     "whether a system's libibverbs that can do both sends commands by ioctl()", NULL},
    {"VERBS_LOG_LEVEL", "number", "0 to 4", "0",
     "2: say why completions fail and connections die; 3, 4: more", judge_log_level},
    {"VERBS_LOG_FILE", "path", "a file", NULL, "where the log goes; none: standard error", NULL},
    {"IBV_CONFIG_DIR", "path", "a directory", NULL,
     "there is a device only if a *.driver file in it has a line \"driver anywarp\"", NULL},
    {"XDG_RUNTIME_DIR", "path", "a directory", NULL, "see ANYWARP_STATS", NULL},
    {"SYSFS_PATH", "path", "a directory", "/sys", "what ibv_get_sysfs_path() tells the program",
     NULL},
};
#define N_KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static struct iw_conf conf;

static void read_environment(void)
{
    iw_log_on(IW_LOG_ERR); /* reads its own variables, and says what it does not understand */
    for (const struct iw_knob *k = knobs; k < knobs + N_KNOBS; k++) {
        const char *value = getenv(k->name);
        if (k->parse && k->initial)
            k->parse(&conf, k->initial);
        if (k->parse && k->parse != judge_log_level && value && *value && !k->parse(&conf, value))
            iw_log(IW_LOG_ASKED, "%s=%s is not understood (%s): %s", k->name, value, k->values,
                   k->parse == parse_tls      ? "taken as require"
                   : k->parse == parse_access ? "nobody may connect"
                                              : "ignored");
    }
}

const struct iw_conf *iw_conf(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &conf;
}

const struct iw_knob *iw_knobs(size_t *n)
{
    *n = N_KNOBS;
    return knobs;
}

const char *iw_knob_otherwise(const struct iw_knob *knob, const char *value)
{
    int level = 0;
    if (knob->parse == judge_log_level)
        iw_log_level_of(value, &level);
    return knob->parse == parse_tls      ? "require"
           : knob->parse == parse_access ? "that nobody may connect"
           : level                       ? "4"
                                         : knob->initial;
}

bool iw_knob_legal(const struct iw_knob *knob, const char *value)
{
    struct iw_conf scratch;
    return !*value || !knob->parse || knob->parse(&scratch, value);
}
