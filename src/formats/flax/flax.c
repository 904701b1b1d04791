/* SPDX-License-Identifier: MIT */
/* Flax's files (flax_model.msgpack, checkpoint_N), as flax.serialization writes them.
 *
 *   file   one MessagePack object, without a magic; no bytes follow it
 *   tree   map { str: tree or leaf }, array [ tree or leaf ]
 *   leaf   ext 1   an array:      [ [dim, …], "float32", bin ]        row by row, little-endian
 *          ext 3   a scalar:      the same, without dimensions
 *          ext 2   a complex number: [ f64, f64 ]
 *          int, float, str, bin, bool, nil
 *
 * An array of more than 2^30 bytes is a map instead of the leaf:
 *
 *   { "__msgpack_chunked_array__": true, "shape": {"0": d, …},
 *     "chunks": {"0": ext 1, "1": ext 1, …} }
 *
 * The name of a tensor is its keys, joined by slashes. Leaves other than arrays become
 * `flax.leaves`.
 */
#include "formats/flax/flax.h"

#include <string.h>

#define PROBE_DEPTH 32u

/* --------------------------------------------------------------------- probe */

/* Does an array begin here: [ [dims], type, …? */
static bool begins_array(const uint8_t *p, size_t n)
{
    tnf_msgpack_kind kind;
    fx_head h;
    if (n < 3 || p[0] != 0x93 || tnf_fx_shape(p[1], &kind) == 0 || kind != TNF_MSGPACK_ARRAY)
        return false;
    size_t at = 1 + tnf_fx_shape(p[1], &kind);
    if (at > n)
        return false;
    tnf_fx_parse(p + 1, &h);
    for (uint64_t i = h.n; i > 0 && at < n; i--) {
        at += tnf_fx_shape(p[at], &kind);
        if (kind != TNF_MSGPACK_UINT && kind != TNF_MSGPACK_INT)
            return false;
    }
    unsigned head = at < n ? tnf_fx_shape(p[at], &kind) : 0;
    if (head == 0 || kind != TNF_MSGPACK_STR || at + head > n)
        return false;
    tnf_fx_parse(p + at, &h);
    return h.n <= n - at - head && h.n > 1 && h.n < 32;
}

/* Walks the first items until it finds an array. */
static bool leads_to_array(const uint8_t *p, size_t n)
{
    uint64_t left[PROBE_DEPTH] = { 1 };
    bool map[PROBE_DEPTH] = { false }, key = false;
    unsigned depth = 0;
    for (size_t at = 0; at < n;) {
        fx_head h;
        unsigned head = tnf_fx_shape(p[at], &h.kind);
        if (head == 0 || head > n - at)
            return false;
        tnf_fx_parse(p + at, &h);
        bool container = h.kind == TNF_MSGPACK_MAP || h.kind == TNF_MSGPACK_ARRAY;
        if (key && (h.kind != TNF_MSGPACK_STR || h.n > n - at - head ||
                    !tnf_utf8_valid(NULL, (const char *)p + at + head, (size_t)h.n)))
            return false;
        if (!key && h.kind == TNF_MSGPACK_EXT && (h.ext == FX_NDARRAY || h.ext == FX_NPSCALAR))
            return begins_array(p + at + head, n - at - head);
        if (depth == 0 && h.kind != TNF_MSGPACK_MAP)
            return false;
        at += head;
        if (!container && h.n > n - at)
            return false;
        at += container ? 0 : (size_t)h.n;
        if (key) {
            key = false;
            continue;
        }
        if (!container || h.n == 0)
            left[depth]--;
        else if (depth + 1 == PROBE_DEPTH)
            return false;
        else {
            left[depth]--;
            left[++depth] = h.n;
            map[depth] = h.kind == TNF_MSGPACK_MAP;
        }
        while (depth > 0 && left[depth] == 0)
            depth--;
        if (depth == 0)
            return false;
        key = map[depth];
    }
    return false;
}

static int probe_flax(const tnf_probe *p)
{
    bool named = strcmp(p->ext, "msgpack") == 0;
    if (leads_to_array(p->head, p->nhead))
        return TNF_PROBE_STRUCTURE;
    bool map = p->nhead > 0 && (p->head[0] >> 4 == 8 || p->head[0] >= 0xDE) &&
               (p->head[0] > 0x80 || p->size == 1) && p->head[0] < 0xE0;
    return named && map ? TNF_PROBE_PLAUSIBLE : named ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

const tnf_format tnf_format_flax = {
    .name = "flax",
    .title = "Flax (.msgpack)",
    .extensions = "msgpack",
    .family = "flax",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_NO_OVERLAP,
    .can = { .types = "f32 bf16 f16 f64 i32 i64 i16 i8 u64 u32 u16 u8 bool c64 c128 f8_e4m3fn "
                      "f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0 f4_e2m1 f6_e2m3 f6_e3m2 i4 u4 i2 u2",
             .layouts = "dense",
             .zero_rank = true,
             .utf8_names = true,
             .attrs = TNF_HOLDS_NONE,
             .stash_type = "u8",
             .file_attrs = FX_LEAVES " " FX_LISTS " " FX_PATHS " " FX_ORDER,
             .object_attrs = FX_PATH " " FX_KIND,
             .derived = FX_CHUNKS,
             .spelling = FX_ORDER,
             .fits = tnf_fx_fits },
    .write_options = tnf_fx_write_options,
    .probe = probe_flax,
    .index = tnf_fx_index,
    .decode = tnf_fx_decode,
    .write = TNF_WRITES(tnf_fx_write),
};
