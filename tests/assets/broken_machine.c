/* A machine that is out of order, for one process: its clock is off and its disk fails, as two files in $BROKEN_MACHINE say.
   Preloaded by tests/process/bad_machines.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long told(const char *name) {
    const char *folder = getenv("BROKEN_MACHINE");
    char path[4096], text[32] = {0};
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += told("seconds");
    return result;
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

int fsync(int file) { return fails() ? -1 : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return fails() ? -1 : (int)syscall(SYS_fdatasync, file); }
