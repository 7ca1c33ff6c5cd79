/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/pcap_file.h"

#include "common/sys.h"
#include "env/conf.h"
#include "env/log.h"
#include "observe/own_file.h"

#include <string.h>
#include <sys/auxv.h>

#define MB (1024 * 1024)

static struct {
    bool tried;
    struct iw_own_file own; /* not open: nothing is captured, or no more */
    uint64_t size, max;
} file = {.own.fd = -1};

static void stop(const char *why)
{
    iw_log(IW_LOG_ASKED, "%s: %s: no more is captured", file.own.path, why);
    iw_own_file_close(&file.own);
}

static bool write_all(const struct iovec *iov, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    long r = sys_pwritev(file.own.fd, iov, n, (int64_t)file.size);
    if (r == (long)len) {
        file.size += len;
        return true;
    }
    stop(ftruncate(file.own.fd, (off_t)file.size) || r >= 0 ? strerror(EIO) : strerror((int)-r));
    return false;
}

bool iw_pcap_file_open(void)
{
    const struct iw_conf *conf = iw_conf();
    uint8_t start[PCAPNG_START_MAX];
    if (file.tried)
        return file.own.fd >= 0;
    file.tried = true;
    file.size = 0;
    file.max = iw_own_file_limit((uint64_t)conf->pcap_mb * MB);
    if (!conf->pcap[0] || getauxval(AT_SECURE))
        return false;
    const char *why = iw_own_file_open(&file.own, conf->pcap);
    if (why) {
        stop(why);
        return false;
    }
    struct iovec iov = {.iov_base = start,
                        .iov_len = pcapng_start(start, "anywarp " PACKAGE_VERSION)};
    return write_all(&iov, 1);
}

void iw_pcap_file_add(const struct tcp_ip *h, const uint8_t *data, uint32_t len, bool outgoing)
{
    uint8_t head[PCAPNG_HEAD + PCAPNG_TCP_IP_MAX], tail[PCAPNG_TAIL_MAX];
    struct timespec ts;
    if (file.own.fd < 0)
        return;
    if (!iw_own_file_is_ours(&file.own)) {
        stop("the program closed it");
        return;
    }
    clock_gettime(CLOCK_REALTIME, &ts);
    size_t ip = tcp_ip_encode(head + PCAPNG_HEAD, h, data, len);
    uint32_t packet = (uint32_t)ip + len;
    pcapng_head(head, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec, packet, NULL);
    struct iovec iov[] = {
        {.iov_base = head, .iov_len = PCAPNG_HEAD + ip},
        {.iov_base = (void *)data, .iov_len = len},
        {.iov_base = tail, .iov_len = pcapng_tail(tail, packet, outgoing, NULL)},
    };
    if (file.size + iov[0].iov_len + iov[1].iov_len + iov[2].iov_len > file.max)
        stop("it has the size of ANYWARP_PCAP_MB, or the largest that is allowed");
    else
        write_all(iov, 3);
}

void iw_pcap_file_leave(void)
{
    iw_own_file_close(&file.own);
    if (file.tried) /* else the child may be the first to open it */
        file.tried = !strstr(iw_conf()->pcap, "%p");
}
