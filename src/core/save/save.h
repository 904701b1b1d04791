/* SPDX-License-Identifier: MIT */
/* The state of saving: builder → plan → write. */
#ifndef TNF_CORE_SAVE_SAVE_H
#define TNF_CORE_SAVE_SAVE_H

#include "core/core.h"

/* A file from which something was added, even if only attributes. */
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

/* The changes that adapt.c made to a tensor. */
enum {
    TNF_ADAPT_PARTS = 1, /* each part became a tensor */
    TNF_ADAPT_TYPE = 2,
    TNF_ADAPT_SHAPE = 4, /* a scalar got a dimension */
    TNF_ADAPT_ORDER = 8,
    TNF_ADAPT_NAME = 16 /* bytes that are not allowed in names became %XX */
};

typedef struct tnf_adaptation {
    const tnf_object *of; /* the original tensor */
    unsigned what;
    uint16_t pieces; /* number of consecutive tensors that it became */
} tnf_adaptation;

/* A second file that is written with the first. */
struct tnf_second_file {
    tnf_sink *sink;  /* NULL: there is no second file */
    tnf_sink *first; /* the writer's sink, while it writes the second file */
    char *path;
    char *interim;    /* the interim name of the data, if both files are replaced; or NULL */
    tnf_sink *last;   /* in that case: the final first file */
    bool begun;       /* there is data for it */
    bool writes_last; /* its data is written; the writer writes `last` now */
};

struct tnf_save {
    tnf_save_options options;
    const tnf_format *format;
    char extension[16];             /* of the path, or "" */
    tnf_arena arena;                /* for everything of this save */
    tnf_catalog planned;            /* the input of the format; its objects are in the arena */
    tnf_attrs text;                 /* the format's text map */
    const tnf_option_value *values; /* of the format's options */
    uint64_t done, total;
    tnf_catalog fitted;      /* the input of plan.c, if tensors had to change */
    tnf_adaptation *changes; /* one for each of its tensors; NULL: nothing changed */
    tnf_catalog cast;        /* the tensors to save, if types change */
    struct made_tensor *made;
    tnf_catalog unit;            /* the tensors to save, if rows of words become unit vectors */
    struct unit_rows *unit_rows; /* NULL: they do not */
    const tnf_format *index;     /* writes instead, if the result is only an index of these files */
    const tnf_shard *shards;
    size_t nshards;
    struct tnf_folder_sink *folder; /* the directory, if the format writes one */
    const char *path;               /* the local file to write; NULL: none */
    struct tnf_second_file second;  /* second_file.c */
};

/* cast.c: *out becomes `from`, or save->cast if floats change their type. */
tnf_status tnf_cast_tensors(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                            tnf_error *e);
/* The reason in the plan for a tensor that was cast; NULL: it was not. */
const char *tnf_cast_reason(const tnf_object *object);
/* The reason why a tensor was not cast although blocks were requested; else "". */
const char *tnf_uncast_reason(const struct tnf_save *save, const tnf_object *object);
/* cast.c: the only part of a dense tensor in the other order, converted while it is read. It is
 * valid until the save ends. */
tnf_status tnf_reorder(tnf_part *out, const tnf_object *object, struct tnf_save *save,
                       tnf_error *e);
void tnf_cast_end(struct tnf_save *save);

/* unit_rows.c: *out becomes `from`, or save->unit if the format needs unit vectors and these are
 * not. */
tnf_status tnf_unit_rows(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                         tnf_error *e);
/* Why the rows of this tensor become unit vectors; NULL: they do not. */
const char *tnf_why_unit(const struct tnf_save *save, const tnf_object *object);
void tnf_unit_rows_end(struct tnf_save *save);

/* adapt.c: *out becomes `from`, or save->fitted if a tensor had to change. */
tnf_status tnf_adapt_tensors(struct tnf_save *save, const tnf_catalog *from,
                             const tnf_catalog **out, tnf_error *e);
/* Says that the format lacks a type; `more` follows, or "". */
const char *tnf_no_type(struct tnf_save *save, const tnf_type *type, const char *more);
/* The reason for the plan; "" if nothing was changed. `now` is the first tensor that it became. */
const char *tnf_adapt_reason(struct tnf_save *save, const tnf_adaptation *change,
                             const tnf_object *now);

/* plan.c: fits the catalog to the format, and reports each item's fate. TNF_ELOSSY if something
 * would be lost that must not be lost. */
tnf_status tnf_plan(struct tnf_save *save, const tnf_catalog *from, tnf_error *e);
/* Frees memory outside the arena; also needed after a failure. */
void tnf_plan_end(struct tnf_save *save);

/* choose.c: the format for writing a path: by its extension or, if several formats share it, the
 * only one that can hold the whole content of the builder. Fails with a message. */
tnf_status tnf_choose_format(const tnf_format **out, const tnf_builder *builder, const char *path,
                             const tnf_save_options *options, tnf_error *e);

/* save.c: the format to write, from the options or else from the path. */
tnf_status tnf_save_format(const tnf_format **out, const tnf_builder *builder, const char *path,
                           const tnf_save_options *options, tnf_error *e);

/* save.c: like tnf_save_sink(), but writes only the places of the tensors, which are in these
 * files; the format has such an index. */
tnf_status tnf_save_index(const tnf_builder *builder, tnf_sink *sink,
                          const tnf_save_options *options, const tnf_format *index,
                          const tnf_shard *shards, size_t n, tnf_error *e);

/* second_file.c: must the first file be written once more, into *sink? */
tnf_status tnf_second_file_last(struct tnf_save *s, tnf_sink **sink, tnf_error *e);
/* Puts both files in place, the second one first. */
tnf_status tnf_commit_both(struct tnf_save *s, tnf_sink *sink, tnf_error *e);
void tnf_second_file_close(struct tnf_save *s);

/* host/owner.c: the tensor that a part belongs to; NULL for a copy, or for a part of an extra. */
tnf_status tnf_part_owner(const tnf_object **out, tnf_writer *w, const tnf_part *part,
                          tnf_error *e);

/* save.c: copies the caller's options, and checks those for URLs whether or not the path is one.
 */
tnf_status tnf_save_take(tnf_save_options *out, const tnf_save_options *given, tnf_error *e);

/* save.c: fills in s->values, from the caller's options and from the file that is followed. */
tnf_status tnf_save_parse(struct tnf_save *s, tnf_error *e);
/* What a format's function for writing gets. */
tnf_writer tnf_save_writer(struct tnf_save *s, tnf_sink *sink, tnf_arena *scratch);

#endif
