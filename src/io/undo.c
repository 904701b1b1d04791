/* SPDX-License-Identifier: MIT */
/* Changes bytes in the middle of a file.
 *
 *   one sector    one pwrite within 512 aligned bytes, fsync
 *   larger        undo file, fsync ──> new bytes, fsync ──> the undo file is removed
 *
 * The undo file is ".NAME.tenfold-undo" next to the file. Little-endian:
 *
 *   "TNFUNDO1"  u64 old size  u64 new size  u64 n
 *   n times     u64 at  u64 old_n  u64 new_n  old bytes  new bytes      old_n: up to the old end
 *   sha256 of everything before it
 *
 * The undo file contains the new bytes, too. They show whether it belongs to the file next to it:
 * every changed byte there must be the old or the new one (or 0, if the file was extended there but
 * not written yet). If the undo file is incomplete, the change was never begun.
 *
 * In a directory that everyone may write to, anyone may create a file of that name. So an undo file
 * counts only if it is a regular file with a single name and has the same owner as the file next to
 * it. Anything else of that name is not opened, followed or waited for; the file is read as if it
 * were not there. Undo files are never loaded completely: all of this works in blocks.
 */
#include "io/undo.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/str.h"
#include "io/fs.h"
#include "io/lock.h"
#include "io/shift.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR   512u /* a disk writes a sector completely or not at all */
#define BLOCK    ((size_t)64 << 10)
#define MAGIC    "TNFUNDO1"
#define HEAD     32u
#define RANGE    24u
#define DIGEST   32u
/* Old and new bytes of the largest change (core/save/edit.c), the bytes that it cuts off, and its
 * ranges. */
#define MAX_UNDO ((uint64_t)448 << 20)
#define PATIENT  10000u /* milliseconds: readers need the index only for a short time */

/* Uses the real path of the file, so that all paths to it lead to the same undo file. */
tnf_status tnf_undo_path(char out[PATH_MAX], const char *path, tnf_error *e)
{
    char real[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real))
        path = real;
    const char *slash = strrchr(path, '/');
    int lead = slash ? (int)(slash - path + 1) : 0;
    int n = snprintf(out, PATH_MAX, "%.*s.%s.tenfold-undo", lead, path, path + lead);
    return n > 0 && n < PATH_MAX ? TNF_OK
                                 : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
}

/* --------------------------------------------------------------- undo file */

static tnf_status put_range(tnf_buf *b, const tnf_change_file *c, const tnf_patch *p, tnf_error *e)
{
    uint64_t there = p->at < c->old_size ? c->old_size - p->at : 0;
    size_t old = p->n < there ? p->n : (size_t)there;
    tnf_buf_u64(b, p->at);
    tnf_buf_u64(b, old);
    tnf_buf_u64(b, p->n);
    uint8_t *bytes = tnf_alloc(&c->alloc, old + 1);
    if (!bytes)
        return tnf_no_memory("changing the file", e);
    tnf_status status = tnf_fs_read_all(c->fd, bytes, old, p->at, e);
    tnf_buf_put(b, bytes, old);
    tnf_buf_put(b, p->bytes, p->n);
    tnf_free(&c->alloc, bytes, old + 1);
    return status;
}

/* If the file becomes shorter: adds the bytes that are cut off, as a range without new bytes. */
static tnf_status put_cut(tnf_buf *b, const tnf_change_file *c, tnf_error *e)
{
    uint64_t at = c->new_size, n = c->old_size - c->new_size;
    uint8_t *bytes = n <= MAX_UNDO ? tnf_alloc(&c->alloc, (size_t)n) : NULL;
    if (!bytes)
        return tnf_no_memory("changing the file", e);
    tnf_status status = tnf_fs_read_all(c->fd, bytes, (size_t)n, at, e);
    tnf_buf_u64(b, at);
    tnf_buf_u64(b, n);
    tnf_buf_u64(b, 0);
    tnf_buf_put(b, bytes, (size_t)n);
    tnf_free(&c->alloc, bytes, (size_t)n);
    return status;
}

tnf_status tnf_undo_seal(tnf_buf *b, tnf_error *e)
{
    uint8_t digest[DIGEST];
    TNF_TRY(tnf_buf_status(b, "the change", e));
    /* Every reader looks for undo files, but need not link the faster implementations. */
    tnf_sha256_small(digest, b->p, b->n);
    tnf_buf_put(b, digest, DIGEST);
    return tnf_buf_status(b, "the change", e);
}

static tnf_status compose_undo(tnf_buf *b, const tnf_change_file *c, tnf_error *e)
{
    bool shorter = c->new_size < c->old_size;
    tnf_buf_put(b, MAGIC, 8);
    tnf_buf_u64(b, c->old_size);
    tnf_buf_u64(b, c->new_size);
    tnf_buf_u64(b, c->n + (shorter ? 1u : 0u));
    for (size_t i = 0; i < c->n; i++)
        TNF_TRY(put_range(b, c, &c->patches[i], e));
    if (shorter)
        TNF_TRY(put_cut(b, c, e));
    return tnf_undo_seal(b, e);
}

/* Every user who may read the file must find the undo file and accept it. */
static bool will_be_accepted(int undo, int fd)
{
    struct stat st, mine;
    if (fstat(fd, &st) != 0)
        return false;
    (void)tnf_keep_rights(undo, fd, &st);
    return fstat(undo, &mine) == 0 && mine.st_uid == st.st_uid && mine.st_gid == st.st_gid &&
           (mine.st_mode & 0444) == (st.st_mode & 0444);
}

static tnf_status fill_undo(const tnf_buf *b, int undo, int file, tnf_error *e)
{
    if (!will_be_accepted(undo, file))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "cannot create the undo file next to the file, which belongs to another "
                        "user or group");
    TNF_TRY(tnf_fs_write_at(undo, b->p, b->n, 0, e));
    return tnf_fs_sync(undo, e);
}

tnf_status tnf_undo_keep(const tnf_buf *b, int file, const char *undo, tnf_error *e)
{
    int fd = tnf_fs_open(undo, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "cannot create the undo file next to the file: %s", strerror(errno));
    tnf_status status = fill_undo(b, fd, file, e);
    if (close(fd) != 0 && status == TNF_OK)
        status = tnf_fail_sys(e, errno, "cannot write the undo file next to the file");
    if (status == TNF_OK)
        status = tnf_sync_directory_of(undo, e);
    if (status != TNF_OK)
        (void)unlink(undo);
    return status;
}

/* ----------------------------------------------------------------- reading */

/* An open undo file that counts. */
struct undo {
    int fd; /* -1: there is none */
    uint64_t size, old_size, new_size, n;
    bool of_shift; /* it was written by shift.c */
};

struct range {
    uint64_t at, old_n, new_n;
    uint64_t old, fresh; /* where the bytes are in the undo file */
};

static bool counts_as_undo(const struct stat *undo, const struct stat *file)
{
    return S_ISREG(undo->st_mode) && undo->st_nlink == 1 && undo->st_uid == file->st_uid &&
           (uint64_t)undo->st_size <= MAX_UNDO;
}

/* The undo file cannot be opened: would it count? */
static tnf_status unopened_undo(const char *path, const struct stat *file, int err, tnf_error *e)
{
    struct stat st;
    bool ours = lstat(path, &st) == 0 && counts_as_undo(&st, file);
    bool harmless = err == ENOENT || err == ENOTDIR || err == ENAMETOOLONG || err == ELOOP ||
                    err == ENXIO || err == EISDIR;
    return harmless || (err == EACCES && !ours)
               ? TNF_OK
               : tnf_fail_sys(e, err, "cannot check for an interrupted change");
}

static tnf_status open_undo(struct undo *u, const char *path, int file, tnf_error *e)
{
    struct stat st, of;
    *u = (struct undo) { .fd = -1 };
    if (fstat(file, &of) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    int fd = tnf_fs_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return unopened_undo(path, &of, errno, e);
    if (fstat(fd, &st) != 0 || !counts_as_undo(&st, &of)) {
        close(fd);
        return TNF_OK;
    }
    u->fd = fd;
    u->size = (uint64_t)st.st_size;
    return TNF_OK;
}

/* Reads n bytes of it; false, with *status TNF_OK, if they are not there. */
static bool get_bytes(const struct undo *u, uint64_t at, void *dst, size_t n, tnf_status *status,
                      tnf_error *e)
{
    size_t got = 0;
    *status = tnf_fs_read_at(u->fd, dst, n, at, &got, e);
    return *status == TNF_OK && got == n;
}

/* Reads the range that begins at *at, and moves *at to its end. */
static bool next_range(struct range *r, const struct undo *u, uint64_t *at, tnf_status *status,
                       tnf_error *e)
{
    uint8_t head[RANGE];
    uint64_t end = u->size - DIGEST;
    *status = TNF_OK;
    if (end - *at < RANGE || !get_bytes(u, *at, head, sizeof head, status, e))
        return false;
    *r = (struct range) { tnf_le64(head), tnf_le64(head + 8), tnf_le64(head + 16),
                          .old = *at + RANGE };
    if (r->old_n > end - r->old || r->new_n > end - r->old - r->old_n)
        return false;
    r->fresh = r->old + r->old_n;
    *at = r->fresh + r->new_n;
    return true;
}

static bool digest_matches(const struct undo *u, uint8_t *block, tnf_status *status, tnf_error *e)
{
    uint8_t said[DIGEST], is[DIGEST];
    tnf_sha256 d;
    *status = TNF_OK;
    tnf_sha256_begin_small(&d);
    uint64_t left = u->size - DIGEST;
    for (size_t n; left > 0 && *status == TNF_OK; left -= n) {
        n = left < BLOCK ? (size_t)left : BLOCK;
        if (!get_bytes(u, u->size - DIGEST - left, block, n, status, e))
            break;
        tnf_sha256_update(&d, block, n);
    }
    tnf_sha256_end(&d, is);
    return left == 0 && get_bytes(u, u->size - DIGEST, said, DIGEST, status, e) &&
           memcmp(said, is, DIGEST) == 0;
}

/* Do the ranges ascend, and does each lie within the old and within the new file? */
static bool ranges_fit(const struct undo *u, tnf_status *status, tnf_error *e)
{
    struct range r;
    uint64_t at = HEAD, behind = 0;
    for (uint64_t n = u->n; n > 0; n--) {
        if (!next_range(&r, u, &at, status, e) || r.at < behind || r.at > u->old_size ||
            r.old_n > u->old_size - r.at || r.at > u->new_size || r.new_n > u->new_size - r.at)
            return false;
        behind = r.at + (r.old_n > r.new_n ? r.old_n : r.new_n);
    }
    return at == u->size - DIGEST;
}

static bool is_whole(struct undo *u, uint8_t *block, tnf_status *status, tnf_error *e)
{
    uint8_t head[HEAD];
    *status = TNF_OK;
    if (u->size < HEAD + DIGEST || !get_bytes(u, 0, head, HEAD, status, e) ||
        memcmp(head, MAGIC, 8) != 0)
        return false;
    u->old_size = tnf_le64(head + 8);
    u->new_size = tnf_le64(head + 16);
    u->n = tnf_le64(head + 24);
    if (u->n > u->size / RANGE || u->old_size > INT64_MAX || u->new_size > INT64_MAX)
        return false;
    return digest_matches(u, block, status, e) && ranges_fit(u, status, e);
}

/* ------------------------------------------------------------------ states */

struct seen {
    bool old, fresh, foreign; /* all bytes are old; all are new; some are neither */
};

/* Compares n bytes of a range, from its byte `from` on: the present ones, the old ones and the new
 * ones. There are no old bytes after the old end, and no new ones after the new end: a 0 there is
 * a byte that was not written yet. */
static void compare_bytes(struct seen *s, const struct range *r, uint64_t from, const uint8_t *now,
                          const uint8_t *was, const uint8_t *to_be, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool in_old = from + i < r->old_n, in_new = from + i < r->new_n;
        bool old = in_old && now[i] == was[i], fresh = in_new && now[i] == to_be[i];
        bool unwritten = !(in_old && in_new) && now[i] == 0;
        s->foreign = s->foreign || (!old && !fresh && !unwritten);
        s->old = s->old && (old || !in_old);
        s->fresh = s->fresh && (fresh || !in_new);
    }
}

/* How many of the n bytes from `from` on are before `end`. */
static size_t part_of(uint64_t end, uint64_t from, size_t n)
{
    uint64_t left = end > from ? end - from : 0;
    return left < n ? (size_t)left : n;
}

static tnf_status look_at(struct seen *s, int fd, const struct undo *u, const struct range *r,
                          uint8_t *blocks, tnf_error *e)
{
    uint8_t *now = blocks, *was = blocks + BLOCK, *to_be = blocks + 2 * BLOCK;
    uint64_t most = r->old_n > r->new_n ? r->old_n : r->new_n;
    size_t got = 0;
    for (uint64_t from = 0; from < most && !s->foreign; from += got) {
        size_t n = most - from < BLOCK ? (size_t)(most - from) : BLOCK, a, b;
        TNF_TRY(tnf_fs_read_at(fd, now, n, r->at + from, &got, e));
        TNF_TRY(tnf_fs_read_at(u->fd, was, part_of(r->old_n, from, n), r->old + from, &a, e));
        TNF_TRY(tnf_fs_read_at(u->fd, to_be, part_of(r->new_n, from, n), r->fresh + from, &b, e));
        if (a != part_of(r->old_n, from, n) || b != part_of(r->new_n, from, n))
            return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "the undo file has become shorter");
        compare_bytes(s, r, from, now, was, to_be, got);
        if (got == n)
            continue;
        s->old = s->old && from + got >= r->old_n;
        s->fresh = s->fresh && from + got >= r->new_n;
        break;
    }
    return TNF_OK;
}

static tnf_status compare_file(tnf_undo_state *out, int fd, const struct undo *u, uint8_t *blocks,
                               tnf_error *e)
{
    struct stat st;
    struct seen s = { true, true, false };
    struct range r;
    uint64_t at = HEAD;
    bool longer = u->new_size > u->old_size;
    if (fstat(fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    uint64_t size = (uint64_t)st.st_size;
    *out = TNF_UNDO_FOREIGN;
    if (size < (longer ? u->old_size : u->new_size) || size > (longer ? u->new_size : u->old_size))
        return TNF_OK;
    for (uint64_t n = u->n; n > 0 && !s.foreign; n--) {
        tnf_status status;
        if (!next_range(&r, u, &at, &status, e))
            return status != TNF_OK
                       ? status
                       : tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "the undo file has become shorter");
        TNF_TRY(look_at(&s, fd, u, &r, blocks, e));
    }
    if (!s.foreign)
        *out = (s.old && size == u->old_size) || (s.fresh && size == u->new_size) ? TNF_UNDO_WHOLE
                                                                                  : TNF_UNDO_MIXED;
    return TNF_OK;
}

static bool is_of_shift(const struct undo *u)
{
    uint8_t magic[8];
    tnf_status status;
    return get_bytes(u, 0, magic, sizeof magic, &status, NULL) &&
           memcmp(magic, TNF_SHIFT_MAGIC, sizeof magic) == 0;
}

/* The state of a file that has an undo file that counts. */
static tnf_status state_of(tnf_undo_state *out, struct undo *u, int fd, uint8_t *blocks,
                           tnf_error *e)
{
    tnf_status status;
    *out = TNF_UNDO_WHOLE; /* an incomplete undo file: the change was never begun */
    u->of_shift = is_of_shift(u);
    if (u->of_shift)
        return tnf_shift_look(out, u->fd, u->size, fd, e);
    if (!is_whole(u, blocks, &status, e))
        return status;
    return compare_file(out, fd, u, blocks, e);
}

static tnf_status restore_ranges(int fd, const struct undo *u, uint8_t *block, tnf_error *e)
{
    struct range r;
    uint64_t at = HEAD;
    tnf_status status = TNF_OK;
    for (uint64_t n = u->n; n > 0 && next_range(&r, u, &at, &status, e); n--)
        for (uint64_t done = 0; done < r.old_n;) {
            size_t part = r.old_n - done < BLOCK ? (size_t)(r.old_n - done) : BLOCK, got;
            TNF_TRY(tnf_fs_read_at(u->fd, block, part, r.old + done, &got, e));
            if (got != part)
                return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "the undo file has become shorter");
            TNF_TRY(tnf_fs_write_at(fd, block, part, r.at + done, e));
            done += part;
        }
    TNF_TRY(status);
    TNF_TRY(tnf_fs_cut(fd, u->old_size, e));
    return tnf_fs_sync(fd, e);
}

/* Applies an undo file that counts; by default only examines the state. */
static tnf_status use_undo(tnf_undo_state *out, const char *undo, int fd, bool *undone,
                           tnf_error *e)
{
    struct undo u;
    *out = TNF_UNDO_NONE;
    TNF_TRY(open_undo(&u, undo, fd, e));
    if (u.fd < 0)
        return TNF_OK;
    const tnf_allocator a = tnf_allocator_or_default(NULL);
    uint8_t *blocks = tnf_alloc(&a, 3 * BLOCK);
    tnf_status status = blocks ? state_of(out, &u, fd, blocks, e)
                               : tnf_no_memory("an undo file", e);
    if (status == TNF_OK && undone && *out == TNF_UNDO_MIXED) {
        status = u.of_shift ? tnf_shift_back(u.fd, u.size, fd, e)
                            : restore_ranges(fd, &u, blocks, e);
        *undone = status == TNF_OK;
    }
    if (blocks)
        tnf_free(&a, blocks, 3 * BLOCK);
    close(u.fd);
    return status;
}

tnf_status tnf_undo_look(tnf_undo_state *out, const char *path, int fd, tnf_error *e)
{
    char undo[PATH_MAX];
    *out = TNF_UNDO_NONE;
    if (tnf_undo_path(undo, path, NULL) != TNF_OK)
        return TNF_OK; /* no undo file could ever be written */
    return use_undo(out, undo, fd, NULL, e);
}

tnf_status tnf_undo_run(bool *undone, const char *path, int fd, tnf_error *e)
{
    char undo[PATH_MAX];
    tnf_undo_state state;
    *undone = false;
    if (tnf_undo_path(undo, path, NULL) != TNF_OK)
        return TNF_OK;
    TNF_TRY(tnf_lock_change(fd, true, PATIENT, e));
    tnf_status status = use_undo(&state, undo, fd, undone, e);
    tnf_unlock_change(fd);
    TNF_TRY(status);
    if (state == TNF_UNDO_MIXED || state == TNF_UNDO_WHOLE) {
        if (unlink(undo) != 0 && errno != ENOENT)
            return tnf_fail_sys(e, errno, "cannot remove the undo file");
        (void)tnf_sync_directory_of(undo, NULL); /* a remaining undo file is useless but harmless */
    }
    return TNF_OK;
}

void tnf_undo_discard(const char *path, uid_t owner)
{
    char undo[PATH_MAX];
    struct stat st;
    const struct stat file = { .st_uid = owner };
    if (tnf_undo_path(undo, path, NULL) == TNF_OK && lstat(undo, &st) == 0 &&
        counts_as_undo(&st, &file))
        (void)unlink(undo);
}

/* ---------------------------------------------------------------- changing */

static bool in_one_sector(const tnf_change_file *c)
{
    if (c->new_size != c->old_size)
        return false;
    const tnf_patch *last = &c->patches[c->n - 1];
    return c->patches[0].at / SECTOR == (last->at + last->n - 1) / SECTOR;
}

/* Writes from the first new byte to the last, with the old ones between them, in one call. */
static tnf_status write_sector(const tnf_change_file *c, tnf_error *e)
{
    uint8_t old[SECTOR], fresh[SECTOR];
    const tnf_patch *last = &c->patches[c->n - 1];
    uint64_t at = c->patches[0].at;
    size_t n = (size_t)(last->at + last->n - at);
    TNF_TRY(tnf_fs_read_all(c->fd, old, n, at, e));
    memcpy(fresh, old, n);
    for (size_t i = 0; i < c->n; i++)
        memcpy(fresh + (c->patches[i].at - at), c->patches[i].bytes, c->patches[i].n);
    tnf_status status = tnf_fs_write_at(c->fd, fresh, n, at, e);
    if (status == TNF_OK)
        status = tnf_fs_sync(c->fd, e);
    if (status != TNF_OK && tnf_fs_write_at(c->fd, old, n, at, NULL) == TNF_OK)
        (void)tnf_fs_sync(c->fd, NULL);
    return status;
}

/* Begins with the last patch: extending the file may fail for lack of space. */
static tnf_status write_all(const tnf_change_file *c, tnf_error *e)
{
    for (size_t i = c->n; i-- > 0;)
        TNF_TRY(tnf_fs_write_at(c->fd, c->patches[i].bytes, c->patches[i].n, c->patches[i].at, e));
    if (c->new_size < c->old_size)
        TNF_TRY(tnf_fs_cut(c->fd, c->new_size, e));
    return tnf_fs_sync(c->fd, e);
}

/* Puts the old bytes back, from the memory that the undo file was written from. */
static tnf_status put_back(const tnf_change_file *c, const tnf_buf *b, tnf_error *e)
{
    const uint8_t *p = b->p + HEAD;
    for (uint64_t n = tnf_le64(b->p + 24); n > 0; n--) {
        uint64_t at = tnf_le64(p), old_n = tnf_le64(p + 8), new_n = tnf_le64(p + 16);
        TNF_TRY(tnf_fs_write_at(c->fd, p + RANGE, (size_t)old_n, at, e));
        p += RANGE + old_n + new_n;
    }
    TNF_TRY(tnf_fs_cut(c->fd, c->old_size, e));
    return tnf_fs_sync(c->fd, e);
}

/* False if it could not be removed. */
static bool remove_undo(const char *undo)
{
    return unlink(undo) == 0 || errno == ENOENT || unlink(undo) == 0 || errno == ENOENT;
}

tnf_status tnf_undo_drop(const char *undo, tnf_status status, tnf_error *e)
{
    return status != TNF_OK || remove_undo(undo)
               ? status
               : tnf_fail_sys(e, errno, "nothing was changed, because %.120s cannot be removed",
                              tnf_path_end(undo));
}

tnf_status tnf_undo_needed(const char *undo, tnf_status status, const char *kept, tnf_error *e)
{
    tnf_error why = e ? *e : (tnf_error) { .offset = TNF_NO_OFFSET };
    return tnf_fail(e, status, TNF_NO_OFFSET, "%.100s; %s %.100s", why.message, kept,
                    tnf_path_end(undo));
}

/* An undo file that was left behind is harmless, but the message names it. */
static void tell_left(tnf_error *e, const char *name)
{
    if (!e || strstr(e->message, name))
        return;
    const tnf_error why = *e;
    tnf_fail(e, why.status, why.offset, "%.120s; %.100s could not be removed", why.message, name);
    e->sys = why.sys;
}

tnf_status tnf_undo_end(const char *undo, tnf_status status, tnf_error *e)
{
    if (status != TNF_OK && !remove_undo(undo))
        tell_left(e, tnf_path_end(undo));
    (void)tnf_sync_directory_of(undo, NULL); /* an undo file that reappears is harmless */
    return status;
}

static tnf_status write_with_undo(const tnf_change_file *c, tnf_buf *b, tnf_error *e)
{
    char undo[PATH_MAX];
    TNF_TRY(tnf_undo_path(undo, c->path, e));
    TNF_TRY(compose_undo(b, c, e));
    TNF_TRY(tnf_undo_keep(b, c->fd, undo, e));
    tnf_status status = tnf_undo_drop(undo, write_all(c, e), e);
    if (status != TNF_OK && put_back(c, b, NULL) != TNF_OK)
        return tnf_undo_needed(undo, status, "the old bytes are kept in", e);
    return tnf_undo_end(undo, status, e);
}

static tnf_status change_file(const tnf_change_file *c, tnf_error *e)
{
    if (c->n > 0 && in_one_sector(c))
        return write_sector(c, e);
    if (!c->one_name)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "the file has other names (hard links), and the change is larger than one sector");
    tnf_buf b;
    tnf_buf_init(&b, &c->alloc, MAX_UNDO);
    tnf_status status = write_with_undo(c, &b, e);
    tnf_buf_free(&b);
    return status;
}

tnf_status tnf_change_apply(const tnf_change_file *c, tnf_error *e)
{
    if (c->n == 0 && c->old_size == c->new_size)
        return TNF_OK;
    TNF_TRY(tnf_lock_change(c->fd, true, PATIENT, e));
    tnf_status status = change_file(c, e);
    tnf_unlock_change(c->fd);
    return status;
}
