/* SPDX-License-Identifier: MIT */
/* tenfold quantize: compresses dense rows. */
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

/* Parses a setting of the library. Without a text it is 0, which is the library's default. */
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
    tnf_quantize_options *how = &j->how;
    *how = (tnf_quantize_options) { .size = sizeof *how };
    how->method = (tnf_quantizer)o->quantizer;
    how->as_is = o->as_is;
    how->progress = saving_progress;
    how->ctx = s;
    return take_number(&how->bits, o->bits, "bits") &&
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
    json_uint(&out, r->quantized->rows);
    json_key(&out, "dims");
    json_uint(&out, r->quantized->dims);
    json_key(&out, "bits");
    json_uint(&out, r->quantized->bits);
    json_key(&out, "subquantizers");
    json_uint(&out, r->quantized->subquantizers);
    json_key(&out, "cosine");
    json_f64(&out, r->quantized->cosine);
    json_key(&out, "euclidean");
    json_f64(&out, r->quantized->euclidean);
    json_close(&out, '}');
    fputc('\n', stdout);
}

static void tell_result(const job *j, const cli_state *cli, const tnf_report *r, const char *path)
{
    if (j->o->json)
        tell_json(j, r, path);
    else if (!cli->quiet)
        fprintf(stderr, "average cosine similarity %.6f, average Euclidean distance %.6f\n",
                r->quantized->cosine, r->quantized->euclidean);
}

static int run_quantize(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .o = opts };
    saving s = { .how.step = TNF_EMB_QUANTIZE, .how.quantize = &j.how };
    (void)argc;
    if (!take_options(&j, &s))
        return EXIT_USAGE;
    if (j.o->json && !strcmp(argv[1], "-"))
        return usage_error("quantize: the file and --json cannot both go to standard output");
    int code = emb_rewrite(&s, cli, &j.o->emb, &j.o->save, argv);
    if ((code == EXIT_DONE || code == EXIT_UNSYNCED) && !j.o->save.dry_run)
        tell_result(&j, cli, s.report, argv[0]);
    saving_free(&s);
    return code;
}

static const opt table[] = {
    { "quantizer", 0, OPT_CHOICE, offsetof(options, quantizer), "METHOD", QUANTIZERS,
      "Cut rows into pieces (pq), or rotate them first: by the axes of their covariance "
      "(gaussian_opq), or by a rotation that training finds (opq)." },
    { "bits", 'b', OPT_TEXT, offsetof(options, bits), "N", NULL,
      "Use codes of N bits, 1 to 8, with 2^N centroids for each piece [8, or fewer if there "
      "are few rows]." },
    { "subquantizers", 's', OPT_TEXT, offsetof(options, subquantizers), "N", NULL,
      "Cut rows into N pieces, each a byte in the file. N must divide the number of dimensions "
      "[half of it]." },
    { "iterations", 'i', OPT_TEXT, offsetof(options, iterations), "N", NULL,
      "Train for N rounds [100]." },
    { "attempts", 'a', OPT_TEXT, offsetof(options, attempts), "N", NULL,
      "Train N times and keep the best; opq always trains once [1]." },
    { "seed", 0, OPT_TEXT, offsetof(options, seed), "N", NULL,
      "The seed, which selects the initial rows. The same number gives the same file [0]." },
    { "as-is", 0, OPT_FLAG, offsetof(options, as_is), NULL, NULL,
      "Do not divide rows by their lengths before training, and store no lengths." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print the settings and the average loss as JSON." },
    EMB_SAVE_OPTIONS(options, save),
    EMB_INPUT_OPTIONS(options, emb),
    IN_OPTION(options, emb.in, "IN"),
    { "quantizer", 'q', OPT_CHOICE, offsetof(options, quantizer), "METHOD", QUANTIZERS, NULL },
    EMB_OLD_OPTION(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold quantize vectors.fifu small.fifu", "rows of 300 numbers become 150 bytes" },
    { "tenfold quantize vectors.fifu small.fifu --quantizer opq -s 100 -i 50",
      "100 bytes, rotated so that less is lost" },
    { 0 },
};

const command cmd_quantize = {
    .name = "quantize",
    .args = "FILE OUT",
    .summary = "compress rows by product quantization",
    .about =
        "Writes FILE with a quantized matrix. Rows are cut into pieces, and each piece is replaced "
        "by the number of the nearest of 2^bits centroids. Training finds the centroids. "
        "The rows of subwords are quantized, too; everything else does not change. The result can "
        "be queried like any other file, and 'tenfold reconstruct' makes it dense again.\n\nRows "
        "are first divided by their lengths, which are stored; rows of zeros do not change. At the "
        "end, the command prints the average cosine and the average distance between rows and "
        "their reconstructions.\n\nThe result is the same for any number of threads and on any "
        "machine; with opq and gaussian_opq, only if LAPACK is the same, too.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run_quantize,
};
