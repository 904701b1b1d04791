/* SPDX-License-Identifier: MIT */
/* Loads parameters into the caller's memory, all or nothing:
 *
 *   match    each tensor of the file with its binding; report the rest of both
 *   check    types and shapes
 *   read     everything, to temporary memory
 *   commit   copy; this cannot fail
 */
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/hash.h"
#include "base/sized.h"
#include "ext/primitiv/names.h"
#include "kernels/transpose.h"
#include <tenfold/bind.h>

#include <string.h>

/* The key of a tensor: flags, the length of the owner's name, the name, the key of a statistic. */
enum { KEY_HEAD = 9, IS_STATISTIC = 1, IS_NAMELESS = 2 };

struct place {
    const tnf_object *object; /* NULL: missing */
    size_t key, key_n;        /* in `keys` */
    uint64_t at;              /* in the temporary memory */
};

struct task {
    tnf_primitiv_bind_options options;
    tnf_allocator alloc;
    const tnf_file *file;
    tnf_primitiv_binding *bindings;
    size_t n;
    struct place *places; /* one per binding */
    tnf_buf keys, key;    /* of all bindings; of one tensor */
    tnf_hash by_key;
    uint8_t *memory;
    uint64_t bytes;
    size_t missing, extra; /* extra: only parameters */
    tnf_str first_extra;
};

/* ------------------------------------------------------------------- match */

static tnf_str key_at(const void *ctx, uint32_t position)
{
    const struct task *j = ctx;
    return (tnf_str) { (const char *)j->keys.p + j->places[position].key,
                       j->places[position].key_n };
}

static void put_head(tnf_buf *b, unsigned what, uint64_t owner_n)
{
    tnf_buf_u8(b, (uint8_t)what);
    tnf_buf_u64(b, owner_n);
}

static tnf_status put_binding_key(struct task *j, size_t i, tnf_error *e)
{
    const tnf_primitiv_binding *w = &j->bindings[i];
    struct place *p = &j->places[i];
    unsigned what = (w->statistic ? IS_STATISTIC : 0u) | (w->n == 0 ? IS_NAMELESS : 0u);
    TNF_TRY(tnf_prim_need_path(w->path, w->n, w->statistic, e));
    p->key = j->keys.n;
    put_head(&j->keys, what, 0);
    tnf_prim_name_put(&j->keys, w->path, w->n, NULL);
    uint64_t owner_n = j->keys.n - p->key - KEY_HEAD;
    if (w->statistic)
        tnf_buf_put(&j->keys, w->statistic->p, w->statistic->n);
    TNF_TRY(tnf_buf_status(&j->keys, "the names", e));
    tnf_put_le64(j->keys.p + p->key + 1, owner_n);
    p->key_n = j->keys.n - p->key;
    return TNF_OK;
}

static tnf_status index_bindings(struct task *j, tnf_error *e)
{
    for (size_t i = 0; i < j->n; i++)
        TNF_TRY(put_binding_key(j, i, e));
    for (size_t i = 0; i < j->n; i++) {
        uint32_t previous;
        if (!tnf_hash_add(&j->by_key, (uint32_t)i, false, &previous))
            return tnf_no_memory("names", e);
        if (previous != TNF_HASH_NONE)
            return tnf_fail(
                e, TNF_EINVAL, TNF_NO_OFFSET, "there are two bindings of the tensor %s",
                TNF_QUOTED(((tnf_str) { (const char *)j->keys.p + j->places[i].key + KEY_HEAD,
                                        j->places[i].key_n - KEY_HEAD })));
    }
    return TNF_OK;
}

/* Finds the binding of a tensor; TNF_HASH_NONE if there is none. */
static tnf_status wanted_by(struct task *j, const tnf_object *o, bool nameless, uint32_t *out,
                            tnf_error *e)
{
    bool stat = tnf_prim_is_stat(o);
    tnf_str owner = stat ? tnf_prim_owner_of(o) : o->name;
    unsigned what = (stat ? IS_STATISTIC : 0u) | (nameless ? IS_NAMELESS : 0u);
    j->key.n = 0;
    put_head(&j->key, what, owner.n);
    tnf_buf_put(&j->key, owner.p, owner.n);
    if (stat) {
        tnf_str key = tnf_value_chars(tnf_value_get(o->attrs, "primitiv.stat"));
        tnf_buf_put(&j->key, key.p, key.n);
    }
    TNF_TRY(tnf_buf_status(&j->key, "the names", e));
    *out = tnf_hash_find(&j->by_key, (const char *)j->key.p, j->key.n);
    return TNF_OK;
}

static tnf_status match_places(struct task *j, tnf_error *e)
{
    const tnf_object *o;
    bool nameless = tnf_prim_is_nameless(j->file);
    TNF_TRY(index_bindings(j, e));
    for (size_t i = 0; (o = tnf_at(j->file, i)); i++) {
        uint32_t at;
        TNF_TRY(wanted_by(j, o, nameless, &at, e));
        if (at != TNF_HASH_NONE && !j->places[at].object) {
            j->places[at].object = o;
            continue;
        }
        if (j->options.extra)
            j->options.extra(j->options.ctx, o);
        if (!tnf_prim_is_stat(o) && j->extra++ == 0)
            j->first_extra = o->name;
    }
    return TNF_OK;
}

static tnf_status count_missing(struct task *j, tnf_error *e)
{
    tnf_str first = { 0 };
    for (size_t i = 0; i < j->n; i++) {
        if (j->places[i].object)
            continue;
        if (j->options.missing)
            j->options.missing(j->options.ctx, &j->bindings[i]);
        if (j->missing++ == 0)
            first = (tnf_str) { (const char *)j->keys.p + j->places[i].key + KEY_HEAD,
                                j->places[i].key_n - KEY_HEAD };
    }
    if (j->extra && !j->options.allow_extra)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        j->extra > 1
                            ? "the file has %zu parameters without a binding; the first is %s"
                            : "the file has %zu parameter without a binding: %s",
                        j->extra, TNF_QUOTED(j->first_extra));
    if (j->missing && j->options.need_all)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        j->missing > 1
                            ? "the file lacks %zu tensors that bindings need; the first is %s"
                            : "the file lacks %zu tensor that a binding needs: %s",
                        j->missing, TNF_QUOTED(first));
    return TNF_OK;
}

/* ------------------------------------------------------------------- check */

static bool same_shape(const tnf_object *o, const tnf_primitiv_shape *shape)
{
    uint32_t n = tnf_prim_dims_of(o);
    while (n > 0 && o->shape[n - 1] == 1)
        n--;
    if (n != shape->n || tnf_prim_batch_of(o) != shape->batch)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (o->shape[i] != shape->dims[i])
            return false;
    return true;
}

static tnf_status wrong_shape(const tnf_object *o, const tnf_primitiv_shape *shape, tnf_error *e)
{
    char has[64], wants[64];
    uint64_t dims[PRIM_MAX_DIMS + 1];
    uint32_t n = shape->n;
    for (uint32_t i = 0; i < n; i++)
        dims[i] = shape->dims[i];
    if (shape->batch > 1)
        dims[n++] = shape->batch;
    tnf_shape_text(has, sizeof has, o);
    tnf_shape_text(wants, sizeof wants, &(tnf_object) { .shape = dims, .rank = n });
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has the shape %s, not %s",
                    TNF_QUOTED(o->name), has, wants);
}

static tnf_status check_parameters(struct task *j, tnf_error *e)
{
    for (size_t i = 0; i < j->n; i++) {
        const tnf_object *o = j->places[i].object;
        tnf_primitiv_shape shape;
        TNF_TRY(tnf_prim_shape_checked(&shape, &j->bindings[i].shape, e));
        if (!o)
            continue;
        const tnf_part *data = tnf_object_part(o, "data");
        if (!data || strcmp(tnf_layout_id(o->layout), "dense") != 0 ||
            data->type != tnf_type_of(TNF_F32))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is not a tensor of 32-bit floats",
                            TNF_QUOTED(o->name));
        if (!same_shape(o, &shape))
            return wrong_shape(o, &shape, e);
        if (!j->bindings[i].data && data->nbytes)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the binding of %s has no memory",
                            TNF_QUOTED(o->name));
        j->places[i].at = j->bytes;
        if (!tnf_ckd_add(&j->bytes, j->bytes, data->nbytes))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "the parameters together have more than 2^64 bytes");
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- read */

static tnf_status read_all(struct task *j, tnf_error *e)
{
    size_t size, n = 0;
    if (!tnf_to_size(&size, j->bytes) || !(j->memory = tnf_alloc(&j->alloc, size + 1)))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %llu bytes of parameters",
                        (unsigned long long)j->bytes);
    tnf_request *requests = tnf_alloc0(&j->alloc, (j->n + 1) * sizeof *requests);
    if (!requests)
        return tnf_no_memory("requests", e);
    for (size_t i = 0; i < j->n; i++)
        if (j->places[i].object)
            requests[n++] = (tnf_request) { tnf_object_part(j->places[i].object, "data"),
                                            j->memory + j->places[i].at };
    tnf_status status = tnf_read_many(requests, n, NULL, e);
    tnf_free(&j->alloc, requests, (j->n + 1) * sizeof *requests);
    return status;
}

/* ------------------------------------------------------------------ commit */

/* Transposes elements of any rank to row-major order, one by one. */
static void transpose_elements(float *dst, const float *src, const uint64_t *shape, uint32_t rank)
{
    uint64_t index[PRIM_MAX_DIMS + 1] = { 0 }, stride[PRIM_MAX_DIMS + 1], to = 0, step = 1;
    for (uint32_t d = 0; d < rank; d++) {
        stride[d] = step;
        step *= shape[d]; /* cannot overflow: the bytes of the tensor do not */
    }
    for (uint64_t from = 0; from < step; from++) {
        dst[to] = src[from];
        for (uint32_t d = rank; d-- > 0;) {
            to += stride[d];
            if (++index[d] < shape[d])
                break;
            to -= stride[d] * shape[d];
            index[d] = 0;
        }
    }
}

static void put_floats(float *dst, const void *bytes, const tnf_object *o)
{
    uint64_t shape[PRIM_MAX_DIMS + 1]; /* without dimensions of 1, which make no difference */
    uint32_t rank = 0;
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->shape[i] != 1)
            shape[rank++] = o->shape[i];
    if (rank < 2 || o->order == TNF_ORDER_F)
        memcpy(dst, bytes, (size_t)tnf_object_part(o, "data")->nbytes);
    else if (rank == 2)
        tnf_transpose(dst, (size_t)shape[0], bytes, (size_t)shape[1], (size_t)shape[0],
                      (size_t)shape[1], sizeof *dst);
    else
        transpose_elements(dst, bytes, shape, rank);
    tnf_swap_le(dst, tnf_object_part(o, "data")->nbytes / sizeof *dst, sizeof *dst);
}

static void commit_places(struct task *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const tnf_object *o = j->places[i].object;
        j->bindings[i].loaded = o != NULL;
        if (o)
            put_floats(j->bindings[i].data, j->memory + j->places[i].at, o);
    }
}

/* --------------------------------------------------------------------- all */

static tnf_status bind_all(struct task *j, tnf_error *e)
{
    if (j->n >= TNF_HASH_NONE)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there are too many bindings");
    j->places = tnf_alloc0(&j->alloc, (j->n + 1) * sizeof *j->places);
    if (!j->places)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu bindings", j->n);
    TNF_TRY(match_places(j, e));
    TNF_TRY(count_missing(j, e));
    TNF_TRY(check_parameters(j, e));
    TNF_TRY(read_all(j, e));
    commit_places(j);
    return TNF_OK;
}

tnf_status tnf_primitiv_bind(const tnf_file *file, tnf_primitiv_binding *bindings, size_t n,
                             const tnf_primitiv_bind_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(tnf_need_array(bindings, n, "bindings", e));
    struct task j = { .file = file, .bindings = bindings, .n = n };
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_primitiv_bind_options, &j.options, options, e));
    j.alloc = tnf_allocator_or_default(&j.options.allocator);
    tnf_buf_init(&j.keys, &j.alloc, SIZE_MAX);
    tnf_buf_init(&j.key, &j.alloc, SIZE_MAX);
    tnf_hash_init(&j.by_key, &j.alloc, key_at, &j);
    tnf_status status = bind_all(&j, e);
    tnf_free(&j.alloc, j.memory, (size_t)j.bytes + 1);
    tnf_free(&j.alloc, j.places, (n + 1) * sizeof *j.places);
    tnf_hash_free(&j.by_key);
    tnf_buf_free(&j.key);
    tnf_buf_free(&j.keys);
    return status;
}
