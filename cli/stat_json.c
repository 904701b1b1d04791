/* SPDX-License-Identifier: MIT */
/* `tenfold stat --json`. */
#include "stat.h"

static void json_sums(json *j, const char *what, const stat_sum *sums, size_t n)
{
    json_open(j, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(j, '{');
        json_key(j, what);
        json_str(j, sums[i].name);
        json_key(j, "tensors");
        json_uint(j, sums[i].tensors);
        json_key(j, "elements");
        json_uint(j, sums[i].elements);
        json_key(j, "nbytes");
        json_uint(j, sums[i].bytes);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void begin_json(void *ctx, const stat_sums *sums)
{
    stat_json *s = ctx;
    json *j = &s->json;
    json_open(j, '{');
    json_key(j, "file");
    json_text(j, s->in->path);
    json_key(j, "format");
    json_text(j, s->in->info->format);
    json_key(j, "nbytes");
    json_uint(j, sums->bytes);
    json_key(j, "dtypes");
    json_sums(j, "dtype", sums->types, sums->ntypes);
    json_key(j, "layers");
    json_sums(j, "prefix", sums->groups, sums->ngroups);
    if (!s->values)
        return;
    json_key(j, "tensors");
    json_open(j, '[');
}

static void put_figures(json *j, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    bool any = c->elements > c->nan + c->inf;
    json_counts(j, s->object, c);
    json_key(j, "std");
    if (any)
        json_f64(j, c->deviation);
    else
        json_null(j);
    json_key(j, "histogram");
    json_open(j, '[');
    for (size_t i = 0; any && i < s->nbins; i++)
        json_uint(j, s->bins[i]);
    json_close(j, ']');
}

static void tensor_json(void *ctx, const tnf_stat *s)
{
    json *j = &((stat_json *)ctx)->json;
    const tnf_object *o = s->object;
    json_line(j);
    json_open(j, '{');
    json_tensor_head(j, o);
    json_key(j, "layout");
    json_text(j, tnf_layout_id(o->layout));
    json_key(j, "nbytes");
    json_uint(j, object_bytes(o));
    if (s->numbers)
        put_figures(j, s);
    json_close(j, '}');
}

static void end_json(void *ctx)
{
    stat_json *s = ctx;
    if (s->values)
        json_close(&s->json, ']');
    json_close(&s->json, '}');
    putchar('\n');
}

const stat_view stat_view_json = { begin_json, tensor_json, end_json, 32 };
