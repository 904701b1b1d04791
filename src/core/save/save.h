/* SPDX-License-Identifier: MIT */
/* What saving passes along: builder → plan → write. */
#ifndef TNF_CORE_SAVE_SAVE_H
#define TNF_CORE_SAVE_SAVE_H

#include "core/core.h"

/* Files that something was taken from, if only attributes. */
struct added_file {
    const struct added_file *next;
    const tnf_file *file;
};

struct tnf_builder {
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_catalog catalog;
    const struct added_file *files;
};

/* What adapt.c did to a tensor. */
enum {
    TNF_CHANGE_PARTS = 1, /* each part became a tensor */
    TNF_CHANGE_TYPE = 2,
    TNF_CHANGE_SHAPE = 4, /* a scalar got a dimension */
    TNF_CHANGE_ORDER = 8,
    TNF_CHANGE_NAME = 16 /* bytes that names may not have there, as %XX */
};

typedef struct tnf_change {
    const tnf_object *of; /* as it was */
    unsigned what;
    uint16_t pieces; /* tensors that it became, one after the other */
} tnf_change;

/* A second file that is written with the first. */
struct tnf_beside {
    tnf_sink *sink;  /* NULL: there is none */
    tnf_sink *first; /* of the writer, while it is at the second */
    char *path;
    char *interim;  /* the name that it has at first, where both files are replaced; or NULL */
    tnf_sink *last; /* then: of the first file as it stays */
    bool begun;     /* there are data for it */
    bool again;     /* they are written: what follows is `last` */
};

struct tnf_save {
    tnf_save_options options;
    const tnf_format *format;
    char extension[16];             /* of the path, or "" */
    tnf_arena arena;                /* everything of this one saving */
    tnf_catalog planned;            /* what the format gets; its objects are in the arena */
    tnf_attrs text;                 /* its text map */
    const tnf_option_value *values; /* of the format's options */
    uint64_t done, total;
    tnf_catalog fitted;  /* where tensors had to change: what plan.c plans */
    tnf_change *changes; /* one for each of its tensors; NULL: nothing changed */
    tnf_catalog cast;    /* what is saved if types were to change */
    struct made_tensor *made;
    tnf_catalog unit;            /* what is saved if rows of words become unit vectors */
    struct unit_rows *unit_rows; /* NULL: they do not */
    const tnf_format *index;     /* who writes instead, if it is only an index of these files */
    const tnf_shard *shards;
    size_t nshards;
    struct tnf_folder_sink *folder; /* that is being made, if the format writes one */
    const char *path;               /* that is written; NULL: no local file */
    struct tnf_beside beside;       /* beside.c */
};

/* cast.c: *out is `from`, or save->cast if floats are to have another type. */
tnf_status tnf_cast_tensors(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                            tnf_error *e);
/* Why the plan calls a tensor that was cast changed; NULL: it was not. */
const char *tnf_cast_reason(const tnf_object *object);
/* Why it was not, where blocks were asked for; else "". */
const char *tnf_uncast_reason(const struct tnf_save *save, const tnf_object *object);
/* cast.c: the only part of a dense tensor in the other order, made while it is read; it ends with
 * the saving. */
tnf_status tnf_reorder(tnf_part *out, const tnf_object *object, struct tnf_save *save,
                       tnf_error *e);
void tnf_cast_end(struct tnf_save *save);

/* unit_rows.c: *out is `from`, or save->unit if the format wants unit vectors and these are none.
 */
tnf_status tnf_unit_rows(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                         tnf_error *e);
/* Why the rows of this tensor are made unit vectors; NULL: they are not. */
const char *tnf_why_unit(const struct tnf_save *save, const tnf_object *object);
void tnf_unit_rows_end(struct tnf_save *save);

/* adapt.c: *out is `from`, or save->fitted where a tensor had to change. */
tnf_status tnf_adapt_tensors(struct tnf_save *save, const tnf_catalog *from,
                             const tnf_catalog **out, tnf_error *e);
/* For the plan; "" if nothing was done. */
const char *tnf_change_reason(const tnf_change *change);

/* plan.c: fits the catalog to the format, telling each item's fate; TNF_ELOSSY if something would
 * be lost that may not. */
tnf_status tnf_plan(struct tnf_save *save, const tnf_catalog *from, tnf_error *e);
/* What is not in the arena; also after a failure. */
void tnf_plan_end(struct tnf_save *save);

/* choose.c: the format to write a path in: by its extension, and where several have that, the only
 * one of them that holds all that the builder has. Fails with a sentence. */
tnf_status tnf_choose_format(const tnf_format **out, const tnf_builder *builder, const char *path,
                             const tnf_save_options *options, tnf_error *e);

/* save.c: the format to write, as the options or else the path say. */
tnf_status tnf_save_format(const tnf_format **out, const tnf_builder *builder, const char *path,
                           const tnf_save_options *options, tnf_error *e);

/* save.c: as tnf_save_sink(), but of the tensors only where they are, by the format that has such
 * an index: they are in these files. */
tnf_status tnf_save_index(const tnf_builder *builder, tnf_sink *sink,
                          const tnf_save_options *options, const tnf_format *index,
                          const tnf_shard *shards, size_t n, tnf_error *e);

/* beside.c: is the first file to be written once more, into *sink? */
tnf_status tnf_beside_again(struct tnf_save *s, tnf_sink **sink, tnf_error *e);
/* Puts both in place, the second file first. */
tnf_status tnf_commit_both(struct tnf_save *s, tnf_sink *sink, tnf_error *e);
void tnf_beside_close(struct tnf_save *s);

/* host/owner.c: the tensor that a part belongs to; NULL: it is a copy, or an extra's. */
tnf_status tnf_part_owner(const tnf_object **out, tnf_writer *w, const tnf_part *part,
                          tnf_error *e);

/* save.c: s->values, of what the caller gave and what the file has that is followed. */
tnf_status tnf_save_parse(struct tnf_save *s, tnf_error *e);

#endif
