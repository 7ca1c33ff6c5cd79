/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: those of ib_create_qp(), and those that a CM id makes (cm.c). A device finds them by
 * number for their completions. */
#ifndef KVERBS_QP_H
#define KVERBS_QP_H

#include "kverbs/device.h"

struct kv_qp {
    struct ib_qp ib;
    struct ibv_qp *verb;
    struct kv_qp *next;  /* of its bucket in the device */
    void *port;          /* the CM id that made it, of cm_port.h; NULL: none */
    struct ib_qp **held; /* where the id has it */
};

static inline struct kv_qp *kv_qp(const struct ib_qp *qp)
{
    return container_of(qp, struct kv_qp, ib);
}

/**
 * The two halves of making a QP: between them somebody makes that of the verbs of `v`.
 * @return of kv_qp_begin(): ERR_PTR() if it cannot be had
 */
struct kv_qp *kv_qp_begin(struct ib_pd *pd, const struct ib_qp_init_attr *init,
                          struct ibv_qp_init_attr *v);
void kv_qp_finish(struct kv_qp *qp, struct ibv_qp *verb, struct ib_qp_init_attr *init,
                  const struct ibv_qp_init_attr *v);
void kv_qp_abort(struct kv_qp *qp);

/** Its CM id is gone, or has let it go. */
void kv_qp_disown(struct kv_qp *qp);

/** Whose completion this is, NULL if it is gone; what the peer invalidated with it is invalid. */
struct ib_qp *kv_qp_completed(struct kv_device *d, const struct ibv_wc *wc);

struct ib_qp_attr kv_qp_attr_from_verb(const struct ibv_qp_attr *v);

/** Calls the QP's event handler, as in an interrupt. */
void kv_qp_event(struct kv_qp *qp, struct ib_event *e);

#endif
