/* SPDX-License-Identifier: MIT */
/* The results of a part for some leaves of a tensor, as text: words of 16 hex digits, so that
 * floats are restored exactly.
 *
 *   sums   for each node of a pairing: its first leaf, its level, the words of its result
 */
#include "base/hex.h"
#include "job/rows.h"

#include <inttypes.h>
#include <string.h>

#define RESULT_MAX 32u /* words */

void tnf_hex_word_put(tnf_buf *b, uint64_t word)
{
    tnf_buf_printf(b, "%016" PRIx64, word);
}

void tnf_hex_words_put(tnf_buf *b, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)from + i * sizeof word, sizeof word);
        tnf_hex_word_put(b, word);
    }
}

bool tnf_hex_words_take(void *out, tnf_str hex, size_t at, size_t n)
{
    if (at > hex.n / TNF_WORD_DIGITS || n > hex.n / TNF_WORD_DIGITS - at)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t word = 0;
        for (size_t k = 0; k < TNF_WORD_DIGITS; k++) {
            int digit = tnf_hex_digit(hex.p[(at + i) * TNF_WORD_DIGITS + k]);
            if (digit < 0)
                return false;
            word = word << 4 | (uint64_t)digit;
        }
        memcpy((uint8_t *)out + i * sizeof word, &word, sizeof word);
    }
    return true;
}

void tnf_sums_put(tnf_buf *b, const tnf_pairing *sums)
{
    for (size_t i = 0; i < sums->n; i++) {
        tnf_hex_word_put(b, sums->nodes[i].first);
        tnf_hex_word_put(b, sums->nodes[i].level);
        tnf_hex_words_put(b, sums->results + i * sums->size, sums->size / sizeof(uint64_t));
    }
}

bool tnf_sums_take(tnf_pairing *sums, tnf_str hex)
{
    size_t words = hex.n / TNF_WORD_DIGITS, result = sums->size / sizeof(uint64_t);
    uint64_t node[2], found[RESULT_MAX];
    if (hex.n % TNF_WORD_DIGITS || words % (2 + result) || words == 0 || result > RESULT_MAX)
        return false;
    for (size_t at = 0; at < words; at += 2 + result)
        if (!tnf_hex_words_take(node, hex, at, 2) ||
            !tnf_hex_words_take(found, hex, at + 2, result) || node[1] >= TNF_PAIRING_LEVELS ||
            (sums->n == 0 && node[0] != 0) ||
            !tnf_pairing_add(sums, (tnf_pairing_node) { node[0], (unsigned)node[1] }, found))
            return false;
    return true;
}
