/* SPDX-License-Identifier: MIT */
#include "remote/journal.h"

#include "base/digest.h"
#include "base/hex.h"
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define HEADER 1024u

size_t tnf_journal_size(const tnf_journal *j, uint64_t block)
{
    uint64_t left = j->total - block * TNF_BLOCK;
    return left < TNF_BLOCK ? (size_t)left : TNF_BLOCK;
}

static bool hash_block(char out[65], const uint8_t *bytes, size_t n)
{
    tnf_digester d;
    uint8_t digest[TNF_DIGEST_MAX];
    if (!tnf_digest_begin(&d, "sha256"))
        return false;
    tnf_digest_update(&d, bytes, n);
    tnf_digest_end(&d, digest);
    *tnf_hex_put(out, digest, 32) = 0;
    return true;
}

static int make_header(char out[HEADER], const tnf_pin *pin)
{
    return snprintf(out, HEADER, "tenfold-fetch 1\ntotal %llu\netag %s\nmodified %s\n",
                    (unsigned long long)pin->total, pin->etag, pin->modified);
}

/* Parses a line "block N HEX"; returns true if the block on the disk has this hash. */
static bool check_line(const tnf_journal *j, const char *line, uint8_t *room, uint64_t *block)
{
    char *said, is[65];
    size_t got = 0;
    if (strncmp(line, "block ", 6) != 0 || line[6] < '0' || line[6] > '9')
        return false;
    unsigned long long i = strtoull(line + 6, &said, 10);
    if (*said++ != ' ' || i >= j->blocks || j->have[i])
        return false;
    *block = i;
    size_t n = tnf_journal_size(j, i);
    return tnf_fs_read_at(j->fd, room, n, (uint64_t)i * TNF_BLOCK, &got, NULL) == TNF_OK &&
           got == n && hash_block(is, room, n) && strncmp(is, said, 64) == 0 && said[64] == '\n';
}

/* Takes over the blocks of an earlier run, if it fetched the same version. */
static bool take_over(tnf_journal *j, const tnf_pin *pin)
{
    char header[HEADER], line[160];
    int n = make_header(header, pin);
    size_t most = j->total < TNF_BLOCK ? (size_t)j->total + 1 : TNF_BLOCK;
    FILE *f = fopen(j->lines, "re");
    uint8_t *room = f ? tnf_alloc(&j->alloc, most) : NULL;
    bool same = room != NULL && (pin->etag[0] || pin->modified[0]);
    for (int at = 0; same && at < n;) { /* line by line */
        same = fgets(line, sizeof line, f) && strncmp(header + at, line, strlen(line)) == 0;
        at += same ? (int)strlen(line) : 0;
    }
    while (same && fgets(line, sizeof line, f)) {
        uint64_t block;
        if (strchr(line, '\n') && check_line(j, line, room, &block))
            j->have[block] = 1;
    }
    tnf_free(&j->alloc, room, most);
    if (f)
        (void)fclose(f);
    return same;
}

static tnf_status begin_anew(tnf_journal *j, const tnf_pin *pin, tnf_error *e)
{
    char header[HEADER];
    int n = make_header(header, pin);
    memset(j->have, 0, (size_t)j->blocks);
    if (ftruncate(j->fd, 0) != 0 || ftruncate(j->log, 0) != 0)
        return tnf_fail_sys(e, errno, "cannot write");
    if (n < 0 || (size_t)n >= sizeof header || write(j->log, header, (size_t)n) != n)
        return tnf_fail_sys(e, errno ? errno : EIO, "cannot write the journal");
    return TNF_OK;
}

tnf_status tnf_journal_open(tnf_journal *j, const char *target, const tnf_pin *pin,
                            const tnf_allocator *alloc, tnf_error *e)
{
    memset(j, 0, sizeof *j);
    j->fd = j->log = -1;
    j->alloc = *alloc;
    j->total = pin->total;
    j->blocks = pin->total / TNF_BLOCK + (pin->total % TNF_BLOCK != 0);
    pthread_mutex_init(&j->lock, NULL);
    int a = snprintf(j->part, sizeof j->part, "%s.part", target);
    int b = snprintf(j->lines, sizeof j->lines, "%s.part.journal", target);
    if (a < 0 || b < 0 || (size_t)b >= sizeof j->lines)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
    j->have = tnf_alloc0(alloc, (size_t)j->blocks + 1);
    if (!j->have)
        return tnf_no_memory("a journal", e);
    j->fd = tnf_fs_open(j->part, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    j->log = j->fd < 0 ? -1 : tnf_fs_open(j->lines, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0666);
    if (j->log < 0)
        return tnf_fail_sys(e, errno, "cannot write %s.part", TNF_VISIBLE(target));
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "another program is fetching this file");
    return take_over(j, pin) ? TNF_OK : begin_anew(j, pin, e);
}

tnf_status tnf_journal_put(tnf_journal *j, uint64_t block, const uint8_t *bytes, size_t n,
                           tnf_error *e)
{
    char hex[65], line[120];
    TNF_TRY(tnf_fs_write_at(j->fd, bytes, n, block * TNF_BLOCK, e));
    if (!hash_block(hex, bytes, n))
        return tnf_no_memory("a hash", e);
    int m = snprintf(line, sizeof line, "block %llu %s\n", (unsigned long long)block, hex);
    pthread_mutex_lock(&j->lock);
    ssize_t put = write(j->log, line, (size_t)m);
    j->have[block] = 1;
    pthread_mutex_unlock(&j->lock);
    return put == m ? TNF_OK
                    : tnf_fail_sys(e, put < 0 ? errno : ENOSPC, "cannot write the journal");
}

void tnf_journal_close(tnf_journal *j, bool keep)
{
    if (!keep) {
        (void)unlink(j->part);
        (void)unlink(j->lines);
    }
    if (j->fd >= 0)
        close(j->fd);
    if (j->log >= 0)
        close(j->log);
    tnf_free(&j->alloc, j->have, (size_t)j->blocks + 1);
    pthread_mutex_destroy(&j->lock);
}
