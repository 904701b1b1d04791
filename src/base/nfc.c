/* SPDX-License-Identifier: MIT */
/* Is a text in Unicode's normal form C (UAX #15)? A quick check comes first. If characters may
 * combine with the ones before, the text is decomposed, ordered, composed again, and compared:
 *
 *   Â + dot below  →  A + circumflex + dot below  →  A + dot below + circumflex  →  Ậ
 */
#include "base/nfc.h"

#include <stdint.h>
#include <string.h>

typedef struct tnf_nfc_class {
    uint32_t first;
    uint16_t more;
    uint8_t class;
} tnf_nfc_class;

typedef struct tnf_nfc_range {
    uint32_t first;
    uint16_t more;
} tnf_nfc_range;

#define COMPOSITE(whole, a, b) ((uint64_t)(whole) << 42 | (uint64_t)(a) << 21 | (b))
#define WHOLE(composite)       ((uint32_t)((composite) >> 42))
#define PAIR(composite)        ((composite) & (((uint64_t)1 << 42) - 1))

#define C(whole, a, b)         COMPOSITE(whole, a, b)
#include "base/nfc_table.h"
#undef C

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MAX_PIECES   4u /* a character decomposes into at most this many */

/* Hangul syllables are computed. */
enum { S = 0xAC00, L = 0x1100, V = 0x1161, T = 0x11A7, LN = 19, VN = 21, TN = 28, SN = 11172 };

static uint8_t class_of(uint32_t c)
{
    size_t low = 0, high = COUNT(classes);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c < classes[mid].first)
            high = mid;
        else if (c > classes[mid].first + classes[mid].more)
            low = mid + 1;
        else
            return classes[mid].class;
    }
    return 0;
}

static bool among_ranges(const tnf_nfc_range *ranges, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c < ranges[mid].first)
            high = mid;
        else if (c > ranges[mid].first + ranges[mid].more)
            low = mid + 1;
        else
            return true;
    }
    return false;
}

/* The next character of valid UTF-8. */
static uint32_t next_point(const char **p)
{
    uint8_t c = (uint8_t) * (*p)++;
    unsigned more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    uint32_t point = c < 0x80 ? c : c & (0x3Fu >> more);
    for (; more > 0; more--)
        point = point << 6 | ((uint8_t) * (*p)++ & 0x3Fu);
    return point;
}

/* ------------------------------------------------------------------- slow */

/* One step of decomposition; true if c consists of two characters. */
static bool split_pair(uint32_t c, uint32_t *a, uint32_t *b)
{
    if (c >= S && c < S + SN) {
        uint32_t s = c - S;
        *a = s % TN ? c - s % TN : L + s / (VN * TN);
        *b = s % TN ? T + s % TN : V + s % (VN * TN) / TN;
        return true;
    }
    size_t low = 0, high = COUNT(composites);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c == WHOLE(composites[mid])) {
            *a = (uint32_t)(PAIR(composites[mid]) >> 21);
            *b = (uint32_t)(composites[mid] & 0x1FFFFF);
            return true;
        }
        if (c < WHOLE(composites[mid]))
            high = mid;
        else
            low = mid + 1;
    }
    return false;
}

/* The composition of two characters, or 0. */
static uint32_t join_pair(uint32_t a, uint32_t b)
{
    if (a >= L && a < L + LN && b >= V && b < V + VN)
        return S + ((a - L) * VN + (b - V)) * TN;
    if (a >= S && a < S + SN && (a - S) % TN == 0 && b > T && b < T + TN)
        return a + (b - T);
    uint64_t want = PAIR(COMPOSITE(0, a, b));
    size_t low = 0, high = COUNT(by_pair);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        uint64_t found = composites[by_pair[mid]];
        if (PAIR(found) == want)
            return WHOLE(found);
        if (want < PAIR(found))
            high = mid;
        else
            low = mid + 1;
    }
    return 0;
}

/* Complete decomposition: the first half may decompose again. Returns the number of characters. */
static size_t decompose_point(uint32_t c, uint32_t *out)
{
    uint32_t tail[MAX_PIECES], a, b;
    size_t n = 0, tails = 0;
    while (tails < MAX_PIECES && split_pair(c, &a, &b)) {
        tail[tails++] = b;
        c = a;
    }
    out[n++] = c;
    while (tails > 0)
        out[n++] = tail[--tails];
    return n;
}

/* Sorts the marks after a character by their classes; equal ones keep their order. */
static void order_marks(uint32_t *text, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t c = text[i];
        uint8_t class = class_of(c);
        size_t k = i;
        for (; class && k > 0 && class_of(text[k - 1]) > class; k--)
            text[k] = text[k - 1];
        text[k] = c;
    }
}

/* Composes in place. Returns the new length. */
static size_t compose_text(uint32_t *text, size_t n)
{
    size_t out = 0, starter = SIZE_MAX;
    uint8_t before = 0; /* class of the last mark kept since the starter */
    for (size_t i = 0; i < n; i++) {
        uint32_t c = text[i], joined = 0;
        uint8_t class = class_of(c);
        bool blocked = starter == SIZE_MAX ||
                       (out - starter > 1 && (before == 0 || before >= class));
        if (!blocked)
            joined = join_pair(text[starter], c);
        if (joined) {
            text[starter] = joined;
            continue;
        }
        if (class == 0)
            starter = out;
        before = class;
        text[out++] = c;
    }
    return out;
}

static bool same_text(const uint32_t *points, size_t n, const char *text, const char *end)
{
    size_t i = 0;
    while (text < end && i < n && next_point(&text) == points[i])
        i++;
    return text == end && i == n;
}

/* ------------------------------------------------------------------- text */

bool tnf_nfc(const char *text, size_t n)
{
    const char *end = text + n;
    uint32_t points[MAX_PIECES * TNF_NFC_LONGEST];
    size_t count = 0;
    uint8_t before = 0;
    bool sure = true;
    for (const char *p = text; p < end;) {
        uint32_t c = next_point(&p);
        if (c < 0x300) {
            before = 0;
            continue;
        }
        uint8_t class = class_of(c);
        if ((class && before > class) || among_ranges(never, COUNT(never), c))
            return false;
        before = class;
        sure = sure && !among_ranges(maybe, COUNT(maybe), c);
    }
    if (sure)
        return true;
    if (n > TNF_NFC_LONGEST)
        return false;
    for (const char *p = text; p < end;)
        count += decompose_point(next_point(&p), points + count);
    order_marks(points, count);
    return same_text(points, compose_text(points, count), text, end);
}
