/* SPDX-License-Identifier: MIT */
/* Shared by the files of core/: the handle, the origins of parts, the registry. */
#ifndef TNF_CORE_CORE_H
#define TNF_CORE_CORE_H

#include "format.h"
#include "io/claim.h"
#include "model/limits.h"

#include <stdatomic.h>

/* The reader of a part: a file's source and format, or the caller's function. */
struct tnf_origin {
    const tnf_source *source;
    const tnf_format *format;
    tnf_reader *reader;
    const char *label;  /* a shard's name, for messages; NULL for the file itself */
    tnf_fetch_fn fetch; /* TNF_MEMORY: gives the bytes if they are not in memory */
    void *ctx;
    bool missing; /* the file does not exist: `label` is its name, `source` another file's */
    const struct tnf_virtual *made; /* TNF_OPAQUE: the virtual tensor that the part belongs to */
    /* TNF_ENCODED: decoded bytes before the part begins, and the number of all decoded bytes; 0:
     * the part is all of them. */
    uint64_t skip, whole;
    const char *unreadable; /* why listed parts cannot be read; NULL: unknown */
    bool slices;            /* only the whole part is too large: slices can be read */
};

/* A file that another one names and that does not exist. There may be as many as names. */
struct missing_file {
    struct missing_file *next;
    uint64_t at;     /* position of the name */
    tnf_value mark;  /* attributes of its tensors if only their names are known: the next member */
    tnf_member name; /* the name of the file */
};

/* A file that another one names. */
struct sibling {
    struct sibling *next;
    const char *name; /* the first name used for it */
    const char *directory;
    struct tnf_file *file; /* NULL: opening failed */
    struct refusal *refusals;
};

/* The reason, and the format that was tried. */
struct refusal {
    struct refusal *next;
    const char *format; /* NULL: detected */
    tnf_error error;
};

struct sibling_tables; /* siblings.c */

/* A fault of a file that is salvaged. */
struct loss {
    struct loss *next;
    tnf_status status;
    const char *rule; /* as in tnf_error */
    tnf_str name;     /* of a tensor; p is NULL if it is not a tensor */
    uint64_t offset;
    const char *message;
    bool harmless; /* a fault that loses no data */
    bool implied;  /* another loss gives the reason already */
};

/* The name of a tensor in the file, and the name of the tensor that was restored from it. */
struct raised_piece {
    tnf_str raw, now;
};

struct tnf_file {
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_source *source;
    tnf_claim claim;      /* with the open option to_change */
    atomic_bool replaced; /* a claim protects it until it is replaced: save/save.c */
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
    const char *path;      /* as given by the user; NULL: opened over a source */
    const char *directory; /* where siblings are; NULL: unknown */
    const char *extension;
    const char *stem;                             /* NULL: no path */
    struct missing_file *missing, **last_missing; /* with the open option incomplete */
    struct sibling *siblings; /* in the order in which they are first named; each file once */
    struct sibling_tables *sibling_tables;
    tnf_container *folder;       /* of tnf_open_folder(), in the arena; NULL: not requested */
    struct raised_piece *pieces; /* in the arena; NULL: none */
    size_t npieces;
    tnf_hash piece_names; /* by raw */
    unsigned depth;       /* number of files that opened one another up to this one */
    bool needed_lenience; /* it opened only because lenient was set */
    struct loss *losses, **last_loss;
    bool loss_unnoted; /* out of memory for noting a loss */
};

/* In the stash: the role of the part that represents a tensor of strings, see
 * tnf_can.pads_strings. */
#define TNF_ROLE_PADDED "padded"
/* restore_strings.c: the parts of the strings in the tensor of bytes, in the file's arena. */
tnf_status tnf_unpad_strings(tnf_part parts[2], tnf_file *f, const tnf_object *padded,
                             tnf_error *e);

/* open/registry.c */
const tnf_format *tnf_registry_at(size_t i);
const tnf_format *tnf_registry_find(const char *name);
/* TNF_CAN_READ and so on, without capabilities that are not in this library. */
unsigned tnf_registry_caps(const tnf_format *format);
/* The public description of a format. */
tnf_status tnf_format_describe(tnf_format_info *out, const tnf_format *f, tnf_error *e);
/* The format for writing a path, by its extension. Fails with a message. */
tnf_status tnf_registry_by_extension(const tnf_format **out, const char *path, tnf_error *e);
/* Does some format have a place of its own for the attribute `key`, or compute it? */
bool tnf_registry_owns(const char *key, size_t n);
bool tnf_registry_derives(const tnf_member *attr);
/* A value in the form of can.derived and of the table of uncounted attributes; p is NULL if it has
 * none. */
tnf_str tnf_derived_text(const tnf_value *value);
/* Does the attribute only describe how the files of some format are spelled? */
bool tnf_registry_spells(const tnf_member *attr);
/* siblings.c: files of raw bytes that another file names. It is not in the list of formats. */
extern const tnf_format tnf_format_bytes;

/* Writes the extension of a path, in lower case, to `out`; "" if there is none. */
const char *tnf_extension(char out[16], const char *path);

/* open/probe.c */
tnf_status tnf_probe_source(const tnf_format **out, const tnf_source *source, const char *ext,
                            tnf_error *e);

/* open/unknown.c: fails with the message for bytes that no format recognises. */
tnf_status tnf_unknown_file(const tnf_probe *p, tnf_error *e);
/* The same for a directory without tensor files: TNF_OK if it is not a known kind. */
tnf_status tnf_unknown_folder(const char *path, tnf_error *e);
/* Do the bytes show that it is another kind of file, whatever its name is? */
bool tnf_surely_unknown(const tnf_probe *p);

/* open/options.c. `user`, for messages: "reader" or "writer". */
tnf_status tnf_options_parse(const tnf_option_value **out, const tnf_option_info *table,
                             const char *user, const tnf_option *given, size_t n, tnf_arena *arena,
                             tnf_error *e);

/* open/unpack.c: if *source is completely gzip or zstd, it is replaced by a source with the decoded
 * bytes, and *unpacked is set. */
tnf_status tnf_unpack_source(tnf_source **source, const tnf_open_options *options, bool *unpacked,
                             tnf_error *e);
/* The maximum number of decoded bytes of `size` bytes; `limit` may be 0. */
uint64_t tnf_decoded_most(uint64_t limit, uint64_t size);
/* open/scheme.c: is it a URL of a scheme that the program has registered? Then opens its source. */
bool tnf_scheme_has(const char *path);
tnf_status tnf_scheme_source(tnf_source **out, const char *url, tnf_error *e);
/* open/directory.c: the file to open for a directory. */
tnf_status tnf_directory_model(char **out, const char *path, tnf_arena *arena, tnf_error *e);
/* Returns the path of the file to open: mostly `path` itself. But `path` may lack the suffix of the
 * file, or name one of the data files of a model. */
const char *tnf_file_to_open(const char *path, tnf_arena *arena);
/* The same for the URL of a directory. */
struct tnf_url_options;
tnf_status tnf_remote_model(char **out, const char *url, const struct tnf_url_options *how,
                            tnf_arena *arena, tnf_error *e);
/* open/surplus.c: finds tensor files next to the model's shards that no index there names. Reports
 * shards by their names ("…-00001-of-00003.…") and the file of the whole model; warns of other
 * files of the kind. */
tnf_status tnf_directory_surplus(const tnf_file *file, tnf_arena *arena, tnf_tell tell,
                                 tnf_tell warn, void *ctx, tnf_error *e);

/* open/open.c */
tnf_status tnf_open_beside(tnf_file **out, const tnf_source *near, const char *path, tnf_str name,
                           const tnf_open_options *options, unsigned depth, tnf_error *e);
/* Like tnf_open(). If that fails, still calls `note` with the format's findings. */
tnf_status tnf_open_noting(tnf_file **out, const char *path, const tnf_open_options *options,
                           tnf_note_fn note, void *ctx, tnf_error *e);
/* Like tnf_open_source(), with a path (or NULL) for formats that use it. */
tnf_status tnf_open_source_at(tnf_file **out, tnf_source *source, const char *path,
                              const tnf_open_options *options, tnf_error *e);

/* host/siblings.c: the number of siblings; closing all of them. */
size_t tnf_sibling_count(const tnf_file *file);
void tnf_close_siblings(tnf_file *file);
/* Is this file of the model's directory a sibling, by any of its names? */
bool tnf_sibling_named(const tnf_file *file, const char *name);
/* Is the file with this device and inode a sibling of `file`, or a sibling of a sibling? */
bool tnf_sibling_is(const tnf_file *file, uint64_t device, uint64_t inode);

/* open/growth.c: limits how much compressed tensors may grow, and how much is written of a file. */
tnf_status tnf_check_decoded(const tnf_file *file, tnf_error *e);
tnf_status tnf_check_output(const tnf_catalog *catalog, tnf_arena *arena, tnf_error *e);

/* open/ranges.c: the rules of the format over the whole catalog. */
tnf_status tnf_check_ranges(tnf_file *file, tnf_error *e);
/* ranges.c: reports each tensor that shares bytes with one before it. For verifying. */
tnf_status tnf_tell_overlaps(const tnf_file *file, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);

/* host/reader.c: notes that a salvaged file breaks a rule without losing data. */
void tnf_note_fault(tnf_reader *r, tnf_status status, uint64_t offset, const char *text);

/* look/repair.c: does this part extend beyond the end of its file? `why` then describes it. */
bool tnf_cut_off(char why[160], const tnf_part *part);

/* save/restore.c: restores what save/plan.c put in a text map. */
tnf_status tnf_restore(tnf_file *file, tnf_error *e);
/* Makes a table of the members of a map by key, for maps with many members. The map must not be
 * moved while the table is used; NULL counts as an empty map. */
tnf_status tnf_index_members(tnf_hash *h, tnf_file *file, const tnf_value *map, tnf_error *e);

/* Sorts all maps in a value by key as CBOR does: shorter keys first, then by bytes. */
void tnf_sort_maps(tnf_value *v);

/* look/task_order.c: positions of the catalog's tensors, in the order in which threads take them.
 */
tnf_status tnf_task_order(const size_t **out, const tnf_catalog *catalog, tnf_arena *arena,
                          tnf_error *e);

/* look/content_hash.c: the members of a map of attributes (or NULL) that are content, in the arena.
 * Attributes that a reader computes, or that only describe how a file is spelled, are left out. The
 * text maps of all formats get one name. */
tnf_status tnf_content_attrs(tnf_member **out, size_t *kept, const tnf_value *map, tnf_arena *a,
                             tnf_error *e);

/* look/uncounted.c: does the table list this attribute as one that is not content? The second
 * function returns the i-th entry of the table, or NULL past the last. */
bool tnf_is_uncounted(const tnf_member *attr);
const char *tnf_uncounted_at(size_t i);
/* The part of an attribute's value that is content. */
tnf_value tnf_counted_value(const tnf_member *attr);

/* Is it the text map of a format with text metadata ("safetensors.metadata")? */
bool tnf_is_text_map(const tnf_member *attr);

/* save/restore_order.c: puts attributes in the order that the stash notes. */
tnf_status tnf_restore_order(tnf_file *file, const tnf_value *stash, tnf_error *e);
/* The same for tensors. Called while they still have their names in the file. */
tnf_status tnf_restore_sequence(tnf_file *file, const tnf_value *stash, tnf_error *e);

/* save/restore_tensors.c: undoes the changes that made tensors fit the format, by the notes of the
 * stash. */
tnf_status tnf_restore_tensors(tnf_file *file, const tnf_value *stash, tnf_error *e);

/* read/read.c: does reading the complete part compare its digest (check_reads of its format)? */
bool tnf_checks_reads(const tnf_part *part);

/* read/read.c: can any bytes of the part be read without decoding the bytes before them? */
bool tnf_part_cuts(const tnf_part *part);

/* The library's own part, from the const pointer that callers have. */
static inline tnf_part *tnf_part_mutable(const tnf_part *part)
{
    return (tnf_part *)(uintptr_t)part;
}

/* host/siblings.c: fails if files of the model are missing, and names the first. */
tnf_status tnf_need_whole(const tnf_file *file, tnf_error *e);

#endif
