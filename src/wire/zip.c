/* SPDX-License-Identifier: MIT */
/* Reading zip archives, from their end.
 *
 *   end record   50 4b 05 06  u16 disk, disk of the directory, members here, members in all
 *                u32 bytes of the directory, where it begins   u16 bytes of the comment, comment
 *   locator      50 4b 06 07  u32 disk  u64 where the zip64 end record is  u32 disks
 *   zip64 end    50 4b 06 06  u64 bytes that follow  u16 made by, needed  u32 disk, disk of the
 *                directory  u64 members here, in all, bytes of the directory, where it begins
 *   entry        50 4b 01 02  u16 made by, needed, flags, method  u32 time  u32 crc, stored, size
 *                u16 bytes of name, extra, comment, disk, attributes  u32 attributes, header
 *   header       50 4b 03 04  u16 needed, flags, method  u32 time  u32 crc, stored, size
 *                u16 bytes of name, extra   name, extra, data
 *
 * A number of all ones is in the zip64 extra field instead: u16 1, u16 n, then u64 size, stored,
 * header, u32 disk; of these only those that are all ones.
 */
#include "wire/zip.h"

#include "base/ckd.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "wire/zip_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_EXTRA  96u /* torch and NumPy add 20 to 70 bytes to a member's header */
#define END_SIZE     22u
#define LOCATOR_SIZE 20u
#define ZIP64_SIZE   56u
#define ENTRY_SIZE   46u
#define MAX_COMMENT  65535u
#define ONES16       0xffffu

/* Reports illegal data that usual readers tolerate. */
static tnf_status tell_odd(const tnf_zip_from *from, tnf_status status, uint64_t at,
                           const char *text, tnf_error *e)
{
    return from->odd ? from->odd(from->odd_ctx, status, at, text, e)
                     : tnf_fail(e, status, at, "%s", text);
}

static tnf_status fetch_bytes(const tnf_zip_from *from, const char *what, uint64_t at, void *dst,
                              uint64_t n, tnf_error *e)
{
    tnf_status status;
    if (at > from->size || n > from->size - at)
        return tnf_fail(e, TNF_ETRUNCATED, from->size, "the zip archive ends inside the %s", what);
    TNF_CALL(status, e, from->fetch, from->ctx, at, dst, (size_t)n);
    return status;
}

bool tnf_zip_begins(const uint8_t *head, size_t n)
{
    return n >= 4 && (tnf_le32(head) == SIG_HEADER || tnf_le32(head) == SIG_END);
}

/* ------------------------------------------------------------- end records */

/* The content of the end records. */
typedef struct summary {
    uint64_t at; /* of the first end record: the directory ends here */
    uint64_t members, directory, directory_n;
} summary;

/* The end record is the last one whose comment ends with the file. If two fit, there are two
 * archives in one file, and readers disagree about which one counts. */
static tnf_status find_end(uint64_t *at, const tnf_zip_from *from, const uint8_t *tail, size_t n,
                           tnf_error *e)
{
    size_t exact = 0, last = 0, count = 0;
    for (size_t i = n >= END_SIZE ? n - END_SIZE + 1 : 0; i-- > 0;) {
        if (tail[i] != 'P' || tnf_le32(tail + i) != SIG_END)
            continue;
        if (i + END_SIZE + tnf_le16(tail + i + 20) == n && count++ == 0)
            exact = i + 1;
        if (!last)
            last = i + 1;
    }
    uint64_t start = from->size - n;
    if (count > 1)
        return tnf_fail(e, TNF_EFORMAT, start + exact - 1,
                        "the zip archive has two end records that both fit");
    if (!last)
        return tnf_fail(e, TNF_ETRUNCATED, from->size,
                        "the zip archive has no end record: its directory is missing (cut short?)");
    *at = start + (exact ? exact : last) - 1;
    if (exact)
        return TNF_OK;
    size_t need = last - 1 + END_SIZE + tnf_le16(tail + last - 1 + 20);
    if (need > n)
        return tnf_fail(e, TNF_ETRUNCATED, from->size,
                        "the zip archive ends inside its comment: %s missing",
                        TNF_BYTES_ARE(need - n));
    return tell_odd(from, TNF_EFORMAT, start + need, "bytes follow the end of the zip archive", e);
}

static tnf_status check_disks(bool one, uint64_t at, tnf_error *e)
{
    return one ? TNF_OK
               : tnf_fail(e, TNF_EUNSUPPORTED, at,
                          "the zip archive is one piece of an archive in several pieces");
}

/* A number of the end record must equal that of the zip64 record, or be all ones. */
static bool number_agrees(uint64_t small, uint64_t ones, uint64_t large)
{
    return small == large || small == ones;
}

static tnf_status read_zip64(summary *s, const tnf_zip_from *from, uint64_t at, tnf_error *e)
{
    uint8_t bytes[ZIP64_SIZE];
    uint64_t locator = s->at;
    TNF_TRY(fetch_bytes(from, "zip64 end record", at, bytes, sizeof bytes, e));
    tnf_cur c = tnf_cur_over(bytes, sizeof bytes, at);
    uint32_t signature = tnf_u32(&c);
    uint64_t follow = tnf_u64(&c);
    (void)tnf_u32(&c);
    uint32_t disk = tnf_u32(&c), first = tnf_u32(&c);
    uint64_t here = tnf_u64(&c), members = tnf_u64(&c), n = tnf_u64(&c), start = tnf_u64(&c);
    if (signature != SIG_ZIP64 || follow < ZIP64_SIZE - 12 || follow > locator ||
        at + 12 + follow != locator)
        return tnf_fail(e, TNF_EFORMAT, at, "there is no zip64 end record where its locator says");
    TNF_TRY(check_disks(disk == 0 && first == 0, at, e));
    if (here != members || !number_agrees(s->members, ONES16, members) ||
        !number_agrees(s->directory_n, ONES32, n) || !number_agrees(s->directory, ONES32, start))
        return tnf_fail(e, TNF_EFORMAT, at, "the two end records of the zip archive disagree");
    *s = (summary) { at, members, start, n };
    return TNF_OK;
}

/* If there are bytes in front of the archive that its own positions do not count, the zip64 record
 * is directly before the locator. */
static tnf_status find_zip64(summary *s, const tnf_zip_from *from, tnf_error *e)
{
    uint8_t bytes[LOCATOR_SIZE], signature[4];
    bool needs = s->members == ONES16 || s->directory == ONES32 || s->directory_n == ONES32;
    uint64_t end = s->at;
    if (end >= LOCATOR_SIZE)
        TNF_TRY(fetch_bytes(from, "zip64 locator", end - LOCATOR_SIZE, bytes, sizeof bytes, e));
    if (end < LOCATOR_SIZE || tnf_le32(bytes) != SIG_LOCATOR)
        return needs && s->members != ONES16
                   ? tnf_fail(e, TNF_EFORMAT, end,
                              "the end record refers to a zip64 end record, but there is none")
                   : TNF_OK;
    uint64_t at = tnf_le64(bytes + 8);
    s->at = end - LOCATOR_SIZE;
    TNF_TRY(check_disks(tnf_le32(bytes + 4) == 0 && tnf_le32(bytes + 16) <= 1, s->at, e));
    if (s->at < ZIP64_SIZE || at > s->at - ZIP64_SIZE)
        return tnf_fail(e, TNF_EFORMAT, s->at, "the zip64 end record is outside of the archive");
    TNF_TRY(fetch_bytes(from, "zip64 end record", at, signature, sizeof signature, e));
    if (tnf_le32(signature) != SIG_ZIP64)
        at = s->at - ZIP64_SIZE;
    return read_zip64(s, from, at, e);
}

static tnf_status read_end(summary *s, tnf_str *comment, const tnf_zip_from *from,
                           const uint8_t *tail, size_t n, tnf_error *e)
{
    TNF_TRY(find_end(&s->at, from, tail, n, e));
    tnf_cur c = tnf_cur_over(tail + (s->at - (from->size - n)), END_SIZE, s->at);
    (void)tnf_u32(&c);
    uint16_t disk = tnf_u16(&c), first = tnf_u16(&c), here = tnf_u16(&c);
    s->members = tnf_u16(&c);
    s->directory_n = tnf_u32(&c);
    s->directory = tnf_u32(&c);
    comment->n = tnf_u16(&c);
    comment->p = tnf_arena_str(from->arena, c.p, comment->n);
    if (!comment->p)
        return tnf_arena_fail(from->arena, "a comment", e);
    TNF_TRY(check_disks((disk == 0 || disk == ONES16) && (first == 0 || first == ONES16) &&
                            here == s->members,
                        s->at, e));
    return find_zip64(s, from, e);
}

/* ----------------------------------------------------------------- entries */

/* Names without the UTF-8 flag are in the code page of the first PCs. */
static const uint16_t cp437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb, 0x00e8, 0x00ef,
    0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9,
    0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa,
    0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb,
    0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557,
    0x255d, 0x255c, 0x255b, 0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
    0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567, 0x2568, 0x2564, 0x2565, 0x2559,
    0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518, 0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580,
    0x03b1, 0x00df, 0x0393, 0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4,
    0x221e, 0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
    0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

tnf_status tnf_zip_read_name(tnf_zip_member *m, const tnf_zip_from *from, tnf_error *e)
{
    bool ascii = true;
    if (memchr(m->raw.p, 0, m->raw.n))
        return tnf_fail(e, TNF_EFORMAT, m->at, "the name of a member holds a NUL");
    for (size_t i = 0; i < m->raw.n && ascii; i++)
        ascii = (uint8_t)m->raw.p[i] < 0x80;
    m->name = m->raw;
    if (ascii)
        return TNF_OK;
    if (m->flags & FLAG_UTF8)
        return tnf_utf8_valid(NULL, m->raw.p, m->raw.n)
                   ? TNF_OK
                   : tnf_fail(e, TNF_EFORMAT, m->at, "the name of a member is not UTF-8");
    char *text = tnf_arena_raw(from->arena, 3 * (uint64_t)m->raw.n);
    if (!text)
        return tnf_arena_fail(from->arena, "a name", e);
    m->name = (tnf_str) { text, 0 };
    for (size_t i = 0; i < m->raw.n; i++) {
        uint8_t byte = (uint8_t)m->raw.p[i];
        m->name.n += tnf_utf8_put(text + m->name.n, byte < 0x80 ? byte : cp437[byte - 0x80]);
    }
    return TNF_OK;
}

tnf_status tnf_zip_find_extra(tnf_cur *out, const uint8_t *extra, size_t n, uint64_t at,
                              tnf_error *e)
{
    tnf_cur c = tnf_cur_over(extra, n, at);
    bool found = false;
    *out = tnf_cur_over(extra, 0, at);
    while (tnf_left(&c) >= 4) {
        uint16_t id = tnf_u16(&c), size = tnf_u16(&c);
        const uint8_t *body = tnf_bytes(&c, size);
        if (!body)
            return tnf_fail(e, TNF_EFORMAT, at, "an extra field of a member runs past its end");
        if (id == 1 && found)
            return tnf_fail(e, TNF_EFORMAT, at, "a member has two zip64 fields");
        if (id == 1)
            *out = tnf_cur_over(body, size, at);
        found = found || id == 1;
    }
    return TNF_OK;
}

tnf_status tnf_zip_check_member(const tnf_zip_member *m, uint16_t disk, tnf_error *e)
{
    static const struct {
        uint16_t method;
        const char *name;
    } others[] = {
        { 1, "shrink" },   { 6, "implode" }, { 9, "deflate64" }, { 12, "bzip2" }, { 14, "lzma" },
        { 20, "zstd" },    { 93, "zstd" },   { 94, "mp3" },      { 95, "xz" },    { 96, "jpeg" },
        { 97, "wavpack" }, { 98, "ppmd" },   { 99, "AES" },
    };
    if (m->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return tnf_fail(e, TNF_EUNSUPPORTED, m->at, "the member %s is encrypted",
                        TNF_QUOTED(m->name));
    if (m->flags & FLAG_PATCH)
        return tnf_fail(e, TNF_EUNSUPPORTED, m->at, "the member %s is a patch of another file",
                        TNF_QUOTED(m->name));
    TNF_TRY(check_disks(disk == 0, m->at, e));
    if (m->method == TNF_ZIP_STORED && m->stored != m->size)
        return tnf_fail(e, TNF_EFORMAT, m->at,
                        "the member %s is not compressed, but its %llu bytes are declared as %llu",
                        TNF_QUOTED(m->name), (unsigned long long)m->stored,
                        (unsigned long long)m->size);
    if (m->method == TNF_ZIP_STORED || m->method == TNF_ZIP_DEFLATED)
        return TNF_OK;
    const char *name = "an unknown method";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].method == m->method)
            name = others[i].name;
    return tnf_fail(e, TNF_EUNSUPPORTED, m->at,
                    "the member %s is compressed by %s (method %u); only stored and deflated "
                    "members can be read",
                    TNF_QUOTED(m->name), name, m->method);
}

/* Reads one entry; its strings stay in the directory, which is in the arena. */
static tnf_status read_entry(tnf_zip_member *m, tnf_cur *c, const tnf_zip_from *from, tnf_error *e)
{
    m->at = tnf_where(c);
    uint32_t signature = tnf_u32(c);
    (void)tnf_u32(c);
    m->flags = tnf_u16(c);
    m->method = tnf_u16(c);
    (void)tnf_u32(c);
    m->crc = tnf_u32(c);
    m->stored = tnf_u32(c);
    m->size = tnf_u32(c);
    m->raw.n = tnf_u16(c);
    uint16_t extra_n = tnf_u16(c), comment_n = tnf_u16(c);
    uint64_t disk = tnf_u16(c);
    (void)tnf_u16(c);
    (void)tnf_u32(c);
    m->header = tnf_u32(c);
    m->raw.p = tnf_bytes(c, m->raw.n);
    const uint8_t *extra = tnf_bytes(c, extra_n);
    (void)tnf_bytes(c, comment_n);
    if (c->bad || signature != SIG_ENTRY)
        return tnf_fail(e, TNF_EFORMAT, m->at,
                        c->bad ? "an entry of the zip directory runs past its end"
                               : "the zip directory has no entry where one should be");
    TNF_TRY(tnf_zip_read_name(m, from, e));
    tnf_cur zip64;
    TNF_TRY(tnf_zip_find_extra(&zip64, extra, extra_n, m->at, e));
    if (m->size == ONES32)
        m->size = tnf_u64(&zip64);
    if (m->stored == ONES32)
        m->stored = tnf_u64(&zip64);
    if (m->header == ONES32)
        m->header = tnf_u64(&zip64);
    if (disk == ONES16)
        disk = tnf_u32(&zip64);
    if (zip64.bad)
        return tnf_fail(e, TNF_EFORMAT, m->at,
                        "the member %s has no zip64 field that is long enough",
                        TNF_QUOTED(m->name));
    return tnf_zip_check_member(m, disk != 0, e);
}

/* ------------------------------------------------------------ all together */

static int by_header(const void *a, const void *b)
{
    const tnf_zip_member *x = *(const tnf_zip_member *const *)a;
    const tnf_zip_member *y = *(const tnf_zip_member *const *)b;
    return x->header < y->header ? -1 : x->header > y->header;
}

/* Each member ends, at the latest, where the next one begins. The length of the extra field in its
 * own header is only known to tnf_zip_locate(). */
static tnf_status set_limits(tnf_zip *z, const tnf_zip_from *from, tnf_error *e)
{
    tnf_zip_member **order = tnf_arena_array(from->arena, z->n, sizeof *order);
    if (!order)
        return tnf_arena_fail(from->arena, "a zip directory", e);
    for (size_t i = 0; i < z->n; i++)
        order[i] = &z->members[i];
    if (z->n > 1)
        qsort(order, z->n, sizeof *order, by_header);
    for (size_t i = 0; i < z->n; i++) {
        tnf_zip_member *m = order[i];
        uint64_t end;
        m->limit = i + 1 < z->n ? order[i + 1]->header : z->directory;
        if (!tnf_ckd_add(&end, m->header, HEADER_SIZE + m->raw.n) ||
            !tnf_ckd_add(&end, end, m->stored) || end > m->limit)
            return tnf_fail(e, TNF_EFORMAT, m->at, "the member %s overlaps %s", TNF_QUOTED(m->name),
                            i + 1 < z->n ? "another one" : "the directory, or is after it");
    }
    return TNF_OK;
}

static tnf_str member_name(const void *ctx, uint32_t i)
{
    return ((const tnf_zip *)ctx)->members[i].name;
}

tnf_status tnf_zip_check_twice(const tnf_zip *z, const tnf_zip_from *from, tnf_error *e)
{
    tnf_hash names;
    char text[128];
    tnf_status status = TNF_OK;
    tnf_hash_init(&names, &from->arena->alloc, member_name, z);
    bool ok = tnf_hash_reserve(&names, z->n);
    for (size_t i = 0; i < z->n && ok && status == TNF_OK; i++) {
        uint32_t previous;
        ok = tnf_hash_add(&names, (uint32_t)i, false, &previous);
        if (!ok || previous == TNF_HASH_NONE)
            continue;
        snprintf(text, sizeof text, "the member %s occurs twice", TNF_QUOTED(z->members[i].name));
        status = tell_odd(from, TNF_EFORMAT, z->members[i].at, text, e);
    }
    tnf_hash_free(&names);
    return ok ? status : tnf_no_memory("names", e);
}

/* The archive ends with its directory, so bytes in front of it are not part of it. */
static tnf_status place_directory(tnf_zip *z, const summary *s, const tnf_zip_from *from,
                                  tnf_error *e)
{
    uint64_t end;
    if (!tnf_ckd_add(&end, s->directory, s->directory_n) || end > s->at)
        return tnf_fail(e, TNF_EFORMAT, s->at,
                        "the zip directory is outside of the archive: %llu bytes at %llu",
                        (unsigned long long)s->directory_n, (unsigned long long)s->directory);
    uint64_t all = s->directory_n + END_SIZE; /* fits: the directory is in the file */
    if (all > from->max_directory || s->members > from->max_members)
        return tnf_fail(e, TNF_ELIMIT, s->at,
                        "the zip directory and its end have %llu bytes for %llu members; at most "
                        "%llu and %llu are "
                        "allowed",
                        (unsigned long long)all, (unsigned long long)s->members,
                        (unsigned long long)from->max_directory,
                        (unsigned long long)from->max_members);
    if (s->members > s->directory_n / ENTRY_SIZE || s->members >= TNF_HASH_NONE)
        return tnf_fail(e, TNF_EFORMAT, s->at,
                        "%llu members do not fit in a directory of %llu bytes",
                        (unsigned long long)s->members, (unsigned long long)s->directory_n);
    z->prefix = s->at - end;
    z->directory = s->directory + z->prefix;
    z->end = s->at;
    return z->prefix ? tell_odd(from, TNF_EFORMAT, 0,
                                "there are bytes in front of the zip archive, or its directory "
                                "is not where its end record says",
                                e)
                     : TNF_OK;
}

static tnf_status read_directory(tnf_zip *z, const summary *s, const tnf_zip_from *from,
                                 tnf_error *e)
{
    uint8_t *bytes = tnf_arena_raw(from->arena, s->directory_n + 1);
    z->members = tnf_arena_array(from->arena, s->members, sizeof *z->members);
    if (!bytes || !z->members)
        return tnf_arena_fail(from->arena, "a zip directory", e);
    TNF_TRY(fetch_bytes(from, "directory", z->directory, bytes, s->directory_n, e));
    tnf_cur c = tnf_cur_over(bytes, (size_t)s->directory_n, z->directory);
    for (; z->n < s->members; z->n++) {
        tnf_zip_member *m = &z->members[z->n];
        TNF_TRY(read_entry(m, &c, from, e));
        if (!tnf_ckd_add(&m->header, m->header, z->prefix))
            return tnf_fail(e, TNF_EFORMAT, m->at, "the member %s is outside of the archive",
                            TNF_QUOTED(m->name));
    }
    if (tnf_left(&c) > 0)
        return tnf_fail(e, TNF_EFORMAT, tnf_where(&c),
                        "the zip directory has %zu bytes after its %llu members", tnf_left(&c),
                        (unsigned long long)s->members);
    return TNF_OK;
}

/* Temporary memory, which counts against the limit while it is in use. */
static uint8_t *borrow_memory(tnf_arena *arena, size_t n)
{
    arena->over_limit = n > arena->limit - arena->total;
    return arena->over_limit ? NULL : tnf_alloc(&arena->alloc, n);
}

tnf_status tnf_zip_read(tnf_zip *out, const tnf_zip_from *from, tnf_error *e)
{
    summary s = { 0 };
    uint64_t n = from->size < END_SIZE + MAX_COMMENT ? from->size : END_SIZE + MAX_COMMENT;
    *out = (tnf_zip) { 0 };
    uint8_t *tail = borrow_memory(from->arena, (size_t)n + 1);
    if (!tail)
        return tnf_arena_fail(from->arena, "a zip archive", e);
    tnf_status status = fetch_bytes(from, "end record", from->size - n, tail, n, e);
    if (status == TNF_OK)
        status = read_end(&s, &out->comment, from, tail, (size_t)n, e);
    tnf_free(&from->arena->alloc, tail, (size_t)n + 1);
    TNF_TRY(status);
    TNF_TRY(place_directory(out, &s, from, e));
    TNF_TRY(read_directory(out, &s, from, e));
    TNF_TRY(set_limits(out, from, e));
    return tnf_zip_check_twice(out, from, e);
}

/* ------------------------------------------------------------------ header */

/* Compares sizes and CRC, unless they follow the data. */
static bool same_sizes(const tnf_zip_member *m, const uint8_t *header, tnf_cur *zip64)
{
    uint64_t crc = tnf_le32(header + 14), stored = tnf_le32(header + 18);
    uint64_t size = tnf_le32(header + 22);
    if (m->flags & FLAG_DESCRIPTOR)
        return true;
    if (size == ONES32)
        size = tnf_u64(zip64);
    if (stored == ONES32)
        stored = tnf_u64(zip64);
    return crc == m->crc && stored == m->stored && size == m->size && !zip64->bad;
}

static tnf_status fail_differs(const tnf_zip_member *m, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, m->header,
                    "the member %s has another %s in its own header than in the directory",
                    TNF_QUOTED(m->name), what);
}

static tnf_status compare_header(const tnf_zip_from *from, const tnf_zip_member *m,
                                 const uint8_t *header, const uint8_t *rest, size_t extra_n,
                                 tnf_error *e)
{
    uint16_t flags = tnf_le16(header + 6);
    char text[160];
    tnf_cur zip64;
    if (memcmp(rest, m->raw.p, m->raw.n) != 0)
        return fail_differs(m, "name", e);
    if (tnf_le16(header + 8) != m->method)
        return fail_differs(m, "method", e);
    if ((flags ^ m->flags) & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_DESCRIPTOR | FLAG_MASKED))
        return fail_differs(m, "kind (encrypted, or with its sizes after it)", e);
    TNF_TRY(tnf_zip_find_extra(&zip64, rest + m->raw.n, extra_n, m->header, e));
    if (flags == m->flags && same_sizes(m, header, &zip64))
        return TNF_OK;
    snprintf(text, sizeof text,
             "the member %s has other %s in its own header than in the directory",
             TNF_QUOTED(m->name), flags == m->flags ? "sizes or another CRC" : "flags");
    return tell_odd(from, TNF_EFORMAT, m->header, text, e);
}

tnf_status tnf_zip_locate(uint64_t *data, const tnf_zip_from *from, const tnf_zip_member *m,
                          tnf_error *e)
{
    uint8_t header[HEADER_SIZE + 512]; /* enough for most names: one read for all of it */
    uint64_t end = m->limit < from->size ? m->limit : from->size;
    uint64_t room = end > m->header + HEADER_SIZE ? end - m->header : HEADER_SIZE;
    size_t usual = HEADER_SIZE + m->name.n + USUAL_EXTRA;
    size_t here = usual < sizeof header ? usual : sizeof header;
    here = room < here ? (size_t)room : here;
    TNF_TRY(fetch_bytes(from, "header of a member", m->header, header, here, e));
    if (tnf_le32(header) != SIG_HEADER)
        return tnf_fail(e, TNF_EFORMAT, m->header, "there is no member where the directory has %s",
                        TNF_QUOTED(m->name));
    size_t name_n = tnf_le16(header + 26), extra_n = tnf_le16(header + 28);
    size_t n = name_n + extra_n;
    if (name_n != m->raw.n)
        return fail_differs(m, "name", e);
    *data = m->header + HEADER_SIZE + n; /* below 2^64: see set_limits() */
    if (*data > m->limit || m->stored > m->limit - *data)
        return tnf_fail(e, TNF_EFORMAT, m->header, "the member %s overlaps what follows it",
                        TNF_QUOTED(m->name));
    if (n <= here - HEADER_SIZE)
        return compare_header(from, m, header, header + HEADER_SIZE, extra_n, e);
    uint8_t *rest = borrow_memory(from->arena, n);
    if (!rest)
        return tnf_arena_fail(from->arena, "a zip archive", e);
    tnf_status status = fetch_bytes(from, "header of a member", m->header + HEADER_SIZE, rest, n,
                                    e);
    if (status == TNF_OK)
        status = compare_header(from, m, header, rest, extra_n, e);
    tnf_free(&from->arena->alloc, rest, n);
    return status;
}
