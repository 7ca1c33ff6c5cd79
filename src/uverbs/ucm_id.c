/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/ucm_id.h"

#include "compat/handle.h"

#include <pthread.h>
#include <stdlib.h>

static struct handle_table ids;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;

struct ucm_id *ucm_id_add(struct uv_file *file, uint64_t uid)
{
    struct ucm_id *id = calloc(1, sizeof *id);
    if (!id)
        return NULL;
    id->file = file;
    id->uid = uid;
    id->users = 1;
    pthread_mutex_lock(&lock);
    id->handle = handle_add(&ids, 0, id);
    pthread_mutex_unlock(&lock);
    if (id->handle)
        return id;
    free(id);
    return NULL;
}

struct ucm_id *ucm_id_get(struct uv_file *file, uint32_t handle)
{
    pthread_mutex_lock(&lock);
    struct ucm_id *id = handle_get(&ids, 0, handle);
    if (id && (id->file != file || !id->cm))
        id = NULL;
    if (id)
        id->users++;
    pthread_mutex_unlock(&lock);
    return id;
}

void ucm_id_put(struct ucm_id *id)
{
    pthread_mutex_lock(&lock);
    if (--id->users <= 1)
        pthread_cond_broadcast(&unused);
    pthread_mutex_unlock(&lock);
}

void ucm_id_move(struct ucm_id *id, struct uv_file *file)
{
    pthread_mutex_lock(&lock);
    id->file = file;
    pthread_mutex_unlock(&lock);
}

uint32_t ucm_id_destroy(struct ucm_id *id)
{
    pthread_mutex_lock(&lock);
    bool mine = handle_get(&ids, 0, id->handle) == id;
    handle_remove(&ids, id->handle);
    while (mine && id->users > 1)
        pthread_cond_wait(&unused, &lock);
    pthread_mutex_unlock(&lock);
    if (!mine) { /* another thread is at it, and waits for this one */
        ucm_id_put(id);
        return 0;
    }
    if (id->cm)
        rdma_destroy_id(id->cm); /* waits until no event of it is in use */
    uint32_t events = id->events;
    free(id);
    return events;
}

/* @return any id of this file, used by the caller */
static struct ucm_id *any(struct uv_file *file)
{
    struct ucm_id *found = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i < ids.count && !found; i++) {
        struct ucm_id *id = ids.entries[i].object;
        if (id && id->file == file)
            found = id;
    }
    if (found)
        found->users++;
    pthread_mutex_unlock(&lock);
    return found;
}

void ucm_id_destroy_all(struct uv_file *file)
{
    for (struct ucm_id *id; (id = any(file));)
        ucm_id_destroy(id);
}

void ucm_id_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&unused, NULL);
    ids = (struct handle_table){0};
}
