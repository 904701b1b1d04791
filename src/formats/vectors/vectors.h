/* SPDX-License-Identifier: MIT */
/* Shared by the two families of vector files: kinds of files, whose type only the extension tells,
 * and the choice of the tensor to write. */
#ifndef TNF_FORMATS_VECTORS_H
#define TNF_FORMATS_VECTORS_H

#include "format.h"

#define VEC_NAME      "vectors"
#define VEC_DISTANCES "distances"

/* A kind of file. The table of a family ends with a NULL name. */
typedef struct vec_kind {
    const char *name; /* its extension */
    const char *type;
    bool known; /* the extension is in use; others are accepted only if the option names the type */
} vec_kind;

/* The kind by the extension, "fvecs" or "fvec". NULL: unknown. */
const vec_kind *tnf_vec_by_extension(const vec_kind *kinds, const char *ext);
/* Is it an extension of either family? Such a file is read as the other family only on request. */
bool tnf_vec_extension(const char *ext);
/* The kind by the option "type" ("auto": none). */
const vec_kind *tnf_vec_by_type(const vec_kind *kinds, const char *type);

/* Chooses the tensor to write among all, and fills the verdicts of `fit`. The strings of vec_rules
 * are reasons for verdicts. */
typedef struct vec_rules {
    const vec_kind *kinds;
    const char *lone;                     /* why a further tensor is refused */
    const char *untold;                   /* why a reader would not recognise the type */
    const char *other;                    /* why the type contradicts the extension or option */
    bool empty;                           /* no rows, or no columns, are allowed */
    bool (*guessed)(const tnf_object *o); /* would a reader guess the type without an extension? */
    bool pairs;                           /* `vectors` of i32 may come with `distances` of f32 */
} vec_rules;
tnf_status tnf_vec_fits(tnf_fit *fit, const vec_rules *rules, const char *type);

/* Is `d` the distances of these ids? */
bool tnf_vec_is_pair(const tnf_object *ids, const tnf_object *distances);

#endif
