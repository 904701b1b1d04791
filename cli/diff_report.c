/* SPDX-License-Identifier: MIT */
#include "diff_report.h"
#include "array.h"
#include "table.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_SHOWN 60u /* characters of an attribute */

static const char *const kinds[] = {
    [TNF_DIFF_ONLY_A] = "only_a",       [TNF_DIFF_ONLY_B] = "only_b", [TNF_DIFF_LAYOUT] = "layout",
    [TNF_DIFF_SHAPE] = "shape",         [TNF_DIFF_DTYPE] = "dtype",   [TNF_DIFF_PARTS] = "part",
    [TNF_DIFF_ORDER] = "order",         [TNF_DIFF_VALUES] = "values", [TNF_DIFF_EXTRA] = "extra",
    [TNF_DIFF_ATTRIBUTE] = "attribute",
};

bool diff_report_begin(diff_report *r, const cli_state *cli, bool as_json)
{
    *r = (diff_report) { .cli = cli, .as_json = as_json };
    r->json.to = open_memstream(&r->text, &r->n);
    return r->json.to != NULL;
}

void diff_report_end(diff_report *r)
{
    if (r->json.to)
        fclose(r->json.to);
    r->json.to = NULL;
    free(r->text);
    r->text = NULL;
    diff_layers_free(&r->layers);
}

/* The index of the first different element. Returns false if only a flat position is known: for
 * parts of layouts, and for values that are not numbers. */
static bool index_of(uint64_t *out, const tnf_difference *d)
{
    uint64_t at = d->values->first;
    if (!is_dense(d->a) || !d->values->numbers)
        return false;
    for (uint32_t k = d->a->rank; k-- > 0;) {
        out[k] = d->a->shape[k] ? at % d->a->shape[k] : 0;
        at /= d->a->shape[k] ? d->a->shape[k] : 1;
    }
    return true;
}

static bool has_counts(const tnf_difference *d)
{
    return d->values->different > 0;
}

/* ------------------------------------------------------------------- JSON */

static void json_shape(json *j, const uint64_t *shape, uint32_t rank)
{
    json_open(j, '[');
    for (uint32_t k = 0; k < rank; k++)
        json_uint(j, shape[k]);
    json_close(j, ']');
}

static void json_object(json *j, const tnf_object *o)
{
    if (!o)
        return;
    json_key(j, "dtype");
    json_text(j, object_type(o)->id);
    json_key(j, "shape");
    json_shape(j, o->shape, o->rank);
    json_key(j, "layout");
    json_text(j, tnf_layout_id(o->layout));
}

static void json_element(json *j, const tnf_type *type, const uint8_t bits[16], bool number)
{
    element_run one;
    elements_begin(&one, number ? type : tnf_type_of(TNF_U8), bits, 1);
    element_json(&one, 0, j);
}

static void json_first(json *j, const tnf_difference *d)
{
    const tnf_value_difference *v = d->values;
    if (!d->a)
        return;
    uint64_t *index = calloc(d->a->rank + 1u, sizeof *index);
    json_key(j, "first");
    if (index && index_of(index, d))
        json_shape(j, index, d->a->rank);
    else
        json_uint(j, v->first);
    free(index);
    json_key(j, "a");
    json_element(j, d->a_part->type, v->a, v->numbers);
    json_key(j, "b");
    json_element(j, d->b_part->type, v->b, v->numbers);
}

static void json_values(json *j, const tnf_difference *d)
{
    const tnf_value_difference *v = d->values;
    json_key(j, "part");
    json_str(j, d->key);
    json_key(j, "elements");
    json_uint(j, v->elements);
    json_key(j, "different");
    json_uint(j, v->different);
    json_key(j, "nonfinite");
    json_uint(j, v->nonfinite);
    if (has_counts(d))
        json_first(j, d);
    if (!v->numbers)
        return;
    const double numbers[] = { v->max_abs, v->max_rel, v->mean_abs, v->nmse, v->cosine };
    static const char *const names[] = { "max_abs", "max_rel", "mean_abs", "nmse", "cosine" };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(j, names[i]);
        json_f64(j, numbers[i]);
    }
}

/* Describes one of the two sides, if it has the item. */
static void json_side(json *j, const tnf_difference *d, const char *side, const tnf_object *o,
                      const tnf_part *part, const tnf_value *value)
{
    bool of_object = d->kind == TNF_DIFF_SHAPE || d->kind == TNF_DIFF_LAYOUT ||
                     d->kind == TNF_DIFF_ORDER;
    if (of_object ? !o : d->kind == TNF_DIFF_ATTRIBUTE ? !value : !part)
        return;
    json_key(j, side);
    if (d->kind == TNF_DIFF_SHAPE && o)
        json_shape(j, o->shape, o->rank);
    else if (d->kind == TNF_DIFF_LAYOUT && o)
        json_text(j, tnf_layout_id(o->layout));
    else if (d->kind == TNF_DIFF_ORDER && o)
        json_text(j, o->order == TNF_ORDER_F ? "F" : "C");
    else if (d->kind == TNF_DIFF_ATTRIBUTE)
        json_value(j, value);
    else if (d->kind == TNF_DIFF_DTYPE && part)
        json_text(j, part->type->id);
    else if (part)
        json_uint(j, part->nbytes);
}

static void add_json(json *j, const tnf_difference *d)
{
    const tnf_object *o = d->a ? d->a : d->b;
    json_line(j);
    json_open(j, '{');
    json_key(j, "kind");
    json_text(j, kinds[d->kind]);
    if (o) {
        json_key(j, "name");
        json_str(j, o->name);
    }
    if (d->a && d->b &&
        (d->a->name.n != d->b->name.n || memcmp(d->a->name.p, d->b->name.p, d->a->name.n) != 0)) {
        json_key(j, "name_b");
        json_str(j, d->b->name);
    }
    if (d->kind >= TNF_DIFF_ATTRIBUTE || d->kind == TNF_DIFF_PARTS || d->kind == TNF_DIFF_DTYPE) {
        json_key(j, d->kind >= TNF_DIFF_ATTRIBUTE ? "key" : "part");
        json_str(j, d->key);
    }
    if (d->kind <= TNF_DIFF_ONLY_B)
        json_object(j, o);
    else if (d->kind == TNF_DIFF_VALUES)
        json_values(j, d);
    if (d->kind > TNF_DIFF_ONLY_B && d->kind != TNF_DIFF_VALUES) {
        json_side(j, d, "a", d->a, d->a_part, d->a_value);
        json_side(j, d, "b", d->b, d->b_part, d->b_value);
    }
    json_close(j, '}');
}

static void print_json(diff_report *r, const input *a, const input *b,
                       const tnf_diff_result *result)
{
    const uint64_t counts[] = {
        result->tensors, result->tensors - result->close - result->different,
        result->close,   result->different,
        result->only_a,  result->only_b
    };
    static const char *const names[] = {
        "both", "equal", "close", "different", "only_a", "only_b"
    };
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "a");
    json_text(&j, a->path);
    json_key(&j, "b");
    json_text(&j, b->path);
    json_key(&j, "same");
    json_bool(&j, result->same);
    json_key(&j, "tensors");
    json_open(&j, '{');
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_key(&j, names[i]);
        json_uint(&j, counts[i]);
    }
    json_close(&j, '}');
    json_key(&j, "differences");
    json_open(&j, '[');
    fwrite(r->text, 1, r->n, stdout);
    json_close(&j, ']');
    if (r->summary) {
        json_key(&j, "layers");
        if (!diff_layers_print(&r->layers, r->cli, a->file, &j))
            json_null(&j);
    }
    json_close(&j, '}');
    putchar('\n');
}

/* ------------------------------------------------------------------- text */

static void put_shape(FILE *to, const uint64_t *shape, uint32_t rank)
{
    putc('[', to);
    for (uint32_t k = 0; k < rank; k++)
        fprintf(to, "%s%" PRIu64, k ? ", " : "", shape[k]);
    putc(']', to);
}

static void put_first(FILE *to, const tnf_difference *d)
{
    const tnf_value_difference *v = d->values;
    if (!d->a)
        return;
    uint64_t *index = calloc(d->a->rank + 1u, sizeof *index);
    char text[ELEMENT_TEXT];
    element_run one;
    fputs(", first at ", to);
    if (index && index_of(index, d))
        put_shape(to, index, d->a->rank);
    else
        fprintf(to, "[%" PRIu64 "]", v->first);
    free(index);
    for (int side = 0; side < 2; side++) {
        const tnf_type *type = (side ? d->b_part : d->a_part)->type;
        elements_begin(&one, v->numbers ? type : tnf_type_of(TNF_U8), side ? v->b : v->a, 1);
        element_text(&one, 0, text);
        fprintf(to, "%s%s", side ? " / " : ": ", text);
    }
}

static void put_values(FILE *to, const tnf_difference *d)
{
    const tnf_value_difference *v = d->values;
    if (!has_counts(d)) {
        fputs("other bits", to); /* not counted, or after the last element */
        return;
    }
    put_grouped(to, v->different);
    fputs(" of ", to);
    put_grouped(to, v->elements);
    fputs(v->numbers ? " differ" : " bytes differ", to);
    put_first(to, d);
    if (v->numbers)
        fprintf(to, "; max abs %.4g, max rel %.4g, mean abs %.4g, NMSE %.4g", v->max_abs,
                v->max_rel, v->mean_abs, v->nmse);
    if (v->numbers && !isnan(v->cosine))
        fprintf(to, ", cosine %.6g", v->cosine);
    if (v->nonfinite)
        fprintf(to, ", %" PRIu64 " not finite", v->nonfinite);
}

static void put_attribute(FILE *to, const tnf_value *value)
{
    char *text = NULL;
    size_t n = 0;
    json j = { value ? open_memstream(&text, &n) : NULL, false };
    if (j.to) {
        json_value(&j, value);
        fclose(j.to);
    }
    size_t shown = shown_bytes(text, n, VALUE_SHOWN);
    if (text)
        put_safe(to, text, shown, false);
    else
        fputs("none", to);
    if (shown < n)
        fprintf(to, "... (%zu bytes)", n);
    free(text);
}

static void put_part_size(FILE *to, const tnf_part *part)
{
    if (!part) {
        fputs("none", to);
        return;
    }
    put_grouped(to, part->nbytes);
    fputs(" bytes", to);
}

static void put_object_side(FILE *to, tnf_difference_kind kind, const tnf_object *o)
{
    if (kind == TNF_DIFF_LAYOUT)
        fputs(tnf_layout_id(o->layout), to);
    else if (kind == TNF_DIFF_SHAPE)
        put_shape(to, o->shape, o->rank);
    else
        putc(o->order == TNF_ORDER_F ? 'F' : 'C', to);
}

static void put_side(FILE *to, tnf_difference_kind kind, const tnf_object *o, const tnf_part *part,
                     const tnf_value *value)
{
    bool of_object = kind == TNF_DIFF_SHAPE || kind == TNF_DIFF_LAYOUT || kind == TNF_DIFF_ORDER;
    if (of_object && o)
        put_object_side(to, kind, o);
    else if (kind == TNF_DIFF_ATTRIBUTE)
        put_attribute(to, value);
    else if (kind == TNF_DIFF_DTYPE && part)
        fputs(part->type->id, to);
    else
        put_part_size(to, part);
}

/* The subject of the line: a tensor, a part of it, an attribute of it or of the file, an extra. */
static void put_subject(FILE *to, const tnf_difference *d)
{
    const tnf_object *o = d->a ? d->a : d->b;
    bool keyed = d->kind >= TNF_DIFF_ATTRIBUTE || d->kind == TNF_DIFF_PARTS || !o;
    if (o)
        put_name(to, o->name);
    if (o && !keyed && d->key.n && !(is_dense(o) && d->key.n == 4))
        keyed = true;
    if (keyed) {
        fputs(o ? d->kind == TNF_DIFF_ATTRIBUTE ? ": " : "#" : "", to);
        put_name(to, d->key);
    }
}

static void add_text(const diff_report *r, const tnf_difference *d)
{
    static const char *const titles[] = {
        [TNF_DIFF_ONLY_A] = "only in A",
        [TNF_DIFF_ONLY_B] = "only in B",
    };
    FILE *to = r->json.to;
    const tnf_object *o = d->a ? d->a : d->b;
    fprintf(to, "%s%-9s%s  ", paint_code(r->cli, PAINT_BOLD),
            d->kind <= TNF_DIFF_ONLY_B ? titles[d->kind] : kinds[d->kind],
            paint_code(r->cli, PAINT_OFF));
    put_subject(to, d);
    fputs("  ", to);
    if (d->kind <= TNF_DIFF_ONLY_B && o) {
        fprintf(to, "%s ", object_kind(o));
        put_shape(to, o->shape, o->rank);
    } else if (d->kind == TNF_DIFF_VALUES) {
        put_values(to, d);
    } else {
        put_side(to, d->kind, d->a, d->a_part, d->a_value);
        fputs(" / ", to);
        put_side(to, d->kind, d->b, d->b_part, d->b_value);
    }
    putc('\n', to);
}

static void put_count(FILE *to, uint64_t n, const char *what, const char **between)
{
    if (n == 0)
        return;
    fputs(*between, to);
    put_grouped(to, n);
    fprintf(to, " %s", what);
    *between = ", ";
}

static void print_text(diff_report *r, const input *a, const tnf_diff_result *result)
{
    const char *between = "";
    wrapped_text f;
    if (r->summary && !(result->same && !result->close) &&
        !diff_layers_print(&r->layers, r->cli, a->file, NULL))
        r->no_memory = true;
    put_wrapped(stdout, r->text, r->n, 4);
    if (result->same && !result->close) {
        printf("the same: ");
        put_grouped(stdout, result->tensors);
        puts(result->tensors == 1 ? " tensor" : " tensors");
        return;
    }
    FILE *to = wrap_begin(&f, stdout);
    put_count(to, result->tensors - result->different - result->close,
              result->tensors - result->different - result->close == 1 ? "tensor equal"
                                                                       : "tensors equal",
              &between);
    put_count(to, result->close,
              result->close == 1 ? "tensor close enough" : "tensors close enough", &between);
    put_count(to, result->different, "different", &between);
    put_count(to, result->only_a, "only in A", &between);
    put_count(to, result->only_b, "only in B", &between);
    put_count(to, result->attributes, result->attributes == 1 ? "attribute" : "attributes",
              &between);
    put_count(to, result->extras, result->extras == 1 ? "extra" : "extras", &between);
    putc('\n', to);
    wrap_end(&f, 0);
}

/* ----------------------------------------------------------------- report */

void diff_report_add(diff_report *r, const tnf_difference *d)
{
    if (d->kind == TNF_DIFF_ORDER && !r->cli->verbose)
        return;
    if (r->summary && !diff_layers_add(&r->layers, d))
        r->no_memory = true;
    if (r->summary && !r->as_json && (d->a || d->b))
        return;
    if (r->as_json)
        add_json(&r->json, d);
    else
        add_text(r, d);
}

int diff_report_print(diff_report *r, const input *a, const input *b, const tnf_diff_result *result)
{
    fflush(r->json.to);
    if (r->as_json)
        print_json(r, a, b, result);
    else
        print_text(r, a, result);
    return r->no_memory ? memory_error() : EXIT_DONE;
}
