/* SPDX-License-Identifier: MIT */
/* Creates a file. It is written without a name and synced. It gets its name if the name is free, or
 * belongs to an empty file, which is replaced under its lock. A crash leaves nothing. */
#include "ext/points/points.h"

#include "base/sized.h"
#include "io/fs.h"
#include "io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_named(const tnf_space *s, const char *name)
{
    return !s->type && s->resolution && strcmp(s->resolution, name) == 0;
}

static tnf_status check_resolution(const tnf_space *s, int8_t *out, tnf_error *e)
{
    *out = is_named(s, "string") ? TNF_VS_STRING : TNF_VS_JSON;
    if (is_named(s, "string") || is_named(s, "json") ||
        (s->type && tnf_vs_resolution(s->type, out)))
        return TNF_OK;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "%s is not a resolution of VS; use bit, u8 to u64, i8 to i64, f16, f32, f64, "
                    "string or json",
                    s->type ? s->type->id : s->resolution ? TNF_VISIBLE(s->resolution) : "nothing");
}

static tnf_status check_space(const tnf_space *s, tnf_vs_meta *m, tnf_error *e)
{
    TNF_TRY(tnf_need_array(s->dims, s->rank, "dims", e));
    *m = (tnf_vs_meta) { .dims = s->dims, .rank = s->rank, .pack = s->pack, .paging = s->paging };
    TNF_TRY(check_resolution(s, &m->resolution, e));
    if (s->rank == 0 && !s->scalar)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a space needs at least one dimension");
    if (s->rank > TNF_POINTS_META_MOST)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a space of rank %u is too large", s->rank);
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->dims[i] == 0 || s->dims[i] > UINT32_MAX)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "a dimension must be from 1 to 4294967295, not %llu",
                            (unsigned long long)s->dims[i]);
    tnf_status status = tnf_vs_meta_measure(m, TNF_NO_OFFSET, e);
    if (status != TNF_OK && e)
        e->status = TNF_EINVAL;
    return status == TNF_OK ? TNF_OK : TNF_EINVAL;
}

/* Composes the meta block and the terminal. */
static tnf_status compose_head(tnf_points *p, tnf_vs_meta *m, const tnf_value *attributes,
                               tnf_buf *b, tnf_error *e)
{
    static const tnf_value empty = { .kind = TNF_MAP };
    tnf_buf packed;
    tnf_buf_init(&packed, &p->alloc, UINT32_MAX);
    tnf_status status = tnf_points_pack_value(p, &packed, attributes ? attributes : &empty, e);
    m->attributes = (tnf_str) { (const char *)packed.p, packed.n };
    if (status == TNF_OK) {
        tnf_vs_put_meta(b, m, p->options.varint_msb);
        status = tnf_points_check_meta(b, e);
        tnf_buf_u8(b, TNF_VS_END);
    }
    if (status == TNF_OK) {
        status = tnf_buf_status(b, "the meta block", e);
    }
    tnf_buf_free(&packed);
    return status;
}

static tnf_status write_new(tnf_points *p, const tnf_buf *b, int fd, tnf_error *e)
{
    static const uint8_t header[TNF_VS_HEADER] = { 'V', 'S', 0, 0 };
    TNF_TRY(tnf_disk_write(p, fd, 0, header, sizeof header, e));
    TNF_TRY(tnf_disk_write(p, fd, TNF_VS_HEADER, b->p, b->n, e));
    return tnf_disk_sync(p, fd, e);
}

/* Replaces an existing file, whose lock is held. It must be empty, and still have the name. */
static tnf_status replace_locked(tnf_fresh *f, int there, tnf_error *e)
{
    struct stat st;
    if (fstat(there, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    if (!S_ISREG(st.st_mode) || st.st_size != 0 ||
        st.st_nlink == 0) /* another program was faster */
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET,
                        "a file with this name exists and is not empty");
    tnf_keep_rights(f->fd, there, &st);
    return tnf_fresh_place(f, true, e);
}

static tnf_status replace_empty(const tnf_points *p, tnf_fresh *f, tnf_error *e)
{
    const tnf_points_options *o = &p->options;
    int there = open(p->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (there < 0)
        return tnf_fail_sys(e, errno, "cannot create the file");
    tnf_status status = TNF_OK;
    if (o->lock != TNF_POINTS_NO_LOCK)
        status = tnf_lock_ask(there, true,
                              o->lock == TNF_POINTS_WAIT      ? TNF_LOCK_FOREVER
                              : o->lock == TNF_POINTS_TIMEOUT ? o->timeout_ms
                                                              : 0,
                              o->go_on, o->go_on_ctx, e);
    if (status == TNF_OK)
        status = replace_locked(f, there, e);
    close(there); /* also releases the lock; waiting processes find the new file */
    return status;
}

static tnf_status place_fresh(tnf_points *p, tnf_fresh *f, bool *made, tnf_error *e)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the new file");
    TNF_TRY(tnf_points_go_on(p, e));
    tnf_error why;
    tnf_status status = tnf_fresh_place(f, false, &why);
    *made = status == TNF_OK;
    if (status == TNF_EEXISTS)
        status = replace_empty(p, f, e);
    else if (status != TNF_OK && e)
        *e = why;
    TNF_TRY(status);
    p->fd = f->fd;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    f->fd = -1;
    return tnf_disk_sync_placed(p, p->path, e);
}

static tnf_status create_file(tnf_points *p, const tnf_space *space, bool *made, tnf_error *e)
{
    tnf_vs_meta m;
    tnf_buf b;
    tnf_fresh fresh = { .fd = -1 };
    TNF_TRY(check_space(space, &m, e));
    tnf_buf_init(&b, &p->alloc, UINT64_MAX);
    tnf_status status = compose_head(p, &m, space->attributes, &b, e);
    if (status == TNF_OK)
        status = tnf_fresh_open(&fresh, p->path, 0666, e);
    if (status == TNF_OK)
        status = write_new(p, &b, fresh.fd, e);
    if (status == TNF_OK)
        status = place_fresh(p, &fresh, made, e);
    tnf_fresh_drop(&fresh);
    tnf_buf_free(&b);
    return status;
}

tnf_status tnf_points_create(tnf_points **out, const char *path, const tnf_space *space,
                             const tnf_points_options *options, tnf_error *e)
{
    tnf_points *p;
    tnf_space given;
    *out = NULL;
    TNF_TRY(tnf_need(space, "space", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_space, &given, space, e));
    TNF_TRY(tnf_points_make(&p, path, options, e));
    p->options.write = true;
    bool made = false; /* the name is new */
    tnf_status done = create_file(p, &given, &made, e), status = done;
    if (done == TNF_OK || done == TNF_EUNSYNCED)
        status = tnf_points_enter(p, false, done == TNF_OK ? e : NULL);
    if (status == TNF_OK) {
        tnf_points_leave(p);
        p->moved = false;
        *out = p;
        return done;
    }
    if (done == TNF_OK && made)
        (void)unlink(p->path);
    tnf_points_close(p);
    return done == TNF_EUNSYNCED ? done : status;
}
