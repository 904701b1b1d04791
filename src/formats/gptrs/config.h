/* SPDX-License-Identifier: MIT */
/* The JSON document in a gpt.rs checkpoint that says what the tensors are for.
 *
 *   {"kind": string, "config": any, "runtime": {…}}        other members are ignored
 *   {"vocab_size": …, "dropout": …}                        old: a bare GPT config, untagged
 *
 * It is kept byte for byte. Two things are no part of it: spaces at its end, which a writer may use
 * to align the data, and the last member "tenfold.metadata", where Tenfold keeps text that gpt.rs
 * has no place for.
 */
#ifndef TNF_FORMATS_GPTRS_CONFIG_H
#define TNF_FORMATS_GPTRS_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/types.h>

/* Something about a config that gpt.rs refuses, or that is merely odd. */
typedef struct tnf_gptrs_finding {
    uint64_t offset;
    bool odd;
    char message[160];
} tnf_gptrs_finding;

typedef struct tnf_gptrs_config {
    tnf_str text;            /* the document: borrowed, or in scratch */
    tnf_str kind;            /* "gpt" if it is untagged; p is NULL if there is none */
    tnf_str config, runtime; /* texts of these members; p is NULL where there is none */
    bool untagged;
    bool placeholder; /* what a writer puts there if it knows no config */
    tnf_str metadata; /* the object of strings under "tenfold.metadata", or p is NULL */
    uint64_t metadata_at;
    tnf_gptrs_finding findings[8];
    size_t nfindings;
} tnf_gptrs_config;

/* Fails only if it is no JSON; all else is a finding. `base` is its position in the file. */
tnf_status tnf_gptrs_config_parse(tnf_gptrs_config *out, const char *text, size_t n, uint64_t base,
                                  tnf_arena *scratch, unsigned depth, tnf_error *e);

/* What a config to write is made of. */
typedef struct tnf_gptrs_recipe {
    tnf_str source;         /* a document to keep; p is NULL if there is none */
    const char *kind;       /* to set instead; "" keeps the one of the source */
    const char *config;     /* JSON to set instead; likewise */
    const tnf_member *text; /* pairs for "tenfold.metadata" */
    size_t ntext;
} tnf_gptrs_recipe;

/* Appends the document. TNF_EINVAL if what it is made of is no JSON. */
tnf_status tnf_gptrs_config_put(tnf_buf *b, const tnf_gptrs_recipe *recipe, tnf_arena *scratch,
                                tnf_error *e);

#endif
