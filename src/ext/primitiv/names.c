/* SPDX-License-Identifier: MIT */
/* Converts paths to names, and finds tensors by path. */
#include "ext/primitiv/names.h"

#include "base/utf8.h"

#include <string.h>

/* ------------------------------------------------------------------- names */

struct room {
    char *p;
    size_t size, n;
};

static void put_to_room(void *to, char c)
{
    struct room *r = to;
    if (r->n + 1 < r->size)
        r->p[r->n] = c;
    r->n++;
}

size_t tnf_primitiv_join(char *out, size_t size, const tnf_str *path, size_t n)
{
    static const tnf_str nothing = TNF_STR("");
    struct room r = { .p = out, .size = size };
    for (const char *p = PRIM_VALUE; n == 0 && *p; p++)
        put_to_room(&r, *p);
    for (size_t i = 0; path && i < n; i++)
        tnf_prim_path_escape(path[i].p ? path[i] : nothing, i + 1 == n, put_to_room, &r);
    if (size > 0)
        out[r.n < size ? r.n : size - 1] = 0;
    return r.n;
}

size_t tnf_primitiv_split(tnf_str *path, size_t room, char *memory, tnf_str name)
{
    prim_path at = tnf_prim_path_of(name.p ? name : (tnf_str)TNF_STR(""));
    size_t n = 0;
    for (int c = PRIM_NEXT; c != PRIM_END; n++) {
        const char *from = memory;
        while ((c = tnf_prim_path_next(&at)) >= 0)
            *memory++ = (char)c;
        if (n < room)
            path[n] = (tnf_str) { from, (size_t)(memory - from) };
        *memory++ = 0; /* replaces the dot, or ends the last piece */
    }
    return n;
}

tnf_status tnf_prim_need_path(const tnf_str *path, size_t n, const tnf_str *statistic, tnf_error *e)
{
    TNF_TRY(tnf_need_array(path, n, "path", e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need_str(path[i], "path", e));
    return statistic ? tnf_need_str(*statistic, "statistic", e) : TNF_OK;
}

void tnf_prim_name_put(tnf_buf *name, const tnf_str *path, size_t n, const tnf_str *statistic)
{
    if (n == 0)
        tnf_buf_puts(name, PRIM_VALUE);
    for (size_t i = 0; i < n; i++)
        tnf_prim_path_put(name, path[i], i + 1 == n);
    if (statistic) {
        tnf_buf_u8(name, '@');
        tnf_buf_put(name, statistic->p, statistic->n);
    }
}

tnf_value tnf_prim_text(tnf_str text)
{
    bool utf8 = tnf_utf8_valid(NULL, text.p, text.n);
    return (tnf_value) { .kind = utf8 ? TNF_STRING : TNF_BYTES, .n = text.n, .as.s = text.p };
}

/* ------------------------------------------------------------------ shapes */

tnf_status tnf_prim_shape_checked(tnf_primitiv_shape *out, const tnf_primitiv_shape *shape,
                                  tnf_error *e)
{
    *out = *shape;
    out->batch += out->batch == 0;
    if (shape->n > PRIM_MAX_DIMS)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a shape has %u dimensions, but at most 8 are allowed", shape->n);
    TNF_TRY(tnf_need_array(shape->dims, shape->n, "dims", e));
    for (uint32_t i = 0; i < shape->n; i++)
        if (shape->dims[i] == 0)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "dimension %u of a shape is 0, but it must be at least 1", i);
    while (out->n > 0 && out->dims[out->n - 1] == 1)
        out->n--;
    return TNF_OK;
}

/* -------------------------------------------------------------------- find */

bool tnf_prim_is_nameless(const tnf_file *file)
{
    tnf_str type = tnf_value_chars(tnf_value_get(tnf_file_info(file)->attrs, "primitiv.type"));
    return type.p && (prim_same(type, (tnf_str)TNF_STR("tensor")) ||
                      prim_same(type, (tnf_str)TNF_STR("parameter")));
}

static bool is_wanted(const tnf_object *o, tnf_str owner, const tnf_str *statistic)
{
    tnf_str key = tnf_value_chars(tnf_value_get(o->attrs, "primitiv.stat"));
    if (!statistic)
        return !key.p;
    return key.p && prim_same(key, *statistic) && prim_same(tnf_prim_owner_of(o), owner);
}

static const tnf_object *find_named(const tnf_file *file, tnf_str name, size_t owner_n,
                                    const tnf_str *statistic)
{
    const tnf_str owner = { name.p, owner_n };
    const tnf_object *o = tnf_find_n(file, name.p, name.n);
    if (!o || is_wanted(o, owner, statistic))
        return o;
    /* If another tensor has the name, the statistic has a different one. */
    for (size_t i = 0; statistic && (o = tnf_at(file, i)); i++)
        if (is_wanted(o, owner, statistic))
            return o;
    return NULL;
}

tnf_status tnf_primitiv_find(const tnf_object **out, const tnf_file *file, const tnf_str *path,
                             size_t n, const tnf_str *statistic, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(tnf_prim_need_path(path, n, statistic, e));
    tnf_buf name;
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_buf_init(&name, &alloc, SIZE_MAX);
    tnf_prim_name_put(&name, path, n, statistic);
    size_t owner_n = name.n - (statistic && name.n ? statistic->n + 1 : 0);
    tnf_status status = tnf_buf_status(&name, "the name", e);
    tnf_str text = { name.n ? (const char *)name.p : "", name.n };
    if (status == TNF_OK) {
        *out = (n == 0) == tnf_prim_is_nameless(file) ? find_named(file, text, owner_n, statistic)
                                                      : NULL;
        if (!*out)
            status = tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no %s %s",
                              statistic ? "statistic" : "parameter", TNF_QUOTED(text));
    }
    tnf_buf_free(&name);
    return status;
}
