/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma/rs/address.h"
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <netinet/in.h>
#include <string.h>

static struct sockaddr_in6 mapped(const struct sockaddr_in *four)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = four->sin_port};
    six.sin6_addr.s6_addr[10] = six.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&six.sin6_addr.s6_addr[12], &four->sin_addr, 4);
    return six;
}

void rs_copy_address(const struct sockaddr *from, bool six, struct sockaddr *to, socklen_t *len)
{
    struct sockaddr_in6 other;
    if (six && from->sa_family == AF_INET) {
        other = mapped((const struct sockaddr_in *)(const void *)from);
        from = (const struct sockaddr *)&other;
    }
    socklen_t size =
        from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (*len)
        memcpy(to, from, *len < size ? *len : size);
    *len = size;
}

static int name(int socket, struct sockaddr *addr, socklen_t *len,
                struct sockaddr *(*of)(struct rdma_cm_id *id))
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_name(socket, addr, len, of == rdma_get_peer_addr);
    if (!len || (!addr && *len)) /* rdma-core's librspreload asks so whether it has a name */
        return rs_fail(EFAULT);
    rs_copy_address(of(rs->id), rs->six, addr, len);
    return 0;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    return name(socket, addr, addrlen, rdma_get_peer_addr);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    return name(socket, addr, addrlen, rdma_get_local_addr);
}
