/* SPDX-License-Identifier: MIT */
/* Characters that people cannot see, or that change how other characters look. Messages, tables,
 * pages and JSON all use this one list, so a name from a file cannot mislead a person who reads
 * it. */
#include <tenfold/types.h>

typedef struct span {
    uint32_t first, last;
} span;

/* In ascending order. Variation selectors (U+FE00 to FE0F) are not included: they belong to the
 * character before them, and emoji use them often. */
static const span hidden[] = {
    { 0x0000, 0x001f },   /* C0: a terminal obeys them */
    { 0x007f, 0x009f },   /* DEL and C1, likewise */
    { 0x00ad, 0x00ad },   /* the soft hyphen, mostly invisible */
    { 0x034f, 0x034f },   /* a joiner that joins nothing */
    { 0x061c, 0x061c },   /* the Arabic letter mark: reverses the direction of text */
    { 0x115f, 0x1160 },   /* fillers of Hangul */
    { 0x17b4, 0x17b5 },   /* vowels of Khmer that are not written */
    { 0x180b, 0x180f },   /* selectors of Mongolian, and its vowel separator */
    { 0x200b, 0x200f },   /* zero width; marks of direction */
    { 0x2028, 0x202e },   /* ends of lines and paragraphs; embeddings and overrides of direction */
    { 0x2060, 0x206f },   /* word joiner, invisible operators, isolates of direction */
    { 0x3164, 0x3164 },   /* another filler of Hangul */
    { 0xfeff, 0xfeff },   /* the byte order mark */
    { 0xffa0, 0xffa0 },   /* half of a filler */
    { 0xfff0, 0xfffb },   /* notes between lines */
    { 0xfffe, 0xffff },   /* not characters */
    { 0x1bca0, 0x1bca3 }, /* controls of shorthand */
    { 0x1d173, 0x1d17a }, /* of music */
    { 0xe0000, 0xe0fff }, /* tags: invisible letters; selectors */
};

bool tnf_must_escape(uint32_t c)
{
    size_t low = 0, high = sizeof hidden / sizeof *hidden;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c > hidden[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof hidden / sizeof *hidden && c >= hidden[low].first;
}
