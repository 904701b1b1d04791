/* SPDX-License-Identifier: MIT */
/* What the files of core/ share: the handle, where parts come from, the registry. */
#ifndef TNF_CORE_CORE_H
#define TNF_CORE_CORE_H

#include "format.h"
#include "io/claim.h"
#include "model/limits.h"

/* Who reads a part: a file's source and format, or the caller's function. */
struct tnf_origin {
    const tnf_source *source;
    const tnf_format *format;
    tnf_reader *reader;
    const char *label;  /* a shard's name, for messages; NULL for the file itself */
    tnf_fetch_fn fetch; /* TNF_MEMORY without memory */
    void *ctx;
    bool missing; /* the file is not there: `label` is its name, the source another's */
    const struct tnf_virtual *made; /* TNF_OPAQUE: the virtual tensor that it is the part of */
    /* TNF_ENCODED: decoded bytes before the part begins, and the number of all decoded bytes; 0:
     * the part is all of them. */
    uint64_t skip, whole;
    const char *unreadable; /* why parts cannot be read that are listed; NULL: not known */
    bool slices;            /* it is too much as a whole only: slices are read */
};

/* A file that another one names and that is not there. There may be as many as names. */
struct missing_file {
    struct missing_file *next;
    uint64_t at;     /* where it is named */
    tnf_value mark;  /* attributes of tensors in it that are known by their names alone: */
    tnf_member name; /* that of the file */
};

/* A file that another one names. */
struct sibling {
    struct sibling *next;
    const char *name; /* as it was named first */
    const char *directory;
    struct tnf_file *file; /* NULL: it could not be opened */
    struct refusal *refusals;
};

/* Why not, as which format. */
struct refusal {
    struct refusal *next;
    const char *format; /* NULL: as what it is */
    tnf_error error;
};

struct sibling_tables; /* siblings.c */

/* Something that is wrong with a file that is salvaged. */
struct loss {
    struct loss *next;
    tnf_status status;
    const char *rule; /* as in tnf_error */
    tnf_str name;     /* of a tensor; p is NULL if it is something else */
    uint64_t offset;
    const char *message;
    bool harmless; /* a fault that loses no data */
    bool implied;  /* another says why already */
};

/* The name of a tensor in the file itself, and that of the tensor that was restored from it. */
struct raised_piece {
    tnf_str raw, now;
};

struct tnf_file {
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_source *source;
    tnf_claim claim; /* with the open option to_change */
    tnf_catalog catalog;
    tnf_reader reader;
    struct tnf_origin origin;
    const tnf_format *format;
    tnf_open_options options;
    tnf_info info;
    tnf_value attrs;
    tnf_attrs text; /* the text map as read, until it is restored */
    tnf_warning *warnings;
    size_t nwarnings;
    const char *path;      /* as it was given; NULL: opened over a source */
    const char *directory; /* where siblings are looked for; NULL: nowhere */
    const char *extension;
    const char *stem;                             /* NULL: no path */
    struct missing_file *missing, **last_missing; /* with the open option incomplete */
    struct sibling *siblings; /* in the order in which they are named; each file once */
    struct sibling_tables *sibling_tables;
    tnf_container *folder;       /* of tnf_open_folder(), in the arena; NULL: not asked for */
    struct raised_piece *pieces; /* in the arena; NULL: there are none */
    size_t npieces;
    tnf_hash piece_names; /* by raw */
    unsigned depth;       /* how many files opened one another up to this one */
    bool needed_lenience; /* it would not have opened otherwise */
    struct loss *losses, **last_loss;
    bool loss_unnoted; /* there was no memory for one */
};

/* In the stash: the part that stands for a tensor of strings, see tnf_can.pads_strings. */
#define TNF_ROLE_PADDED "padded"
/* restore_strings.c: the parts of the strings that the tensor of bytes holds, in the file's arena.
 */
tnf_status tnf_unpad_strings(tnf_part parts[2], tnf_file *f, const tnf_object *padded,
                             tnf_error *e);

/* registry.c */
const tnf_format *tnf_registry_at(size_t i);
const tnf_format *tnf_registry_find(const char *name);
/* TNF_CAN_READ and so on, as far as it is part of this library. */
unsigned tnf_registry_caps(const tnf_format *format);
/* The format to write a path in: by its extension. Fails with a sentence. */
tnf_status tnf_registry_by_extension(const tnf_format **out, const char *path, tnf_error *e);
/* Is `key` an attribute that some format has a place of its own for, or computes? */
bool tnf_registry_owns(const char *key, size_t n);
bool tnf_registry_derives(const tnf_member *attr);
/* A value as can.derived and the table of uncounted attributes have it; a NULL p: none such. */
tnf_str tnf_derived_text(const tnf_value *value);
/* Does it tell only how the files of some format are spelled? */
bool tnf_registry_spells(const tnf_member *attr);
/* siblings.c: files of nothing but bytes, which another file names. It stands in no list. */
extern const tnf_format tnf_format_bytes;

/* The extension of a path in lower case, "" if none, in `out`. */
const char *tnf_extension(char out[16], const char *path);

/* probe.c */
tnf_status tnf_probe_source(const tnf_format **out, const tnf_source *source, const char *ext,
                            tnf_error *e);

/* open/unknown.c: the sentence for bytes that no format claims. */
tnf_status tnf_unknown_file(const tnf_probe *p, tnf_error *e);
/* The same for a folder that holds no tensor file: TNF_OK if it is not known, either. */
tnf_status tnf_unknown_folder(const char *path, tnf_error *e);
/* Is it something else beyond doubt, whatever its name says? */
bool tnf_surely_unknown(const tnf_probe *p);

/* options.c */
tnf_status tnf_options_parse(const tnf_option_value **out, const tnf_option_info *table,
                             const tnf_option *given, size_t n, tnf_arena *arena, tnf_error *e);

/* open/unpack.c: if all of *source is gzip or zstd, another source with what comes out of it takes
 * its place, and *unpacked is set. */
tnf_status tnf_unpack_source(tnf_source **source, const tnf_open_options *options, bool *unpacked,
                             tnf_error *e);
/* How many bytes may come out of `size`, by a limit that may be 0. */
uint64_t tnf_decoded_most(uint64_t limit, uint64_t size);
/* open/scheme.c: is it a URL of a scheme that the program has brought? And the source of it. */
bool tnf_scheme_has(const char *path);
tnf_status tnf_scheme_source(tnf_source **out, const char *url, tnf_error *e);
/* directory.c: the file that stands for a directory. */
tnf_status tnf_directory_model(char **out, const char *path, tnf_arena *arena, tnf_error *e);
/* The same path, or that of the file it stands for: a path without the end of its name, or one of
 * the data files of a model. */
const char *tnf_stand_in(const char *path, tnf_arena *arena);
/* The same for the URL of a folder. */
struct tnf_url_options;
tnf_status tnf_remote_model(char **out, const char *url, const struct tnf_url_options *how,
                            tnf_arena *arena, tnf_error *e);
/* What lies beside the model's shards, and no index there names it: tells of shards by their names
 * ("…-00001-of-00003.…") and of the whole model's file, warns of others of the kind. */
tnf_status tnf_directory_surplus(const tnf_file *file, tnf_arena *arena, tnf_tell tell,
                                 tnf_tell warn, void *ctx, tnf_error *e);

/* Does a failure lie in the file, rather than in the system or the call? */
static inline bool tnf_is_file_fault(tnf_status status)
{
    return status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST ||
           status == TNF_EUNSUPPORTED || status == TNF_ELIMIT;
}

/* open.c */
tnf_status tnf_open_beside(tnf_file **out, const tnf_source *near, const char *path, tnf_str name,
                           const tnf_open_options *options, unsigned depth, tnf_error *e);
/* tnf_open(); of what does not open, the notes that its format has on it all the same. */
typedef void (*tnf_note_fn)(void *ctx, const char *key, const tnf_value *value);
tnf_status tnf_open_noting(tnf_file **out, const char *path, const tnf_open_options *options,
                           tnf_note_fn note, void *ctx, tnf_error *e);
/* As tnf_open_source(), with a path (or NULL) for what formats learn from one. */
tnf_status tnf_open_over(tnf_file **out, tnf_source *source, const char *path,
                         const tnf_open_options *options, tnf_error *e);

/* siblings.c: how many there are; closes them all. */
size_t tnf_sibling_count(const tnf_file *file);
void tnf_close_siblings(tnf_file *file);
/* Is a file of the model's directory one of them, by any of the names that it is given? */
bool tnf_sibling_named(const tnf_file *file, const char *name);
/* Is one of them, or one of theirs, the file of this device and number? */
bool tnf_sibling_is(const tnf_file *file, uint64_t device, uint64_t inode);

/* amounts.c: what its compressed tensors become, and what is written of each file. */
tnf_status tnf_check_decoded(const tnf_file *file, tnf_error *e);
tnf_status tnf_check_output(const tnf_catalog *catalog, tnf_arena *arena, tnf_error *e);

/* open/ranges.c: the rules of the format over the whole catalog. */
tnf_status tnf_check_ranges(tnf_file *file, tnf_error *e);

/* host/reader.c: a file that is salvaged breaks a rule, by which nothing is lost. */
void tnf_note_fault(tnf_reader *r, tnf_status status, uint64_t offset, const char *text);

/* repair.c: does this part reach beyond the end of its file? Says how. */
bool tnf_cut_off(char why[160], const tnf_part *part);

/* save/restore.c: takes back what save/plan.c once put in a text map. */
tnf_status tnf_restore(tnf_file *file, tnf_error *e);
/* A table of the members of a map by key, for maps with many members. The map must not be moved
 * while the table is used; NULL is an empty map. */
tnf_status tnf_index_members(tnf_hash *h, tnf_file *file, const tnf_value *map, tnf_error *e);

/* Its maps, at any depth, by key: the shorter first, then by bytes, as CBOR has them. */
void tnf_sort_maps(tnf_value *v);

/* look/job_order.c: positions of the catalog's tensors, for threads to work on. */
tnf_status tnf_job_order(const size_t **out, const tnf_catalog *catalog, tnf_arena *arena,
                         tnf_error *e);

/* look/content_hash.c: those of a map of attributes (or NULL) that are content, in the arena:
 * without what a reader works out by itself and what only tells how a file is spelled, the text
 * maps of all formats under one name. */
tnf_status tnf_content_attrs(tnf_member **out, size_t *kept, const tnf_value *map, tnf_arena *a,
                             tnf_error *e);

/* look/uncounted.c: is it no part of the content, by the table of such attributes? The i-th entry
 * of the table, or NULL past the last. */
bool tnf_is_uncounted(const tnf_member *attr);
const char *tnf_uncounted_at(size_t i);
/* As much of its value as is content. */
tnf_value tnf_counted_value(const tnf_member *attr);

/* Is it one of those: a map that a format of text metadata has ("safetensors.metadata")? */
bool tnf_is_text_map(const tnf_member *attr);

/* save/restore_order.c: attributes in the order that the stash tells. */
tnf_status tnf_restore_order(tnf_file *file, const tnf_value *stash, tnf_error *e);
/* and tensors, as long as they have the names of the file. */
tnf_status tnf_restore_sequence(tnf_file *file, const tnf_value *stash, tnf_error *e);

/* save/restore_tensors.c: tensors that were changed to fit the format become what they were, by the
 * notes of the stash. */
tnf_status tnf_restore_tensors(tnf_file *file, const tnf_value *stash, tnf_error *e);

/* read.c: is its digest compared whenever it is read whole (check_reads of its format)? */
bool tnf_checks_reads(const tnf_part *part);

/* read.c: can any bytes of it be read without decoding those before? */
bool tnf_part_cuts(const tnf_part *part);

/* The library's own part behind a const pointer that it has handed out. */
static inline tnf_part *tnf_part_mutable(const tnf_part *part)
{
    return (tnf_part *)(uintptr_t)part;
}

/* siblings.c: fails, naming the first, if files of the model are missing. */
tnf_status tnf_need_whole(const tnf_file *file, tnf_error *e);

/* TNF_EINVAL for NULL, which is what looking for a tensor that is not there gives; TNF_ENOTFOUND if
 * the file that holds it is missing. */
tnf_status tnf_object_there(const tnf_object *object, tnf_error *e);

#endif
