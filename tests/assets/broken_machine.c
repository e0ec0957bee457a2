/* A machine that is out of order, for one process, as the files in $BROKEN_MACHINE say: its clock is off (seconds), its disk fails (disk)
   or takes long (sync, milliseconds, until that is changed), and the name database.test leads to an address or nowhere (name).
   $MACHINE_TIMES: its clocks run so many times as fast, and every wait is as much shorter.
   Preloaded by tests/process/bad_machines.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *words(const char *name, char *text, size_t size) {
    const char *folder = getenv("BROKEN_MACHINE");
    char path[4096];
    text[0] = 0;
    if (!folder) return text;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return text;
    ssize_t length = read(file, text, size - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    return text;
}

static long told(const char *name) {
    char text[32];
    return atol(words(name, text, sizeof text));
}

typedef long (*Call)(long, ...);
static const long SECOND = 1000000000;
static long times = 1;
static long began[16];

/* The C library's own, which the one below hides. */
static long call(long number, long a, long b, long c, long d, long e, long f) {
    static Call real;
    if (!real) real = (Call)dlsym(RTLD_NEXT, "syscall");
    return real(number, a, b, c, d, e, f);
}

static long real_now(clockid_t clock) {
    struct timespec now = {0, 0};
    call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static struct timespec of(long nanos) {
    struct timespec time = {nanos / SECOND, nanos % SECOND};
    return time;
}

static struct timespec shorter(const struct timespec *wait) {
    long nanos = (wait->tv_sec > 9000000000 ? 9000000000 : wait->tv_sec) * SECOND + wait->tv_nsec;
    return of(nanos / times);
}

/* A time of the fast clock as one of the real clock. */
static struct timespec really(clockid_t clock, const struct timespec *at) {
    long nanos = (at->tv_sec > 9000000000 ? 9000000000 : at->tv_sec) * SECOND + at->tv_nsec;
    return of(began[clock] + (nanos - began[clock]) / times);
}

__attribute__((constructor)) static void begin(void) {
    const char *told_times = getenv("MACHINE_TIMES");
    for (int clock = 0; clock < 8; clock++) began[clock] = real_now(clock);
    if (told_times && atol(told_times) > 0) times = atol(told_times);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)call(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
    /* Not the two that count what processors have done. */
    if (result == 0 && times > 1 && clock < 8 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID)
        *now = of(began[clock] + (now->tv_sec * SECOND + now->tv_nsec - began[clock]) * times);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += told("seconds");
    return result;
}

int epoll_pwait(int file, struct epoll_event *events, int most, int wait, const sigset_t *signals) {
    if (wait > 0) wait = wait / times + 1;
    return (int)call(SYS_epoll_pwait, file, (long)events, most, wait, (long)signals, _NSIG / 8);
}

int epoll_wait(int file, struct epoll_event *events, int most, int wait) { return epoll_pwait(file, events, most, wait, NULL); }

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    struct timespec real = flags & TIMER_ABSTIME ? really(clock, time) : shorter(time);
    return call(SYS_clock_nanosleep, clock, flags, (long)&real, (long)left, 0, 0) ? errno : 0;
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    struct timespec real = shorter(time);
    return (int)call(SYS_nanosleep, (long)&real, (long)left, 0, 0, 0, 0);
}

/* The standard library of Rust waits with this one. */
long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    struct timespec real;
    int what = (int)a[1] & FUTEX_CMD_MASK;
    if (number == SYS_futex && times > 1 && a[3] && (what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET)) {
        clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        real = what == FUTEX_WAIT ? shorter((struct timespec *)a[3]) : really(clock, (struct timespec *)a[3]);
        a[3] = (long)&real;
    }
    return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

static int fails(void) {
    if (!told("disk")) return 0;
    errno = EIO;
    return 1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return fails() ? -1 : syscall(SYS_pwrite64, file, bytes, count, at);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    return fails() ? -1 : syscall(SYS_pwrite64, file, bytes, count, at);
}

static int syncs(void) {
    const long slice = 10;
    struct timespec time = {0, slice * 1000000};
    for (long waited = 0; waited < told("sync"); waited += slice) nanosleep(&time, NULL);
    return !fails();
}

int fsync(int file) { return syncs() ? (int)syscall(SYS_fsync, file) : -1; }

int fdatasync(int file) { return syncs() ? (int)syscall(SYS_fdatasync, file) : -1; }

int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    char address[64];
    if (name && !strcmp(name, "database.test")) name = words("name", address, sizeof address);
    return name && !*name ? EAI_NONAME : real(name, port, hints, found);
}
