/* SPDX-License-Identifier: MIT */
/* Metadata changed in place, in every format that can do this: the change is in the file
 * afterwards, and nothing else has changed or moved. The process is killed at each system call that
 * changes a file, in the middle of it if it is a write; each of those calls fails; each allocation
 * fails. The file is then the old one or the new one, or it cannot be opened and tnf_undo()
 * restores the old one. */
#include "../support/files.h"
#include "../support/memory.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tenfold/repair.h>

#define KEY "edits.note"

/* -------------------------------------------------- system calls replaced */

enum { PASS, DIE, FAIL };

static struct {
    int what;
    unsigned at, seen; /* the at-th call */
    bool for_good;     /* all later ones fail, too */
    int err;
} fault;

/* Does the fault hit this call? If the call is a write, its first half is written, unless the write
 * is within one sector, because a disk writes a sector completely or not at all. */
static bool hits_fault(int fd, const void *p, size_t n, off_t at)
{
    size_t half = n > 0 && at / 512 != (at + (off_t)n - 1) / 512 ? n / 2 : 0;
    if (fault.what == PASS || ++fault.seen < fault.at || (fault.seen > fault.at && !fault.for_good))
        return false;
    if (half > 0)
        (void)!syscall(SYS_pwrite64, fd, p, half, at);
    if (fault.what == DIE)
        _exit(9);
    errno = fault.err;
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (flags & O_CREAT && hits_fault(-1, NULL, 0, 0))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return hits_fault(fd, p, n, at) ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}

int fsync(int fd)
{
    (void)fd; /* no power cut happens here */
    return hits_fault(-1, NULL, 0, 0) ? -1 : 0;
}

int ftruncate(int fd, off_t size)
{
    return hits_fault(-1, NULL, 0, 0) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int unlink(const char *path)
{
    return hits_fault(-1, NULL, 0, 0) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ------------------------------------------------------------------ files */

struct sample {
    const char *format, *fixture, *name;
    bool reserve; /* the option for free space; otherwise the file grows at its end */
};

static const struct sample samples[] = {
    { "safetensors", "safetensors/valid/data_in_other_order.safetensors", "a.safetensors", true },
    { "gptrs-checkpoint", "gptrs-checkpoint/valid/chk_v2_mixed_grad.bin", "a.bin", true },
    { "finalfusion", "finalfusion/valid/bucket_dense.fifu", "a.fifu", true },
    { "finalfusion", "finalfusion/valid/seed_norms.fifu", "b.fifu", true },
    { "finalfusion", "finalfusion/valid/later_chunks.fifu", "c.fifu", true },
    { "ztensor2", "ztensor2/valid/ref-zstd.zt", "a.zt", false },
    { "ztensor2", "ztensor2/valid/two-generations.zt", "d.zt", false },
    { "ztensor2", "ztensor2/valid/canonical-tied.zt", "e.zt", false },
    { "ztensor1", "ztensor1/valid/zstd.zt", "b.zt", false },
    { "ztensor0", "ztensor0/valid/checksums.zt", "c.zt", false },
};
#define SAMPLES (sizeof samples / sizeof *samples)

/* Lengths of the text, one after the other; 0: no text. */
static const size_t lengths[] = { 5, 5, 300, 40, 9000, 100, 0, 8000, 1 };
#define LENGTHS (sizeof lengths / sizeof *lengths)

static char path[400], undo[400];

static char *make_note(size_t n, unsigned turn)
{
    char *text = malloc(n + 1);
    MUST(text != NULL);
    memset(text, (int)('a' + turn % 26), n);
    text[n] = 0;
    return text;
}

/* The sample in its own format, with free space. */
static void make_file(const struct sample *s)
{
    static const tnf_option room[] = { { "reserve", "32K" } };
    char from[600];
    tnf_file *file;
    tnf_builder *b;
    tnf_error e = { 0 };
    tnf_save_options how = { .size = sizeof how, .format = s->format, .replace = true };
    how.options = room;
    how.noptions = s->reserve ? 1 : 0;
    how.no_sync = true;
    snprintf(path, sizeof path, "%s/%s", files_temp(), s->name);
    snprintf(undo, sizeof undo, "%s/.%s.tenfold-undo", files_temp(), s->name);
    snprintf(from, sizeof from, "%s/formats/%s", TNF_TESTS_DIR, s->fixture);
    if (tnf_open(&file, from, NULL, &e) != TNF_OK)
        fprintf(stderr, "%s: %s\n", from, e.message);
    how.like = file;
    MUST(file != NULL && tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    MUST(tnf_builder_add_file(b, file, NULL) == TNF_OK);
    tnf_status status = tnf_save(b, path, &how, &e);
    CHECK(status == TNF_OK, "%s", e.message);
    tnf_builder_free(b);
    tnf_close(file);
}

/* Sets the note, or removes it, in place. */
static tnf_status edit_note(size_t n, unsigned turn, const tnf_allocator *a, tnf_error *e)
{
    tnf_file *file;
    tnf_builder *b = NULL;
    char *text = make_note(n, turn);
    const tnf_value value = tnf_value_string(text);
    tnf_save_options how = { .size = sizeof how };
    tnf_status status = tnf_open(&file, path, NULL, e);
    how.like = file;
    if (status == TNF_OK)
        status = tnf_builder_new(&b, a, e);
    if (status == TNF_OK)
        status = tnf_builder_add_file(b, file, e);
    if (status == TNF_OK)
        status = tnf_builder_set(b, NULL, KEY, n ? &value : NULL, e);
    if (status == TNF_OK)
        status = tnf_save_in_place(b, path, &how, e);
    tnf_builder_free(b);
    tnf_close(file);
    free(text);
    return status;
}

static void check_note(size_t n, unsigned turn)
{
    tnf_file *file;
    tnf_error e;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    char *text = make_note(n, turn);
    if (!CHECK(tnf_open(&file, path, NULL, &e) == TNF_OK, "%s", e.message)) {
        free(text);
        return;
    }
    const tnf_value *v = tnf_value_get(tnf_file_info(file)->attrs, KEY);
    CHECK(n == 0 ? !v : v && v->kind == TNF_STRING && v->n == n && !memcmp(v->as.s, text, n),
          "the note is not what was written");
    CHECK(tnf_verify(&r, file, NULL, &e) == TNF_OK && r.problems == 0, "it does not verify");
    tnf_close(file);
    free(text);
}

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* -------------------------------------------------------- changes succeed */

/* The name of each tensor, and where its bytes are. */
static uint64_t sum_places(void)
{
    tnf_file *file;
    uint64_t sum = 0;
    MUST(tnf_open(&file, path, NULL, NULL) == TNF_OK);
    for (size_t i = 0; tnf_at(file, i); i++)
        for (size_t k = 0; k < tnf_at(file, i)->nparts; k++)
            sum = sum * 31 + tnf_at(file, i)->parts[k].offset * 7 +
                  tnf_at(file, i)->parts[k].nbytes;
    tnf_close(file);
    return sum;
}

static void edits_work(const struct sample *s)
{
    tnf_error e = { 0 };
    struct stat before, after;
    make_file(s);
    uint64_t sum = sum_places();
    MUST(stat(path, &before) == 0);
    struct bytes first = { NULL, 0 };
    for (unsigned i = 0; i < LENGTHS; i++) {
        check_doing("%s: a note of %zu bytes", s->format, lengths[i]);
        tnf_status status = edit_note(lengths[i], i, NULL, &e);
        CHECK(status == TNF_OK, "%s: %s", tnf_status_name(status), e.message);
        check_note(lengths[i], i);
        CHECK(sum_places() == sum, "a tensor has moved");
        CHECK(files_count(files_temp(), "") == 1, "something is left beside it");
        if (i == 0)
            first = bytes_of_file(path);
    }
    MUST(stat(path, &after) == 0);
    CHECK(before.st_ino == after.st_ino, "it is another file");
    CHECK(!s->reserve || before.st_size == after.st_size, "its size has changed");
    check_doing("%s: the first note again", s->format);
    CHECK(edit_note(lengths[0], 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes again = bytes_of_file(path);
    CHECK(same_bytes(first, again), "the same change gives other bytes");
    free(first.p);
    free(again.p);
}

/* -------------------------------------------------- the process is killed */

struct step {
    size_t from, to;
};
static const struct step steps[] = { { 5, 6 }, { 5, 9000 }, { 9000, 20 }, { 6000, 7000 } };

/* Makes the change in a child process; true: the child reached the end. */
static bool in_child(size_t n, unsigned turn)
{
    int status;
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0)
        _exit(edit_note(n, turn, NULL, NULL) == TNF_OK ? 0 : 1);
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9, "it failed");
    return WEXITSTATUS(status) == 0;
}

static void put_bytes(struct bytes b)
{
    bytes_to_file(path, b.p, b.n);
    (void)!syscall(SYS_unlinkat, AT_FDCWD, undo, 0);
}

/* The file is the old one or the new one, or opening it reports that it is neither. */
static void check_found(struct bytes old, struct bytes fresh, unsigned *refused)
{
    tnf_file *file;
    tnf_error e;
    bool undone;
    struct bytes now = bytes_of_file(path);
    bool whole = same_bytes(now, old) || same_bytes(now, fresh);
    tnf_status status = tnf_open(&file, path, NULL, &e);
    CHECK((status == TNF_OK) == whole, "%s, and the file is %s", tnf_status_name(status),
          whole ? "whole" : "mixed");
    CHECK(status == TNF_OK || strstr(e.message, "interrupted"), "%s", e.message);
    *refused += status != TNF_OK;
    tnf_close(file);
    free(now.p);
    CHECK(tnf_undo(&undone, path, &e) == TNF_OK && undone == !whole, "%s", e.message);
    now = bytes_of_file(path);
    CHECK(same_bytes(now, old) || (whole && same_bytes(now, fresh)), "the old bytes are not back");
    free(now.p);
    CHECK(access(undo, F_OK) != 0, "the undo file is left");
}

static void edits_die(const struct sample *s, const struct step *t)
{
    tnf_error e = { 0 };
    unsigned refused = 0, k = 1;
    make_file(s);
    CHECK(edit_note(t->from, 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes old = bytes_of_file(path);
    CHECK(edit_note(t->to, 1, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes fresh = bytes_of_file(path);
    for (bool done = false; !done && k < 100; k++) {
        check_doing("%s: from %zu to %zu bytes, dead at call %u", s->format, t->from, t->to, k);
        put_bytes(old);
        memset(&fault, 0, sizeof fault);
        fault.what = DIE;
        fault.at = k;
        done = in_child(t->to, 1);
        memset(&fault, 0, sizeof fault);
        check_found(old, fresh, &refused);
        check_doing("%s: from %zu to %zu bytes, after call %u", s->format, t->from, t->to, k);
        CHECK(edit_note(t->to, 1, NULL, &e) == TNF_OK, "%s", e.message);
        check_note(t->to, 1);
    }
    CHECK(k > 2 && k < 100, "%u calls", k);
    CHECK(refused > 0 || t->to < 4000, "no moment between old and new was seen");
    free(old.p);
    free(fresh.p);
}

/* ------------------------------------------------------------- calls fail */

static void edits_fail(const struct sample *s, const struct step *t, bool for_good)
{
    static const int errors[] = { ENOSPC, EIO };
    tnf_error e = { 0 };
    tnf_status status = TNF_EIO;
    unsigned k = 1, refused = 0;
    make_file(s);
    CHECK(edit_note(t->from, 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes old = bytes_of_file(path);
    CHECK(edit_note(t->to, 1, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes fresh = bytes_of_file(path);
    for (; k < 100; k++) {
        check_doing("%s: from %zu to %zu bytes, call %u fails%s", s->format, t->from, t->to, k,
                    for_good ? ", and all after it" : "");
        put_bytes(old);
        memset(&fault, 0, sizeof fault);
        fault.what = FAIL;
        fault.at = k;
        fault.for_good = for_good;
        fault.err = errors[k % 2];
        status = edit_note(t->to, 1, NULL, &e);
        bool reached = fault.seen >= fault.at;
        memset(&fault, 0, sizeof fault);
        struct bytes now = bytes_of_file(path);
        /* syncing the directory and removing the undo file come after the change, and may fail */
        CHECK(same_bytes(now, old) || same_bytes(now, fresh) || (for_good && status != TNF_OK),
              "half a change after %s", tnf_status_name(status));
        CHECK(status != TNF_OK || same_bytes(now, fresh), "it is told to be done");
        free(now.p);
        check_found(old, fresh, &refused);
        if (!reached)
            break;
    }
    CHECK(status == TNF_OK && k > 1 && k < 100, "%u calls", k);
    CHECK(refused == 0 || for_good, "it was left mixed, though it could be put back");
    free(old.p);
    free(fresh.p);
}

/* ----------------------------------------------------------------- memory */

static void edits_without_memory(const struct sample *s)
{
    tnf_error e = { 0 };
    make_file(s);
    CHECK(edit_note(5, 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes old = bytes_of_file(path);
    for (int once = 0; once < 2; once++)
        for (uint64_t n = 1; n < 3000; n++) {
            struct memory_log log = { .fail_at = n, .fail_once = once };
            tnf_allocator a = memory_allocator(&log);
            check_doing("%s: allocation %llu%s", s->format, (unsigned long long)n,
                        once ? " alone" : " and all after it");
            tnf_status status = edit_note(9000, 1, &a, &e);
            CHECK(status == TNF_OK || status == TNF_ENOMEM, "%s: %s", tnf_status_name(status),
                  e.message);
            CHECK(log.blocks == 0 && log.wrong_sizes == 0, "%llu blocks are lost",
                  (unsigned long long)log.blocks);
            struct bytes now = bytes_of_file(path);
            CHECK((status == TNF_OK) != same_bytes(now, old), "the file is not what was told");
            CHECK(files_count(files_temp(), "") == 1, "something is left beside it");
            free(now.p);
            put_bytes(old);
            if (log.failed == 0)
                break;
        }
    free(old.p);
}

/* ----------------------------------------------- changes that are refused */

static void edits_refused(const struct sample *s)
{
    tnf_error e = { 0 };
    char other[420];
    make_file(s);
    CHECK(edit_note(5, 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes old = bytes_of_file(path);
    check_doing("%s: other names", s->format);
    snprintf(other, sizeof other, "%s-other", path);
    MUST(link(path, other) == 0);
    tnf_status status = edit_note(9000, 1, NULL, &e);
    CHECK(status == TNF_EUNSUPPORTED && strstr(e.message, "hard links"), "%s", e.message);
    struct bytes now = bytes_of_file(path);
    CHECK(same_bytes(now, old), "it was changed");
    free(now.p);
    MUST(unlink(other) == 0);
    check_doing("%s: no room", s->format);
    status = s->reserve ? edit_note(60000, 1, NULL, &e) : TNF_EUNSUPPORTED;
    CHECK(status == TNF_EUNSUPPORTED && (!s->reserve || strstr(e.message, "room")), "%s",
          e.message);
    now = bytes_of_file(path);
    CHECK(same_bytes(now, old), "it was changed");
    CHECK(files_count(files_temp(), "") == 1, "something is left beside it");
    free(now.p);
    free(old.p);
}

/* An undo file that belongs to another file, or is damaged, changes nothing. */
static void foreign_undo(const struct sample *s)
{
    tnf_error e = { 0 };
    tnf_file *file;
    bool undone;
    make_file(s);
    CHECK(edit_note(5, 0, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes old = bytes_of_file(path);
    fault.what = DIE;
    fault.at = 5; /* after open, write, sync and the directory's sync: a write to the file */
    (void)in_child(9000, 1);
    memset(&fault, 0, sizeof fault);
    struct bytes kept = bytes_of_file(undo);
    check_doing("%s: undo file", s->format);
    CHECK(kept.n > 64, "there is none");
    for (size_t i = 0; i < kept.n; i += 97) { /* a damaged undo file is never used */
        kept.p[i] ^= 1;
        bytes_to_file(path, old.p, old.n);
        bytes_to_file(undo, kept.p, kept.n);
        kept.p[i] ^= 1;
        CHECK(tnf_open(&file, path, NULL, &e) == TNF_OK, "%s", e.message);
        tnf_close(file);
        CHECK(tnf_undo(&undone, path, &e) == TNF_OK && !undone, "a broken one was used");
    }
    make_file(s); /* another file of the same name */
    CHECK(edit_note(8500, 3, NULL, &e) == TNF_OK, "%s", e.message);
    struct bytes now = bytes_of_file(path);
    bytes_to_file(undo, kept.p, kept.n);
    check_doing("%s: foreign undo file", s->format);
    CHECK(tnf_open(&file, path, NULL, &e) == TNF_OK, "%s", e.message);
    tnf_close(file);
    CHECK(tnf_undo(&undone, path, &e) == TNF_OK && !undone, "a foreign one was used");
    struct bytes after = bytes_of_file(path);
    CHECK(same_bytes(now, after), "the file was changed");
    MUST(unlink(undo) == 0);
    free(now.p);
    free(after.p);
    free(old.p);
    free(kept.p);
}

/* --------------------------------------------------------------- saving again */

/* Parts that are not stored at a place in the file have no form of their own. */
static bool same_stored(const struct fixture *f, struct bytes fresh, const tnf_part *a,
                        const tnf_part *b)
{
    if (a->payload > TNF_ENCODED)
        return a->nbytes == b->nbytes;
    return a->payload == b->payload && a->codec == b->codec && a->flags == b->flags &&
           a->nbytes == b->nbytes && a->stored == b->stored && b->stored <= fresh.n &&
           b->offset <= fresh.n - b->stored &&
           memcmp(f->file.p + a->offset, fresh.p + b->offset, (size_t)a->stored) == 0;
}

/* Two tensors may have the same name. */
static const tnf_object *in_copy(const tnf_file *after, size_t i, tnf_str name)
{
    const tnf_object *o = tnf_at(after, i);
    return o->name.n == name.n && !memcmp(o->name.p, name.p, name.n)
               ? o
               : tnf_find_n(after, name.p, name.n);
}

static void check_copy(const struct fixture *f, struct bytes fresh, const tnf_file *before,
                       const tnf_file *after)
{
    const tnf_info *x = tnf_file_info(before), *y = tnf_file_info(after);
    CHECK(x->objects == y->objects && x->nextras == y->nextras, "something is missing");
    for (size_t i = 0; i < x->objects && x->objects == y->objects; i++) {
        const tnf_object *o = tnf_at(before, i), *n = in_copy(after, i, o->name);
        if (!CHECK(n && n->nparts == o->nparts, "%.40s has other parts", o->name.p))
            continue;
        for (size_t k = 0; k < o->nparts; k++) {
            const tnf_part *p = &o->parts[k], *q = tnf_object_part(n, p->role);
            CHECK(q && same_stored(f, fresh, p, q), "%.40s is stored otherwise", o->name.p);
            CHECK(q && !p->digest == !q->digest, "%.40s has another digest", o->name.p);
            if (q && p->digest && q->digest && p->digest->text.p)
                CHECK(!strcmp(p->digest->text.p, q->digest->text.p), "%s became %s",
                      p->digest->text.p, q->digest->text.p);
        }
    }
    for (size_t i = 0; i < x->nextras && x->nextras == y->nextras; i++)
        CHECK(same_stored(f, fresh, &x->extras[i].bytes, &y->extras[i].bytes), "an extra differs");
}

/* A file that is saved like itself keeps its encodings, digests and extras. Returns true if every
 * byte is the same, too. */
static bool save_anew(const struct fixture *f, unsigned *copies)
{
    tnf_file *before, *after = NULL;
    tnf_builder *b;
    tnf_error e = { 0 };
    bool same = false;
    tnf_save_options how = { .size = sizeof how, .format = f->format, .replace = true };
    if (tnf_open(&before, f->path, NULL, NULL) != TNF_OK)
        return false;
    if (tnf_file_info(before)->size != f->file.n) { /* its tensors are in other files */
        tnf_close(before);
        return false;
    }
    how.like = before;
    how.no_sync = true;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    tnf_status status = tnf_builder_add_file(b, before, &e);
    if (status == TNF_OK)
        status = tnf_save(b, path, &how, &e);
    CHECK(status == TNF_OK || status == TNF_ELOSSY || status == TNF_EEXISTS, "%s", e.message);
    if (status == TNF_OK) {
        struct bytes fresh = bytes_of_file(path);
        CHECK(tnf_open(&after, path, NULL, &e) == TNF_OK, "%s", e.message);
        if (after)
            check_copy(f, fresh, before, after);
        same = same_bytes(f->file, fresh);
        ++*copies;
        free(fresh.p);
    }
    tnf_close(after);
    tnf_builder_free(b);
    tnf_close(before);
    return same;
}

/* Files that the formats' own programs wrote, or in a form that has only one spelling. */
static const char *const to_the_byte[] = {
    "safetensors/valid/real_types.safetensors",
    "safetensors/valid/real_metadata.safetensors",
    "safetensors/valid/data_in_other_order.safetensors",
    "gptrs-checkpoint/valid/chk_v2_rust_style.bin",
    "gptrs-archive/valid/ten_v2_mixed.gten",
    "finalfusion/valid/later_chunks.fifu",
    "finalfusion/valid/seed_f64.fifu",
    "ztensor0/valid/real_0.1.4_library.zt",
    "ztensor1/valid/real_1.2.3_package.zt",
    "ztensor2/valid/ref-zstd.zt",
    "ztensor2/valid/canonical-tied.zt",
    "ztensor2/valid/digest-sha256.zt",
};

static void files_anew(void)
{
    unsigned copies = 0, same = 0;
    fixtures_valid();
    snprintf(path, sizeof path, "%s/anew", files_temp());
    for (size_t i = 0; i < fixtures.n; i++) {
        tnf_format_info info = TNF_FORMAT_INFO_INIT;
        const struct fixture *f = &fixtures.list[i];
        check_doing("%s", f->label);
        if (!f->format || !tnf_format_named(&info, f->format) || !(info.caps & TNF_CAN_EDIT))
            continue;
        bool all = save_anew(f, &copies);
        same += all;
        for (size_t k = 0; k < sizeof to_the_byte / sizeof *to_the_byte; k++)
            CHECK(all || strcmp(f->label, to_the_byte[k]) != 0, "other bytes than before");
    }
    printf("%u files written anew, %u of them to the byte\n", copies, same);
    CHECK(same * 2 > copies, "too few are the same");
    (void)!syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int main(void)
{
    files_anew();
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct sample *s = &samples[i];
        check_doing("%s", s->format);
        edits_work(s);
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            edits_die(s, &steps[k]);
            edits_fail(s, &steps[k], false);
            edits_fail(s, &steps[k], true);
        }
        edits_without_memory(s);
        edits_refused(s);
        foreign_undo(s);
        (void)!syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    }
    return check_end("edits");
}
