/* SPDX-License-Identifier: MIT */
/* Several points are deleted at once by a note after '$', which other readers ignore:
 *
 *   … │ $ │ u64 offset[n], ascending │ u64 n │ u64 flags │ u64 check │ "VSdelete" │ end of file
 *
 * check is the XXH3-64 of the place of '$' (u64) and of everything from offset[0] to flags. Once
 * the note is complete, its points count as deleted. Then their bytes are changed, and finally the
 * note is removed. A crash in between leaves a note: readers treat the points as blanks, and the
 * next writer finishes the deletion. An incomplete note is ignored, like any bytes after '$'.
 */
#ifndef TNF_FORMATS_VS_NOTE_H
#define TNF_FORMATS_VS_NOTE_H

#include "formats/vs/chain.h"

#define TNF_VS_NOTE  32u /* size of the fields after the offsets */
#define TNF_VS_SHRED 1u  /* flags: the old bytes must be overwritten, too */

/* Appends the bytes after the '$' at `end`; offsets must be strictly ascending. */
tnf_status tnf_vs_note_put(tnf_buf *b, uint64_t end, const uint64_t *offsets, size_t n,
                           uint64_t flags, tnf_error *e);
/* Looks for a complete note at the end of the file; its points then appear as blanks in the chain.
 * TNF_ELIMIT if its list has more than `most` bytes. */
tnf_status tnf_vs_note_read(tnf_vs_chain *c, uint64_t most, tnf_error *e);
void tnf_vs_note_forget(tnf_vs_chain *c);
bool tnf_vs_noted(const tnf_vs_note *note, uint64_t offset);

#endif
