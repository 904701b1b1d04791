/* SPDX-License-Identifier: MIT */
/* Queries on any file with vectors. For every content, answers are in order, scores are those of
 * their rows, and new files made from it can be opened. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/emb.h>

#define K       5u
#define MOST    ((uint64_t)1 << 20) /* elements of a matrix worth a fuzzer's time */
#define CHANGED ((uint64_t)1 << 16) /* most rows of a matrix that is converted */

static const char *const asked[] = { "a", "", "one", "überspringen", "\xc3(", "a b" };
#define ASKED (sizeof asked / sizeof *asked)

static void check_order(const tnf_emb *emb, const tnf_emb_hit *hits, size_t n, tnf_metric metric)
{
    const tnf_emb_info *info = tnf_emb_describe(emb);
    for (size_t i = 0; i < n; i++) {
        FUZZ_REQUIRE(hits[i].row < info->rows, "a row that is not there");
        if (i == 0)
            continue;
        double a = hits[i - 1].score, b = hits[i].score;
        FUZZ_REQUIRE(hits[i].row != hits[i - 1].row, "a row twice");
        FUZZ_REQUIRE(isnan(b) || !isnan(a), "NaN before a number");
        FUZZ_REQUIRE(isnan(b) || (metric == TNF_L2 ? a <= b : a >= b), "%g before %g", a, b);
    }
}

static void check_queries(const tnf_emb *emb, const tnf_str *words, size_t n)
{
    tnf_emb_hit hits[16 * K], again[16 * K];
    size_t counts[16], other[16];
    tnf_error e;
    for (tnf_metric metric = TNF_COSINE; metric <= TNF_L2; metric++) {
        tnf_emb_query q = { .size = sizeof q, .metric = metric, .k = K, .threads = 1 };
        if (tnf_emb_similar(hits, counts, NULL, emb, words, n, &q, &e) != TNF_OK)
            return;
        for (size_t i = 0; i < n; i++)
            check_order(emb, hits + i * K, counts[i], metric);
        if (tnf_emb_similar(again, other, NULL, emb, words, 1, &q, &e) != TNF_OK)
            continue;
        FUZZ_REQUIRE(other[0] == counts[0], "other answers alone than among others");
        for (size_t i = 0; i < counts[0]; i++)
            FUZZ_REQUIRE(hits[i].row == again[i].row, "another answer alone than among others");
    }
    tnf_emb_query q = { .size = sizeof q, .k = K };
    if (n >= 3 && tnf_emb_analogy(hits, counts, NULL, emb, words, 1, &q, &e) == TNF_OK)
        check_order(emb, hits, counts[0], TNF_COSINE);
}

/* The found word is the requested one. */
static void check_words(const tnf_emb *emb)
{
    const tnf_emb_info *info = tnf_emb_describe(emb);
    uint64_t repeated = 0;
    for (uint64_t i = 0; i < info->words && i < 2000; i++) {
        tnf_str word = tnf_emb_word(emb, i);
        uint64_t row = tnf_emb_find(emb, word);
        FUZZ_REQUIRE(row <= i, "a word is not found, or a later one is");
        repeated += row < i;
    }
    FUZZ_REQUIRE(repeated <= info->duplicates, "more duplicates than counted");
}

/* Saves a filled builder; the file must open again. */
static void check_saved(tnf_builder *b, tnf_status filled, const char *format)
{
    tnf_error e;
    tnf_sink *sink = NULL;
    tnf_file *file = NULL;
    tnf_source *source;
    tnf_save_options o = { .size = sizeof o, .format = format, .allow_loss = true };
    if (filled == TNF_OK && tnf_sink_memory(&sink, &e) == TNF_OK &&
        tnf_save_sink(b, sink, &o, &e) == TNF_OK) {
        tnf_str bytes = tnf_sink_bytes(sink);
        FUZZ_REQUIRE(tnf_source_memory(&source, bytes.p, bytes.n, &e) == TNF_OK, "%s", e.message);
        /* lenient, as on opening the input: its faults may remain */
        tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
        FUZZ_REQUIRE(tnf_open_source(&file, source, &lenient, &e) == TNF_OK, "%s", e.message);
        tnf_close(file);
    }
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static void check_changes(tnf_emb *emb, const tnf_str *words, size_t n)
{
    tnf_error e;
    tnf_builder *b;
    if (tnf_emb_describe(emb)->rows > CHANGED)
        return;
    const tnf_emb_change to_model = { .size = sizeof to_model, .unfold = TNF_FOLD_FASTTEXT };
    const tnf_emb_change to_vectors = { .size = sizeof to_vectors,
                                        .fold = TNF_FOLD_FINALFUSION,
                                        .normalize = true };
    for (int what = 0; what < 5; what++)
        if (tnf_builder_new(&b, NULL, &e) == TNF_OK)
            check_saved(b,
                        what == 0   ? tnf_emb_explicit(b, emb, &e)
                        : what == 1 ? tnf_emb_reconstruct(b, emb, false, &e)
                        : what == 2 ? tnf_emb_select(b, emb, words, n, &e)
                        : what == 3 ? tnf_emb_convert(b, emb, &to_vectors, &e)
                                    : tnf_emb_convert(b, emb, &to_model, &e),
                        what == 4 ? "fasttext" : "finalfusion");
}

static void check_emb(tnf_emb *emb)
{
    const tnf_emb_info *info = tnf_emb_describe(emb);
    tnf_str words[ASKED + 4];
    size_t n = 0;
    for (uint64_t i = 0; i < 4 && i < info->words; i++)
        words[n++] = tnf_emb_word(emb, i);
    for (size_t i = 0; i < ASKED; i++)
        words[n++] = (tnf_str) { asked[i], strlen(asked[i]) };
    check_words(emb);
    if (info->rows > MOST || info->dims > MOST || info->rows * info->dims > MOST)
        return;
    check_queries(emb, words, n);
    check_changes(emb, words, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_status status;
    tnf_error e;
    tnf_emb *emb;
    tnf_emb_options o = { .size = sizeof o, .threads = 1, .memory = (uint64_t)64 << 20 };
    tnf_file *file = fuzz_open(data, size, NULL, true, &status);
    if (!file)
        return 0;
    if (tnf_emb_open(&emb, file, &o, &e) == TNF_OK) {
        check_emb(emb);
        tnf_emb_close(emb);
    }
    tnf_close(file);
    return 0;
}
