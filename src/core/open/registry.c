/* SPDX-License-Identifier: MIT */
/* The formats, from the one list. */
#include "base/sized.h"
#include "base/str.h"
#include "core/core.h"

#include <string.h>

#define X(id) extern const tnf_format tnf_format_##id;
#include "formats/list.h"
#undef X

static const tnf_format *const formats[] = {
#define X(id) &tnf_format_##id,
#include "formats/list.h"
#undef X
};

#define COUNT (sizeof formats / sizeof *formats)

const char *tnf_version(void)
{
    return TNF_VERSION_STRING;
}

const tnf_format *tnf_registry_at(size_t i)
{
    return i < COUNT ? formats[i] : NULL;
}

unsigned tnf_registry_caps(const tnf_format *f)
{
#ifdef TENFOLD_READ_ONLY
    return f->caps & TNF_CAN_READ;
#else
    return f->caps;
#endif
}

const tnf_format *tnf_registry_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(formats[i]->family, name) == 0 && tnf_registry_caps(formats[i]) & TNF_CAN_WRITE)
            return formats[i];
    return NULL;
}

static void copy_lower(char out[16], const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p && n < 15; p++)
        out[n++] = tnf_lower_case(*p);
    out[n] = 0;
}

/* "zarr.zip" for "x.zarr.zip", if a format has that extension. */
static bool is_double(char out[16], const char *name, const char *dot)
{
    while (dot > name && *--dot != '.')
        ;
    if (dot <= name || strlen(dot) > 15)
        return false;
    copy_lower(out, dot + 1);
    for (size_t i = 0; i < COUNT; i++)
        if (tnf_list_has(formats[i]->extensions, out))
            return true;
    return false;
}

const char *tnf_extension(char out[16], const char *path)
{
    const char *name = tnf_path_end(path), *dot = strrchr(name, '.');
    if (dot && is_double(out, name, dot))
        return out;
    copy_lower(out, dot ? dot + 1 : "");
    return out;
}

tnf_status tnf_registry_by_extension(const tnf_format **out, const char *path, tnf_error *e)
{
    char ext[16];
    tnf_extension(ext, path);
    *out = NULL;
    for (size_t i = 0; i < COUNT; i++) {
        const tnf_format *f = formats[i];
        if (!(tnf_registry_caps(f) & TNF_CAN_WRITE) || !*ext || !tnf_list_has(f->extensions, ext))
            continue;
        if (*out && strcmp((*out)->family, f->family) != 0)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extension '.%s' may be %s or %s",
                            ext, (*out)->name, f->name);
        if (!*out)
            *out = f;
    }
    if (*out)
        return TNF_OK;
    if (!*ext)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the file name has no extension, which would tell the format");
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "no format that can be written has the extension '.%s'", ext);
}

bool tnf_registry_owns(const char *key, size_t n)
{
    for (size_t i = 0; i < COUNT; i++)
        if (tnf_str_listed((tnf_str) { key, n }, formats[i]->can.file_attrs))
            return true;
    return false;
}

tnf_str tnf_derived_text(const tnf_value *v)
{
    if (v->kind == TNF_STRING || v->kind == TNF_JSON)
        return (tnf_str) { v->as.s, v->n };
    if (v->kind == TNF_BOOL && !v->as.b)
        return (tnf_str) { "false", 5 };
    if ((v->kind == TNF_UINT || v->kind == TNF_INT) && v->as.u == 0)
        return (tnf_str) { "0", 1 };
    if (v->kind == TNF_MAP && v->n == 0)
        return (tnf_str) { "{}", 2 };
    return (tnf_str) { NULL, 0 };
}

static const char *list_of(const tnf_format *f, bool spelling)
{
    return spelling ? f->can.spelling : f->can.derived;
}

/* Is "key", or "key=value" for a value that can be written that way, in a format's list? All words
 * of a list begin with the same letter (tests/unit/test_registry.c checks this), so the search ends
 * there for most attributes. */
static bool is_listed(const tnf_member *attr, bool spelling)
{
    char text[128];
    tnf_str word = attr->key, said = tnf_derived_text(&attr->value);
    if (word.n && memchr(word.p, '=', word.n))
        return false; /* in a list, '=' begins a value */
    for (int with_value = 0; with_value < 2; with_value++) {
        for (size_t i = 0; i < COUNT; i++) {
            const char *list = list_of(formats[i], spelling);
            if (list && word.n && *list == *word.p && tnf_str_listed(word, list))
                return true;
        }
        if (!said.p || said.n > sizeof text || attr->key.n + said.n + 1 > sizeof text)
            return false;
        memcpy(text, attr->key.p, attr->key.n);
        text[attr->key.n] = '=';
        memcpy(text + attr->key.n + 1, said.p, said.n);
        word = (tnf_str) { text, attr->key.n + 1 + said.n };
    }
    return false;
}

bool tnf_registry_derives(const tnf_member *attr)
{
    return is_listed(attr, false);
}

bool tnf_registry_spells(const tnf_member *attr)
{
    return is_listed(attr, true);
}

/* ----------------------------------------------------------------- public */

tnf_status tnf_format_describe(tnf_format_info *out, const tnf_format *f, tnf_error *e)
{
    static const char *const metadata[] = { "none", "text", "typed" };
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_format_info), e));
    const tnf_format_info info = {
        .size = sizeof info,
        .name = f->name,
        .title = f->title,
        .extensions = f->extensions,
        .family = f->family,
        .caps = tnf_registry_caps(f),
        .types = f->can.types,
        .layouts = f->can.layouts,
        .metadata = metadata[f->can.attrs],
        .read_options = f->read_options,
        .write_options = f->write_options,
        .folds = f->can.folds,
        .unfolds = f->can.unfolds,
        .document = f->can.document,
        .prefix = f->can.own_prefix,
        .json = f->can.json_attrs,
        .narrow = f->can.narrow_numbers,
    };
    tnf_result_fill(out, &info, sizeof info);
    return TNF_OK;
}

bool tnf_format_at(tnf_format_info *out, size_t i)
{
    return i < COUNT && tnf_format_describe(out, formats[i], NULL) == TNF_OK;
}

tnf_status tnf_format_for_path(tnf_format_info *out, const char *path, tnf_error *error)
{
    TNF_TRY(tnf_need(path, "path", error));
    const tnf_format *f;
    TNF_TRY(tnf_registry_by_extension(&f, path, error));
    return tnf_format_describe(out, f, error);
}

bool tnf_format_named(tnf_format_info *out, const char *name)
{
    const tnf_format *f = name ? tnf_registry_find(name) : NULL;
    return f && tnf_format_describe(out, f, NULL) == TNF_OK;
}
