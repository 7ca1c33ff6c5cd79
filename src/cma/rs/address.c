/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma/rs/address.h"
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <netinet/in.h>
#include <string.h>

void rs_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *len)
{
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
    rs_copy_address(of(rs->id), addr, len);
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
