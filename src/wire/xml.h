/* SPDX-License-Identifier: MIT */
/* A minimal XML reader for the answers of object stores: elements and text, without attributes or
 * DTD. It lists elements by name; the caller keeps track of nesting.
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
    bool bad;   /* not well-formed, or not supported (DTD): reading ended there */
    bool empty; /* the last tag was <name/>: its closing tag follows */
    tnf_str name;
} tnf_xml;

void tnf_xml_init(tnf_xml *x, const char *text, size_t n);
/* The next piece: a name without its prefix, or text with its escapes. */
tnf_xml_kind tnf_xml_next(tnf_xml *x, tnf_str *out);

/* The text of the first element of that name; false: there is none. */
bool tnf_xml_text(const char *text, size_t n, const char *name, tnf_str *out);
/* Decodes the escapes of a text into `out`: &lt; &gt; &amp; &quot; &apos; &#N; &#xN;. Returns the
 * length, or SIZE_MAX if there are other escapes or too little room. */
size_t tnf_xml_unescape(char *out, size_t room, tnf_str text);

#endif
