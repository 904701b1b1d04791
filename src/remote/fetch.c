/* SPDX-License-Identifier: MIT */
/* Downloads complete files: in parallel blocks, resumed after an interruption (journal.h), and
 * verified if the server gives a digest. A file appears under its name only when it is complete. */
#include "base/arena.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/sized.h"
#include "base/str.h"
#include "io/fs.h"
#include "remote/journal.h"
#include "remote/list.h"
#include "remote/listing.h"
#include "remote/web.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_SUFFIX ".index.json"
#define INDEX_MOST   (256u << 20)

struct fetching {
    tnf_session *session;
    const char *directory;
    tnf_fetch_options how;
    tnf_arena arena; /* names */
    atomic_uint_least64_t done;
    uint64_t total;
    bool unsynced; /* a file is there, but `why` */
    tnf_error why;
};

/* ------------------------------------------------------------------- names */

/* Checks an untrusted name: it must be valid, and below the directory. */
static tnf_status check_below(tnf_str name, tnf_error *e)
{
    bool bad = name.n > 2000 || !tnf_path_is_inside(name);
    for (size_t i = 0; i < name.n && !bad; i++)
        bad = (unsigned char)name.p[i] < ' ';
    if (bad)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the file name %s is invalid, or outside the directory", TNF_QUOTED(name));
    return TNF_OK;
}

static tnf_status make_target(char out[PATH_MAX], const struct fetching *f, const char *name,
                              tnf_error *e)
{
    TNF_TRY(check_below((tnf_str) { name, strlen(name) }, e));
    int n = snprintf(out, PATH_MAX, "%s/%s", f->directory, name);
    if (n < 0 || n >= PATH_MAX)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
    return tnf_fs_make_directories(out, strlen(f->directory) + 1, e);
}

/* The last piece of a path, percent-decoded. */
static tnf_status last_name(char *out, size_t room, const tnf_place *p, tnf_error *e)
{
    tnf_url_decode(out, room, strrchr(p->url.path, '/') + 1);
    return check_below((tnf_str) { out, strlen(out) }, e);
}

/* ------------------------------------------------------------------- bytes */

struct blocks {
    struct fetching *f;
    const tnf_source *source;
    tnf_journal *journal;
    tnf_remote *remote;
};

static tnf_status fetch_block(void *ctx, size_t i, tnf_error *e)
{
    struct blocks *b = ctx;
    size_t n = tnf_journal_size(b->journal, i);
    tnf_budget budget;
    if (b->journal->have[i]) {
        atomic_fetch_add(&b->f->done, n);
        return TNF_OK;
    }
    uint8_t *bytes = tnf_alloc(&b->f->session->alloc, n);
    if (!bytes)
        return tnf_no_memory("a block", e);
    atomic_init(&budget.left, TNF_RETRIES);
    uint64_t at = (uint64_t)i * TNF_BLOCK;
    bool few = b->journal->blocks < b->f->session->how.connections; /* also split each block */
    tnf_status status = b->remote->no_ranges ? tnf_source_read(b->source, at, bytes, n, e)
                        : few                ? tnf_remote_get_long(b->remote, at, bytes, n, e)
                                             : tnf_remote_get(b->remote, &budget, at, bytes, n, e);
    if (status == TNF_OK)
        status = tnf_journal_put(b->journal, i, bytes, n, e);
    tnf_free(&b->f->session->alloc, bytes, n);
    atomic_fetch_add(&b->f->done, n);
    return status;
}

static tnf_status sum_file(const tnf_journal *j, tnf_summing *d, tnf_error *e)
{
    static const size_t room = 1u << 20;
    uint8_t *bytes = tnf_alloc(&j->alloc, room);
    tnf_status status = TNF_OK;
    if (!bytes)
        return tnf_no_memory("a hash", e);
    for (uint64_t at = 0; at < j->total && status == TNF_OK;) {
        size_t got = 0;
        status = tnf_fs_read_at(j->fd, bytes, room, at, &got, e);
        tnf_summing_update(d, bytes, got);
        at += got ? got : room;
    }
    tnf_free(&j->alloc, bytes, room);
    return status;
}

static tnf_status verify_whole(const tnf_journal *j, const tnf_sum *want, bool local, tnf_error *e)
{
    tnf_summing d;
    tnf_sum is;
    if (!tnf_summing_begin(&d, want->kind))
        return tnf_no_memory("a hash", e);
    tnf_status status = sum_file(j, &d, e);
    tnf_summing_end(&d, &is);
    TNF_TRY(status);
    return tnf_sum_compare(&is, want, "the downloaded file", local, e);
}

/* ------------------------------------------------------------------- files */

/* Sets the server's date, by which is_same() recognises an unchanged file. */
static void set_date(int fd, const char *modified)
{
    int64_t seconds;
    if (!tnf_parse_http_date(modified, strlen(modified), &seconds))
        return;
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = (time_t)seconds } };
    (void)futimens(fd, times);
}

/* Does the file already exist with the server's size and date? */
static bool is_same(const char *target, const tnf_pin *pin)
{
    struct stat st;
    int64_t seconds;
    return lstat(target, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == pin->total &&
           tnf_parse_http_date(pin->modified, strlen(pin->modified), &seconds) &&
           (int64_t)st.st_mtime == seconds;
}

static tnf_status place_file(const struct fetching *f, const tnf_journal *j, const tnf_pin *pin,
                             const char *target, tnf_error *e)
{
    if (ftruncate(j->fd, (off_t)j->total) != 0)
        return tnf_fail_sys(e, errno, "cannot write");
    set_date(j->fd, pin->modified);
    TNF_TRY(tnf_fs_sync(j->fd, e));
    if (!f->how.replace && link(j->part, target) != 0)
        return tnf_fail_sys(e, errno, "cannot write");
    if (f->how.replace && rename(j->part, target) != 0)
        return tnf_fail_sys(e, errno, "cannot write");
    return tnf_sync_placed(target, e);
}

static tnf_status fetch_blocks(struct blocks *b, const char *target, tnf_error *e)
{
    tnf_sum told = { 0 };
    tnf_journal *j = b->journal;
    unsigned threads = b->f->session->how.connections;
    TNF_TRY(tnf_pool_run(b->remote->no_ranges ? 1 : threads, (size_t)j->blocks, fetch_block, b, e));
    TNF_TRY(tnf_remote_digest(b->remote, &told, e));
    if (told.kind)
        TNF_TRY(verify_whole(j, &told, b->remote->local, e));
    return place_file(b->f, j, &b->remote->pin, target, e);
}

static tnf_status fetch_source(struct fetching *f, tnf_source *source, const char *target,
                               bool *fetched, tnf_error *e)
{
    tnf_journal j;
    struct stat st;
    struct blocks b = { f, source, &j, tnf_web_remote(source) };
    const tnf_pin *pin = &b.remote->pin;
    *fetched = !is_same(target, pin);
    if (!*fetched)
        return TNF_OK;
    if (!f->how.replace && lstat(target, &st) == 0)
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET,
                        "already exists, perhaps as another version; use --force to replace it");
    atomic_store(&f->done, 0);
    f->total = pin->total;
    tnf_status status = tnf_journal_open(&j, target, pin, &f->session->alloc, e);
    if (status == TNF_OK)
        status = fetch_blocks(&b, target, e);
    bool useless = status == TNF_OK || status == TNF_EUNSYNCED || status == TNF_EDIGEST ||
                   status == TNF_ECHANGED;
    tnf_journal_close(&j, !useless);
    return status;
}

/* `name`: below the directory. */
static tnf_status fetch_one(struct fetching *f, const char *name, const tnf_place *place,
                            tnf_error *e)
{
    char target[PATH_MAX];
    tnf_source *source;
    bool fetched = false;
    tnf_error own;
    e = e ? e : &own; /* kept if the file is not synced */
    TNF_TRY(make_target(target, f, name, e));
    tnf_status status = tnf_web_open(&source, f->session, place, e);
    if (status == TNF_OK)
        status = fetch_source(f, source, target, &fetched, e);
    if (status == TNF_EUNSYNCED) { /* reported when all files are there */
        f->unsynced = true;
        f->why = *e;
        tnf_error_prefix(&f->why, name);
        status = TNF_OK;
    }
    if (status == TNF_OK && f->how.file)
        f->how.file(f->how.ctx, name, source->size, fetched);
    tnf_source_close(source);
    if (status != TNF_OK)
        tnf_error_prefix(e, name);
    return status;
}

/* ------------------------------------------------------------------- lists */

/* The names of files to fetch, each once. */
struct file_list {
    struct fetching *f;
    const tnf_place *near; /* names are relative to it */
    tnf_str *names;
    size_t n, room;
    tnf_hash known;
};

static tnf_str listed_name(const void *ctx, uint32_t i)
{
    return ((const struct file_list *)ctx)->names[i];
}

static void begin_list(struct file_list *l, struct fetching *f, const tnf_place *near)
{
    *l = (struct file_list) { .f = f, .near = near };
    tnf_hash_init(&l->known, &f->session->alloc, listed_name, l);
}

static tnf_status add_name(struct file_list *l, tnf_str name, tnf_error *e)
{
    tnf_arena *arena = &l->f->arena;
    uint32_t previous;
    if (tnf_hash_find(&l->known, name.p, name.n) != TNF_HASH_NONE)
        return TNF_OK;
    TNF_TRY(check_below(name, e));
    tnf_str *names = tnf_arena_grow(arena, l->names, l->n, &l->room, sizeof *names, 64);
    if (!names)
        return tnf_arena_fail(arena, "names of files", e);
    l->names = names;
    names[l->n] = (tnf_str) { tnf_arena_str(arena, name.p, name.n), name.n };
    if (!names[l->n].p)
        return tnf_arena_fail(arena, "names of files", e);
    if (!tnf_hash_add(&l->known, (uint32_t)l->n, false, &previous))
        return tnf_no_memory("names of files", e);
    l->n++;
    return TNF_OK;
}

static tnf_status add_file(void *ctx, const char *name, uint64_t size, tnf_error *e)
{
    (void)size;
    return add_name(ctx, (tnf_str) { name, strlen(name) }, e);
}

static tnf_status fetch_list(const struct file_list *l, tnf_error *e)
{
    for (size_t i = 0; i < l->n; i++) {
        tnf_place place;
        TNF_TRY(tnf_place_sibling(&place, l->near, l->names[i].p, l->names[i].n, e));
        TNF_TRY(fetch_one(l->f, l->names[i].p, &place, e));
    }
    return TNF_OK;
}

/* "weight_map": {tensor: file, …} */
static tnf_status add_shards(struct file_list *l, const char *text, size_t n, tnf_error *e)
{
    tnf_json j;
    tnf_str key, tensor, shard;
    tnf_status status = TNF_OK;
    tnf_json_init(&j, text, n, 0, &l->f->arena, 64, e);
    tnf_json_enter(&j, '{');
    while (status == TNF_OK && tnf_json_key(&j, &key)) {
        if (key.n != 10 || memcmp(key.p, "weight_map", 10) != 0) {
            tnf_json_skip(&j, NULL);
            continue;
        }
        tnf_json_enter(&j, '{');
        while (status == TNF_OK && tnf_json_key(&j, &tensor) && tnf_json_string(&j, &shard))
            status = add_name(l, shard, e);
    }
    return status != TNF_OK ? status : j.status;
}

/* Fetches the shards that an index names. The index itself was fetched before. */
static tnf_status fetch_shards(struct fetching *f, const tnf_place *index, const char *name,
                               tnf_error *e)
{
    struct file_list l;
    char target[PATH_MAX], *text;
    tnf_source *source;
    TNF_TRY(make_target(target, f, name, e));
    TNF_TRY(tnf_source_open(&source, target, TNF_ACCESS_PREAD, &f->session->alloc, e));
    size_t n = source->size < INDEX_MOST ? (size_t)source->size : 0;
    text = tnf_arena_alloc(&f->arena, n + 1);
    tnf_status status = text ? tnf_source_read(source, 0, text, n, e)
                             : tnf_arena_fail(&f->arena, "an index", e);
    tnf_source_close(source);
    TNF_TRY(status);
    begin_list(&l, f, index);
    status = add_shards(&l, text, n, e);
    if (status == TNF_OK)
        status = fetch_list(&l, e);
    tnf_hash_free(&l.known);
    return status;
}

static tnf_status fetch_folder(struct fetching *f, const tnf_place *folder, tnf_error *e)
{
    struct file_list l;
    bool listed;
    begin_list(&l, f, folder);
    tnf_status status = tnf_list_folder(f->session, folder, true, &listed, add_file, &l, e);
    if (status == TNF_OK && !listed)
        status = tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                          "http cannot list directories; give the URL of the file, or of the "
                          "model's index");
    else if (status == TNF_OK && l.n == 0)
        status = tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "the directory has no files");
    if (status == TNF_OK)
        status = fetch_list(&l, e);
    tnf_hash_free(&l.known);
    return status;
}

static tnf_status fetch_url(struct fetching *f, const char *url, tnf_error *e)
{
    tnf_place place;
    char name[512];
    TNF_TRY(tnf_place_parse(&place, f->session, url, e));
    if (place.folder)
        return fetch_folder(f, &place, e);
    TNF_TRY(last_name(name, sizeof name, &place, e));
    TNF_TRY(fetch_one(f, name, &place, e));
    size_t n = strlen(name), end = sizeof INDEX_SUFFIX - 1;
    bool index = n > end && strcmp(name + n - end, INDEX_SUFFIX) == 0;
    return index ? fetch_shards(f, &place, name, e) : TNF_OK;
}

/* Bytes count only when their block is complete, so the progress never goes back. */
static bool pass_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct fetching *f = ctx;
    (void)done, (void)total;
    return f->how.progress(f->how.ctx, atomic_load(&f->done), f->total);
}

/* Applies the options to a copy of the caller's settings. */
static tnf_status settle_options(struct fetching *f, tnf_url_options *out, tnf_error *e)
{
    enum { MOST = 32 };
    tnf_option own[MOST];
    size_t n = f->how.noptions;
    TNF_TRY(tnf_need_array(f->how.options, n, "options", e));
    if (n > MOST)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "too many options");
    if (n)
        memcpy(own, f->how.options, n * sizeof *own);
    TNF_TRY(tnf_remote_how(out, f->how.remote, own, &n, e));
    if (n)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "unknown network option '%s'",
                        TNF_VISIBLE(own[0].key));
    out->stream = true; /* the complete file is downloaded in any case */
    return TNF_OK;
}

tnf_status tnf_fetch(const char *url, const char *directory, const tnf_fetch_options *options,
                     tnf_error *e)
{
    TNF_TRY(tnf_need(url, "url", e));
    TNF_TRY(tnf_need(directory, "directory", e));
    struct fetching f = { .directory = directory };
    tnf_url_options remote;
    struct stat st;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_fetch_options, &f.how, options, e));
    TNF_TRY(settle_options(&f, &remote, e));
    if (!tnf_is_remote(url))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "this is not a URL (http, https, s3, gs, az, hf)");
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return tnf_fail_sys(e, errno, "cannot create the directory");
    if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the target is not a directory");
    TNF_TRY(tnf_session_new(&f.session, &remote, NULL, e));
    if (f.how.progress)
        tnf_session_watch(f.session, pass_progress, &f);
    tnf_arena_init(&f.arena, &f.session->alloc, 1u << 30);
    tnf_status status = fetch_url(&f, url, e);
    if (status == TNF_OK && f.unsynced) {
        status = TNF_EUNSYNCED;
        if (e)
            *e = f.why;
    }
    tnf_arena_free(&f.arena);
    tnf_session_drop(f.session);
    return status;
}
