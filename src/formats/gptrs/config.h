/* SPDX-License-Identifier: MIT */
/* The JSON document in a gpt.rs checkpoint that describes the model.
 *
 *   {"kind": string, "config": any, "runtime": {…}}        other members are ignored
 *   {"vocab_size": …, "dropout": …}                        old form: a bare GPT config
 *
 * The document is kept byte for byte. Two things do not belong to it: spaces at its end, which a
 * writer may use to align the data, and the last member "tenfold.metadata", where Tenfold stores
 * text for which gpt.rs has no place.
 */
#ifndef TNF_FORMATS_GPTRS_CONFIG_H
#define TNF_FORMATS_GPTRS_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/types.h>

/* A property of a config that gpt.rs refuses, or that is only unusual. */
typedef struct tnf_gptrs_finding {
    uint64_t offset;
    bool unusual;
    char message[160];
} tnf_gptrs_finding;

typedef struct tnf_gptrs_config {
    tnf_str text;            /* the document: borrowed, or in scratch */
    tnf_str kind;            /* "gpt" for a bare GPT config; p is NULL: none */
    tnf_str config, runtime; /* texts of these members; p is NULL: none */
    bool untagged;
    bool placeholder; /* the config of a writer that has none */
    tnf_str metadata; /* the object of strings under "tenfold.metadata", p is NULL: none */
    uint64_t metadata_at;
    tnf_gptrs_finding findings[8];
    size_t nfindings;
} tnf_gptrs_config;

/* Fails only if the text is not JSON; other faults are findings. `base` is its file offset. */
tnf_status tnf_gptrs_config_parse(tnf_gptrs_config *out, const char *text, size_t n, uint64_t base,
                                  tnf_arena *scratch, unsigned depth, tnf_error *e);

/* The inputs of a config to be written. */
typedef struct tnf_gptrs_recipe {
    tnf_str source;         /* a document to keep; p is NULL: none */
    const char *kind;       /* replaces the kind; "" keeps that of the source */
    const char *config;     /* JSON that replaces the config; "" keeps that of the source */
    const tnf_member *text; /* pairs for "tenfold.metadata" */
    size_t ntext;
} tnf_gptrs_recipe;

/* Appends the document. TNF_EINVAL if an input is not JSON. */
tnf_status tnf_gptrs_config_put(tnf_buf *b, const tnf_gptrs_recipe *recipe, tnf_arena *scratch,
                                tnf_error *e);

#endif
