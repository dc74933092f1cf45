/* Makes the N-th system call of some kinds fail in one process: it is loaded before the C library (LD_PRELOAD), and
   armed from within (library.py). Calls of other processes, and what a thread does between two calls of
   `faults_pause`, pass. Descriptors 0 to 2 are left alone: what a person reads is no part of what is stored.
   A REQUEST is what is sent over a connection of the internet, a REPLY what is received there. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN, CREATE, WRITE, SYNC, RENAME, UNLINK, TRUNCATE, MKDIR, LOCK, CONNECT, SEND, MAP, REQUEST, REPLY, KINDS };
enum { COUNT, CRASH, TEAR, FAIL, SHORTEN, JUMP, CUT, ASK };

static long counts[KINDS];
static long calls, struck_at, first;
static long jump_s;
static int armed_pid, mask, action, error_number, for_ever, struck;
static int ask_at, answer_at;
static char what[300];
static __thread int paused;

static const char *names[KINDS] = {"open", "create", "write", "sync", "rename", "unlink",
                                   "truncate", "mkdir", "lock", "connect", "send", "map", "request", "reply"};

void faults_arm(int kinds, int does, long at, int number, int ever, long seconds) {
    if (kinds) memset(counts, 0, sizeof counts);
    calls = 0, struck = 0, struck_at = 0, what[0] = 0, jump_s = 0;
    mask = kinds, action = does, first = at, error_number = number, for_ever = ever;
    if (action == JUMP) struck_at = seconds;
    armed_pid = (int)syscall(SYS_getpid);
}

/* Whom to ask, by one byte, to do something to this process's world; it answers by one when that is done. */
void faults_ask(int write_to, int read_from) { ask_at = write_to, answer_at = read_from; }
void faults_pause(int more) { paused += more; }
long faults_count(int kind) { return counts[kind]; }

static void die(void) {
    syscall(SYS_write, 2, what, strlen(what));
    syscall(SYS_kill, armed_pid, SIGKILL);
    for (;;) pause();
}

static void describe(int kind, int fd, const char *path) {
    char link[64], target[200] = "";
    if (path == NULL) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        long length = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        path = target;
    }
    snprintf(what, sizeof what, "[fault at call %ld: %s %s]\n", calls, names[kind], path);
}

/* Whether this call is to fail; a crash does not return, unless the call is to be torn before. */
static int strikes(int kind, int fd, const char *path) {
    if (armed_pid == 0 || paused || !(mask >> kind & 1) || (path == NULL && fd <= 2)) return 0;
    if ((int)syscall(SYS_getpid) != armed_pid) return 0;
    __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
    long number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (action == COUNT || first == 0 || number < first || (number > first && !for_ever)) return 0;
    int saved = errno;
    describe(kind, fd, path);
    if (!struck) syscall(SYS_write, 2, what, action == CRASH ? 0 : strlen(what));
    errno = saved;
    struck = 1;
    if (action == CRASH || (action == TEAR && kind != WRITE)) die();
    if (action == JUMP) { jump_s = struck_at; return 0; }
    if (action == ASK) {
        char byte = 0;
        syscall(SYS_write, ask_at, &byte, 1);
        syscall(SYS_read, answer_at, &byte, 1);
        errno = saved;
        return 0;
    }
    if (action == CUT) syscall(SYS_shutdown, fd, SHUT_RDWR);
    if (action == SHORTEN && kind != WRITE && kind != SEND) return 0;
    return 1;
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(kind, fd, path) \
    if (strikes(kind, fd, path)) { errno = error_number; return -1; }

static int is_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static int is_connection(int fd) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

/* Whether a call that sends, or writes to what is no file, is to fail. */
static int strikes_sending(int fd) {
    if (armed_pid == 0) return 0;
    int saved = errno;
    int connection = is_connection(fd);
    errno = saved;
    return (connection && strikes(REQUEST, fd, NULL)) || strikes(SEND, fd, NULL);
}

static int strikes_receiving(int fd) {
    if (armed_pid == 0) return 0;
    int saved = errno;
    int connection = is_connection(fd);
    errno = saved;
    return connection && strikes(REPLY, fd, NULL);
}

#define WRITING(name, rest, ...) \
    ssize_t name(int fd, const void *data, size_t size __VA_ARGS__) { \
        NEXT(name); \
        if (is_file(fd) ? strikes(WRITE, fd, NULL) : strikes_sending(fd)) { \
            if (action == FAIL || action == CUT) { errno = error_number; return -1; } \
            if (size > 1) size /= 2; \
            ssize_t done = next(fd, data, size rest); \
            if (action == TEAR) die(); \
            return done; \
        } \
        return next(fd, data, size rest); \
    }
#define COMMA ,
#define AT COMMA offset
WRITING(write, )
WRITING(pwrite, AT, , off_t offset)
WRITING(pwrite64, AT, , off64_t offset)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (is_file(fd) ? strikes(WRITE, fd, NULL) : strikes_sending(fd)) { errno = error_number; return -1; }
    return next(fd, parts, count);
}
ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
    NEXT(sendfile);
    FAIL_IF(WRITE, out, NULL);
    return next(out, in, offset, size);
}
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) {
    NEXT(sendfile64);
    FAIL_IF(WRITE, out, NULL);
    return next(out, in, offset, size);
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    NEXT(send);
    if (strikes_sending(fd)) {
        if (action == FAIL || action == CUT) { errno = error_number; return -1; }
        if (size > 1) size /= 2;
    }
    return next(fd, data, size, flags);
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    NEXT(sendto);
    if (strikes_sending(fd)) { errno = error_number; return -1; }
    return next(fd, data, size, flags, to, length);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    NEXT(sendmsg);
    if (strikes_sending(fd)) { errno = error_number; return -1; }
    return next(fd, message, flags);
}
#define RECEIVING(name, parameters, arguments) \
    ssize_t name parameters { \
        NEXT(name); \
        if (strikes_receiving(fd)) { errno = error_number; return -1; } \
        return next arguments; \
    }
RECEIVING(recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
RECEIVING(recvfrom, (int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length),
          (fd, data, size, flags, from, length))
RECEIVING(recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
int connect(int fd, const struct sockaddr *address, socklen_t length) {
    NEXT(connect);
    FAIL_IF(CONNECT, fd, NULL);
    return next(fd, address, length);
}

#define OPENING(name, before, given) \
    int name(before const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        FAIL_IF(flags & O_CREAT ? CREATE : OPEN, -1, path); \
        return next(given path, flags, mode); \
    }
OPENING(open, , )
OPENING(open64, , )
OPENING(openat, int folder COMMA, folder COMMA)
OPENING(openat64, int folder COMMA, folder COMMA)

#define SIMPLE(name, kind, fd, path, parameters, arguments) \
    int name parameters { \
        NEXT(name); \
        FAIL_IF(kind, fd, path); \
        return next arguments; \
    }
SIMPLE(fsync, SYNC, fd, NULL, (int fd), (fd))
SIMPLE(fdatasync, SYNC, fd, NULL, (int fd), (fd))
SIMPLE(rename, RENAME, -1, from, (const char *from, const char *to), (from, to))
SIMPLE(renameat, RENAME, -1, from, (int a, const char *from, int b, const char *to), (a, from, b, to))
SIMPLE(link, RENAME, -1, from, (const char *from, const char *to), (from, to))
SIMPLE(unlink, UNLINK, -1, path, (const char *path), (path))
SIMPLE(unlinkat, UNLINK, -1, path, (int folder, const char *path, int flags), (folder, path, flags))
SIMPLE(rmdir, UNLINK, -1, path, (const char *path), (path))
SIMPLE(ftruncate, TRUNCATE, fd, NULL, (int fd, off_t size), (fd, size))
SIMPLE(ftruncate64, TRUNCATE, fd, NULL, (int fd, off64_t size), (fd, size))
SIMPLE(truncate, TRUNCATE, -1, path, (const char *path, off_t size), (path, size))
SIMPLE(truncate64, TRUNCATE, -1, path, (const char *path, off64_t size), (path, size))
SIMPLE(mkdir, MKDIR, -1, path, (const char *path, mode_t mode), (path, mode))
SIMPLE(mkdirat, MKDIR, -1, path, (int folder, const char *path, mode_t mode), (folder, path, mode))
SIMPLE(flock, LOCK, fd, NULL, (int fd, int how), (fd, how))

#define CONTROLLING(name) \
    int name(int fd, int command, ...) { \
        NEXT(name); \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) \
            FAIL_IF(LOCK, fd, NULL); \
        return next(fd, command, argument); \
    }
CONTROLLING(fcntl)
CONTROLLING(fcntl64)

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    NEXT(mmap);
    if (fd >= 0 && strikes(MAP, fd, NULL)) { errno = error_number; return MAP_FAILED; }
    return next(address, size, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
    NEXT(mmap64);
    if (fd >= 0 && strikes(MAP, fd, NULL)) { errno = error_number; return MAP_FAILED; }
    return next(address, size, protection, flags, fd, offset);
}

/* The wall clock, which somebody may set. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && armed_pid != 0 && result == 0) now->tv_sec += jump_s;
    return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = (int)syscall(SYS_gettimeofday, now, zone);
    if (armed_pid != 0 && result == 0) now->tv_sec += jump_s;
    return result;
}
time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}
