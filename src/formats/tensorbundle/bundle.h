/* SPDX-License-Identifier: MIT */
/* Shared by the files of this format: the table of keys, entries, data of other files. */
#ifndef TNF_FORMATS_BUNDLE_H
#define TNF_FORMATS_BUNDLE_H

#include "format.h"
#include "wire/protobuf.h"

#define TB_MAX_RANK   254u
#define TB_MAX_SHARDS 100000u
#define TB_MAX_SLICES 4096u

/* A BundleEntryProto. */
typedef struct tb_entry {
    uint64_t type, shard, offset, size;
    uint32_t crc;
    bool has_crc;
    uint64_t *shape;
    uint32_t rank;
    uint64_t at;         /* its file offset */
    tnf_protobuf slices; /* the entry itself, to read them again */
    uint32_t nslices;
} tb_entry;

/* Values in a data file. */
typedef struct tb_place {
    const struct tnf_origin *origin;
    const struct missing_file *missing;
    const char *why; /* reason why it cannot be read; or NULL */
    uint64_t size;
    bool asked;
} tb_place;

/* A slice of a tensor: its start and length on each axis. */
typedef struct tb_slice {
    const uint64_t *start, *length;
    tnf_part part;
} tb_slice;

/* Data that only the format can produce. */
typedef struct tb_data {
    enum { TB_PACKED, TB_ENDS, TB_SLICES, TB_CUT } form; /* TB_CUT: part.nbytes bytes are missing */
    tnf_part part;                                       /* the bytes in the file */
    uint8_t bits;
    uint64_t elements;
    const uint64_t *ends;
    const tb_slice *slices;
    uint32_t nslices, rank;
    const uint64_t *shape;
    uint64_t width;
} tb_data;

typedef struct tb_check {
    tnf_str name;
    tnf_part part;
    uint32_t crc;
    uint64_t strings; /* number of strings; 0: plain bytes */
} tb_check;

typedef struct tb_state {
    tb_data *items;
    size_t n, capacity;
    tb_check *checks; /* checksums for verify(), in addition to digests of parts */
    size_t nchecks, checks_capacity;
} tb_state;

/* Calls take() for every key of the table, in order. The value is in the file. */
typedef struct tb_table {
    tnf_reader *r;
    tnf_status (*take)(void *ctx, tnf_str key, uint64_t at, uint64_t n, tnf_error *e);
    void *ctx;
} tb_table;
tnf_status tnf_tb_table(const tb_table *t, tnf_error *e);

static inline uint32_t tnf_tb_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xA282EAD8u;
    return rotated >> 17 | rotated << 15;
}

/* While the index is read. */
struct tb_reading {
    tnf_reader *r;
    tnf_protobuf_in *in;
    uint64_t nshards;
    bool header, big;
    tb_place *shards;
    tnf_attrs slices; /* keys of slices, to their file offsets */
};

/* Tenfold's types by number; NULL: none. */
extern const char *const tnf_tb_types[];

tnf_status tnf_tb_entry(tb_entry *x, struct tb_reading *g, uint64_t at, uint64_t n, tnf_error *e);
/* A dense tensor, or a slice of one: makes its part, which may have to be packed. */
tnf_status tnf_tb_part(tnf_part *part, struct tb_reading *g, tnf_str name, const tb_entry *x,
                       tnf_error *e);
tnf_status tnf_tb_attrs(const tnf_value **out, tnf_reader *r, uint64_t type, tnf_error *e);
tnf_status tnf_tb_wrong_size(const tb_entry *x, uint64_t elements, tnf_error *e);
/* slices.c: adds a tensor in slices. */
tnf_status tnf_tb_sliced(struct tb_reading *g, tnf_str name, const tb_entry *x, tnf_error *e);

/* chosen.c: the checkpoint that the file `checkpoint` names; false: not such a file. */
bool tnf_tb_chosen(tnf_str text, char *room, tnf_str *name);

/* data.c */
tnf_status tnf_tb_push(tnf_reader *r, tb_data data, uint64_t *key, tnf_error *e);
tnf_status tnf_tb_check(tnf_reader *r, tb_check check, tnf_error *e);
tnf_status tnf_tb_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_tb_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

#endif
