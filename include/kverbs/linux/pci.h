/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_PCI_H
#define KVERBS_LINUX_PCI_H

#include <linux/dma-mapping.h>

#define DECLARE_PCI_UNMAP_ADDR(name)      dma_addr_t name;
#define DECLARE_PCI_UNMAP_LEN(name)       __u32 name;
#define pci_unmap_addr(p, name)           dma_unmap_addr(p, name)
#define pci_unmap_addr_set(p, name, addr) dma_unmap_addr_set(p, name, addr)
#define pci_unmap_len(p, name)            dma_unmap_len(p, name)
#define pci_unmap_len_set(p, name, len)   dma_unmap_len_set(p, name, len)

#endif
