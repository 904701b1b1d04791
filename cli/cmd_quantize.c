/* SPDX-License-Identifier: MIT */
/* tenfold quantize: dense rows made small. */
#include "emb.h"
#include <string.h>

#define QUANTIZERS "pq|opq|gaussian_opq" /* by tnf_quantizer */

typedef struct options {
    emb_options emb;
    saving_options save;
    int quantizer;
    const char *bits, *subquantizers, *iterations, *attempts, *seed;
    bool as_is, json;
} options;

typedef struct job {
    const options *o;
    tnf_quantize_options how;
} job;

/* A setting of the library; 0, its default, if there is no text. */
static bool take_number(unsigned *out, const char *text, const char *option)
{
    uint64_t n;
    if (!emb_number(&n, text, option, 1, 0))
        return false;
    *out = n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
    return true;
}

static bool take_options(job *j, saving *s)
{
    const options *o = j->o;
    uint64_t threads;
    tnf_quantize_options *how = &j->how;
    *how = (tnf_quantize_options) { .size = sizeof *how };
    how->method = (tnf_quantizer)o->quantizer;
    how->as_is = o->as_is;
    how->progress = saving_progress;
    how->ctx = s;
    return emb_number(&threads, o->emb.threads, "threads", 1, 0) &&
           (how->threads = threads > 64 ? 64 : (unsigned)threads, true) &&
           take_number(&how->bits, o->bits, "bits") &&
           take_number(&how->subquantizers, o->subquantizers, "subquantizers") &&
           take_number(&how->iterations, o->iterations, "iterations") &&
           take_number(&how->attempts, o->attempts, "attempts") &&
           emb_number(&how->seed, o->seed, "seed", 0, 0);
}

static void tell_json(const job *j, const tnf_report *r, const char *path)
{
    const char *name;
    json out = { stdout, false };
    size_t n = opt_word(QUANTIZERS, (size_t)j->o->quantizer, &name);
    json_open(&out, '{');
    json_key(&out, "file");
    json_text(&out, path);
    json_key(&out, "quantizer");
    json_str(&out, (tnf_str) { name, n });
    json_key(&out, "rows");
    json_uint(&out, r->quantized.rows);
    json_key(&out, "dims");
    json_uint(&out, r->quantized.dims);
    json_key(&out, "bits");
    json_uint(&out, r->quantized.bits);
    json_key(&out, "subquantizers");
    json_uint(&out, r->quantized.subquantizers);
    json_key(&out, "cosine");
    json_f64(&out, r->quantized.cosine);
    json_key(&out, "euclidean");
    json_f64(&out, r->quantized.euclidean);
    json_close(&out, '}');
    fputc('\n', stdout);
}

static void tell(const job *j, const cli_state *cli, const tnf_report *r, const char *path)
{
    if (j->o->json)
        tell_json(j, r, path);
    else if (!cli->quiet)
        fprintf(stderr, "average cosine similarity %.6f, average Euclidean distance %.6f\n",
                r->quantized.cosine, r->quantized.euclidean);
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .o = opts };
    saving s = { .how.step = TNF_EMB_QUANTIZE, .how.quantize = &j.how };
    (void)argc;
    if (!take_options(&j, &s))
        return EXIT_USAGE;
    if (j.o->json && !strcmp(argv[1], "-"))
        return usage_error("quantize: standard output cannot take both the file and --json");
    int code = emb_rewrite(&s, cli, &j.o->emb, &j.o->save, argv);
    if (code == EXIT_DONE)
        tell(&j, cli, s.report, argv[0]);
    saving_free(&s);
    return code;
}

static const opt table[] = {
    { "quantizer", 'q', OPT_CHOICE, offsetof(options, quantizer), "METHOD", QUANTIZERS,
      "Cut rows into pieces (pq), or turn them first: by the axes of their covariance "
      "(gaussian_opq), or by what training finds (opq). For silence there is --quiet." },
    { "bits", 'b', OPT_TEXT, offsetof(options, bits), "N", NULL,
      "Let codes have N bits, 1 to 8, that is 2^N centroids for each piece; otherwise 8, or fewer "
      "if there are fewer rows than that." },
    { "subquantizers", 's', OPT_TEXT, offsetof(options, subquantizers), "N", NULL,
      "Cut rows into N pieces, each a byte in the file; the dimensions must divide by it. "
      "Otherwise half the dimensions." },
    { "iterations", 'i', OPT_TEXT, offsetof(options, iterations), "N", NULL,
      "Train for N rounds; otherwise 100." },
    { "attempts", 'a', OPT_TEXT, offsetof(options, attempts), "N", NULL,
      "Train N times and take the best; otherwise once, as opq always does." },
    { "seed", 0, OPT_TEXT, offsetof(options, seed), "N", NULL,
      "Choose other rows to begin with. The same number, 0 unless given, gives the same file." },
    { "as-is", 0, OPT_FLAG, offsetof(options, as_is), NULL, NULL,
      "Do not divide rows by their lengths before training, and store no lengths." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print the settings and the average loss as JSON." },
    EMB_SAVE_OPTIONS(options, save),
    EMB_OPTIONS(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold quantize vectors.fifu small.fifu", "rows of 300 numbers become 150 bytes" },
    { "tenfold quantize vectors.fifu small.fifu -q opq -s 100 -i 50",
      "100 bytes, turned such that little is lost" },
    { 0 },
};

const command cmd_quantize = {
    .name = "quantize",
    .args = "FILE OUT",
    .summary = "make dense rows small by product quantization",
    .about =
        "Writes FILE with its matrix quantized: rows are cut into pieces, and each piece "
        "becomes the number of the nearest of 2^bits centroids, which training finds for each "
        "piece. Everything else stays as it is; the rows of subwords are quantized too. The "
        "result can be asked like any other file, and 'tenfold reconstruct' makes it dense "
        "again.\n\nRows are divided by their lengths first, and the lengths are stored; rows "
        "that are all zero stay so. The average cosine between rows and what their codes stand "
        "for, and the average distance, are told in the end.\n\nThe result is the same for any "
        "number of threads and on any machine; with opq and gaussian_opq, as far as their "
        "LAPACK is the same.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
