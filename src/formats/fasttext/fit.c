/* SPDX-License-Identifier: MIT */
/* Decides what a fastText model can hold of a catalog: words with vectors and their data. */
#include "formats/fasttext/ft.h"

#include <string.h>

/* ----------------------------------------------------------------- attributes */

static bool get_integer(const tnf_value *v, int64_t *out)
{
    if (v->kind == TNF_UINT && v->as.u <= INT64_MAX)
        *out = (int64_t)v->as.u;
    else if (v->kind == TNF_INT)
        *out = v->as.i;
    else
        return false;
    return true;
}

/* One of the arguments as a number of 32 bits. */
static bool get_argument(const tnf_value *v, int which, int32_t *out)
{
    const char *const *names = which == FT_LOSS ? tnf_ft_losses : tnf_ft_models;
    int32_t count = which == FT_LOSS ? 5 : which == FT_MODEL ? 4 : 0;
    bool counts = which == FT_BUCKET || which == FT_MINN || which == FT_MAXN || which == FT_DIM;
    int64_t number;
    for (int32_t i = 1; i < count; i++)
        if (tnf_value_is(v, names[i])) {
            *out = i;
            return true;
        }
    if (!get_integer(v, &number) || number > INT32_MAX || number < (counts ? 0 : INT32_MIN))
        return false;
    *out = (int32_t)number;
    return true;
}

static bool read_attr(ft_plan *p, const tnf_member *m)
{
    const tnf_value *v = &m->value;
    int64_t version = 0;
    if (tnf_str_is(m->key, FT_ATTR("t"))) {
        p->t = v->kind == TNF_FLOAT && v->dtype == TNF_F64 ? v->as.f64 : 0;
        return v->kind == TNF_FLOAT && v->dtype == TNF_F64;
    }
    if (tnf_str_is(m->key, FT_ATTR("tokens")))
        return get_integer(v, &p->tokens);
    if (tnf_str_is(m->key, FT_ATTR("has_output"))) {
        p->ends_early = v->kind == TNF_BOOL && !v->as.b;
        return p->ends_early && !p->output.object && !p->output.opaque;
    }
    if (tnf_str_is(m->key, FT_ATTR("version"))) {
        bool known = get_integer(v, &version) && (version == 11 || version == 12);
        p->version = known ? (uint32_t)version : FT_VERSION;
        return known;
    }
    for (int i = FT_WS; i < FT_ARGS; i++)
        if (tnf_str_is(m->key, tnf_ft_arg_keys[i]))
            return get_argument(v, i, &p->args[i]);
    return true;
}

/* ----------------------------------------------------------------------- plan */

static bool is_named(const tnf_object *o, const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return o->name.n == n + s && memcmp(o->name.p, name, n) == 0 &&
           memcmp(o->name.p + n, suffix, s) == 0;
}

static bool takes_matrix(ft_matrix *m, const char *name, const tnf_object *o)
{
    if (is_named(o, name, ""))
        m->object = o;
    else if (is_named(o, name, FT_NORM_CODES))
        m->norm_codes = o;
    else if (is_named(o, name, FT_NORM_BOOK))
        m->norm_book = o;
    else if (is_named(o, name, FT_QUANTIZED))
        m->opaque = o;
    else
        return false;
    return true;
}

static tnf_status get_from_part(const void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const tnf_part *part = ctx;
    if (offset > part->nbytes || n > part->nbytes - offset)
        return tnf_fail(e, TNF_ETRUNCATED, TNF_NO_OFFSET, "a quantized matrix ends too early");
    return tnf_read_part(dst, n, part, offset, e);
}

/* Bytes that are not a matrix give 0 rows; why_no_opaque() finds the reason. */
static void measure_matrix(ft_matrix *m)
{
    ft_quant q;
    const tnf_object *o = m->object;
    bool matrix = o && o->rank == 2;
    m->rows = matrix ? o->shape[0] : 0;
    m->columns = matrix ? o->shape[1] : 0;
    if (m->opaque &&
        tnf_ft_quant_parse(&q, get_from_part, &m->opaque->parts[0], 0, NULL) == TNF_OK) {
        m->rows = q.rows;
        m->columns = q.columns;
    }
}

tnf_status tnf_ft_plan_make(ft_plan *p, const tnf_catalog *c, const tnf_verdict *objects,
                            tnf_error *e)
{
    (void)e;
    *p = (ft_plan) { .version = FT_VERSION };
    memcpy(p->args, tnf_ft_arg_defaults, sizeof p->args);
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (objects && objects[i].fate == TNF_DROPPED)
            continue;
        if (takes_matrix(&p->input, FT_EMBEDDINGS, o) || takes_matrix(&p->output, FT_OUTPUT, o))
            continue;
        const tnf_object **place = is_named(o, FT_VOCAB, "")         ? &p->vocab
                                   : is_named(o, FT_COUNTS, "")      ? &p->counts
                                   : is_named(o, FT_LABELS, "")      ? &p->labels
                                   : is_named(o, FT_LABEL_COUNT, "") ? &p->label_counts
                                   : is_named(o, FT_PRUNEIDX, "")    ? &p->pruneidx
                                                                     : NULL;
        if (place)
            *place = o;
    }
    for (size_t i = 0; i < c->attrs.n; i++)
        (void)read_attr(p, &c->attrs.members[i]);
    measure_matrix(&p->input);
    measure_matrix(&p->output);
    p->args[FT_DIM] = p->input.columns <= INT32_MAX ? (int32_t)p->input.columns : 0;
    p->ends_early = p->ends_early && !p->output.object && !p->output.opaque;
    return TNF_OK;
}

/* ------------------------------------------------------------- single objects */

static bool dense_of(const tnf_object *o, tnf_dtype dtype, uint32_t rank)
{
    return o->layout == &tnf_layout_dense && o->rank == rank &&
           o->parts[0].type == tnf_type_of(dtype);
}

static const char *why_no_matrix(const tnf_object *o)
{
    if (dense_of(o, TNF_F32, 2))
        return o->shape[0] > INT64_MAX || o->shape[1] > INT32_MAX ? "it is too large" : NULL;
    if (o->layout == &tnf_layout_dense)
        return o->parts[0].type->number == TNF_NUMBER_FLOAT
                   ? "fastText's matrices have two dimensions and are of f32: --dtype f32 casts "
                     "them"
                   : "fastText's matrices have two dimensions and are of f32";
    if (strcmp(o->layout->id, "pq/1") != 0)
        return "fastText's matrices are dense or quantized";
    const tnf_part *codes = tnf_object_part(o, "codes");
    const tnf_part *book = tnf_object_part(o, "codebooks");
    if (tnf_object_part(o, "projection"))
        return "fastText's quantizers have no projection";
    if (o->shape[0] == 0 || o->shape[0] > INT32_MAX || o->shape[1] > INT32_MAX ||
        codes->nbytes > INT32_MAX)
        return "it has no rows, or more than 2^31-1 codes";
    if (book->nbytes / FT_CENTROIDS / 4 != o->shape[1])
        return "fastText's quantizers have 256 centroids";
    return NULL;
}

static const char *why_no_opaque(const tnf_object *o)
{
    ft_quant q;
    if (!dense_of(o, TNF_U8, 1) ||
        tnf_ft_quant_parse(&q, get_from_part, &o->parts[0], 0, NULL) != TNF_OK ||
        q.bytes != o->parts[0].nbytes)
        return "its bytes are not a quantized matrix of fastText";
    return q.even && q.rows && q.columns
               ? "a matrix with pieces of equal length must be a pq/1 tensor"
               : NULL;
}

static const char *why_no_part(const tnf_object *o, const char *name)
{
    if (is_named(o, name, ""))
        return why_no_matrix(o);
    if (is_named(o, name, FT_QUANTIZED))
        return why_no_opaque(o);
    if (is_named(o, name, FT_NORM_CODES))
        return dense_of(o, TNF_U8, 1) ? NULL : "codes of norms must be a vector of u8";
    return dense_of(o, TNF_F32, 1) && o->shape[0] == FT_CENTROIDS
               ? NULL
               : "the codebook of norms must have 256 floats";
}

static const char *why_not(const tnf_object *o)
{
    ft_matrix ignored;
    bool strings = strcmp(o->layout->id, "strings/1") == 0 && o->rank == 1;
    if (takes_matrix(&ignored, FT_EMBEDDINGS, o))
        return why_no_part(o, FT_EMBEDDINGS);
    if (takes_matrix(&ignored, FT_OUTPUT, o))
        return why_no_part(o, FT_OUTPUT);
    if (is_named(o, FT_VOCAB, "") || is_named(o, FT_LABELS, ""))
        return strings && o->shape[0] <= INT32_MAX ? NULL
                                                   : "fastText's words must be a list of strings";
    if (is_named(o, FT_COUNTS, "") || is_named(o, FT_LABEL_COUNT, ""))
        return dense_of(o, TNF_I64, 1) ? NULL : "counts must be a vector of i64";
    if (is_named(o, FT_PRUNEIDX, ""))
        return dense_of(o, TNF_I32, 2) && o->shape[1] == 2
                   ? NULL
                   : "it must be a matrix of i32 with two columns";
    if (is_named(o, "norms", ""))
        return "fastText has no norms: --unnormalize multiplies them into the vectors";
    return "a fastText model holds only words, labels, their counts, and two matrices";
}

/* ------------------------------------------------------- objects in relation */

struct judging {
    tnf_fit *fit;
    ft_plan plan;
    tnf_error *e;
};

static tnf_status plan_anew(struct judging *j)
{
    return tnf_ft_plan_make(&j->plan, j->fit->catalog, j->fit->objects, j->e);
}

/* Drops the object (NULL: no-op) and plans again. */
static tnf_status drop_object(struct judging *j, const tnf_object *o, const char *why)
{
    if (!o || j->fit->objects[o - j->fit->catalog->objects].fate == TNF_DROPPED)
        return TNF_OK;
    j->fit->objects[o - j->fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
    return plan_anew(j);
}

static tnf_status drop_all(struct judging *j, const char *why)
{
    const tnf_catalog *c = j->fit->catalog;
    for (size_t i = 0; i < c->n; i++)
        if (j->fit->objects[i].fate != TNF_DROPPED)
            j->fit->objects[i] = (tnf_verdict) { TNF_DROPPED, why };
    return plan_anew(j);
}

/* A scan that looks at bytes. */
struct looking {
    bool found;
    uint32_t bucket;
    uint64_t rows;
};

static tnf_status look_for_nul(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct looking *l = ctx;
    (void)e;
    l->found = l->found || (n && memchr(bytes, 0, n));
    return TNF_OK;
}

static tnf_status look_for_counts(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct looking *l = ctx;
    const uint8_t *p = bytes;
    (void)e;
    for (size_t i = 0; i < n && !l->found; i++)
        l->found = p[i] != 0;
    return TNF_OK;
}

/* Blocks of a scan are multiples of 8 bytes. */
static tnf_status look_for_bad_rows(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct looking *l = ctx;
    const uint8_t *p = bytes;
    (void)e;
    for (size_t i = 0; i + 8 <= n; i += 8)
        l->found = l->found || tnf_le32(p + i) >= l->bucket || tnf_le32(p + i + 4) >= l->rows;
    return TNF_OK;
}

/* The file would hold nothing of an empty object. */
static void judge_empty(struct judging *j, const tnf_object *o, uint64_t columns)
{
    bool empty = o && o->shape[0] == 0 && (o->rank == 1 || o->shape[1] == columns);
    if (empty && j->fit->objects[o - j->fit->catalog->objects].fate == TNF_NATIVE)
        j->fit->objects[o - j->fit->catalog->objects] = (tnf_verdict) {
            TNF_TRANSFORMED, "it is empty, so it is missing when the file is read again"
        };
}

static tnf_status judge_strings(struct judging *j, const tnf_object *o)
{
    struct looking l = { 0 };
    if (!o)
        return TNF_OK;
    TNF_TRY(tnf_scan(tnf_object_part(o, "bytes"), look_for_nul, &l, j->e));
    return l.found ? drop_object(j, o, "a word holds a NUL, which ends words in fastText's files")
                   : TNF_OK;
}

/* There must be as many counts as words. If all are 0, the file has no counts. */
static tnf_status judge_counts(struct judging *j, const tnf_object *o, const tnf_object *of)
{
    struct looking l = { 0 };
    if (!o)
        return TNF_OK;
    if (!of || o->shape[0] != of->shape[0])
        return drop_object(j, o, "the number of counts differs from that of the words or labels");
    TNF_TRY(tnf_scan(&o->parts[0], look_for_counts, &l, j->e));
    if (!l.found)
        j->fit->objects[o - j->fit->catalog->objects] = (tnf_verdict) {
            TNF_TRANSFORMED, "all counts are 0, so they are missing when the file is read again"
        };
    return TNF_OK;
}

/* Are the norms equal to those that their codes select? */
static tnf_status norms_agree(const ft_matrix *m, bool *out, tnf_error *e)
{
    const tnf_part *norms = tnf_object_part(m->object, "norms");
    uint8_t book[FT_CENTROIDS * 4], codes[1024], values[4096];
    *out = m->norm_codes->shape[0] == m->object->shape[0];
    TNF_TRY(tnf_read_part(book, sizeof book, &m->norm_book->parts[0], 0, e));
    for (uint64_t at = 0, all = m->object->shape[0]; *out && at < all; at += sizeof codes) {
        size_t n = all - at < sizeof codes ? (size_t)(all - at) : sizeof codes;
        TNF_TRY(tnf_read_part(codes, n, &m->norm_codes->parts[0], at, e));
        TNF_TRY(tnf_read_part(values, 4 * n, norms, 4 * at, e));
        for (size_t i = 0; *out && i < n; i++)
            *out = memcmp(values + 4 * i, book + 4 * (size_t)codes[i], 4) == 0;
    }
    return TNF_OK;
}

static tnf_status judge_matrix(struct judging *j, ft_matrix *m)
{
    bool agree = true, quantized = m->object && m->object->layout != &tnf_layout_dense;
    bool norms = quantized && tnf_object_part(m->object, "norms");
    if (m->object && m->opaque)
        TNF_TRY(drop_object(j, m->opaque, "the same matrix also exists as a tensor"));
    if (!norms) {
        TNF_TRY(drop_object(j, m->norm_codes, "they belong to a quantized matrix with norms"));
        return drop_object(j, m->norm_book, "it belongs to a quantized matrix with norms");
    }
    if (m->norm_codes && m->norm_book)
        TNF_TRY(norms_agree(m, &agree, j->e));
    if (m->norm_codes && m->norm_book && agree)
        return TNF_OK;
    const char *why = "fastText quantizes norms, too: their codes and codebook are missing, or "
                      "belong to other norms";
    TNF_TRY(drop_object(j, m->norm_codes, why));
    TNF_TRY(drop_object(j, m->norm_book, why));
    return drop_object(j, m->object, why);
}

static tnf_status judge_pruned(struct judging *j)
{
    const tnf_object *o = j->plan.pruneidx;
    if (!o)
        return TNF_OK;
    if (!ft_is_quantized(&j->plan.input))
        return drop_object(j, o, "only a quantized model can be pruned");
    struct looking l = { .bucket = (uint32_t)j->plan.args[FT_BUCKET], .rows = o->shape[0] };
    TNF_TRY(tnf_scan(&o->parts[0], look_for_bad_rows, &l, j->e));
    return l.found ? drop_object(j, o, "it names buckets or rows that do not exist") : TNF_OK;
}

/* Do the rows of words already include those of their n-grams? Other tools write such rows. */
static bool is_folded(const tnf_catalog *c)
{
    const tnf_value *vocab = tnf_catalog_attr(c, "finalfusion.vocab"),
                    *rows = tnf_catalog_attr(c, FT_ATTR("rows"));
    return vocab && !tnf_value_is(vocab, "simple") && !tnf_value_is(rows, "raw");
}

static const char *why_not_together(const struct judging *j)
{
    const ft_plan *p = &j->plan;
    uint64_t rows, more = p->pruneidx ? p->pruneidx->shape[0] : (uint64_t)p->args[FT_BUCKET];
    uint64_t words = p->vocab ? p->vocab->shape[0] : 0;
    if (!p->input.object && !p->input.opaque)
        return "a fastText model needs a matrix named embeddings";
    if (is_folded(j->fit->catalog) &&
        !tnf_value_is(tnf_catalog_attr(j->fit->catalog, "finalfusion.vocab"), "fasttext"))
        return "fastText supports only its own kind of n-gram buckets: zTensor and safetensors "
               "keep others";
    if (is_folded(j->fit->catalog))
        return "the rows of words include those of their n-grams: use 'tenfold convert', which "
               "removes them (tnf_emb_convert)";
    if (words + (p->labels ? p->labels->shape[0] : 0) > INT32_MAX)
        return "there are more than 2^31 words";
    if (!tnf_ckd_add(&rows, words, more) || rows != p->input.rows)
        return "the number of rows is not the number of words plus the number of buckets "
               "(fasttext.bucket)";
    return NULL;
}

static void judge_attrs(struct judging *j)
{
    const tnf_attrs *attrs = &j->fit->catalog->attrs;
    ft_plan spare = j->plan;
    for (size_t i = 0; i < attrs->n; i++)
        if (!read_attr(&spare, &attrs->members[i]))
            j->fit->attrs[i] = (tnf_verdict) { TNF_DROPPED,
                                               "fastText's files have no place for this value" };
}

tnf_status tnf_ft_fits(tnf_fit *fit, tnf_error *e)
{
    struct judging j = { .fit = fit, .e = e };
    for (size_t i = 0; i < fit->catalog->n; i++) {
        if (fit->objects[i].fate == TNF_DROPPED)
            continue;
        const char *why = why_not(&fit->catalog->objects[i]);
        if (why)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, why };
    }
    TNF_TRY(plan_anew(&j));
    TNF_TRY(judge_strings(&j, j.plan.vocab));
    TNF_TRY(judge_strings(&j, j.plan.labels));
    TNF_TRY(judge_matrix(&j, &j.plan.input));
    TNF_TRY(judge_matrix(&j, &j.plan.output));
    TNF_TRY(judge_pruned(&j));
    if (ft_is_quantized(&j.plan.output) && !ft_is_quantized(&j.plan.input)) {
        static const char why[] = "the output can be quantized only if the input is";
        TNF_TRY(drop_object(&j, j.plan.output.norm_codes, why));
        TNF_TRY(drop_object(&j, j.plan.output.norm_book, why));
        TNF_TRY(drop_object(&j, j.plan.output.opaque, why));
        TNF_TRY(drop_object(&j, j.plan.output.object, why));
    }
    const char *why = why_not_together(&j);
    if (why)
        TNF_TRY(drop_all(&j, why));
    TNF_TRY(judge_counts(&j, j.plan.counts, j.plan.vocab));
    TNF_TRY(judge_counts(&j, j.plan.label_counts, j.plan.labels));
    judge_empty(&j, j.plan.vocab, 0);
    judge_empty(&j, j.plan.labels, 0);
    judge_empty(&j, j.plan.input.object, 0);
    judge_empty(&j, j.plan.output.object, j.plan.input.columns);
    judge_attrs(&j);
    return TNF_OK;
}
