/* SPDX-License-Identifier: MIT */
/* Prints answers: neighbours with their scores, as text or as one JSON object per line. */
#include "emb.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool emb_results_begin(emb_results *r, size_t questions, size_t k, size_t words)
{
    bool fits = k < SIZE_MAX / sizeof *r->hits / questions;
    *r = (emb_results) { .hits = fits ? malloc(questions * k * sizeof *r->hits) : NULL,
                         .counts = calloc(questions, sizeof *r->counts),
                         .found = words ? calloc(words, sizeof *r->found) : NULL };
    return r->hits && r->counts && (r->found || !words);
}

void emb_results_free(emb_results *r)
{
    free(r->hits);
    free(r->counts);
    free(r->found);
}

/* Scores get as many digits as the numbers that they are computed from. */
void emb_json_score(json *j, const emb_input *e, double score)
{
    const tnf_part *part = e->info->embeddings->parts;
    if (part && part->type->bits > 32)
        json_f64(j, score);
    else
        json_f32(j, (float)score);
}

static void json_question(json *j, const emb_question *q)
{
    json_key(j, "query");
    if (q->vector) {
        json_open(j, '[');
        for (size_t i = 0; i < q->dims; i++)
            json_f64(j, q->vector[i]);
        json_close(j, ']');
    } else if (q->n == 1) {
        json_str(j, q->words[0]);
    } else {
        json_open(j, '[');
        for (size_t i = 0; i < q->n; i++)
            json_str(j, q->words[i]);
        json_close(j, ']');
    }
}

static void json_hit(json *j, const emb_input *e, const tnf_emb_hit *hit)
{
    json_open(j, '{');
    if (!hit->word.p || e->app) {
        json_key(j, "row");
        json_uint(j, hit->row);
    }
    if (hit->word.p && e->app) {
        json_key(j, "app");
        emb_json_app(j, hit->word);
    } else if (hit->word.p) {
        json_key(j, "word");
        json_str(j, hit->word);
    }
    json_key(j, "score");
    emb_json_score(j, e, hit->score);
    json_close(j, '}');
}

#define SENTENCE 256

/* A sentence that says why there is no answer, and for which word. */
static const char *make_sentence(char out[SENTENCE], const emb_question *q)
{
    snprintf(out, SENTENCE, "%s '%.*s'", q->error,
             (int)shown_bytes(q->missing.p, q->missing.n, 160), q->missing.p);
    return q->missing.p ? out : q->error;
}

static void answer_json(const emb_input *e, const emb_question *q, const tnf_emb_hit *hits,
                        size_t n)
{
    char text[SENTENCE];
    json j = { stdout, false };
    json_open(&j, '{');
    json_question(&j, q);
    if (q->error) {
        json_key(&j, "error");
        json_text(&j, make_sentence(text, q));
        if (q->missing.p) {
            json_key(&j, "missing");
            json_str(&j, q->missing);
        }
    } else {
        json_key(&j, "results");
        json_open(&j, '[');
        for (size_t i = 0; i < n; i++)
            json_hit(&j, e, &hits[i]);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    putchar('\n');
}

static void put_label(const emb_input *e, const tnf_emb_hit *hit)
{
    if (!hit->word.p) {
        printf("%" PRIu64, hit->row);
    } else if (e->app) {
        json j = { stdout, false };
        emb_json_app(&j, hit->word);
    } else {
        put_name(stdout, hit->word);
    }
}

static void answer_text(const emb_input *e, const emb_asking *a, const emb_question *q,
                        const tnf_emb_hit *hits, size_t n)
{
    if (q->error) {
        char text[SENTENCE];
        file_message(e->in.name, "", TNF_NO_OFFSET, make_sentence(text, q));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t w = 0; a->several && w < q->n; w++) {
            put_name(stdout, q->words[w]);
            putchar(w + 1 < q->n ? ' ' : '\t');
        }
        put_label(e, &hits[i]);
        printf("\t%.6f\n", hits[i].score);
    }
}

void emb_answer(const emb_input *e, const emb_asking *a, const emb_question *q,
                const tnf_emb_hit *hits, size_t n)
{
    if (a->json)
        answer_json(e, q, hits, n);
    else
        answer_text(e, a, q, hits, n);
}
