/* SPDX-License-Identifier: MIT */
/* Arrays and maps of the pulling CBOR reader, of definite or indefinite length, and skipping.
 *
 *   levels:  [items left] [pairs left, key before] [items left]     the containers around an item
 *
 * The levels of a skip are an array and do not use the C stack. In STRICT a key is only compared
 * with the one before it. In LENIENT keys may be in any order, so all keys of a map are remembered.
 */
#include "base/error.h"
#include "wire/cbor_head.h"

#include <string.h>

/* ------------------------------------------------------------- containers */

/* Enters the array or map whose head was read. */
static bool enter_level(tnf_cbor *r, const tnf_cbor_head *h, tnf_cbor_level *level)
{
    bool map = h->major == CBOR_MAP;
    if (h->info != CBOR_OPEN_INFO && h->argument > tnf_cbor_left(r) / (map ? 2 : 1))
        return tnf_cbor_too_long(r, h, map ? "pairs" : "items");
    *level = (tnf_cbor_level) { .left = h->argument, .map = map };
    r->depth++;
    return true;
}

/* Moves to the next item of an array or key of a map; past the last one, leaves the level and
 * returns false. */
static bool next_item(tnf_cbor *r, tnf_cbor_level *level)
{
    bool ended = level->left == 0;
    if (r->status != TNF_OK)
        return false;
    if (level->left != TNF_CBOR_OPEN) {
        level->left -= !ended;
    } else if (r->p == r->end) {
        return tnf_cbor_cut_short(r, level->map ? "inside a map" : "inside an array");
    } else {
        ended = *r->p == CBOR_BREAK;
        r->p += ended;
    }
    r->depth -= ended;
    level->key = level->map && !ended ? r->p : NULL;
    return !ended;
}

/* A key for a message; it was checked before. */
static const char *key_words(char *out, size_t size, tnf_str encoded)
{
    unsigned first = (uint8_t)encoded.p[0], info = first & 31;
    size_t before = info < 24 ? 1 : 1 + ((size_t)1 << (info - 24));
    if (first >> 5 != CBOR_TEXT)
        return "(not text)";
    return tnf_quote(out, size, encoded.p + before, encoded.n - before);
}

/* No encoding is the beginning of another. So keys that are equal up to the shorter length are
 * equal. */
static int compare_encoded(tnf_str a, tnf_str b)
{
    return memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
}

/* Checks the place of a key that was read and begins at `start`. */
static bool end_key(tnf_cbor *r, tnf_cbor_level *level, const uint8_t *start)
{
    char one[72], two[72];
    tnf_str before = level->previous, key = { (const char *)start, (size_t)(r->p - start) };
    level->previous = key;
    level->key = NULL;
    if (r->profile == TNF_CBOR_LENIENT || !before.p)
        return true;
    int order = compare_encoded(before, key);
    if (order < 0)
        return true;
    uint64_t at = tnf_cbor_position(r, (const uint8_t *)key.p);
    if (order == 0)
        return tnf_cbor_fail(r, TNF_CBOR_DUPLICATE_KEY, TNF_EFORMAT, at,
                             "the CBOR has the key %s twice in one map",
                             key_words(one, sizeof one, key));
    return tnf_cbor_fail(r, TNF_CBOR_DETERMINISM, TNF_EFORMAT, at,
                         "the keys of a CBOR map are in the wrong order: %s comes after %s",
                         key_words(one, sizeof one, key), key_words(two, sizeof two, before));
}

static bool enter_scope(tnf_cbor *r, tnf_cbor_kind kind, tnf_cbor_scope *scope)
{
    tnf_cbor_head h;
    scope->level = (tnf_cbor_level) { 0 };
    tnf_keys_init(&scope->keys, r->arena);
    return tnf_cbor_take(r, kind, &h) && enter_level(r, &h, &scope->level);
}

bool tnf_cbor_enter_array(tnf_cbor *r, tnf_cbor_scope *scope)
{
    return enter_scope(r, TNF_CBOR_ARRAY, scope);
}

bool tnf_cbor_enter_map(tnf_cbor *r, tnf_cbor_scope *scope)
{
    return enter_scope(r, TNF_CBOR_MAP, scope);
}

bool tnf_cbor_item(tnf_cbor *r, tnf_cbor_scope *scope)
{
    return next_item(r, &scope->level);
}

/* In LENIENT keys may be in any order, so all of them must be remembered. */
static bool new_key(tnf_cbor *r, tnf_cbor_scope *scope, tnf_str key)
{
    bool twice = false;
    r->status = tnf_keys_add(&scope->keys, key, &twice, r->e);
    if (r->status != TNF_OK)
        return false;
    return !twice || tnf_cbor_fail(r, TNF_CBOR_DUPLICATE_KEY, TNF_EFORMAT,
                                   tnf_cbor_position(r, (const uint8_t *)scope->level.previous.p),
                                   "the CBOR has the key %s twice in one map", TNF_QUOTED(key));
}

bool tnf_cbor_key(tnf_cbor *r, tnf_cbor_scope *scope, tnf_str *key)
{
    *key = (tnf_str) { 0 };
    if (!next_item(r, &scope->level))
        return false;
    const uint8_t *start = r->p;
    bool text = tnf_cbor_peek(r) == TNF_CBOR_TEXT;
    if (text ? !tnf_cbor_text(r, key) : !tnf_cbor_skip(r, NULL))
        return false;
    if (!end_key(r, &scope->level, start))
        return false;
    return r->profile == TNF_CBOR_STRICT || !text || new_key(r, scope, *key);
}

/* ------------------------------------------------------------------- skip */

/* Called after an item was read or a level was entered: moves to the next item of the open levels.
 * False when all are closed. */
static bool next_of(tnf_cbor *r, tnf_cbor_level *levels, unsigned *open)
{
    while (*open && r->status == TNF_OK) {
        tnf_cbor_level *level = &levels[*open - 1];
        if (level->key)
            return end_key(r, level, level->key);
        if (next_item(r, level))
            return true;
        --*open;
    }
    return false;
}

bool tnf_cbor_skip(tnf_cbor *r, tnf_str *raw)
{
    tnf_cbor_level levels[TNF_TREE_DEEPEST + 1];
    unsigned open = 0;
    const uint8_t *start = r->p;
    do {
        tnf_cbor_head h;
        if (!tnf_cbor_next_head(r, &h))
            return false;
        bool container = h.major == CBOR_ARRAY || h.major == CBOR_MAP;
        if (container ? !enter_level(r, &h, &levels[open++]) : !tnf_cbor_skip_content(r, &h))
            return false;
    } while (next_of(r, levels, &open));
    if (raw)
        *raw = (tnf_str) { (const char *)start, (size_t)(r->p - start) };
    return r->status == TNF_OK;
}
