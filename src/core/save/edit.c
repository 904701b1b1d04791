/* SPDX-License-Identifier: MIT */
/* Saving into the file itself. The format writes as usual, but every byte is compared with the one
 * in the file, and tensors that stay in place are skipped:
 *
 *   file      │ header      │ tensors …                      │
 *   written   │ header      │ (from the same place: skipped) │
 *   pieces       ▪  ▪▪▪                                          the differences
 *
 * If there is no room and the caller allows it, the file system moves everything after the header,
 * and the header is written completely (io/shift.h).
 *
 * Before anything is written, the result is opened, as pieces over the file. It must give the same
 * tensors at the same places, and the requested attributes.
 */
#include "core/save/save.h"

#include "io/shift.h"
#include <tenfold/repair.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPARED     ((size_t)64 << 10)
#define MOST         ((uint64_t)128 << 20) /* maximum of bytes that differ */
#define MOST_ALIGNED ((uint64_t)64 << 10)  /* maximum alignment of tensors that a shift keeps */
#define NEAR         64u                   /* this many equal bytes do not end a piece */

/* A run of bytes that differ: its place in the file, and in editing.fresh. */
struct piece {
    uint64_t at;
    size_t from, n;
};

struct editing {
    struct tnf_save save;
    const tnf_builder *builder;
    const tnf_file *like;
    const char *path;
    tnf_claim own;          /* used if `like` has no claim */
    const tnf_claim *claim; /* on the file, which is written through its descriptor */
    bool one_name;
    uint64_t at; /* position of the next byte to be written */
    uint64_t
        shift; /* distance that everything after the header moves: `fresh` is then the header */
    tnf_buf fresh, pieces;
    uint8_t *block; /* bytes of the file */
    tnf_arena arena;
};

static const struct piece *piece_at(const struct editing *x, size_t i)
{
    return &((const struct piece *)(const void *)x->pieces.p)[i];
}

static size_t pieces_of(const struct editing *x)
{
    return x->pieces.n / sizeof(struct piece);
}

/* --------------------------------------------------------------- comparing */

static tnf_status too_much(tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "more than %llu MiB would change",
                    (unsigned long long)(MOST >> 20));
}

static tnf_status add_piece(struct editing *x, uint64_t at, const uint8_t *p, size_t n,
                            tnf_error *e)
{
    size_t known = pieces_of(x);
    struct piece *last = known ? (struct piece *)(void *)x->pieces.p + known - 1 : NULL;
    struct piece fresh = { at, x->fresh.n, n };
    tnf_buf_put(&x->fresh, p, n);
    if (last && last->at + last->n == at)
        last->n += n;
    else
        tnf_buf_put(&x->pieces, &fresh, sizeof fresh);
    if (x->fresh.status == TNF_ELIMIT)
        return too_much(e);
    TNF_TRY(tnf_buf_status(&x->pieces, "the change", e));
    return tnf_buf_status(&x->fresh, "the change", e);
}

/* Collects runs of different bytes, which may contain a few equal ones. */
static tnf_status compare_block(struct editing *x, const uint8_t *p, size_t n, tnf_error *e)
{
    for (size_t i = 0; i < n;) {
        if (p[i] == x->block[i]) {
            i++;
            continue;
        }
        size_t end = i + 1;
        for (size_t k = end; k < n && k - end < NEAR; k++)
            if (p[k] != x->block[k])
                end = k + 1;
        TNF_TRY(add_piece(x, x->at + i, p + i, end - i, e));
        i = end;
    }
    return TNF_OK;
}

static tnf_status edit_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct editing *x = ctx;
    const tnf_source *old = x->like->source;
    const uint8_t *p = bytes;
    if (x->shift) {
        TNF_TRY(add_piece(x, x->at, p, n, e));
        x->at += n;
        return TNF_OK;
    }
    for (size_t part; n > 0; p += part, n -= part, x->at += part) {
        uint64_t there = x->at < old->size ? old->size - x->at : 0;
        part = n < COMPARED ? n : COMPARED;
        part = there > 0 && part > there ? (size_t)there : part;
        if (there == 0) {
            TNF_TRY(add_piece(x, x->at, p, part, e));
            continue;
        }
        TNF_TRY(tnf_source_read(old, x->at, x->block, part, e));
        TNF_TRY(compare_block(x, p, part, e));
    }
    return TNF_OK;
}

static tnf_status edit_skip(void *ctx, const tnf_source *from, uint64_t offset, uint64_t n,
                            bool *taken, tnf_error *e)
{
    struct editing *x = ctx;
    *taken = from == x->like->source && offset + x->shift == x->at;
    if (*taken)
        x->at += n;
    else if (from == x->like->source && n > COMPARED)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "its tensors would have to move");
    return TNF_OK;
}

/* ------------------------------------------------------------------ the result */

/* The first piece that ends after a byte. */
static size_t find_piece(const struct editing *x, uint64_t at)
{
    size_t low = 0, high = pieces_of(x);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (piece_at(x, mid)->at + piece_at(x, mid)->n <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static tnf_status read_both(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const struct editing *x = ctx;
    const tnf_source *old = x->like->source;
    uint64_t end = offset + n, skip = offset < x->shift ? x->shift - offset : 0;
    uint64_t from_old = offset < x->shift ? 0 : offset - x->shift;
    uint64_t there = from_old < old->size ? old->size - from_old : 0;
    if (skip < n && there > 0)
        TNF_TRY(tnf_source_read(old, from_old, (uint8_t *)dst + skip,
                                n - skip < there ? n - (size_t)skip : (size_t)there, e));
    for (size_t i = find_piece(x, offset); i < pieces_of(x) && piece_at(x, i)->at < end; i++) {
        const struct piece *p = piece_at(x, i);
        uint64_t from = p->at > offset ? p->at : offset;
        uint64_t to = p->at + p->n < end ? p->at + p->n : end;
        memcpy((uint8_t *)dst + (from - offset), x->fresh.p + p->from + (from - p->at),
               (size_t)(to - from));
    }
    return TNF_OK;
}

/* A missing text (NULL) differs from an empty one. */
static bool same_text(tnf_str a, tnf_str b)
{
    if (!a.p || !b.p)
        return !a.p && !b.p;
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static bool same_digest(const tnf_digest *a, const tnf_digest *b)
{
    if (!a || !b)
        return a == b;
    return a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0) &&
           same_text(a->text, b->text);
}

static bool same_part(const tnf_part *a, const tnf_part *b, uint64_t shift)
{
    return strcmp(a->role, b->role) == 0 && strcmp(a->type->id, b->type->id) == 0 &&
           a->offset + shift == b->offset && a->stored == b->stored && a->nbytes == b->nbytes &&
           a->payload == b->payload && a->codec == b->codec && a->flags == b->flags &&
           same_digest(a->digest, b->digest);
}

static bool same_tensor(const tnf_object *a, const tnf_object *b, uint64_t shift)
{
    bool same = b && tnf_same_shape(a, b) && a->nparts == b->nparts && a->order == b->order &&
                strcmp(a->layout->id, b->layout->id) == 0;
    for (uint16_t i = 0; same && i < a->nparts; i++)
        same = same_part(&a->parts[i], &b->parts[i], shift);
    return same;
}

static bool same_extra(const tnf_extra *a, const tnf_extra *b, uint64_t shift)
{
    return a->key.n == b->key.n && memcmp(a->key.p, b->key.p, a->key.n) == 0 &&
           same_part(&a->bytes, &b->bytes, shift);
}

static tnf_status check_tensors(const tnf_file *before, const tnf_file *after, uint64_t shift,
                                tnf_error *e)
{
    bool same = before->catalog.n == after->catalog.n &&
                before->catalog.nextras == after->catalog.nextras;
    for (size_t i = 0; same && i < before->catalog.n; i++) {
        const tnf_object *o = &before->catalog.objects[i];
        same = same_tensor(o, tnf_find_n(after, o->name.p, o->name.n), shift);
    }
    for (size_t i = 0; same && i < before->catalog.nextras; i++)
        same = same_extra(&before->catalog.extras[i], &after->catalog.extras[i], shift);
    return same ? TNF_OK
                : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "its tensors would have to move");
}

/* Does `b` contain all of `a`, except attributes that readers compute? *out is one that is
 * missing. */
static tnf_status find_missing(tnf_file *f, const tnf_value *a, const tnf_value *b,
                               const tnf_member **out, tnf_error *e)
{
    tnf_hash known;
    tnf_status status = tnf_index_members(&known, f, b, e);
    for (size_t i = 0; a && i < a->n && status == TNF_OK && !*out; i++) {
        const tnf_member *m = &a->as.members[i];
        uint32_t at = tnf_hash_find(&known, m->key.p, m->key.n);
        bool there = at != TNF_HASH_NONE && tnf_value_equal(&b->as.members[at].value, &m->value);
        if (!there && !tnf_registry_derives(m))
            *out = m;
    }
    tnf_hash_free(&known);
    return status;
}

static tnf_status check_attrs(tnf_file *f, const tnf_value *wanted, const tnf_value *got,
                              tnf_error *e)
{
    const tnf_member *m = NULL;
    TNF_TRY(find_missing(f, wanted, got, &m, e));
    if (!m)
        TNF_TRY(find_missing(f, got, wanted, &m, e));
    return m ? tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s would have another value when the file is read again",
                        TNF_QUOTED(m->key))
             : TNF_OK;
}

static tnf_status check_all_attrs(const tnf_catalog *wanted, tnf_file *got, tnf_error *e)
{
    const tnf_value attrs = tnf_attrs_value(&wanted->attrs);
    TNF_TRY(check_attrs(got, &attrs, got->info.attrs, e));
    for (size_t i = 0; i < wanted->n; i++) {
        const tnf_object *o = &wanted->objects[i], *there = tnf_find_n(got, o->name.p, o->name.n);
        TNF_TRY(check_attrs(got, o->attrs, there ? there->attrs : NULL, e));
    }
    return TNF_OK;
}

static tnf_open_options open_options(const struct editing *x)
{
    return (tnf_open_options) { .size = sizeof(tnf_open_options),
                                .format = x->like->format->name,
                                .limits = x->like->options.limits,
                                .allocator = x->builder->alloc };
}

static tnf_status check_outcome(struct editing *x, tnf_error *e)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_both };
    const tnf_open_options o = open_options(x);
    tnf_source *source;
    tnf_file *after = NULL;
    TNF_TRY(tnf_source_new(&source, &ops, x, x->at, &x->builder->alloc, e));
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_open_source_at(&after, source, x->path, &o, &why);
    if (tnf_is_file_fault(status))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the changed file could not be read: %s", why.message);
    if (status != TNF_OK && e)
        *e = why;
    if (status == TNF_OK)
        status = check_tensors(x->like, after, x->shift, e);
    if (status == TNF_OK)
        status = check_all_attrs(&x->builder->catalog, after, e);
    tnf_close(after);
    return status;
}

/* ---------------------------------------------------------------- the file */

static tnf_status check_like(const struct editing *x, tnf_error *e)
{
    const tnf_file *f = x->like;
    const char *wanted = x->save.options.format;
    if (!f)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "`like` must be the open file that will be changed");
    if (wanted && tnf_registry_find(wanted) != f->format)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a change in place cannot change the format");
    if (!(tnf_registry_caps(f->format) & TNF_CAN_EDIT))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "files of this format cannot be changed in place");
    if (f->siblings || f->format->stands_for_shards)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the model is in several files");
    if (f->needed_lenience || f->options.salvage || f->source->fd < 0)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "only a regular file that follows all rules of its format can be changed in place");
    return TNF_OK;
}

/* Opens the file for writing, locks it, and checks that it is the one that `like` has open. */
static tnf_status take_file(struct editing *x, tnf_error *e)
{
    struct stat st;
    x->claim = &x->like->claim;
    if (x->claim->fd < 0) {
        TNF_TRY(tnf_claim_take(&x->own, x->path, NULL, e));
        x->claim = &x->own;
    }
    if (x->claim->fd < 0 || !x->claim->writable)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the file cannot be written to");
    if (fstat(x->claim->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    if (!tnf_same_file(&x->claim->stamp, &x->like->source->stamp) ||
        !tnf_claim_holds(x->claim, x->path))
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file was replaced since it was read");
    if ((uint64_t)st.st_size != x->like->source->size)
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file was changed since it was read");
    x->one_name = st.st_nlink == 1;
    return TNF_OK;
}

/* Fails if another program has changed the file since it was opened: the change would be lost. */
static tnf_status check_unchanged(struct editing *x, tnf_error *e)
{
    const tnf_open_options o = open_options(x);
    tnf_file *now = NULL;
    bool undone;
    TNF_TRY(tnf_undo_run(&undone, x->path, x->claim->fd, e));
    tnf_status status = tnf_open(&now, x->path, &o, e);
    if (status == TNF_OK)
        status = undone ? TNF_EUNSUPPORTED : check_tensors(x->like, now, 0, e);
    if (status == TNF_OK)
        status = check_all_attrs(&x->like->catalog, now, e);
    if (status == TNF_EUNSUPPORTED)
        status = tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file was changed since it was read");
    tnf_close(now);
    return status;
}

/* *lacks: by how much the header is too long, if the format sets it. */
static tnf_status write_over(struct editing *x, uint64_t *lacks, tnf_error *e)
{
    static const tnf_sink_ops ops = { .version = TNF_SINK_OPS_VERSION, .write = edit_write };
    struct tnf_save *s = &x->save;
    tnf_sink *sink;
    TNF_TRY(tnf_sink_new(&sink, &ops, x, &s->arena.alloc, e));
    sink->skip = edit_skip;
    tnf_writer w = tnf_save_writer(s, sink, &x->arena);
    w.like = &x->like->reader;
    w.in_place = true;
    w.shift = x->shift;
    tnf_status status;
    TNF_CALL(status, e, s->format->write, &w);
    if (status == TNF_OK)
        status = tnf_sink_commit(sink, e);
    tnf_sink_close(sink);
    *lacks = w.lacks;
    if (status == TNF_OK && x->at < x->like->source->size && x->like->source->size - x->at > MOST)
        return too_much(e);
    return status;
}

/* Computes the distance of the shift: whole blocks of the file system, and aligned tensors stay
 * aligned. */
static tnf_status find_shift(struct editing *x, uint64_t lacks, tnf_error *e)
{
    uint64_t unit, data = x->like->reader.data_start;
    TNF_TRY(tnf_shift_unit(&unit, x->claim->fd, e));
    while (unit < MOST_ALIGNED && data % (2 * unit) == 0)
        unit *= 2;
    if (data == 0 || data > x->like->source->size)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the file has no tensors to shift");
    if (!tnf_ckd_align(&x->shift, lacks, unit) || x->shift > MOST || data > MOST)
        return too_much(e);
    x->at = 0;
    x->fresh.n = x->pieces.n = 0;
    return TNF_OK;
}

static tnf_status write_shifted(struct editing *x, uint64_t lacks, tnf_error *e)
{
    if (!x->like->format->can_shift)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "there is no room, and files of this format cannot be shifted");
    TNF_TRY(find_shift(x, lacks, e));
    TNF_TRY(write_over(x, &lacks, e));
    return x->fresh.n == x->like->reader.data_start + x->shift
               ? TNF_OK
               : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "its tensors would have to move");
}

static tnf_status apply_shifted(struct editing *x, tnf_error *e)
{
    const tnf_shift_file change = { .fd = x->claim->fd,
                                    .path = x->path,
                                    .size = x->like->source->size,
                                    .by = x->shift,
                                    .fresh = x->fresh.p,
                                    .n = (size_t)x->like->reader.data_start,
                                    .one_name = x->one_name,
                                    .alloc = x->builder->alloc };
    return tnf_shift_apply(&change, e);
}

static tnf_status apply_edit(struct editing *x, tnf_error *e)
{
    if (x->shift)
        return apply_shifted(x, e);
    size_t n = pieces_of(x);
    tnf_patch *patches = tnf_arena_array(&x->arena, n, sizeof *patches);
    if (!patches)
        return tnf_arena_fail(&x->arena, "the change", e);
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = piece_at(x, i);
        patches[i] = (tnf_patch) { .at = p->at, .n = p->n, .bytes = x->fresh.p + p->from };
    }
    const tnf_change_file change = { .fd = x->claim->fd,
                                     .path = x->path,
                                     .old_size = x->like->source->size,
                                     .new_size = x->at,
                                     .patches = patches,
                                     .n = n,
                                     .one_name = x->one_name,
                                     .alloc = x->builder->alloc };
    return tnf_change_apply(&change, e);
}

static tnf_status edit_file(struct editing *x, tnf_error *e)
{
    struct tnf_save *s = &x->save;
    uint64_t lacks = 0;
    x->block = tnf_arena_raw(&x->arena, COMPARED);
    if (!x->block)
        return tnf_arena_fail(&x->arena, "comparing", e);
    TNF_TRY(take_file(x, e));
    TNF_TRY(check_unchanged(x, e));
    TNF_TRY(tnf_save_parse(s, e));
    TNF_TRY(tnf_plan(s, &x->builder->catalog, e));
    tnf_status status = write_over(x, &lacks, e);
    if (status == TNF_EUNSUPPORTED && s->options.shift &&
        (lacks > 0 || !x->like->format->can_shift))
        status = write_shifted(x, lacks, e);
    TNF_TRY(status);
    TNF_TRY(check_outcome(x, e));
    return s->options.dry_run ? TNF_OK : apply_edit(x, e);
}

tnf_status tnf_save_in_place(const tnf_builder *b, const char *path,
                             const tnf_save_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(path, "path", e));
    struct editing x = { .builder = b, .path = path, .own.fd = -1 };
    TNF_TRY(tnf_save_take(&x.save.options, options, e));
    x.like = x.save.options.like;
    TNF_TRY(check_like(&x, e));
    x.save.format = x.like->format;
    tnf_arena_init(&x.save.arena, &b->alloc, UINT64_MAX);
    tnf_arena_init(&x.arena, &b->alloc, UINT64_MAX);
    tnf_buf_init(&x.fresh, &b->alloc, MOST);
    tnf_buf_init(&x.pieces, &b->alloc, UINT64_MAX);
    tnf_status status = edit_file(&x, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, x.save.format->name);
    tnf_claim_drop(&x.own);
    tnf_buf_free(&x.fresh);
    tnf_buf_free(&x.pieces);
    tnf_plan_end(&x.save);
    tnf_arena_free(&x.arena);
    tnf_arena_free(&x.save.arena);
    return status;
}

tnf_status tnf_undo(bool *undone, const char *path, tnf_error *e)
{
    TNF_TRY(tnf_need(path, "path", e));
    bool did = false;
    tnf_undo_state state;
    tnf_claim claim;
    if (undone)
        *undone = false;
    int fd = tnf_fs_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot open");
    tnf_status status = tnf_undo_look(&state, path, fd, e);
    close(fd);
    if (status != TNF_OK || state == TNF_UNDO_NONE || state == TNF_UNDO_FOREIGN)
        return status;
    TNF_TRY(tnf_claim_take(&claim, path, NULL, e));
    status = claim.fd >= 0 && claim.writable
                 ? tnf_undo_run(&did, path, claim.fd, e)
                 : tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "the file cannot be written to");
    tnf_claim_drop(&claim);
    if (undone)
        *undone = did;
    return status;
}
