/* SPDX-License-Identifier: MIT */
/* Changing bytes in the middle of a file.
 *
 *   one block     one pwrite of at most 4096 aligned bytes, fsync
 *   else          undo file, fsync ──> new bytes, fsync ──> the undo file goes
 *
 * ".NAME.tenfold-undo" beside the file. Little-endian:
 *
 *   "TNFUNDO1"  u64 old size  u64 new size  u64 n
 *   n times     u64 at  u64 old_n  u64 new_n  old bytes  new bytes      old_n: up to the old end
 *   sha256 of all of it
 *
 * It holds the new bytes, too, so that it can be told whether it belongs to the file beside it:
 * every byte there must be the old or the new one. One that is not whole was never acted on.
 */
#include "io/undo.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK    4096u
#define MAGIC    "TNFUNDO1"
#define HEAD     32u
#define RANGE    24u
#define DIGEST   32u
#define MAX_UNDO ((uint64_t)1 << 30)

/* ------------------------------------------------------------------- bytes */

static tnf_status put_at(int fd, const uint8_t *p, size_t n, uint64_t at, tnf_error *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, p + done, n - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnf_fail_sys(e, errno, "cannot write");
        done += (size_t)put;
    }
    return TNF_OK;
}

/* *got is less than n at the end of the file. */
static tnf_status get_at(int fd, uint8_t *p, size_t n, uint64_t at, size_t *got, tnf_error *e)
{
    for (*got = 0; *got < n;) {
        ssize_t here = pread(fd, p + *got, n - *got, (off_t)(at + *got));
        if (here < 0 && errno == EINTR)
            continue;
        if (here < 0)
            return tnf_fail_sys(e, errno, "cannot read");
        if (here == 0)
            break;
        *got += (size_t)here;
    }
    return TNF_OK;
}

static tnf_status sync_file(int fd, tnf_error *e)
{
    return fsync(fd) == 0 ? TNF_OK : tnf_fail_sys(e, errno, "cannot sync the file");
}

static int open_it(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Where the file really is: whoever comes by another way finds the same undo file. */
static tnf_status undo_path(char out[PATH_MAX], const char *path, tnf_error *e)
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

/* What was made or removed in a directory is there to stay; where that cannot be had, so be it. */
static void sync_directory_of(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    int fd = open_it(dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* --------------------------------------------------------------- undo file */

static bool digest_of(uint8_t out[DIGEST], const uint8_t *p, size_t n)
{
    tnf_digester d;
    if (!tnf_digest_begin(&d, "sha256"))
        return false;
    tnf_digest_update(&d, p, n);
    tnf_digest_end(&d, out);
    return true;
}

static tnf_status put_range(tnf_buf *b, const tnf_change_file *c, const tnf_patch *p, tnf_error *e)
{
    uint64_t there = p->at < c->old_size ? c->old_size - p->at : 0;
    size_t old = p->n < there ? p->n : (size_t)there, got = 0;
    tnf_buf_u64(b, p->at);
    tnf_buf_u64(b, old);
    tnf_buf_u64(b, p->n);
    uint8_t *bytes = tnf_alloc(&c->alloc, old + 1);
    if (!bytes)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for changing the file");
    tnf_status status = get_at(c->fd, bytes, old, p->at, &got, e);
    if (status == TNF_OK && got != old)
        status = tnf_fail(e, TNF_EIO, p->at + got, "the file has become shorter");
    tnf_buf_put(b, bytes, old);
    tnf_buf_put(b, p->bytes, p->n);
    tnf_free(&c->alloc, bytes, old + 1);
    return status;
}

/* A shorter file: what is cut off, as a range without new bytes. */
static tnf_status put_cut(tnf_buf *b, const tnf_change_file *c, tnf_error *e)
{
    uint64_t at = c->new_size, n = c->old_size - c->new_size;
    size_t got = 0;
    uint8_t *bytes = n <= MAX_UNDO ? tnf_alloc(&c->alloc, (size_t)n) : NULL;
    if (!bytes)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for changing the file");
    tnf_status status = get_at(c->fd, bytes, (size_t)n, at, &got, e);
    if (status == TNF_OK && got != n)
        status = tnf_fail(e, TNF_EIO, at + got, "the file has become shorter");
    tnf_buf_u64(b, at);
    tnf_buf_u64(b, n);
    tnf_buf_u64(b, 0);
    tnf_buf_put(b, bytes, (size_t)n);
    tnf_free(&c->alloc, bytes, (size_t)n);
    return status;
}

static tnf_status compose(tnf_buf *b, const tnf_change_file *c, tnf_error *e)
{
    uint8_t digest[DIGEST];
    bool shorter = c->new_size < c->old_size;
    tnf_buf_put(b, MAGIC, 8);
    tnf_buf_u64(b, c->old_size);
    tnf_buf_u64(b, c->new_size);
    tnf_buf_u64(b, c->n + (shorter ? 1u : 0u));
    for (size_t i = 0; i < c->n; i++)
        TNF_TRY(put_range(b, c, &c->patches[i], e));
    if (shorter)
        TNF_TRY(put_cut(b, c, e));
    TNF_TRY(tnf_buf_status(b, "what is to change", e));
    if (!digest_of(digest, b->p, b->n))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a digest");
    tnf_buf_put(b, digest, DIGEST);
    return tnf_buf_status(b, "what is to change", e);
}

/* Whoever may read the file may read the undo file. */
static tnf_status keep(const tnf_buf *b, const tnf_change_file *c, const char *undo, tnf_error *e)
{
    struct stat st;
    int fd = open_it(undo, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "what is to change cannot be put beside the file: %s", strerror(errno));
    if (fstat(c->fd, &st) == 0)
        (void)fchmod(fd, st.st_mode & 0666);
    tnf_status status = put_at(fd, b->p, b->n, 0, e);
    if (status == TNF_OK)
        status = sync_file(fd, e);
    if (close(fd) != 0 && status == TNF_OK)
        status = tnf_fail_sys(e, errno, "cannot put what is to change beside the file");
    if (status != TNF_OK)
        unlink(undo);
    else
        sync_directory_of(undo);
    return status;
}

/* ----------------------------------------------------------------- reading */

typedef struct range {
    uint64_t at;
    size_t old_n, new_n;
    const uint8_t *old, *fresh;
} range;

/* Takes the next one off; false: it does not fit in what is left. */
static bool next_range(range *r, const uint8_t **p, size_t *left)
{
    if (*left < RANGE)
        return false;
    uint64_t old = tnf_le64(*p + 8), fresh = tnf_le64(*p + 16);
    *r = (range) { .at = tnf_le64(*p) };
    *left -= RANGE;
    *p += RANGE;
    if (old > *left || fresh > *left - old)
        return false;
    r->old_n = (size_t)old;
    r->new_n = (size_t)fresh;
    r->old = *p;
    r->fresh = *p + old;
    *p += old + fresh;
    *left -= (size_t)(old + fresh);
    return true;
}

static bool is_sound(const tnf_buf *b)
{
    uint8_t digest[DIGEST];
    range r;
    if (b->n < HEAD + DIGEST || memcmp(b->p, MAGIC, 8) != 0 ||
        !digest_of(digest, b->p, b->n - DIGEST) ||
        memcmp(digest, b->p + b->n - DIGEST, DIGEST) != 0)
        return false;
    const uint8_t *p = b->p + HEAD;
    size_t left = b->n - HEAD - DIGEST;
    uint64_t old = tnf_le64(b->p + 8), fresh = tnf_le64(b->p + 16);
    if ((old < fresh ? fresh - old : old - fresh) > b->n || old > INT64_MAX)
        return false;
    for (uint64_t n = tnf_le64(b->p + 24); n > 0; n--)
        if (!next_range(&r, &p, &left) || r.at > old || r.old_n > old - r.at || r.at > fresh ||
            r.new_n > fresh - r.at)
            return false;
    return left == 0;
}

/* Reads it whole. *there is false: there is none, or one that was never acted on (then *broken). */
static tnf_status load(tnf_buf *b, const char *undo, bool *there, bool *broken, tnf_error *e)
{
    uint8_t block[BLOCK];
    size_t got = sizeof block;
    int fd = open_it(undo, O_RDONLY | O_NOFOLLOW, 0);
    *there = *broken = false;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ||
                   errno == EACCES || errno == ELOOP))
        return TNF_OK;
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot look for an interrupted change");
    tnf_status status = TNF_OK;
    while (status == TNF_OK && got == sizeof block && b->status == TNF_OK) {
        status = get_at(fd, block, sizeof block, b->n, &got, e);
        tnf_buf_put(b, block, status == TNF_OK ? got : 0);
    }
    close(fd);
    if (b->status == TNF_ENOMEM)
        return tnf_buf_status(b, "an undo file", e);
    *there = status == TNF_OK && b->status == TNF_OK && is_sound(b);
    *broken = status == TNF_OK && !*there;
    return status;
}

/* ------------------------------------------------------------------ states */

typedef struct seen {
    bool old, fresh, foreign; /* all bytes are old; all are new; some are neither */
} seen;

static tnf_status look_at(seen *s, int fd, const range *r, const tnf_allocator *a, tnf_error *e)
{
    size_t most = r->old_n > r->new_n ? r->old_n : r->new_n, got = 0;
    uint8_t *now = tnf_alloc(a, most + 1);
    if (!now)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for an undo file");
    tnf_status status = get_at(fd, now, most, r->at, &got, e);
    for (size_t i = 0; status == TNF_OK && i < got; i++) {
        bool old = i < r->old_n && now[i] == r->old[i];
        bool fresh = i < r->new_n && now[i] == r->fresh[i];
        /* behind the old end anything may stand that a new byte was to replace */
        s->foreign = s->foreign || (!old && !fresh && i < r->old_n && i < r->new_n);
        s->old = s->old && (old || i >= r->old_n);
        s->fresh = s->fresh && (fresh || i >= r->new_n);
    }
    s->old = s->old && got >= r->old_n;
    s->fresh = s->fresh && got >= r->new_n;
    tnf_free(a, now, most + 1);
    return status;
}

static tnf_status state_of(tnf_undo_state *out, int fd, const tnf_buf *b, tnf_error *e)
{
    struct stat st;
    const uint8_t *p = b->p + HEAD;
    size_t left = b->n - HEAD - DIGEST;
    uint64_t old = tnf_le64(b->p + 8), fresh = tnf_le64(b->p + 16), size;
    seen s = { true, true, false };
    range r;
    if (fstat(fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot look at the file");
    size = (uint64_t)st.st_size;
    for (uint64_t n = tnf_le64(b->p + 24); n > 0 && next_range(&r, &p, &left); n--)
        TNF_TRY(look_at(&s, fd, &r, &b->alloc, e));
    if (s.foreign || size < (old < fresh ? old : fresh) || size > (old < fresh ? fresh : old))
        *out = TNF_UNDO_FOREIGN;
    else
        *out = (s.old && size == old) || (s.fresh && size == fresh) ? TNF_UNDO_WHOLE
                                                                    : TNF_UNDO_MIXED;
    return TNF_OK;
}

tnf_status tnf_undo_look(tnf_undo_state *out, const char *path, const tnf_allocator *alloc,
                         tnf_error *e)
{
    char undo[PATH_MAX];
    tnf_allocator a = tnf_allocator_or_default(alloc);
    bool there, broken;
    tnf_buf b;
    *out = TNF_UNDO_NONE;
    if (undo_path(undo, path, NULL) != TNF_OK)
        return TNF_OK; /* none could ever be written */
    tnf_buf_init(&b, &a, MAX_UNDO);
    tnf_status status = load(&b, undo, &there, &broken, e);
    if (broken)
        *out = TNF_UNDO_WHOLE;
    if (status == TNF_OK && there) {
        int fd = open_it(path, O_RDONLY, 0);
        status = fd < 0 ? tnf_fail_sys(e, errno, "cannot open") : state_of(out, fd, &b, e);
        if (fd >= 0)
            close(fd);
    }
    tnf_buf_free(&b);
    return status;
}

static tnf_status restore(int fd, const tnf_buf *b, tnf_error *e)
{
    const uint8_t *p = b->p + HEAD;
    size_t left = b->n - HEAD - DIGEST;
    range r;
    for (uint64_t n = tnf_le64(b->p + 24); n > 0 && next_range(&r, &p, &left); n--)
        TNF_TRY(put_at(fd, r.old, r.old_n, r.at, e));
    if (ftruncate(fd, (off_t)tnf_le64(b->p + 8)) != 0)
        return tnf_fail_sys(e, errno, "cannot give the file its size back");
    return sync_file(fd, e);
}

tnf_status tnf_undo_run(bool *undone, const char *path, int fd, const tnf_allocator *alloc,
                        tnf_error *e)
{
    char undo[PATH_MAX];
    tnf_allocator a = tnf_allocator_or_default(alloc);
    tnf_undo_state state = TNF_UNDO_NONE;
    bool there, broken;
    tnf_buf b;
    *undone = false;
    if (undo_path(undo, path, NULL) != TNF_OK)
        return TNF_OK;
    tnf_buf_init(&b, &a, MAX_UNDO);
    tnf_status status = load(&b, undo, &there, &broken, e);
    if (status == TNF_OK && there)
        status = state_of(&state, fd, &b, e);
    if (status == TNF_OK && state == TNF_UNDO_MIXED) {
        status = restore(fd, &b, e);
        *undone = status == TNF_OK;
    }
    if (status == TNF_OK && (broken || state == TNF_UNDO_MIXED || state == TNF_UNDO_WHOLE)) {
        if (unlink(undo) != 0 && errno != ENOENT)
            status = tnf_fail_sys(e, errno, "cannot remove the undo file");
        sync_directory_of(undo);
    }
    tnf_buf_free(&b);
    return status;
}

/* ---------------------------------------------------------------- changing */

static bool in_one_block(const tnf_change_file *c)
{
    if (c->new_size != c->old_size)
        return false;
    const tnf_patch *last = &c->patches[c->n - 1];
    return c->patches[0].at / BLOCK == (last->at + last->n - 1) / BLOCK;
}

/* From the first new byte to the last, with the old ones between them, in one call. */
static tnf_status write_block(const tnf_change_file *c, tnf_error *e)
{
    uint8_t old[BLOCK], fresh[BLOCK];
    const tnf_patch *last = &c->patches[c->n - 1];
    uint64_t at = c->patches[0].at;
    size_t n = (size_t)(last->at + last->n - at), got;
    TNF_TRY(get_at(c->fd, old, n, at, &got, e));
    if (got != n)
        return tnf_fail(e, TNF_EIO, at + got, "the file has become shorter");
    memcpy(fresh, old, n);
    for (size_t i = 0; i < c->n; i++)
        memcpy(fresh + (c->patches[i].at - at), c->patches[i].bytes, c->patches[i].n);
    tnf_status status = put_at(c->fd, fresh, n, at, e);
    if (status == TNF_OK)
        status = sync_file(c->fd, e);
    if (status != TNF_OK && put_at(c->fd, old, n, at, NULL) == TNF_OK)
        (void)sync_file(c->fd, NULL);
    return status;
}

/* The last first: what makes the file longer may find no room. */
static tnf_status write_all(const tnf_change_file *c, tnf_error *e)
{
    for (size_t i = c->n; i-- > 0;)
        TNF_TRY(put_at(c->fd, c->patches[i].bytes, c->patches[i].n, c->patches[i].at, e));
    if (c->new_size < c->old_size && ftruncate(c->fd, (off_t)c->new_size) != 0)
        return tnf_fail_sys(e, errno, "cannot cut the file");
    return sync_file(c->fd, e);
}

static tnf_status write_with_undo(const tnf_change_file *c, tnf_buf *b, tnf_error *e)
{
    char undo[PATH_MAX];
    TNF_TRY(undo_path(undo, c->path, e));
    TNF_TRY(compose(b, c, e));
    TNF_TRY(keep(b, c, undo, e));
    tnf_status status = write_all(c, e);
    if (status != TNF_OK && restore(c->fd, b, NULL) != TNF_OK) {
        const char *slash = strrchr(undo, '/');
        tnf_error why = e ? *e : (tnf_error) { .offset = TNF_NO_OFFSET };
        return tnf_fail(e, status, TNF_NO_OFFSET,
                        "%.100s; the bytes that were there are kept in %.100s", why.message,
                        slash ? slash + 1 : undo);
    }
    if (unlink(undo) != 0 && status == TNF_OK)
        status = tnf_fail_sys(e, errno, "cannot remove the undo file");
    sync_directory_of(undo);
    return status;
}

tnf_status tnf_change_apply(const tnf_change_file *c, tnf_error *e)
{
    if (c->n == 0 && c->old_size == c->new_size)
        return TNF_OK;
    if (c->n > 0 && in_one_block(c))
        return write_block(c, e);
    if (!c->one_name)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the file has other names (hard links), and what is to change is more "
                        "than one block of it");
    tnf_buf b;
    tnf_buf_init(&b, &c->alloc, MAX_UNDO);
    tnf_status status = write_with_undo(c, &b, e);
    tnf_buf_free(&b);
    return status;
}
