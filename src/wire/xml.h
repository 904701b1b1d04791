/* SPDX-License-Identifier: MIT */
/* As much XML as object stores answer: elements and text, no attributes that matter, no DTD. A flat
 * look for elements by name; nesting is the caller's to know.
 *
 *     <Error><Code>NoSuchKey</Code>…</Error>
 */
#ifndef TNF_WIRE_XML_H
#define TNF_WIRE_XML_H

#include <tenfold/types.h>

/* One step: an opening tag, a closing tag, or text. */
typedef enum tnf_xml_kind { TNF_XML_END, TNF_XML_OPEN, TNF_XML_CLOSE, TNF_XML_TEXT } tnf_xml_kind;

typedef struct tnf_xml {
    const char *p, *end;
    bool bad;   /* not well-formed, or of a kind that is not read (DTD): it ended there */
    bool empty; /* the last tag was <name/>: its closing follows */
    tnf_str name;
} tnf_xml;

void tnf_xml_init(tnf_xml *x, const char *text, size_t n);
/* The next piece: a name without its prefix, or text as it stands (escaped). */
tnf_xml_kind tnf_xml_next(tnf_xml *x, tnf_str *out);

/* The text of the first element of that name; false: there is none. */
bool tnf_xml_text(const char *text, size_t n, const char *name, tnf_str *out);
/* Puts text without its escapes into `out`: &lt; &gt; &amp; &quot; &apos; &#N; &#xN;. The length,
 * or SIZE_MAX if it has others or no room. */
size_t tnf_xml_unescape(char *out, size_t room, tnf_str text);

#endif
