/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define REST  "\033[K" /* clear to the end of the line */
#define BELOW "\033[J" /* and of the screen */

static struct termios before;
static sigset_t outside; /* what was blocked */
static volatile sig_atomic_t caught;

/* They come only while screen_wait() waits. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGWINCH};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

static void on_signal(int sig)
{
    caught = sig;
}

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs(ENTER, stdout);
    fflush(stdout);
}

static void leave(void)
{
    fputs(LEAVE, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void screen_open(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < N_SIGNALS; i++) {
        sigaddset(&ours, signals[i]);
        sigaction(signals[i], &sa, NULL);
    }
    sigprocmask(SIG_BLOCK, &ours, &outside);
    tcgetattr(STDIN_FILENO, &before);
    enter();
}

void screen_close(void)
{
    leave();
    sigprocmask(SIG_SETMASK, &outside, NULL);
    if (!caught)
        return;
    signal(caught, SIG_DFL);
    raise(caught);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/** Stops the process as if the signal had not been caught, until it is continued. */
static void stop(void)
{
    leave();
    raise(SIGSTOP);
    enter();
}

/** @return whether the user wants no more; @p again: the picture has to be drawn at once */
static bool look(bool *again)
{
    int sig = caught;
    char key = 0;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    caught = 0;
    *again = sig == SIGWINCH || sig == SIGTSTP;
    if (sig == SIGTSTP)
        stop();
    else if (sig && sig != SIGWINCH) {
        caught = sig;
        return true;
    }
    if (poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
        return true;
    return key == 'q' || key == 'Q';
}

bool screen_wait(double seconds)
{
    bool again = false;
    for (double left, end = now() + seconds; !again && (left = end - now()) > 0;) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        struct timespec ts = {.tv_sec = (time_t)left,
                              .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        if (ppoll(&in, 1, &ts, &outside) != 0 && look(&again))
            return false;
    }
    return true;
}

void screen_begin(unsigned *lines, unsigned *columns)
{
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *lines = size.ws_row ? size.ws_row : 24;
    *columns = size.ws_col ? size.ws_col : 80;
    --*lines; /* the last newline would scroll */
    fputs(HOME, stdout);
}

void screen_end(void)
{
    fputs(BELOW, stdout);
    fflush(stdout);
}

void screen_line(const char *line, unsigned columns)
{
    size_t len = strlen(line);
    if (columns && len > columns)
        len = columns;
    fwrite(line, 1, len, stdout);
    fputs(columns ? REST "\n" : "\n", stdout);
}
