/* SPDX-License-Identifier: MIT */
/* Deletes points: the type of a block, one byte, becomes '0'. The length stays, since it leads to
 * the next block.
 *
 *   one point   that byte, fsync
 *   several     a note after '$' (formats/vs/note.h), fsync: from here on all of them are deleted
 *               their bytes, fsync
 *               to shred: their payloads, fsync
 *               the note is cut off
 *
 * A crash leaves the old file, or a note, which all readers respect and the next writer completes.
 */
#include "ext/points/points.h"

#include "base/rising.h"
#include "io/fs.h"

#include <stdlib.h>
#include <string.h>

#define WIPE ((size_t)64 << 10)

struct wanted {
    tnf_point_id *ids; /* sorted by offset */
    size_t n;
    uint64_t *offsets; /* of the blocks to change, ascending; as much room as for ids */
    size_t kept;
    bool unchecked, shred;
};

/* Checks a block that has the offset of ids[i], against all ids of that offset. */
static tnf_status check_block(tnf_points *p, struct wanted *w, size_t *i, tnf_error *e)
{
    const tnf_vs_chain *c = &p->chain;
    bool blank = c->type == TNF_VS_BLANK;
    if (c->type == TNF_VS_META && w->unchecked)
        return tnf_fail(e, TNF_EINVAL, c->at, "this is the meta block, which cannot be deleted");
    for (; *i < w->n && w->ids[*i].offset == c->at; (*i)++)
        if (!w->unchecked)
            TNF_TRY(tnf_points_match_live(p, w->ids[*i], e));
    if (w->shred || !blank)
        w->offsets[w->kept++] = c->at;
    return TNF_OK;
}

/* Checks that each id is of a block that may be deleted. Leaves out duplicates and, unless
 * shredding, blocks that are already blank. */
static tnf_status check_wanted(tnf_points *p, struct wanted *w, tnf_error *e)
{
    const tnf_vs_chain *c = &p->chain;
    if (w->unchecked)
        TNF_TRY(tnf_points_check_moved(p, e));
    p->used = true;
    tnf_points_rewind(p, TNF_VS_HEADER);
    for (size_t i = 0; i < w->n;) {
        uint64_t wanted = w->ids[i].offset;
        TNF_TRY(tnf_points_next(p, e));
        bool passed = c->type == TNF_VS_END || c->at > wanted;
        if (passed && w->unchecked)
            return tnf_fail(e, TNF_ENOTFOUND, wanted, "there is no point at this offset");
        if (passed)
            return tnf_points_match_live(p, w->ids[i], e);
        if (c->at == wanted)
            TNF_TRY(check_block(p, w, &i, e));
    }
    return TNF_OK;
}

static tnf_status wipe_block(tnf_points *p, uint64_t at, tnf_error *e)
{
    uint8_t head[TNF_VS_HEAD];
    TNF_TRY(tnf_disk_read(p->fd, at, head, sizeof head, e));
    uint64_t length = tnf_le32(head + 1);
    uint8_t *zeros = tnf_alloc0(&p->alloc, WIPE);
    if (!zeros)
        return tnf_no_memory("wiping", e);
    tnf_status status = TNF_OK;
    for (uint64_t done = 0; done < length && status == TNF_OK;) {
        size_t n = length - done < WIPE ? (size_t)(length - done) : WIPE;
        status = tnf_disk_write(p, p->fd, at + TNF_VS_HEAD + done, zeros, n, e);
        done += n;
    }
    tnf_free(&p->alloc, zeros, WIPE);
    return status;
}

static tnf_status blank_block(tnf_points *p, uint64_t at, tnf_error *e)
{
    static const uint8_t type = TNF_VS_BLANK;
    return tnf_disk_write(p, p->fd, at, &type, 1, e);
}

/* Calls `act` for each noted block that the chain really reaches, so a wrong note does no other
 * harm. */
static tnf_status each_noted(tnf_points *p, tnf_status (*act)(tnf_points *, uint64_t, tnf_error *),
                             tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    const tnf_vs_note *note = &c->note;
    tnf_points_rewind(p, TNF_VS_HEADER);
    for (size_t i = 0; i < note->n;) {
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_END)
            break;
        if (c->type == TNF_VS_BLANK && c->at == note->offsets[i])
            TNF_TRY(act(p, c->at, e));
        while (i < note->n && note->offsets[i] <= c->at)
            i++;
    }
    return tnf_disk_sync(p, p->fd, e);
}

tnf_status tnf_points_finish(tnf_points *p, tnf_error *e)
{
    uint64_t end = p->chain.note.end;
    TNF_TRY(each_noted(p, blank_block, e));
    if (p->chain.note.flags & TNF_VS_SHRED)
        TNF_TRY(each_noted(p, wipe_block, e));
    if (tnf_disk_cut(p, p->fd, end + 1, NULL) == TNF_OK) /* otherwise the note is applied again */
        p->chain.size = end + 1;
    tnf_vs_note_forget(&p->chain);
    return TNF_OK;
}

static tnf_status write_note(tnf_points *p, const tnf_buf *b, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(b, "the list of deleted points", e));
    if (p->chain.size > p->tail + 1) /* the note must be the end of the file */
        TNF_TRY(tnf_disk_cut(p, p->fd, p->tail + 1, e));
    tnf_error why;
    tnf_status status = tnf_disk_write(p, p->fd, p->tail + 1, b->p, b->n, &why);
    if (status == TNF_OK)
        status = tnf_disk_sync(p, p->fd, &why);
    if (status != TNF_OK && e)
        *e = why;
    p->chain.size = p->tail + 1 + b->n;
    if (status == TNF_OK || tnf_disk_cut(p, p->fd, p->tail + 1, NULL) == TNF_OK)
        return status;
    return tnf_vs_note_read(&p->chain, UINT64_MAX, NULL) == TNF_OK && p->chain.note.n
               ? tnf_fail_unsynced(e, &why) /* the note is written, so the points are deleted */
               : status;
}

static tnf_status note_down(tnf_points *p, const uint64_t *sorted, size_t n, bool shred,
                            tnf_error *e)
{
    tnf_buf b;
    TNF_TRY(tnf_points_find_tail(p, e));
    tnf_buf_init(&b, &p->alloc, UINT64_MAX);
    tnf_status status = tnf_vs_note_put(&b, p->tail, sorted, n, shred ? TNF_VS_SHRED : 0, e);
    if (status == TNF_OK)
        status = tnf_points_go_on(p, e);
    if (status == TNF_OK)
        status = write_note(p, &b, e);
    tnf_buf_free(&b);
    return status;
}

/* The points are deleted when the note is on the disk. If the rest fails, the next writer does it;
 * but then the points are not shredded yet, which is reported. */
static tnf_status delete_noted(tnf_points *p, const uint64_t *sorted, size_t n, bool shred,
                               tnf_error *e)
{
    tnf_error why;
    TNF_TRY(note_down(p, sorted, n, shred, e));
    tnf_status status = tnf_vs_note_read(&p->chain, UINT64_MAX, &why);
    if (status == TNF_OK)
        status = tnf_points_finish(p, &why);
    if (status == TNF_OK || !shred)
        return TNF_OK;
    return tnf_fail(e, status, TNF_NO_OFFSET,
                    "the points are deleted, but not yet overwritten (%s); the next change of the "
                    "file will overwrite them",
                    why.message);
}

tnf_status tnf_points_delete_sorted(tnf_points *p, const uint64_t *sorted, size_t n, bool shred,
                                    tnf_error *e)
{
    if (n > 1 || shred)
        return delete_noted(p, sorted, n, shred, e);
    TNF_TRY(tnf_points_go_on(p, e));
    TNF_TRY(blank_block(p, sorted[0], e));
    return tnf_disk_sync_done(p, p->fd, e);
}

static int id_compare(const void *a, const void *b)
{
    const tnf_point_id *x = a, *y = b;
    return tnf_u64_compare(&x->offset, &y->offset);
}

static tnf_status delete_wanted(tnf_points *p, struct wanted *w, tnf_error *e)
{
    qsort(w->ids, w->n, sizeof *w->ids, id_compare);
    TNF_TRY(check_wanted(p, w, e));
    return w->kept ? tnf_points_delete_sorted(p, w->offsets, w->kept, w->shred, e) : TNF_OK;
}

static tnf_status delete_ids(tnf_points *p, const tnf_point_id *ids, size_t n, unsigned flags,
                             tnf_error *e)
{
    struct wanted w = { .n = n,
                        .unchecked = flags & TNF_POINTS_UNCHECKED,
                        .shred = flags & TNF_POINTS_SHRED };
    if (n > SIZE_MAX / sizeof *ids)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there are too many ids");
    w.ids = tnf_alloc(&p->alloc, n * sizeof *w.ids);
    w.offsets = tnf_alloc(&p->alloc, n * sizeof *w.offsets);
    tnf_status status = TNF_OK;
    if (w.ids && w.offsets) {
        memcpy(w.ids, ids, n * sizeof *ids);
        status = delete_wanted(p, &w, e);
    } else {
        status = tnf_no_memory("ids", e);
    }
    tnf_free(&p->alloc, w.ids, n * sizeof *w.ids);
    tnf_free(&p->alloc, w.offsets, n * sizeof *w.offsets);
    return status;
}

tnf_status tnf_points_delete(tnf_points *p, const tnf_point_id *ids, size_t n, unsigned flags,
                             tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need_array(ids, n, "ids", e));
    TNF_TRY(tnf_points_check_flags(flags, TNF_POINTS_SHRED | TNF_POINTS_UNCHECKED, e));
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_points_enter(p, true, e));
    tnf_status status = delete_ids(p, ids, n, flags, e);
    tnf_points_leave(p);
    return status;
}
