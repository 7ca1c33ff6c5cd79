/* SPDX-License-Identifier: BSD-2-Clause */
/* The knobs: environment variables, read once at first use. */
#ifndef ANYWARP_ENV_CONF_H
#define ANYWARP_ENV_CONF_H

#include "env/adapter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum iw_tls {
    IW_TLS_OFF,
    IW_TLS_ALLOW, /* listeners take both, connections are begun in the clear */
    IW_TLS_REQUIRE,
};

enum iw_switch { IW_AUTO, IW_ON, IW_OFF };

struct iw_conf {
    enum iw_switch crc;  /* ANYWARP_CRC: auto is off between addresses of this host, on otherwise */
    enum iw_switch fpdu; /* ANYWARP_FPDU: auto; IW_ON: one segment ("mss"); IW_OFF: fpdu_bytes */
    uint32_t fpdu_bytes;
    uint32_t shm_bytes;           /* ANYWARP_SHM: of a ring in shared memory, 1048576; 0: none */
    bool ext;                     /* ANYWARP_EXT: the anywarp extension bit, on by default */
    uint16_t port_low, port_high; /* ANYWARP_PORTS; 0: any */
    unsigned connect_ms; /* ANYWARP_CONNECT_MS: patience with TCP, then with the Reply, 20000 */
    unsigned silence_s;  /* ANYWARP_SILENCE_S: of a peer that TCP asks, then it is dead, 60 */
    unsigned spin_us;    /* ANYWARP_SPIN_US: inline spin before a blocking wait, 50 */
    char congestion[16]; /* ANYWARP_CONGESTION: TCP congestion control; empty: the system's */
    bool stats;          /* ANYWARP_STATS: statistics for others to read, on by default */
    char stats_dir[256]; /* in this directory; empty: the default */
    char pcap[256];      /* ANYWARP_PCAP: capture file; empty: none */
    unsigned pcap_mb;    /* ANYWARP_PCAP_MB: its size at most, 64 */
    char record[256];    /* ANYWARP_RECORD: file of the flight recorder; empty: none */
    bool faults;         /* ANYWARP_FAULTS: survive those of registered memory, on by default */
    char devices[256];   /* ANYWARP_DEVICES: "name=[kind:]interface ..."; empty: one device */
    enum iw_tls tls;     /* ANYWARP_TLS: off */
    char tls_cert[256];  /* ANYWARP_TLS_CERT, _KEY, _CA, _PSK: files; empty: none */
    char tls_key[256];
    char tls_ca[256];
    char tls_psk[256];
    char access[256]; /* ANYWARP_ACCESS: file of rules; empty: everybody may connect */
    char chaos[768];  /* ANYWARP_CHAOS: which faults happen; empty: none. faults/plan.h */
    char check[256];  /* ANYWARP_CHECK: file that findings are appended to; empty: nobody looks */
    const struct iw_adapter *like; /* ANYWARP_LIKE: refuse what this one would; NULL: nothing */
};

/* One environment variable. "anywarp config" and the table in README.md say what stands here. */
struct iw_knob {
    const char *name;
    const char *type; /* one word */
    const char *values;
    const char *initial; /* the default; NULL: none */
    const char *meaning;
    /* Stores a legal value, else says false and changes nothing, but for ANYWARP_TLS, which is then
     * require, and ANYWARP_ACCESS, which then refuses everybody; NULL: whoever reads it judges. */
    bool (*parse)(struct iw_conf *conf, const char *value);
};

/** The knobs in force; a value that cannot be understood is reported once and ignored. */
const struct iw_conf *iw_conf(void);

/** The table of all @p n variables that the libraries read. */
const struct iw_knob *iw_knobs(size_t *n);

/** What is in force instead of a @p value that would not be understood; NULL: nothing. */
const char *iw_knob_otherwise(const struct iw_knob *knob, const char *value);

/** Whether a value of the environment would be understood; an empty one is as good as none. */
bool iw_knob_legal(const struct iw_knob *knob, const char *value);

#endif
