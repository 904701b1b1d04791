/* SPDX-License-Identifier: MIT */
/* What the files of the finalfusion format share.
 *
 *   chunks.c    header, frames, their order, and which dialect it is
 *   lists.c     words and n-grams: one pass over them
 *   decode.c    then any piece on demand
 *   ngrams.c    the rows that n-grams point to
 *   vocab.c     the vocabulary chunks
 *   padding.c   element types, and where data begin
 *   storage.c   dense matrices and norms
 *   quantized.c quantized matrices
 *   metadata.c  the TOML text, and the table at its end that is ours
 *   fit.c       what of a catalog the format can hold
 *   write.c     the chunks of a file, laid out and written
 *   words.c     words and n-grams from a catalog: checked, and written
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
/* And as the document does where it differs. */
enum { FF_SEED_SIMPLE = 0, FF_SEED_STORAGE = 1 };

typedef enum ff_dialect { FF_REAL, FF_SEED, FF_R2V } ff_dialect;

/* What a chunk is for, in the order in which they come. */
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

/* Where unknown chunks stood, by the kind of the one before them: the key of the extra. */
extern const char *const tnf_ff_places[FF_KIND_UNKNOWN];
/* "simple" … "floret" by id; NULL for what is no vocabulary. */
extern const char *const tnf_ff_vocab_names[FF_LAST + 1];
/* Element types by the id that files have for them. */
const tnf_type *tnf_ff_type_of(uint32_t id);
bool tnf_ff_type_id(uint32_t *out, const tnf_type *type);

/* ---------------------------------------------------------------- reading */

#define FF_EVERY 1024u /* strings between two marks */

/* Strings one after the other: u32 length, bytes, and `suffix` bytes of something else. */
typedef struct ff_list {
    uint64_t at, bytes; /* where the first begins; how long they all are */
    uint64_t count;
    uint32_t suffix;
    uint64_t *marks; /* where every 1024th begins, counted from `at` */
} ff_list;

/* The state that decode() needs: keys of opaque parts are FF_KEY(list, what). */
typedef struct ff_state {
    ff_list lists[2];
    uint64_t metadata; /* bytes of that chunk, for writing over it */
} ff_state;

enum { FF_WORDS, FF_GRAMS };                /* lists */
enum { FF_OFFSETS, FF_BYTES, FF_SUFFIXES }; /* what of them */
#define FF_KEY(list, what) ((uint64_t)(list)*3 + (what))

typedef struct ff_frame {
    uint32_t id;
    uint64_t at;     /* of the frame */
    uint64_t body;   /* of what follows it */
    uint64_t length; /* of that, as the file says */
    uint64_t end;    /* where the next chunk begins, as the file says; set to what is true */
} ff_frame;

typedef struct ff_reading {
    tnf_reader *r;
    ff_state *state;
    ff_dialect dialect;
    ff_kind last;             /* the kind of the chunk before */
    uint32_t vocab;           /* its id; 0 with `words_known` is the document's */
    bool words_known;         /* there was a vocabulary */
    uint64_t words, subwords; /* rows that it asks for */
    const tnf_value *tensors; /* attributes of tensors out of our table, by name; or NULL */
} ff_reading;

tnf_status tnf_ff_index(tnf_reader *r, tnf_error *e);
/* The next frame, at a place with room for one. */
tnf_status tnf_ff_frame_read(tnf_reader *r, uint64_t at, ff_frame *out, tnf_error *e);
tnf_status tnf_ff_read_vocab(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_storage(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_norms(ff_reading *f, ff_frame *c, tnf_error *e);
tnf_status tnf_ff_read_metadata(ff_reading *f, ff_frame *c, tnf_error *e);
/* Adds a tensor with the attributes that were put away for it. */
tnf_status tnf_ff_add(ff_reading *f, tnf_object *object, uint64_t at, tnf_error *e);
tnf_status tnf_ff_set_uint(ff_reading *f, const char *key, uint64_t value, tnf_error *e);

/* A piece of the file, read ahead. */
typedef struct ff_window {
    const tnf_source *source;
    uint8_t *p;
    size_t capacity, n;
    uint64_t at;
} ff_window;

/* n bytes from `at` on; n is no more than the window holds. */
tnf_status tnf_ff_look(ff_window *w, uint64_t at, size_t n, const uint8_t **out, tnf_error *e);

/* One pass over a list of l->count strings from `at` on, none of which may reach beyond `bound`:
 * lengths and text are checked, marks are set. `take` is told the number behind each, if there
 * is one. */
typedef void (*ff_take)(void *ctx, uint64_t number);
tnf_status tnf_ff_list_scan(ff_reading *f, ff_list *l, uint64_t bound, const char *what,
                            ff_take take, void *ctx, tnf_error *e);
tnf_status tnf_ff_list_add(ff_reading *f, unsigned list, const char *name, uint64_t at,
                           tnf_error *e);
tnf_status tnf_ff_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_ff_strings(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e);

/* N-grams and the rows they point to. Adds both tensors; *rows is how many rows there are. */
tnf_status tnf_ff_read_ngrams(ff_reading *f, const ff_frame *c, uint64_t bound, uint64_t *rows,
                              tnf_error *e);

/* Is a number of rows what the indices 0 … rows-1 make up? Distinct ones are counted without
 * trusting any. */
typedef struct ff_rows {
    uint8_t *seen; /* a bit for each index that may be */
    uint64_t n;    /* of indices at most */
    uint64_t distinct, next;
    uint64_t most; /* the largest */
    bool ordered;  /* new ones come as 0, 1, 2 … */
} ff_rows;

bool tnf_ff_rows_begin(ff_rows *rows, uint64_t n, tnf_arena *arena);
void tnf_ff_rows_take(void *ctx, uint64_t index); /* of rows, as an ff_take */
bool tnf_ff_rows_cover(const ff_rows *rows);

/* UTF-8 piece by piece. */
typedef struct ff_utf8 {
    uint8_t left, low, high; /* bytes to come, and what the next may be */
} ff_utf8;

bool tnf_ff_utf8_feed(ff_utf8 *u, const uint8_t *p, size_t n);

/* ---------------------------------------------- padding.c, for storage.c and quantized.c */

/* Data behind fixed fields: `from` is where the fields end, `bytes` how much data there is, `slack`
 * what is left of the chunk without both. */
typedef struct ff_space {
    uint64_t from, bytes, slack;
    uint64_t align;
    bool fits; /* slack is no less than zero */
    const char *what;
} ff_space;

ff_space tnf_ff_space_of(const ff_frame *c, uint64_t fields, uint64_t bytes, uint64_t align,
                         const char *what);
/* Is the slack a padding that somebody writes? */
bool tnf_ff_find_padding(ff_reading *f, const ff_space *s, uint64_t *out);
/* Where the data begin; sets c->end. */
tnf_status tnf_ff_place(ff_reading *f, ff_frame *c, const ff_space *s, uint64_t *at, tnf_error *e);
tnf_status tnf_ff_too_large(const ff_frame *c, const char *what, tnf_error *e);
tnf_status tnf_ff_read_fields(ff_reading *f, const ff_frame *c, uint64_t n, const char *what,
                              tnf_cur *out, tnf_error *e);
/* As many rows as the vocabulary asks for? */
tnf_status tnf_ff_check_rows(ff_reading *f, uint64_t rows, uint64_t at, tnf_error *e);
tnf_part tnf_ff_part_at(const char *role, const tnf_type *type, uint64_t offset, uint64_t n);

tnf_status tnf_ff_read_quantized(ff_reading *f, ff_frame *c, tnf_error *e);
/* Would it be one, by its length? */
tnf_status tnf_ff_is_quantized(ff_reading *f, const ff_frame *c, bool *out, tnf_error *e);

/* ---------------------------------------------------------------- writing */

/* In the order of the write options. */
enum { FF_OPTION_DIALECT, FF_OPTION_RESERVE };

/* What becomes of a catalog: the same for fit.c and write.c. */
typedef struct ff_plan {
    ff_dialect dialect;
    const tnf_object *embeddings, *vocab, *ngrams, *index, *norms; /* NULL: not there */
    uint32_t kind; /* of the vocabulary, by its id with the tools; 0: none */
    uint64_t words, subwords;
    uint64_t min_n, max_n, buckets, hashes, seed;
    tnf_str bow, eow;
    const char *why; /* the vocabulary that the attributes speak of cannot be; or NULL */
} ff_plan;

/* Words and n-grams of a catalog, in memory but for their bytes. */
typedef struct ff_words {
    const tnf_object *object;
    const uint8_t *offsets; /* u64, count + 1 of them */
    const uint8_t *numbers; /* u64, behind each; NULL: its position */
    uint64_t count;
    uint32_t suffix; /* 8 if there is a number behind each, else 0 */
} ff_words;

/* Are its offsets sound, and its strings no longer than 4 GiB? *why tells if not. `numbers` may be
 * NULL. */
tnf_status tnf_ff_words_load(ff_words *out, const tnf_object *strings, const tnf_object *numbers,
                             tnf_arena *arena, const char **why, tnf_error *e);
/* Is every string UTF-8? *why tells if not. */
tnf_status tnf_ff_words_check(const ff_words *words, const char **why, tnf_error *e);
/* As they lie in a file, and how many bytes that takes. */
tnf_status tnf_ff_words_put(tnf_writer *w, const ff_words *words, tnf_error *e);
uint64_t tnf_ff_words_bytes(const ff_words *words);
/* The rows that explicit n-grams point to; *why tells if they leave any out. */
tnf_status tnf_ff_words_rows(const ff_words *words, uint64_t *rows, tnf_arena *arena,
                             const char **why, tnf_error *e);

/* fit.c: why rows of words must become unit vectors, or NULL. */
const char *tnf_ff_unit_rows(const tnf_catalog *c);
tnf_status tnf_ff_fits(tnf_fit *fit, tnf_error *e);
/* What a catalog makes; of the objects those that are not to be dropped (NULL: all). */
void tnf_ff_plan_make(ff_plan *plan, const tnf_catalog *c, const tnf_option_value *options,
                      const tnf_verdict *objects);
/* Does a chunk say it? */
bool tnf_ff_is_native(const ff_plan *plan, const tnf_member *attr);
tnf_status tnf_ff_write(tnf_writer *w, tnf_error *e);
/* The text of the metadata chunk; *out has no bytes and is not `there` if none is needed. */
tnf_status tnf_ff_compose_metadata(tnf_buf *out, bool *there, const ff_plan *plan,
                                   const tnf_writer *w, tnf_error *e);
uint64_t tnf_ff_pieces(const tnf_object *o);

#endif
