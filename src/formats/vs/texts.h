/* SPDX-License-Identifier: MIT */
/* The vectors of spaces of STRING and JSON: one text after the other, each after its length.
 *
 *   vector  (varuint32 length  bytes[length]) × elements       STRING: text; JSON: MessagePack, or
 * none
 *
 * That is the document's type JSON. For STRING the document says nothing; this is the same. A file
 * with any other vector keeps its blocks as they are.
 */
#ifndef TNF_FORMATS_VS_TEXTS_H
#define TNF_FORMATS_VS_TEXTS_H

#include "formats/vs/chain.h"

#define TNF_VS_TEXTS_MOST                                                                          \
    ((uint64_t)16 << 20) /* bytes of a vector: pieces of it are decoded alone */

/* All vectors are decoded when a file is opened, so they must not grow much: may so many bytes be
 * stored for a vector of texts? A writer stores it raw if not. */
bool tnf_vs_texts_fit(uint64_t stored, uint64_t decoded, uint64_t texts);

static inline bool tnf_vs_has_texts(const tnf_vs_meta *m)
{
    return m->resolution == TNF_VS_STRING || m->resolution == TNF_VS_JSON;
}

/* Sets the cursor to the decoded vector of a point: its stored bytes, or the spare buffer. */
tnf_status tnf_vs_texts_unpack(tnf_buf *spare, const tnf_vs_point *p, const void *stored,
                               tnf_cur *out, tnf_error *e);
/* The same for a point of a file. */
tnf_status tnf_vs_texts(tnf_vs_chain *c, const tnf_vs_point *p, tnf_buf *spare, tnf_cur *out,
                        tnf_error *e);
/* The next text. A text of JSON must be one MessagePack value. */
tnf_status tnf_vs_text_next(tnf_cur *c, const tnf_vs_meta *m, bool msb, tnf_str *out, tnf_error *e);

#endif
