/* SPDX-License-Identifier: MIT */
/* Several points are deleted at once by a note after '$', which other readers ignore:
 *
 *   … │ $ │ u64 offset[n], ascending │ u64 n │ u64 flags │ u64 check │ "VSdelete" │ end of file
 *
 * check is the XXH3-64 of the place of '$' (u64) and of all from offset[0] to flags. When the note
 * is complete, its points count as deleted; then their bytes are changed, and then the note is
 * removed. A crash in between leaves a note: readers treat the points as blanks, and the next
 * writer finishes the work. An incomplete note is ignored, like any bytes after '$'.
 */
#ifndef TNF_FORMATS_VS_NOTE_H
#define TNF_FORMATS_VS_NOTE_H

#include "formats/vs/chain.h"

#define TNF_VS_NOTE  32u /* bytes behind the offsets */
#define TNF_VS_SHRED 1u  /* flags: what was there is to be overwritten too */

/* The bytes behind the '$' that stands at `end`; offsets strictly ascend. */
tnf_status tnf_vs_note_put(tnf_buf *b, uint64_t end, const uint64_t *offsets, size_t n,
                           uint64_t flags, tnf_error *e);
/* Looks for a whole one at the end of the file; then the chain shows its points as blanks.
 * TNF_ELIMIT if its list has more than `most` bytes. */
tnf_status tnf_vs_note_read(tnf_vs_chain *c, uint64_t most, tnf_error *e);
void tnf_vs_note_forget(tnf_vs_chain *c);
bool tnf_vs_noted(const tnf_vs_note *note, uint64_t offset);

#endif
