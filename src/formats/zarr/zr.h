/* SPDX-License-Identifier: MIT */
/* Shared by the files of Zarr, and of Orbax, which keeps Zarr arrays in its own kind of store. */
#ifndef TNF_FORMATS_ZR_H
#define TNF_FORMATS_ZR_H

#include "format.h"
#include "wire/json.h"
#include "wire/zip.h"

#define ZR_MAX_RANK     32u
#define ZR_MAX_DOCUMENT ((uint64_t)64 << 20)
#define ZR_MAX_CHUNK    ((uint64_t)2 << 30)
#define ZR_MAX_DEPTH    4u /* most levels of nested shards */

/* ------------------------------------------------------------------ store */

/* An entry of a store. */
typedef struct zr_key {
    tnf_str name;
    uint64_t size;
    size_t index; /* the store's own index of it */
} zr_key;

/* Keys and their values; any thread may read. */
typedef struct zr_store {
    const zr_key *keys; /* sorted by the bytes of their names */
    size_t n;
    tnf_status (*read)(const struct zr_store *s, size_t i, uint64_t offset, void *dst, size_t n,
                       tnf_error *e);
    void *ctx;
    /* Places a part that is the complete value of a key. *placed is false if no file has the value
     * plainly. May be NULL. */
    tnf_status (*place)(const struct zr_store *s, tnf_reader *r, tnf_part *part, size_t i,
                        bool *placed, tnf_error *e);
    void (*close)(const struct zr_store *s); /* may be NULL */
    bool packed; /* some values are compressed: reading a piece decodes the whole value */
    /* Documents that were read ahead, by the positions of their keys; valid while the store is
     * being opened. NULL: none. */
    const char *const *ahead;
} zr_store;

/* Position of a key, or SIZE_MAX. */
size_t tnf_zr_find(const zr_store *s, tnf_str name);
/* Finds the key PREFIX/NAME, or NAME for an empty prefix. */
size_t tnf_zr_find_in(const zr_store *s, tnf_str prefix, const char *name);
int tnf_zr_compare_keys(const void *a, const void *b);
/* Do the first members of a zip archive include one that `is` accepts? */
bool tnf_zr_archive_has(const tnf_probe *p, bool (*is)(const char *name, size_t n));
/* Opens the directory of the file, or the zip archive. */
tnf_status tnf_zr_open_store(zr_store **out, tnf_reader *r, tnf_error *e);

/* -------------------------------------------------------------- documents */

typedef struct zr_member {
    tnf_str key, text; /* text: its value, unchanged */
} zr_member;

/* A JSON object, one level deep. */
typedef struct zr_doc {
    const zr_member *members;
    size_t n;
    const char *name; /* name of the document, for messages */
} zr_doc;

/* Is `name` the last part of a path? */
bool tnf_zr_is_named(const char *path, size_t n, const char *name);
/* Is it the name of a document, in any directory? */
bool tnf_zr_is_document(const char *name, size_t n);
/* Reads the complete value of a key into scratch. */
tnf_status tnf_zr_read_text(tnf_str *out, tnf_reader *r, const zr_store *s, size_t key,
                            tnf_error *e);
tnf_status tnf_zr_read_doc(zr_doc *out, tnf_reader *r, const zr_store *s, size_t key, tnf_error *e);
tnf_status tnf_zr_parse_doc(zr_doc *out, tnf_reader *r, tnf_str text, const char *name,
                            tnf_error *e);
/* A member's text; p is NULL: none. */
tnf_str tnf_zr_get(const zr_doc *d, const char *key);
/* Parses a text as a tree, in scratch. */
tnf_status tnf_zr_tree(tnf_value *out, tnf_reader *r, const zr_doc *d, tnf_str text, tnf_error *e);
/* Inline, so that analyzers see that it never returns TNF_OK. */
static inline tnf_status tnf_zr_wrong(const zr_doc *d, tnf_error *e, const char *what)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s %s", TNF_VISIBLE(d->name), what);
}
/* A copy for an attribute. p is NULL: out of memory. */
tnf_value tnf_zr_json(tnf_reader *r, tnf_str text);

/* ----------------------------------------------------------------- arrays */

typedef enum zr_kind {
    ZR_BYTES,
    ZR_TRANSPOSE,
    ZR_SHARD,
    ZR_VLEN,
    ZR_ZSTD,
    ZR_GZIP,
    ZR_ZLIB,
    ZR_BLOSC,
    ZR_LZ4,
    ZR_CRC32C
} zr_kind;

struct zr_level;

typedef struct zr_codec {
    zr_kind kind;
    bool big;                     /* BYTES */
    const struct zr_level *shard; /* SHARD: level of its inner chunks */
} zr_codec;

/* A grid of chunks, of an array or inside a shard. */
typedef struct zr_level {
    uint32_t rank;
    size_t width;             /* bytes of an element */
    uint8_t swap;             /* width of the numbers in it whose bytes are swapped */
    const uint64_t *chunk;    /* shape of a chunk */
    uint64_t elements, bytes; /* of a chunk */
    const uint64_t *stride;   /* strides of a stored chunk, in elements */
    const zr_codec *codecs;   /* from the array to the bytes, without transpositions */
    size_t ncodecs;
    const struct zr_level *index; /* for shards: how the index is stored */
    bool index_first;
} zr_level;

typedef enum zr_text { ZR_NO_TEXT, ZR_TEXT_BYTES, ZR_TEXT_UCS4, ZR_TEXT_VLEN } zr_text;

typedef struct zr_array {
    const zr_store *store;
    tnf_str name, prefix; /* prefix: prefix of its keys */
    uint32_t rank;
    const uint64_t *shape;
    const uint64_t *count; /* chunks on each axis; with shards: inner chunks */
    zr_level level;        /* stored chunks; with shards: the shards */
    const zr_level *read;  /* chunks to read: those inside shards, or `level` itself */
    uint64_t number;       /* number of the array, for the cache */
    const tnf_type *type;
    unsigned packed; /* bits of an element of less than a byte; 0: not packed */
    bool axis;       /* the last axis of its tensor is inside an element */
    zr_text text;
    uint8_t fill[64];
    const uint8_t *fill_element; /* `fill`, or a longer buffer */
    tnf_str fill_text;           /* fill value of strings */
    char separator;
    bool prefixed;           /* keys begin with "c" */
    const char *why;         /* reason why it cannot be read; or NULL */
    const tnf_error *damage; /* for strings: the error found on opening */
} zr_array;

/* An element type, as named in a document. */
typedef struct zr_type {
    const tnf_type *type; /* NULL: unknown; `own` is its name */
    const char *own;
    size_t width;
    unsigned packed;
    uint8_t swap; /* width of its numbers, for swapping */
    bool big;     /* v2 */
    zr_text text;
    uint64_t axis;    /* bytes of an element that becomes an axis of u8; 0: not such an element */
    bool say, object; /* say: keep the name as an attribute; object: a Python object, never read */
} zr_type;

tnf_status tnf_zr_type_v2(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e);
tnf_status tnf_zr_type_v3(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e);
/* The name of a type in a document. */
void tnf_zr_type_name(char *out, size_t room, const tnf_type *type, bool v3);
/* Makes the fill value, for missing chunks: `width` bytes, in the arena. */
tnf_status tnf_zr_fill(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t, tnf_error *e);

/* Fills a->level and its codecs; a->why is set if one is unknown. */
tnf_status tnf_zr_codecs_v2(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e);
tnf_status tnf_zr_codecs_v3(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e);

/* Adds an array and its tensor, from its document. `attrs` is the text of .zattrs, or p is NULL;
 * `more` is one more attribute, or NULL. */
tnf_status tnf_zr_add_array(tnf_reader *r, const zr_store *s, tnf_str name, tnf_str prefix,
                            const zr_doc *d, bool v3, tnf_str attrs, const tnf_member *more,
                            tnf_error *e);

/* ---------------------------------------------------------------- reading */

typedef struct zr_state {
    zr_array **arrays;
    size_t n, capacity;
    struct zr_cache *cache;
    const zr_store *store; /* of the file */
} zr_state;

/* Decodes a chunk of `level` from its stored bytes. The result is little-endian, in the stored
 * order of axes. */
tnf_status tnf_zr_decode_chunk(const zr_array *a, const zr_level *level, const uint8_t *stored,
                               size_t stored_n, uint8_t *out, tnf_error *e);
/* The decoded size of zstd frames: TNF_ELIMIT above `most`. */
tnf_status tnf_zr_measure_zstd(uint64_t *out, const uint8_t *p, size_t n, uint64_t most,
                               tnf_error *e);
/* The most bytes in which a chunk may be stored. */
uint64_t tnf_zr_most_stored(const zr_level *level);
/* n bytes, owned or borrowed. */
typedef struct zr_bytes {
    uint8_t *p;
    size_t n, size; /* size: of the owned memory; 0: borrowed */
} zr_bytes;
void tnf_zr_free(zr_bytes *b);
tnf_status tnf_zr_alloc(zr_bytes *b, uint64_t n, tnf_error *e);
/* Undoes all codecs except the array's, from the last to the first. If `to` is not NULL, it has
 * room for the result, which must have `plain` bytes; with NULL any size is allowed. */
tnf_status tnf_zr_unpack(zr_bytes *out, const zr_level *level, uint8_t *to, uint64_t plain,
                         zr_bytes stored, tnf_error *e);
/* Reads all stored bytes of a chunk; p is NULL: not stored. The caller frees them. */
tnf_status tnf_zr_fetch(zr_bytes *out, const zr_array *a, struct zr_cache *cache,
                        const uint64_t *at, tnf_error *e);

tnf_status tnf_zr_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_zr_slice(tnf_reader *r, uint64_t key, const tnf_slice *slices, void *dst, size_t n,
                        tnf_error *e);
tnf_status tnf_zr_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);
void tnf_zr_close(tnf_reader *r);
struct zr_cache *tnf_zr_cache_new(void);

/* A chunk in memory; bytes is NULL: not stored, so it consists of the fill value. */
typedef struct zr_chunk {
    const uint8_t *bytes;
    struct zr_kept *kept;
} zr_chunk;

/* Returns the chunk at index `at` (per axis). `again`: it will be needed again. The caller must
 * give it back with tnf_zr_put_chunk(). */
tnf_status tnf_zr_get_chunk(zr_chunk *out, const zr_array *a, struct zr_cache *cache,
                            const uint64_t *at, bool again, tnf_error *e);
void tnf_zr_put_chunk(const zr_chunk *c);
/* The key of a stored chunk, or SIZE_MAX. */
size_t tnf_zr_find_chunk(const zr_array *a, const uint64_t *at);

/* Reads all strings at once; they become two parts in memory. */
tnf_status tnf_zr_strings(tnf_part parts[2], tnf_reader *r, zr_array *a, tnf_error *e);
#endif
