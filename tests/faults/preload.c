/* Disturbs system calls of one process on files under one folder: the n-th of the chosen kinds fails, is short, or
 * kills the process. Every change that succeeds is written to a log, so that power_loss.py can take back what was not
 * synced; what is unlinked or replaced stays as a hard link in a folder of backups.
 *
 *     cc -shared -fPIC -o preload.so preload.c -ldl      then LD_PRELOAD=preload.so, and fault_arm() from within
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, CREATE = 2, WRITE = 4, SYNC = 8, RENAME = 16, UNLINK = 32, MKDIR = 64, TRUNCATE = 128, RMDIR = 256,
       FETCH = 512 };
enum { COUNT, KILL, TEAR, FAIL, FAIL_ALL, SHORT };

static int armed, action, error_number, log_file = -1;
static unsigned operations;
static long moment, seen, links;
static char root[PATH_MAX], backups[PATH_MAX];
static size_t root_length;

/* From here on, the `at`-th of the operations on files under `folder` is disturbed; 0: none is. */
void fault_arm(const char *folder, long at, unsigned which, int what, int code, const char *log, const char *links_to) {
    root_length = (size_t)snprintf(root, sizeof root, "%s/", folder);
    snprintf(backups, sizeof backups, "%s", links_to);
    log_file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    moment = at, operations = which, action = what, error_number = code, seen = links = 0, armed = 1;
}

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) _exit(99);
    return found;
}
#define REAL(name) ({ static __typeof__(&name) f; if (!f) f = (__typeof__(&name))real(#name); f; })

/* The absolute path, if it is under the root; else 0. */
static int located(int folder, const char *path, char *out) {
    char from[64], base[PATH_MAX];
    if (!armed || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        if (folder == AT_FDCWD) snprintf(from, sizeof from, "/proc/self/cwd");
        else snprintf(from, sizeof from, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(from, base, sizeof base - 1);
        if (length < 0) return 0;
        base[length] = 0;
        if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    return !strncmp(out, root, root_length) || (strlen(out) == root_length - 1 && !strncmp(out, root, root_length - 1));
}

static int opened(int file, char *out) {
    char from[64];
    if (!armed) return 0;
    snprintf(from, sizeof from, "/proc/self/fd/%d", file);
    ssize_t length = readlink(from, out, PATH_MAX - 1);
    if (length < 0) return 0;
    out[length] = 0;
    return !strncmp(out, root, root_length) || (strlen(out) == root_length - 1 && !strncmp(out, root, root_length - 1));
}

static void note(const char *what, const char *path, const char *to, long value) {
    char line[3 * PATH_MAX];
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\n", what, path, to, value);
    int before = errno;
    if (log_file >= 0) (void)!syscall(SYS_write, log_file, line, length);
    errno = before;
}

/* Whether this call is to be disturbed. A kill comes here. */
static int due(unsigned operation) {
    if (!(operations & operation)) return 0;
    long now = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (!moment || (now != moment && !(action == FAIL_ALL && now > moment))) return 0;
    if (action == KILL) { syscall(SYS_kill, getpid(), SIGKILL); for (;;) pause(); }
    errno = error_number;
    return 1;
}

static long keep(const char *path) {
    char copy[PATH_MAX + 32];
    long number = __atomic_add_fetch(&links, 1, __ATOMIC_SEQ_CST);
    snprintf(copy, sizeof copy, "%s/%ld", backups, number);
    int before = errno;
    int failed = syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, copy, 0) != 0;
    errno = before;
    return failed ? 0 : number;
}

static int open_at(int (*call)(int, const char *, int, ...), int folder, const char *path, int flags, mode_t mode) {
    char name[PATH_MAX];
    struct stat found;
    if (!located(folder, path, name)) return call(folder, path, flags, mode);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    int fresh = writes && fstatat(AT_FDCWD, name, &found, 0) != 0;
    if (due(writes ? CREATE : READ)) return -1;
    int file = call(folder, path, flags, mode);
    if (file >= 0 && writes) note(fresh ? "create" : flags & O_TRUNC ? "truncate" : "open", name, "", 0);
    else if (file >= 0) note("read", name, "", 0);
    return file;
}

#define OPEN(name)                                                          \
    int name(const char *path, int flags, ...) {                            \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                       \
        return open_at(REAL(openat), AT_FDCWD, path, flags, mode);          \
    }
OPEN(open)
OPEN(open64)
#define OPEN_AT(name)                                                       \
    int name(int folder, const char *path, int flags, ...) {                \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                       \
        static int (*call)(int, const char *, int, ...);                    \
        if (!call) call = (int (*)(int, const char *, int, ...))real(#name); \
        return open_at(call, folder, path, flags, mode);                    \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

static ssize_t write_at(int file, const void *content, size_t size, off_t place) {
    char name[PATH_MAX];
    struct stat found;
    int ours = opened(file, name);
    if (ours && due(WRITE)) {
        if (action == FAIL || action == FAIL_ALL) return -1;
        size = size > 1 ? size / 2 : size; /* torn or short */
    }
    ssize_t done = place < 0 ? syscall(SYS_write, file, content, size) : syscall(SYS_pwrite64, file, content, size, place);
    if (ours && action == TEAR && seen == moment) { syscall(SYS_kill, getpid(), SIGKILL); for (;;) pause(); }
    if (ours && done >= 0 && !fstat(file, &found)) note("write", name, "", (long)found.st_size);
    return done;
}
ssize_t write(int file, const void *content, size_t size) { return write_at(file, content, size, -1); }
ssize_t pwrite(int file, const void *content, size_t size, off_t place) { return write_at(file, content, size, place); }
ssize_t pwrite64(int file, const void *content, size_t size, off_t place) { return write_at(file, content, size, place); }
ssize_t writev(int file, const struct iovec *parts, int count) {
    char name[PATH_MAX];
    if (!opened(file, name)) return REAL(writev)(file, parts, count);
    return count ? write_at(file, parts[0].iov_base, parts[0].iov_len, -1) : 0;
}

ssize_t read(int file, void *content, size_t size) {
    char name[PATH_MAX];
    int ours = opened(file, name);
    if (ours && due(FETCH)) return -1;
    ssize_t done = syscall(SYS_read, file, content, size);
    if (ours && done >= 0) note("fetch", name, "", 0);
    return done;
}

static int synced(int file, long call) {
    char name[PATH_MAX];
    int ours = opened(file, name);
    if (ours && due(SYNC)) return -1;
    int failed = (int)syscall(call, file);
    if (ours && !failed) note("sync", name, "", 0);
    return failed;
}
int fsync(int file) { return synced(file, SYS_fsync); }
int fdatasync(int file) { return synced(file, SYS_fdatasync); }

static int rename_at(int from, const char *old, int to, const char *new) {
    char before[PATH_MAX], after[PATH_MAX];
    int ours = located(from, old, before) & located(to, new, after);
    if (ours && due(RENAME)) return -1;
    long copy = ours ? keep(after) : 0;
    int failed = (int)syscall(SYS_renameat2, from, old, to, new, 0);
    if (ours && !failed) note("rename", before, after, copy);
    return failed;
}
int rename(const char *old, const char *new) { return rename_at(AT_FDCWD, old, AT_FDCWD, new); }
int renameat(int from, const char *old, int to, const char *new) { return rename_at(from, old, to, new); }

static int unlink_at(int folder, const char *path, int flags) {
    char name[PATH_MAX];
    int ours = located(folder, path, name);
    int is_folder = (flags & AT_REMOVEDIR) != 0;
    if (ours && due(is_folder ? RMDIR : UNLINK)) return -1;
    long copy = ours && !is_folder ? keep(name) : 0;
    int failed = (int)syscall(SYS_unlinkat, folder, path, flags);
    if (ours && !failed) note(is_folder ? "rmdir" : "unlink", name, "", copy);
    return failed;
}
int unlink(const char *path) { return unlink_at(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return unlink_at(folder, path, flags); }
int rmdir(const char *path) { return unlink_at(AT_FDCWD, path, AT_REMOVEDIR); }

static int mkdir_at(int folder, const char *path, mode_t mode) {
    char name[PATH_MAX];
    int ours = located(folder, path, name);
    if (ours && due(MKDIR)) return -1;
    int failed = (int)syscall(SYS_mkdirat, folder, path, mode);
    if (ours && !failed) note("mkdir", name, "", 0);
    return failed;
}
int mkdir(const char *path, mode_t mode) { return mkdir_at(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return mkdir_at(folder, path, mode); }

static int cut(int file, off_t size) {
    char name[PATH_MAX];
    int ours = opened(file, name);
    if (ours && due(TRUNCATE)) return -1;
    int failed = (int)syscall(SYS_ftruncate, file, size);
    if (ours && !failed) note("truncate", name, "", (long)size);
    return failed;
}
int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off_t size) { return cut(file, size); }

/* Copies within the kernel: refused, so that the caller writes instead. */
ssize_t sendfile(int out, int in, off_t *place, size_t size) {
    char name[PATH_MAX];
    if (opened(out, name)) { errno = ENOTSOCK; return -1; }
    return (ssize_t)syscall(SYS_sendfile, out, in, place, size);
}
ssize_t sendfile64(int out, int in, off_t *place, size_t size) { return sendfile(out, in, place, size); }
