/* SPDX-License-Identifier: MIT */
/* Every system call that reading and saving make fails once, is interrupted, or does less than
 * requested. The functions here replace those of the C library. \
 *
 * In all cases the target is the complete old file or the complete new one, no other file and no
 * descriptor is left, and a call that is only interrupted or cut short changes nothing. */
#include "../support/big.h"
#include "../support/descriptors.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define TENSORS 3u
#define BYTES   ((uint64_t)400000)

enum call { OPEN, WRITE, FSYNC, LINKAT, LINK, RENAME, COPY, PREAD, PREADV, FCHMOD, MMAP, CALLS };
static const char *const names[] = { "open",   "write",           "fsync", "linkat", "link",
                                     "rename", "copy_file_range", "pread", "preadv", "fchmod",
                                     "mmap" };

/* If one of these calls fails, an error must be returned. There is another way for the others. */
static const bool telling[CALLS] = { [WRITE] = true,  [FSYNC] = true, [LINKAT] = true,
                                     [RENAME] = true, [PREAD] = true, [PREADV] = true };

static struct {
    enum call call;
    unsigned at, seen; /* this call of that kind fails with err; 0: none */
    int err;
    bool stutter; /* every call does only a little, and every second one is interrupted first */
    bool no_nameless;
    unsigned turn;
    unsigned hits[CALLS]; /* how often each kind was made to fail */
} fault;

static bool call_fails(enum call call)
{
    if (fault.at == 0 || fault.call != call || ++fault.seen != fault.at)
        return false;
    errno = fault.err;
    fault.hits[call]++;
    return true;
}

/* How many of n bytes a call handles if calls stutter; 0: it is interrupted. */
static size_t stutter_size(size_t n)
{
    if (!fault.stutter || n == 0)
        return n;
    if (++fault.turn % 2) {
        errno = EINTR;
        return 0;
    }
    size_t most = 1 + fault.turn * 2654435761u % 60000;
    return n < most ? n : most;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (call_fails(OPEN) || (fault.stutter && !(flags & O_TMPFILE) && stutter_size(1) == 0))
        return -1;
    if (fault.no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void *p, size_t n)
{
    size_t some = stutter_size(n);
    return call_fails(WRITE) || (n && !some) ? -1 : syscall(SYS_write, fd, p, some);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    size_t some = stutter_size(n);
    return call_fails(PREAD) || (n && !some) ? -1 : syscall(SYS_pread64, fd, p, some, at);
}

ssize_t preadv(int fd, const struct iovec *iov, int n, off_t at)
{
    if (call_fails(PREADV))
        return -1;
    if (!fault.stutter)
        return syscall(SYS_preadv, fd, iov, n, (unsigned long)at, (unsigned long)0);
    return pread(fd, iov[0].iov_base, iov[0].iov_len, at);
}

ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t n, unsigned flags)
{
    size_t some = stutter_size(n);
    return call_fails(COPY) || (n && !some)
               ? -1
               : syscall(SYS_copy_file_range, in, from, out, to, some, flags);
}

int fsync(int fd)
{
    return call_fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
    return call_fails(LINKAT) ? -1 : (int)syscall(SYS_linkat, a, from, b, to, flags);
}

int link(const char *from, const char *to)
{
    return call_fails(LINK) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int rename(const char *from, const char *to)
{
    return call_fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && call_fails(MMAP))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

int fchmod(int fd, mode_t mode)
{
    return call_fails(FCHMOD) ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

/* ----------------------------------------------------------------------- */

static char dir[300], source[340], shifted[340], target[340];
static struct bytes old, new; /* the two contents that target may have */

static tnf_status read_all(tnf_error *error)
{
    tnf_file *file;
    tnf_status status = tnf_open(&file, source, NULL, error);
    if (status != TNF_OK)
        return status;
    tnf_request r[TENSORS];
    uint8_t *p = malloc(TENSORS * (BYTES + 64)); /* gaps, so that they are not read as one */
    MUST(p != NULL);
    for (unsigned i = 0; i < TENSORS; i++)
        r[i] = (tnf_request) { tnf_at(file, i)->parts, p + i * (BYTES + 64) };
    for (unsigned i = 0; i < TENSORS && status == TNF_OK; i++)
        status = tnf_read(r[i].dst, BYTES, tnf_at(file, i), error);
    for (unsigned i = 0; i < TENSORS && status == TNF_OK; i++)
        CHECK(big_is(r[i].dst, BYTES, 1), "tensor %u was read wrong", i);
    if (status == TNF_OK)
        status = tnf_read_many(r, TENSORS, NULL, error);
    for (unsigned i = 0; i < TENSORS && status == TNF_OK; i++)
        CHECK(big_is(r[i].dst, BYTES, 1), "tensor %u was read wrong among many", i);
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    if (status == TNF_OK)
        status = tnf_verify(&result, file, NULL, error);
    free(p);
    tnf_close(file);
    return status;
}

/* Saves a source file over the target, or to a new file. The pages of the shifted source do not
 * match those of the target, so they are copied in another way. */
static tnf_status save_target(bool replace, bool shift, tnf_error *error)
{
    tnf_file *file;
    tnf_builder *b;
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT, .replace = replace };
    tnf_status status = tnf_open(&file, shift ? shifted : source, NULL, error);
    if (status != TNF_OK)
        return status;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    MUST(tnf_builder_add_file(b, file, NULL) == TNF_OK);
    status = tnf_save(b, target, &o, error);
    tnf_builder_free(b);
    tnf_close(file);
    return status;
}

static bool target_holds(const struct bytes *want)
{
    struct bytes b = bytes_of_file(target);
    bool same = b.p && b.n == want->n && memcmp(b.p, want->p, b.n) == 0;
    free(b.p);
    return same;
}

/* The target is the old or the new one, and no other file is in the directory. */
static void check_place(bool replace, tnf_status status)
{
    bool is_new = target_holds(&new),
         is_old = replace ? target_holds(&old) : access(target, F_OK) != 0;
    CHECK(is_new || is_old, "the target is neither old nor new");
    CHECK(status != TNF_OK || is_new, "success, but nothing new is there");
    size_t files = files_count(dir, "");
    CHECK(files == 2u + (access(target, F_OK) == 0), "%zu files are there", files);
}

static void prepare_target(bool replace)
{
    if (replace)
        bytes_to_file(target, old.p, old.n);
    else
        unlink(target);
}

static void each_call_fails(enum call call, int err)
{
    unsigned before = descriptors_open();
    for (int way = 0; way < 9; way++) { /* bits: replace, no nameless files, shifted; 8: read */
        bool replace = way & 1, saving = way < 8;
        for (unsigned k = 1;; k++) {
            tnf_error error = { .status = TNF_OK };
            fault.at = 0;
            prepare_target(replace);
            fault.no_nameless = way & 2;
            fault.call = call;
            fault.err = err;
            fault.seen = 0;
            fault.at = k;
            check_doing("%s, %s number %u gives %s", saving ? "saving" : "reading", names[call], k,
                        strerror(err));
            tnf_status status = saving ? save_target(replace, way & 4, &error) : read_all(&error);
            bool hit = fault.seen >= k;
            fault.at = 0;
            check_error(status, &error);
            CHECK(status == TNF_OK || hit, "fails by itself: %s", error.message);
            CHECK(status != TNF_OK || !hit || !telling[call], "nobody is told");
            if (saving)
                check_place(replace, status);
            CHECK(descriptors_open() == before, "a descriptor is lost");
            if (!hit || k > 200)
                break;
        }
    }
}

static void stuttering_system(void)
{
    for (int way = 0; way < 8; way++) {
        tnf_error error;
        prepare_target(way & 1);
        fault.no_nameless = way & 2;
        fault.stutter = true;
        check_doing("stuttering, way %d", way);
        tnf_status status = save_target(way & 1, way & 4, &error);
        CHECK(status == TNF_OK, "saving: %s", error.message);
        status = read_all(&error);
        CHECK(status == TNF_OK, "reading: %s", error.message);
        fault.stutter = false;
        check_place(way & 1, TNF_OK);
    }
}

static void make_shifted(void)
{
    unsigned version = 1;
    tnf_builder *b = big_builder(&version, TENSORS, BYTES);
    tnf_option align = { "align", "64" };
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT, .options = &align };
    o.noptions = 1;
    MUST(tnf_save(b, shifted, &o, NULL) == TNF_OK);
    tnf_builder_free(b);
}

int main(void)
{
    static const int errors[] = { EIO, ENOSPC, EACCES };
    snprintf(dir, sizeof dir, "%s/system", files_temp());
    snprintf(source, sizeof source, "%s/source", dir);
    snprintf(target, sizeof target, "%s/target", dir);
    MUST(mkdir(dir, 0700) == 0);
    MUST(big_save(target, 0, TENSORS, BYTES, false, NULL) == TNF_OK);
    MUST(big_save(source, 1, TENSORS, BYTES, false, NULL) == TNF_OK);
    snprintf(shifted, sizeof shifted, "%s/shifted", dir);
    make_shifted();
    old = bytes_of_file(target);
    new = bytes_of_file(source);
    for (int call = 0; call < CALLS; call++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
            each_call_fails((enum call)call, errors[i]);
    for (int call = 0; call < CALLS; call++) {
        printf("%s%s %u", call ? ", " : "faults: ", names[call], fault.hits[call]);
        CHECK(fault.hits[call] > 0, "%s is never called, or not taken over", names[call]);
    }
    putchar('\n');
    stuttering_system();
    free(old.p);
    free(new.p);
    return check_end("system");
}
