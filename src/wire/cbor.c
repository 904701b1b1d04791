/* SPDX-License-Identifier: MIT */
/* The pulling CBOR reader: one pass, no tree, exact offsets, with a strict and a lenient profile.
 *
 * Lengths and counts are checked against the remaining bytes before they are used; each item of a
 * count takes at least one byte. Nesting is a counter and does not use the C stack.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/cbor_head.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tnf_cbor_init(tnf_cbor *r, const void *bytes, size_t n, uint64_t base, tnf_arena *arena,
                   unsigned max_depth, tnf_cbor_profile profile, tnf_error *e)
{
    const uint8_t *start = n ? bytes : (const void *)"";
    *r = (tnf_cbor) { .start = start,
                      .p = start,
                      .end = start + n,
                      .base = base,
                      .arena = arena,
                      .max_depth = max_depth < TNF_TREE_DEEPEST ? max_depth : TNF_TREE_DEEPEST,
                      .profile = profile,
                      .e = e };
}

/* ----------------------------------------------------------------- errors */

const char *tnf_cbor_rule_name(tnf_cbor_rule rule)
{
    static const char *const names[] = {
        [TNF_CBOR_FINE] = "",
        [TNF_CBOR_SYNTAX] = "CborSyntax",
        [TNF_CBOR_DETERMINISM] = "CborDeterminism",
        [TNF_CBOR_DUPLICATE_KEY] = "CborDuplicateKey",
        [TNF_CBOR_DEPTH] = "CborDepth",
        [TNF_CBOR_SCHEMA] = "Schema",
    };
    return rule <= TNF_CBOR_SCHEMA ? names[rule] : "";
}

uint64_t tnf_cbor_position(const tnf_cbor *r, const uint8_t *p)
{
    return r->base + (uint64_t)(p - r->start);
}

uint64_t tnf_cbor_where(const tnf_cbor *r)
{
    return tnf_cbor_position(r, r->p);
}

void tnf_cbor_say(tnf_cbor *r, tnf_cbor_rule rule, tnf_status status, uint64_t offset,
                  const char *format, ...)
{
    if (r->status != TNF_OK)
        return;
    char message[sizeof r->e->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    r->rule = rule;
    r->status = tnf_fail(r->e, status, offset == TNF_NO_OFFSET ? tnf_cbor_where(r) : offset, "%s",
                         message);
}

static bool no_cbor(tnf_cbor *r, const uint8_t *p, const char *what)
{
    return tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_EFORMAT, tnf_cbor_position(r, p), "%s", what);
}

static bool not_deterministic(tnf_cbor *r, const uint8_t *p, const char *what)
{
    return tnf_cbor_fail(r, TNF_CBOR_DETERMINISM, TNF_EFORMAT, tnf_cbor_position(r, p), "%s", what);
}

size_t tnf_cbor_left(const tnf_cbor *r)
{
    return (size_t)(r->end - r->p);
}

/* ------------------------------------------------------------------ heads */

/* The argument in the 1, 2, 4 or 8 bytes after the first. */
static bool long_argument(tnf_cbor *r, tnf_cbor_head *h)
{
    const uint8_t *p = r->p + 1;
    unsigned width = 1u << (h->info - 24);
    if (tnf_cbor_left(r) <= width)
        return tnf_cbor_cut_short(r, "inside the head of an item");
    h->argument = width == 1   ? *p
                  : width == 2 ? tnf_be16(p)
                  : width == 4 ? tnf_be32(p)
                               : tnf_be64(p);
    r->p += 1 + width;
    uint64_t enough = width == 1 ? 24 : (uint64_t)1 << 4 * width; /* the smallest that needs it */
    if (r->profile == TNF_CBOR_STRICT && h->major != CBOR_SIMPLE && h->argument < enough)
        return not_deterministic(r, h->at,
                                 "the CBOR has a number or length in more bytes than it needs");
    return true;
}

/* Is this simple value of major type 7 allowed? */
static bool known_simple(tnf_cbor *r, const tnf_cbor_head *h)
{
    bool lenient = r->profile == TNF_CBOR_LENIENT;
    if ((h->info >= 20 && h->info <= (lenient ? 23 : 22)) || (h->info >= 25 && h->info <= 27))
        return true;
    if (h->info == CBOR_OPEN_INFO)
        return no_cbor(r, h->at, "the CBOR has an end (0xff) where an item should be");
    return tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_EFORMAT, tnf_cbor_position(r, h->at),
                         "the CBOR has the byte 0x%02x, a simple value other than false, true and "
                         "null",
                         *h->at);
}

/* Reads the head at r->p, whatever it is; does not skip tags. */
static bool bare_head(tnf_cbor *r, tnf_cbor_head *h)
{
    if (r->p == r->end)
        return tnf_cbor_cut_short(r, "where an item should be");
    h->at = r->p;
    h->major = *r->p >> 5;
    h->info = *r->p & 31;
    if (h->major == CBOR_SIMPLE && !known_simple(r, h))
        return false;
    if (h->major == CBOR_TAG && r->profile == TNF_CBOR_STRICT)
        return no_cbor(r, h->at, "the CBOR has a tag, which its profile does not allow");
    if (h->info >= 24 && h->info <= 27)
        return long_argument(r, h);
    h->argument = h->info;
    if (h->info == CBOR_OPEN_INFO && h->major >= CBOR_BYTES && h->major <= CBOR_MAP) {
        if (r->profile == TNF_CBOR_STRICT)
            return no_cbor(
                r, h->at,
                "the CBOR has an item of indefinite length, which its profile does not allow");
        h->argument = TNF_CBOR_OPEN;
    } else if (h->info > 27) {
        return tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_EFORMAT, tnf_cbor_position(r, h->at),
                             "the CBOR has the reserved byte 0x%02x", *h->at);
    }
    r->p++;
    return true;
}

bool tnf_cbor_next_head(tnf_cbor *r, tnf_cbor_head *h)
{
    if (r->status != TNF_OK)
        return false;
    for (unsigned tags = 0;; tags++) {
        if (r->depth + tags > r->max_depth) /* a tag counts as a level around its item */
            return tnf_cbor_fail(
                r, TNF_CBOR_DEPTH, r->profile == TNF_CBOR_STRICT ? TNF_EFORMAT : TNF_ELIMIT,
                TNF_NO_OFFSET, "the CBOR is nested deeper than %u levels", r->max_depth);
        if (!bare_head(r, h))
            return false;
        if (h->major != CBOR_TAG)
            return true;
    }
}

static tnf_cbor_kind kind_of(const tnf_cbor_head *h)
{
    static const uint8_t kinds[] = {
        [CBOR_UINT] = TNF_CBOR_UINT,   [CBOR_NEGATIVE] = TNF_CBOR_NEGATIVE,
        [CBOR_BYTES] = TNF_CBOR_BYTES, [CBOR_TEXT] = TNF_CBOR_TEXT,
        [CBOR_ARRAY] = TNF_CBOR_ARRAY, [CBOR_MAP] = TNF_CBOR_MAP,
    };
    if (h->major < sizeof kinds)
        return (tnf_cbor_kind)kinds[h->major];
    if (h->info >= 25)
        return TNF_CBOR_FLOAT;
    return h->info <= 21 ? TNF_CBOR_BOOL : TNF_CBOR_NULL;
}

tnf_cbor_kind tnf_cbor_peek(tnf_cbor *r)
{
    const uint8_t *start = r->p;
    tnf_cbor_head h;
    bool closes = r->p < r->end && *r->p == CBOR_BREAK && r->profile == TNF_CBOR_LENIENT;
    if (r->p == r->end || closes || !tnf_cbor_next_head(r, &h))
        return TNF_CBOR_END;
    r->p = start;
    return kind_of(&h);
}

bool tnf_cbor_take(tnf_cbor *r, tnf_cbor_kind kind, tnf_cbor_head *h)
{
    static const char *const words[] = {
        [TNF_CBOR_END] = "nothing",
        [TNF_CBOR_UINT] = "an unsigned integer",
        [TNF_CBOR_NEGATIVE] = "a negative integer",
        [TNF_CBOR_BYTES] = "a byte string",
        [TNF_CBOR_TEXT] = "text",
        [TNF_CBOR_ARRAY] = "an array",
        [TNF_CBOR_MAP] = "a map",
        [TNF_CBOR_FLOAT] = "a float",
        [TNF_CBOR_BOOL] = "true or false",
        [TNF_CBOR_NULL] = "null",
    };
    if (!tnf_cbor_next_head(r, h))
        return false;
    if (kind_of(h) == kind)
        return true;
    return tnf_cbor_fail(r, TNF_CBOR_SCHEMA, TNF_EFORMAT, tnf_cbor_position(r, h->at),
                         "the CBOR has %s where %s should be", words[kind_of(h)], words[kind]);
}

/* ---------------------------------------------------------------- strings */

/* Reads as many bytes as the head says; they must be UTF-8 if they are text. */
static bool read_content(tnf_cbor *r, const tnf_cbor_head *h, tnf_str *out)
{
    size_t wrong = 0;
    if (h->argument > tnf_cbor_left(r))
        return tnf_cbor_too_long(r, h, "bytes");
    *out = (tnf_str) { (const char *)r->p, (size_t)h->argument };
    if (h->major == CBOR_TEXT && !tnf_utf8_valid(&wrong, out->p, out->n))
        return no_cbor(r, r->p + wrong, "the CBOR has text that is not UTF-8");
    r->p += out->n;
    return true;
}

/* Reads the chunks of a string of indefinite length, and copies them to `to` unless it is NULL.
 * Each chunk of a text must be UTF-8: a character must not be split. */
static bool read_chunks(tnf_cbor *r, unsigned major, char *to, size_t *n)
{
    for (*n = 0;;) {
        tnf_cbor_head h;
        tnf_str chunk;
        if (r->p < r->end && *r->p == CBOR_BREAK) {
            r->p++;
            return true;
        }
        if (!bare_head(r, &h))
            return false;
        if (h.major != major || h.info == CBOR_OPEN_INFO)
            return no_cbor(r, h.at,
                           "the CBOR has an item that is not a chunk in a string of chunks");
        if (!read_content(r, &h, &chunk))
            return false;
        if (to && chunk.n)
            memcpy(to + *n, chunk.p, chunk.n);
        *n += chunk.n; /* all chunks are in memory, so the sum fits */
    }
}

/* Reads a string after its head; chunks are joined in the arena. */
static bool read_string(tnf_cbor *r, const tnf_cbor_head *h, tnf_str *out)
{
    const uint8_t *first = r->p;
    if (h->info != CBOR_OPEN_INFO)
        return read_content(r, h, out);
    if (!read_chunks(r, h->major, NULL, &out->n))
        return false;
    char *copy = tnf_arena_alloc(r->arena, out->n + 1);
    if (!copy) {
        r->status = tnf_arena_fail(r->arena, "a string", r->e);
        return false;
    }
    r->p = first;
    out->p = copy;
    return read_chunks(r, h->major, copy, &out->n);
}

bool tnf_cbor_text(tnf_cbor *r, tnf_str *out)
{
    tnf_cbor_head h;
    return tnf_cbor_take(r, TNF_CBOR_TEXT, &h) && read_string(r, &h, out);
}

bool tnf_cbor_bytes(tnf_cbor *r, tnf_str *out)
{
    tnf_cbor_head h;
    return tnf_cbor_take(r, TNF_CBOR_BYTES, &h) && read_string(r, &h, out);
}

/* ---------------------------------------------------------------- numbers */

bool tnf_cbor_u64(tnf_cbor *r, uint64_t *out)
{
    tnf_cbor_head h;
    if (!tnf_cbor_take(r, TNF_CBOR_UINT, &h))
        return false;
    *out = h.argument;
    return true;
}

bool tnf_cbor_i64(tnf_cbor *r, int64_t *out)
{
    tnf_cbor_head h;
    bool negative = tnf_cbor_peek(r) == TNF_CBOR_NEGATIVE;
    if (!tnf_cbor_take(r, negative ? TNF_CBOR_NEGATIVE : TNF_CBOR_UINT, &h))
        return false;
    if (h.argument > INT64_MAX)
        return tnf_cbor_fail(r, TNF_CBOR_SCHEMA, TNF_ELIMIT, tnf_cbor_position(r, h.at),
                             "the CBOR has an integer too large for a signed 64-bit integer");
    *out = negative ? -1 - (int64_t)h.argument : (int64_t)h.argument;
    return true;
}

/* Reads a float after its head, as the bits of a double. */
static bool float_bits(tnf_cbor *r, const tnf_cbor_head *h, uint64_t *out)
{
    uint64_t shortest;
    *out = h->info == 25   ? tnf_cbor_widen(h->argument, 5, 10)
           : h->info == 26 ? tnf_cbor_widen(h->argument, 8, 23)
                           : h->argument;
    if (r->profile == TNF_CBOR_LENIENT)
        return true;
    if (tnf_cbor_is_nan(*out))
        return (h->info == 25 && h->argument == CBOR_NAN) ||
               not_deterministic(r, h->at, "the CBOR has a NaN other than f9 7e00");
    return tnf_cbor_shortest_float(*out, &shortest) == 1u << (h->info - 24) ||
           not_deterministic(r, h->at, "the CBOR has a float in more bytes than it needs");
}

bool tnf_cbor_f64(tnf_cbor *r, double *out)
{
    tnf_cbor_head h;
    uint64_t bits;
    if (!tnf_cbor_take(r, TNF_CBOR_FLOAT, &h) || !float_bits(r, &h, &bits))
        return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool tnf_cbor_bool(tnf_cbor *r, bool *out)
{
    tnf_cbor_head h;
    if (!tnf_cbor_take(r, TNF_CBOR_BOOL, &h))
        return false;
    *out = h.info == 21;
    return true;
}

bool tnf_cbor_null(tnf_cbor *r)
{
    tnf_cbor_head h;
    return tnf_cbor_peek(r) == TNF_CBOR_NULL && tnf_cbor_next_head(r, &h);
}

bool tnf_cbor_skip_content(tnf_cbor *r, const tnf_cbor_head *h)
{
    tnf_str ignored;
    uint64_t bits;
    switch (h->major) {
    case CBOR_BYTES:
    case CBOR_TEXT:
        return h->info == CBOR_OPEN_INFO ? read_chunks(r, h->major, NULL, &ignored.n)
                                         : read_content(r, h, &ignored);
    case CBOR_SIMPLE:
        return h->info < 25 || float_bits(r, h, &bits);
    default:
        return true;
    }
}

tnf_status tnf_cbor_end(tnf_cbor *r)
{
    if (r->status == TNF_OK && r->p < r->end)
        tnf_cbor_say(r, TNF_CBOR_SYNTAX, TNF_EFORMAT, TNF_NO_OFFSET,
                     "other bytes follow the end of the CBOR (bytes left: %zu)", tnf_cbor_left(r));
    return r->status;
}
