/* SPDX-License-Identifier: MIT */
/* The map of `stat --html`: layers in natural order, and in each layer the roles of its tensors.
 * Boxes are placed in per cent, so the map fits any window and its letters keep their size. */
#include "stat_html.h"
#include <stdlib.h>
#include <string.h>

#define LAYERS 300u /* more boxes would be too small to distinguish */
#define TITLE  15.0 /* pixels above the roles of a layer */
#define HIGH   460.0
#define WIDE   1272.0 /* the largest width of the page, at which boxes are about square */

/* The roles of tensors, by words in their names; the first match counts. */
static const struct {
    const char *role, *words;
} roles[] = {
    { "norm", "norm ln_ ln1 ln2 layernorm batchnorm bn1 bn2" },
    { "embedding", "embed wte wpe tok_ token position vocab" },
    { "attention", "attn attention q_proj k_proj v_proj o_proj qkv query key_ value_proj c_attn" },
    { "feed-forward", "mlp ffn feed_forward fc1 fc2 gate_proj up_proj down_proj c_fc expert" },
    { "convolution", "conv downsample" },
    { "head", "head classifier score output logits" },
    { "other weights", "weight kernel w_" },
};
enum { ROLES = sizeof roles / sizeof *roles + 1 };

static bool has_word(tnf_str name, const char *words)
{
    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        for (size_t i = 0; i + n <= name.n; i++)
            if (!strncasecmp(name.p + i, p, n))
                return true;
        p += n;
    }
    return false;
}

static unsigned role_of(tnf_str name)
{
    for (unsigned i = 0; i + 1 < ROLES; i++)
        if (has_word(name, roles[i].words))
            return i;
    return ROLES - 1;
}

static const char *role_name(unsigned role)
{
    return role + 1 < ROLES ? roles[role].role : "other";
}

typedef struct map_layer {
    tnf_str name;
    uint64_t bytes, tensors, of_role[ROLES];
} map_layer;

static uint64_t take_number(tnf_str s, size_t *at)
{
    uint64_t n = 0;
    for (; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at)
        n = n < UINT64_MAX / 20 ? n * 10 + (uint64_t)(s.p[*at] - '0') : n;
    return n;
}

static bool is_digit(tnf_str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

/* Natural order: layers.2 comes before layers.10. */
static int natural_order(const void *a, const void *b)
{
    tnf_str x = ((const map_layer *)a)->name, y = ((const map_layer *)b)->name;
    size_t i = 0, k = 0;
    while (i < x.n && k < y.n) {
        if (is_digit(x, i) && is_digit(y, k)) {
            uint64_t m = take_number(x, &i), n = take_number(y, &k);
            if (m != n)
                return m < n ? -1 : 1;
        } else if (x.p[i] != y.p[k]) {
            return (unsigned char)x.p[i] < (unsigned char)y.p[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    return (x.n - i > y.n - k) - (x.n - i < y.n - k);
}

/* Makes one entry per tensor, then adds up the entries of each layer. */
static map_layer *make_layers(const stat_html *h, size_t *n)
{
    const tnf_object *o;
    size_t all = 0;
    map_layer *layers = calloc(h->in->info->objects + 1, sizeof *layers);
    *n = 0;
    for (size_t i = 0; layers && (o = tnf_at(h->in->file, i)); i++) {
        if (!glob_chosen(h->select, h->exclude, o->name))
            continue;
        uint64_t bytes = object_bytes(o);
        layers[all] = (map_layer) { stat_prefix(o->name, h->depth), bytes, 1, { 0 } };
        layers[all++].of_role[role_of(o->name)] = bytes;
    }
    if (layers)
        qsort(layers, all, sizeof *layers, natural_order);
    for (size_t i = 0; layers && i < all; i++) {
        map_layer one = layers[i];
        map_layer *last = *n ? &layers[*n - 1] : NULL;
        if (!last || last->name.n != one.name.n ||
            memcmp(last->name.p, one.name.p, one.name.n) != 0) {
            layers[(*n)++] = one;
            continue;
        }
        last->bytes += one.bytes;
        last->tensors++;
        for (size_t r = 0; r < ROLES; r++)
            last->of_role[r] += one.of_role[r];
    }
    return layers;
}

static int larger_bytes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Joins layers that are too small to be seen into one, the last. */
static void join_small(map_layer *layers, size_t *n)
{
    uint64_t *sizes = *n > LAYERS ? calloc(*n, sizeof *sizes) : NULL;
    if (!sizes)
        return;
    for (size_t i = 0; i < *n; i++)
        sizes[i] = layers[i].bytes;
    qsort(sizes, *n, sizeof *sizes, larger_bytes);
    uint64_t least = sizes[LAYERS];
    free(sizes);
    map_layer rest = { .name = { "all others", 10 } };
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (layers[i].bytes > least) {
            layers[kept++] = layers[i];
            continue;
        }
        rest.bytes += layers[i].bytes;
        rest.tensors += layers[i].tensors;
        for (size_t r = 0; r < ROLES; r++)
            rest.of_role[r] += layers[i].of_role[r];
    }
    layers[kept] = rest;
    *n = kept + 1;
}

static void put_place(FILE *to, const stat_box *b, double w, double h)
{
    fprintf(to, "style=\"left:%.3f%%;top:%.3f%%;width:%.3f%%;height:%.3f%%\"", 100 * b->x / w,
            100 * b->y / h, 100 * b->w / w, 100 * b->h / h);
}

static void put_title(FILE *to, tnf_str layer, const char *role, uint64_t bytes)
{
    char size[SIZE_TEXT];
    size_text(size, bytes);
    fputs(" title=\"", to);
    html_words(to, layer, 0);
    fprintf(to, "%s%s: %s\"", *role ? ", " : "", role, size);
}

/* "layers.0" of "model.layers.0": the pieces that distinguish a layer. */
static tnf_str last_pieces(tnf_str name)
{
    size_t at = name.n, pieces = 0;
    while (at > 0 && pieces < 2) {
        at--;
        pieces += name.p[at] == '.' || name.p[at] == '/';
    }
    at += pieces == 2;
    return (tnf_str) { name.p + at, name.n - at };
}

/* On a narrow screen, only the number of a layer is shown. */
static void put_label(FILE *to, tnf_str label)
{
    size_t number = label.n;
    while (number > 0 && is_digit(label, number - 1))
        number--;
    if (number == 0 || number == label.n) {
        html_words(to, label, 0);
        return;
    }
    fputs("<span class=\"w\">", to);
    html_words(to, (tnf_str) { label.p, number }, 0);
    fputs("</span>", to);
    html_words(to, (tnf_str) { label.p + number, label.n - number }, 0);
}

static void put_layer(FILE *to, const map_layer *l, const stat_box *b)
{
    double weights[ROLES];
    stat_box boxes[ROLES], inside = { 0, 0, b->w, b->h };
    bool titled = b->h > 2 * TITLE && b->w > 30;
    fputs("<div class=\"layer\" ", to);
    put_place(to, b, WIDE, HIGH);
    put_title(to, l->name, "", l->bytes);
    putc('>', to);
    if (titled) {
        fputs("<b>", to);
        put_label(to, last_pieces(l->name));
        fputs("</b>", to);
        inside.y = TITLE;
        inside.h -= TITLE;
    }
    for (size_t r = 0; r < ROLES; r++)
        weights[r] = (double)l->of_role[r];
    stat_strips(boxes, weights, ROLES, inside);
    for (unsigned r = 0; r < ROLES; r++) {
        if (boxes[r].w <= 0 || boxes[r].h <= 0)
            continue;
        fprintf(to, "<div class=\"role b%u\" ", r);
        put_place(to, &boxes[r], b->w, b->h);
        put_title(to, l->name, role_name(r), l->of_role[r]);
        bool lettered = boxes[r].w > 60 && boxes[r].h > 15;
        fprintf(to, ">%s</div>", lettered ? role_name(r) : "");
    }
    fputs("</div>\n", to);
}

static void put_legend(FILE *to, const map_layer *layers, size_t n)
{
    fputs("<ul class=\"legend\">\n", to);
    for (unsigned r = 0; r < ROLES; r++) {
        uint64_t bytes = 0;
        char size[SIZE_TEXT];
        for (size_t i = 0; i < n; i++)
            bytes += layers[i].of_role[r];
        size_text(size, bytes);
        if (bytes)
            fprintf(to, "<li><i class=\"b%u\"></i><b>%s</b> %s</li>\n", r, role_name(r), size);
    }
    fputs("</ul>\n<p>Areas are bytes. The role of a tensor is guessed from its name.</p>\n", to);
}

void stat_map(const stat_html *h)
{
    size_t n;
    map_layer *layers = make_layers(h, &n);
    if (!layers)
        return;
    join_small(layers, &n);
    double *weights = calloc(n + 1, sizeof *weights);
    stat_box *boxes = calloc(n + 1, sizeof *boxes);
    for (size_t i = 0; weights && i < n; i++)
        weights[i] = (double)layers[i].bytes;
    if (weights && boxes) {
        stat_strips(boxes, weights, n, (stat_box) { 0, 0, WIDE, HIGH });
        fputs("<h2>Layers</h2>\n<div class=\"map\">\n", h->to);
        for (size_t i = 0; i < n; i++)
            if (boxes[i].w > 0 && boxes[i].h > 0)
                put_layer(h->to, &layers[i], &boxes[i]);
        fputs("</div>\n", h->to);
        put_legend(h->to, layers, n);
    }
    free(weights);
    free(boxes);
    free(layers);
}
