/* SPDX-License-Identifier: MIT */
/* Attribute trees with dotted keys: looking up, setting, removing. A tree is never changed in
 * place: a new tree is made, which shares the unchanged values with the old one. */
#ifndef TENFOLD_CLI_META_H
#define TENFOLD_CLI_META_H

#include "out.h"
#include <tenfold/build.h>

/* The state of changes to a tree. All results live until meta_end(). */
typedef struct meta_editor {
    tnf_builder *builder; /* parses JSON */
    bool as_text;         /* --string: values are taken as they are */
    bool narrow;          /* new numbers are u32, i32, u64, i64 or f32 */
    bool any_type;        /* a value may get another type than the old one had */
    const tnf_value *as;  /* --as: a value of the requested type, or NULL */
    struct meta_chunk *chunks;
    bool no_memory;
    char why[256]; /* the message, after a function returned false */
} meta_editor;

void *meta_take(meta_editor *m, size_t n); /* zeroed; NULL sets `why` */
void meta_end(meta_editor *m);
/* Sets `why` and returns false. */
#define meta_fail(m, ...) (meta_message(m, __VA_ARGS__), false)
void meta_message(meta_editor *m, const char *format, ...) TNF_PRINTF(2, 3);

/* Keys may contain dots, so at each level the longest key is used with which the rest of the path
 * begins. Items of arrays are counted from 0. A path may lead into a JSON document; the result is
 * then a JSON document, too. */
bool meta_get(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path);
/* Finds the value whose key ends with these words. Returns false if there is none, or if there are
 * several, which `why` names. */
bool meta_find(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str words);
/* Sets an existing value, keeping its type, or adds a key: the rest of the path, which does not
 * exist. */
bool meta_set(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
              const char *text);
bool meta_remove(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path);
bool meta_equal(const tnf_value *a, const tnf_value *b);

/* meta_any.c: does the key begin with one of these names of attributes (tnf_format_info.json)? Then
 * *rest is what follows, as for meta_begins(). */
bool meta_in_json(const char *names, tnf_str key, tnf_str *name, tnf_str *rest);
/* The same tree without widths of integers and types of arrays, as JSON has it. */
bool meta_as_json(meta_editor *m, tnf_value *out, const tnf_value *v);

/* meta_type.c: makes a value from typed text, of the type of `like`, or (NULL) of its JSON type. */
bool meta_convert(meta_editor *m, tnf_value *out, const tnf_value *like, const char *text);
/* One of the members or items if all have the same type, or NULL. */
const tnf_value *meta_like_members(const tnf_value *map);

/* A value of the type of an array's items, or NULL if their type is unknown. If the array is empty
 * but has a declared type, the value is made in `room`. */
const tnf_value *meta_like_items(const tnf_value *array, tnf_value *room);
/* An empty or zero value of the named type ("u32", "array<string>"), as a model for others. */
bool meta_type_named(meta_editor *m, tnf_value *out, const char *name, size_t n);
/* Converts a value to another type, if that type can hold it. */
bool meta_retype(meta_editor *m, tnf_value *out, const tnf_value *v, const char *type);
/* meta_tree.c: replaces an existing value. */
bool meta_put(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
              const tnf_value *value);

/* meta_json.c: the same for a path within a JSON document. The rest of its text does not change. */
bool meta_json_get(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path);
bool meta_json_set(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path, const char *text);
bool meta_json_remove(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path);

/* Does the path begin with this key? Then *rest is the path after the dot (p NULL: nothing). */
bool meta_begins(tnf_str path, tnf_str key, tnf_str *rest);
/* Parses an index at the beginning of a path. */
bool meta_index(tnf_str path, size_t *out, tnf_str *rest);

#endif
