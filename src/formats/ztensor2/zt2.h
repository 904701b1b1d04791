/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: a manifest as it was read, and the words of the format.
 *
 *   ztensor2.c   the container and the descriptor      words.c    types, layouts, digests by name
 *   manifest.c   CBOR to the structures below          rules.c    what must hold between them
 *   shards.c     other files that parts lie in         identity.c the content digest
 *   scan.c       those found by their digest
 *   write.c      the other way                         blobs.c    equal parts share one blob
 *   canonical.c  is this file as write.c would write it?
 *   fit.c        what can be written
 *   copy.c       blobs as they are stored in another
 *   append.c     what is in the file already               recover.c  the end of a crashed append
 */
#ifndef TNF_FORMATS_ZTENSOR2_ZT2_H
#define TNF_FORMATS_ZTENSOR2_ZT2_H

#include "base/digest.h"
#include "format.h"
#include "wire/cbor.h"

#include <string.h>

#define ZT2_MAGIC        "\x89ZT2\r\n\x1a\n"
#define ZT2_MAGIC_N      8u
#define ZT2_FOOTER       40u
#define ZT2_SMALLEST     48u
#define ZT2_VERSION      2u
#define ZT2_FLOOR        4096u  /* every blob begins at a multiple of it */
#define ZT2_ALIGN        65536u /* and of this one in canonical form */
#define ZT2_MAX_MANIFEST ((uint64_t)1 << 30)
#define ZT2_MAX_DEPTH    32u
#define ZT2_MAX_NAME     1024u
#define ZT2_MAX_RANK     64u
#define ZT2_SEEKABLE     "zt.zstd-seekable/1"

/* Attributes for what the model has no word for. */
#define ZT2_EMPTY_ATTRS  "ztensor.empty_attributes" /* the file says: attributes, none */
#define ZT2_UNKNOWN      "ztensor.unknown"          /* an extra: what the first unknown key holds */
#define ZT2_CONTENT      "ztensor.content_digest"
#define ZT2_SHARDS       "ztensor.shards"
#define ZT2_DATA_SHARD   "ztensor.data_shard"

/* ---------------------------------------------------------- as it was read */

typedef struct zt2_part {
    tnf_str role;
    uint64_t offset, length, decoded;
    tnf_dtype dtype;
    tnf_str type, shard, digest, encoding; /* p is NULL: not there */
    uint64_t at;                           /* where its blob's place is told, in the file */
    uint32_t group;                        /* 0: this file; else 1 + position of the shard */
} zt2_part;

typedef struct zt2_object {
    tnf_str name, layout;
    const uint64_t *shape;
    uint64_t rank;
    zt2_part *parts; /* in the manifest's order */
    uint64_t nparts;
    const tnf_value *attrs;
    tnf_str raw_shape, raw_attrs; /* as encoded */
    uint64_t at;
} zt2_object;

typedef struct zt2_shard {
    tnf_str name, digest;
    uint64_t size, at;
    const struct tnf_origin *origin;  /* NULL: not found, or not looked for */
    const struct tnf_origin *missing; /* it is not there, and need not be */
} zt2_shard;

typedef struct zt2_footer {
    uint64_t offset, length, hash; /* of the manifest; all 0 for a data shard */
    uint64_t at;                   /* where the footer is */
    uint32_t reserved;
} zt2_footer;

typedef struct zt2 {
    tnf_reader *r;
    zt2_footer footer;
    tnf_cbor c;
    /* Objects are many and their descriptions larger than the model's: each is read anew when it is
     * needed, and only where it begins is kept. */
    const uint8_t **keys; /* in the manifest: where the name of each begins; by name once sorted */
    const uint8_t *first; /* the first of them as they stand */
    size_t n, nparts;     /* of objects, of all their parts */
    unsigned objects_depth; /* containers that they are in */
    tnf_arena one;          /* for the object that is read; freed by tnf_zt2_free() */
    tnf_arena *to;          /* where what is read of an object goes: one, or the scratch */
    bool undigested;        /* a part has no digest */
    zt2_object *objects;    /* tnf_zt2_load(): all of them, in the manifest's order */
    zt2_shard *shards;      /* likewise */
    size_t nshards;
    bool has_objects, empty_attrs;
    uint64_t shards_at;  /* where the table of shards is told, or 0 */
    uint64_t foreign_at; /* where the value of the first key is that nobody knows, or 0 */
    uint64_t foreign_n;  /* its length */
    const char *rule;    /* that the schema breaks, if it is not "Schema" */
} zt2;

/* ztensor2.c: the footer and the manifest into z, by their own rules. To be freed, whatever comes
 * of it. */
tnf_status tnf_zt2_read(zt2 *z, tnf_error *e);
void tnf_zt2_free(zt2 *z);

/* recover.c: the footer of the last whole model in a file that does not end with one. */
tnf_status tnf_zt2_recover(zt2 *z, tnf_error *e);
/* ztensor2.c: a footer at its place, its own rules, and those on the manifest that it tells of. */
tnf_status tnf_zt2_read_footer(tnf_reader *r, zt2_footer *f, uint64_t at, tnf_error *e);
tnf_status tnf_zt2_check_footer(const zt2_footer *f, tnf_error *e);
tnf_status tnf_zt2_check_hash(const zt2_footer *f, const void *manifest, tnf_error *e);

/* manifest.c: the bytes into z, by the rules of the encoding and the schema. */
tnf_status tnf_zt2_parse(zt2 *z, const void *bytes, size_t n, tnf_error *e);

/* The object whose name begins there, once more. It lives until the next is read; its attributes go
 * to that arena (NULL: they live no longer). z->c.p is then where the next one begins. */
tnf_status tnf_zt2_object_at(zt2 *z, const uint8_t *key, tnf_arena *attrs, zt2_object *out,
                             tnf_error *e);
/* All of them at once, into the scratch. */
tnf_status tnf_zt2_load(zt2 *z, tnf_error *e);

/* rules.c: checks all rules between the entries and adds the tensors to the catalog in order of
 * their names, or none if something is wrong. When shards are open, place_parts sets the origin of
 * the parts in them. */
tnf_status tnf_zt2_check(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_place_parts(zt2 *z, tnf_error *e);

/* shards.c */
extern const tnf_option_info tnf_zt2_read_options[];
tnf_status tnf_zt2_resolve(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_tell_shards(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_verify_shards(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                                 tnf_error *e);

/* canonical.c */
tnf_status tnf_zt2_canonical(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);

/* scan.c: the name, in the arena, of the file in a directory that has this size and this digest;
 * TNF_ENOTFOUND if none has. */
tnf_status tnf_zt2_scan(zt2 *z, const char *directory, const zt2_shard *s, tnf_str *out,
                        tnf_error *e);

/* identity.c: what `zt id` prints, as an attribute. */
tnf_status tnf_zt2_tell_content(zt2 *z, tnf_error *e);

/* append.c: what appending must know of the file beyond the model, kept as r->state. */
typedef struct zt2_state {
    zt2_shard *shards;
    size_t nshards;
    uint64_t foreign_at;
    zt2_footer footer;
} zt2_state;

tnf_status tnf_zt2_keep_state(zt2 *z, tnf_error *e);

/* ------------------------------------------------------------------- words */

/* A name as objects, parts and attributes have it: 1 to 1024 bytes without a NUL. */
static inline bool zt2_name_ok(tnf_str s)
{
    return s.n >= 1 && s.n <= ZT2_MAX_NAME && !memchr(s.p, 0, s.n);
}

bool tnf_zt2_dtype(tnf_dtype *out, tnf_str name);
bool tnf_zt2_digest_ok(tnf_str text);
/* The digest in the arena; NULL: no memory. */
const tnf_digest *tnf_zt2_digest(tnf_arena *arena, tnf_str s);
/* A logical type; *pinned is false if the type wants another dtype. NULL: no memory. */
const tnf_type *tnf_zt2_type(tnf_arena *arena, tnf_str name, tnf_dtype dtype, bool *pinned);
/* How the type is called in a file; NULL for a plain dtype. */
const char *tnf_zt2_type_name(const tnf_type *type);
/* A layout, known or not. NULL: no memory. */
const tnf_layout *tnf_zt2_layout(tnf_arena *arena, tnf_str name);
/* The same as one that has no rules. */
const tnf_layout *tnf_zt2_layout_unruled(tnf_arena *arena, tnf_str name);
/* How it is called in a file, in `out`. */
const char *tnf_zt2_layout_name(char *out, size_t size, const tnf_layout *layout);
/* The rules of gguf.<type>/1, which no layout of the model stands for. */
bool tnf_zt2_is_gguf(tnf_str layout);
tnf_status tnf_zt2_check_gguf(const tnf_object *object, tnf_str layout, tnf_error *e);

/* ------------------------------------------------------------------- write */

#define ZT2_SMALL  65536u /* bytes of a part that is held in memory */
#define ZT2_SAMPLE 4096u  /* of one that is not: what is looked at first */

/* A blob that is written. */
typedef struct zt2_blob {
    uint64_t offset, stored, nbytes, sample;
    const tnf_part *part; /* whose bytes it has; NULL: they could be had only once */
    const tnf_part *old;  /* append: the part that it has been in the file for, or NULL */
    tnf_str shard;        /* it is in that one; p is NULL: in this file */
    bool encoded;
    const uint8_t *strong; /* their SHA-256 then, if they were few */
    uint8_t digest[TNF_DIGEST_MAX];
    uint32_t next_sample, next_digest; /* in the chains of blobs.c */
} zt2_blob;

typedef struct zt2_blobs {
    tnf_put_how how; /* to be set before the first */
    uint64_t align, small_below;
    bool unsure; /* two may be equal that were both written */
    tnf_writer *w;
    zt2_blob *list;
    size_t n, mask;
    uint32_t *by_sample, *by_digest;
    uint8_t *small;
} zt2_blobs;

/* For at most so many. */
tnf_status tnf_zt2_blobs_init(zt2_blobs *b, tnf_writer *w, uint64_t most, tnf_error *e);
/* Writes a part, or finds it written; *out stays. */
tnf_status tnf_zt2_blobs_put(zt2_blobs *b, const tnf_part *part, const zt2_blob **out,
                             tnf_error *e);
/* Takes one for known that is in the file already, and so does tnf_zt2_blobs_put() if `alias`. */
tnf_status tnf_zt2_blobs_know(zt2_blobs *b, zt2_blob *blob, bool alias, const zt2_blob **out,
                              tnf_error *e);
/* To where the manifest may begin. */
tnf_status tnf_zt2_blobs_align(zt2_blobs *b, tnf_error *e);

/* append.c: all parts that are in the base are given their blobs: placed[i] of the i-th part,
 * object after object; NULL stays where one is new. */
tnf_status tnf_zt2_place_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e);
/* copy.c: the same where all parts are in w->like, which is written anew: their blobs are copied as
 * they are stored, in their order, those that share one still do. */
tnf_status tnf_zt2_copy_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e);
/* The alignment that the blobs of the base have. */
uint64_t tnf_zt2_align_of(const tnf_writer *w);

/* fit.c: what can be written. */
#define ZT2_FILE_ATTRS   2u /* containers that a value of an attribute is in */
#define ZT2_OBJECT_ATTRS 4u
bool tnf_zt2_attr_ok(const tnf_member *attr, unsigned depth);
tnf_status tnf_zt2_fits(tnf_fit *fit, tnf_error *e);
tnf_fate tnf_zt2_takes(const tnf_object *object, const char **reason);
tnf_status tnf_zt2_write(tnf_writer *w, tnf_error *e);
tnf_status tnf_zt2_write_index(tnf_writer *w, tnf_error *e);
extern const tnf_option_info tnf_zt2_write_options[];

#endif
