/* SPDX-License-Identifier: MIT */
/* What the files of Zarr, and of Orbax, which keeps Zarr arrays in a store of its own, share. */
#ifndef TNF_FORMATS_ZR_H
#define TNF_FORMATS_ZR_H

#include "format.h"
#include "wire/json.h"
#include "wire/zip.h"

#define ZR_MAX_RANK     32u
#define ZR_MAX_DOCUMENT ((uint64_t)64 << 20)
#define ZR_MAX_CHUNK    ((uint64_t)2 << 30)
#define ZR_MAX_DEPTH    4u /* of shards in shards */

/* ------------------------------------------------------------------ store */

/* Something that is in a store. */
typedef struct zr_key {
    tnf_str name;
    uint64_t size;
    size_t index; /* the store's own number of it */
} zr_key;

/* Keys and what is under them; any thread may read. */
typedef struct zr_store {
    const zr_key *keys; /* by the bytes of their names */
    size_t n;
    tnf_status (*read)(const struct zr_store *s, size_t i, uint64_t offset, void *dst, size_t n,
                       tnf_error *e);
    void *ctx;
    /* Fills where a part is that is all of a key, as it is; false: it is not in a file as it is.
     * May be NULL. */
    tnf_status (*place)(const struct zr_store *s, tnf_reader *r, tnf_part *part, size_t i,
                        bool *placed, tnf_error *e);
    bool packed; /* some keys are compressed as a whole: reading a part of one reads all before */
    /* Documents that were read ahead, by the positions of their keys; valid while the store is
     * opened. NULL: none was. */
    const char *const *ahead;
} zr_store;

/* Position of a key, or SIZE_MAX. */
size_t tnf_zr_find(const zr_store *s, tnf_str name);
/* The key PREFIX/NAME, or NAME for an empty prefix. */
size_t tnf_zr_find_in(const zr_store *s, tnf_str prefix, const char *name);
int tnf_zr_compare_keys(const void *a, const void *b);
/* Do the first members of a zip archive tell one that `is` looks for? */
bool tnf_zr_archive_has(const tnf_probe *p, bool (*is)(const char *name, size_t n));
/* The folder that the file is in, or the zip archive that it is. */
tnf_status tnf_zr_open_store(zr_store **out, tnf_reader *r, tnf_error *e);

/* -------------------------------------------------------------- documents */

typedef struct zr_member {
    tnf_str key, text; /* text: its value as it is written */
} zr_member;

/* A JSON object, one level deep. */
typedef struct zr_doc {
    const zr_member *members;
    size_t n;
    const char *name; /* of the document, for messages */
} zr_doc;

/* Is it the name of one, in any folder? */
bool tnf_zr_is_document(const char *name, size_t n);
/* All of a key, in scratch. */
tnf_status tnf_zr_read_text(tnf_str *out, tnf_reader *r, const zr_store *s, size_t key,
                            tnf_error *e);
tnf_status tnf_zr_read_doc(zr_doc *out, tnf_reader *r, const zr_store *s, size_t key, tnf_error *e);
tnf_status tnf_zr_parse_doc(zr_doc *out, tnf_reader *r, tnf_str text, const char *name,
                            tnf_error *e);
/* A member's text, with p NULL if there is none. */
tnf_str tnf_zr_get(const zr_doc *d, const char *key);
/* A text as a tree, in scratch. */
tnf_status tnf_zr_tree(tnf_value *out, tnf_reader *r, const zr_doc *d, tnf_str text, tnf_error *e);
/* Here, so that analyzers see that it never returns TNF_OK. */
static inline tnf_status tnf_zr_wrong(const zr_doc *d, tnf_error *e, const char *what)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s %s", TNF_VISIBLE(d->name), what);
}
/* A copy for an attribute. p NULL: no memory. */
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
    const struct zr_level *shard; /* SHARD: of its inner chunks */
} zr_codec;

/* A grid of chunks: that of an array, or within a shard. */
typedef struct zr_level {
    uint32_t rank;
    size_t width;             /* bytes of an element */
    uint8_t swap;             /* and of the numbers that turn round in it */
    const uint64_t *chunk;    /* its shape */
    uint64_t elements, bytes; /* of a chunk */
    const uint64_t *stride;   /* elements between neighbours of each axis, as a chunk is stored */
    const zr_codec *codecs;   /* from the array to the bytes, without transposing ones */
    size_t ncodecs;
    const struct zr_level *index; /* of what is a shard: how its index is stored */
    bool index_first;
} zr_level;

typedef enum zr_text { ZR_NO_TEXT, ZR_TEXT_BYTES, ZR_TEXT_UCS4, ZR_TEXT_VLEN } zr_text;

typedef struct zr_array {
    const zr_store *store;
    tnf_str name, prefix; /* prefix: of its keys */
    uint32_t rank;
    const uint64_t *shape;
    const uint64_t *count; /* chunks of each axis, of the inner ones where they are in shards */
    zr_level level;        /* chunks as they are stored: those of a shard, if it has them */
    const zr_level *read;  /* chunks that are read: of the shards, or `level` itself */
    uint64_t number;       /* among the arrays: for the cache */
    const tnf_type *type;
    unsigned packed; /* bits of an element where the type has less than a byte; 0: none */
    bool axis;       /* the last axis of its tensor is within an element */
    zr_text text;
    uint8_t fill[64];
    const uint8_t *fill_element; /* `fill`, or longer ones */
    tnf_str fill_text;           /* of strings */
    char separator;
    bool prefixed;           /* keys begin with "c" */
    const char *why;         /* it cannot be read */
    const tnf_error *damage; /* of strings: what was wrong with them when the store was opened */
} zr_array;

/* An element type, as a document names it. */
typedef struct zr_type {
    const tnf_type *type; /* NULL: not known; `own` is its name */
    const char *own;
    size_t width;
    unsigned packed;
    uint8_t swap; /* width of the numbers in it */
    bool big;     /* v2 */
    zr_text text;
    uint64_t axis;    /* bytes of an element that is an axis of u8; 0: it is none */
    bool say, object; /* say: keep the name as an attribute; object: of Python, never read */
} zr_type;

tnf_status tnf_zr_type_v2(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e);
tnf_status tnf_zr_type_v3(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e);
/* What a type of ours is called. */
void tnf_zr_type_name(char *out, size_t room, const tnf_type *type, bool v3);
/* The bytes of an element that stands where no chunk is: `width` of them, in the arena. */
tnf_status tnf_zr_fill(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t, tnf_error *e);

/* Fills a->level, its codecs; a->why is set where one is not known. */
tnf_status tnf_zr_codecs_v2(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e);
tnf_status tnf_zr_codecs_v3(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e);

/* An array and its tensor, from its document. `attrs` is what stands in .zattrs, or p NULL; `more`,
 * if it is not NULL, is one more attribute. */
tnf_status tnf_zr_add_array(tnf_reader *r, const zr_store *s, tnf_str name, tnf_str prefix,
                            const zr_doc *d, bool v3, tnf_str attrs, const tnf_member *more,
                            tnf_error *e);

/* ---------------------------------------------------------------- reading */

typedef struct zr_state {
    zr_array **arrays;
    size_t n, capacity;
    struct zr_cache *cache;
} zr_state;

/* A chunk of `level` out of its stored bytes: as its axes are stored, little-endian. */
tnf_status tnf_zr_decode_chunk(const zr_array *a, const zr_level *level, const uint8_t *stored,
                               size_t stored_n, uint8_t *out, tnf_error *e);
/* How many bytes zstd frames give: TNF_ELIMIT above `most`. */
tnf_status tnf_zr_measure_zstd(uint64_t *out, const uint8_t *p, size_t n, uint64_t most,
                               tnf_error *e);
/* How many bytes a chunk may be stored in. */
uint64_t tnf_zr_most_stored(const zr_level *level);
/* n bytes, in memory of their own or in somebody else's. */
typedef struct zr_bytes {
    uint8_t *p;
    size_t n, size; /* size: of its own memory; 0: it has none */
} zr_bytes;
void tnf_zr_free(zr_bytes *b);
tnf_status tnf_zr_alloc(zr_bytes *b, uint64_t n, tnf_error *e);
/* Stored bytes through all codecs but that of the array, from the last to the first. `to`, if it is
 * not NULL, has room for the `plain` ones that it is to give; with NULL any number is. */
tnf_status tnf_zr_unpack(zr_bytes *out, const zr_level *level, uint8_t *to, uint64_t plain,
                         zr_bytes stored, tnf_error *e);
/* All bytes of a chunk, as they are stored; p NULL: it is not there. Free them. */
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

/* A chunk that is in memory; bytes NULL: it is not stored, so all of it is the fill value. */
typedef struct zr_chunk {
    const uint8_t *bytes;
    struct zr_kept *kept;
} zr_chunk;

/* Chunk number `at` (of each axis). `again`: it will be asked for again. Give it back. */
tnf_status tnf_zr_get_chunk(zr_chunk *out, const zr_array *a, struct zr_cache *cache,
                            const uint64_t *at, bool again, tnf_error *e);
void tnf_zr_put_chunk(const zr_chunk *c);
/* The key of a chunk as it is stored, or SIZE_MAX. */
size_t tnf_zr_find_chunk(const zr_array *a, const uint64_t *at);

/* Strings become two parts, in memory: all of them are read at once. */
tnf_status tnf_zr_strings(tnf_part parts[2], tnf_reader *r, zr_array *a, tnf_error *e);
#endif
