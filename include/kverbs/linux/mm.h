/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_MM_H
#define KVERBS_LINUX_MM_H

#include <linux/gfp.h>
#include <linux/kernel.h>

/* A page is of 4096 bytes whatever the machine's are: sources have it as a constant. */
#define PAGE_SHIFT 12
#undef PAGE_SIZE
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define PAGE_MASK (~(PAGE_SIZE - 1))

#define PAGE_ALIGN(x)     ALIGN(x, PAGE_SIZE)
#define offset_in_page(p) ((unsigned long)(p) & ~PAGE_MASK)

/* Memory has no page structures: such a pointer is the page's address. */
struct page;

#define virt_to_page(p)    ((struct page *)((unsigned long)(p)&PAGE_MASK))
#define page_address(page) ((void *)(page))

struct page *kverbs_alloc_pages(gfp_t flags, unsigned order, const char *file, int line);
#define alloc_pages(flags, order) kverbs_alloc_pages((flags), (order), __FILE__, __LINE__)
#define alloc_page(flags)         alloc_pages(flags, 0)
#define __free_page(page)         __free_pages(page, 0)
void __free_pages(struct page *page, unsigned order);
#define __get_free_page(flags) ((unsigned long)alloc_page(flags))
#define free_page(addr)        __free_page((struct page *)(addr))

unsigned get_order(unsigned long size);

#endif
