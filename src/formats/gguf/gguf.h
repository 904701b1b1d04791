/* SPDX-License-Identifier: MIT */
/* Shared by the files of this directory.
 *
 *   gguf.c     the descriptor, probing, indexing
 *   types.c    ggml's types
 *   window.c   reads the bytes of the header, window by window
 *   keys.c     keys and their values
 *   entries.c  the entries of tensors
 *   places.c   places of tensors: gaps, padding, trailing bytes
 *   sets.c     models in several files
 *   blocks.c   swaps the byte order of fields of blocks
 *   header.c   makes a header
 *   write.c    the writer, and what it can write
 *   loads.c    decides which programs would load a file
 */
#ifndef TNF_GGUF_H
#define TNF_GGUF_H

#include "format.h"

#include <string.h>

#define GGUF_PREFIX            "gguf." /* prefix of attributes that are keys of the file */
#define GGUF_PREFIX_N          (sizeof GGUF_PREFIX - 1)
#define GGUF_ALIGNMENT         "general.alignment"
#define GGUF_RESERVE           "tenfold.reserve"
#define GGUF_SPLIT             "split."
#define GGUF_TRAILING          "gguf.trailing"
#define GGUF_UNKNOWN           "gguf.unknown/1" /* the layout of tensors of unknown types */
#define GGUF_DEFAULT_ALIGNMENT 32u
#define GGUF_MAX_DEPTH         64u
#define GGUF_MAX_RANK          4u
#define GGUF_MAX_NAME          63u /* limit of llama.cpp */
#define GGUF_MOST              ((uint64_t)INT64_MAX)

/* Types of values, by their numbers in the file. */
enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

/* A number inside a block that is wider than a byte. */
typedef struct gguf_field {
    uint16_t at;
    uint8_t width, count;
} gguf_field;

struct gguf_file;
struct gguf_entry;

/* A type of tensors. */
typedef struct gguf_type {
    uint32_t id;
    const char *name; /* "q4_k"; for dense types the name of the element type */
    bool dense;       /* if not, the layout is gguf.<name>/1 */
    bool little_only; /* blocks without a known big-endian form */
    gguf_field fields[3];
} gguf_type;

/* types.c: NULL if the type does not exist, or was removed. */
const gguf_type *tnf_gguf_type(uint32_t id);
const gguf_type *tnf_gguf_type_of(const tnf_object *object);
const tnf_layout *tnf_gguf_layout(const gguf_type *type); /* of blocks */
/* Describes an id that is not a type: "removed from ggml …". */
const char *tnf_gguf_type_gone(uint32_t id);
/* Notes that the label general.file_type names a type that no tensor has. */
tnf_status tnf_gguf_fits(tnf_fit *fit, tnf_error *e);
/* The type of a value, for numbers by dtype; GGUF_TYPES: none. */
unsigned tnf_gguf_value_type(const tnf_value *v);
tnf_dtype tnf_gguf_dtype(unsigned type);   /* of a number type */
size_t tnf_gguf_value_size(unsigned type); /* 0: a text or an array */

/* blocks.c: reverses the byte order of n bytes of complete blocks. */
void tnf_gguf_swap(const gguf_type *type, size_t block, uint8_t *bytes, size_t n);
/* For big-endian files: warns if the scales of a tensor are plausible only in the other order. */
tnf_status tnf_gguf_check_order(tnf_reader *r, struct gguf_file *g, const struct gguf_entry *t,
                                uint64_t offset, tnf_error *e);

/* The header, read front to back in windows. Windows are never moved, since texts point into them.
 * A text gets its NUL after the number that follows it has been read:
 *
 *   … 05 00 00 00 00 00 00 00 l l a m a | 07 00 …      then      l l a m a 00 00 …
 */
typedef struct gguf_in {
    tnf_reader *r;
    uint8_t *p, *end;  /* the unread part of the window */
    uint64_t at;       /* of p in the file */
    uint64_t size;     /* of the file */
    size_t window;     /* size of the next window */
    uint8_t *text_end; /* where a NUL must still be written, or NULL */
    const char *what;  /* for messages: "the keys" */
    bool big, v1;
    uint32_t version;
} gguf_in;

/* window.c */
tnf_status tnf_gguf_need(gguf_in *in, uint64_t n, tnf_error *e);
tnf_status tnf_gguf_u32(gguf_in *in, uint32_t *out, tnf_error *e);
tnf_status tnf_gguf_u64(gguf_in *in, uint64_t *out, tnf_error *e);
/* A length, count or dimension: in version 1 a u32. */
tnf_status tnf_gguf_length(gguf_in *in, uint64_t *out, tnf_error *e);
tnf_status tnf_gguf_text(gguf_in *in, tnf_str *out, tnf_error *e);
/* Checks that the rest of the file has room for `count` things of at least `least` bytes. */
tnf_status tnf_gguf_count(gguf_in *in, uint64_t count, uint64_t least, const char *things,
                          uint64_t at, tnf_error *e);
static inline uint64_t tnf_gguf_left(const gguf_in *in)
{
    return in->size - in->at;
}

/* The entry of a tensor in the header. */
typedef struct gguf_entry {
    tnf_str name;
    uint64_t *shape; /* slowest dimension first */
    uint32_t rank, id;
    const gguf_type *type; /* NULL: unknown, in lenient mode */
    uint64_t offset, nbytes, at;
} gguf_entry;

/* The state of an open file. */
typedef struct gguf_file {
    uint32_t version, alignment;
    bool big, blocks_little;
    bool reserve;          /* the file has a key with room for edits, */
    uint64_t reserve_size; /* and its size in bytes */
    uint64_t header_end;   /* end of the last entry */
    gguf_entry *entries;
    size_t n;
    bool in_order; /* every tensor is where llama.cpp expects it */
    bool nested;   /* a key has arrays of arrays */
    bool strange_key;
    bool key_twice, key_not_utf8; /* possible only in lenient mode */
    bool cut;                     /* data of tensors is missing */
    tnf_str deep;                 /* the first tensor of too many dimensions; p is NULL: none */
    bool unpadded;
    bool order_warned;      /* a warning was given that blocks seem to have the other byte order */
    unsigned order_sampled; /* tensors that were checked for this */
    bool later;             /* not the first file of a set */
    const gguf_entry **by_place; /* tensors whose blocks are swapped, by offset */
    size_t nblocks;
    uint64_t data_start;
} gguf_file;

/* keys.c: all keys become attributes. */
tnf_status tnf_gguf_keys(gguf_in *in, gguf_file *g, uint64_t n, tnf_error *e);
/* entries.c */
tnf_status tnf_gguf_entries(gguf_in *in, gguf_file *g, uint64_t n, tnf_error *e);
/* places.c: checks offsets, adds all tensors, and checks the bytes between and after them. */
tnf_status tnf_gguf_places(tnf_reader *r, gguf_file *g, tnf_error *e);
/* sets.c: if this is the first file of a set, the tensors of the others, too. */
tnf_status tnf_gguf_set(tnf_reader *r, gguf_file *g, tnf_error *e);
tnf_status tnf_gguf_shard_attrs(tnf_attrs *attrs, const tnf_catalog *whole, size_t i, size_t n,
                                tnf_error *e);

/* loads.c */
tnf_status tnf_gguf_loads(const tnf_reader *r, const char *program, tnf_arena *arena, tnf_tell tell,
                          void *ctx, tnf_error *e);

/* An attribute of the file by its key, or NULL. */
const tnf_value *tnf_gguf_attr(const tnf_attrs *attrs, const char *key);

enum { GGUF_OPTION_BLOCKS, GGUF_OPTION_SHARDS };
enum { GGUF_BLOCKS_BIG, GGUF_BLOCKS_LITTLE };
enum { GGUF_SHARDS_BESIDE, GGUF_SHARDS_NONE };

/* A header that is being built. */
typedef struct gguf_out {
    tnf_buf b;
    bool big, v1;
} gguf_out;

/* header.c */
void tnf_gguf_put_u32(gguf_out *o, uint32_t v);
void tnf_gguf_put_u64(gguf_out *o, uint64_t v);
void tnf_gguf_put_length(gguf_out *o, uint64_t v);
void tnf_gguf_put_text(gguf_out *o, const char *p, size_t n);
/* A key with its type and value. */
void tnf_gguf_put_key(gguf_out *o, tnf_str key, const tnf_value *v);
/* The same, with the number types that llama.cpp requests. */
void tnf_gguf_put_usual(gguf_out *o, tnf_str key, const tnf_value *v);
/* Does the value survive writing and reading unchanged? */
bool tnf_gguf_holds(const tnf_value *v, unsigned depth);

/* write.c */
extern const tnf_option_info tnf_gguf_write_options[];
tnf_status tnf_gguf_write(tnf_writer *w, tnf_error *e);
bool tnf_gguf_holds_attr(const tnf_member *attr, const tnf_object *of);
tnf_fate tnf_gguf_takes(const tnf_object *object, const char **reason);

#endif
