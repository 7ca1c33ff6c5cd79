/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/ucm.h"

#include "common/sanitizer.h"
#include "uverbs/numbers.h"
#include "uverbs/trace.h"
#include "uverbs/ucm_structs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { OLDEST_LEN = 512, OPTION_MAX = 4096 };

_Static_assert(sizeof(struct rdma_ucm_event_resp) <= OLDEST_LEN, "responses fit");
_Static_assert(sizeof(struct rdma_ucm_query_addr_resp) <= OLDEST_LEN, "responses fit");
_Static_assert(sizeof(struct rdma_ucm_accept) <= OLDEST_LEN, "commands fit");

/* Ends a command's use of an id. @return 0 or the errno of a call of rdma_cm */
static int done(struct ucm_id *id, int result)
{
    int err = result ? errno : 0;
    ucm_id_put(id);
    return err;
}

static int create_id(struct ucm_call *call)
{
    const struct rdma_ucm_create_id *cmd = call->in;
    struct rdma_ucm_create_id_resp *resp = call->resp;
    struct ucm_id *id = ucm_id_add(call->file, cmd->uid);
    if (!id)
        return ENOMEM;
    struct rdma_cm_id *cm;
    if (rdma_create_id(call->file->object, &cm, id, (enum rdma_port_space)cmd->ps) != 0) {
        int err = errno;
        ucm_id_destroy(id);
        return err;
    }
    id->cm = cm;
    resp->id = id->handle;
    ucm_id_put(id);
    return 0;
}

static int destroy_id(struct ucm_call *call)
{
    const struct rdma_ucm_destroy_id *cmd = call->in;
    struct rdma_ucm_destroy_id_resp *resp = call->resp;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    resp->events_reported = ucm_id_destroy(id);
    return 0;
}

/* The bytes that an address of this family has, 0: it is none of ours. */
static size_t address_len(const void *address)
{
    sa_family_t family;
    memcpy(&family, address, sizeof family);
    return family == AF_INET    ? sizeof(struct sockaddr_in)
           : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                : 0;
}

static int bind_to(struct ucm_call *call, uint32_t handle, const void *address)
{
    struct sockaddr_storage addr = {0};
    size_t len = address_len(address);
    struct ucm_id *id = ucm_id_get(call->file, handle);
    if (!id)
        return ENOENT;
    if (!len) {
        ucm_id_put(id);
        return EADDRNOTAVAIL;
    }
    memcpy(&addr, address, len);
    return done(id, rdma_bind_addr(id->cm, (struct sockaddr *)&addr));
}

static int bind_ip(struct ucm_call *call)
{
    const struct rdma_ucm_bind_ip *cmd = call->in;
    return bind_to(call, cmd->id, &cmd->addr);
}

static int bind_any(struct ucm_call *call)
{
    const struct rdma_ucm_bind *cmd = call->in;
    if (cmd->addr_size < address_len(&cmd->addr) || cmd->addr_size > sizeof cmd->addr)
        return EINVAL;
    return bind_to(call, cmd->id, &cmd->addr);
}

static int resolve(struct ucm_call *call, uint32_t handle, const void *source, const void *target,
                   uint32_t timeout)
{
    struct sockaddr_storage src = {0}, dst = {0};
    size_t src_len = source ? address_len(source) : 0, dst_len = address_len(target);
    if (!dst_len || timeout > INT32_MAX)
        return EINVAL;
    memcpy(&dst, target, dst_len);
    if (src_len)
        memcpy(&src, source, src_len);
    struct ucm_id *id = ucm_id_get(call->file, handle);
    if (!id)
        return ENOENT;
    return done(id, rdma_resolve_addr(id->cm, src_len ? (struct sockaddr *)&src : NULL,
                                      (struct sockaddr *)&dst, (int)timeout));
}

static int resolve_ip(struct ucm_call *call)
{
    const struct rdma_ucm_resolve_ip *cmd = call->in;
    return resolve(call, cmd->id, &cmd->src_addr, &cmd->dst_addr, cmd->timeout_ms);
}

static int resolve_addr(struct ucm_call *call)
{
    const struct rdma_ucm_resolve_addr *cmd = call->in;
    if (cmd->src_size > sizeof cmd->src_addr || cmd->dst_size > sizeof cmd->dst_addr ||
        cmd->dst_size < address_len(&cmd->dst_addr) ||
        (cmd->src_size && cmd->src_size < address_len(&cmd->src_addr)))
        return EINVAL;
    return resolve(call, cmd->id, cmd->src_size ? &cmd->src_addr : NULL, &cmd->dst_addr,
                   cmd->timeout_ms);
}

static int resolve_route(struct ucm_call *call)
{
    const struct rdma_ucm_resolve_route *cmd = call->in;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    if (cmd->timeout_ms > INT32_MAX) {
        ucm_id_put(id);
        return EINVAL;
    }
    return done(id, rdma_resolve_route(id->cm, (int)cmd->timeout_ms));
}

static uint64_t node_guid(const struct ucm_id *id)
{
    return id->cm->verbs ? ibv_get_device_guid(id->cm->verbs->device) : 0;
}

static uint16_t copy_address(void *to, const struct sockaddr *from)
{
    size_t len = address_len(from);
    memcpy(to, from, len);
    return (uint16_t)len;
}

static int query_route(struct ucm_call *call)
{
    const struct rdma_ucm_query *cmd = call->in;
    struct rdma_ucm_query_route_resp *resp = call->resp;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    resp->node_guid = node_guid(id);
    resp->port_num = id->cm->port_num;
    copy_address(&resp->src_addr, rdma_get_local_addr(id->cm));
    copy_address(&resp->dst_addr, rdma_get_peer_addr(id->cm));
    ucm_id_put(id);
    return 0;
}

static int query(struct ucm_call *call)
{
    const struct rdma_ucm_query *cmd = call->in;
    struct rdma_ucm_query_addr_resp *resp = call->resp;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    int err = 0;
    if (cmd->option == RDMA_USER_CM_QUERY_ADDR) {
        if (call->out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)) {
            err = ENOSPC;
        } else {
            resp->node_guid = node_guid(id);
            resp->port_num = id->cm->port_num;
            resp->pkey = 0xffff;
            resp->src_size = copy_address(&resp->src_addr, rdma_get_local_addr(id->cm));
            resp->dst_size = copy_address(&resp->dst_addr, rdma_get_peer_addr(id->cm));
        }
    } else if (cmd->option != RDMA_USER_CM_QUERY_PATH) { /* of paths there are none: zeros */
        err = cmd->option == RDMA_USER_CM_QUERY_GID ? EOPNOTSUPP : ENOSYS;
    }
    ucm_id_put(id);
    return err;
}

/* @p param points into @p c afterwards. */
static void param_from_command(struct rdma_conn_param *param, const struct rdma_ucm_conn_param *c)
{
    *param = (struct rdma_conn_param){
        .private_data = c->private_data,
        .private_data_len = c->private_data_len,
        .responder_resources = c->responder_resources,
        .initiator_depth = c->initiator_depth,
        .flow_control = c->flow_control,
        .retry_count = c->retry_count,
        .rnr_retry_count = c->rnr_retry_count,
        .srq = c->srq,
        .qp_num = c->qp_num,
    };
}

/*
 * Connects or accepts with the queue pair that the number names. It is that of another context than
 * the id's, so the id has it for as long as the call looks there, and no longer: the caller of
 * commands destroys each by itself. On a RoCE device the caller moves it, too: the id has none, and
 * the call finds it by its number.
 */
static int with_qp(struct ucm_id *id, struct rdma_conn_param *param,
                   int (*call)(struct rdma_cm_id *, struct rdma_conn_param *))
{
    if (!id->cm->verbs)
        return call(id->cm, param);
    struct ibv_qp *qp = uv_number_use(id->cm->verbs->device, param->qp_num);
    bool iwarp = id->cm->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    id->cm->qp = iwarp ? qp : NULL;
    int result = call(id->cm, param);
    id->cm->qp = NULL;
    uv_number_done();
    return result;
}

static int connect_id(struct ucm_call *call)
{
    const struct rdma_ucm_connect *cmd = call->in;
    struct rdma_conn_param param;
    if (!cmd->conn_param.valid)
        return EINVAL;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    param_from_command(&param, &cmd->conn_param);
    return done(id, with_qp(id, &param, rdma_connect));
}

static int accept_id(struct ucm_call *call)
{
    const struct rdma_ucm_accept *cmd = call->in;
    struct rdma_conn_param param;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    if (!cmd->conn_param.valid)
        return done(id, rdma_establish(id->cm));
    param_from_command(&param, &cmd->conn_param);
    /* Before ESTABLISHED can be taken, which bears it. */
    uint64_t old = __atomic_exchange_n(&id->uid, cmd->uid, __ATOMIC_RELAXED);
    int result = with_qp(id, &param, rdma_accept);
    if (result)
        __atomic_store_n(&id->uid, old, __ATOMIC_RELAXED);
    return done(id, result);
}

static int listen_id(struct ucm_call *call)
{
    const struct rdma_ucm_listen *cmd = call->in;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    int backlog = cmd->backlog > INT32_MAX ? INT32_MAX : (int)cmd->backlog;
    return done(id, rdma_listen(id->cm, backlog));
}

static int reject_id(struct ucm_call *call)
{
    const struct rdma_ucm_reject *cmd = call->in;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    return done(id, rdma_reject(id->cm, cmd->private_data, cmd->private_data_len));
}

static int disconnect_id(struct ucm_call *call)
{
    const struct rdma_ucm_disconnect *cmd = call->in;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    return id ? done(id, rdma_disconnect(id->cm)) : ENOENT;
}

static int notify_id(struct ucm_call *call)
{
    const struct rdma_ucm_notify *cmd = call->in;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    return id ? done(id, rdma_notify(id->cm, (enum ibv_event_type)cmd->event)) : ENOENT;
}

static int set_option(struct ucm_call *call)
{
    const struct rdma_ucm_set_option *cmd = call->in;
    if (cmd->optlen > OPTION_MAX)
        return EINVAL;
    if (cmd->optlen && !uv_readable(cmd->optval, cmd->optlen, false))
        return EFAULT;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    return done(id, rdma_set_option(id->cm, (int)cmd->level, (int)cmd->optname,
                                    (void *)(uintptr_t)cmd->optval, cmd->optlen));
}

static int init_qp_attr(struct ucm_call *call)
{
    const struct rdma_ucm_init_qp_attr *cmd = call->in;
    struct ib_uverbs_qp_attr *resp = call->resp;
    struct ibv_qp_attr a = {.qp_state = cmd->qp_state};
    int mask = 0;
    struct ucm_id *id = ucm_id_get(call->file, cmd->id);
    if (!id)
        return ENOENT;
    int err = done(id, rdma_init_qp_attr(id->cm, &a, &mask));
    if (err)
        return err;
    resp->qp_attr_mask = (uint32_t)mask;
    resp->qp_state = a.qp_state;
    resp->cur_qp_state = a.cur_qp_state;
    resp->path_mtu = a.path_mtu;
    resp->path_mig_state = a.path_mig_state;
    resp->qkey = a.qkey;
    resp->rq_psn = a.rq_psn;
    resp->sq_psn = a.sq_psn;
    resp->dest_qp_num = a.dest_qp_num;
    resp->qp_access_flags = a.qp_access_flags;
    memcpy(resp->ah_attr.grh.dgid, a.ah_attr.grh.dgid.raw, sizeof resp->ah_attr.grh.dgid);
    resp->ah_attr.grh.sgid_index = a.ah_attr.grh.sgid_index;
    resp->ah_attr.grh.hop_limit = a.ah_attr.grh.hop_limit;
    resp->ah_attr.is_global = a.ah_attr.is_global;
    resp->ah_attr.port_num = a.ah_attr.port_num;
    resp->pkey_index = a.pkey_index;
    resp->max_rd_atomic = a.max_rd_atomic;
    resp->max_dest_rd_atomic = a.max_dest_rd_atomic;
    resp->min_rnr_timer = a.min_rnr_timer;
    resp->port_num = a.port_num;
    resp->timeout = a.timeout;
    resp->retry_cnt = a.retry_cnt;
    resp->rnr_retry = a.rnr_retry;
    return 0;
}

static void param_to_event(struct rdma_ucm_conn_param *to, const struct rdma_conn_param *from)
{
    to->qp_num = from->qp_num;
    to->private_data_len = from->private_data ? from->private_data_len : 0;
    if (to->private_data_len)
        memcpy(to->private_data, from->private_data, to->private_data_len);
    to->responder_resources = from->responder_resources;
    to->initiator_depth = from->initiator_depth;
    to->flow_control = from->flow_control;
    to->retry_count = from->retry_count;
    to->rnr_retry_count = from->rnr_retry_count;
    to->srq = from->srq;
    to->valid = 1;
}

/* The id of a request gets its number when the request is taken. */
static int adopt(struct ucm_call *call, struct rdma_cm_event *event, struct ucm_id *listener,
                 uint32_t *handle)
{
    struct ucm_id *id = ucm_id_add(call->file, __atomic_load_n(&listener->uid, __ATOMIC_RELAXED));
    if (!id)
        return ENOMEM;
    event->id->context = id;
    *handle = id->handle;
    __atomic_store_n(&id->cm, event->id, __ATOMIC_RELEASE);
    ucm_id_put(id);
    return 0;
}

/* Whoever is cancelled while it waits gives back what the command holds. */
CANCELLED_IN static int take_event(struct uv_file *f, struct rdma_cm_event **event)
{
    int result;
    pthread_cleanup_push(uv_file_drop, f);
    result = rdma_get_cm_event(f->object, event);
    pthread_cleanup_pop(0);
    return result;
}

static int get_event(struct ucm_call *call)
{
    struct rdma_ucm_event_resp *resp = call->resp;
    struct rdma_cm_event *event;
    if (take_event(call->file, &event) != 0)
        return errno;
    bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    /* Neither goes before the event is acknowledged. */
    struct ucm_id *id = request ? event->listen_id->context : event->id->context;
    resp->uid = __atomic_load_n(&id->uid, __ATOMIC_RELAXED);
    resp->id = id->handle;
    resp->event = event->event;
    resp->status = (uint32_t)event->status;
    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_REJECTED:
        param_to_event(&resp->param.conn, &event->param.conn);
        break;
    default:
        break;
    }
    uint32_t handle = id->handle;
    int err = request ? adopt(call, event, id, &handle) : 0;
    resp->id = handle;
    if (!err)
        __atomic_add_fetch(&id->events, 1, __ATOMIC_RELAXED);
    struct rdma_cm_id *lost = err ? event->id : NULL;
    rdma_ack_cm_event(event);
    if (lost)
        rdma_destroy_id(lost);
    return err;
}

static int migrate_id(struct ucm_call *call);

#define ROW(name, in, out_min, out, response, execute)                                             \
    [RDMA_USER_CM_CMD_##name] = {#name, in, out_min, out, response, execute}
#define END(type, member)                                                                          \
    (offsetof(struct rdma_ucm_##type, member) + sizeof(((struct rdma_ucm_##type *)0)->member))
#define AT(type) offsetof(struct rdma_ucm_##type, response)

static const struct ucm_command commands[] = {
    ROW(CREATE_ID, sizeof(struct rdma_ucm_create_id), 4, 4, AT(create_id), create_id),
    ROW(DESTROY_ID, END(destroy_id, id), 4, 4, AT(destroy_id), destroy_id),
    ROW(BIND_IP, END(bind_ip, id), 0, 0, 0, bind_ip),
    ROW(RESOLVE_IP, sizeof(struct rdma_ucm_resolve_ip), 0, 0, 0, resolve_ip),
    ROW(RESOLVE_ROUTE, sizeof(struct rdma_ucm_resolve_route), 0, 0, 0, resolve_route),
    ROW(QUERY_ROUTE, END(query, id), offsetof(struct rdma_ucm_query_route_resp, ibdev_index),
        offsetof(struct rdma_ucm_query_route_resp, ibdev_index), AT(query), query_route),
    ROW(CONNECT, END(connect, id), 0, 0, 0, connect_id),
    ROW(LISTEN, sizeof(struct rdma_ucm_listen), 0, 0, 0, listen_id),
    ROW(ACCEPT, END(accept, id), 0, 0, 0, accept_id),
    ROW(REJECT, sizeof(struct rdma_ucm_reject), 0, 0, 0, reject_id),
    ROW(DISCONNECT, sizeof(struct rdma_ucm_disconnect), 0, 0, 0, disconnect_id),
    ROW(INIT_QP_ATTR, sizeof(struct rdma_ucm_init_qp_attr), sizeof(struct ib_uverbs_qp_attr),
        sizeof(struct ib_uverbs_qp_attr), AT(init_qp_attr), init_qp_attr),
    ROW(GET_EVENT, sizeof(struct rdma_ucm_get_event), END(event_resp, param),
        sizeof(struct rdma_ucm_event_resp), AT(get_event), get_event),
    ROW(SET_OPTION, sizeof(struct rdma_ucm_set_option), 0, 0, 0, set_option),
    ROW(NOTIFY, sizeof(struct rdma_ucm_notify), 0, 0, 0, notify_id),
    ROW(MIGRATE_ID, sizeof(struct rdma_ucm_migrate_id), 4, 4, AT(migrate_id), migrate_id),
    ROW(QUERY, sizeof(struct rdma_ucm_query), 8,
        offsetof(struct rdma_ucm_query_addr_resp, ibdev_index), AT(query), query),
    ROW(BIND, sizeof(struct rdma_ucm_bind), 0, 0, 0, bind_any),
    ROW(RESOLVE_ADDR, sizeof(struct rdma_ucm_resolve_addr), 0, 0, 0, resolve_addr),
};

const struct ucm_command *ucm_command_row(uint32_t number)
{
    return number < sizeof commands / sizeof commands[0] && commands[number].execute
               ? &commands[number]
               : NULL;
}

static int execute(struct uv_file *f, const uint8_t *command, size_t len,
                   const struct ucm_command **found, struct rdma_ucm_cmd_hdr *hdr)
{
    if (len < sizeof *hdr)
        return EINVAL;
    if (!uv_readable((uintptr_t)command, len, false))
        return EFAULT;
    memcpy(hdr, command, sizeof *hdr);
    if (hdr->in + sizeof *hdr > len)
        return EINVAL;
    const struct ucm_command *row = *found = ucm_command_row(hdr->cmd);
    if (!row)
        return ENOSYS;
    if (hdr->in < row->in)
        return EINVAL;
    if (hdr->out < row->out_min)
        return ENOSPC;

    uint64_t in[OLDEST_LEN / 8] = {0}, resp[OLDEST_LEN / 8] = {0}, out = 0;
    memcpy(in, command + sizeof *hdr, hdr->in < sizeof in ? hdr->in : sizeof in);
    size_t room = hdr->out < row->out ? hdr->out : row->out;
    if (room) {
        memcpy(&out, (uint8_t *)in + row->response_at, sizeof out);
        if (!uv_writable(out, room, false))
            return EFAULT;
    }
    struct ucm_call call = {.file = f, .in = in, .resp = resp, .out_len = room};
    int err = row->execute(&call);
    if (!err && room)
        memcpy((void *)(uintptr_t)out, resp, room);
    return err;
}

static ssize_t ucm_write(struct uv_file *f, const uint8_t *command, size_t len)
{
    const struct ucm_command *row = NULL;
    struct rdma_ucm_cmd_hdr hdr = {0};
    int err = execute(f, command, len, &row, &hdr);
    ssize_t result = err ? -err : (ssize_t)len;
    uv_trace(row ? row->name : "unknown", hdr.in, hdr.out, result);
    return result;
}

static void ucm_close(struct uv_file *f)
{
    ucm_id_destroy_all(f);
}

/* An id may have come after the closing, by a command that was under way. */
static void ucm_destroy(struct uv_file *f)
{
    ucm_id_destroy_all(f);
    rdma_destroy_event_channel(f->object);
}

static const struct uv_file_ops ucm_ops = {
    .write = ucm_write,
    .close = ucm_close,
    .destroy = ucm_destroy,
};

int ucm_open(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        return -errno;
    struct uv_file *f = uv_file_create(&ucm_ops, channel);
    if (!f) {
        rdma_destroy_event_channel(channel);
        return -ENOMEM;
    }
    int fd = uv_file_open(f, channel->fd);
    uv_file_put(f);
    return fd;
}

/* From the file whose descriptor is in the command to the one that the command is written to. */
static int migrate_id(struct ucm_call *call)
{
    const struct rdma_ucm_migrate_id *cmd = call->in;
    struct rdma_ucm_migrate_resp *resp = call->resp;
    struct uv_file *from = uv_file_get((int)cmd->fd);
    if (!from)
        return ENOENT;
    struct ucm_id *id = from->ops == &ucm_ops ? ucm_id_get(from, cmd->id) : NULL;
    int err = ENOENT;
    if (id) {
        resp->events_reported = __atomic_load_n(&id->events, __ATOMIC_RELAXED);
        ucm_id_move(id, call->file);
        int result = rdma_migrate_id(id->cm, call->file->object);
        if (result)
            ucm_id_move(id, from);
        err = done(id, result);
    }
    uv_file_put(from);
    return err;
}
