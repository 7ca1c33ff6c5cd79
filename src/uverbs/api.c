/* SPDX-License-Identifier: BSD-2-Clause */
/* <anywarp/uverbs.h> */
#include <anywarp/uverbs.h>

#include "common/sys.h"
#include "uverbs/context.h"
#include "uverbs/ucm.h"

#define EXPORT __attribute__((visibility("default")))

static ssize_t answer(ssize_t result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

EXPORT int anywarp_uverbs_open(const char *device)
{
    return (int)answer(uv_context_open(device));
}

EXPORT int anywarp_ucm_open(void)
{
    return (int)answer(ucm_open());
}

EXPORT ssize_t anywarp_uverbs_write(int fd, const void *command, size_t len)
{
    struct uv_file *f = uv_file_get(fd);
    if (!f)
        return answer(-EBADF);
    int saved = errno;
    ssize_t result = f->ops->write ? f->ops->write(f, command, len) : -EINVAL;
    uv_file_put(f);
    errno = saved;
    return answer(result);
}

EXPORT ssize_t anywarp_uverbs_read(int fd, void *events, size_t len)
{
    struct uv_file *f = uv_file_get(fd);
    if (!f)
        return answer(-EBADF);
    int saved = errno;
    ssize_t result = f->ops->read ? f->ops->read(f, events, len) : -EINVAL;
    uv_file_put(f);
    errno = saved;
    return answer(result);
}

EXPORT int anywarp_uverbs_ioctl(int fd, unsigned long request, void *argument)
{
    struct uv_file *f = uv_file_get(fd);
    if (!f)
        return (int)answer(-EBADF);
    int saved = errno;
    int result = f->ops->ioctl ? f->ops->ioctl(f, request, argument) : -ENOTTY;
    uv_file_put(f);
    errno = saved;
    return (int)answer(result);
}

EXPORT int anywarp_uverbs_close(int fd)
{
    if (!uv_file_forget(fd))
        return (int)answer(-EBADF);
    return (int)answer(sys_close(fd));
}
