/* SPDX-License-Identifier: MIT */
/* Shared by the files of this directory: a manifest as read, and the words of the format.
 *
 *   ztensor2.c   the container and the descriptor      words.c    types, layouts, digests by name
 *   manifest.c   CBOR to the structures below          rules.c    the rules between them
 *   shards.c     other files with parts                identity.c the content digest
 *   scan.c       shards found by digest
 *   write.c      the writer                            blobs.c    equal parts share one blob
 *   canonical.c  is the file as write.c would write it?
 *   fit.c        decides what can be written
 *   copy.c       copies stored blobs of another file
 *   append.c     parts already in the file             recover.c  the end of a crashed append
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
#define ZT2_FLOOR        4096u  /* every blob begins at a multiple of this */
#define ZT2_ALIGN        65536u /* the multiple in canonical form */
#define ZT2_MAX_MANIFEST ((uint64_t)1 << 30)
#define ZT2_MAX_DEPTH    32u
#define ZT2_MAX_NAME     1024u
#define ZT2_MAX_RANK     64u
#define ZT2_SEEKABLE     "zt.zstd-seekable/1"

/* Attributes for facts that the model cannot express. */
#define ZT2_EMPTY_ATTRS  "ztensor.empty_attributes" /* the file has an empty map of attributes */
#define ZT2_UNKNOWN      "ztensor.unknown" /* an extra: the value of the first unknown key */
#define ZT2_CONTENT      "ztensor.content_digest"
#define ZT2_SHARDS       "ztensor.shards"
#define ZT2_DATA_SHARD   "ztensor.data_shard"

/* ---------------------------------------------------------- manifest as read */

typedef struct zt2_part {
    tnf_str role;
    uint64_t offset, length, decoded;
    tnf_dtype dtype;
    tnf_str type, shard, digest, encoding; /* p is NULL: none */
    uint64_t at;                           /* file offset of its blob's place in the manifest */
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
    const struct tnf_origin *origin;  /* NULL: not found, or not searched */
    const struct tnf_origin *missing; /* set: the shard is missing, which is allowed */
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
    /* Objects are many, and their descriptions are larger than the model's. So only the position of
     * each is kept, and its description is read again when needed. */
    const uint8_t **keys;   /* position of each name in the manifest; later sorted by name */
    const uint8_t *first;   /* the first one in the manifest */
    size_t n, nparts;       /* number of objects, and of all their parts */
    unsigned objects_depth; /* depth of the objects in containers */
    tnf_arena one;          /* memory of the current object; freed by tnf_zt2_free() */
    tnf_arena *to;          /* memory for reading an object: `one`, or the scratch */
    bool undigested;        /* a part has no digest */
    zt2_object *objects;    /* tnf_zt2_load(): all of them, in the manifest's order */
    zt2_shard *shards;      /* likewise */
    size_t nshards;
    bool has_objects, empty_attrs;
    uint64_t shards_at;  /* position of the table of shards, or 0 */
    uint64_t foreign_at; /* position of the first unknown key's value, or 0 */
    uint64_t foreign_n;  /* its length */
    const char *rule;    /* the rule that is broken, if it is not "Schema" */
} zt2;

/* ztensor2.c: reads the footer and the manifest into z, by their own rules. The caller frees z,
 * also after a failure. */
tnf_status tnf_zt2_read(zt2 *z, tnf_error *e);
void tnf_zt2_free(zt2 *z);

/* recover.c: finds the footer of the last complete model in a file that does not end with a
 * footer. */
tnf_status tnf_zt2_recover(zt2 *z, tnf_error *e);
/* ztensor2.c: reads a footer at its place, checks its own rules, and those on the manifest's
 * place. */
tnf_status tnf_zt2_read_footer(tnf_reader *r, zt2_footer *f, uint64_t at, tnf_error *e);
tnf_status tnf_zt2_check_footer(const zt2_footer *f, tnf_error *e);
tnf_status tnf_zt2_check_hash(const zt2_footer *f, const void *manifest, tnf_error *e);

/* manifest.c: parses the bytes into z, by the rules of the encoding and the schema. */
tnf_status tnf_zt2_parse(zt2 *z, const void *bytes, size_t n, tnf_error *e);

/* Reads the object whose name begins at `key` again. It is valid until the next is read; its
 * attributes are in the arena `attrs` (NULL: also valid until then). z->c.p is then the start of
 * the next one. */
tnf_status tnf_zt2_object_at(zt2 *z, const uint8_t *key, tnf_arena *attrs, zt2_object *out,
                             tnf_error *e);
/* Reads all of them at once into the scratch. */
tnf_status tnf_zt2_load(zt2 *z, tnf_error *e);

/* rules.c: checks all rules between the entries and adds the tensors to the catalog in order of
 * their names, or none if a rule is broken. When shards are open, place_parts sets the origins of
 * parts in them. */
tnf_status tnf_zt2_check(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_place_parts(zt2 *z, tnf_error *e);

/* shards.c */
extern const tnf_option_info tnf_zt2_read_options[];
tnf_status tnf_zt2_resolve(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_set_shards(zt2 *z, tnf_error *e);
tnf_status tnf_zt2_verify_shards(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                                 tnf_error *e);

/* canonical.c */
tnf_status tnf_zt2_canonical(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);

/* scan.c: finds the file in a directory with the size and digest of the shard; its name is in the
 * arena. TNF_ENOTFOUND if there is none. */
tnf_status tnf_zt2_scan(zt2 *z, const char *directory, const zt2_shard *s, tnf_str *out,
                        tnf_error *e);

/* identity.c: sets the output of `zt id` as an attribute. */
tnf_status tnf_zt2_set_content(zt2 *z, tnf_error *e);

/* append.c: facts about the file that appending needs in addition to the model, kept as
 * r->state. */
typedef struct zt2_state {
    zt2_shard *shards;
    size_t nshards;
    uint64_t foreign_at;
    zt2_footer footer;
} zt2_state;

tnf_status tnf_zt2_keep_state(zt2 *z, tnf_error *e);

/* ------------------------------------------------------------------- words */

/* A valid name of an object, part or attribute: 1 to 1024 bytes without a NUL. */
static inline bool zt2_name_ok(tnf_str s)
{
    return s.n >= 1 && s.n <= ZT2_MAX_NAME && !memchr(s.p, 0, s.n);
}

bool tnf_zt2_dtype(tnf_dtype *out, tnf_str name);
bool tnf_zt2_digest_ok(tnf_str text);
/* The digest in the arena; NULL: out of memory. */
const tnf_digest *tnf_zt2_digest(tnf_arena *arena, tnf_str s);
/* A logical type; *pinned is false if the type requires another dtype. NULL: out of memory. */
const tnf_type *tnf_zt2_type(tnf_arena *arena, tnf_str name, tnf_dtype dtype, bool *pinned);
/* The name of the type in a file; NULL for a plain dtype. */
const char *tnf_zt2_type_name(const tnf_type *type);
/* A layout, known or not. NULL: out of memory. */
const tnf_layout *tnf_zt2_layout(tnf_arena *arena, tnf_str name);
/* The same, as a layout without rules. */
const tnf_layout *tnf_zt2_layout_unruled(tnf_arena *arena, tnf_str name);
/* Its name in a file, in `out`. */
const char *tnf_zt2_layout_name(char *out, size_t size, const tnf_layout *layout);
/* Checks the rules of gguf.<type>/1, for which the model has no layout. */
bool tnf_zt2_is_gguf(tnf_str layout);
tnf_status tnf_zt2_check_gguf(const tnf_object *object, tnf_str layout, tnf_error *e);

/* ------------------------------------------------------------------- write */

#define ZT2_SMALL  65536u /* parts up to this size are held in memory */
#define ZT2_SAMPLE 4096u  /* sample of larger parts, compared first */

/* A written blob. */
typedef struct zt2_blob {
    uint64_t offset, stored, nbytes, sample;
    const tnf_part *part; /* the part with its bytes; NULL: they could be read only once */
    const tnf_part *old;  /* append: the old part of this blob, or NULL */
    tnf_str shard;        /* the shard of the blob; p is NULL: this file */
    bool encoded;
    const uint8_t *strong; /* their SHA-256 then, if the blob is small */
    uint8_t digest[TNF_DIGEST_MAX];
    uint32_t next_sample, next_digest; /* links of the chains in blobs.c */
} zt2_blob;

typedef struct zt2_blobs {
    tnf_put_how how; /* must be set before the first blob */
    uint64_t align, small_below;
    bool unsure; /* two written blobs may be equal */
    tnf_writer *w;
    zt2_blob *list;
    size_t n, mask;
    uint32_t *by_sample, *by_digest;
    uint8_t *small;
} zt2_blobs;

/* Makes room for at most `most` blobs. */
tnf_status tnf_zt2_blobs_init(zt2_blobs *b, tnf_writer *w, uint64_t most, tnf_error *e);
/* Writes a part, or finds an equal blob; *out remains valid. */
tnf_status tnf_zt2_blobs_put(zt2_blobs *b, const tnf_part *part, const zt2_blob **out,
                             tnf_error *e);
/* Adds a blob that is already in the file. With `alias`, tnf_zt2_blobs_put() may share it. */
tnf_status tnf_zt2_blobs_know(zt2_blobs *b, zt2_blob *blob, bool alias, const zt2_blob **out,
                              tnf_error *e);
/* Writes padding up to the place of the manifest. */
tnf_status tnf_zt2_blobs_align(zt2_blobs *b, tnf_error *e);

/* append.c: sets the blobs of all parts that are in the base: placed[i] for the i-th part, object
 * by object; NULL remains for new parts. */
tnf_status tnf_zt2_place_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e);
/* copy.c: the same if all parts are in w->like, which is rewritten: stored blobs are copied in
 * their order, and shared ones remain shared. */
tnf_status tnf_zt2_copy_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e);
/* The alignment of the blobs in the base. */
uint64_t tnf_zt2_align_of(const tnf_writer *w);

/* fit.c: decides what can be written. */
#define ZT2_FILE_ATTRS   2u /* depth of an attribute's value in containers */
#define ZT2_OBJECT_ATTRS 4u
bool tnf_zt2_attr_ok(const tnf_member *attr, unsigned depth);
tnf_status tnf_zt2_fits(tnf_fit *fit, tnf_error *e);
tnf_fate tnf_zt2_takes(const tnf_object *object, const char **reason);
/* write.c */
tnf_status tnf_zt2_write(tnf_writer *w, tnf_error *e);
tnf_status tnf_zt2_write_index(tnf_writer *w, tnf_error *e);
extern const tnf_option_info tnf_zt2_write_options[];

#endif
