/* SPDX-License-Identifier: MIT */
/* save() and convert() write Python values or open files to a file, by tnf_convert(). */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

int save_options(tnf_save_options *out, PyObject *options, PyObject *arena)
{
    bool sync = true;
    if (option_text(options, "format", arena, &out->format) < 0 ||
        option_flag(options, "replace", &out->replace) < 0 ||
        option_flag(options, "sync", &sync) < 0 ||
        option_flag(options, "allow_loss", &out->allow_loss) < 0 ||
        option_flag(options, "dry_run", &out->dry_run) < 0 ||
        option_flag(options, "as_is", &out->as_is) < 0 ||
        option_text(options, "loss", arena, &out->loss) < 0 ||
        option_text(options, "dtype", arena, &out->dtype) < 0 ||
        option_text(options, "order", arena, &out->order) < 0)
        return -1;
    out->no_sync = !sync;
    return option_pairs(options, "options", arena, &out->options, &out->noptions);
}

static PyObject *report_item(const tnf_plan_item *item)
{
    static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };
    return Py_BuildValue("ssNz", fates[item->fate], item->kind, str_of(item->name), item->reason);
}

PyObject *report_tuple(const tnf_report *report)
{
    PyObject *items = PyList_New(0);
    for (size_t i = 0; items && report && i < report->nitems; i++) {
        PyObject *item = report_item(tnf_report_item(report, i));
        if (!item || PyList_Append(items, item) < 0)
            Py_CLEAR(items);
        Py_XDECREF(item);
    }
    if (!items || !report)
        return items ? Py_BuildValue("O(iiii)N", Py_None, 0, 0, 0, 0, items) : NULL;
    return Py_BuildValue("z(nnnn)N", report->format, (Py_ssize_t)report->counts[0],
                         (Py_ssize_t)report->counts[1], (Py_ssize_t)report->counts[2],
                         (Py_ssize_t)report->counts[3], items);
}

/* Raises an error with the plan, which it has as .report. */
static PyObject *raise_report(state *st, tnf_status status, const tnf_error *e,
                              const tnf_report *report, PyObject *path)
{
    raise_error(st, status, e, path);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *tuple = value ? report_tuple(report) : NULL;
    if (tuple && PyObject_SetAttrString(value, "_report", tuple) < 0)
        PyErr_Clear();
    Py_XDECREF(tuple);
    PyErr_Restore(type, value, trace);
    return NULL;
}

/* ------------------------------------------------------------------- convert */

typedef struct converting {
    state *st;
    PyObject *arena;
    tnf_builder *builder; /* for Python values; NULL: files are converted */
    tnf_file *built;
    const tnf_file **files;
    size_t n;
    const char *path;
    PyObject *path_object;
    tnf_convert_options how;
    tnf_save_options save;
    tnf_split_options split;
    tnf_sink *sink;
    tnf_report *report;
    const struct pair *renames;
    size_t nrenames;
    uint64_t bytes;
    work work;
} converting;

static tnf_status convert_run(void *ctx, tnf_error *e)
{
    converting *c = ctx;
    if (c->builder) {
        tnf_status status = tnf_open_builder(&c->built, c->builder, NULL, e);
        if (status != TNF_OK)
            return status;
        c->files[0] = c->built;
    }
    return tnf_convert(&c->report, c->files, c->n, c->path, &c->how, e);
}

/* New names come from a dict that is complete before the work begins, so Python is not called
 * during it: pairs of (old, new), sorted by the old name. */
typedef struct pair {
    tnf_str old, name;
} pair;

static int by_old(const void *a, const void *b)
{
    const tnf_str x = ((const pair *)a)->old, y = ((const pair *)b)->old;
    size_t n = x.n < y.n ? x.n : y.n;
    int order = n ? memcmp(x.p, y.p, n) : 0;
    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static tnf_status rename_one(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    const converting *c = ctx;
    const pair wanted = { name, { NULL, 0 } };
    const pair *found = bsearch(&wanted, c->renames, c->nrenames, sizeof *found, by_old);
    (void)e;
    *out = found ? found->name : name;
    return TNF_OK;
}

static int convert_names(converting *c, PyObject *options)
{
    PyObject *dict = option_value(options, "rename"), *key, *value;
    Py_ssize_t at = 0;
    if (!dict)
        return 0;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "rename must be a dict");
        return -1;
    }
    pair *all = arena_take(c->arena, (size_t)PyDict_Size(dict) * sizeof *all);
    while (all && PyDict_Next(dict, &at, &key, &value)) {
        pair *p = &all[c->nrenames++];
        p->old.p = arena_text(c->arena, key);
        p->name.p = p->old.p ? arena_text(c->arena, value) : NULL;
        if (!p->name.p)
            return -1;
        p->old.n = strlen(p->old.p);
        p->name.n = strlen(p->name.p);
    }
    if (!all)
        return -1;
    qsort(all, c->nrenames, sizeof *all, by_old);
    c->renames = all;
    c->how.rename = rename_one;
    c->how.rename_ctx = c;
    return 0;
}

static int convert_lists(converting *c, PyObject *options, const char *key, const char *const **out,
                         size_t *n)
{
    PyObject *list = option_value(options, key);
    Py_ssize_t count = list ? PySequence_Size(list) : 0;
    const char **all = count > 0 ? arena_take(c->arena, (size_t)count * sizeof *all) : NULL;
    if (count < 0 || (count > 0 && !all))
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        all[i] = item ? arena_text(c->arena, item) : NULL;
        Py_XDECREF(item);
        if (!all[i])
            return -1;
    }
    *out = all;
    *n = (size_t)count;
    return 0;
}

static int clash_of(PyObject *options, const char *key, PyObject *arena, tnf_clash *out)
{
    static const char *const words[] = { "refuse", "same", "first", "last", "rename" };
    const char *word = NULL;
    if (option_text(options, key, arena, &word) < 0)
        return -1;
    for (int i = 0; word && i < 5; i++) {
        if (!strcmp(word, words[i])) {
            *out = (tnf_clash)i;
            return 0;
        }
    }
    if (word)
        PyErr_Format(PyExc_ValueError, "%s must be refuse, same, first, last or rename, not '%s'",
                     key, word);
    return word ? -1 : 0;
}

static int convert_set(converting *c, PyObject *options)
{
    PyObject *attrs = option_value(options, "attrs");
    tnf_value tree;
    if (!attrs)
        return 0;
    if (!PyDict_Check(attrs)) {
        PyErr_SetString(PyExc_TypeError, "attrs must be a dict");
        return -1;
    }
    if (value_from_python(&tree, attrs, c->arena) < 0)
        return -1;
    c->how.set = tree.as.members;
    c->how.nset = tree.n;
    return 0;
}

static int convert_split(converting *c, PyObject *options)
{
    const char *mode = NULL;
    if (option_text(options, "mode", c->arena, &mode) < 0 ||
        option_count(options, "max_bytes", &c->split.max_bytes) < 0 ||
        option_text(options, "stem", c->arena, &c->split.stem) < 0)
        return -1;
    c->how.mode = mode && !strcmp(mode, "split")    ? TNF_CONVERT_SPLIT
                  : mode && !strcmp(mode, "append") ? TNF_CONVERT_APPEND
                                                    : TNF_CONVERT_NEW;
    c->split.format = c->save.format;
    if (c->how.mode == TNF_CONVERT_SPLIT)
        c->how.split = &c->split;
    return 0;
}

/* The option "into": a model whose weights are replaced. */
static int convert_into(converting *c, PyObject *options)
{
    PyObject *item = option_value(options, "into");
    if (!item)
        return 0;
    handle *h = handle_of(c->st, item);
    if (!h || PyList_Append(c->arena, AS_OBJECT(h)) < 0)
        return -1;
    c->how.into = hold_file(h->hold);
    return option_flag(options, "keep_rest", &c->how.keep_rest);
}

static int convert_options(converting *c, PyObject *options)
{
    if (save_options(&c->save, options, c->arena) < 0 || convert_split(c, options) < 0 ||
        convert_lists(c, options, "select", &c->how.select, &c->how.nselect) < 0 ||
        convert_lists(c, options, "exclude", &c->how.exclude, &c->how.nexclude) < 0 ||
        clash_of(options, "clash", c->arena, &c->how.tensors) < 0 ||
        clash_of(options, "clash_attrs", c->arena, &c->how.attrs) < 0 ||
        option_text(options, "fold", c->arena, &c->how.fold) < 0 ||
        option_text(options, "scales", c->arena, &c->how.scales) < 0 ||
        option_flag(options, "normalize", &c->how.normalize) < 0 ||
        option_flag(options, "unnormalize", &c->how.unnormalize) < 0 ||
        option_flag(options, "tensors_only", &c->how.tensors_only) < 0 ||
        option_flag(options, "all_items", &c->how.all_items) < 0 || convert_names(c, options) < 0 ||
        convert_set(c, options) < 0 || convert_into(c, options) < 0)
        return -1;
    c->how.save = &c->save;
    c->save.progress = work_progress;
    c->save.ctx = &c->work;
    c->work.progress = option_value(options, "progress");
    return 0;
}

/* Without a path, the bytes are collected in memory and returned. */
static int convert_target(converting *c, PyObject *path)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *bytes = NULL;
    if (path == Py_None) {
        tnf_status status = tnf_sink_memory(&c->sink, &e);
        c->how.sink = c->sink;
        return status == TNF_OK ? 0 : (raise_error(c->st, status, &e, NULL), -1);
    }
    if (!PyUnicode_FSConverter(path, &bytes))
        return -1;
    int bad = PyList_Append(c->arena, bytes);
    c->path = PyBytes_AsString(bytes);
    c->path_object = path_shown(c->path);
    Py_DECREF(bytes);
    return bad || !c->path_object ? -1 : 0;
}

static PyObject *convert_result(converting *c, tnf_status status, const tnf_error *e)
{
    if (status != TNF_OK && status != TNF_EUNSYNCED)
        return raise_report(c->st, status, e, c->report, c->path_object);
    PyObject *tuple = report_tuple(c->report);
    if (!tuple || !c->sink)
        return tuple;
    tnf_str bytes = tnf_sink_bytes(c->sink);
    return Py_BuildValue("NN", tuple, PyBytes_FromStringAndSize(bytes.p, (Py_ssize_t)bytes.n));
}

static PyObject *convert_go(converting *c)
{
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    c->work.bytes = c->bytes;
    c->work.kept = c->arena;
    c->work.st = c->st;
    PyObject *result = NULL;
    if (work_run(convert_run, c, &c->work, &status, &e) == 0)
        result = convert_result(c, status, &e);
    return result;
}

static void convert_free(converting *c)
{
    tnf_report_free(c->report);
    tnf_sink_close(c->sink);
    tnf_close(c->built);
    tnf_builder_free(c->builder);
    Py_XDECREF(c->path_object);
    Py_XDECREF(c->arena);
}

static int convert_files(converting *c, PyObject *files)
{
    Py_ssize_t n = PySequence_Size(files);
    c->files = n > 0 ? arena_take(c->arena, (size_t)n * sizeof *c->files) : NULL;
    if (n == 0)
        PyErr_SetString(PyExc_ValueError, "the list of files is empty");
    for (Py_ssize_t i = 0; c->files && i < n; i++) {
        PyObject *item = PySequence_GetItem(files, i);
        handle *h = item ? handle_of(c->st, item) : NULL;
        if (h && PyList_Append(c->arena, AS_OBJECT(h)) < 0)
            h = NULL;
        Py_XDECREF(item);
        if (!h)
            return -1;
        c->files[i] = hold_file(h->hold);
        c->bytes += tnf_file_info(c->files[i])->payload;
    }
    c->n = (size_t)n;
    return c->files ? 0 : -1;
}

/* convert(files, path or None, options) -> report, or (report, bytes) */
PyObject *do_convert(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *files, *path, *options, *result = NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOO!", &files, &path, &PyDict_Type, &options))
        return NULL;
    converting c = { .st = state_of(module),
                     .arena = PyList_New(0),
                     .how = TNF_CONVERT_INIT,
                     .save = TNF_SAVE_INIT,
                     .split = TNF_SPLIT_INIT };
    if (c.arena && convert_files(&c, files) == 0 && convert_options(&c, options) == 0 &&
        convert_target(&c, path) == 0)
        result = convert_go(&c);
    convert_free(&c);
    return result;
}

/* ---------------------------------------------------------------------- save */

static int save_attrs(converting *c, PyObject *name, PyObject *attrs)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_value tree;
    const char *of = name ? arena_text(c->arena, name) : NULL;
    if ((name && !of) || value_from_python(&tree, attrs, c->arena) < 0)
        return -1;
    for (size_t i = 0; tree.kind == TNF_MAP && i < tree.n; i++) {
        tnf_status status = tnf_builder_set(c->builder, of, tree.as.members[i].key.p,
                                            &tree.as.members[i].value, &e);
        if (status != TNF_OK)
            return raise_error(c->st, status, &e, NULL), -1;
    }
    return 0;
}

static int save_tensor_attrs(converting *c, PyObject *options)
{
    PyObject *all = option_value(options, "tensor_attrs"), *key, *value;
    Py_ssize_t at = 0;
    while (all && PyDict_Next(all, &at, &key, &value)) {
        if (save_attrs(c, key, value) < 0)
            return -1;
    }
    return 0;
}

static int save_items(converting *c, PyObject *items)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (tnf_builder_new(&c->builder, NULL, &e) != TNF_OK)
        return PyErr_NoMemory(), -1;
    Py_ssize_t n = PyList_Size(items);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GetItem(items, i);
        if (builder_add(c->st, c->builder, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1),
                        c->arena) < 0)
            return -1;
    }
    return 0;
}

/* The number of bytes decides whether a thread is worth its cost. */
static void save_bytes(converting *c)
{
    tnf_error e;
    tnf_file *look = NULL;
    if (tnf_open_builder(&look, c->builder, NULL, &e) == TNF_OK)
        c->bytes = tnf_file_info(look)->payload;
    tnf_close(look);
}

/* save(items, path or None, options) -> report, or (report, bytes) */
PyObject *do_save(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *items, *path, *options, *attrs, *result = NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyList_Type, &items, &path, &PyDict_Type, &options))
        return NULL;
    converting c = { .st = state_of(module),
                     .arena = PyList_New(0),
                     .how = TNF_CONVERT_INIT,
                     .save = TNF_SAVE_INIT,
                     .split = TNF_SPLIT_INIT };
    c.n = 1;
    c.files = c.arena ? arena_take(c.arena, sizeof *c.files) : NULL;
    attrs = option_value(options, "attrs");
    if (c.files && save_items(&c, items) == 0 && (!attrs || save_attrs(&c, NULL, attrs) == 0) &&
        save_tensor_attrs(&c, options) == 0 && convert_options(&c, options) == 0 &&
        convert_target(&c, path) == 0) {
        c.how.set = NULL; /* the builder already has the attributes */
        c.how.nset = 0;
        save_bytes(&c);
        result = convert_go(&c);
    }
    convert_free(&c);
    return result;
}
