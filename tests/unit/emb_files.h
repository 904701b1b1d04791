/* SPDX-License-Identifier: MIT */
/* Embeddings made by hand: words, rows and attributes, saved in memory and opened again. */
#ifndef TEST_EMB_FILES_H
#define TEST_EMB_FILES_H

#include "../support/little.h"
#include "../support/unit.h"
#include <math.h>
#include <tenfold/emb.h>
#include <unistd.h>

#define TEXT(s) ((tnf_str) { (s), strlen(s) })

/* The contents of a file; fields that are not set are missing in it. */
struct made {
    const char *format; /* NULL: zTensor 2 */
    const char *name;   /* of the matrix; NULL: "embeddings" */
    const char *words;  /* separated by '|' */
    const char *labels; /* the tensor's name; NULL: "vocab" */
    const char *ngrams; /* the same for n-grams */
    const uint64_t *index;
    uint64_t rows, dims;
    const tnf_type *type; /* NULL: f32 */
    const void *values;
    const float *norms;
    const uint8_t *codes; /* quantized instead, m of k */
    uint64_t m, k;
    const float *codebooks, *projection, *row_norms;
    const char *vocab; /* finalfusion.vocab */
    uint64_t min_n, max_n, buckets, hashes, seed;
    const char *bow, *eow;
};

struct opened {
    tnf_sink *sink;
    tnf_file *file;
    tnf_emb *emb;
};

static inline uint64_t split_words(const char *list, uint64_t *offsets, char *bytes)
{
    uint64_t n = 0, at = 0;
    offsets[0] = 0;
    for (const char *p = list;; p++) {
        if (*p && *p != '|') {
            bytes[at++] = *p;
            continue;
        }
        offsets[++n] = at;
        if (!*p)
            return n;
    }
}

static inline tnf_part memory_part(const char *role, tnf_dtype dtype, const void *p, uint64_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_of(dtype),
                        .payload = TNF_MEMORY,
                        .memory = little_bytes(tnf_type_of(dtype), p, n),
                        .stored = n,
                        .nbytes = n };
}

static inline void add_strings(tnf_builder *b, const char *name, const char *list,
                               uint64_t *offsets, char *bytes)
{
    tnf_error e;
    uint64_t n = split_words(list, offsets, bytes);
    tnf_part parts[] = { memory_part("offsets", TNF_U64, offsets, 8 * (n + 1)),
                         memory_part("bytes", TNF_U8, bytes, offsets[n]) };
    tnf_object o = { .name = TEXT(name),
                     .shape = &n,
                     .rank = 1,
                     .layout = tnf_layout_by_id("strings/1"),
                     .parts = parts,
                     .nparts = 2 };
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
}

static inline void add_quantized(tnf_builder *b, const struct made *m, const char *name)
{
    tnf_error e;
    uint64_t shape[] = { m->rows, m->dims };
    uint16_t n = 0;
    tnf_part parts[4];
    parts[n++] = memory_part("codes", TNF_U8, m->codes, m->rows * m->m);
    parts[n++] = memory_part("codebooks", TNF_F32, m->codebooks, 4 * m->k * m->dims);
    if (m->projection)
        parts[n++] = memory_part("projection", TNF_F32, m->projection, 4 * m->dims * m->dims);
    if (m->row_norms)
        parts[n++] = memory_part("norms", TNF_F32, m->row_norms, 4 * m->rows);
    tnf_object o = { .name = TEXT(name),
                     .shape = shape,
                     .rank = 2,
                     .layout = tnf_layout_by_id("pq/1"),
                     .parts = parts,
                     .nparts = n };
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
}

static inline void set_attributes(tnf_builder *b, const struct made *m)
{
    tnf_error e;
    const struct {
        const char *key, *text;
        uint64_t number;
    } all[] = {
        { "finalfusion.vocab", m->vocab, 0 },      { "finalfusion.min_n", NULL, m->min_n },
        { "finalfusion.max_n", NULL, m->max_n },   { "finalfusion.buckets", NULL, m->buckets },
        { "finalfusion.hashes", NULL, m->hashes }, { "finalfusion.seed", NULL, m->seed },
        { "finalfusion.bow", m->bow, 0 },          { "finalfusion.eow", m->eow, 0 }
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tnf_value v = all[i].text ? tnf_value_string(all[i].text) : tnf_value_uint(all[i].number);
        if (all[i].text || all[i].number)
            assert_ok(tnf_builder_set(b, NULL, all[i].key, &v, &e));
    }
}

/* The bytes of a file as described. */
static inline tnf_sink *make_bytes(const struct made *m)
{
    static uint64_t offsets[2][200000];
    static char bytes[2][2000000];
    const char *name = m->name ? m->name : "embeddings";
    uint64_t shape[] = { m->rows, m->dims }, words = 0, grams = 0;
    const tnf_type *type = m->type ? m->type : tnf_type_of(TNF_F32);
    tnf_error e;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = m->format ? m->format : "ztensor2" };
    o.as_is = true; /* rows are saved unchanged */
    assert_ok(tnf_builder_new(&b, NULL, &e));
    if (m->words) {
        add_strings(b, m->labels ? m->labels : "vocab", m->words, offsets[0], bytes[0]);
        words = split_words(m->words, offsets[0], bytes[0]);
    }
    if (m->ngrams) {
        add_strings(b, "ngrams", m->ngrams, offsets[1], bytes[1]);
        grams = split_words(m->ngrams, offsets[1], bytes[1]);
    }
    if (m->index)
        assert_ok(tnf_builder_add(b, "ngrams.index", tnf_type_of(TNF_U64), 1, &grams,
                                  to_little(m->index, 8, grams), &e));
    if (m->codes)
        add_quantized(b, m, name);
    else
        assert_ok(tnf_builder_add(b, name, type, 2, shape,
                                  little_bytes(type, m->values, m->rows * m->dims * type->bits / 8),
                                  &e));
    if (m->norms)
        assert_ok(tnf_builder_add(b, "norms", tnf_type_of(TNF_F32), 1, &words,
                                  to_little(m->norms, 4, words), &e));
    set_attributes(b, m);
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_builder_free(b);
    return sink;
}

static inline void open_bytes(struct opened *x, tnf_str bytes, const tnf_emb_options *options)
{
    tnf_error e;
    tnf_source *source;
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&x->file, source, NULL, &e));
    assert_ok(tnf_emb_open(&x->emb, x->file, options, &e));
}

static inline struct opened open_made(const struct made *m, const tnf_emb_options *options)
{
    struct opened x = { .sink = make_bytes(m) };
    open_bytes(&x, tnf_sink_bytes(x.sink), options);
    return x;
}

/* A file of the collection that is not part of the project; false if the collection is missing. */
static inline bool open_shared(struct opened *x, const char *name)
{
    char path[512];
    tnf_error e;
    *x = (struct opened) { 0 };
    snprintf(path, sizeof path, "%s/fixtures/finalfusion/%s", TNF_SHARED_DIR, name);
    if (access(path, R_OK) != 0)
        return false;
    assert_ok(tnf_open(&x->file, path, NULL, &e));
    assert_ok(tnf_emb_open(&x->emb, x->file, NULL, &e));
    return true;
}

static inline void close_opened(struct opened *x)
{
    tnf_emb_close(x->emb);
    tnf_close(x->file);
    tnf_sink_close(x->sink);
}

static inline void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g is not %.9g within %g", got, expected, tolerance);
}

static inline void near_all(const float *got, const float *expected, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - expected[i]) <= tolerance))
            fail_msg("element %zu: %.9g is not %.9g within %g", i, got[i], expected[i], tolerance);
}

#endif
