/* SPDX-License-Identifier: MIT */
/* Makes a file longer at its front without copying the rest. The file system inserts blocks (ext4,
 * XFS: FALLOC_FL_INSERT_RANGE), which moves pointers and no bytes:
 *
 *   before    │ header      │ tensors …      │
 *   inserted  │ 0 0 0 0 0 0 │ header      │ tensors …      │
 *   after     │ header, longer            │ tensors …      │
 *
 * The undo file is written first (".NAME.tenfold-undo", as in undo.c). Little-endian:
 *
 *   "TNFSHIFT"  u64 old size  u64 by  u64 n
 *   n bytes of the old header  n + by bytes of the new one
 *   sha256 of everything before it
 *
 * A file system may insert in several steps. If the machine stops between them, the file has its
 * new size, and the inserted blocks, which are a hole, are somewhere in the middle: the bytes
 * before the hole have not moved. An interrupted removal of blocks looks the same. The file had no
 * holes before. So in both cases the hole of that length must be removed.
 */
#include "io/shift.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/sha256.h"
#include "io/fs.h"
#include "io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HEAD     32u
#define DIGEST   32u
#define MAX_UNDO ((uint64_t)448 << 20)
#define PATIENT  10000u /* milliseconds: readers need the index only for a short time */

/* ------------------------------------------------------------- file system */

#if defined FALLOC_FL_INSERT_RANGE && defined FALLOC_FL_COLLAPSE_RANGE

enum { INSERT = FALLOC_FL_INSERT_RANGE, REMOVE = FALLOC_FL_COLLAPSE_RANGE };

static int change_blocks(int fd, int how, uint64_t at, uint64_t n)
{
    int done;
    do
        done = fallocate(fd, how, (off_t)at, (off_t)n);
    while (done != 0 && errno == EINTR);
    return done;
}

#else

enum { INSERT, REMOVE };

static int change_blocks(int fd, int how, uint64_t at, uint64_t n)
{
    (void)fd, (void)how, (void)at, (void)n;
    errno = EOPNOTSUPP;
    return -1;
}

#endif

#ifdef SEEK_HOLE

/* Finds the first hole; both results are the size if there is none. */
static tnf_status find_hole(uint64_t *from, uint64_t *to, int fd, uint64_t size, tnf_error *e)
{
    *from = *to = size;
    off_t hole = lseek(fd, 0, SEEK_HOLE);
    if (hole < 0)
        return tnf_fail_sys(e, errno, "cannot search the file for holes");
    if ((uint64_t)hole >= size)
        return TNF_OK;
    off_t data = lseek(fd, hole, SEEK_DATA);
    if (data < 0 && errno != ENXIO)
        return tnf_fail_sys(e, errno, "cannot search the file for holes");
    *from = (uint64_t)hole;
    *to = data < 0 ? size : (uint64_t)data;
    return TNF_OK;
}

#else

static tnf_status find_hole(uint64_t *from, uint64_t *to, int fd, uint64_t size, tnf_error *e)
{
    (void)fd, (void)e;
    *from = *to = size;
    return TNF_OK;
}

#endif

tnf_status tnf_shift_unit(uint64_t *out, int fd, tnf_error *e)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file system");
    *out = fs.f_bsize < 4096 ? 4096 : fs.f_bsize;
    return TNF_OK;
}

/* --------------------------------------------------------------- undo file */

static tnf_status compose_undo(tnf_buf *b, const tnf_shift_file *c, tnf_error *e)
{
    uint8_t *old = tnf_alloc(&c->alloc, c->n + 1);
    if (!old)
        return tnf_no_memory("changing the file", e);
    tnf_status status = tnf_fs_read_all(c->fd, old, c->n, 0, e);
    tnf_buf_put(b, TNF_SHIFT_MAGIC, 8);
    tnf_buf_u64(b, c->size);
    tnf_buf_u64(b, c->by);
    tnf_buf_u64(b, c->n);
    tnf_buf_put(b, old, c->n);
    tnf_free(&c->alloc, old, c->n + 1);
    tnf_buf_put(b, c->fresh, c->n + (size_t)c->by);
    TNF_TRY(status);
    return tnf_undo_seal(b, e);
}

/* The content of an undo file. It is loaded completely: headers only contain keys and names. */
struct undo {
    uint8_t *bytes; /* of the file */
    size_t size;
    uint64_t old_size, by;
    size_t n;
    const uint8_t *old, *fresh;
};

/* False if it is incomplete: then the change was never begun. */
static bool parse_undo(struct undo *u)
{
    uint8_t digest[DIGEST];
    if (u->size < HEAD + DIGEST || memcmp(u->bytes, TNF_SHIFT_MAGIC, 8) != 0)
        return false;
    uint64_t n = tnf_le64(u->bytes + 24), left = u->size - HEAD - DIGEST;
    u->old_size = tnf_le64(u->bytes + 8);
    u->by = tnf_le64(u->bytes + 16);
    if (n > left || u->by > left || left != 2 * n + u->by || u->old_size > INT64_MAX - u->by ||
        n > u->old_size || u->by == 0)
        return false;
    tnf_sha256_small(digest, u->bytes, u->size - DIGEST);
    u->n = (size_t)n;
    u->old = u->bytes + HEAD;
    u->fresh = u->old + n;
    return memcmp(digest, u->bytes + u->size - DIGEST, DIGEST) == 0;
}

static tnf_status load_undo(struct undo *u, bool *whole, const tnf_allocator *a, int fd,
                            uint64_t size, tnf_error *e)
{
    size_t got = 0;
    *whole = false;
    if (size > MAX_UNDO)
        return TNF_OK;
    u->size = (size_t)size;
    u->bytes = tnf_alloc(a, u->size + 1);
    if (!u->bytes)
        return tnf_no_memory("an undo file", e);
    TNF_TRY(tnf_fs_read_at(fd, u->bytes, u->size, 0, &got, e));
    *whole = got == u->size && parse_undo(u);
    return TNF_OK;
}

/* ------------------------------------------------------------------ states */

/* Can byte i of the file, before the end of the old header, have this value during the change? It
 * belongs to the old or the new header, moved or not, or to the hole. Behind that end there may be
 * tensors that have not been moved. */
static bool is_of_change(const struct undo *u, size_t i, uint8_t now)
{
    return now == 0 || now == u->old[i] || now == u->fresh[i] ||
           now == u->fresh[i + (size_t)u->by] || (i >= u->by && now == u->old[i - (size_t)u->by]);
}

static tnf_status compare_file(tnf_undo_state *out, const struct undo *u, const tnf_allocator *a,
                               int fd, uint64_t size, tnf_error *e)
{
    bool longer = size != u->old_size;
    size_t n = longer ? u->n + (size_t)u->by : u->n, got = 0;
    const uint8_t *whole = longer ? u->fresh : u->old;
    uint8_t *now = tnf_alloc(a, n + 1);
    if (!now)
        return tnf_no_memory("an undo file", e);
    tnf_status status = tnf_fs_read_at(fd, now, n, 0, &got, e);
    *out = got == n && memcmp(now, whole, n) == 0 ? TNF_UNDO_WHOLE : TNF_UNDO_MIXED;
    for (size_t i = 0; status == TNF_OK && i < got && i < u->n && *out == TNF_UNDO_MIXED; i++)
        if (!is_of_change(u, i, now[i]))
            *out = TNF_UNDO_FOREIGN;
    tnf_free(a, now, n + 1);
    return status;
}

static tnf_status state_of(tnf_undo_state *out, const struct undo *u, const tnf_allocator *a,
                           int fd, tnf_error *e)
{
    struct stat st;
    uint64_t from, to;
    if (fstat(fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    uint64_t size = (uint64_t)st.st_size;
    *out = TNF_UNDO_FOREIGN;
    if (size != u->old_size && size != u->old_size + u->by)
        return TNF_OK;
    TNF_TRY(compare_file(out, u, a, fd, size, e));
    if (*out != TNF_UNDO_WHOLE || size == u->old_size)
        return TNF_OK;
    /* The new header is there. If the rest was moved, too, there is no hole after the header. */
    TNF_TRY(find_hole(&from, &to, fd, size, e));
    if (from < size && from >= u->n + u->by)
        *out = TNF_UNDO_MIXED;
    return TNF_OK;
}

/* ----------------------------------------------------------------- undoing */

static tnf_status remove_inserted(int fd, uint64_t at, uint64_t n, tnf_error *e)
{
    return change_blocks(fd, REMOVE, at, n) == 0
               ? TNF_OK
               : tnf_fail_sys(e, errno, "cannot remove the inserted blocks");
}

static tnf_status put_back(int fd, const struct undo *u, tnf_error *e)
{
    struct stat st;
    uint64_t from, to;
    if (fstat(fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    uint64_t size = (uint64_t)st.st_size;
    if (size == u->old_size + u->by) {
        TNF_TRY(find_hole(&from, &to, fd, size, e));
        /* A hole shorter than `by` is the unwritten end of the new header: everything was moved. A
         * hole at the end remains from removing blocks: everything is back. */
        bool moved = to - from < u->by;
        TNF_TRY(from < size && to == size ? tnf_fs_cut(fd, u->old_size, e)
                                          : remove_inserted(fd, moved ? 0 : from, u->by, e));
    }
    TNF_TRY(tnf_fs_write_at(fd, u->old, u->n, 0, e));
    return tnf_fs_sync(fd, e);
}

static tnf_status with_undo(tnf_undo_state *out, int undo, uint64_t undo_size, int fd, bool back,
                            tnf_error *e)
{
    const tnf_allocator a = tnf_allocator_or_default(NULL);
    struct undo u = { 0 };
    bool whole;
    *out = TNF_UNDO_WHOLE; /* an incomplete undo file: the change was never begun */
    tnf_status status = load_undo(&u, &whole, &a, undo, undo_size, e);
    if (status == TNF_OK && whole)
        status = back ? put_back(fd, &u, e) : state_of(out, &u, &a, fd, e);
    if (u.bytes)
        tnf_free(&a, u.bytes, u.size + 1);
    return status;
}

tnf_status tnf_shift_look(tnf_undo_state *out, int undo, uint64_t undo_size, int fd, tnf_error *e)
{
    return with_undo(out, undo, undo_size, fd, false, e);
}

tnf_status tnf_shift_back(int undo, uint64_t undo_size, int fd, tnf_error *e)
{
    tnf_undo_state state;
    return with_undo(&state, undo, undo_size, fd, true, e);
}

/* ---------------------------------------------------------------- shifting */

static tnf_status check_file(const tnf_shift_file *c, tnf_error *e)
{
    uint64_t from, to;
    if (!c->one_name)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the file has other names (hard links), so it cannot be shifted");
    TNF_TRY(find_hole(&from, &to, c->fd, c->size, e));
    if (from < c->size)
        return tnf_fail(e, TNF_EUNSUPPORTED, from,
                        "the file has holes, so an interrupted shift could not be undone");
    return TNF_OK;
}

static tnf_status shift_refused(int err, tnf_error *e)
{
    if (err == ENOSPC || err == EDQUOT || err == EIO)
        return tnf_fail_sys(e, err, "cannot insert bytes into the file");
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "the file system cannot insert bytes into a file (ext4 and XFS can): %s",
                    strerror(err));
}

/* *begun: the file may have changed. */
static tnf_status insert_and_write(const tnf_shift_file *c, bool *begun, tnf_error *e)
{
    if (change_blocks(c->fd, INSERT, 0, c->by) != 0) {
        tnf_status status = shift_refused(errno, e);
        *begun = status != TNF_EUNSUPPORTED;
        return status;
    }
    *begun = true;
    TNF_TRY(tnf_fs_write_at(c->fd, c->fresh, c->n + (size_t)c->by, 0, e));
    return tnf_fs_sync(c->fd, e);
}

static tnf_status shift_file(const tnf_shift_file *c, tnf_buf *b, tnf_error *e)
{
    char undo[PATH_MAX];
    struct undo u;
    bool begun = false;
    TNF_TRY(check_file(c, e));
    TNF_TRY(tnf_undo_path(undo, c->path, e));
    TNF_TRY(compose_undo(b, c, e));
    u = (struct undo) { .bytes = b->p, .size = b->n };
    if (!parse_undo(&u))
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "the undo file of the change is invalid");
    TNF_TRY(tnf_undo_keep(b, c->fd, undo, e));
    tnf_status status = tnf_undo_drop(undo, insert_and_write(c, &begun, e), e);
    if (status != TNF_OK && begun && put_back(c->fd, &u, NULL) != TNF_OK)
        return tnf_undo_needed(undo, status,
                               "run 'tenfold repair' on the file to restore its old bytes from", e);
    return tnf_undo_end(undo, status, e);
}

tnf_status tnf_shift_apply(const tnf_shift_file *c, tnf_error *e)
{
    tnf_buf b;
    TNF_TRY(tnf_lock_change(c->fd, true, PATIENT, e));
    tnf_buf_init(&b, &c->alloc, MAX_UNDO);
    tnf_status status = shift_file(c, &b, e);
    tnf_buf_free(&b);
    tnf_unlock_change(c->fd);
    return status;
}
