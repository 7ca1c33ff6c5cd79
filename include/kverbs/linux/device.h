/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_DEVICE_H
#define KVERBS_LINUX_DEVICE_H

#include <linux/kernel.h>
#include <linux/list.h>

struct device {
    const char *init_name;
    void *driver_data;
};

static inline const char *dev_name(const struct device *d)
{
    return d->init_name;
}

static inline void *dev_get_drvdata(const struct device *d)
{
    return d->driver_data;
}

static inline void dev_set_drvdata(struct device *d, void *data)
{
    d->driver_data = data;
}

#define dev_err(d, f, ...)  printk(KERN_ERR "%s: " f, dev_name(d), ##__VA_ARGS__)
#define dev_warn(d, f, ...) printk(KERN_WARNING "%s: " f, dev_name(d), ##__VA_ARGS__)
#define dev_info(d, f, ...) printk(KERN_INFO "%s: " f, dev_name(d), ##__VA_ARGS__)

#endif
