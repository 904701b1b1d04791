/* SPDX-License-Identifier: MIT */
/* Makes a Handle from a path, a descriptor, bytes, a file object, or a list of these.
 *
 *   str, PathLike, bytes     a path or a URL         tnf_open()
 *   int, .fileno()           a descriptor, copied    tnf_source_fd()
 *   other bytes-like         its memory              tnf_source_memory()
 *   .read() and .seek()      called with the GIL     tnf_source_custom()
 *   list                     of these, merged        tnf_builder_merge(), tnf_open_builder()
 */
#include "_tenfold.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------------------------- file objects */

typedef struct reader {
    PyInterpreterState *interp;
    PyObject *object;
    pthread_mutex_t lock; /* seek and read must not be separated */
} reader;

static tnf_status read_some(const reader *r, uint64_t offset, void *dst, size_t n, size_t *got,
                            tnf_error *e)
{
    PyObject *at = PyObject_CallMethod(r->object, "seek", "K", (unsigned long long)offset);
    PyObject *bytes = at ? PyObject_CallMethod(r->object, "read", "n", (Py_ssize_t)n) : NULL;
    Py_buffer view;
    Py_XDECREF(at);
    if (!bytes || PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(bytes);
        return fail_exception(e, offset, "the file object failed");
    }
    *got = (size_t)view.len < n ? (size_t)view.len : n;
    memcpy(dst, view.buf, *got);
    PyBuffer_Release(&view);
    Py_DECREF(bytes);
    return TNF_OK;
}

static tnf_status reader_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    reader *r = ctx;
    tnf_status status = TNF_OK;
    gil g;
    pthread_mutex_lock(&r->lock);
    gil_enter(&g, r->interp);
    for (size_t done = 0, got; status == TNF_OK && done < n; done += got) {
        got = 0;
        status = read_some(r, offset + done, (uint8_t *)dst + done, n - done, &got, e);
        if (status == TNF_OK && got == 0)
            status = tnf_error_set(e, TNF_ETRUNCATED, offset + done,
                                   "the file object ends %zu bytes too early", n - done);
    }
    gil_leave(&g);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static void reader_close(void *ctx)
{
    reader *r = ctx;
    pthread_mutex_destroy(&r->lock);
    free(r); /* the Handle owns the object */
}

static int reader_size(PyObject *object, uint64_t *size)
{
    PyObject *end = PyObject_CallMethod(object, "seek", "ii", 0, SEEK_END);
    PyObject *at = end ? PyObject_CallMethod(object, "tell", NULL) : NULL;
    *size = at ? PyLong_AsUnsignedLongLong(at) : 0;
    Py_XDECREF(end);
    Py_XDECREF(at);
    return PyErr_Occurred() ? -1 : 0;
}

static tnf_source *reader_source(handle *h, PyObject *object)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = reader_read,
                                        .close = reader_close };
    uint64_t size;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_source *source = NULL;
    if (reader_size(object, &size) < 0)
        return NULL;
    reader *r = malloc(sizeof *r);
    if (!r)
        return (void *)PyErr_NoMemory();
    *r = (reader) { .interp = PyInterpreterState_Get(), .object = object };
    pthread_mutex_init(&r->lock, NULL);
    h->object = Py_NewRef(object);
    h->of_python = true;
    tnf_status status = tnf_source_custom(&source, &ops, r, size, &e);
    if (status == TNF_OK)
        return source;
    reader_close(r);
    return raise_error(h->st, status, &e, NULL);
}

/* ------------------------------------------------------------------- options */

static int open_limits(tnf_limits *l, PyObject *dict)
{
    uint64_t rank = 0, depth = 0, name = 0;
    if (option_count(dict, "header_bytes", &l->header_bytes) < 0 ||
        option_count(dict, "memory", &l->memory) < 0 ||
        option_count(dict, "objects", &l->objects) < 0 || option_count(dict, "rank", &rank) < 0 ||
        option_count(dict, "depth", &depth) < 0 || option_count(dict, "name_bytes", &name) < 0 ||
        option_count(dict, "decoded_bytes", &l->decoded_bytes) < 0 ||
        option_count(dict, "output_bytes", &l->output_bytes) < 0)
        return -1;
    l->rank = (uint32_t)(rank < UINT32_MAX ? rank : UINT32_MAX);
    l->depth = (uint32_t)(depth < UINT32_MAX ? depth : UINT32_MAX);
    l->name_bytes = (uint32_t)(name < UINT32_MAX ? name : UINT32_MAX);
    return 0;
}

static int open_access(tnf_access *out, const char *word)
{
    *out = !word || !strcmp(word, "auto") ? TNF_ACCESS_AUTO
           : !strcmp(word, "mmap")        ? TNF_ACCESS_MMAP
                                          : TNF_ACCESS_PREAD;
    if (*out == TNF_ACCESS_PREAD && strcmp(word, "pread") != 0) {
        PyErr_Format(PyExc_ValueError, "access must be 'auto', 'mmap' or 'pread', not '%s'", word);
        return -1;
    }
    return 0;
}

static int open_options(tnf_open_options *out, PyObject *options, PyObject *arena)
{
    const char *access = NULL;
    PyObject *limits = option_value(options, "limits");
    if (limits && !PyDict_Check(limits)) {
        PyErr_SetString(PyExc_TypeError, "limits must be a dict");
        return -1;
    }
    if (option_text(options, "format", arena, &out->format) < 0 ||
        option_text(options, "access", arena, &access) < 0 ||
        option_flag(options, "lenient", &out->lenient) < 0 ||
        option_flag(options, "salvage", &out->salvage) < 0 ||
        option_flag(options, "incomplete", &out->incomplete) < 0 ||
        option_flag(options, "to_change", &out->to_change) < 0 ||
        open_access(&out->access, access) < 0 || open_limits(&out->limits, limits) < 0)
        return -1;
    return option_pairs(options, "options", arena, &out->options, &out->noptions);
}

/* ------------------------------------------------------------------- opening */

typedef struct opening {
    handle *h;
    tnf_open_options how;
    tnf_url_options remote;
    PyObject *arena;
    int fd;
    const char *path;
    tnf_file *file;
} opening;

static int open_done(opening *o, tnf_status status, tnf_file *file, const tnf_error *e)
{
    handle *h = o->h;
    if (status == TNF_OK) {
        h->hold = hold_new(file, o->fd, h->net);
        if (h->hold)
            return 0;
        tnf_close(file);
        PyErr_NoMemory();
    } else {
        raise_error(h->st, status, e, h->path);
    }
    if (o->fd >= 0)
        close(o->fd);
    return -1;
}

/* Sets the network options, which are used while the library waits for a server. */
static int open_far(opening *o)
{
    o->h->net = net_new();
    if (!o->h->net)
        return PyErr_NoMemory(), -1;
    net_options(o->h->net, &o->remote);
    o->how.remote = &o->remote;
    o->h->far = true;
    return 0;
}

static tnf_status run_open(void *ctx, tnf_error *e)
{
    opening *o = ctx;
    return tnf_open(&o->file, o->path, &o->how, e);
}

static int open_path(opening *o, PyObject *source)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(source, &bytes))
        return -1;
    o->path = PyBytes_AsString(bytes);
    o->h->path = path_shown(o->path);
    int bad = !o->h->path || (tnf_is_url(o->path) && open_far(o) < 0) ? -1 : 0;
    if (!bad) {
        tnf_status status = handle_run(o->h, run_open, o, &e);
        if (status != TNF_OK)
            tnf_close(o->file); /* Ctrl-C came after it was opened */
        bad = open_done(o, status, o->file, &e);
    }
    Py_DECREF(bytes);
    return bad;
}

static int open_source(opening *o, tnf_source *source)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_file *file = NULL;
    PyThreadState *save = PyEval_SaveThread();
    tnf_status status = tnf_open_source(&file, source, &o->how, &e);
    PyEval_RestoreThread(save);
    return open_done(o, status, file, &e);
}

static int open_descriptor(opening *o, int fd)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_source *source = NULL;
    o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (o->fd < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    tnf_status status = tnf_source_fd(&source, o->fd, o->how.access, &e);
    return status == TNF_OK ? open_source(o, source) : open_done(o, status, NULL, &e);
}

static int open_memory(opening *o, PyObject *bytes)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_source *source = NULL;
    if (PyObject_GetBuffer(bytes, &o->h->buffer, PyBUF_SIMPLE) < 0)
        return -1;
    o->h->of_python = true;
    tnf_status status = tnf_source_memory(&source, o->h->buffer.buf, (size_t)o->h->buffer.len, &e);
    return status == TNF_OK ? open_source(o, source) : open_done(o, status, NULL, &e);
}

static int open_object(opening *o, PyObject *source)
{
    PyObject *number = PyObject_CallMethod(source, "fileno", NULL);
    if (number) {
        int fd = (int)PyLong_AsLong(number);
        Py_DECREF(number);
        if (fd >= 0)
            return open_descriptor(o, fd);
    }
    PyErr_Clear();
    if (!PyObject_HasAttrString(source, "read") || !PyObject_HasAttrString(source, "seek")) {
        PyErr_Format(PyExc_TypeError,
                     "open() takes a path, a descriptor, bytes, a file object or a list of these, "
                     "not %R",
                     (PyObject *)Py_TYPE(source));
        return -1;
    }
    tnf_source *made = reader_source(o->h, source);
    return made ? open_source(o, made) : -1;
}

/* Several files as one read-only file; duplicate names are refused. */
static int open_merged(opening *o, PyObject *list, PyObject *options)
{
    Py_ssize_t n = PySequence_Size(list);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_file *file = NULL;
    tnf_status status = TNF_OK;
    const tnf_file **files = n > 0 ? arena_take(o->arena, (size_t)n * sizeof *files) : NULL;
    o->h->others = PyList_New(0);
    o->h->of_python = true;
    if (n == 0)
        PyErr_SetString(PyExc_ValueError, "the list of files is empty");
    if (!files || !o->h->others)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        handle *one = item ? handle_open(o->h->st, item, options) : NULL;
        Py_XDECREF(item);
        if (!one)
            return -1;
        files[i] = hold_file(one->hold);
        o->h->far = o->h->far || one->far;
        int bad = PyList_Append(o->h->others, AS_OBJECT(one));
        Py_DECREF(AS_OBJECT(one));
        if (bad)
            return -1;
    }
    status = tnf_builder_new(&o->h->builder, NULL, &e);
    if (status == TNF_OK)
        status = tnf_builder_merge(o->h->builder, files, NULL, (size_t)n, NULL, &e);
    if (status == TNF_OK)
        status = tnf_open_builder(&file, o->h->builder, NULL, &e);
    return open_done(o, status, file, &e);
}

static int open_any(opening *o, PyObject *source, PyObject *options)
{
    bool content = false;
    if (option_flag(options, "content", &content) < 0)
        return -1;
    if (content)
        return open_memory(o, source);
    if (PyUnicode_Check(source) || PyBytes_Check(source) ||
        PyObject_HasAttrString(source, "__fspath__"))
        return open_path(o, source);
    if (PyLong_Check(source) && !PyBool_Check(source)) {
        int fd = (int)PyLong_AsLong(source);
        return PyErr_Occurred() ? -1 : open_descriptor(o, fd);
    }
    if (PyObject_CheckBuffer(source))
        return open_memory(o, source);
    if (PyList_Check(source) || PyTuple_Check(source))
        return open_merged(o, source, options);
    return open_object(o, source);
}

handle *handle_open(state *st, PyObject *source, PyObject *options)
{
    handle *h = PyObject_New(handle, st->handle_type);
    if (!h)
        return NULL;
    h->st = st;
    h->hold = NULL;
    h->closed = h->of_python = h->compat = h->quick = h->far = false;
    h->net = NULL;
    h->object = h->others = h->path = NULL;
    h->builder = NULL;
    memset(&h->buffer, 0, sizeof h->buffer);
    opening o = {
        .h = h, .how = TNF_OPEN_INIT, .remote = TNF_URL_INIT, .arena = PyList_New(0), .fd = -1
    };
    if (!o.arena || open_options(&o.how, options, o.arena) < 0 ||
        option_flag(options, "compat", &h->compat) < 0 ||
        option_flag(options, "quick", &h->quick) < 0 || open_any(&o, source, options) < 0) {
        Py_CLEAR(h);
    }
    Py_XDECREF(o.arena);
    return h;
}

static void handle_free(PyObject *self)
{
    handle *h = DATA(handle, self);
    PyTypeObject *type = Py_TYPE(self);
    if (!h->hold)
        net_free(h->net); /* opening has failed */
    hold_drop(h->hold);   /* before the memory or object that it reads from */
    tnf_builder_free(h->builder);
    if (h->buffer.obj)
        PyBuffer_Release(&h->buffer);
    Py_XDECREF(h->object);
    Py_XDECREF(h->others);
    Py_XDECREF(h->path);
    PyObject_Free(self);
    Py_DECREF(type);
}

int handle_ready(handle *h)
{
    if (h && !h->closed)
        return 0;
    if (h)
        raise_text(h->st, TNF_EINVAL, "File is closed");
    return -1;
}

static PyType_Slot handle_slots[] = { { Py_tp_dealloc, handle_free }, { 0, NULL } };
PyType_Spec handle_spec = { .name = "tenfold._tenfold.Handle",
                            .basicsize = sizeof(handle),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = handle_slots };
