/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SCATTERLIST_H
#define KVERBS_LINUX_SCATTERLIST_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

struct scatterlist {
    unsigned long page_link; /* the page's address; bit 1: the last entry */
    unsigned offset;
    unsigned length;
    dma_addr_t dma_address;
    unsigned dma_length;
};

#define sg_dma_address(sg) ((sg)->dma_address)
#define sg_dma_len(sg)     ((sg)->dma_length)

static inline void sg_mark_end(struct scatterlist *sg)
{
    sg->page_link |= 2;
}

static inline void sg_init_marker(struct scatterlist *sg, unsigned n)
{
    sg_mark_end(&sg[n - 1]);
}

static inline void sg_init_table(struct scatterlist *sg, unsigned n)
{
    memset(sg, 0, n * sizeof *sg);
    sg_init_marker(sg, n);
}

static inline bool sg_is_last(const struct scatterlist *sg)
{
    return sg->page_link & 2;
}

static inline struct page *sg_page(const struct scatterlist *sg)
{
    return (struct page *)(sg->page_link & ~3UL);
}

static inline void *sg_virt(const struct scatterlist *sg)
{
    return (char *)page_address(sg_page(sg)) + sg->offset;
}

static inline void sg_set_page(struct scatterlist *sg, struct page *page, unsigned length,
                               unsigned offset)
{
    sg->page_link = (unsigned long)page | (sg->page_link & 3);
    sg->offset = offset;
    sg->length = length;
}

static inline void sg_set_buf(struct scatterlist *sg, const void *p, unsigned length)
{
    sg_set_page(sg, virt_to_page(p), length, (unsigned)offset_in_page(p));
}

static inline void sg_init_one(struct scatterlist *sg, const void *p, unsigned length)
{
    sg_init_table(sg, 1);
    sg_set_buf(sg, p, length);
}

static inline struct scatterlist *sg_next(struct scatterlist *sg)
{
    return sg_is_last(sg) ? NULL : sg + 1;
}

#define for_each_sg(list, sg, n, i) for (i = 0, sg = (list); i < (n); i++, sg = sg_next(sg))

#endif
