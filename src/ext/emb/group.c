/* SPDX-License-Identifier: MIT */
/* One group of a file with several matrices, as a file of its own.
 *
 *   vocab  embeddings  norms │ 2/embeddings  2/norms │ 3/vocab  3/embeddings
 *                            │                       │
 *   group 2:  vocab ─────────── 2/embeddings as embeddings, 2/norms as norms
 *
 * A group without words of its own uses those of the group before it. The attributes of a later
 * vocabulary are those of its group's matrix; here they become attributes of the file. The form is
 * that of finalfusion files, and of all files to which they are converted.
 */
#include "ext/emb/group.h"

#include "base/error.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define MATRIX      "embeddings"
#define MOST_GROUPS 999999999u /* more than a file can have */

/* Attributes of a vocabulary. */
static const char *const vocab_keys[] = {
    "finalfusion.vocab",  "finalfusion.min_n", "finalfusion.max_n", "finalfusion.buckets",
    "finalfusion.hashes", "finalfusion.seed",  "finalfusion.bow",   "finalfusion.eow",
};
#define KEYS     (sizeof vocab_keys / sizeof *vocab_keys)
#define METADATA "finalfusion.metadata"

/* The tensor of a group; NULL if there is none. */
static const tnf_object *find_member(const tnf_file *file, uint32_t group, const char *name)
{
    char whole[32];
    if (group == 1)
        return tnf_find(file, name);
    snprintf(whole, sizeof whole, "%u/%s", group, name);
    return tnf_find(file, whole);
}

/* The number before "/embeddings"; 0 if the name is another one, or the file has no such group. */
static uint32_t find_group(const tnf_file *file, tnf_str name)
{
    const char *p = name.p, *stop = p + name.n;
    uint64_t group = name.n ? tnf_take_digits(&p, stop) : 0;
    const tnf_str rest = { p, (size_t)(stop - p) };
    if (group == 0 || group > MOST_GROUPS || name.p[0] == '0' || !tnf_str_is(rest, "/" MATRIX))
        return 0;
    if (group == 1) /* the first group has no number; here it has one, to be chosen alone */
        return find_member(file, 2, MATRIX) && find_member(file, 1, MATRIX) ? 1 : 0;
    return tnf_find_n(file, name.p, name.n) ? (uint32_t)group : 0;
}

/* Attributes of the vocabulary of a group: of the file, or of the group's matrix. */
static const tnf_value *attrs_of(const tnf_file *file, uint32_t group)
{
    const tnf_object *matrix = find_member(file, group, MATRIX);
    return group == 1 ? tnf_file_info(file)->attrs : matrix ? matrix->attrs : NULL;
}

/* The group whose vocabulary this group uses; 0: none. */
static uint32_t find_owner(const tnf_file *file, uint32_t group)
{
    while (group > 0 && !find_member(file, group, "vocab") &&
           !tnf_value_get(attrs_of(file, group), vocab_keys[0]))
        group--;
    return group;
}

static tnf_status add_member(tnf_builder *b, const tnf_file *file, uint32_t group, const char *name,
                             tnf_error *e)
{
    const tnf_object *o = find_member(file, group, name);
    return o ? tnf_builder_add_object(b, o, name, e) : TNF_OK;
}

/* Adds the matrix, and its norms. Rows without norms were stored so on purpose: saving does not
 * divide them by their lengths. */
static tnf_status add_matrix(tnf_builder *b, const tnf_file *file, uint32_t group, tnf_error *e)
{
    const tnf_value no = { .kind = TNF_BOOL };
    TNF_TRY(add_member(b, file, group, MATRIX, e));
    for (size_t i = 0; i < KEYS; i++)
        TNF_TRY(tnf_builder_set(b, MATRIX, vocab_keys[i], NULL, e));
    TNF_TRY(tnf_builder_set(b, MATRIX, METADATA, NULL, e));
    TNF_TRY(add_member(b, file, group, "norms", e));
    return find_member(file, group, "norms")
               ? TNF_OK
               : tnf_builder_set(b, NULL, "finalfusion.norms", &no, e);
}

static tnf_status add_attrs(tnf_builder *b, const tnf_file *file, uint32_t group, uint32_t owner,
                            tnf_error *e)
{
    const tnf_value *attrs = attrs_of(file, owner);
    for (size_t i = 0; i < KEYS; i++) {
        const tnf_value *v = tnf_value_get(attrs, vocab_keys[i]);
        if (v)
            TNF_TRY(tnf_builder_set(b, NULL, vocab_keys[i], v, e));
    }
    const tnf_value *text = tnf_value_get(attrs_of(file, group), METADATA);
    text = text ? text : tnf_value_get(attrs, METADATA);
    return text ? tnf_builder_set(b, NULL, METADATA, text, e) : TNF_OK;
}

static tnf_status add_group(tnf_builder *b, const tnf_file *file, uint32_t group, uint32_t owner,
                            tnf_error *e)
{
    TNF_TRY(add_member(b, file, owner, "vocab", e));
    TNF_TRY(add_member(b, file, owner, "ngrams", e));
    TNF_TRY(add_member(b, file, owner, "ngrams.index", e));
    TNF_TRY(add_matrix(b, file, group, e));
    return add_attrs(b, file, group, owner, e);
}

tnf_status tnf_group_open(tnf_group_view *out, const tnf_file *file, tnf_str name,
                          const tnf_open_options *how, tnf_error *e)
{
    *out = (tnf_group_view) { 0 };
    uint32_t group = find_group(file, name);
    uint32_t owner = find_owner(file, group);
    if (!owner)
        return TNF_OK;
    tnf_status status = tnf_builder_new(&out->builder, how ? &how->allocator : NULL, e);
    if (status == TNF_OK)
        status = add_group(out->builder, file, group, owner, e);
    if (status == TNF_OK)
        status = tnf_open_builder(&out->file, out->builder, how, e);
    if (status != TNF_OK)
        tnf_group_close(out);
    return status;
}

void tnf_group_close(tnf_group_view *view)
{
    tnf_close(view->file);
    tnf_builder_free(view->builder);
    *view = (tnf_group_view) { 0 };
}
