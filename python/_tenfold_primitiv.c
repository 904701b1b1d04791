/* SPDX-License-Identifier: MIT */
/* primitiv: the base of tenfold/primitiv.py. A tensor is passed as (path, statistic or None,
 * batched, buffer): its path is a tuple of str, and its buffer has f32 numbers in any order. If it
 * is batched, its last axis is the batch. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/primitiv.h>

enum { MOST_DIMS = 9 }; /* eight and the batch */

/* -------------------------------------------------------------------- names */

/* A tuple of str as a path; `arena` keeps its memory alive. */
static tnf_str *path_of(PyObject *tuple, size_t *n, PyObject *arena)
{
    Py_ssize_t count = PySequence_Size(tuple);
    tnf_str *path = count < 0 ? NULL : arena_take(arena, ((size_t)count + 1) * sizeof *path);
    for (Py_ssize_t i = 0; path && i < count; i++) {
        PyObject *item = PySequence_GetItem(tuple, i), *owner = NULL;
        if (!item || PyList_Append(arena, item) < 0 || text_of(item, &path[i], &owner) < 0 ||
            (owner && PyList_Append(arena, owner) < 0))
            path = NULL;
        Py_XDECREF(item);
        Py_XDECREF(owner);
    }
    *n = path ? (size_t)count : 0;
    return path;
}

/* A statistic's key in the arena; *out is NULL for None. */
static int statistic_of(PyObject *key, const tnf_str **out, PyObject *arena)
{
    *out = NULL;
    if (key == Py_None)
        return 0;
    PyObject *owner = NULL;
    tnf_str *text = arena_take(arena, sizeof *text);
    int bad = !text || PyList_Append(arena, key) < 0 || text_of(key, text, &owner) < 0 ||
              (owner && PyList_Append(arena, owner) < 0);
    Py_XDECREF(owner);
    *out = bad ? NULL : text;
    return bad ? -1 : 0;
}

/* primitiv_join(path) -> the name of its tensor */
PyObject *primitiv_join(PyObject *module, PyObject *tuple)
{
    size_t n;
    PyObject *arena = PyList_New(0), *name = NULL;
    tnf_str *path = arena ? path_of(tuple, &n, arena) : NULL;
    (void)module;
    if (path) {
        size_t length = tnf_primitiv_join(NULL, 0, path, n);
        char *text = arena_take(arena, length + 1);
        if (text) {
            tnf_primitiv_join(text, length + 1, path, n);
            name = str_of((tnf_str) { text, length });
        }
    }
    Py_XDECREF(arena);
    return name;
}

/* primitiv_split(name) -> its path */
PyObject *primitiv_split(PyObject *module, PyObject *name)
{
    tnf_str text;
    PyObject *owner, *tuple = NULL;
    (void)module;
    if (text_of(name, &text, &owner) < 0)
        return NULL;
    tnf_str *path = malloc((text.n + 1) * sizeof *path); /* at most a piece for each byte */
    char *memory = malloc(text.n + 1);
    if (path && memory) {
        size_t n = tnf_primitiv_split(path, text.n + 1, memory, text);
        tuple = PyTuple_New((Py_ssize_t)n);
        for (size_t i = 0; tuple && i < n; i++) {
            PyObject *piece = str_of(path[i]);
            if (!piece || PyTuple_SetItem(tuple, (Py_ssize_t)i, piece) < 0)
                Py_CLEAR(tuple);
        }
    } else {
        PyErr_NoMemory();
    }
    free(path);
    free(memory);
    Py_XDECREF(owner);
    return tuple;
}

/* primitiv_find(file, path, statistic or None) -> Tensor */
PyObject *primitiv_find(PyObject *module, PyObject *args)
{
    PyObject *file, *tuple, *key, *arena, *result = NULL;
    const tnf_str *statistic;
    const tnf_object *object;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    size_t n;
    state *st = state_of(module);
    if (!PyArg_ParseTuple(args, "OOO", &file, &tuple, &key))
        return NULL;
    handle *h = handle_of(st, file);
    arena = h ? PyList_New(0) : NULL;
    tnf_str *path = arena ? path_of(tuple, &n, arena) : NULL;
    if (path && statistic_of(key, &statistic, arena) == 0) {
        tnf_status status = tnf_primitiv_find(&object, hold_file(h->hold), path, n, statistic, &e);
        result = status == TNF_OK ? tensor_make(h, object, NULL)
                                  : raise_error(st, status, &e, h->path);
    }
    Py_XDECREF(arena);
    return result;
}

/* ------------------------------------------------------------------ bindings */

typedef struct bound {
    Py_buffer view;
    float *own; /* memory in primitiv's order, if the buffer has another one; or NULL */
} bound;

typedef struct bindings {
    state *st;
    size_t n;
    tnf_primitiv_binding *all;
    bound *bounds;
    size_t held; /* buffers that are to be released */
    PyObject *arena;
    PyInterpreterState *interp;
    const tnf_file *file;
    tnf_primitiv_bind_options how;
    PyObject *missing, *extra; /* lists of positions and of names, or NULL */
} bindings;

/* Copies between a buffer and memory in primitiv's order, the first index fastest. */
static void copy_floats(const Py_buffer *view, float *own, bool save)
{
    Py_ssize_t index[MOST_DIMS] = { 0 };
    char *at = view->buf;
    for (Py_ssize_t i = 0, n = view->len / (Py_ssize_t)sizeof *own; i < n; i++) {
        if (save)
            memcpy(own + i, at, sizeof *own);
        else
            memcpy(at, own + i, sizeof *own);
        for (int d = 0; d < view->ndim; d++) {
            at += view->strides[d];
            if (++index[d] < view->shape[d])
                break;
            at -= view->strides[d] * view->shape[d];
            index[d] = 0;
        }
    }
}

static int check_buffer(const bindings *b, const Py_buffer *view, bool batched)
{
    const uint16_t one = 1;
    bool big = *(const uint8_t *)&one == 0, swap = false;
    const tnf_type *type = type_of_format(view->format, view->itemsize, &swap);
    if (!type || strcmp(type->id, "f32") != 0 || swap != big)
        PyErr_Format(PyExc_TypeError, "primitiv has only 32-bit floats, not the type '%s'",
                     view->format ? view->format : "B");
    else if (view->ndim > MOST_DIMS - !batched)
        raise_text(b->st, TNF_EINVAL, "a shape has %d dimensions, but at most 8 are allowed",
                   view->ndim - batched);
    else if (batched && view->ndim == 0)
        raise_text(b->st, TNF_EINVAL, "an array without axes has no axis of a batch");
    else
        return 0;
    return -1;
}

static int bind_shape(bindings *b, tnf_primitiv_shape *out, const Py_buffer *view, bool batched)
{
    int n = view->ndim - batched;
    uint32_t *dims = arena_take(b->arena, MOST_DIMS * sizeof *dims);
    for (int i = 0; dims && i < view->ndim; i++) {
        if (view->shape[i] > (Py_ssize_t)UINT32_MAX || view->shape[i] == 0) {
            raise_text(b->st, TNF_EINVAL, "dimension %d of a shape is %lld, not 1 to 2^32-1", i,
                       (long long)view->shape[i]);
            return -1;
        }
        dims[i] = (uint32_t)view->shape[i];
    }
    *out = (tnf_primitiv_shape) { dims, (uint32_t)n, batched && dims ? dims[n] : 0 };
    return dims ? 0 : -1;
}

static int bind_item(bindings *b, size_t i, PyObject *item, bool save)
{
    PyObject *tuple, *key, *buffer;
    int batched;
    bound *to = &b->bounds[i];
    tnf_primitiv_binding *w = &b->all[i];
    if (!PyArg_ParseTuple(item, "OOpO", &tuple, &key, &batched, &buffer))
        return -1;
    tnf_str *path = path_of(tuple, &w->n, b->arena);
    w->path = path;
    if (!path || statistic_of(key, &w->statistic, b->arena) < 0 ||
        PyObject_GetBuffer(buffer, &to->view, save ? PyBUF_RECORDS_RO : PyBUF_RECORDS) < 0)
        return -1;
    b->held = i + 1;
    if (check_buffer(b, &to->view, batched) < 0 || bind_shape(b, &w->shape, &to->view, batched) < 0)
        return -1;
    bool direct = PyBuffer_IsContiguous(&to->view, 'F') &&
                  (uintptr_t)to->view.buf % sizeof(float) == 0;
    if (!direct && !(to->own = malloc((size_t)to->view.len + 1)))
        return PyErr_NoMemory(), -1;
    if (!direct && save)
        copy_floats(&to->view, to->own, true);
    w->data = direct ? to->view.buf : to->own;
    return 0;
}

static int bind_items(bindings *b, PyObject *list, bool save)
{
    Py_ssize_t n = PySequence_Size(list);
    if (n < 0 || !(b->arena = PyList_New(0)))
        return -1;
    b->n = (size_t)n;
    b->all = arena_take(b->arena, (b->n + 1) * sizeof *b->all);
    b->bounds = b->all ? arena_take(b->arena, (b->n + 1) * sizeof *b->bounds) : NULL;
    for (Py_ssize_t i = 0; b->bounds && i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int bad = item ? bind_item(b, (size_t)i, item, save) : -1;
        Py_XDECREF(item);
        if (bad)
            return -1;
    }
    return b->bounds ? 0 : -1;
}

static void bindings_free(bindings *b)
{
    for (size_t i = 0; i < b->held; i++) {
        free(b->bounds[i].own);
        PyBuffer_Release(&b->bounds[i].view);
    }
    Py_XDECREF(b->arena);
}

/* --------------------------------------------------------------------- load */

static void add_to(const bindings *b, PyObject *list, PyObject *(*make)(const void *of),
                   const void *of)
{
    gil g;
    gil_enter(&g, b->interp);
    PyObject *item = make(of);
    if (!item || PyList_Append(list, item) < 0)
        PyErr_Clear(); /* out of memory; the list only informs */
    Py_XDECREF(item);
    gil_leave(&g);
}

static PyObject *position_made(const void *of)
{
    return PyLong_FromSize_t(*(const size_t *)of);
}

static PyObject *name_made(const void *of)
{
    return str_of(((const tnf_object *)of)->name);
}

static void on_missing(void *ctx, const tnf_primitiv_binding *binding)
{
    const bindings *b = ctx;
    size_t position = (size_t)(binding - b->all);
    add_to(b, b->missing, position_made, &position);
}

static void on_extra(void *ctx, const tnf_object *object)
{
    const bindings *b = ctx;
    add_to(b, b->extra, name_made, object);
}

static tnf_status run_bind(void *ctx, tnf_error *e)
{
    const bindings *b = ctx;
    return tnf_primitiv_bind(b->file, b->all, b->n, &b->how, e);
}

/* primitiv_load(file, items, need_all, allow_extra, missing, extra): fills the buffers, and appends
 * the positions of items that the file lacks, and the names of tensors that no item takes. */
PyObject *primitiv_load(PyObject *module, PyObject *args)
{
    PyObject *file, *list;
    int need_all, allow_extra;
    bindings b = { .st = state_of(module),
                   .interp = PyInterpreterState_Get(),
                   .how = TNF_PRIMITIV_BIND_INIT };
    if (!PyArg_ParseTuple(args, "OOppO!O!", &file, &list, &need_all, &allow_extra, &PyList_Type,
                          &b.missing, &PyList_Type, &b.extra))
        return NULL;
    handle *h = handle_of(b.st, file);
    PyObject *result = NULL;
    if (h && bind_items(&b, list, false) == 0) {
        tnf_error e = { .offset = TNF_NO_OFFSET };
        b.file = hold_file(h->hold);
        b.how.need_all = need_all;
        b.how.allow_extra = allow_extra;
        b.how.missing = on_missing;
        b.how.extra = on_extra;
        b.how.ctx = &b;
        Py_INCREF(AS_OBJECT(h)); /* the File may be closed meanwhile */
        tnf_status status = handle_run(h, run_bind, &b, &e);
        for (size_t i = 0; status == TNF_OK && i < b.n; i++)
            if (b.all[i].loaded && b.bounds[i].own)
                copy_floats(&b.bounds[i].view, b.bounds[i].own, false);
        result = status == TNF_OK ? Py_NewRef(Py_None) : raise_error(b.st, status, &e, h->path);
        Py_DECREF(AS_OBJECT(h));
    }
    bindings_free(&b);
    return result;
}

/* --------------------------------------------------------------------- save */

typedef struct saving {
    bindings b;
    tnf_primitiv_config *configs[2]; /* integers, floats */
    size_t nconfigs[2];
    tnf_primitiv_shape shape;
    tnf_save_options how;
    const char *path;
    work work;
} saving;

static tnf_status run_save_model(void *ctx, tnf_error *e)
{
    const saving *s = ctx;
    return tnf_primitiv_save(s->path, s->b.all, s->b.n, &s->how, e);
}

static tnf_status run_save_optimizer(void *ctx, tnf_error *e)
{
    const saving *s = ctx;
    return tnf_primitiv_save_optimizer(s->path, s->configs[0], s->nconfigs[0], s->configs[1],
                                       s->nconfigs[1], &s->how, e);
}

static tnf_status run_save_shape(void *ctx, tnf_error *e)
{
    saving *s = ctx;
    tnf_builder *builder;
    tnf_status status = tnf_builder_new(&builder, NULL, e);
    if (status != TNF_OK)
        return status;
    s->how.format = s->how.format ? s->how.format : "primitiv";
    status = tnf_primitiv_set_shape(builder, &s->shape, e);
    if (status == TNF_OK)
        status = tnf_save(builder, s->path, &s->how, e);
    tnf_builder_free(builder);
    return status;
}

/* Saves what `s` has, and frees it. */
static PyObject *save_go(saving *s, work_fn run, PyObject *path, PyObject *options)
{
    PyObject *bytes = NULL, *result = NULL;
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    s->how = (tnf_save_options)TNF_SAVE_INIT;
    if (PyUnicode_FSConverter(path, &bytes) && save_options(&s->how, options, s->b.arena) == 0) {
        s->path = PyBytes_AsString(bytes);
        s->how.progress = work_progress;
        s->how.ctx = &s->work;
        s->work.progress = option_value(options, "progress");
        for (size_t i = 0; i < s->b.n; i++)
            s->work.bytes += (uint64_t)s->b.bounds[i].view.len;
        if (work_run(run, s, &s->work, &status, &e) == 0)
            result = status == TNF_OK || status == TNF_EUNSYNCED
                         ? Py_NewRef(Py_None)
                         : raise_error(s->b.st, status, &e, path);
    }
    Py_XDECREF(bytes);
    bindings_free(&s->b);
    return result;
}

/* primitiv_save(path, items, options) */
PyObject *primitiv_save(PyObject *module, PyObject *args)
{
    PyObject *path, *list, *options;
    saving s = { .b = { .st = state_of(module) } };
    if (!PyArg_ParseTuple(args, "OOO!", &path, &list, &PyDict_Type, &options))
        return NULL;
    if (bind_items(&s.b, list, true) == 0)
        return save_go(&s, run_save_model, path, options);
    bindings_free(&s.b);
    return NULL;
}

/* Configs from a dict; the arena keeps their keys. */
static int configs_of(saving *s, int which, PyObject *dict)
{
    PyObject *key, *value, *owner;
    Py_ssize_t at = 0;
    tnf_primitiv_config *all = arena_take(s->b.arena,
                                          ((size_t)PyDict_Size(dict) + 1) * sizeof *all);
    s->configs[which] = all;
    while (all && PyDict_Next(dict, &at, &key, &value)) {
        tnf_primitiv_config *c = &all[s->nconfigs[which]++];
        if (text_of(key, &c->key, &owner) < 0)
            return -1;
        int bad = PyList_Append(s->b.arena, owner ? owner : key);
        Py_XDECREF(owner);
        unsigned long u = which == 0 ? PyLong_AsUnsignedLong(value) : 0;
        c->u = (uint32_t)u;
        c->f = which == 1 ? (float)PyFloat_AsDouble(value) : 0;
        if (bad || PyErr_Occurred())
            return -1;
        if (u != c->u) {
            PyErr_Format(PyExc_OverflowError, "%R: an integer config has at most 32 bits", key);
            return -1;
        }
    }
    return all ? 0 : -1;
}

/* primitiv_save_optimizer(path, uints, floats, options) */
PyObject *primitiv_save_optimizer(PyObject *module, PyObject *args)
{
    PyObject *path, *uints, *floats, *options;
    saving s = { .b = { .st = state_of(module) } };
    if (!PyArg_ParseTuple(args, "OO!O!O!", &path, &PyDict_Type, &uints, &PyDict_Type, &floats,
                          &PyDict_Type, &options) ||
        !(s.b.arena = PyList_New(0)))
        return NULL;
    if (configs_of(&s, 0, uints) == 0 && configs_of(&s, 1, floats) == 0)
        return save_go(&s, run_save_optimizer, path, options);
    bindings_free(&s.b);
    return NULL;
}

/* primitiv_save_shape(path, dims, batch, options) */
PyObject *primitiv_save_shape(PyObject *module, PyObject *args)
{
    PyObject *path, *list, *options;
    unsigned int batch;
    saving s = { .b = { .st = state_of(module) } };
    if (!PyArg_ParseTuple(args, "OO!IO!", &path, &PyTuple_Type, &list, &batch, &PyDict_Type,
                          &options) ||
        !(s.b.arena = PyList_New(0)))
        return NULL;
    size_t n = (size_t)PyTuple_Size(list);
    uint32_t *dims = arena_take(s.b.arena, (n + 1) * sizeof *dims);
    for (size_t i = 0; dims && i < n; i++) {
        size_t dim = PyLong_AsSize_t(PyTuple_GetItem(list, (Py_ssize_t)i));
        if (!PyErr_Occurred() && dim > UINT32_MAX)
            PyErr_SetString(PyExc_OverflowError, "a dimension has at most 32 bits");
        if (PyErr_Occurred())
            dims = NULL;
        else
            dims[i] = (uint32_t)dim;
    }
    s.shape = (tnf_primitiv_shape) { dims, (uint32_t)n, batch };
    if (dims)
        return save_go(&s, run_save_shape, path, options);
    bindings_free(&s.b);
    return NULL;
}

/* ---------------------------------------------------------------- optimizers */

/* primitiv_optimizer(file) -> the class of its optimizer, or None */
PyObject *primitiv_optimizer(PyObject *module, PyObject *file)
{
    tnf_str name;
    handle *h = handle_of(state_of(module), file);
    if (!h)
        return NULL;
    return tnf_primitiv_optimizer(&name, hold_file(h->hold)) ? str_of(name) : Py_NewRef(Py_None);
}

/* primitiv_config(file, key, float) -> a number, or None */
PyObject *primitiv_config(PyObject *module, PyObject *args)
{
    PyObject *file, *key, *result = NULL;
    int real;
    if (!PyArg_ParseTuple(args, "OOp", &file, &key, &real))
        return NULL;
    handle *h = handle_of(state_of(module), file);
    PyObject *arena = h ? PyList_New(0) : NULL;
    const char *text = arena ? arena_text(arena, key) : NULL;
    if (text) {
        uint32_t u;
        float f;
        const tnf_file *c = hold_file(h->hold);
        result = real ? tnf_primitiv_float(&f, c, text) ? PyFloat_FromDouble((double)f) : NULL
                 : tnf_primitiv_uint(&u, c, text) ? PyLong_FromUnsignedLong(u)
                                                  : NULL;
        if (!result && !PyErr_Occurred())
            result = Py_NewRef(Py_None);
    }
    Py_XDECREF(arena);
    return result;
}
