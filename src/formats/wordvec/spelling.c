/* SPDX-License-Identifier: MIT */
/* The spelling of a text as attributes, so that the writer can reproduce it. Each is set only if
 * the file differs from the usual spelling.
 *
 *   text.separator       "tab"       fields are separated by TAB, not by a space
 *   text.newline         "crlf"      lines end in CR LF, not in LF
 *   text.trailing_blank  true        a separator follows the last number (fastText's .vec)
 *   text.final_newline   false       the last line has no end
 *   text.numbers         "python"    1.0 and 1e-05, not 1 and 0.00001
 *                        "c"         1 and 1e-05, as fastText and floret write
 */
#include "formats/wordvec/wordvec.h"

static tnf_status set_flag(tnf_reader *r, const char *key, bool value, tnf_error *e)
{
    return tnf_set_attr(r, key, (tnf_value) { .kind = TNF_BOOL, .as.b = value }, e);
}

static const char *const numbers[] = { "plain", "python", "c" };

/* If the first lines are ambiguous, a separator after the last number indicates fastText. */
static wv_numbers numbers_of(const wv_spelling *s)
{
    if (s->trailing && s->may_be >> WV_C & 1)
        return WV_C;
    for (unsigned how = 0; how < WV_NUMBERS; how++)
        if (s->may_be >> how & 1)
            return (wv_numbers)how;
    return WV_PLAIN;
}

tnf_status tnf_wv_spelling_set(tnf_reader *r, const wv_spelling *s, tnf_error *e)
{
    if (s->separator == '\t')
        TNF_TRY(tnf_set_attr(r, "text.separator", tnf_value_string("tab"), e));
    if (s->crlf)
        TNF_TRY(tnf_set_attr(r, "text.newline", tnf_value_string("crlf"), e));
    if (numbers_of(s) != WV_PLAIN)
        TNF_TRY(tnf_set_attr(r, "text.numbers", tnf_value_string(numbers[numbers_of(s)]), e));
    if (s->trailing)
        TNF_TRY(set_flag(r, "text.trailing_blank", true, e));
    return s->cut ? set_flag(r, "text.final_newline", false, e) : TNF_OK;
}

static bool attr_is(const tnf_value *attrs, const char *key, const char *text)
{
    return tnf_value_is(tnf_value_get(attrs, key), text);
}

static bool is_flag(const tnf_value *attrs, const char *key, bool value)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    return v && v->kind == TNF_BOOL && v->as.b == value;
}

wv_spelling tnf_wv_spelling_get(const tnf_catalog *c)
{
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    return (wv_spelling) { .separator = attr_is(&attrs, "text.separator", "tab") ? '\t' : ' ',
                           .numbers = attr_is(&attrs, "text.numbers", numbers[WV_PYTHON])
                                          ? WV_PYTHON
                                      : attr_is(&attrs, "text.numbers", numbers[WV_C]) ? WV_C
                                                                                       : WV_PLAIN,
                           .crlf = attr_is(&attrs, "text.newline", "crlf"),
                           .trailing = is_flag(&attrs, "text.trailing_blank", true),
                           .cut = is_flag(&attrs, "text.final_newline", false) };
}
