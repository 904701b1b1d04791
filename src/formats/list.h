/* SPDX-License-Identifier: MIT */
/* Every format, one line each: the only registration. X(gptrs_archive) stands for the descriptor
 * tnf_format_gptrs_archive in gptrs/archive.c. Within a family the newest comes first. */
X(gptrs_checkpoint)
X(gptrs_archive)
X(safetensors)
X(safetensors_index)
X(ztensor2)
X(ztensor1)
X(ztensor0)
X(primitiv)
X(vs)
X(finalfusion)
X(fasttext)
X(word2vec)
X(textdims)
X(text)
X(floret)
X(npy)
