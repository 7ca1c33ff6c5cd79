/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/shmid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void name_it(struct al_shared *s, const ib_shmid_t shmid)
{
    int n = snprintf(s->name, sizeof s->name, "/ibal-%u-", (unsigned)geteuid());
    for (size_t i = 0; i < sizeof(ib_shmid_t); i++)
        n += snprintf(s->name + n, sizeof s->name - (size_t)n, "%02x", shmid[i]);
}

static int lock_it(int fd, int how)
{
    int r;
    do
        r = flock(fd, how);
    while (r != 0 && errno == EINTR);
    return r;
}

/*
 * Who finds the file without a lock makes it anew. The lock is then shared with others, and for a
 * moment nobody's, so that all look at the length last.
 */
static int claim(const struct al_shared *s, struct stat *st)
{
    if (lock_it(s->fd, LOCK_EX | LOCK_NB) == 0 &&
        (ftruncate(s->fd, 0) != 0 || ftruncate(s->fd, (off_t)s->length) != 0))
        return errno;
    return lock_it(s->fd, LOCK_SH) != 0 || fstat(s->fd, st) != 0 ? errno : 0;
}

/* Whoever made a file of this name can lock it, and make it smaller under who uses it. */
static int check_owner(struct al_shared *s, struct stat *st)
{
    if (fstat(s->fd, st) == 0 && st->st_uid == geteuid())
        return 0;
    close(s->fd); /* nor is it ours to remove */
    s->fd = -1;
    return EACCES;
}

static int open_it(struct al_shared *s)
{
    for (;;) {
        struct stat st;
        s->fd = shm_open(s->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (s->fd < 0)
            return errno;
        int error = check_owner(s, &st);
        if (!error)
            error = claim(s, &st);
        if (error)
            return error;
        if (st.st_nlink > 0 && st.st_size > 0)
            return (size_t)st.st_size == s->length ? 0 : EEXIST;
        close(s->fd); /* its last user has just gone, or could not make it */
    }
}

int al_shared_get(struct al_shared *s, const ib_shmid_t shmid, size_t length, void *wish)
{
    *s = (struct al_shared){.length = length, .fd = -1};
    name_it(s, shmid);
    int error = open_it(s);
    if (!error) {
        s->memory = mmap(wish, length, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        if (s->memory == MAP_FAILED) {
            error = errno;
            s->memory = NULL;
        }
    }
    if (error)
        al_shared_put(s);
    return error;
}

void al_shared_put(struct al_shared *s)
{
    if (s->memory)
        munmap(s->memory, s->length);
    s->memory = NULL;
    if (s->fd < 0)
        return;
    if (lock_it(s->fd, LOCK_EX | LOCK_NB) == 0)
        shm_unlink(s->name);
    close(s->fd);
    s->fd = -1;
}
