/* SPDX-License-Identifier: MIT */
/* How a text is spelled, as attributes: what is read is written again so. Each is set only where
 * the file is not as most are.
 *
 *   text.separator       "tab"       fields are separated by TAB, not by a space
 *   text.newline         "crlf"      lines end in CR LF, not in LF
 *   text.trailing_blank  true        a separator stands behind the last number (fastText's .vec)
 *   text.final_newline   false       the last line has no end
 *   text.numbers         "python"    1.0 and 1e-05, not 1 and 0.00001
 */
#include "formats/wordvec/wordvec.h"

#include <string.h>

static tnf_status set_flag(tnf_reader *r, const char *key, bool value, tnf_error *e)
{
    return tnf_set_attr(r, key, (tnf_value) { .kind = TNF_BOOL, .as.b = value }, e);
}

tnf_status wv_spelling_set(tnf_reader *r, const wv_spelling *s, tnf_error *e)
{
    if (s->separator == '\t')
        TNF_TRY(tnf_set_attr(r, "text.separator", tnf_value_string("tab"), e));
    if (s->crlf)
        TNF_TRY(tnf_set_attr(r, "text.newline", tnf_value_string("crlf"), e));
    if (s->python)
        TNF_TRY(tnf_set_attr(r, "text.numbers", tnf_value_string("python"), e));
    if (s->trailing)
        TNF_TRY(set_flag(r, "text.trailing_blank", true, e));
    return s->cut ? set_flag(r, "text.final_newline", false, e) : TNF_OK;
}

static bool says(const tnf_value *attrs, const char *key, const char *text)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    return v && v->kind == TNF_STRING && v->n == strlen(text) && memcmp(v->as.s, text, v->n) == 0;
}

static bool is_flag(const tnf_value *attrs, const char *key, bool value)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    return v && v->kind == TNF_BOOL && v->as.b == value;
}

wv_spelling wv_spelling_get(const tnf_catalog *c)
{
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    return (wv_spelling) { .separator = says(&attrs, "text.separator", "tab") ? '\t' : ' ',
                           .python = says(&attrs, "text.numbers", "python"),
                           .crlf = says(&attrs, "text.newline", "crlf"),
                           .trailing = is_flag(&attrs, "text.trailing_blank", true),
                           .cut = is_flag(&attrs, "text.final_newline", false) };
}
