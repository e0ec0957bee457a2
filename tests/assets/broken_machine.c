/* A machine that is out of order, for one process, as the files in $BROKEN_MACHINE say: its clock is off (seconds), its disk fails (disk)
   or takes long (sync, milliseconds, until that is changed), and the name database.test leads to an address or nowhere (name).
   Preloaded by tests/process/bad_machines.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += told("seconds");
    return result;
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
