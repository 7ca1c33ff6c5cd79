/* SPDX-License-Identifier: BSD-2-Clause */
/* <anywarp/uverbs.h> */
#include <anywarp/uverbs.h>

#include "common/sanitizer.h"
#include "common/sys.h"
#include "uverbs/context.h"
#include "uverbs/numbers.h"
#include "uverbs/ucm.h"

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))

static ssize_t answer(ssize_t result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* Threads that are not in the child may have held any lock. */
static void in_child(void)
{
    uv_file_forked();
    uv_number_forked();
    ucm_id_forked();
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static void watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

EXPORT int anywarp_uverbs_open(const char *device)
{
    watch_forks();
    return (int)answer(uv_context_open(device));
}

EXPORT int anywarp_ucm_open(void)
{
    watch_forks();
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

/* Gives the file back, too if it is cancelled while it waits. */
CANCELLED_IN static ssize_t read_and_put(struct uv_file *f, void *events, size_t len)
{
    ssize_t result;
    pthread_cleanup_push(uv_file_drop, f);
    result = f->ops->read ? f->ops->read(f, events, len) : -EINVAL;
    pthread_cleanup_pop(1);
    return result;
}

EXPORT ssize_t anywarp_uverbs_read(int fd, void *events, size_t len)
{
    struct uv_file *f = uv_file_get(fd);
    if (!f)
        return answer(-EBADF);
    int saved = errno;
    ssize_t result = read_and_put(f, events, len);
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
