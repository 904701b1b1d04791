/* SPDX-License-Identifier: MIT */
/* Text of elements whose type says less than numpy.descr:
 *
 *   |S5        u8, last axis 5     bytes of a text, without trailing NULs
 *   <U5        u32, last axis 5    the same with code points
 *   <M8[25us]  i64                 multiples of 25 us since 1970: 2024-05-17T12:00:00.000025
 *   <m8[h]     i64                 hours: PT5H
 *
 * The attribute may come from anywhere, so it is used only if it matches the tensor.
 */
#include "formats/numpy/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOT_ONE   SIZE_MAX
#define MOST_DAYS ((int64_t)1 << 56) /* limit for dates, which avoids overflows */
#define DAY       86400

/* "[25us]": the multiplier and the unit. */
typedef struct np_unit {
    uint64_t many;
    unsigned kind; /* position in `units` */
} np_unit;

enum { UNIT_Y, UNIT_M, UNIT_W, UNIT_D, UNIT_H, UNIT_MIN, UNIT_S, UNIT_MS };

static const char *const units[] = { "Y",  "M",  "W",  "D",  "h",  "m", "s",
                                     "ms", "us", "ns", "ps", "fs", "as" };

enum { UNITS = sizeof units / sizeof *units };

/* ------------------------------------------------------------------- words */

static size_t put_character(char out[4], uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd; /* not a character */
    return tnf_utf8_put(out, c);
}

/* Copies the text like snprintf(). */
static size_t give_word(bool points, const uint8_t *p, size_t n, char *out, size_t room)
{
    size_t width = points ? 4 : 1, chars = n / width, length = 0;
    while (chars > 0 && (points ? tnf_le32(p + 4 * (chars - 1)) : p[chars - 1]) == 0)
        chars--;
    for (size_t i = 0; i < chars; i++) {
        char one[4] = { (char)p[i] };
        size_t more = points ? put_character(one, tnf_le32(p + 4 * i)) : 1;
        for (size_t k = 0; k < more; k++, length++)
            if (length + 1 < room)
                out[length] = one[k];
    }
    if (room)
        out[length < room ? length : room - 1] = 0;
    return length;
}

/* ------------------------------------------------------------------- times */

static bool read_unit(np_unit *out, const char *text, size_t n)
{
    if (n < 3 || text[0] != '[' || text[n - 1] != ']')
        return false;
    const char *unit = text + 1, *end = text + n - 1;
    uint64_t many = tnf_take_digits(&unit, end);
    out->many = unit > text + 1 ? many : 1;
    for (out->kind = 0; out->kind < UNITS && out->many <= INT64_MAX; out->kind++)
        if (tnf_str_is((tnf_str) { unit, (size_t)(end - unit) }, units[out->kind]))
            return out->many > 0;
    return false;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a % b + (a % b < 0 ? b : 0);
}

typedef struct np_date {
    int64_t year;
    int month, day;
} np_date;

/* Years begin in March here, so the leap day comes last; 400 of them always have 146,097 days. */
static np_date date_of(int64_t days)
{
    np_date d;
    days += 719468; /* counted from 0000-03-01 */
    int64_t era = floor_div(days, 146097), of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    d.day = (int)(of_year - (153 * month + 2) / 5 + 1);
    d.month = (int)(month < 10 ? month + 3 : month - 9);
    d.year = year + era * 400 + (d.month <= 2);
    return d;
}

static int64_t power_of_1000(unsigned n)
{
    int64_t p = 1;
    while (n-- > 0)
        p *= 1000;
    return p;
}

/* Splits v units smaller than a day into days and a rest in the unit. */
static int64_t split_days(int64_t v, unsigned kind, int64_t *rest, int64_t *per_second)
{
    int64_t per_day = DAY, seconds, of_day;
    *per_second = 1;
    *rest = 0;
    if (kind == UNIT_H || kind == UNIT_MIN) {
        per_day = kind == UNIT_H ? 24 : 1440;
        seconds = kind == UNIT_H ? 3600 : 60;
        int64_t days = floor_div(v, per_day);
        *rest = floor_mod(v, per_day) * seconds;
        return days;
    }
    *per_second = power_of_1000(kind - UNIT_S);
    seconds = floor_div(v, *per_second);
    of_day = floor_div(seconds, per_day);
    *rest = floor_mod(seconds, per_day);
    return of_day;
}

static int put_date(char *out, size_t room, np_date d, unsigned kind)
{
    const char *minus = d.year < 0 ? "-" : "";
    uint64_t year = d.year < 0 ? 0 - (uint64_t)d.year : (uint64_t)d.year;
    if (kind == UNIT_Y)
        return snprintf(out, room, "%s%04" PRIu64, minus, year);
    if (kind == UNIT_M)
        return snprintf(out, room, "%s%04" PRIu64 "-%02d", minus, year, d.month);
    return snprintf(out, room, "%s%04" PRIu64 "-%02d-%02d", minus, year, d.month, d.day);
}

/* For units below a day. */
static int put_moment(char *out, size_t room, int64_t v, unsigned kind)
{
    int64_t rest, per_second;
    int64_t days = split_days(v, kind, &rest, &per_second);
    int n = put_date(out, room, date_of(days), UNIT_D);
    int h = (int)(rest / 3600), m = (int)(rest / 60 % 60), s = (int)(rest % 60);
    char *to = out + n;
    size_t left = room - (size_t)n;
    if (kind == UNIT_H)
        return n + snprintf(to, left, "T%02d", h);
    if (kind == UNIT_MIN)
        return n + snprintf(to, left, "T%02d:%02d", h, m);
    n += snprintf(to, left, "T%02d:%02d:%02d", h, m, s);
    if (kind == UNIT_S)
        return n;
    int64_t part = floor_mod(v, per_second);
    return n + snprintf(out + n, room - (size_t)n, ".%0*" PRId64, 3 * (int)(kind - UNIT_S), part);
}

static int put_time(char *out, size_t room, int64_t v, unsigned kind)
{
    np_date d = { 0, 1, 1 };
    if (kind >= UNIT_H)
        return put_moment(out, room, v, kind);
    if (kind >= UNIT_W) {
        d = date_of(kind == UNIT_W ? 7 * v : v);
    } else {
        d.year = 1970 + (kind == UNIT_M ? floor_div(v, 12) : v);
        d.month = kind == UNIT_M ? (int)floor_mod(v, 12) + 1 : 1;
    }
    return put_date(out, room, d, kind);
}

/* Durations of ISO 8601; units below a second become fractions of seconds. */
static int put_duration(char *out, size_t room, int64_t v, unsigned kind)
{
    static const char *const letters[] = { "Y", "M", "W", "D", "H", "M", "S" };
    const char *minus = v < 0 ? "-" : "", *time = kind >= UNIT_H ? "T" : "";
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (kind <= UNIT_S)
        return snprintf(out, room, "%sP%s%" PRIu64 "%s", minus, time, u, letters[kind]);
    uint64_t second = (uint64_t)power_of_1000(kind - UNIT_S);
    return snprintf(out, room, "%sPT%" PRIu64 ".%0*" PRIu64 "S", minus, u / second,
                    3 * (int)(kind - UNIT_S), u % second);
}

static int put_i64(char *out, size_t room, bool moment, int64_t v, const np_unit *unit)
{
    int64_t all;
    if (v == INT64_MIN)
        return snprintf(out, room, "NaT");
    if (!unit) /* generic: a number without a unit */
        return snprintf(out, room, "%" PRId64, v);
    bool fits = !__builtin_mul_overflow(v, (int64_t)unit->many, &all);
    bool large = unit->kind < UNIT_H && fits && (all > MOST_DAYS || all < -MOST_DAYS);
    if (fits && !(moment && large))
        return moment ? put_time(out, room, all, unit->kind)
                      : put_duration(out, room, all, unit->kind);
    return snprintf(out, room, "%" PRId64 " * %" PRIu64 " %s", v, unit->many, units[unit->kind]);
}

/* ---------------------------------------------------------------- elements */

/* "5" of "|S5": does the last axis of the tensor have this length? */
static bool has_width(const tnf_object *o, const char *digits, size_t n)
{
    uint64_t width = 0;
    for (size_t i = 0; i < n; i++) {
        if (digits[i] < '0' || digits[i] > '9' || width > UINT32_MAX)
            return false;
        width = 10 * width + (uint64_t)(digits[i] - '0');
    }
    return n > 0 && o->rank > 0 && o->shape[o->rank - 1] == width;
}

size_t tnf_np_element_text(const tnf_object *o, uint32_t *axes, const void *bytes, size_t n,
                           char *out, size_t room)
{
    const tnf_value *v = tnf_value_get(o->attrs, NP_DESCR);
    if (!v || v->kind != TNF_STRING || v->n < 3 || o->nparts != 1)
        return NOT_ONE;
    const char *text = v->as.s;
    const tnf_type *type = o->parts->type;
    bool points = text[1] == 'U', word = points || text[1] == 'S';
    *axes = word;
    if (word) {
        if (type != tnf_type_of(points ? TNF_U32 : TNF_U8) || !has_width(o, text + 2, v->n - 2))
            return NOT_ONE;
        return bytes ? give_word(points, bytes, n, out, room) : 0;
    }
    np_unit unit;
    bool moment = text[1] == 'M', told = v->n > 3;
    if ((!moment && text[1] != 'm') || text[2] != '8' || type != tnf_type_of(TNF_I64) ||
        (told && !read_unit(&unit, text + 3, v->n - 3)))
        return NOT_ONE;
    char line[80];
    if (!bytes || n != 8)
        return bytes ? NOT_ONE : 0;
    int length = put_i64(line, sizeof line, moment, (int64_t)tnf_le64(bytes), told ? &unit : NULL);
    return (size_t)snprintf(out, room, "%.*s", length, line);
}
