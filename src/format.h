/* SPDX-License-Identifier: MIT */
/* Everything that a format file needs: the descriptor to fill in, and the helpers to call.
 *
 * `probe` looks at a few bytes and says how sure it is. `index` fills the catalog and stops.
 * `write` streams a catalog that the core has already fitted to what `can` declares.
 * TEMPLATE.c is a complete format; docs/adding-a-format.md explains it step by step.
 *
 * This header includes those below. The ones that a format mostly needs:
 *
 *     base/cursor.h    tnf_u32(), tnf_u64(), tnf_bytes() …: parse bytes that were read
 *     base/error.h     tnf_fail(), TNF_TRY, TNF_QUOTED
 *     model/dtype.h    tnf_type_bytes(): bytes of a number of elements
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
    const char *ext; /* extension of the path in lower case, without the dot; "" if none */
} tnf_probe;

/* Does the head contain this text? Reads the whole head, so a probe should check this last. */
static inline bool tnf_head_holds(const tnf_probe *p, const char *text)
{
    return memmem(p->head, p->nhead, text, strlen(text)) != NULL;
}

/* Where metadata can go. TYPED: any tree of null, bool, u64, i64 (if negative), f64, text, bytes,
 * array and map; the core keeps the rest in one text attribute, TNF_STASH_KEY. */
typedef enum tnf_holds { TNF_HOLDS_NONE, TNF_HOLDS_TEXT, TNF_HOLDS_TYPED } tnf_holds;

typedef struct tnf_option_value {
    uint64_t u;    /* number; bool; position of the choice */
    const char *s; /* as given, or the default */
} tnf_option_value;

/* What happens to a tensor or attribute, and the reason unless it is simply kept. With TNF_NATIVE a
 * reason is a note: the tensor is written, but the user should know. */
typedef struct tnf_verdict {
    tnf_fate fate;
    const char *why;
} tnf_verdict;

/* Everything that will be saved, with the verdict on each tensor and attribute by itself. */
typedef struct tnf_fit {
    const tnf_catalog *catalog;
    const tnf_option_value *options; /* of the writer, in the order of write_options */
    tnf_arena *scratch;
    tnf_verdict *objects, *attrs; /* one for each of the catalog's objects and attributes */
    const char *extension;        /* of the path to write, in lower case; "" if none */
} tnf_fit;

#define TNF_ANY_RANK UINT32_MAX

/* What a format can hold. Lists are words separated by spaces; a NULL list means any. */
typedef struct tnf_can {
    const char *types, *layouts;
    /* Must this tensor be written as its storage type, although `types` has its type? For a tensor
     * that a reader would not read back with that type. May be NULL. */
    bool (*as_storage)(const tnf_object *object);
    /* Must this tensor be written as its parts, although `layouts` has its layout? For a tensor
     * that the format cannot store in that layout. May be NULL. */
    bool (*in_parts)(const tnf_object *object);
    /* Can the format hold this tensor, which has no readable bytes? May be NULL. */
    bool (*bare)(const tnf_object *object);
    /* Tensors of strings are written as u8 with one more dimension, the length of the longest
     * string. Each string is padded with 0 at its end. The stash says that they were strings. */
    bool pads_strings;
    bool order_f; /* column-major order is possible */
    bool only_f;  /* row-major order is not possible */
    /* order_f: must this row-major tensor be written column-major if no order is requested? For a
     * tensor that was column-major in a file of this format. May be NULL. */
    bool (*was_f)(const tnf_object *object);
    bool zero_rank;           /* scalars are possible */
    const char *not_empty;    /* why a file without tensors is impossible; NULL: it is possible */
    bool extras;              /* extras of its own family */
    const char *extra_prefix; /* the beginning of their keys, before a dot; NULL: the family */
    bool shares;              /* equal tensors are written once, so shared bytes stay shared */
    bool utf8_names;          /* names must be UTF-8 */
    bool ascii_names;         /* names must be ASCII */
    /* Unsigned types that the format lacks are stored as the signed ones of the same width. */
    bool unsigned_as_signed;
    bool narrow_numbers;  /* see tnf_format_info.narrow */
    const char *reserved; /* names that no tensor can have */
    /* The order in which a reader returns its tensors, as for tnf_sorted(). NULL: as written. */
    int (*sorts)(const tnf_object *a, const tnf_object *b);
    tnf_holds attrs; /* where file attributes go that have no native place */
    /* Tensors of a higher rank: the first dimensions are merged. 0: no limit but the default one
     * on reading. TNF_ANY_RANK: not even that, since the specification allows any rank. */
    uint32_t max_rank;
    /* TYPED: does this attribute of the file (`of` is NULL) or of a tensor come back unchanged?
     * NULL: everything that TNF_HOLDS_TYPED promises does. */
    bool (*holds_attr)(const tnf_member *attr, const tnf_object *of);
    /* TYPED: its reader puts this before every key; the file does not contain it. Attributes
     * without it come from other formats, which the stash notes. */
    const char *own_prefix;
    /* NONE: the type of a tensor TNF_STASH_KEY for attributes that have no place. It is written if
     * the writer's bool option "stash" is set. */
    const char *stash_type;
    /* TYPED: how many maps and arrays of the file are around the value of an attribute of the file,
     * and of a tensor, and count for the limit on depth. */
    uint8_t attr_levels, object_attr_levels;
    bool sorted_attrs; /* TYPED, but attributes come back sorted by the bytes of their keys */
    bool sorted_maps;  /* TYPED, but maps come back in CBOR's order of keys */
    const char *file_attrs, *object_attrs; /* attributes that have a native place */
    const char *json_attrs;                /* see tnf_format_info.json */
    /* Returns true if these options of the writer, such as an older version, leave no place for
     * this attribute, which object_attrs lists. It then counts as not listed. May be NULL. */
    bool (*no_place)(const tnf_member *attr, const tnf_option_value *options);
    /* Attributes that its reader computes, or sets if the file does not have them ("key=false",
     * "key=text", "key=0", "key={}"). Dropping them is no loss. */
    const char *derived;
    /* Attributes that only describe the spelling of its files, such as the line ends. "key" lists
     * an attribute with any value, "key=text" only with that value. They are not content: they are
     * kept if there is a place, and dropping them is no loss. */
    const char *spelling;
    /* Returns why the rows of words (`embeddings` with `vocab`, without `norms`) must become unit
     * vectors, with their lengths as `norms`: its own readers expect this. Returns NULL if they
     * stay as they are. May be NULL. */
    const char *(*unit_rows)(const tnf_catalog *catalog);
    /* Which parts of embeddings it holds: see tnf_format_info. */
    tnf_fold folds, unfolds;
    const char *document;
    /* The fate of a tensor for reasons of the format's own, called last: TNF_NATIVE, or with a
     * reason TNF_TRANSFORMED (`write` does it) or TNF_DROPPED. May be NULL. */
    tnf_fate (*takes)(const tnf_object *object, const char **reason);
    /* The same for tensors and attributes that do not fit together: makes verdicts worse, never
     * better, before any of them is reported. Only it may add notes. May be NULL. */
    tnf_status (*fits)(tnf_fit *fit, tnf_error *e);
} tnf_can;

/* Rules that the core checks over the whole catalog when `index` is done. */
enum {
    TNF_RULE_NO_OVERLAP = 1,        /* no byte belongs to two tensors */
    TNF_RULE_NO_HOLES = 2,          /* tensors tile the data exactly, from data_start to the end */
    TNF_RULE_DATA_START = 4,        /* no tensor begins before r->data_start */
    TNF_RULE_OVERLAP_ODD = 8,       /* overlap is legal but worth a warning */
    TNF_RULE_NAMES_MAY_REPEAT = 16, /* legal, worth a warning; a lookup finds the first */
    TNF_RULE_OVERLAP_WRONG = 32     /* overlap opens with a warning; verifying reports it */
};

typedef struct tnf_reader {
    tnf_arena *arena;   /* lives as long as the handle */
    tnf_arena *scratch; /* lives until `index` returns */
    const tnf_source *source;
    tnf_catalog *catalog;
    tnf_limits limits; /* with the defaults filled in */
    bool lenient;
    bool salvage;                    /* lenient, too; see tnf_lose() */
    bool incomplete;                 /* files that are named may be missing; see tnf_miss() */
    uint64_t unnamed;                /* tensors in missing files whose names are unknown */
    const tnf_option_value *options; /* in the order of read_options */
    const char *stem;                /* the file's name without directory and extension, or NULL */
    const char *extension;           /* of its name, in lower case; "" if none */
    const char *folder;  /* the directory of the file, as the user spelled it, or NULL */
    bool sibling;        /* opened by tnf_open_sibling() for another file */
    const char *version; /* `index` sets it: a literal or in the arena */
    uint64_t data_start; /* `index` sets it if a rule needs it */
    uint64_t data_end;   /* `index` sets it if the file ends with an index */
    /* `index` sets it: the order of the tensors is content, so formats that sort tensors must note
     * that order. */
    bool ordered;
    void *state;           /* `index` sets it, `decode` uses it: in the arena */
    struct tnf_file *file; /* the core's */
} tnf_reader;

/* One of the files that a model is split into. */
typedef struct tnf_shard {
    const char *name; /* without its directory: "model-00001-of-00002.zt" */
    tnf_str label;    /* the label in that name: "00001-of-00002" */
    tnf_file *file;   /* open */
} tnf_shard;

typedef struct tnf_writer {
    const tnf_catalog *catalog;
    tnf_arena *scratch;              /* lives until `write` returns */
    const tnf_option_value *options; /* in the order of write_options */
    tnf_sink *sink;                  /* sink->written is the position */
    /* For formats with can.attrs TNF_HOLDS_TEXT: the text map to write, all values strings. It
     * holds the family's own metadata first, then the entries that the core added (the stash). */
    const tnf_member *text;
    size_t ntext;
    /* The file of which this one is a changed copy, or NULL. Unless an option says otherwise, the
     * copy has the same form (order, alignment, encodings, digests). */
    const tnf_reader *like;
    bool in_place;  /* `like` is overwritten (TNF_CAN_EDIT): tnf_put_same(), tnf_no_room() */
    uint64_t shift; /* in place: the bytes after the header move by this many bytes */
    uint64_t lacks; /* the format sets it: by how much the header is too long */
    const tnf_reader *base;  /* `append`: the file as it is; sink->written is its size */
    const tnf_shard *shards; /* `write_index`: where the tensors are */
    size_t nshards;
    const char *extension; /* of the path to write, in lower case; "" if none */
    const char *name;      /* of the file to write, without its directory; NULL: not a file */
    /* `write`: the directory that is made, or NULL. In a directory, `write` sets `sink` to that of
     * the current member. */
    struct tnf_folder_sink *folder;
    struct tnf_save *save; /* the core's */
    /* The core's: the catalog sorted by the addresses of parts, if a sink needs it; or NULL. */
    const tnf_object *const *by_parts;
} tnf_writer;

/* Receives each problem of a file and the name of its tensor (empty: the whole file). */
typedef void (*tnf_tell)(void *ctx, const tnf_error *problem, tnf_str tensor);

/* The specification's names for the rules that a part can break when it is verified. */
typedef struct tnf_rule_names {
    const char *digest, *encoding, *data;
} tnf_rule_names;

/* Marks a function of a descriptor that only writing needs. In a library that only reads
 * (TENFOLD_WRITE is off), no descriptor refers to it, so a linked program does not contain it. */
#ifdef TENFOLD_READ_ONLY
#define TNF_WRITES(function) (0 ? (function) : NULL)
#else
#define TNF_WRITES(function) (function)
#endif

typedef struct tnf_format {
    const char *name, *title, *extensions, *family; /* "ztensor2", "zTensor 2", "zt", "ztensor" */
    unsigned caps;                                  /* TNF_CAN_READ | TNF_CAN_WRITE … */
    unsigned rules;                                 /* TNF_RULE_… */
    /* &tnf_digests if its own readers compare the digest of every part that they read completely;
     * or NULL. */
    const struct tnf_digest_ops *check_reads;
    bool stands_for_shards; /* an index of files; shown to users as the format of those files */
    /* stands_for_shards: the end of the names of such indexes, with two dots (".index.json").
     * `index_names` calls `take` with each file that the text of an index names. If the text is
     * damaged, it takes the names before the damage. It fails only if there is no memory. Both may
     * be NULL. */
    const char *index_suffix;
    tnf_status (*index_names)(tnf_str text, uint32_t depth, tnf_arena *arena,
                              void (*take)(void *ctx, tnf_str name), void *ctx, tnf_error *e);
    /* TNF_CAN_EDIT, and no byte after the header contains a position: the data can be shifted. */
    bool can_shift;
    /* If files are named NAME-00001-of-0000N and written by `shard_attrs`, the first one opens as
     * the whole model. */
    bool opens_sets;
    bool shown_as_index; /* an index that is shown by its own name */
    tnf_can can;
    const tnf_option_info *read_options, *write_options;
    const tnf_rule_names *rule_names; /* NULL: its specification has no such names */

    int (*probe)(const tnf_probe *p);
    tnf_status (*index)(tnf_reader *r, tnf_error *e);
    tnf_status (*decode)(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
    /* `decode` for callers that read a part piece by piece. `kept` are `keeps` bytes that belong to
     * the caller, zeroed at the beginning; decoded chunks can wait there for the next piece.
     * `forget` frees their content. Slices of such a part are requested run by run. May be NULL. */
    tnf_status (*decode_on)(tnf_reader *r, void *kept, uint64_t key, uint64_t offset, void *dst,
                            size_t n, tnf_error *e);
    void (*forget)(void *kept);
    size_t keeps;
    /* Lends the strings of a strings/1 tensor whose part `bytes` is TNF_OPAQUE under that key, or
     * fails with tnf_cannot_map() and the reason. May be NULL. */
    tnf_status (*strings)(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e);
    /* Does tnf_element_text() for tensors whose attributes, of this family, say more about the
     * elements than the type. Returns SIZE_MAX for other tensors. If `bytes` is NULL, only *axes is
     * set, and any other result is returned. May be NULL. */
    size_t (*element_text)(const tnf_object *object, uint32_t *axes, const void *bytes, size_t n,
                           char *out, size_t room);
    tnf_status (*write)(tnf_writer *w, tnf_error *e);
    /* Called before a changed copy of this file is written: gives options that still have their
     * defaults the values of that file. Only for options that decide what can be written. May be
     * NULL. */
    void (*follow)(const tnf_reader *like, tnf_option_value *options);
    /* Like `write`, but appends to the existing file w->base. The catalog also has the tensors of
     * that file, with the parts that `index` made. For TNF_CAN_APPEND. */
    tnf_status (*append)(tnf_writer *w, tnf_error *e);
    /* Writes the index of the files w->shards, whose tensors are written already. Its name is that
     * of the model followed by index_name. May be NULL. */
    tnf_status (*write_index)(tnf_writer *w, tnf_error *e);
    const char *index_name;
    /* For models whose files are connected by attributes and need no index. The first file has all
     * attributes; each file also gets those that this function adds for the i-th of n files (n > 1,
     * i from 0). May be NULL. */
    tnf_status (*shard_attrs)(tnf_attrs *attrs, const tnf_catalog *whole, size_t i, size_t n,
                              tnf_error *e);
    /* `inside`: a directory opens as the file at this path in it ("variables/variables.index",
     * ".metadata"). `suffix`: the end of that name, which a path may omit (".index"). Both may be
     * NULL. */
    const char *inside, *suffix;
    /* What the names of its data files have in place of `suffix`, with # for each digit
     * (".data-#####-of-#####"): such a name opens the file, too. May be NULL. */
    const char *data_suffix;
    /* `choice` is a text file that says which file of a directory to open ("checkpoint"); `chosen`
     * finds the name in it. *name is in `room`, which is as long as the text; it is not checked and
     * lacks `suffix`. Returns false if it is another kind of text. Both may be NULL. */
    const char *choice;
    bool (*chosen)(tnf_str text, char *room, tnf_str *name);
    /* Reports the problems that verifying finds beyond parts and their layouts. May be NULL. */
    tnf_status (*verify)(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);
    /* `programs`: names separated by spaces. `loads` reports why one of them would not load the
     * file. Both may be NULL. */
    const char *programs;
    tnf_status (*loads)(const tnf_reader *r, const char *program, tnf_arena *arena, tnf_tell tell,
                        void *ctx, tnf_error *e);
    /* Reports findings that are not problems: a keyword and a text, or any value. May be NULL. */
    void (*notes)(const tnf_reader *r, void (*note)(void *ctx, const char *key, const tnf_value *v),
                  void *ctx);
    /* The same for an index file whose shards have this format; this format leads its family. */
    void (*shard_notes)(const tnf_reader *r,
                        void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx);
    /* Reports where an open file departs from the form that its specification calls canonical.
     * NULL: there is no such form. */
    tnf_status (*canonical)(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                            tnf_error *e);
    /* Like `decode`, but decodes a slice (checked, each dimension with at least one element) of a
     * dense row-major tensor, whose part is TNF_OPAQUE under that key and whose elements are whole
     * bytes. For tensors stored in chunks: only the chunks that the slice needs are read. May be
     * NULL. */
    tnf_status (*slice)(tnf_reader *r, uint64_t key, const tnf_slice *slices, void *dst, size_t n,
                        tnf_error *e);
    /* Frees what `index` has put into r->state outside the arena. May be NULL. */
    void (*close)(tnf_reader *r);
    /* Files (separated by spaces) that mark a directory as one of this format, whatever else is in
     * it. The first that exists is opened. May be NULL. */
    const char *folder_marks;
    /* A path with one of these extensions (separated by spaces) is written as a directory: `write`
     * then gets w->folder. May be NULL. */
    const char *folder_extensions;
} tnf_format;

/* ---------------------------------------------------------------- reading */

/* Has this process claimed the file (io/claim.h)? Then no other program changes it. */
bool tnf_is_claimed(const tnf_reader *r);

/* Reads n bytes at `offset` into scratch, and sets a cursor to them. TNF_ELIMIT above max (and
 * above limits.header_bytes), TNF_ETRUNCATED (with the number of missing bytes) beyond the file.
 * `what` names the bytes in messages: "header", "index". */
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
    uint64_t at;             /* where the entry is, for messages */
    tnf_order order;         /* of its bytes; ignored below two dimensions */
    uint8_t flags;           /* of its part: TNF_PART_BIG_ENDIAN, TNF_PART_UNREADABLE */
} tnf_dense;

/* Adds a dense tensor after the checks that every format needs: name length, rank, overflow of the
 * product, length against shape and type, duplicate names. When `index` is done, the core checks
 * for all tensors together whether their ranges are inside the file. So it can tell a truncated
 * file from a wrong one. */
tnf_status tnf_add_dense(tnf_reader *r, const tnf_dense *d, tnf_error *e);
/* The same for any layout. A part with payload TNF_AT or TNF_ENCODED and no origin is in this
 * file. */
tnf_status tnf_add_object(tnf_reader *r, const tnf_object *object, uint64_t at, tnf_error *e);
/* For a format that stores the dimensions of a tensor before they can be checked: fails if there
 * are more than the limit allows. */
tnf_status tnf_check_rank(const tnf_reader *r, tnf_str name, uint32_t rank, uint64_t at,
                          tnf_error *e);
/* Adds an object of this layout and these parts. Name, shape and attributes are those of
 * `object`. */
tnf_status tnf_add_parts(tnf_reader *r, const tnf_object *object, const tnf_layout *layout,
                         const tnf_part *parts, uint16_t nparts, uint64_t at, tnf_error *e);
tnf_status tnf_add_extra(tnf_reader *r, const char *key, uint64_t offset, uint64_t n, tnf_error *e);
tnf_status tnf_set_attr(tnf_reader *r, const char *key, tnf_value value, tnf_error *e);
/* Copies a text of the file: a string if it is UTF-8, else bytes. */
tnf_status tnf_text_value(tnf_reader *r, tnf_value *out, tnf_str text, tnf_error *e);
/* For formats with a text map: adds one pair, both UTF-8 and copied. The pairs become the attribute
 * "<family>.metadata". Pairs that the core itself wrote (the stash) are not added; the core uses
 * them. */
tnf_status tnf_set_text(tnf_reader *r, tnf_str key, tnf_str value, tnf_error *e);

/* Fails with TNF_EUNSUPPORTED and the reason why views without a copy are impossible. */
tnf_status tnf_cannot_map(const char *why, tnf_error *e);

/* Reports something unusual but legal. */
void tnf_warn(tnf_reader *r, uint64_t offset, const char *format, ...) TNF_PRINTF(3, 4);
/* For something illegal that the format's own readers tolerate: an error, or a warning if
 * r->lenient. If the file is salvaged, TNF_ETRUNCATED is a loss as well. Use as
 * TNF_TRY(tnf_stricter(r, e, ...)). */
tnf_status tnf_stricter(tnf_reader *r, tnf_error *e, tnf_status status, uint64_t offset,
                        const char *format, ...) TNF_PRINTF(5, 6);
/* The same as a function that reading an archive calls (`odd` in tnf_zip_from, tnf_container_how),
 * with the reader as ctx. */
tnf_status tnf_stricter_odd(void *reader, tnf_status status, uint64_t offset, const char *text,
                            tnf_error *e);
/* For a damaged piece of a file. If the file is salvaged, notes the loss and returns true: `index`
 * continues with the rest. Returns false if the file is not salvaged or the failure is not the
 * file's fault: `index` must fail. If `index` itself fails with a fault of the file, the core does
 * this, and keeps the tensors added before. It does not keep tensors whose bytes only the format
 * can produce, since the format might not be ready. `index` need not look for data beyond the end
 * of the file: the core does. */
bool tnf_lose(tnf_reader *r, tnf_status status, const tnf_error *e);
/* The same for a tensor of which only the name is known. `implied`: another loss explains this one
 * already, so verifying does not report it. */
bool tnf_lose_tensor(tnf_reader *r, tnf_str name, uint64_t offset, bool implied, const char *why);
/* Writes a line of the parse log. Its arguments are computed even without a listener, so avoid it
 * in loops. The core writes a line for every tensor that is added. */
void tnf_trace(tnf_reader *r, uint64_t offset, const char *format, ...) TNF_PRINTF(3, 4);

/* Announces files that will be opened one after the other: over the network they are opened in
 * parallel. */
void tnf_expect_siblings(tnf_reader *r, const tnf_str *names, size_t n);
/* Opens a file next to this one (or below its directory), as the given format. The name comes from
 * the file and is not trusted: no absolute path, no "..", no empty name, no NUL. Each file is
 * opened once, even if it is requested again or by other names (links), and is closed with this
 * one. Only for sources with a path. */
tnf_status tnf_open_sibling(tnf_reader *r, const tnf_file **out, tnf_str name, const char *format,
                            tnf_error *e);
/* The same below a directory that the user, and not the file, has named. */
tnf_status tnf_open_stored(tnf_reader *r, const tnf_file **out, const char *directory, tnf_str name,
                           const char *format, tnf_error *e);
/* Opens a file that contains only bytes: returns the origin for parts in it, and its size. The same
 * rules apply; in addition, it must not be the file being read. */
tnf_status tnf_open_data(tnf_reader *r, const struct tnf_origin **out, uint64_t *size, tnf_str name,
                         tnf_error *e);
/* Does that file have other names (hard links)? */
bool tnf_data_has_links(const struct tnf_origin *origin);
/* If r->incomplete is set and a named file does not exist: warns, and remembers the file. */
struct missing_file;
tnf_status tnf_miss(tnf_reader *r, const struct missing_file **out, tnf_str name, uint64_t at,
                    tnf_error *e);
/* Adds a tensor of a missing file; only the name of the tensor is known. */
tnf_status tnf_add_missing(tnf_reader *r, tnf_str name, const struct missing_file *where,
                           uint64_t at, tnf_error *e);
/* Returns the origin for parts in a missing file, if everything but the bytes of the tensor is
 * known. The parts must be TNF_OPAQUE, with TNF_PART_UNREADABLE. */
tnf_status tnf_missing_origin(tnf_reader *r, const struct tnf_origin **out,
                              const struct missing_file *where, tnf_error *e);
/* Finds a restored tensor by a name in the file: the tensor that has this name there, or that has
 * the tensor of this name as a part. NULL: the tensor of this name was not changed. */
const tnf_object *tnf_find_piece(const tnf_file *file, const char *name, size_t n);
/* Gets the i-th name in the file of a tensor that was restored; false past the last. */
bool tnf_piece_at(const tnf_file *file, size_t i, tnf_str *name);
/* Returns the origin for parts in an open file; *size is the number of its bytes. */
const struct tnf_origin *tnf_file_origin(const tnf_file *file, uint64_t *size);

/* Opens the file as a zip archive, in r->scratch; close it. Faults that usual readers tolerate go
 * through tnf_stricter(). */
tnf_status tnf_open_zip(tnf_reader *r, tnf_container *out, tnf_error *e);
/* All files in or below the directory of the file; closed with the file. Only for sources with a
 * path; over the network only if directories can be listed. */
tnf_status tnf_open_folder(tnf_reader *r, const tnf_container **out, tnf_error *e);
/* Fills in where a part is: n of the decoded bytes of a member of an archive or directory, from
 * `skip` on. `front`, if not NULL, is the CRC of the bytes before; the part then has a digest if it
 * reaches the end of the member. */
tnf_status tnf_place_part(tnf_reader *r, tnf_part *part, const tnf_container_member *member,
                          const tnf_member_place *place, uint64_t skip, uint64_t n,
                          const uint32_t *front, tnf_error *e);
/* The origin for parts with TNF_PART_UNREADABLE, so that reading them fails with the reason. */
tnf_status tnf_unreadable_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                                 tnf_error *e);
/* The same for parts that are too large to decode completely (bombs), but can be read by slices. */
tnf_status tnf_slices_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                             tnf_error *e);
/* Like tnf_add_extra(), with a part whose place is filled in. */
tnf_status tnf_add_extra_part(tnf_reader *r, tnf_str key, const tnf_part *part, tnf_error *e);

/* ---------------------------------------------------------------- writing */

tnf_status tnf_put(tnf_writer *w, const void *bytes, size_t n, tnf_error *e);
/* Writes the buffer and empties it; `what` is for its own errors. */
tnf_status tnf_put_buf(tnf_writer *w, tnf_buf *b, const char *what, tnf_error *e);
tnf_status tnf_put_u8(tnf_writer *w, uint8_t v, tnf_error *e);
tnf_status tnf_put_u32(tnf_writer *w, uint32_t v, tnf_error *e);
tnf_status tnf_put_u64(tnf_writer *w, uint64_t v, tnf_error *e);
tnf_status tnf_put_fill(tnf_writer *w, uint8_t byte, uint64_t n, tnf_error *e);
/* Writes zeros up to the next multiple. */
tnf_status tnf_put_align(tnf_writer *w, uint64_t alignment, tnf_error *e);
/* Writes the decoded bytes of a part from any origin. */
tnf_status tnf_put_data(tnf_writer *w, const tnf_part *part, tnf_error *e);

/* The same, encoded, with a digest. */
typedef struct tnf_put_how {
    tnf_codec codec; /* TNF_CODEC_RAW: as it is */
    int level;       /* 0: the codec's default */
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

/* Passes the bytes of a part to `take` instead of writing them, big-endian if requested. Counts
 * them as done. */
tnf_status tnf_put_through(tnf_writer *w, const tnf_part *part, bool big_endian, tnf_take_fn take,
                           void *ctx, tnf_error *e);

/* The digest of the decoded bytes of a part, which are not written: for writers that look for equal
 * parts first. tnf_parts_equal() then compares the bytes themselves. */
tnf_status tnf_part_digest(const tnf_part *part, const char *algorithm, uint8_t out[32],
                           tnf_error *e);
tnf_status tnf_parts_equal(bool *out, const tnf_part *a, const tnf_part *b, tnf_error *e);
/* Can the bytes of this part be read only once, in order? They come from a function of the caller
 * (tnf_builder_add_stream()), or are made of such bytes. */
bool tnf_part_once(const tnf_part *part);

/* Makes a second file in the directory of the first; there is at most one. Its name contains no
 * directory and follows the rule for paths; a link of that name is not followed. At the end it gets
 * its name before the first file does. If both replace older files, `write` is called twice, so
 * that at every moment the first file has its own data: *name becomes the name to write into the
 * first file this time. TNF_EUNSUPPORTED if w->name is NULL. */
tnf_status tnf_make_second_file(tnf_writer *w, tnf_str *name, tnf_error *e);
/* Everything that is put until tnf_end_second_file() goes to the second file. False: it is
 * complete. */
bool tnf_begin_second_file(tnf_writer *w);
void tnf_end_second_file(tnf_writer *w);

/* w->in_place: keeps the bytes of w->like from the current position to `upto`. */
tnf_status tnf_put_same(tnf_writer *w, uint64_t upto, tnf_error *e);
/* w->in_place: the new bytes do not have the required length; `missing` is the difference. */
tnf_status tnf_no_room(uint64_t missing, const char *what, tnf_error *e);
/* w->like: is this option unset, so that the copy keeps the form of the file? */
bool tnf_follows(const tnf_writer *w, size_t option);
/* w->like: are all tensors in that file, so that their order can be kept? */
bool tnf_has_places(const tnf_writer *w);
/* w->in_place: fails unless tnf_has_places(). */
tnf_status tnf_need_places(const tnf_writer *w, tnf_error *e);
/* The largest power of two, up to `most`, that divides the positions of all tensors, if
 * tnf_has_places(). */
uint64_t tnf_alignment(const tnf_writer *w, uint64_t most);
/* Compares by the position of the first part in the file; for tnf_sorted(). */
int tnf_compare_places(const tnf_object *a, const tnf_object *b);

/* Positions of the catalog's objects in the order of writing, in w->scratch. compare() gets two
 * objects, as for qsort(); NULL sorts by the bytes of the name. Ties keep the catalog's order. */
tnf_status tnf_sorted(tnf_writer *w, const uint32_t **out,
                      int (*compare)(const tnf_object *a, const tnf_object *b), tnf_error *e);
/* Compares the bytes of the names, which is the order that NULL stands for above. */
int tnf_compare_names(const tnf_object *a, const tnf_object *b);

/* The i-th object in that order; a NULL order is the catalog's own. */
static inline const tnf_object *tnf_nth(const tnf_writer *w, const uint32_t *order, size_t i)
{
    return &w->catalog->objects[order ? order[i] : i];
}

#endif
