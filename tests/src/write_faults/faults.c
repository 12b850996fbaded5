/* Calls that write to files fail on demand: loaded before the C library (LD_PRELOAD) by tests/src/write_faults.
 *
 * In: FAULT_CALL (write, sync, rename, size), FAULT_AT (which of these calls, from 1; 0 = none), FAULT_ON (all from there on), FAULT_KIND (ENOSPC, EIO,
 * EINTR, SHORT), FAULT_KILL (end the process there instead), FAULT_LOG (a file for the number of calls).
 * Only regular files count, and nothing that the process inherited.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { WRITE, SYNC, RENAME, SIZE, CALLS };
static const char *const names[CALLS] = {"write", "sync", "rename", "size"};
static atomic_long counts[CALLS];
static int wanted = -1;
static long at;
static int number; /* errno; 0 = a short write */
static int kills;
static int goes_on;

__attribute__((constructor)) static void begin(void) {
    const char *call = getenv("FAULT_CALL"), *nth = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
    for (int each = 0; call && each < CALLS; each++)
        if (!strcmp(call, names[each])) wanted = each;
    at = nth ? atol(nth) : 0;
    kills = getenv("FAULT_KILL") != NULL;
    goes_on = getenv("FAULT_ON") != NULL;
    if (!kind || !strcmp(kind, "ENOSPC")) number = ENOSPC;
    else if (!strcmp(kind, "EIO")) number = EIO;
    else if (!strcmp(kind, "EINTR")) number = EINTR;
    else number = 0;
}

__attribute__((destructor)) static void end(void) {
    const char *log = getenv("FAULT_LOG");
    if (!log) return;
    int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char text[128];
    int length = snprintf(text, sizeof text, "%ld %ld %ld %ld\n", counts[0], counts[1], counts[2], counts[3]);
    if (file >= 0) {
        syscall(SYS_write, file, text, length);
        close(file);
    }
}

/* Whether this call is the one. */
static int fails(enum call call) {
    long now = atomic_fetch_add(&counts[call], 1) + 1;
    if ((int)call != wanted || !at || now < at || (now > at && !goes_on)) return 0;
    if (kills) kill(getpid(), SIGKILL);
    return 1;
}

static int counts_here(int file) {
    struct stat about;
    return file > 2 && !fstat(file, &about) && S_ISREG(about.st_mode);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t length) {
    if (counts_here(file) && fails(WRITE)) {
        if (number) return errno = number, -1;
        length = length > 1 ? length / 2 : length;
    }
    return NEXT(write)(file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (counts_here(file) && fails(WRITE)) {
        if (number) return errno = number, -1;
        count = count > 1 ? count / 2 : count;
    }
    return NEXT(writev)(file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    if (counts_here(file) && fails(WRITE)) {
        if (number) return errno = number, -1;
        length = length > 1 ? length / 2 : length;
    }
    return NEXT(pwrite64)(file, bytes, length, offset);
}

#define OF_FILE(name, call, signature, arguments)                        \
    int name signature {                                                 \
        if (counts_here(file) && fails(call)) return errno = number ? number : EIO, -1; \
        return NEXT(name) arguments;                                     \
    }
OF_FILE(fsync, SYNC, (int file), (file))
OF_FILE(fdatasync, SYNC, (int file), (file))
OF_FILE(ftruncate64, SIZE, (int file, off64_t length), (file, length))

int rename(const char *from, const char *to) {
    if (fails(RENAME)) return errno = number ? number : EIO, -1;
    return NEXT(rename)(from, to);
}
