/* SPDX-License-Identifier: MIT */
/* fastText models (.bin, .ftz), as fastText 0.1 to 0.9 has them. Little-endian.
 *
 *   i32 magic 793712314   i32 version 11 or 12
 *   i32 × 12  dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate
 *   f64 t
 *   i32 size  i32 nwords  i32 nlabels  i64 ntokens  i64 pruneidx_size (-1: not pruned)
 *   size × { word, NUL, i64 count, i8 type }        words (type 0), then labels (1)
 *   pruneidx_size × { i32 bucket, i32 row }         buckets that pruning kept, and their rows
 *   u8 quantized?  input matrix                     nwords rows, then those of buckets
 *   u8 quantized?  output matrix                    of training, or a classifier's labels
 *
 * The row of a word is not its vector: the vector is the mean of this row and of the rows of the
 * word's n-grams. This reader keeps both apart; src/ext/emb combines them.
 */
#include "formats/fasttext/ft.h"

#include <string.h>

const char *const tnf_ft_arg_keys[FT_ARGS] = {
    FT_ATTR("dim"),    FT_ATTR("ws"),          FT_ATTR("epoch"), FT_ATTR("min_count"),
    FT_ATTR("neg"),    FT_ATTR("word_ngrams"), FT_ATTR("loss"),  FT_ATTR("model"),
    FT_ATTR("bucket"), FT_ATTR("minn"),        FT_ATTR("maxn"),  FT_ATTR("lr_update_rate"),
};
/* The same values as finalfusion's library writes, whose models also contain only vectors. */
const int32_t tnf_ft_arg_defaults[FT_ARGS] = {
    [FT_WORD_NGRAMS] = 1, [FT_LOSS] = 1, [FT_MODEL] = 1
};
const char *const tnf_ft_losses[5] = { NULL, "hs", "ns", "softmax", "ova" };
const char *const tnf_ft_models[4] = { NULL, "cbow", "skipgram", "supervised" };

static int probe_fasttext(const tnf_probe *p)
{
    if (p->nhead < 8 || tnf_le32(p->head) != FT_MAGIC)
        return TNF_PROBE_NO;
    return TNF_PROBE_MAGIC;
}

/* ---------------------------------------------------------------- arguments */

/* The name of a loss or a model; its number if it has none. */
static tnf_value named_number(int32_t v, const char *const *names, int32_t count)
{
    return v > 0 && v < count ? tnf_value_string(names[v]) : tnf_value_integer(v);
}

static tnf_status set_args(ft_reading *f, tnf_error *e)
{
    for (int i = 0; i < FT_ARGS; i++) {
        int32_t v = f->args[i];
        tnf_value value = i == FT_LOSS    ? named_number(v, tnf_ft_losses, 5)
                          : i == FT_MODEL ? named_number(v, tnf_ft_models, 4)
                                          : tnf_value_integer(v);
        if (v != tnf_ft_arg_defaults[i] || i == FT_LOSS || i == FT_MODEL)
            TNF_TRY(tnf_set_attr(f->r, tnf_ft_arg_keys[i], value, e));
    }
    return TNF_OK;
}

static tnf_status check_args(ft_reading *f, tnf_error *e)
{
    const int32_t *a = f->args;
    if (a[FT_DIM] < 0)
        return tnf_fail(e, TNF_EFORMAT, 8,
                        "the model has %d dimensions; the number must not be negative", a[FT_DIM]);
    if (a[FT_BUCKET] < 0)
        return tnf_fail(e, TNF_EFORMAT, 8 + 4 * FT_BUCKET,
                        "the model has %d buckets; the number must not be negative", a[FT_BUCKET]);
    if (a[FT_MINN] < 0 || a[FT_MAXN] < 0)
        return tnf_fail(e, TNF_EFORMAT, 8 + 4 * FT_MINN,
                        "n-grams have %d to %d characters; the lengths must not be negative",
                        a[FT_MINN], a[FT_MAXN]);
    if (a[FT_MAXN] > 0 && a[FT_BUCKET] == 0 && a[FT_MINN] <= a[FT_MAXN])
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, 8 + 4 * FT_BUCKET,
                             "n-grams have %d to %d characters, but there are no buckets for them",
                             a[FT_MINN], a[FT_MAXN]));
    if (a[FT_MAXN] > 0 && a[FT_MINN] > a[FT_MAXN])
        tnf_warn(f->r, 8 + 4 * FT_MINN,
                 "n-grams have %d to %d characters, which is an empty range, so there are none",
                 a[FT_MINN], a[FT_MAXN]);
    if (a[FT_LOSS] < 1 || a[FT_LOSS] > 4)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EUNSUPPORTED, 8 + 4 * FT_LOSS, "unknown loss %d",
                             a[FT_LOSS]));
    if (a[FT_MODEL] < 1 || a[FT_MODEL] > 3)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EUNSUPPORTED, 8 + 4 * FT_MODEL, "unknown model %d",
                             a[FT_MODEL]));
    return TNF_OK;
}

static tnf_status read_head(ft_reading *f, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(f->r, "header", 0, FT_HEAD, FT_HEAD, &c, e));
    if (tnf_u32(&c) != FT_MAGIC)
        return tnf_fail(e, TNF_EFORMAT, 0, "not a fastText model: the file does not begin with %u",
                        FT_MAGIC);
    uint32_t version = tnf_u32(&c);
    if (version != 11 && version != FT_VERSION)
        return tnf_fail(e, TNF_EUNSUPPORTED, 4,
                        "unsupported version %u of fastText's format; 11 and 12 are supported",
                        version);
    f->r->version = version == 11 ? "11" : "12";
    if (version != FT_VERSION)
        TNF_TRY(tnf_set_attr(f->r, FT_ATTR("version"), tnf_value_uint(version), e));
    for (int i = 0; i < FT_ARGS; i++)
        f->args[i] = (int32_t)tnf_u32(&c);
    const uint8_t *t = tnf_bytes(&c, 8);
    uint64_t t_bits = tnf_le64(t);
    TNF_TRY(check_args(f, e));
    TNF_TRY(set_args(f, e));
    f->at = FT_HEAD;
    if (t_bits == 0)
        return TNF_OK;
    return tnf_set_attr(f->r, FT_ATTR("t"), tnf_value_number(TNF_F64, t), e);
}

/* ----------------------------------------------------------------- matrices */

static tnf_status read_flag(ft_reading *f, const char *what, bool *out, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(f->r, what, f->at, 1, 1, &c, e));
    uint8_t flag = tnf_u8(&c);
    if (flag > 1)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, f->at,
                             "the flag of a quantized %s is %u, not 0 or 1", what, flag));
    *out = flag != 0;
    f->at++;
    return TNF_OK;
}

static tnf_status read_input(ft_reading *f, tnf_error *e)
{
    TNF_TRY(read_flag(f, "input matrix", &f->quantized, e));
    if (!f->quantized && f->is_pruned)
        TNF_TRY(tnf_stricter(
            f->r, e, TNF_EFORMAT, f->at - 1,
            "the model is pruned, but not quantized: fastText prunes only quantized models"));
    return f->quantized ? tnf_ft_read_quantized(f, FT_EMBEDDINGS, e)
                        : tnf_ft_read_dense(f, FT_EMBEDDINGS, e);
}

/* Is the output matrix missing? finalfusion's Rust library ends the file here; its Python package
 * writes the input's rows a second time. */
static bool has_no_output(const ft_reading *f, uint64_t left)
{
    uint8_t head[17], rows[17];
    if (left == 0)
        return true;
    return !f->quantized && left == f->input_bytes && left >= sizeof head &&
           tnf_source_read(f->r->source, f->at, head, sizeof head, NULL) == TNF_OK &&
           tnf_source_read(f->r->source, f->at - left, rows, sizeof rows, NULL) == TNF_OK &&
           memcmp(head, rows, sizeof head) == 0;
}

static tnf_status no_output(ft_reading *f, uint64_t left, tnf_error *e)
{
    tnf_warn(f->r, f->at,
             left ? "the file ends with a second copy of the input matrix, not with an output "
                    "matrix: finalfusion's Python package writes such files"
                  : "there is no output matrix: finalfusion's library writes such files, which "
                    "hold only vectors");
    TNF_TRY(tnf_set_attr(f->r, FT_ATTR("has_output"), tnf_value_bool(false), e));
    return left ? tnf_add_extra(f->r, FT_TRAILING, f->at, left, e) : TNF_OK;
}

static tnf_status read_output(ft_reading *f, tnf_error *e)
{
    uint64_t size = f->r->source->size, left = f->at < size ? size - f->at : 0;
    bool quantized;
    if (f->at <= size && has_no_output(f, left))
        return no_output(f, left, e);
    TNF_TRY(read_flag(f, "output matrix", &quantized, e));
    if (quantized && !f->quantized) {
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, f->at - 1,
                             "only the output matrix has the flag of a quantized matrix: "
                             "fastText reads both matrices as dense"));
        quantized = false;
    }
    TNF_TRY(quantized ? tnf_ft_read_quantized(f, FT_OUTPUT, e)
                      : tnf_ft_read_dense(f, FT_OUTPUT, e));
    if (f->at >= size)
        return TNF_OK;
    TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, f->at, "%s the output matrix",
                         TNF_BYTES_FOLLOW(size - f->at)));
    return tnf_add_extra(f->r, FT_TRAILING, f->at, size - f->at, e);
}

static tnf_status index_fasttext(tnf_reader *r, tnf_error *e)
{
    ft_reading f = { .r = r };
    r->state = f.norms = tnf_arena_array(r->arena, 2, sizeof *f.norms);
    if (!f.norms)
        return tnf_arena_fail(r->arena, "the reader", e);
    TNF_TRY(read_head(&f, e));
    TNF_TRY(tnf_ft_read_dictionary(&f, e));
    TNF_TRY(read_input(&f, e));
    return read_output(&f, e);
}

/* --------------------------------------------------------------- descriptor */

static const tnf_option_info read_options[] = {
    { "lossy", TNF_OPTION_BOOL, NULL, "no",
      "replace bytes that are not UTF-8 in words and labels by U+FFFD, as finalfusion's --lossy "
      "does" },
    { 0 },
};

const tnf_format tnf_format_fasttext = {
    .name = "fasttext",
    .title = "fastText models",
    .extensions = "ftz bin",
    .family = "fasttext",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_NO_OVERLAP,
    .can = { .types = "f32 u8 i32 i64 u64",
             .layouts = "dense strings/1 pq/1",
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = "fasttext.version fasttext.ws fasttext.epoch fasttext.min_count "
                           "fasttext.neg fasttext.word_ngrams fasttext.loss fasttext.model "
                           "fasttext.bucket fasttext.minn fasttext.maxn fasttext.lr_update_rate "
                           "fasttext.t fasttext.tokens fasttext.has_output",
             .derived = "fasttext.dim fasttext.loss=hs fasttext.model=cbow",
             .unfolds = TNF_FOLD_FINALFUSION,
             .fits = tnf_ft_fits },
    .read_options = read_options,
    .probe = probe_fasttext,
    .index = index_fasttext,
    .decode = tnf_ft_decode,
    .write = TNF_WRITES(tnf_ft_write),
};
