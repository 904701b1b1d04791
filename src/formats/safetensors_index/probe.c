/* SPDX-License-Identifier: MIT */
/* Recognises an index by its JSON text, and the format of its shards. */
#include "formats/safetensors_index/index.h"

#include <string.h>

static size_t skip_space(const tnf_probe *p, size_t at)
{
    while (at < p->nhead && memchr(" \t\r\n", p->head[at], 4))
        at++;
    return at;
}

static bool has_text(const tnf_probe *p, size_t at, const char *text)
{
    size_t n = strlen(text);
    return p->nhead - at >= n && memcmp(p->head + at, text, n) == 0;
}

/* Does `"key" : {` occur in the head at `at` or later? */
static bool has_object(const tnf_probe *p, size_t at, const char *key)
{
    for (; at < p->nhead; at++) {
        if (p->head[at] != '"' || !has_text(p, at, key))
            continue;
        size_t colon = skip_space(p, at + strlen(key));
        if (colon < p->nhead && p->head[colon] == ':' && has_text(p, skip_space(p, colon + 1), "{"))
            return true;
    }
    return false;
}

static int probe_index(const tnf_probe *p)
{
    bool named = strcmp(p->ext, "json") == 0;
    size_t at = skip_space(p, 0);
    if (at >= p->nhead || p->head[at] != '{')
        return TNF_PROBE_NO;
    if (has_object(p, at, "\"weight_map\""))
        return named ? TNF_PROBE_STRUCTURE : TNF_PROBE_PLAUSIBLE;
    /* The metadata may be longer than the head seen here. */
    bool metadata = has_text(p, skip_space(p, at + 1), "\"metadata\"");
    return named && metadata && p->size > p->nhead ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

enum shards { SAFETENSORS, PYTORCH, FLAX };

/* Names of PyTorch's shards end in .bin, .pt or .pth, those of Flax in .msgpack. */
static enum shards shards_of(const tnf_probe *p)
{
    if (tnf_head_holds(p, ".safetensors\""))
        return SAFETENSORS;
    if (tnf_head_holds(p, ".bin\"") || tnf_head_holds(p, ".pt\"") || tnf_head_holds(p, ".pth\""))
        return PYTORCH;
    return tnf_head_holds(p, ".msgpack\"") ? FLAX : SAFETENSORS;
}

static int probe_shards(const tnf_probe *p, enum shards wanted)
{
    int sure = probe_index(p);
    return sure != TNF_PROBE_NO && shards_of(p) == wanted ? sure : TNF_PROBE_NO;
}

int tnf_probe_safetensors_index(const tnf_probe *p)
{
    return probe_shards(p, SAFETENSORS);
}

int tnf_probe_pytorch_index(const tnf_probe *p)
{
    return probe_shards(p, PYTORCH);
}

int tnf_probe_flax_index(const tnf_probe *p)
{
    return probe_shards(p, FLAX);
}
