/* SPDX-License-Identifier: MIT */
/* tenfold cat: the values of tensors. */
#include "array.h"
#include "cat_export.h"
#include "cat_quantized.h"
#include "input.h"
#include "suggest.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_FIRST ((uint64_t)16 << 20)
#define SLICE_MOST ((uint64_t)4 << 30)

typedef struct options {
    input_options in;
    bool json, raw, npy, csv, all;
    opt_list select, exclude;
} options;

/* The meaning of a NAME[SLICE] argument. */
typedef struct target {
    const tnf_object *object;
    const tnf_part *part; /* of NAME#ROLE; NULL: the object */
    char *slice;          /* or NULL; points into the argument's copy */
} target;

/* ----------------------------------------------------------------- naming */

/* Tries "NAME", then "NAME#ROLE". */
static bool find_plain(target *t, const tnf_file *file, const char *name, size_t n)
{
    t->object = tnf_find_n(file, name, n);
    t->part = NULL;
    for (size_t i = n; !t->object && i-- > 0;)
        if (name[i] == '#') {
            char role[64];
            const tnf_object *o = tnf_find_n(file, name, i);
            snprintf(role, sizeof role, "%.*s", (int)(n - i - 1 < 63 ? n - i - 1 : 63),
                     name + i + 1);
            t->part = o ? tnf_object_part(o, role) : NULL;
            t->object = t->part ? o : NULL;
        }
    return t->object != NULL;
}

/* The whole text is tried as a name first, so that names with brackets or '#' can be given. */
static bool find_text(target *t, const tnf_file *file, char *text, size_t n)
{
    if (find_plain(t, file, text, n))
        return true;
    char *bracket = n > 0 && text[n - 1] == ']' ? strrchr(text, '[') : NULL;
    if (!bracket || !find_plain(t, file, text, (size_t)(bracket - text)))
        return false;
    text[n - 1] = '\0';
    t->slice = bracket + 1;
    return true;
}

/* Tries the name as given, then with the escapes that `ls` prints. */
static bool find_target(target *t, const tnf_file *file, char *text)
{
    return find_text(t, file, text, strlen(text)) || find_text(t, file, text, unescape_text(text));
}

static void list_near(const suggestion *near)
{
    for (size_t i = 0; i < near->n; i++) {
        fputs(i > 0 ? ", '" : "; did you mean '", stderr);
        put_name(stderr, near->near[i]);
        putc('\'', stderr);
    }
    fputs(near->n > 0 ? "?\n" : "\n", stderr);
}

/* The file of the tensor is missing; reading the tensor reports which one. */
static int tell_unreadable(const input *in, const tnf_object *o)
{
    tnf_error error = { .offset = TNF_NO_OFFSET };
    return tnf_read(NULL, 0, o, &error) == TNF_OK ? EXIT_DONE : file_error(in->name, &error);
}

/* Reports an unknown part or tensor, with similar names. */
static int not_found(const input *in, const char *arg)
{
    const tnf_object *o;
    suggestion near;
    size_t n = strlen(arg);
    const char *bracket = n > 0 && arg[n - 1] == ']' ? strrchr(arg, '[') : NULL;
    const char *hash = strrchr(arg, '#');
    o = hash ? tnf_find_n(in->file, arg, (size_t)(hash - arg)) : NULL;
    if (o && o->nparts == 0 && tnf_missing_file(o))
        return tell_unreadable(in, o);
    fputs("tenfold: ", stderr);
    put_safe(stderr, in->name, strlen(in->name), false);
    if (o) {
        fputs(": '", stderr);
        put_name(stderr, o->name);
        fputs("' has no part '", stderr);
        put_safe(stderr, hash + 1, strlen(hash + 1), false);
        fputs("'; its parts are", stderr);
        for (uint16_t i = 0; i < o->nparts; i++)
            fprintf(stderr, "%s '%s'", i > 0 ? "," : "", o->parts[i].role);
        putc('\n', stderr);
        return EXIT_USAGE;
    }
    fputs(": no tensor '", stderr);
    put_safe(stderr, arg, strlen(arg), false);
    putc('\'', stderr);
    suggest_begin(&near, arg, bracket ? (size_t)(bracket - arg) : n);
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++)
        suggest_offer(&near, o->name.p, o->name.n);
    list_near(&near);
    return EXIT_USAGE;
}

/* ---------------------------------------------------------------- writing */

static tnf_status raw_failed(tnf_error *error)
{
    tnf_status status = cat_fail(error, TNF_EIO, "standard output: %s", strerror(errno));
    error->sys = errno;
    return status;
}

/* Appends bits to an incomplete byte. It is only needed for types of less than a byte. */
typedef struct bit_joiner {
    unsigned char left;
    unsigned nleft;
} bit_joiner;

static bool join_bits(bit_joiner *b, unsigned char *bytes, size_t n, uint64_t bits)
{
    size_t out = 0;
    if (b->nleft == 0 && bits % 8 == 0)
        return fwrite(bytes, 1, n, stdout) == n;
    for (size_t i = 0; i < n; i++) {
        unsigned take = bits >= 8 ? 8 : (unsigned)bits;
        unsigned byte = bytes[i] & (0xffu >> (8 - take));
        unsigned both = b->left | byte << b->nleft;
        bits -= take;
        b->nleft += take;
        if (b->nleft >= 8) {
            bytes[out++] = (unsigned char)both;
            both >>= 8;
            b->nleft -= 8;
        }
        b->left = (unsigned char)both;
    }
    return fwrite(bytes, 1, out, stdout) == out;
}

static tnf_status put_block(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n ? TNF_OK : raw_failed(error);
}

/* Writes all bytes of a part as they are: for an unknown type, or for a complete tensor. */
static tnf_status as_bytes(const tnf_part *part, tnf_error *error)
{
    return tnf_scan(part, put_block, NULL, error);
}

static bool is_whole(const view *v)
{
    if (v->object.order == TNF_ORDER_F && v->object.rank > 1)
        return false;
    for (uint32_t d = 0; d < v->object.rank; d++)
        if (v->slices[d].count != v->object.shape[d] || v->slices[d].step != 1)
            return false;
    return true;
}

static tnf_status as_raw(const view *v, tnf_error *error)
{
    if (is_whole(v))
        return as_bytes(v->object.parts, error);
    blocks b;
    bit_joiner joiner = { 0, 0 };
    tnf_status status = blocks_begin(&b, v, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0)
        if (!join_bits(&joiner, b.bytes, b.n, (uint64_t)b.elements * v->type->bits))
            status = raw_failed(error);
    if (status == TNF_OK && joiner.nleft > 0 && putchar(joiner.left) == EOF)
        status = raw_failed(error);
    blocks_end(&b);
    return status;
}

static tnf_status json_numbers(json *j, const view *v, tnf_error *error)
{
    blocks b;
    element_run e;
    tnf_status status = blocks_begin(&b, v, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0) {
        elements_of(&e, v, b.bytes, b.elements);
        for (size_t i = 0; i < b.elements; i++)
            element_json(&e, i, j);
    }
    blocks_end(&b);
    return status;
}

static tnf_status as_json(const view *v, tnf_error *error)
{
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "name");
    json_str(&j, v->object.name);
    json_key(&j, "dtype");
    json_text(&j, v->type->id);
    json_key(&j, "shape");
    json_open(&j, '[');
    for (uint32_t i = 0; i < v->rank - is_words(v); i++)
        json_uint(&j, v->shape[i]);
    json_close(&j, ']');
    json_key(&j, "values");
    json_open(&j, '[');
    tnf_status status = is_strings(&v->object) ? json_strings(&j, v, error)
                        : is_words(v)          ? json_texts(&j, v, error)
                                               : json_numbers(&j, v, error);
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
    return status;
}

/* ---------------------------------------------------------------- command */

/* Can the target be shown in the requested way? */
static tnf_status check_target(const target *t, const view *v, const options *o, tnf_error *error)
{
    const char *layout = tnf_layout_id(t->object->layout);
    bool strings = !t->part && is_strings(t->object);
    if (strings && o->raw)
        return cat_fail(error, TNF_EINVAL,
                        "strings have no raw elements; use '#bytes' and '#offsets'");
    if (!t->part && !strings && !is_dense(t->object))
        return cat_fail(error, TNF_EUNSUPPORTED,
                        "this version cannot show tensors of the layout %s; use one of its parts, "
                        "such as '#%s'",
                        layout, t->object->nparts ? t->object->parts[0].role : "data");
    if (!o->raw && !strings && !type_readable(v->type))
        return cat_fail(error, TNF_EUNSUPPORTED,
                        "elements of the unknown type '%s' cannot be shown; use --raw to write "
                        "their bytes",
                        v->type->id);
    return TNF_OK;
}

static tnf_status show_target(const target *t, const view *v, const options *o, tnf_error *error)
{
    tnf_status status = check_target(t, v, o, error);
    if (status != TNF_OK)
        return status;
    if (o->raw)
        return as_raw(v, error);
    if (o->json)
        return as_json(v, error);
    if (o->csv)
        return export_csv(v, error);
    if (o->npy)
        return export_array(v, "npy" /* an extension */, error);
    if (is_strings(&v->object))
        return put_strings(stdout, v, o->all, error);
    return is_words(v) ? put_words(stdout, v, o->all, error) : put_array(stdout, v, o->all, error);
}

static tnf_status take_nothing(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    (void)ctx, (void)bytes, (void)n, (void)error;
    return TNF_OK;
}

/* Some formats check a digest only when a tensor is read completely, but printing reads it row by
 * row. So a small tensor with a digest is read once before. */
static tnf_status read_whole(const tnf_part *part, tnf_error *error)
{
    bool first = part->digest && part->nbytes <= READ_FIRST;
    return first || part->flags & TNF_PART_UNREADABLE ? tnf_scan(part, take_nothing, NULL, error)
                                                      : TNF_OK;
}

/* A small slice of a tensor that is too large to read is allowed. A large one fails like the
 * tensor. */
static tnf_status check_slice(const view *v, const tnf_part *part, tnf_error *error)
{
    bool much = part->flags & TNF_PART_UNREADABLE &&
                tnf_slice_bytes(&v->object, v->slices) > SLICE_MOST;
    return much ? read_whole(part, error) : TNF_OK;
}

static tnf_status cat_target(const target *t, const options *o, tnf_error *error)
{
    view v = { 0 };
    const tnf_part *part = t->part ? t->part : t->object->parts;
    bool single = t->part || t->object->nparts == 1;
    if (o->raw && single && part->type->bits == 0 && !t->slice)
        return as_bytes(part, error);
    tnf_status status = t->part ? view_part(&v, t->object, t->part, error)
                                : view_object(&v, t->object, error);
    if (status == TNF_OK && t->slice) {
        status = view_slice(&v, t->slice, error);
        if (status == TNF_OK && single)
            status = check_slice(&v, part, error);
    } else if (status == TNF_OK && single) {
        status = read_whole(part, error);
    }
    if (status == TNF_OK)
        status = show_target(t, &v, o, error);
    view_free(&v);
    return status;
}

/* A quantized matrix is shown as the numbers that it represents. */
static tnf_status cat_any(const target *t, const options *o, tnf_error *error)
{
    if (t->part || !is_quantized(t->object))
        return cat_target(t, o, error);
    quantized q;
    tnf_status status = quantized_open(&q, t->object, error);
    if (status == TNF_OK) {
        tnf_object dense = *q.object;
        dense.name = t->object->name;
        target shown = { &dense, NULL, t->slice };
        status = cat_target(&shown, o, error);
    }
    quantized_close(&q);
    return status;
}

/* The request of the command line. */
typedef struct call {
    const input *in;
    const options *options;
    bool several; /* more than one tensor */
    size_t shown, excluded;
} call;

static bool is_excluded(const call *c, const tnf_object *o)
{
    return c->options->exclude.n && glob_any(&c->options->exclude, o->name);
}

static bool for_people(const options *o)
{
    return !o->json && !o->raw && !o->csv && !o->npy;
}

static int show_one(call *c, const target *t)
{
    tnf_error error;
    if (!t->part && tnf_missing_file(t->object))
        return tell_unreadable(c->in, t->object);
    if (c->several && for_people(c->options)) {
        char shape[SHAPE_TEXT];
        shape_text(shape, t->object);
        fputs(c->shown ? "\n" : "", stdout);
        put_name(stdout, t->object->name);
        printf("  %s %s\n", object_kind(t->object), shape);
    }
    c->shown++;
    return cat_any(t, c->options, &error) == TNF_OK ? EXIT_DONE : file_error(c->in->name, &error);
}

/* All tensors that match a pattern, in file order. */
static int show_matches(call *c, const char *glob)
{
    const tnf_object *o;
    size_t before = c->shown + c->excluded;
    int worst = EXIT_DONE;
    for (size_t i = 0; (o = tnf_at(c->in->file, i)); i++)
        if (tnf_glob_match(glob, o->name)) {
            if (is_excluded(c, o)) {
                c->excluded++;
                continue;
            }
            int code = show_one(c, &(target) { .object = o });
            worst = code > worst ? code : worst;
            c->shown += code != EXIT_DONE;
        }
    return c->shown + c->excluded == before ? not_found(c->in, glob) : worst;
}

static int show_argument(call *c, const char *arg)
{
    target t = { 0 };
    char *text = strdup(arg);
    if (!text)
        return memory_error();
    bool found = find_target(&t, c->in->file, text);
    bool left_out = found && is_excluded(c, t.object);
    c->excluded += left_out;
    int code = left_out              ? EXIT_DONE
               : found               ? show_one(c, &t)
               : strpbrk(arg, "*?[") ? show_matches(c, arg)
                                     : not_found(c->in, arg);
    free(text);
    return code;
}

/* The number of tensors that the arguments select. */
static size_t count_targets(const call *c, const char *const *args, size_t nargs)
{
    size_t n = 0;
    for (size_t i = 0; i < nargs; i++) {
        target t = { 0 };
        const tnf_object *o;
        char *text = strdup(args[i]);
        bool found = text && find_target(&t, c->in->file, text);
        n += found ? !is_excluded(c, t.object) : !strpbrk(args[i], "*?[");
        for (size_t k = 0; !found && (o = tnf_at(c->in->file, k)); k++)
            n += tnf_glob_match(args[i], o->name) && strpbrk(args[i], "*?[") && !is_excluded(c, o);
        free(text);
    }
    return n;
}

static int cat_args(call *c, const char *const *args, size_t n)
{
    const options *o = c->options;
    int worst = EXIT_DONE;
    c->several = n > 1 || count_targets(c, args, n) > 1;
    if (c->several && (o->csv || o->npy) && count_targets(c, args, n) > 1)
        return usage_error("cat: --csv and --npy take a single tensor");
    for (size_t i = 0; i < n; i++) {
        int code = show_argument(c, args[i]);
        worst = code > worst ? code : worst;
    }
    return worst == EXIT_DONE && c->shown == 0 && c->excluded
               ? nothing_selected(c->in->name, n, o->exclude.n)
               : worst;
}

/* Shows the names and patterns after the file and those of --select; all tensors if there is only
 * --exclude. */
static int cat_all(call *c, int argc, char **argv)
{
    const opt_list *select = &c->options->select;
    size_t n = 0;
    const char **args = calloc((size_t)argc + select->n + 1, sizeof *args);
    if (!args)
        return memory_error();
    for (int i = 1; i < argc; i++)
        args[n++] = argv[i];
    for (size_t i = 0; i < select->n; i++)
        args[n++] = select->items[i];
    if (n == 0)
        args[n++] = "*";
    int code = cat_args(c, args, n);
    free(args);
    return code;
}

static int run_cat(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    input in;
    if (argc < 2 && o->select.n + o->exclude.n == 0)
        return usage_error("cat: too few arguments; usage: tenfold cat [OPTIONS] %s", cmd_cat.args);
    if (o->json + o->raw + o->csv + o->npy > 1)
        return usage_error("--json, --raw, --csv and --npy cannot be combined");
    if ((o->raw || o->npy) && isatty(STDOUT_FILENO))
        return usage_error(
            "raw bytes are not written to a terminal; redirect them to a file or a pipe");
    input_options how = o->in;
    how.incomplete = true; /* show the available part of an incomplete model */
    int code = input_open(&in, cli, &how, argv[0]);
    if (code == EXIT_DONE)
        code = cat_all(&(call) { .in = &in, .options = o }, argc, argv);
    input_close(&in);
    return code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print a JSON document for each tensor: name, dtype, shape, and the values in C order "
      "without nesting." },
    { "raw", 0, OPT_FLAG, offsetof(options, raw), NULL, NULL,
      "Write the bytes of the elements, little-endian and in C order, and nothing else." },
    { "npy", 0, OPT_FLAG, offsetof(options, npy), NULL, NULL,
      "Write one tensor as NumPy's .npy file to standard output. Types that only NumPy has are "
      "kept; strings are padded to one length." },
    { "csv", 0, OPT_FLAG, offsetof(options, csv), NULL, NULL,
      "Print one tensor of at most two dimensions as CSV: one row per line, separated by commas." },
    { "all", 'a', OPT_FLAG, offsetof(options, all), NULL, NULL,
      "Print every value. Without it, the middle of more than a thousand values is left out." },
    CHOICE_OPTIONS(options, "Print the tensors whose name matches; the same as a GLOB after FILE. "
                            "May be repeated."),
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold cat model.safetensors wte.weight", "the values; if many, the first and the last" },
    { "tenfold cat model.safetensors 'wte.weight[0:4,-1]'", "a slice, as in numpy" },
    { "tenfold cat model.safetensors '*.bias'", "several tensors" },
    { "tenfold cat --npy model.safetensors wte.weight > wte.npy", "for NumPy" },
    { "tenfold cat --csv model.safetensors 'wte.weight[:10]'", "ten rows for a spreadsheet" },
    { "tenfold cat --raw model.gptrs ln_f.bias > bias.f32", "the bytes alone" },
    { 0 },
};

const command cmd_cat = {
    .name = "cat",
    .args = "FILE NAME[SLICE]|GLOB...",
    .summary = "print the values of tensors",
    .about =
        "Prints the values of tensors as text, as JSON, as CSV, as bytes or as a NumPy array. "
        "Only the requested values are read, with a few megabytes of memory.\n\nSLICE is written "
        "as in numpy, in square brackets. For each dimension it has an index, start:stop or "
        "start:stop:step. Negative numbers count from the end; ... stands for all dimensions that "
        "are not named. A tensor of strings prints its strings; a quantized tensor prints the "
        "numbers that it represents. NAME#ROLE selects one part of a tensor with several parts. An "
        "argument that contains brackets or # is first tried as a name. An argument that is not a "
        "name is a pattern, as in 'tenfold ls'. Names may be written as 'tenfold ls' prints "
        "them.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_cat,
};
