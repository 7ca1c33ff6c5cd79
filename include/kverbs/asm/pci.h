/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_ASM_PCI_H
#define KVERBS_ASM_PCI_H

#include <linux/pci.h>

#endif
