/* SPDX-License-Identifier: MIT */
/* Shared by plan.c (attributes, extras, the stash) and plan_objects.c (tensors). */
#ifndef TNF_CORE_SAVE_PLAN_H
#define TNF_CORE_SAVE_PLAN_H

#include "core/save/save.h"

struct planning {
    struct tnf_save *save;
    const tnf_format *format;
    /* the parts of the stash, separated by commas */
    tnf_buf attrs, kinds, tensors, objects, order, orders, foreign, sequence;
    tnf_hash keys; /* of save->text */
    tnf_attrs own; /* plan.c: keys of the format's own attributes, if it has can.own_prefix */
    tnf_fit fit;
    bool stashes;   /* there is a place for the stash */
    bool as_tensor; /* and that place is a tensor */
    const char *no_place;
    const uint32_t *shared; /* shared_bytes.c; NULL: no tensors share bytes */
    uint64_t refused;
    char first[160]; /* the first item that would be lost */
};

/* plan.c: adds an item to the plan; the second function also refuses it unless it may be lost */
void tnf_plan_note(const struct planning *l, tnf_fate fate, const char *kind, tnf_str name,
                   const char *reason);
void tnf_plan_tell(struct planning *l, tnf_fate fate, const char *kind, tnf_str name,
                   const char *reason);
/* Adds a change to the plan that was not requested, can be undone, and is not refused. */
void tnf_plan_unasked(const struct planning *l, const char *kind, tnf_str name, const char *reason);
/* Adds a note on a tensor that is written. */
void tnf_plan_remark(const struct planning *l, tnf_str tensor, const char *reason);
void tnf_plan_comma(tnf_buf *b);
/* Writes the name of a tensor, which need not be valid text. */
void tnf_plan_name(tnf_buf *b, tnf_str name);
/* Are its key, the keys of its maps, and its JSON text UTF-8? No format holds other keys. */
bool tnf_plan_utf8(const tnf_member *m);
#define TNF_PLAN_NOT_UTF8 "its key, or a key or JSON text in it, is not UTF-8"
/* Can a typed tree express it exactly? */
bool tnf_plan_plain(const tnf_value *v);
/* Does the format hold it unchanged? `of` is its tensor, or NULL for the file: then it must be
 * known that tnf_plan_utf8() is true. */
bool tnf_plan_holds(const tnf_can *can, const tnf_member *m, const tnf_object *of);
/* Are its maps in the order in which a format with sorted maps returns them? If not, they are kept
 * natively, and also in the stash because of the order. */
bool tnf_plan_in_order(const tnf_value *v);
/* Is it "<family>.metadata", a map of strings: the text map of some format? */
bool tnf_plan_text_map(const tnf_member *m);
/* Does the format, with these options, have a place for this attribute of a tensor? */
bool tnf_plan_places(const struct planning *l, const tnf_member *m);

/* plan_objects.c: decides the fate of each tensor of l->fit.catalog; then plans the tensors. */
tnf_status tnf_plan_judge(struct planning *l, tnf_error *e);
tnf_status tnf_plan_objects(struct planning *l, tnf_error *e);

/* note_order.c: notes the order of attributes, if the format would not return it. */
void tnf_note_order(struct planning *l, const tnf_attrs *attrs);
void tnf_note_order_of(struct planning *l, const tnf_object *object);

/* note_order.c: notes the order of the tensors, if it is content and the format sorts them. */
void tnf_note_sequence(struct planning *l);

/* shared_bytes.c: for each tensor that has the same bytes as an earlier one, the position of the
 * first of them, plus 1; else 0. NULL if there are none. */
tnf_status tnf_find_shared(const uint32_t **out, const tnf_catalog *catalog, tnf_arena *arena,
                           tnf_error *e);

#endif
