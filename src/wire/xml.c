/* SPDX-License-Identifier: MIT */
#include "wire/xml.h"

#include "base/hex.h"
#include "base/str.h"
#include "base/utf8.h"

#include <string.h>

void tnf_xml_init(tnf_xml *x, const char *text, size_t n)
{
    *x = (tnf_xml) { .p = text, .end = text + n };
}

static const char *find_text(const tnf_xml *x, const char *what)
{
    size_t n = strlen(what);
    for (const char *p = x->p; (size_t)(x->end - p) >= n; p++) {
        p = memchr(p, what[0], (size_t)(x->end - p));
        if (!p || (size_t)(x->end - p) < n)
            return NULL;
        if (memcmp(p, what, n) == 0)
            return p;
    }
    return NULL;
}

static tnf_xml_kind fail_there(tnf_xml *x)
{
    x->bad = true;
    x->p = x->end;
    return TNF_XML_END;
}

static bool begins_with(const tnf_xml *x, const char *what)
{
    size_t n = strlen(what);
    return (size_t)(x->end - x->p) >= n && memcmp(x->p, what, n) == 0;
}

/* Skips <?…?> and <!--…-->; false: there is none, or it has no end. */
static bool skip_aside(tnf_xml *x)
{
    bool comment = begins_with(x, "<!--");
    if (!comment && !begins_with(x, "<?"))
        return false;
    const char *close = comment ? "-->" : "?>", *end = find_text(x, close);
    if (!end) {
        (void)fail_there(x);
        return true;
    }
    x->p = end + strlen(close);
    return true;
}

/* The name without its prefix and the text after it. */
static tnf_str plain_name(const char *p, const char *end)
{
    const char *stop = p;
    while (stop < end && !strchr(" \t\r\n/", *stop))
        stop++;
    for (const char *q = p; q < stop; q++)
        if (*q == ':')
            p = q + 1;
    return (tnf_str) { p, (size_t)(stop - p) };
}

static tnf_xml_kind take_tag(tnf_xml *x, tnf_str *out)
{
    const char *end = memchr(x->p, '>', (size_t)(x->end - x->p));
    bool closing = begins_with(x, "</");
    if (!end || begins_with(x, "<!"))
        return fail_there(x);
    *out = plain_name(x->p + 1 + closing, end);
    if (out->n == 0)
        return fail_there(x);
    x->empty = !closing && end[-1] == '/';
    x->name = *out;
    x->p = end + 1;
    return closing ? TNF_XML_CLOSE : TNF_XML_OPEN;
}

tnf_xml_kind tnf_xml_next(tnf_xml *x, tnf_str *out)
{
    if (x->empty) {
        x->empty = false;
        *out = x->name;
        return TNF_XML_CLOSE;
    }
    while (x->p < x->end && skip_aside(x))
        ;
    if (x->p >= x->end)
        return TNF_XML_END;
    if (*x->p == '<')
        return take_tag(x, out);
    const char *end = memchr(x->p, '<', (size_t)(x->end - x->p));
    end = end ? end : x->end;
    *out = (tnf_str) { x->p, (size_t)(end - x->p) };
    x->p = end;
    return TNF_XML_TEXT;
}

bool tnf_xml_text(const char *text, size_t n, const char *name, tnf_str *out)
{
    tnf_xml x;
    tnf_str piece;
    tnf_xml_init(&x, text, n);
    for (tnf_xml_kind kind; (kind = tnf_xml_next(&x, &piece)) != TNF_XML_END;) {
        if (kind != TNF_XML_OPEN || !tnf_str_is(piece, name))
            continue;
        *out = (tnf_str) { "", 0 };
        kind = tnf_xml_next(&x, &piece);
        if (kind == TNF_XML_TEXT)
            *out = piece;
        return kind == TNF_XML_TEXT || kind == TNF_XML_CLOSE;
    }
    return false;
}

/* Writes a code point as UTF-8; 0 bytes if it is invalid. */
static size_t put_code(char out[4], uint32_t c)
{
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    return tnf_utf8_put(out, c);
}

static uint32_t number_of(tnf_str s)
{
    bool hex = s.n > 1 && (s.p[0] == 'x' || s.p[0] == 'X');
    uint32_t c = 0;
    for (size_t i = hex; i < s.n; i++) {
        int digit = tnf_hex_digit(s.p[i]);
        if (digit < 0 || (!hex && digit > 9) || c > 0x10ffff)
            return 0;
        c = c * (hex ? 16 : 10) + (uint32_t)digit;
    }
    return s.n > (hex ? 1u : 0u) ? c : 0;
}

/* Decodes the entity between '&' and ';'. */
static size_t put_entity(char out[4], tnf_str s)
{
    static const struct {
        const char *name;
        char c;
    } known[] = { { "lt", '<' }, { "gt", '>' }, { "amp", '&' }, { "quot", '"' }, { "apos", '\'' } };
    if (s.n > 1 && s.p[0] == '#')
        return put_code(out, number_of((tnf_str) { s.p + 1, s.n - 1 }));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tnf_str_is(s, known[i].name)) {
            out[0] = known[i].c;
            return 1;
        }
    return 0;
}

size_t tnf_xml_unescape(char *out, size_t room, tnf_str text)
{
    size_t at = 0;
    for (size_t i = 0; i < text.n;) {
        char put[4] = { text.p[i] };
        size_t n = 1, took = 1;
        if (text.p[i] == '&') {
            const char *end = memchr(text.p + i, ';', text.n - i);
            if (!end)
                return SIZE_MAX;
            took = (size_t)(end + 1 - (text.p + i));
            n = put_entity(put, (tnf_str) { text.p + i + 1, took - 2 });
        }
        if (n == 0 || at + n >= room)
            return SIZE_MAX;
        memcpy(out + at, put, n);
        at += n;
        i += took;
    }
    out[at] = 0;
    return at;
}
