/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked lists. Locks are the owner's business. */
#ifndef ANYWARP_LIST_H
#define ANYWARP_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/** Adds @p n at the end of list @p head. */
static inline void list_add_tail(struct list *head, struct list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

/** Takes @p n off its list; it becomes an empty list, so that a second removal is harmless. */
static inline void list_del(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/** Takes the first element off, NULL if there is none. */
static inline struct list *list_pop(struct list *head)
{
    struct list *n = head->next;
    if (n == head)
        return NULL;
    list_del(n);
    return n;
}

#define list_for_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)

/** As list_for_each, but the body may remove @p it. */
#define list_for_each_safe(it, head)                                                               \
    for (struct list *it = (head)->next, *next_ = it->next; it != (head);                          \
         it = next_, next_ = it->next)

#endif
