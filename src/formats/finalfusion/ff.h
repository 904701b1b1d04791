/* SPDX-License-Identifier: MIT */
/* Shared by the files of the finalfusion format.
 *
 *   chunks.c    header, frames, their order, the dialect
 *   groups.c    several matrices in a file: names, and what the writer makes of them
 *   lists.c     words and n-grams: one pass over them
 *   decode.c    decodes any piece of them on demand
 *   ngrams.c    n-grams and their rows
 *   vocab.c     the vocabulary chunks
 *   padding.c   element types, and where data begin
 *   storage.c   dense matrices and norms
 *   quantized.c quantized matrices
 *   metadata.c  the TOML text, and Tenfold's own table at its end
 *   fit.c       decides what the format can hold of a catalog
 *   write.c     the writer
 *   words.c     checks and writes words and n-grams of a catalog
 */
#ifndef TNF_FINALFUSION_H
#define TNF_FINALFUSION_H

#include "format.h"

/* Chunks as the tools number them. */
enum {
    FF_SIMPLE = 1,
    FF_DENSE = 2,
    FF_BUCKET = 3,
    FF_QUANTIZED = 4,
    FF_METADATA = 5,
    FF_NORMS = 6,
    FF_FASTTEXT = 7,
    FF_EXPLICIT = 8,
    FF_FLORET = 9,
    FF_LAST = FF_FLORET
};
/* And as the document numbers them, where it differs. */
enum { FF_SEED_SIMPLE = 0, FF_SEED_STORAGE = 1 };

typedef enum ff_dialect { FF_REAL, FF_SEED, FF_R2V } ff_dialect;

/* The kinds of chunks, in the order of a file. */
typedef enum ff_kind {
    FF_KIND_NONE,
    FF_KIND_METADATA,
    FF_KIND_VOCAB,
    FF_KIND_STORAGE,
    FF_KIND_NORMS,
    FF_KIND_UNKNOWN
} ff_kind;

#define FF_MAGIC        "FiFu"
#define FF_R2V_MAGIC    "R2V"
#define FF_FRAME        12u   /* id and length before each chunk */
#define FF_MAX_CHUNKS   4096u /* real files have four at most */
#define FF_TYPE_U8      1u
#define FF_TYPE_F32     10u
#define FF_TYPES        12u
#define FF_MAX_EXPONENT 63u

#define FF_EMBEDDINGS   "embeddings"
#define FF_VOCAB        "vocab"
#define FF_NGRAMS       "ngrams"
#define FF_INDEX        "ngrams.index"
#define FF_NORMS_NAME   "norms"

/* Attributes. */
#define FF_ATTR(name)   "finalfusion." name
#define FF_PIECES       FF_ATTR("subquantizers") /* of a quantized tensor without rows */
#define FF_BARE         FF_ATTR("norms")         /* false: vectors of words without norms */
#define FF_TRAILING     FF_ATTR("trailing")

/* Unknown chunks are extras: FF_CHUNK "after_vocab", or in a later group FF_CHUNK "2.after_vocab".
 */
#define FF_CHUNK        FF_ATTR("chunk.")
/* The words of these keys, by the kind of the chunk before. */
extern const char *const tnf_ff_places[FF_KIND_UNKNOWN];
/* "simple" … "floret" by id; NULL for an id that is not a vocabulary. */
extern const char *const tnf_ff_vocab_names[FF_LAST + 1];
/* Element types by their ids in files. */
const tnf_type *tnf_ff_type_of(uint32_t id);
bool tnf_ff_type_id(uint32_t *out, const tnf_type *type);

/* ---------------------------------------------------------------- reading */

#define FF_EVERY 1024u /* strings between two marks */

/* Consecutive strings: u32 length, bytes, and `suffix` bytes of other data. */
typedef struct ff_list {
    uint64_t at, bytes; /* at: where the first begins; bytes: length of all */
    uint64_t count;
    uint32_t suffix;
    uint64_t *marks; /* where every 1024th begins, relative to `at` */
} ff_list;

/* The state that decode() needs: keys of opaque parts are FF_KEY(list, what). */
typedef struct ff_state {
    ff_list *lists; /* two for each vocabulary: FF_WORDS, FF_GRAMS */
    uint32_t nlists, room;
    uint64_t metadata; /* bytes of the first such chunk, for editing in place */
} ff_state;

enum { FF_WORDS, FF_GRAMS };                /* lists of a vocabulary */
enum { FF_OFFSETS, FF_BYTES, FF_SUFFIXES }; /* parts of a list */
#define FF_KEY(list, what) ((uint64_t)(list)*3 + (what))

typedef struct ff_frame {
    uint32_t id;
    uint64_t at;     /* of the frame */
    uint64_t body;   /* of the data after the frame */
    uint64_t length; /* of the data, as the file says */
    uint64_t end;    /* where the next chunk begins: first as the file says, later as measured */
} ff_frame;

typedef struct ff_reading {
    tnf_reader *r;
    ff_state *state;
    ff_dialect dialect;
    uint32_t group;           /* of the current chunk: 1, 2 … */
    ff_kind last;             /* kind of the previous chunk of the group */
    bool matrix;              /* the group has a matrix */
    uint32_t vocab;           /* its id; 0 with `words_known`: the document's simple vocabulary */
    bool words_known;         /* there was a vocabulary */
    uint32_t lists;           /* where its lists are */
    uint64_t words, subwords; /* rows that it requires */
    tnf_attrs attrs;          /* of the matrix to come, in a later group */
    const tnf_value *tensors; /* attributes of tensors from Tenfold's table, by name; or NULL */
    uint8_t *window;          /* for passes over lists, made at the first one */
    size_t window_bytes;
} ff_reading;

tnf_status tnf_ff_index(tnf_reader *r, tnf_error *e);
/* Reads the frame at `at`, where the file has room for one. */
tnf_status tnf_ff_frame_read(tnf_reader *r, uint64_t at, ff_frame *out, tnf_error *e);
tnf_status tnf_ff_read_vocab(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_storage(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_norms(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_metadata(ff_reading *f, ff_frame *c, tnf_error *e);
/* Adds a tensor; in a later group its name begins with the number of the group. */
tnf_status tnf_ff_add(ff_reading *f, const tnf_object *object, uint64_t at, tnf_error *e);
/* Gives tensors the attributes of Tenfold's table. */
tnf_status tnf_ff_take_tensors(ff_reading *f, tnf_error *e);
/* Sets an attribute of the file, or in a later group of its matrix. */
tnf_status tnf_ff_set(ff_reading *f, const char *key, tnf_value value, tnf_error *e);
tnf_status tnf_ff_set_uint(ff_reading *f, const char *key, uint64_t value, tnf_error *e);
/* A copy of the attributes that tnf_ff_set() collected for this matrix, with `more`; NULL: none. */
tnf_status tnf_ff_matrix_attrs(ff_reading *f, const tnf_member *more, const tnf_value **out,
                               tnf_error *e);

/* A window of the file, read ahead. */
typedef struct ff_window {
    const tnf_source *source;
    uint8_t *p;
    size_t capacity, n;
    uint64_t at;
} ff_window;

/* Returns n bytes at `at`; n must not exceed the size of the window. */
tnf_status tnf_ff_bytes_at(ff_window *w, uint64_t at, size_t n, const uint8_t **out, tnf_error *e);

/* One pass over a list of l->count strings at `at`, none of which may extend beyond `bound`. It
 * checks lengths and text and sets the marks. `take` is called with the number after each string,
 * if the list has numbers. */
typedef void (*ff_take)(void *ctx, uint64_t number);
/* Makes the lists of one more vocabulary. */
tnf_status tnf_ff_list_new(ff_reading *f, tnf_error *e);
ff_list *tnf_ff_list(const ff_reading *f, unsigned which);
tnf_status tnf_ff_list_scan(ff_reading *f, ff_list *l, uint64_t bound, const char *what,
                            ff_take take, void *ctx, tnf_error *e);
tnf_status tnf_ff_list_add(ff_reading *f, unsigned which, const char *name, uint64_t at,
                           tnf_error *e);
tnf_status tnf_ff_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_ff_strings(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e);

/* Reads n-grams and their rows. Adds both tensors; *rows is the number of rows. */
tnf_status tnf_ff_read_ngrams(ff_reading *f, const ff_frame *c, uint64_t bound, uint64_t *rows,
                              tnf_error *e);

/* Counts distinct indices, to check that they cover all of 0 … rows-1. Any index is harmless. */
typedef struct ff_rows {
    uint8_t *seen; /* a bit for each possible index */
    uint64_t n;    /* most indices */
    uint64_t distinct, next;
    uint64_t most; /* the largest */
    bool ordered;  /* new indices appear in the order 0, 1, 2 … */
} ff_rows;

bool tnf_ff_rows_begin(ff_rows *rows, uint64_t n, tnf_arena *arena);
void tnf_ff_rows_take(void *ctx, uint64_t index); /* ctx: an ff_rows; this is an ff_take */
bool tnf_ff_rows_cover(const ff_rows *rows);

/* Incremental UTF-8 validation. */
typedef struct ff_utf8 {
    uint8_t left;      /* continuation bytes to come */
    uint8_t low, high; /* range of the next one */
} ff_utf8;

bool tnf_ff_utf8_feed(ff_utf8 *u, const uint8_t *p, size_t n);

/* ---------------------------------------------- padding.c, for storage.c and quantized.c */

/* Data after fixed fields. `from` is where the fields end, `bytes` is the size of the data, `slack`
 * is the rest of the chunk. */
typedef struct ff_space {
    uint64_t from, bytes, slack;
    uint64_t align;
    bool fits; /* the chunk is long enough; slack is not negative */
    const char *what;
} ff_space;

ff_space tnf_ff_space_of(const ff_frame *c, uint64_t fields, uint64_t bytes, uint64_t align,
                         const char *what);
/* Is the slack a padding that a known writer produces? */
bool tnf_ff_find_padding(ff_reading *f, const ff_space *s, uint64_t *out);
/* Where the data begin; sets c->end. */
tnf_status tnf_ff_place(ff_reading *f, ff_frame *c, const ff_space *s, uint64_t *at, tnf_error *e);
tnf_status tnf_ff_too_large(const ff_frame *c, const char *what, tnf_error *e);
tnf_status tnf_ff_read_fields(ff_reading *f, const ff_frame *c, uint64_t n, const char *what,
                              tnf_cur *out, tnf_error *e);
/* Checks that there are as many rows as the vocabulary requires. */
tnf_status tnf_ff_check_rows(ff_reading *f, uint64_t rows, uint64_t at, tnf_error *e);
tnf_part tnf_ff_part_at(const char *role, const tnf_type *type, uint64_t offset, uint64_t n);

tnf_status tnf_ff_read_quantized(ff_reading *f, ff_frame *c, tnf_error *e);
/* Does the length of the chunk fit a quantized matrix? */
tnf_status tnf_ff_is_quantized(ff_reading *f, const ff_frame *c, bool *out, tnf_error *e);

/* ---------------------------------------------------------------- writing */

/* Positions in the write options. */
enum { FF_OPTION_DIALECT, FF_OPTION_RESERVE };

/* How a catalog is written. fit.c and write.c share it. */
typedef struct ff_plan {
    ff_dialect dialect;
    const tnf_object *embeddings, *vocab, *ngrams, *index, *norms; /* NULL: none */
    uint32_t kind; /* the vocabulary's id as the tools number it; 0: none */
    uint64_t words, subwords;
    uint64_t min_n, max_n, buckets, hashes, seed;
    tnf_str bow, eow;
    const char *why; /* reason why the vocabulary named by the attributes is impossible; or NULL */
} ff_plan;

/* The groups after the first one. */
typedef struct ff_groups {
    ff_plan *plans; /* of group 2, 3 … */
    uint32_t n;
    /* For each place, and for each extra the next one there: a position + 1; 0: none. */
    uint32_t *first, *next;
} ff_groups;

/* Words or n-grams of a catalog. Their bytes are not in memory. */
typedef struct ff_words {
    const tnf_object *object;
    const uint8_t *offsets; /* u64, count + 1 of them */
    const uint8_t *numbers; /* u64, written after each; NULL: its position */
    uint64_t count;
    uint32_t suffix; /* 8 if a number follows each, else 0 */
} ff_words;

/* Loads the list and checks that its offsets are valid and that its strings have at most 4 GiB.
 * *why is the reason if not. `numbers` may be NULL. */
tnf_status tnf_ff_words_load(ff_words *out, const tnf_object *strings, const tnf_object *numbers,
                             tnf_arena *arena, const char **why, tnf_error *e);
/* Is every string UTF-8? *why is the reason if not. */
tnf_status tnf_ff_words_check(const ff_words *words, const char **why, tnf_error *e);
/* Writes the list in the form of a file. The second function returns its size there in bytes. */
tnf_status tnf_ff_words_put(tnf_writer *w, const ff_words *words, tnf_error *e);
uint64_t tnf_ff_words_bytes(const ff_words *words);
/* Counts the rows of explicit n-grams; *why is set if their indices leave a row out. */
tnf_status tnf_ff_words_rows(const ff_words *words, uint64_t *rows, tnf_arena *arena,
                             const char **why, tnf_error *e);

/* fit.c: the reason why rows of words must become unit vectors, or NULL. */
const char *tnf_ff_unit_rows(const tnf_catalog *c);
tnf_status tnf_ff_fits(tnf_fit *fit, tnf_error *e);
extern const char tnf_ff_wrong_rows[], tnf_ff_wrong_norms[];
/* Makes the plan of a catalog. Objects whose verdict is TNF_DROPPED are skipped (NULL: none). */
void tnf_ff_plan_make(ff_plan *plan, const tnf_catalog *c, const tnf_option_value *options,
                      const tnf_verdict *objects);
/* Chooses the kind of the vocabulary, by these attributes. */
void tnf_ff_choose_kind(ff_plan *plan, const tnf_value *attrs);
/* The place of a tensor in a plan, by its name without the group; NULL: it has none. */
const tnf_object **tnf_ff_plan_place(ff_plan *plan, tnf_str name);
/* Is the attribute stored in a chunk's own fields? */
bool tnf_ff_is_native(const ff_plan *plan, const tnf_member *attr);
tnf_status tnf_ff_write(tnf_writer *w, tnf_error *e);
/* Composes the text of the metadata chunk. *there is false if no such chunk is needed. */
tnf_status tnf_ff_compose_metadata(tnf_buf *out, bool *there, const ff_plan *plan,
                                   const ff_groups *groups, const tnf_writer *w, tnf_error *e);
uint64_t tnf_ff_pieces(const tnf_object *o);

/* groups.c */

#define FF_NAME_BYTES 32u
/* "embeddings", or in a later group "2/embeddings"; in `room`. */
tnf_str tnf_ff_name(char room[FF_NAME_BYTES], uint32_t group, const char *name);
/* The group of a name, which loses the number of the group: 2 and more, or 1. */
uint32_t tnf_ff_group_of(tnf_str *name);
/* Plans the groups after the first one, without tensors whose verdict is TNF_DROPPED. They end
 * before the first number without a matrix. */
tnf_status tnf_ff_groups_make(ff_groups *groups, const ff_plan *first, const tnf_catalog *c,
                              const tnf_verdict *objects, tnf_arena *arena, tnf_error *e);
/* Drops the groups that cannot be written. `first` has been judged. */
tnf_status tnf_ff_groups_judge(tnf_fit *fit, const ff_plan *first, tnf_error *e);
/* Sorts the extras that are chunks into their places. */
tnf_status tnf_ff_groups_extras(ff_groups *groups, const tnf_catalog *c, tnf_arena *arena,
                                tnf_error *e);
/* The first extra of a place; then groups->next. A position + 1; 0: none. */
uint32_t tnf_ff_first_extra(const ff_groups *groups, uint32_t group, ff_kind place);
/* Is the attribute of this matrix stored in the chunks of its group? */
bool tnf_ff_in_group(const ff_groups *groups, const tnf_object *o, const tnf_member *attr);

#endif
