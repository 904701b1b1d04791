/* SPDX-License-Identifier: MIT */
/* tenfold quantize: dense rows made small. */
#include "emb.h"
#include "progress.h"
#include "stop.h"
#include <string.h>
#include <unistd.h>

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
    emb_input in;
    const char *out;
    saving_options save;
    tnf_quantize_options how;
    tnf_quantized result;
    progress progress;
} job;

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(&((job *)ctx)->progress, done, total);
    return !stop_asked();
}

/* A setting of the library; 0, its default, if there is no text. */
static bool take_number(unsigned *out, const char *text, const char *option)
{
    uint64_t n;
    if (!emb_number(&n, text, option, 1, 0))
        return false;
    *out = n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
    return true;
}

static bool take_options(job *j)
{
    const options *o = j->o;
    tnf_quantize_options *how = &j->how;
    *how = (tnf_quantize_options) { .size = sizeof *how };
    how->method = (tnf_quantizer)o->quantizer;
    how->as_is = o->as_is;
    how->progress = on_progress;
    how->ctx = j;
    return take_number(&how->bits, o->bits, "bits") &&
           take_number(&how->subquantizers, o->subquantizers, "subquantizers") &&
           take_number(&how->iterations, o->iterations, "iterations") &&
           take_number(&how->attempts, o->attempts, "attempts") &&
           emb_number(&how->seed, o->seed, "seed", 0, 0);
}

/* Without a format or an extension to tell, it is finalfusion's. */
static void take_format(job *j)
{
    const char *name = strrchr(j->out, '/');
    j->save = j->o->save;
    if (!j->save.to && !strchr(name ? name : j->out, '.'))
        j->save.to = "finalfusion";
}

static tnf_status quantize(job *j, tnf_builder *builder, tnf_error *error)
{
    stop_state before;
    stop_catch(&before);
    progress_begin(&j->progress, j->in.in.cli);
    tnf_status status = tnf_emb_quantize(builder, j->in.emb, &j->how, &j->result, error);
    progress_end(&j->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    return status;
}

static void tell_json(const job *j)
{
    const char *name;
    json out = { stdout, false };
    size_t n = opt_word(QUANTIZERS, (size_t)j->o->quantizer, &name);
    json_open(&out, '{');
    json_key(&out, "file");
    json_text(&out, j->in.in.path);
    json_key(&out, "quantizer");
    json_str(&out, (tnf_str) { name, n });
    json_key(&out, "rows");
    json_uint(&out, j->in.info->rows);
    json_key(&out, "dims");
    json_uint(&out, j->in.info->dims);
    json_key(&out, "bits");
    json_uint(&out, j->result.bits);
    json_key(&out, "subquantizers");
    json_uint(&out, j->result.subquantizers);
    json_key(&out, "cosine");
    json_f64(&out, j->result.cosine);
    json_key(&out, "euclidean");
    json_f64(&out, j->result.euclidean);
    json_close(&out, '}');
    fputc('\n', stdout);
}

static void tell(const job *j)
{
    if (j->o->json)
        tell_json(j);
    else if (!j->in.in.cli->quiet)
        fprintf(stderr, "average cosine similarity %.6f, average Euclidean distance %.6f\n",
                j->result.cosine, j->result.euclidean);
}

/* Training may take hours: that the file cannot be written is better known before. */
static int check_saving(const job *j)
{
    tnf_builder *builder;
    tnf_format_info format = TNF_FORMAT_INFO_INIT;
    format_options writer;
    tnf_error error;
    tnf_save_options how = { .size = sizeof how, .format = j->save.to, .allow_loss = true };
    if (!strcmp(j->out, "-"))
        return EXIT_DONE;
    if (!j->save.force && access(j->out, F_OK) == 0) {
        file_message(j->out, "", TNF_NO_OFFSET, "it exists already; --force replaces it");
        return EXIT_IO;
    }
    if ((how.format && !known_format(how.format, &format)) ||
        !format_options_parse(&writer, &j->save.writer))
        return EXIT_USAGE;
    how.options = writer.items;
    how.noptions = writer.n;
    how.dry_run = how.replace = true;
    tnf_status status = tnf_builder_new(&builder, NULL, &error);
    if (status == TNF_OK)
        status = tnf_builder_add_file(builder, j->in.in.file, &error);
    if (status == TNF_OK)
        status = tnf_save(builder, j->out, &how, &error);
    tnf_builder_free(builder);
    format_options_free(&writer);
    return status == TNF_OK ? EXIT_DONE : file_error(j->out, &error);
}

static int quantize_and_save(job *j)
{
    tnf_builder *builder;
    tnf_error error;
    int code;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK)
        return file_error(j->out, &error);
    j->how.threads = j->in.threads;
    if (quantize(j, builder, &error) == TNF_OK)
        code = emb_save(builder, &j->in, &j->save, j->out);
    else
        code = file_error(j->in.in.name, &error);
    tnf_builder_free(builder);
    if (code == EXIT_DONE)
        tell(j);
    return code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .o = opts, .out = argv[1], .result = TNF_QUANTIZED_INIT };
    (void)argc;
    if (!take_options(&j))
        return EXIT_USAGE;
    take_format(&j);
    if (j.o->json && !strcmp(j.out, "-"))
        return usage_error("quantize: standard output cannot take both the file and --json");
    int code = emb_open_to_write(&j.in, cli, &j.o->emb, argv[0]);
    if (code == EXIT_DONE)
        code = check_saving(&j);
    if (code == EXIT_DONE)
        code = quantize_and_save(&j);
    emb_close(&j.in);
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
