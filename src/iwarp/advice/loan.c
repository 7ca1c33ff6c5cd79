/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/loan.h"

#include "env/guard.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POISON 0x5a /* where nobody can be told */

struct loan {
    size_t size; /* of the mapping */
    uint8_t bytes[];
};

/* Read in a handler. A place that is taken from is NULL first, so that no mapping is looked for
 * that is not there any more. */
static struct {
    _Atomic uint64_t ended;
    struct {
        _Atomic uintptr_t at;
        _Atomic size_t size;
    } kept[IW_LOANS_KEPT];
} loans;

static size_t mapping_for(size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(struct loan) + len + page - 1) & -page;
}

void *iw_loan(const void *data, size_t len)
{
    if (!iw_advice_on() || !len)
        return NULL;
    size_t size = mapping_for(len);
    struct loan *l = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l == MAP_FAILED)
        return NULL;
    l->size = size;
    return memcpy(l->bytes, data, len);
}

/** In the handler. @return whether the program may go on */
static bool is_late(const void *at, const void *pc)
{
    for (unsigned i = 0; i < IW_LOANS_KEPT; i++) {
        uintptr_t from = atomic_load(&loans.kept[i].at);
        size_t size = atomic_load(&loans.kept[i].size);
        if (!from || (uintptr_t)at - from >= size)
            continue;
        if (mprotect((void *)from, size, PROT_READ | PROT_WRITE) != 0)
            return false;
        iw_advise(IW_FINDING_ACKED_DATA, "CM event", iw_stack_of_fault(pc),
                  "the private data of an event that is acknowledged is read");
        return true;
    }
    return false;
}

static void keep(struct loan *l)
{
    uint64_t n = atomic_fetch_add(&loans.ended, 1) % IW_LOANS_KEPT;
    uintptr_t old = atomic_exchange(&loans.kept[n].at, 0);
    size_t size = atomic_exchange(&loans.kept[n].size, l->size);
    atomic_store(&loans.kept[n].at, (uintptr_t)l);
    if (old)
        munmap((void *)old, size);
}

void iw_loan_over(void *lent)
{
    if (!lent)
        return;
    struct loan *l = (struct loan *)((char *)lent - offsetof(struct loan, bytes));
    size_t size = l->size;
    keep(l);
    if (iw_guard_watch(is_late))
        mprotect(l, size, PROT_NONE);
    else
        memset(lent, POISON, size - sizeof(*l));
}
