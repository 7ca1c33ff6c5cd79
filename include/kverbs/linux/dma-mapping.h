/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_DMA_MAPPING_H
#define KVERBS_LINUX_DMA_MAPPING_H

#include <linux/device.h>
#include <linux/dma-direction.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

/* With the struct device of a struct ib_device; ib_dma_map_single() and its kin say more. */
dma_addr_t dma_map_single(struct device *dev, void *p, size_t size, enum dma_data_direction dir);
void dma_unmap_single(struct device *dev, dma_addr_t addr, size_t size,
                      enum dma_data_direction dir);
dma_addr_t dma_map_page(struct device *dev, struct page *page, size_t offset, size_t size,
                        enum dma_data_direction dir);
void dma_unmap_page(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir);
int dma_map_sg(struct device *dev, struct scatterlist *sg, int n, enum dma_data_direction dir);
void dma_unmap_sg(struct device *dev, struct scatterlist *sg, int n, enum dma_data_direction dir);
void *dma_alloc_coherent(struct device *dev, size_t size, dma_addr_t *addr, gfp_t flags);
void dma_free_coherent(struct device *dev, size_t size, void *p, dma_addr_t addr);
int dma_mapping_error(struct device *dev, dma_addr_t addr);

#define DEFINE_DMA_UNMAP_ADDR(name)       dma_addr_t name
#define DEFINE_DMA_UNMAP_LEN(name)        __u32 name
#define dma_unmap_addr(p, name)           ((p)->name)
#define dma_unmap_addr_set(p, name, addr) ((p)->name = (addr))
#define dma_unmap_len(p, name)            ((p)->name)
#define dma_unmap_len_set(p, name, len)   ((p)->name = (len))

#endif
