/* SPDX-License-Identifier: MIT */
/* Attribute trees by dotted keys: looking up, setting, removing. Nothing is changed in place: a new
 * tree shares with the old one what is the same. */
#ifndef TENFOLD_CLI_META_H
#define TENFOLD_CLI_META_H

#include "out.h"
#include <tenfold/build.h>

/* Changing a tree. All that is made lives until meta_end(). */
typedef struct meta_editor {
    tnf_builder *builder; /* parses JSON */
    bool as_text;         /* --string: values are taken as they are */
    bool narrow;          /* new numbers are u32, i32, u64, i64 or f32 */
    const tnf_value *as;  /* --as: of this type; NULL: none is asked for */
    struct meta_chunk *chunks;
    char why[256]; /* what is wrong, after something gave false */
} meta_editor;

void *meta_take(meta_editor *m, size_t n); /* zeroed; NULL sets `why` */
void meta_end(meta_editor *m);
/* Sets `why` and gives false. */
#define meta_fail(m, ...) (meta_message(m, __VA_ARGS__), false)
void meta_message(meta_editor *m, const char *format, ...) TNF_PRINTF(2, 3);

/* At each level the longest key that the rest of the path begins with is taken, since keys may hold
 * dots; arrays are counted from 0; a JSON document is gone into, and what is found there is a JSON
 * document. */
bool meta_get(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path);
/* The one value whose key ends with these words; false if there is none, or several: `why` names
 * them. */
bool meta_find(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str words);
/* Sets what is there, in its own type, or adds a key: the rest of the path that is not there. */
bool meta_set(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
              const char *text);
bool meta_remove(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path);
bool meta_equal(const tnf_value *a, const tnf_value *b);

/* meta_type.c: a value from what was typed, like another (NULL: none) or as JSON has it. */
bool meta_convert(meta_editor *m, tnf_value *out, const tnf_value *like, const char *text);
/* What all members or items are like, if they are like each other; or NULL. */
const tnf_value *meta_like_members(const tnf_value *map);

/* What the items of an array are like; in `room`, if the array only tells. NULL: nothing is known.
 */
const tnf_value *meta_like_items(const tnf_value *array, tnf_value *room);
/* A value of that type ("u32", "array<string>"), empty or 0: for others to be like it. */
bool meta_type_named(meta_editor *m, tnf_value *out, const char *name, size_t n);
/* The same value of another type, if that holds it. */
bool meta_retype(meta_editor *m, tnf_value *out, const tnf_value *v, const char *type);
/* meta_tree.c: puts a value in the place of what is there. */
bool meta_put(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
              const tnf_value *value);

/* meta_json.c: the same for a path within a JSON document, changing nothing else in its text. */
bool meta_json_get(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path);
bool meta_json_set(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path, const char *text);
bool meta_json_remove(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path);

/* Does the path begin with this key? Then *rest is what follows its dot (p NULL: nothing). */
bool meta_begins(tnf_str path, tnf_str key, tnf_str *rest);
/* An index at the beginning of a path. */
bool meta_index(tnf_str path, size_t *out, tnf_str *rest);

#endif
