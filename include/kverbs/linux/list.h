/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_LIST_H
#define KVERBS_LINUX_LIST_H

#include <linux/kernel.h>
#include <linux/types.h>

#define LIST_HEAD_INIT(name)                                                                       \
    {                                                                                              \
        &(name), &(name)                                                                           \
    }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *l)
{
    l->next = l->prev = l;
}

static inline void kverbs_list_put(struct list_head *e, struct list_head *after)
{
    e->next = after->next;
    e->prev = after;
    after->next->prev = e;
    after->next = e;
}

static inline void list_add(struct list_head *e, struct list_head *head)
{
    kverbs_list_put(e, head);
}

static inline void list_add_tail(struct list_head *e, struct list_head *head)
{
    kverbs_list_put(e, head->prev);
}

static inline void list_del_init(struct list_head *e)
{
    e->next->prev = e->prev;
    e->prev->next = e->next;
    INIT_LIST_HEAD(e);
}

/* What is touched through an entry that is out of its list is not mapped. */
static inline void list_del(struct list_head *e)
{
    list_del_init(e);
    e->next = (struct list_head *)0x100;
    e->prev = (struct list_head *)0x200;
}

static inline void list_move_tail(struct list_head *e, struct list_head *head)
{
    list_del_init(e);
    list_add_tail(e, head);
}

static inline void list_move(struct list_head *e, struct list_head *head)
{
    list_del_init(e);
    list_add(e, head);
}

static inline int list_empty(const struct list_head *head)
{
    return head->next == head;
}

static inline void list_splice_init(struct list_head *from, struct list_head *head)
{
    if (list_empty(from))
        return;
    from->next->prev = head;
    from->prev->next = head->next;
    head->next->prev = from->prev;
    head->next = from->next;
    INIT_LIST_HEAD(from);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *head)
{
    list_splice_init(from, head->prev);
}

#define list_entry(p, t, m)               container_of(p, t, m)
#define list_first_entry(h, t, m)         list_entry((h)->next, t, m)
#define list_last_entry(h, t, m)          list_entry((h)->prev, t, m)
#define list_next_entry(p, m)             list_entry((p)->m.next, __typeof__(*(p)), m)
#define list_first_entry_or_null(h, t, m) (list_empty(h) ? NULL : list_first_entry(h, t, m))
#define list_for_each(p, h)               for (p = (h)->next; p != (h); p = p->next)
#define list_for_each_safe(p, n, h)       for (p = (h)->next, n = p->next; p != (h); p = n, n = p->next)
#define list_for_each_entry(p, h, m)                                                               \
    for (p = list_first_entry(h, __typeof__(*p), m); &p->m != (h); p = list_next_entry(p, m))
#define list_for_each_entry_safe(p, n, h, m)                                                       \
    for (p = list_first_entry(h, __typeof__(*p), m), n = list_next_entry(p, m); &p->m != (h);      \
         p = n, n = list_next_entry(n, m))

#endif
