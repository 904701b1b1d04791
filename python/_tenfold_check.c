/* SPDX-License-Identifier: MIT */
/* verify(), hash(), diff(), stat() and formats(), which change nothing. Callbacks collect results
 * in lists of tuples while the C call runs; the Python sources define the classes around them. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

/* One call: its files, and the lists that its callbacks fill. Callbacks start without the GIL. */
typedef struct look {
    state *st;
    PyInterpreterState *interp;
    PyObject *list;
    PyObject *more; /* a second list, or NULL */
    PyObject *kept; /* objects that must live until the end */
    const tnf_file *a, *b;
    handle *h, *other;
    work work;
    union {
        tnf_verify_options verify;
        tnf_hash_options hash;
        tnf_diff_options diff;
        tnf_stat_options stat;
    } how;
    tnf_verify_result verified;
    tnf_diff_result compared;
    uint8_t digest[32];
    char **patterns;
} look;

/* Takes ownership of the item. */
static void append_item(PyObject *list, PyObject *item)
{
    if (!item || PyList_Append(list, item) < 0)
        PyErr_Clear(); /* out of memory; the count at the end shows it */
    Py_XDECREF(item);
}

static PyObject *offset_object(uint64_t offset)
{
    return offset == TNF_NO_OFFSET ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *text_object(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
                : Py_NewRef(Py_None);
}

static int look_begin(look *l, PyObject *module, PyObject *file, PyObject *progress)
{
    memset(l, 0, sizeof *l);
    l->st = state_of(module);
    l->interp = PyInterpreterState_Get();
    l->h = handle_of(l->st, file);
    l->list = l->h ? PyList_New(0) : NULL;
    l->more = l->list ? PyList_New(0) : NULL;
    l->kept = l->more ? PyList_New(0) : NULL;
    if (!l->kept)
        return -1;
    Py_INCREF(AS_OBJECT(l->h));
    l->a = hold_file(l->h->hold);
    l->work.progress = progress;
    l->work.h = l->h;
    l->work.kept = l->kept;
    l->work.st = l->st;
    l->work.bytes = tnf_file_info(l->a)->payload;
    return 0;
}

static void look_end(look *l)
{
    Py_XDECREF(l->list);
    Py_XDECREF(l->more);
    Py_XDECREF(l->kept);
    if (l->h && l->a)
        Py_DECREF(AS_OBJECT(l->h));
    if (l->other)
        Py_DECREF(AS_OBJECT(l->other));
}

static int look_run(look *l, work_fn run)
{
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (work_run(run, l, &l->work, &status, &e) < 0)
        return -1;
    if (status == TNF_OK)
        return 0;
    raise_error(l->st, status, &e, l->h->path);
    return -1;
}

/* -------------------------------------------------------------------- verify */

static void on_problem(void *ctx, const tnf_problem *p)
{
    look *l = ctx;
    gil g;
    gil_enter(&g, l->interp);
    append_item(l->list, Py_BuildValue("sNNzN", tnf_status_name(p->code) + 4,
                                       offset_object(p->offset), text_object(p->message), p->rule,
                                       p->tensor.p ? str_of(p->tensor) : Py_NewRef(Py_None)));
    gil_leave(&g);
}

static PyObject *counts_tuple(const tnf_value_counts *c)
{
    return Py_BuildValue("{sKsKsKsKsKsdsdsdsd}", "elements", (unsigned long long)c->elements, "nan",
                         (unsigned long long)c->nan, "inf", (unsigned long long)c->inf, "zero",
                         (unsigned long long)c->zero, "subnormal", (unsigned long long)c->subnormal,
                         "min", c->min, "max", c->max, "mean", c->mean, "std", c->deviation);
}

static void on_values(void *ctx, const tnf_object *object, const tnf_value_counts *counts)
{
    look *l = ctx;
    gil g;
    gil_enter(&g, l->interp);
    append_item(l->more, Py_BuildValue("NN", str_of(object->name), counts_tuple(counts)));
    gil_leave(&g);
}

/* All callbacks get the look as their context, whose first member is not the work. */
static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    return work_progress(&((look *)ctx)->work, done, total);
}

static tnf_status run_verify(void *ctx, tnf_error *e)
{
    look *l = ctx;
    return tnf_verify(&l->verified, l->a, &l->how.verify, e);
}

PyObject *do_verify(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *names[] = { "file", "values", "canonical", "threads", "progress", NULL };
    PyObject *file, *progress = Py_None, *result = NULL;
    int values = 0, canonical = 0;
    unsigned threads = 0;
    look l;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ppIO", (char **)(uintptr_t)names, &file,
                                     &values, &canonical, &threads, &progress))
        return NULL;
    if (look_begin(&l, module, file, progress) == 0) {
        tnf_verify_options how = TNF_VERIFY_INIT;
        const tnf_verify_result none = TNF_VERIFY_RESULT_INIT;
        how.problem = on_problem;
        how.values = values ? on_values : NULL;
        how.canonical = canonical;
        how.threads = threads;
        how.progress = on_progress;
        how.ctx = &l;
        l.how.verify = how;
        l.verified = none;
        if (look_run(&l, run_verify) == 0)
            result = Py_BuildValue("KKOO", (unsigned long long)l.verified.checked,
                                   (unsigned long long)l.verified.undigested, l.list, l.more);
    }
    look_end(&l);
    return result;
}

/* ---------------------------------------------------------------------- hash */

static PyObject *hex_object(const uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    char text[64];
    for (int i = 0; i < 32; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return PyUnicode_FromFormat("v%d:%.64s", TNF_HASH_VERSION, text);
}

static void on_tensor_hash(void *ctx, const tnf_object *object, const uint8_t hash[32])
{
    look *l = ctx;
    gil g;
    gil_enter(&g, l->interp);
    append_item(l->list, Py_BuildValue("NN", str_of(object->name), hex_object(hash)));
    gil_leave(&g);
}

static tnf_status run_hash(void *ctx, tnf_error *e)
{
    look *l = ctx;
    return tnf_content_hash(l->digest, l->a, &l->how.hash, e);
}

PyObject *do_hash(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *names[] = { "file", "tensors", "threads", "progress", NULL };
    PyObject *file, *progress = Py_None, *result = NULL;
    int tensors = 0;
    unsigned threads = 0;
    look l;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pIO", (char **)(uintptr_t)names, &file,
                                     &tensors, &threads, &progress))
        return NULL;
    if (look_begin(&l, module, file, progress) == 0) {
        tnf_hash_options how = TNF_HASH_INIT;
        how.tensor = tensors ? on_tensor_hash : NULL;
        how.threads = threads;
        how.progress = on_progress;
        how.ctx = &l;
        l.how.hash = how;
        if (look_run(&l, run_hash) == 0)
            result = Py_BuildValue("NO", hex_object(l.digest), l.list);
    }
    look_end(&l);
    return result;
}

/* ---------------------------------------------------------------------- diff */

static PyObject *difference_values(const tnf_value_difference *v)
{
    if (!v)
        return Py_NewRef(Py_None);
    return Py_BuildValue("{sKsKsKsKsdsdsdsdsd}", "elements", (unsigned long long)v->elements,
                         "different", (unsigned long long)v->different, "nonfinite",
                         (unsigned long long)v->nonfinite, "first", (unsigned long long)v->first,
                         "max_abs", v->max_abs, "max_rel", v->max_rel, "mean_abs", v->mean_abs,
                         "nmse", v->nmse, "cosine", v->cosine);
}

static PyObject *value_or_none(const tnf_value *v)
{
    return v ? value_to_python(v, false) : Py_NewRef(Py_None);
}

static void on_difference(void *ctx, const tnf_difference *d)
{
    static const char *const kinds[] = { "only_a", "only_b", "layout", "shape",     "dtype",
                                         "parts",  "order",  "values", "attribute", "extra" };
    look *l = ctx;
    const tnf_object *object = d->a ? d->a : d->b;
    gil g;
    gil_enter(&g, l->interp);
    append_item(l->list, Py_BuildValue("sNNNNN", kinds[d->kind],
                                       object ? str_of(object->name) : Py_NewRef(Py_None),
                                       d->key.p ? str_of(d->key) : Py_NewRef(Py_None),
                                       value_or_none(d->a_value), value_or_none(d->b_value),
                                       difference_values(d->values)));
    gil_leave(&g);
}

static tnf_status run_diff(void *ctx, tnf_error *e)
{
    look *l = ctx;
    return tnf_diff(&l->compared, l->a, l->b, &l->how.diff, e);
}

/* New names come from a dict that was complete before the work began. */
static tnf_status rename_by_dict(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    look *l = ctx;
    gil g;
    (void)e;
    *out = name;
    gil_enter(&g, l->interp);
    PyObject *key = str_of(name), *value = key ? PyDict_GetItem(l->more, key) : NULL, *owner = NULL;
    if (value && text_of(value, out, &owner) == 0 && owner) {
        append_item(
            l->kept,
            owner); /* text that is not UTF-8 was encoded anew, not borrowed from the dict */
        owner = NULL;
    }
    PyErr_Clear();
    Py_XDECREF(key);
    gil_leave(&g);
    return TNF_OK;
}

static int diff_options(look *l, PyObject *options)
{
    tnf_diff_options how = TNF_DIFF_INIT;
    uint64_t ignore = 0, threads = 0;
    PyObject *rtol = option_value(options, "rtol"), *atol = option_value(options, "atol");
    PyObject *map = option_value(options, "map");
    how.rtol = rtol ? PyFloat_AsDouble(rtol) : 0;
    how.atol = atol ? PyFloat_AsDouble(atol) : 0;
    if (PyErr_Occurred() || option_count(options, "ignore", &ignore) < 0 ||
        option_count(options, "threads", &threads) < 0 ||
        option_flag(options, "numeric", &how.numeric) < 0 ||
        option_flag(options, "nan_differs", &how.nan_differs) < 0 ||
        option_flag(options, "trust_digests", &how.trust_digests) < 0 ||
        option_flag(options, "brief", &how.brief) < 0)
        return -1;
    how.ignore = (unsigned)ignore;
    how.threads = (unsigned)threads;
    if (map && PyDict_Check(map)) {
        Py_XDECREF(l->more);
        l->more = Py_NewRef(map);
        how.rename = rename_by_dict;
    }
    how.difference = on_difference;
    how.progress = on_progress;
    how.ctx = l;
    l->how.diff = how;
    return 0;
}

/* diff(a, b, options) -> (same, counts, list) */
PyObject *do_diff(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *a, *b, *options, *result = NULL;
    look l;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOO!", &a, &b, &PyDict_Type, &options))
        return NULL;
    if (look_begin(&l, module, a, option_value(options, "progress")) == 0) {
        const tnf_diff_result none = TNF_DIFF_RESULT_INIT;
        handle *other = handle_of(l.st, b);
        l.other = other ? DATA(handle, Py_NewRef(AS_OBJECT(other))) : NULL;
        l.b = other ? hold_file(other->hold) : NULL;
        l.compared = none;
        if (other && PyList_Append(l.kept, AS_OBJECT(other)) == 0 &&
            diff_options(&l, options) == 0 && look_run(&l, run_diff) == 0)
            result = Py_BuildValue("O{sKsKsKsKsKsKsK}O", l.compared.same ? Py_True : Py_False,
                                   "tensors", (unsigned long long)l.compared.tensors, "close",
                                   (unsigned long long)l.compared.close, "different",
                                   (unsigned long long)l.compared.different, "only_a",
                                   (unsigned long long)l.compared.only_a, "only_b",
                                   (unsigned long long)l.compared.only_b, "attributes",
                                   (unsigned long long)l.compared.attributes, "extras",
                                   (unsigned long long)l.compared.extras, l.list);
    }
    look_end(&l);
    return result;
}

/* ---------------------------------------------------------------------- stat */

static void on_stat(void *ctx, const tnf_stat *s)
{
    look *l = ctx;
    gil g;
    gil_enter(&g, l->interp);
    PyObject *bins = PyList_New(0);
    for (size_t i = 0; bins && s->bins && i < s->nbins; i++)
        append_item(bins, PyLong_FromUnsignedLongLong(s->bins[i]));
    append_item(l->list, Py_BuildValue("NNN", str_of(s->object->name),
                                       s->counts ? counts_tuple(s->counts) : Py_NewRef(Py_None),
                                       bins ? bins : Py_NewRef(Py_None)));
    gil_leave(&g);
}

static bool is_wanted(void *ctx, const tnf_object *object)
{
    look *l = ctx;
    for (char **p = l->patterns; p && *p; p++) {
        if (tnf_glob_match(*p, object->name))
            return true;
    }
    return l->patterns == NULL;
}

static tnf_status run_stat(void *ctx, tnf_error *e)
{
    look *l = ctx;
    return tnf_stat_file(l->a, &l->how.stat, e);
}

static int stat_patterns(look *l, PyObject *names)
{
    if (names == Py_None)
        return 0;
    Py_ssize_t n = PySequence_Size(names);
    l->patterns = n < 0 ? NULL : arena_take(l->kept, ((size_t)n + 1) * sizeof *l->patterns);
    for (Py_ssize_t i = 0; l->patterns && i < n; i++) {
        PyObject *item = PySequence_GetItem(names, i);
        l->patterns[i] = item ? (char *)(uintptr_t)arena_text(l->kept, item) : NULL;
        Py_XDECREF(item);
        if (!l->patterns[i])
            return -1;
    }
    return l->patterns ? 0 : -1;
}

PyObject *do_stat(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *names[] = { "file", "names", "bins", "threads", "progress", NULL };
    PyObject *file, *wanted = Py_None, *progress = Py_None, *result = NULL;
    unsigned bins = 0, threads = 0;
    look l;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OIIO", (char **)(uintptr_t)names, &file,
                                     &wanted, &bins, &threads, &progress))
        return NULL;
    if (look_begin(&l, module, file, progress) == 0 && stat_patterns(&l, wanted) == 0) {
        tnf_stat_options how = TNF_STAT_INIT;
        how.tensor = on_stat;
        how.wanted = is_wanted;
        how.bins = bins;
        how.threads = threads;
        how.progress = on_progress;
        how.ctx = &l;
        l.how.stat = how;
        if (look_run(&l, run_stat) == 0)
            result = Py_NewRef(l.list);
    }
    look_end(&l);
    return result;
}

/* ------------------------------------------------------------------- formats */

static PyObject *options_list(const tnf_option_info *o)
{
    PyObject *list = PyList_New(0);
    for (; list && o && o->name; o++)
        append_item(list, Py_BuildValue("szzs", o->name, o->choices, o->fallback, o->help));
    return list;
}

PyObject *do_formats(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && tnf_format_at(&f, i); i++)
        append_item(list, Py_BuildValue("{ssssszsssIszszsssNsN}", "name", f.name, "title", f.title,
                                        "extensions", f.extensions, "family", f.family, "caps",
                                        f.caps, "types", f.types, "layouts", f.layouts, "metadata",
                                        f.metadata, "read_options", options_list(f.read_options),
                                        "write_options", options_list(f.write_options)));
    return list;
}
