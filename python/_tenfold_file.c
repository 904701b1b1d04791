/* SPDX-License-Identifier: MIT */
/* File: the base of File in tenfold/__init__.py. The names, one tensor, or many tensors at once. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

typedef struct file {
    OBJECT_HEAD
    handle *h; /* NULL: closed */
    state *st;
} file;

static PyObject *file_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source, *options = NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|O!", &source, &PyDict_Type, &options))
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = make(type, 0);
    if (!self)
        return NULL;
    file *f = DATA(file, self);
    PyTypeObject *base = type;
    PyObject *module = NULL;
    /* The state belongs to the module of the C class, so derived classes are skipped. */
    while (base && !(module = PyType_GetModule(base))) {
        PyErr_Clear();
        base = (PyTypeObject *)PyType_GetSlot(base, Py_tp_base);
    }
    f->st = module ? state_of(module) : NULL;
    f->h = f->st ? handle_open(f->st, source, options) : NULL;
    if (!f->h)
        Py_CLEAR(self);
    return self;
}

static void file_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (DATA(file, self)->h)
        Py_DECREF(AS_OBJECT(DATA(file, self)->h));
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static handle *file_ready(PyObject *self)
{
    file *f = DATA(file, self);
    if (!f->h)
        return raise_text(f->st, TNF_EINVAL, "File is closed");
    return handle_ready(f->h) < 0 ? NULL : f->h;
}

handle *handle_of(state *st, PyObject *object)
{
    if (PyObject_TypeCheck(object, st->file_type))
        return file_ready(object);
    PyErr_Format(PyExc_TypeError, "expected a tenfold.File, not %R", (PyObject *)Py_TYPE(object));
    return NULL;
}

/* Existing tensors keep the C file open, but their reads fail from now on. Without a GIL another
 * thread may be using the handle, so it is released with the File itself. */
static PyObject *file_close(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    handle *h = DATA(file, self)->h;
    if (h)
        h->closed = true;
#ifndef Py_GIL_DISABLED
    DATA(file, self)->h = NULL;
    Py_XDECREF(AS_OBJECT(h));
#endif
    return Py_NewRef(Py_None);
}

/* -------------------------------------------------------------------- names */

static Py_ssize_t file_len(PyObject *self)
{
    handle *h = file_ready(self);
    return h ? (Py_ssize_t)tnf_file_info(hold_file(h->hold))->objects : -1;
}

static const tnf_object *file_find(handle *h, PyObject *name)
{
    tnf_str text;
    PyObject *owner;
    if (text_of(name, &text, &owner) < 0)
        return NULL;
    const tnf_object *object = tnf_find_n(hold_file(h->hold), text.p, text.n);
    Py_XDECREF(owner);
    return object;
}

static int file_contains(PyObject *self, PyObject *name)
{
    handle *h = file_ready(self);
    if (!h)
        return -1;
    if (!PyUnicode_Check(name))
        return 0;
    const tnf_object *object = file_find(h, name);
    return PyErr_Occurred() ? -1 : object != NULL;
}

static PyObject *names_list(const handle *h)
{
    const tnf_file *c = hold_file(h->hold);
    size_t n = tnf_file_info(c)->objects;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *name = str_of(tnf_at(c, i)->name);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *file_names(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    handle *h = file_ready(self);
    return h ? names_list(h) : NULL;
}

static int by_offset(const void *a, const void *b)
{
    const tnf_object *x = *(const tnf_object *const *)a, *y = *(const tnf_object *const *)b;
    uint64_t i = x->nparts ? x->parts[0].offset : 0, j = y->nparts ? y->parts[0].offset : 0;
    if (i != j)
        return i < j ? -1 : 1;
    return x < y ? -1 : x > y; /* equal places (empty tensors): the order of the file */
}

/* The tensors sorted by their offset in the file; the caller frees the array. */
static const tnf_object **placed_objects(const handle *h, size_t *n)
{
    const tnf_file *c = hold_file(h->hold);
    *n = tnf_file_info(c)->objects;
    const tnf_object **all = malloc((*n + 1) * sizeof *all);
    if (!all)
        return (void *)PyErr_NoMemory();
    for (size_t i = 0; i < *n; i++)
        all[i] = tnf_at(c, i);
    qsort(all, *n, sizeof *all, by_offset);
    return all;
}

static PyObject *file_placed(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    size_t n = 0;
    handle *h = file_ready(self);
    const tnf_object **all = h ? placed_objects(h, &n) : NULL;
    PyObject *list = all ? PyList_New((Py_ssize_t)n) : NULL;
    for (size_t i = 0; list && i < n; i++) {
        PyObject *name = str_of(all[i]->name);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    free(all);
    return list;
}

static PyObject *file_iter(PyObject *self)
{
    PyObject *list = file_names(self, NULL);
    PyObject *iter = list ? PyObject_GetIter(list) : NULL;
    Py_XDECREF(list);
    return iter;
}

static PyObject *file_glob(PyObject *self, PyObject *pattern)
{
    handle *h = file_ready(self);
    PyObject *arena = h ? PyList_New(0) : NULL;
    const char *text = arena ? arena_text(arena, pattern) : NULL;
    PyObject *list = text ? PyList_New(0) : NULL;
    for (size_t i = 0; list && tnf_at(hold_file(h->hold), i); i++) {
        tnf_str name = tnf_at(hold_file(h->hold), i)->name;
        if (!tnf_glob_match(text, name))
            continue;
        PyObject *str = str_of(name);
        if (!str || PyList_Append(list, str) < 0)
            Py_CLEAR(list);
        Py_XDECREF(str);
    }
    Py_XDECREF(arena);
    return list;
}

/* --------------------------------------------------------------- one tensor */

/* Raises the error for an unknown name: worded as in safetensors for its replacement, otherwise
 * with similar names. */
static PyObject *no_such_tensor(PyObject *self, const handle *h, PyObject *name)
{
    if (PyErr_Occurred())
        return NULL;
    PyObject *errors = PyImport_ImportModule("tenfold._errors");
    PyObject *names = errors ? names_list(h) : NULL;
    PyObject *made = names ? PyObject_CallMethod(errors, "missing", "OOO", name, names,
                                                 h->compat ? Py_True : Py_False)
                           : NULL;
    (void)self;
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(errors);
    Py_XDECREF(names);
    Py_XDECREF(made);
    return NULL;
}

static PyObject *file_item(PyObject *self, PyObject *name)
{
    handle *h = file_ready(self);
    const tnf_object *object = h ? file_find(h, name) : NULL;
    if (object)
        return tensor_make(h, object, NULL);
    return h ? no_such_tensor(self, h, name) : NULL;
}

static PyObject *file_read(PyObject *self, PyObject *name)
{
    handle *h = file_ready(self);
    const tnf_object *object = h ? file_find(h, name) : NULL;
    if (!object)
        return h ? no_such_tensor(self, h, name) : NULL;
    tensor t = { .h = h, .object = object };
    Py_INCREF(AS_OBJECT(h)); /* another thread may close the file in the meantime */
    PyObject *arr = tensor_array(&t);
    Py_DECREF(AS_OBJECT(h));
    return arr;
}

/* One tensor as a numpy array with memory of its own, as get_tensor() of safetensors returns it. */
static PyObject *file_fetch(PyObject *self, PyObject *name)
{
    PyObject *arr = file_read(self, name);
    return arr ? array_to_numpy(arr, "the tensor") : NULL;
}

/* ------------------------------------------------------------------- many */

typedef struct loading {
    handle *h;
    const tnf_object **objects;
    block **blocks;
    Py_buffer *views; /* buffers of the caller, to be filled; NULL: blocks are used */
    size_t nviews;
    tnf_request *requests;
    size_t n;
    uint64_t bytes;
    tnf_read_options how;
    work work;
} loading;

static void loading_free(loading *l)
{
    for (size_t i = 0; l->blocks && i < l->n; i++)
        block_drop(l->blocks[i]);
    for (size_t i = 0; i < l->nviews; i++)
        PyBuffer_Release(&l->views[i]);
    free(l->objects);
    free(l->blocks);
    free(l->views);
    free(l->requests);
}

static int loading_names(loading *l, PyObject *self, PyObject *names)
{
    if (names == Py_None) {
        l->objects = placed_objects(l->h, &l->n);
        return l->objects ? 0 : -1;
    }
    Py_ssize_t n = PySequence_Size(names);
    l->objects = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *l->objects);
    if (!l->objects)
        return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *name = PySequence_GetItem(names, i);
        const tnf_object *object = name ? file_find(l->h, name) : NULL;
        if (!object) {
            if (name)
                no_such_tensor(self, l->h, name);
            Py_XDECREF(name);
            return -1;
        }
        Py_DECREF(name);
        l->objects[l->n++] = object;
    }
    return 0;
}

static int loading_blocks(loading *l)
{
    l->blocks = calloc(l->n + 1, sizeof *l->blocks);
    l->requests = calloc(l->n + 1, sizeof *l->requests);
    if (!l->blocks || !l->requests)
        return PyErr_NoMemory(), -1;
    for (size_t i = 0; i < l->n; i++) {
        tensor t = { .h = l->h, .object = l->objects[i] };
        l->blocks[i] = tensor_block(&t);
        if (!l->blocks[i])
            return -1;
        l->requests[i].part = l->objects[i]->parts;
        l->requests[i].dst = l->blocks[i]->data;
        l->bytes += l->blocks[i]->nbytes;
    }
    return 0;
}

/* The caller's buffer for tensor i. */
static int loading_view(loading *l, size_t i, PyObject *into)
{
    tensor t = { .h = l->h, .object = l->objects[i] };
    const tnf_part *part = tensor_bytes(&t);
    PyObject *name = part ? str_of(l->objects[i]->name) : NULL;
    PyObject *target = name ? PyObject_GetItem(into, name) : NULL;
    Py_buffer *view = &l->views[l->nviews];
    int bad = target ? PyObject_GetBuffer(target, view, PyBUF_WRITABLE) : -1;
    Py_XDECREF(target);
    if (!bad) {
        l->nviews++;
        l->requests[i].part = part;
        l->requests[i].dst = view->buf;
        l->bytes += part->nbytes;
        if ((uint64_t)view->len != part->nbytes) {
            PyErr_Format(PyExc_ValueError, "the buffer of %R has %zd bytes, the tensor has %llu",
                         name, view->len, (unsigned long long)part->nbytes);
            bad = -1;
        }
    }
    Py_XDECREF(name);
    return bad;
}

static int loading_views(loading *l, PyObject *into)
{
    l->views = calloc(l->n + 1, sizeof *l->views);
    l->requests = calloc(l->n + 1, sizeof *l->requests);
    if (!l->views || !l->requests)
        return PyErr_NoMemory(), -1;
    for (size_t i = 0; i < l->n; i++) {
        if (loading_view(l, i, into) < 0)
            return -1;
    }
    return 0;
}

static tnf_status loading_run(void *ctx, tnf_error *e)
{
    loading *l = ctx;
    return tnf_read_many(l->requests, l->n, &l->how, e);
}

static PyObject *loading_dict(loading *l, bool numpy)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < l->n; i++) {
        PyObject *name = str_of(l->objects[i]->name);
        PyObject *arr = array_make(l->h->st, l->objects[i]->parts->type, l->blocks[i]);
        l->blocks[i] = NULL; /* the array owns it now */
        if (numpy && arr)
            arr = array_to_numpy(arr, l->objects[i]->name.p);
        if (!name || !arr || PyDict_SetItem(dict, name, arr) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(arr);
    }
    return dict;
}

static PyObject *file_load(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *keys[] = { "names", "threads", "progress", "numpy", "into", NULL };
    PyObject *names = Py_None, *progress = Py_None, *into = Py_None, *dict = NULL;
    unsigned threads = 0;
    int numpy = 1;
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OIOpO", (char **)(uintptr_t)keys, &names,
                                     &threads, &progress, &numpy, &into))
        return NULL;
    loading l = { .h = file_ready(self), .how = TNF_READ_INIT };
    if (!l.h)
        return NULL;
    Py_INCREF(AS_OBJECT(l.h)); /* a callback may close the file */
    l.work.progress = progress;
    l.work.h = l.h;
    l.how.threads = threads;
    l.how.progress = work_progress;
    l.how.ctx = &l.work;
    if (loading_names(&l, self, names) == 0 &&
        (into == Py_None ? loading_blocks(&l) : loading_views(&l, into)) == 0) {
        l.work.bytes = l.bytes;
        if (work_run(loading_run, &l, &l.work, &status, &e) == 0)
            dict = status != TNF_OK  ? raise_error(l.h->st, status, &e, l.h->path)
                   : into == Py_None ? loading_dict(&l, numpy)
                                     : Py_NewRef(into);
    }
    loading_free(&l);
    Py_DECREF(AS_OBJECT(l.h));
    return dict;
}

/* ------------------------------------------------------------------ the file */

static const tnf_info *file_info(PyObject *self)
{
    handle *h = file_ready(self);
    return h ? tnf_file_info(hold_file(h->hold)) : NULL;
}

/* One getter for all texts and numbers; its closure selects one. */
enum { INFO_FORMAT = 1, INFO_VERSION, INFO_SIZE, INFO_PAYLOAD, INFO_SHARDS };
#define INFO(which) (void *)(uintptr_t)INFO_##which

static PyObject *get_info(PyObject *self, void *which)
{
    const tnf_info *info = file_info(self);
    if (!info)
        return NULL;
    switch ((uintptr_t)which) {
    case INFO_FORMAT:
        return PyUnicode_FromString(info->format);
    case INFO_VERSION:
        return PyUnicode_FromString(info->version);
    case INFO_SIZE:
        return PyLong_FromUnsignedLongLong(info->size);
    case INFO_PAYLOAD:
        return PyLong_FromUnsignedLongLong(info->payload);
    default:
        return PyLong_FromSize_t(info->shards);
    }
}

static PyObject *get_attrs(PyObject *self, void *typed)
{
    const tnf_info *info = file_info(self);
    return info ? value_to_python(info->attrs, typed != NULL) : NULL;
}

PyObject *warning_pair(const tnf_warning *w)
{
    PyObject *text = PyUnicode_DecodeUTF8(w->message, (Py_ssize_t)strlen(w->message), "replace");
    return w->offset == TNF_NO_OFFSET ? Py_BuildValue("ON", Py_None, text)
                                      : Py_BuildValue("KN", (unsigned long long)w->offset, text);
}

static int told_by_servers(const handle *h, PyObject *list)
{
    int bad = net_warnings(h->net, list);
    for (Py_ssize_t i = 0, n = h->others ? PyList_Size(h->others) : 0; !bad && i < n; i++)
        bad = told_by_servers(DATA(handle, PyList_GetItem(h->others, i)), list);
    return bad;
}

static PyObject *get_warnings(PyObject *self, void *ignored)
{
    (void)ignored;
    const tnf_info *info = file_info(self);
    PyObject *list = info ? PyList_New((Py_ssize_t)info->nwarnings) : NULL;
    for (size_t i = 0; list && i < info->nwarnings; i++) {
        PyObject *pair = warning_pair(&info->warnings[i]);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0)
            Py_CLEAR(list);
    }
    if (list && told_by_servers(DATA(file, self)->h, list) < 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *get_extras(PyObject *self, void *ignored)
{
    (void)ignored;
    handle *h = file_ready(self);
    const tnf_info *info = h ? tnf_file_info(hold_file(h->hold)) : NULL;
    PyObject *dict = info ? PyDict_New() : NULL;
    for (size_t i = 0; dict && i < info->nextras; i++) {
        const tnf_part *part = &info->extras[i].bytes;
        tnf_error e = { .offset = TNF_NO_OFFSET };
        PyObject *key = str_of(info->extras[i].key);
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)part->nbytes);
        tnf_status status = bytes ? handle_read(h, part, PyBytes_AsString(bytes),
                                                (size_t)part->nbytes, &e)
                                  : TNF_ENOMEM;
        if (status != TNF_OK)
            raise_error(h->st, status, &e, h->path);
        if (!key || status != TNF_OK || PyDict_SetItem(dict, key, bytes) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(bytes);
    }
    return dict;
}

static PyObject *get_path(PyObject *self, void *ignored)
{
    (void)ignored;
    const handle *h = DATA(file, self)->h;
    return Py_NewRef(h && h->path ? h->path : Py_None);
}

static PyObject *get_closed(PyObject *self, void *ignored)
{
    (void)ignored;
    const handle *h = DATA(file, self)->h;
    return PyBool_FromLong(!h || h->closed);
}

static PyMethodDef file_methods[] = {
    { "close", file_close, METH_NOARGS, "Refuses new reads; existing arrays stay valid." },
    { "names", file_names, METH_NOARGS, "A list of the names, in file order." },
    { "placed", file_placed, METH_NOARGS, "A list of the names, by offset in the file." },
    { "glob", file_glob, METH_O, "A list of the names that match a pattern." },
    { "fetch", file_fetch, METH_O, "One tensor as a numpy array with memory of its own." },
    { "read", file_read, METH_O, "One tensor as a tenfold.Array." },
    { "load", KEYWORDS(file_load),
      "load(names=None, threads=0, progress=None, numpy=True, into=None): many tensors as a dict,\n"
      "or in the buffers of a mapping." },
    { NULL, NULL, 0, NULL },
};
static char yes; /* only its address is used */
static PyGetSetDef file_members[] = {
    { "format", get_info, NULL, "'safetensors' …", INFO(FORMAT) },
    { "version", get_info, NULL, "The version of the format.", INFO(VERSION) },
    { "size", get_info, NULL, "Bytes of the file, or of all its shards.", INFO(SIZE) },
    { "payload", get_info, NULL, "Decoded bytes of all tensors.", INFO(PAYLOAD) },
    { "shards", get_info, NULL, "Number of other files that the file names.", INFO(SHARDS) },
    { "attrs", get_attrs, NULL, "The attributes of the file.", NULL },
    { "attrs_typed", get_attrs, NULL, "The attributes with the exact types of numbers.", &yes },
    { "warnings", get_warnings, NULL, "A list of (offset, message).", NULL },
    { "extras", get_extras, NULL, "Bytes that the reader does not understand.", NULL },
    { "path", get_path, NULL, "The path or URL (without its query), or None.", NULL },
    { "closed", get_closed, NULL, "Is the file closed?", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot file_slots[] = { { Py_tp_new, file_new },
                                    { Py_tp_dealloc, file_free },
                                    { Py_tp_methods, file_methods },
                                    { Py_tp_getset, file_members },
                                    { Py_mp_subscript, file_item },
                                    { Py_mp_length, file_len },
                                    { Py_sq_contains, file_contains },
                                    { Py_tp_iter, file_iter },
                                    { 0, NULL } };
PyType_Spec file_spec = { .name = "tenfold._tenfold.File",
                          .basicsize = sizeof(file),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          .slots = file_slots };
