/* SPDX-License-Identifier: BSD-2-Clause */
/* The 40 bytes before a datagram: a GRH, an IPv6 header, or an IPv4 header at their end. */
#include <rdma/ib_verbs.h>

static const u8 *ipv4(const union rdma_network_hdr *hdr)
{
    return hdr->roce4grh;
}

/* RFC 1071: the sum of all words, the checksum among them, is all ones. */
static bool ipv4_sum_is_right(const u8 *h)
{
    u32 sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += (u32)h[i] << 8 | h[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    return sum + (sum >> 16) == 0xffff;
}

/* Before an IPv4 header is anything, a 6 where IPv6 has its version, too: then the checksum
 * decides. An adapter puts no options there. */
int ib_get_rdma_header_version(const union rdma_network_hdr *hdr)
{
    const u8 *h = ipv4(hdr);
    if (((const u8 *)hdr)[0] >> 4 != 6)
        return h[0] >> 4 == 4 ? 4 : 0;
    return (h[0] & 0xf) == 5 && ipv4_sum_is_right(h) ? 4 : 6;
}

static void mapped(union ib_gid *gid, const u8 *address)
{
    memset(gid->raw, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    memcpy(gid->raw + 12, address, 4);
}

int ib_get_gids_from_rdma_hdr(const union rdma_network_hdr *hdr, enum rdma_network_type net_type,
                              union ib_gid *sgid, union ib_gid *dgid)
{
    switch (net_type) {
    case RDMA_NETWORK_IPV4:
        mapped(sgid, ipv4(hdr) + 12);
        mapped(dgid, ipv4(hdr) + 16);
        return 0;
    case RDMA_NETWORK_IPV6:
    case RDMA_NETWORK_IB:
        *sgid = hdr->ibgrh.sgid;
        *dgid = hdr->ibgrh.dgid;
        return 0;
    }
    return -EINVAL;
}
