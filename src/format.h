/* SPDX-License-Identifier: MIT */
/* All that a format file needs: the descriptor to fill in, and the helpers to call.
 *
 * `probe` looks at a few bytes and says how sure it is. `index` fills the catalog and stops.
 * `write` streams a catalog that the core has already fitted to what `can` declares.
 * TEMPLATE.c shows a whole format; docs/adding-a-format.md walks through it.
 *
 * The headers below come along. Of them a format mostly needs
 *
 *     base/cursor.h    tnf_u32(), tnf_u64(), tnf_bytes() … of what was read
 *     base/error.h     tnf_fail(), TNF_TRY, TNF_QUOTED
 *     model/dtype.h    tnf_type_bytes(): of so many elements
 *     model/layout.h   tnf_shape_elements(), tnf_layout_dense, tnf_layout_named()
 *     model/value.h    tnf_value_str(), attribute lists
 */
#ifndef TNF_FORMAT_H
#define TNF_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/ckd.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/utf8.h"
#include "codec/codec.h"
#include "container/container.h"
#include "io/sink.h"
#include "io/source.h"
#include "model/catalog.h"
#include "model/dtype.h"
#include "model/layout.h"
#include "model/value.h"
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

/* How sure a probe is. Text formats never exceed PLAUSIBLE without their extension. */
enum {
    TNF_PROBE_NO = 0,
    TNF_PROBE_EXTENSION = 20,
    TNF_PROBE_PLAUSIBLE = 40,
    TNF_PROBE_STRUCTURE = 75,
    TNF_PROBE_MAGIC = 100
};

#define TNF_STASH_KEY  "tenfold.stash"

#define TNF_PROBE_HEAD 4096u
#define TNF_PROBE_TAIL 64u

typedef struct tnf_probe {
    const uint8_t *head, *tail; /* the first 4 KiB, the last 64 bytes (or all there is) */
    size_t nhead, ntail;
    uint64_t size;
    const char *ext; /* of the path, without the dot, lower case; "" if none */
} tnf_probe;

/* Does this text stand anywhere in the head? A probe asks last: it reads all of it. */
static inline bool tnf_head_holds(const tnf_probe *p, const char *text)
{
    return memmem(p->head, p->nhead, text, strlen(text)) != NULL;
}

/* Where metadata can go. */
/* TYPED: any tree of null, bool, u64, i64 (if negative), f64, text, bytes, array, map; the core
 * keeps the rest in one text attribute, TNF_STASH_KEY. */
typedef enum tnf_holds { TNF_HOLDS_NONE, TNF_HOLDS_TEXT, TNF_HOLDS_TYPED } tnf_holds;

typedef struct tnf_option_value {
    uint64_t u;    /* number; bool; position of the choice */
    const char *s; /* as given, or the default */
} tnf_option_value;

/* What is to become of a thing, and why if it is not simply kept. */
typedef struct tnf_verdict {
    tnf_fate fate;
    const char *why;
} tnf_verdict;

/* Everything that is to be saved, with what was found of each thing by itself. */
typedef struct tnf_fit {
    const tnf_catalog *catalog;
    const tnf_option_value *options; /* of the writer, in the order of write_options */
    tnf_arena *scratch;
    tnf_verdict *objects, *attrs; /* one for each of the catalog's objects and attributes */
    const char *extension;        /* of the path to write, in lower case; "" if none */
} tnf_fit;

/* What a format can hold. Lists are words separated by spaces; a NULL list means any. */
typedef struct tnf_can {
    const char *types, *layouts;
    /* Is a tensor to be written as what its elements are made of, though `types` has its type,
     * since this one would not be read again as such? May be NULL. */
    bool (*as_storage)(const tnf_object *object);
    /* Is a tensor to be written as its parts, though `layouts` has its layout, since there is not
     * enough said of this one? May be NULL. */
    bool (*in_parts)(const tnf_object *object);
    /* Can it hold this tensor, whose bytes cannot be read, since it has none? May be NULL. */
    bool (*bare)(const tnf_object *object);
    /* Tensors of strings are written as u8, with a last dimension of the longest, each string
     * padded with 0 at its end: the stash says that they were strings. */
    bool pads_strings;
    bool order_f; /* columns first */
    bool only_f;  /* and never rows first */
    /* order_f: is a tensor that comes rows first to be written columns first, if nobody asks for
     * another order? For one that lay so in a file of this format. May be NULL. */
    bool (*was_f)(const tnf_object *object);
    bool zero_rank;           /* scalars */
    const char *not_empty;    /* why it cannot be written without a tensor; NULL: it can */
    bool extras;              /* extras of its own family */
    const char *extra_prefix; /* what their keys begin with, before a dot; NULL: the family */
    bool shares;      /* equal tensors are written once, so what shares its bytes still does */
    bool utf8_names;  /* names must be UTF-8 */
    bool ascii_names; /* names must be ASCII */
    /* Unsigned types, where it has none, are kept as the signed ones of the same width. */
    bool unsigned_as_signed;
    bool narrow_numbers;  /* see tnf_format_info.narrow */
    const char *reserved; /* names that no tensor can have */
    /* The order in which its tensors come back, as for tnf_sorted(). NULL: as they were given. */
    int (*sorts)(const tnf_object *a, const tnf_object *b);
    tnf_holds attrs;   /* file attributes beyond its own */
    uint32_t max_rank; /* more dimensions: the first ones are folded into one. 0: any number */
    /* TYPED: can it hold this attribute of the file (`of` is NULL) or of a tensor so that it comes
     * back as it was? NULL: whatever is said at TNF_HOLDS_TYPED. */
    bool (*holds_attr)(const tnf_member *attr, const tnf_object *of);
    /* TYPED: its reader puts this before every key of the file; it is not in the file. Attributes
     * without it are somebody else's, which the stash notes. */
    const char *own_prefix;
    /* NONE: the type of a tensor TNF_STASH_KEY that holds what has no place, if the bool option
     * "stash" of the writer asks for it. */
    const char *stash_type;
    bool sorted_attrs; /* TYPED, but attributes come back by the bytes of their keys */
    bool sorted_maps;  /* TYPED, but maps come back in CBOR's order of keys */
    const char *file_attrs, *object_attrs; /* attributes it has a native place for */
    /* Has this one of object_attrs no place in what these options of the writer ask for (an older
     * version)? Then it is treated as those that are not listed. May be NULL. */
    bool (*no_place)(const tnf_member *attr, const tnf_option_value *options);
    /* Attributes its reader computes, or sets when the file says nothing ("key=false",
     * "key=text", "key=0", "key={}"): no loss. */
    const char *derived;
    /* Attributes that tell only how its files are spelled (which blank, which end of a line), or do
     * so with that value ("key=text"): kept wherever there is a place for them, no loss where there
     * is none, no part of the content. */
    const char *spelling;
    /* Why rows of words (`embeddings` with `vocab`, without `norms`) of what is to be saved have to
     * become unit vectors, with their lengths as `norms`: its own readers take them so. NULL: they
     * stay as they are. May be NULL. */
    const char *(*unit_rows)(const tnf_catalog *catalog);
    /* What of embeddings it holds: see tnf_format_info. */
    tnf_fold folds, unfolds;
    const char *document;
    /* What becomes of a tensor for reasons of the format's own, asked last: TNF_NATIVE, or with a
     * reason TNF_TRANSFORMED (`write` sees to it) or TNF_DROPPED. May be NULL. */
    tnf_fate (*takes)(const tnf_object *object, const char **reason);
    /* The same for what does not fit together: makes verdicts worse, never better, before any of
     * them is told. May be NULL. */
    tnf_status (*fits)(tnf_fit *fit, tnf_error *e);
} tnf_can;

/* Rules that the core checks over the whole catalog when `index` is done. */
enum {
    TNF_RULE_NO_OVERLAP = 1,       /* no byte belongs to two tensors */
    TNF_RULE_NO_HOLES = 2,         /* tensors tile the data exactly, from data_start to the end */
    TNF_RULE_DATA_START = 4,       /* no tensor begins before r->data_start */
    TNF_RULE_OVERLAP_ODD = 8,      /* overlap is legal but worth a warning */
    TNF_RULE_NAMES_MAY_REPEAT = 16 /* legal, worth a warning, and the first is found */
};

typedef struct tnf_reader {
    tnf_arena *arena;   /* lives as long as the handle */
    tnf_arena *scratch; /* lives until `index` returns */
    const tnf_source *source;
    tnf_catalog *catalog;
    tnf_limits limits; /* no zeros left */
    bool lenient;
    bool salvage;                    /* lenient, too; see tnf_lose() */
    bool incomplete;                 /* files that are named may be missing; see tnf_miss() */
    uint64_t unnamed;                /* tensors in such files whose names nothing tells */
    const tnf_option_value *options; /* in the order of read_options */
    const char *stem;                /* the file's name without directory and extension, or NULL */
    const char *extension;           /* of its name, in lower case; "" if none */
    const char *folder;              /* that it lies in, as it was named, or NULL */
    bool sibling;                    /* opened by tnf_open_sibling(), for another file's sake */
    const char *version;             /* for `index` to set: a literal or in the arena */
    uint64_t data_start;             /* for `index` to set where a rule needs it */
    uint64_t data_end;               /* for `index` to set where its index comes last */
    /* for `index` to set: the order of the tensors is content, so that formats which sort them
     * have to note it */
    bool ordered;
    void *state;           /* for `index` to set and `decode` to use: in the arena */
    struct tnf_file *file; /* the core's */
} tnf_reader;

/* One of the files that a model is split into. */
typedef struct tnf_shard {
    const char *name; /* without its directory: "model-00001-of-00002.zt" */
    tnf_str label;    /* of that: "00001-of-00002" */
    tnf_file *file;   /* open */
} tnf_shard;

typedef struct tnf_writer {
    const tnf_catalog *catalog;
    tnf_arena *scratch;              /* lives until `write` returns */
    const tnf_option_value *options; /* in the order of write_options */
    tnf_sink *sink;                  /* sink->written is the position */
    /* For formats with can.attrs TNF_HOLDS_TEXT: the text map to write, all values strings. It
     * holds the family's own metadata first, then what the core put there for safe keeping. */
    const tnf_member *text;
    size_t ntext;
    /* The file that this one is a changed copy of, or NULL: where no option says otherwise, it is
     * written in the same form (order, alignment, encodings, digests). */
    const tnf_reader *like;
    bool in_place;           /* over it, for TNF_CAN_EDIT: see tnf_put_same(), tnf_no_room() */
    uint64_t shift;          /* in place: what is behind the header moves by so many bytes */
    uint64_t lacks;          /* the format tells: by how much the header is too long */
    const tnf_reader *base;  /* `append`: the file as it is; sink->written is its size */
    const tnf_shard *shards; /* `write_index`: where the tensors are */
    size_t nshards;
    const char *extension; /* of the path to write, in lower case; "" if none */
    const char *name;      /* of the file to write, without its folder; NULL: it is no file */
    /* `write`: the folder that is made, or NULL. Then `sink` is what `write` sets it to: that of
     * the member it is at. */
    struct tnf_folder_sink *folder;
    struct tnf_save *save; /* the core's */
    /* The core's: the catalog by where parts lie in memory, once a sink asks; or NULL. */
    const tnf_object *const *by_parts;
} tnf_writer;

/* Gets each problem of a file, with the name of the tensor that has it (empty: the whole file). */
typedef void (*tnf_tell)(void *ctx, const tnf_error *problem, tnf_str tensor);

/* What a specification calls the rules on which verifying found a part wanting. */
typedef struct tnf_rule_names {
    const char *digest, *encoding, *data;
} tnf_rule_names;

/* What a descriptor names for writing. Where the library only reads (TENFOLD_WRITE is off) nothing
 * names it, so a program does not contain it. */
#ifdef TENFOLD_READ_ONLY
#define TNF_WRITES(function) (0 ? (function) : NULL)
#else
#define TNF_WRITES(function) (function)
#endif

typedef struct tnf_format {
    const char *name, *title, *extensions, *family; /* "ztensor2", "zTensor 2", "zt", "ztensor" */
    unsigned caps;                                  /* TNF_CAN_READ | TNF_CAN_WRITE … */
    unsigned rules;                                 /* TNF_RULE_… */
    /* &tnf_digests if its own readers compare the digest of all that they read whole; or NULL. */
    const struct tnf_digest_ops *check_reads;
    bool stands_for_shards; /* an index of files, shown as their format */
    /* TNF_CAN_EDIT, and no byte behind the header says where anything is: it can be shifted. */
    bool can_shift;
    /* Of files NAME-00001-of-0000N, written by `shard_attrs`, the first opens as the whole model.
     */
    bool opens_sets;
    bool shown_as_index; /* no, by its own name */
    tnf_can can;
    const tnf_option_info *read_options, *write_options;
    const tnf_rule_names *rule_names; /* NULL: it has no such words */

    int (*probe)(const tnf_probe *p);
    tnf_status (*index)(tnf_reader *r, tnf_error *e);
    tnf_status (*decode)(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
    /* `decode` for who reads a part piece by piece: `kept` are `keeps` bytes of his own, zeroed at
     * the beginning, in which chunks that were decoded can wait for the next piece; `forget` frees
     * what is there. Slices of such a part are asked for run by run. May be NULL. */
    tnf_status (*decode_on)(tnf_reader *r, void *kept, uint64_t key, uint64_t offset, void *dst,
                            size_t n, tnf_error *e);
    void (*forget)(void *kept);
    size_t keeps;
    /* Lends the strings of a strings/1 tensor whose part `bytes` is TNF_OPAQUE under that key, or
     * says why not with tnf_cannot_map(). May be NULL. */
    tnf_status (*strings)(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e);
    /* Of tensors whose attributes, of this family, say more of their elements than their type does:
     * what tnf_element_text() gives. SIZE_MAX: not of this one. `bytes` may be NULL: then only
     * *axes is wanted, and anything else is given. May be NULL. */
    size_t (*element_text)(const tnf_object *object, uint32_t *axes, const void *bytes, size_t n,
                           char *out, size_t room);
    tnf_status (*write)(tnf_writer *w, tnf_error *e);
    /* A changed copy of this file is to be written: sets options, whose text is still the fallback,
     * to what it has. For those that decide what can be written; may be NULL. */
    void (*follow)(const tnf_reader *like, tnf_option_value *options);
    /* `write` behind a file that is there, which w->base is: the catalog holds its tensors, too,
     * whose parts are still those that `index` made. For TNF_CAN_APPEND. */
    tnf_status (*append)(tnf_writer *w, tnf_error *e);
    /* Writes, for tensors that are in w->shards already, the file that stands for all of them. Its
     * name is that of the model with index_name behind it. May be NULL. */
    tnf_status (*write_index)(tnf_writer *w, tnf_error *e);
    const char *index_name;
    /* Files of a model know each other by their attributes, and need no index: the first has all of
     * them, and each what this function adds: for the i-th of n (more than one), i from 0. May be
     * NULL. */
    tnf_status (*shard_attrs)(tnf_attrs *attrs, const tnf_catalog *whole, size_t i, size_t n,
                              tnf_error *e);
    /* The path of its file inside a folder that stands for it ("variables/variables.index",
     * ".metadata"), and the end of its name that a path may leave out (".index"). May be NULL. */
    const char *inside, *suffix;
    /* A text file that says which of a folder's files is meant ("checkpoint"), and what that one is
     * called, without `suffix`: *name, as the file has it, unchecked, lies in `room`, which is as
     * long as the text. False: it is no such text. May be NULL. */
    const char *choice;
    bool (*chosen)(tnf_str text, char *room, tnf_str *name);
    /* Tells what verifying finds beyond the parts and their layouts. May be NULL. */
    tnf_status (*verify)(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);
    /* Tells why a program would not load the file: one of these, separated by spaces. Both may be
     * NULL. */
    const char *programs;
    tnf_status (*loads)(const tnf_reader *r, const char *program, tnf_arena *arena, tnf_tell tell,
                        void *ctx, tnf_error *e);
    /* Tells more than what is wrong: a word and a text, or any value. May be NULL. */
    void (*notes)(const tnf_reader *r, void (*note)(void *ctx, const char *key, const tnf_value *v),
                  void *ctx);
    /* The same of a file that stands for several of this format, which leads its family. */
    void (*shard_notes)(const tnf_reader *r,
                        void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx);
    /* Tells where an open file departs from the form that its specification calls canonical. May be
     * NULL: there is none. */
    tnf_status (*canonical)(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                            tnf_error *e);
    /* As `decode`, but a slice (each of at least one element, checked) of a dense tensor, rows
     * first, whose part is TNF_OPAQUE under that key and whose elements are whole bytes. For those
     * that lie in chunks, so that others than the wanted ones are not touched. May be NULL. */
    tnf_status (*slice)(tnf_reader *r, uint64_t key, const tnf_slice *slices, void *dst, size_t n,
                        tnf_error *e);
    /* Gives back what `index` has put into r->state that does not lie in the arena. May be NULL. */
    void (*close)(tnf_reader *r);
    /* Files that make a folder one of this format, whatever else is in it; separated by spaces, the
     * first that is there is opened. May be NULL. */
    const char *folder_marks;
    /* A path with one of these extensions (separated by spaces) becomes a folder: `write` then gets
     * w->folder. May be NULL. */
    const char *folder_extensions;
} tnf_format;

/* ---------------------------------------------------------------- reading */

/* n bytes from offset on into scratch, with a cursor over them. TNF_ELIMIT above max (and above
 * limits.header_bytes), TNF_ETRUNCATED (with the number of missing bytes) beyond the file. `what`
 * names them for the message: "header", "index". */
tnf_status tnf_read_range(tnf_reader *r, const char *what, uint64_t offset, uint64_t n,
                          uint64_t max, tnf_cur *out, tnf_error *e);

/* A dense tensor as an index entry describes it. */
typedef struct tnf_dense {
    tnf_str name;
    const tnf_type *type;
    const uint64_t *shape; /* copied */
    uint32_t rank;
    uint64_t offset, length; /* its bytes in the file */
    const tnf_value *attrs;  /* a map in r->arena, or NULL */
    uint64_t at;             /* where the entry stands, for messages */
    tnf_order order;         /* of its bytes; of no meaning for less than two dimensions */
    uint8_t flags;           /* of its part: TNF_PART_BIG_ENDIAN, TNF_PART_UNREADABLE */
} tnf_dense;

/* Adds it after all the checks that every format needs: name length, rank, overflow of the product,
 * length against shape and type, duplicate names. Whether the range lies inside the file is checked
 * for all together when `index` is done, so that a short file can be told from a wrong one. */
tnf_status tnf_add_dense(tnf_reader *r, const tnf_dense *d, tnf_error *e);
/* The same for any layout. Parts with payload TNF_AT or TNF_ENCODED and no origin are taken to be
 * in this file. */
tnf_status tnf_add_object(tnf_reader *r, const tnf_object *object, uint64_t at, tnf_error *e);
/* The object of this layout and these parts: name, shape and attributes are `object`'s. */
tnf_status tnf_add_parts(tnf_reader *r, const tnf_object *object, const tnf_layout *layout,
                         const tnf_part *parts, uint16_t nparts, uint64_t at, tnf_error *e);
tnf_status tnf_add_extra(tnf_reader *r, const char *key, uint64_t offset, uint64_t n, tnf_error *e);
tnf_status tnf_set_attr(tnf_reader *r, const char *key, tnf_value value, tnf_error *e);
/* For formats with a text map: one pair of it, both UTF-8 and copied. They become the attribute
 * "<family>.metadata", except for what the core itself once put there, which it takes back. */
tnf_status tnf_set_text(tnf_reader *r, tnf_str key, tnf_str value, tnf_error *e);

/* Views without a copy are impossible, for this reason: TNF_EUNSUPPORTED. */
tnf_status tnf_cannot_map(const char *why, tnf_error *e);

/* Odd but legal. */
void tnf_warn(tnf_reader *r, uint64_t offset, const char *format, ...) TNF_PRINTF(3, 4);
/* Illegal, but the real readers look the other way: an error, or a warning if r->lenient. If the
 * file is salvaged, TNF_ETRUNCATED is a loss as well. Use as TNF_TRY(tnf_stricter(r, e, ...)). */
tnf_status tnf_stricter(tnf_reader *r, tnf_error *e, tnf_status status, uint64_t offset,
                        const char *format, ...) TNF_PRINTF(5, 6);
/* A file is salvaged and this part of it is damaged: notes the loss and gives true, `index` goes on
 * with the rest. False: it is not to be salvaged, or the failure is not the file's, so fail. If
 * `index` itself fails with a fault of the file, the core does this, and the tensors that were
 * added before count; but none whose bytes only the format can produce, for it may not be ready.
 * What lies beyond the end of the file need not be looked for: the core does. */
bool tnf_lose(tnf_reader *r, tnf_status status, const tnf_error *e);
/* The same for a tensor of which only the name is known. `implied`: another loss explains it
 * already, so verifying does not report this one. */
bool tnf_lose_tensor(tnf_reader *r, tnf_str name, uint64_t offset, bool implied, const char *why);
/* Writes a line of the parse log. Its arguments are computed even without a listener, so avoid it
 * in loops. The core writes a line for every tensor that is added. */
void tnf_trace(tnf_reader *r, uint64_t offset, const char *format, ...) TNF_PRINTF(3, 4);

/* Files that will be asked for one after the other: over the network they are opened at the same
 * time. */
void tnf_expect_siblings(tnf_reader *r, const tnf_str *names, size_t n);
/* Opens a file that lies beside this one (or below it), as the given format. The name comes from
 * the file and is not trusted: no absolute path, no "..", no empty or NUL-holding name. It is
 * opened once however often and by however many names (links, too) it is asked for, and closed with
 * this one. Only for sources with a path. */
tnf_status tnf_open_sibling(tnf_reader *r, const tnf_file **out, tnf_str name, const char *format,
                            tnf_error *e);
/* The same below a directory that the user, not the file, has named. */
tnf_status tnf_open_stored(tnf_reader *r, const tnf_file **out, const char *directory, tnf_str name,
                           const char *format, tnf_error *e);
/* A file of nothing but bytes: the origin of parts in it, and its size. The same rules; and it is
 * not this very file. */
tnf_status tnf_open_data(tnf_reader *r, const struct tnf_origin **out, uint64_t *size, tnf_str name,
                         tnf_error *e);
/* Has that file other names, too (hard links)? */
bool tnf_data_has_links(const struct tnf_origin *origin);
/* r->incomplete, and a file that is named is not there: warns, and keeps that in mind. */
struct missing_file;
tnf_status tnf_miss(tnf_reader *r, const struct missing_file **out, tnf_str name, uint64_t at,
                    tnf_error *e);
/* A tensor that lies in such a file and is known by its name alone. */
tnf_status tnf_add_missing(tnf_reader *r, tnf_str name, const struct missing_file *where,
                           uint64_t at, tnf_error *e);
/* What parts that lie in it, of tensors that are known, have for an origin; and they are
 * TNF_OPAQUE, with TNF_PART_UNREADABLE. */
tnf_status tnf_missing_origin(tnf_reader *r, const struct tnf_origin **out,
                              const struct missing_file *where, tnf_error *e);
/* The tensor that was restored from the tensor which the file itself calls `name`, or of which that
 * became a part; NULL: it was not changed. */
const tnf_object *tnf_find_piece(const tnf_file *file, const char *name, size_t n);
/* The i-th name in the file itself of a tensor that was restored; false past the last. */
bool tnf_piece_at(const tnf_file *file, size_t i, tnf_str *name);
/* The origin that reads the bytes of such a file, and its size: for parts in it. */
const struct tnf_origin *tnf_file_origin(const tnf_file *file, uint64_t *size);

/* The file as a zip archive, in r->scratch; close it. What usual readers let pass is for
 * tnf_stricter(). */
tnf_status tnf_open_zip(tnf_reader *r, tnf_container *out, tnf_error *e);
/* All files of the folder that the file is in, or below it; closed with the file. Only for sources
 * with a path; over the network where folders can be listed. */
tnf_status tnf_open_folder(tnf_reader *r, const tnf_container **out, tnf_error *e);
/* Fills where a part is: n of the decoded bytes of a member of either, from `skip` on.
 * front, if it is not NULL, is the CRC of those before; then the part has a digest if it reaches to
 * the end. */
tnf_status tnf_place_part(tnf_reader *r, tnf_part *part, const tnf_content *member,
                          const tnf_content_place *place, uint64_t skip, uint64_t n,
                          const uint32_t *front, tnf_error *e);
/* What parts with TNF_PART_UNREADABLE have for an origin, so that reading them says why. */
tnf_status tnf_unreadable_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                                 tnf_error *e);
/* The same for parts that are too much as a whole (bombs): slices of them are read. */
tnf_status tnf_slices_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                             tnf_error *e);
/* As tnf_add_extra(), with a part whose place is filled. */
tnf_status tnf_add_extra_part(tnf_reader *r, tnf_str key, const tnf_part *part, tnf_error *e);

/* ---------------------------------------------------------------- writing */

tnf_status tnf_put(tnf_writer *w, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_put_u8(tnf_writer *w, uint8_t v, tnf_error *e);
tnf_status tnf_put_u32(tnf_writer *w, uint32_t v, tnf_error *e);
tnf_status tnf_put_u64(tnf_writer *w, uint64_t v, tnf_error *e);
tnf_status tnf_put_fill(tnf_writer *w, uint8_t byte, uint64_t n, tnf_error *e);
/* The decoded bytes of a part, wherever they come from. */
tnf_status tnf_put_data(tnf_writer *w, const tnf_part *part, tnf_error *e);

/* The same, encoded and digested on the way. */
typedef struct tnf_put_how {
    tnf_codec codec; /* TNF_CODEC_RAW: as it is */
    int level;       /* 0: the codec's own default */
    bool big_endian;
    const char *digest; /* algorithm, or NULL */
    bool of_stored;     /* what the digest is of: stored bytes, or decoded ones */
} tnf_put_how;

typedef struct tnf_put_done {
    uint64_t offset, stored;
    uint8_t digest[32];
    size_t digest_n;
} tnf_put_done;

tnf_status tnf_put_part(tnf_writer *w, const tnf_part *part, const tnf_put_how *how,
                        tnf_put_done *done, tnf_error *e);

/* Passes the bytes of a part on, big-endian if that is asked for, instead of writing them: `take`
 * does. Counts them as done. */
tnf_status tnf_put_through(tnf_writer *w, const tnf_part *part, bool big_endian, tnf_take_fn take,
                           void *ctx, tnf_error *e);

/* The digest of the decoded bytes of a part, without writing it: for writers that look for equal
 * parts first. tnf_parts_equal() then compares the bytes themselves. */
tnf_status tnf_part_digest(const tnf_part *part, const char *algorithm, uint8_t out[32],
                           tnf_error *e);
tnf_status tnf_parts_equal(bool *out, const tnf_part *a, const tnf_part *b, tnf_error *e);

/* A second file, in the folder of the one that is written: there is one at most. Its name has no
 * folder and keeps the rule for paths; no link of that name is followed. At the end it gets its
 * name before the first file does. Where both replace older ones, `write` is called twice, so that
 * at every moment the first file is there with its own data: *name becomes the one to write into
 * the first file this time. TNF_EUNSUPPORTED where w->name is NULL. */
tnf_status tnf_make_beside(tnf_writer *w, tnf_str *name, tnf_error *e);
/* Up to tnf_end_beside() all that is put goes there. False: it is there already. */
bool tnf_begin_beside(tnf_writer *w);
void tnf_end_beside(tnf_writer *w);

/* w->in_place: from here up to there everything stays as it is in w->like. */
tnf_status tnf_put_same(tnf_writer *w, uint64_t upto, tnf_error *e);
/* w->in_place: the new bytes do not have the required length; `missing` is the difference. */
tnf_status tnf_no_room(uint64_t missing, const char *what, tnf_error *e);
/* w->like: is this option not set, so that the form of the file is kept? */
bool tnf_follows(const tnf_writer *w, size_t option);
/* w->like: are all tensors in that file, so that their order can be kept? */
bool tnf_has_places(const tnf_writer *w);
/* w->in_place: fails unless they do. */
tnf_status tnf_need_places(const tnf_writer *w, tnf_error *e);
/* The largest power of two, up to `most`, that they all begin at a multiple of, if
 * tnf_has_places().
 */
uint64_t tnf_alignment(const tnf_writer *w, uint64_t most);
/* By where the first part lies in the file: an order for tnf_sorted(). */
int tnf_compare_places(const tnf_object *a, const tnf_object *b);

/* Positions of the catalog's objects in a writing order, in w->scratch. compare() gets two objects
 * as qsort would; NULL sorts by the bytes of the name. Ties keep the catalog's order. */
tnf_status tnf_sorted(tnf_writer *w, const uint32_t **out,
                      int (*compare)(const tnf_object *a, const tnf_object *b), tnf_error *e);
/* By the bytes of the names: what NULL stands for above. */
int tnf_compare_names(const tnf_object *a, const tnf_object *b);

/* The i-th object in that order; a NULL order is the catalog's own. */
static inline const tnf_object *tnf_nth(const tnf_writer *w, const uint32_t *order, size_t i)
{
    return &w->catalog->objects[order ? order[i] : i];
}

#endif
