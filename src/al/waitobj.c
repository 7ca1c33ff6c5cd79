/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait objects. Each is an eventfd that is readable while it is signaled; once the object is being
 * destroyed it stays readable, for all who wait.
 */
#include "al/waitobj.h"

#include "al/object.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct al_waitobj {
    struct al_object o;
    bool manual;
    int fd;
};

static void release(struct al_object *o)
{
    const struct al_waitobj *w = container_of(o, struct al_waitobj, o);
    if (w->fd >= 0)
        close(w->fd);
}

static const struct al_kind kind = {
    .type = AL_WAITOBJ,
    .invalid = IB_INVALID_PARAMETER,
    .anywhere = true,
    .release = release,
};

static cl_status_t ring(const struct al_waitobj *w)
{
    return write(w->fd, &(uint64_t){1}, sizeof(uint64_t)) < 0 && errno != EAGAIN ? CL_ERROR
                                                                                 : CL_SUCCESS;
}

/* Takes the signal away. @return whether there was one */
static bool unring(const struct al_waitobj *w)
{
    uint64_t rung;
    return read(w->fd, &rung, sizeof rung) == sizeof rung;
}

cl_status_t cl_waitobj_create(const boolean_t manual_reset, cl_waitobj_handle_t *const ph_wait_obj)
{
    if (!ph_wait_obj)
        return CL_INVALID_PARAMETER;
    struct al_waitobj *w = calloc(1, sizeof *w);
    if (al_add(w ? &w->o : NULL, &kind, NULL, NULL) != IB_SUCCESS)
        return CL_INSUFFICIENT_MEMORY;
    w->manual = manual_reset;
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0) {
        al_fail(&w->o);
        return CL_INSUFFICIENT_RESOURCES;
    }
    *ph_wait_obj = w->o.handle;
    al_put(&w->o);
    return CL_SUCCESS;
}

cl_status_t cl_waitobj_destroy(cl_waitobj_handle_t h_wait_obj)
{
    struct al_waitobj *w = al_get(&kind, h_wait_obj);
    if (!w)
        return CL_INVALID_PARAMETER;
    al_end(&w->o);
    ring(w);
    al_put(&w->o);
    return CL_SUCCESS;
}

cl_status_t cl_waitobj_signal(cl_waitobj_handle_t h_wait_obj)
{
    struct al_waitobj *w = al_get(&kind, h_wait_obj);
    if (!w)
        return CL_INVALID_PARAMETER;
    cl_status_t status = ring(w);
    al_put(&w->o);
    return status;
}

cl_status_t cl_waitobj_trigger(cl_waitobj_handle_t h_wait_obj)
{
    return cl_waitobj_signal(h_wait_obj);
}

cl_status_t cl_waitobj_reset(cl_waitobj_handle_t h_wait_obj)
{
    struct al_waitobj *w = al_get(&kind, h_wait_obj);
    if (!w)
        return CL_INVALID_PARAMETER;
    unring(w);
    if (!w->o.open)
        ring(w);
    al_put(&w->o);
    return CL_SUCCESS;
}

bool al_is_waitobj(cl_waitobj_handle_t h_wait_obj)
{
    return al_is(&kind, h_wait_obj);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* @param end negative: none */
static int sleep_until(const struct al_waitobj *w, int64_t end)
{
    int64_t left = end - now_ns();
    if (left < 0)
        left = 0;
    struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    return ppoll(&p, 1, end < 0 ? NULL : &wait, NULL);
}

static cl_status_t await(const struct al_waitobj *w, int64_t end, bool interruptible)
{
    for (;;) {
        int n = sleep_until(w, end);
        if (!w->o.open)
            return CL_ERROR;
        if (n == 0)
            return CL_TIMEOUT;
        if (n > 0 && (w->manual || unring(w)))
            return CL_SUCCESS;
        if (n < 0 && errno == EINTR && interruptible)
            return CL_NOT_DONE;
    }
}

cl_status_t cl_waitobj_wait_on(cl_waitobj_handle_t h_wait_obj, const uint32_t wait_us,
                               const boolean_t interruptible)
{
    struct al_waitobj *w = al_get(&kind, h_wait_obj);
    if (!w)
        return CL_INVALID_PARAMETER;
    int64_t end = wait_us == EVENT_NO_TIMEOUT ? -1 : now_ns() + (int64_t)wait_us * 1000;
    cl_status_t status = await(w, end, interruptible);
    al_put(&w->o);
    return status;
}
