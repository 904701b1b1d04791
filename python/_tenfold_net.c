/* SPDX-License-Identifier: MIT */
/* Remote files: showing a URL, the warnings of its server, and Ctrl-C for a read that hangs.
 *
 * A server that does not answer would block the thread that waits for it, and Python checks signals
 * on its main thread only. So reads of such a file run like long work (_tenfold_work.c). To stop
 * one, a flag in the file's `net` is set, which the library checks while it waits. */
#include "_tenfold.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A limit for servers that send warnings without end. */
enum { MOST_WARNINGS = 64 };

/* The C file uses it from any thread; like that file, it may outlive Python. */
struct net {
    atomic_int stops; /* number of stopped works that have not ended yet */
    pthread_mutex_t lock;
    tnf_warning warnings[MOST_WARNINGS]; /* the messages are copies */
    size_t n;
};

net *net_new(void)
{
    net *far = calloc(1, sizeof *far);
    if (far) {
        atomic_init(&far->stops, 0);
        pthread_mutex_init(&far->lock, NULL);
    }
    return far;
}

void net_free(net *far)
{
    if (!far)
        return;
    for (size_t i = 0; i < far->n; i++)
        free((void *)(uintptr_t)far->warnings[i].message);
    pthread_mutex_destroy(&far->lock);
    free(far);
}

static bool not_stopped(void *ctx, uint64_t done, uint64_t total)
{
    net *far = ctx;
    (void)done, (void)total;
    return atomic_load_explicit(&far->stops, memory_order_relaxed) == 0;
}

static void on_warning(void *ctx, const tnf_warning *warning)
{
    net *far = ctx;
    pthread_mutex_lock(&far->lock);
    bool known = far->n == MOST_WARNINGS;
    for (size_t i = 0; !known && i < far->n; i++)
        known = !strcmp(far->warnings[i].message, warning->message);
    char *copy = known ? NULL : strdup(warning->message);
    if (copy)
        far->warnings[far->n++] = (tnf_warning) { .offset = warning->offset, .message = copy };
    pthread_mutex_unlock(&far->lock);
}

void net_options(net *far, tnf_url_options *out)
{
    out->progress = not_stopped;
    out->warn = on_warning;
    out->ctx = far;
}

int net_warnings(net *far, PyObject *list)
{
    int bad = 0;
    size_t n = 0;
    if (!far)
        return 0;
    pthread_mutex_lock(&far->lock);
    n = far->n;
    pthread_mutex_unlock(&far->lock); /* existing entries do not change any more */
    for (size_t i = 0; !bad && i < n; i++) {
        PyObject *pair = warning_pair(&far->warnings[i]);
        bad = !pair || PyList_Append(list, pair) < 0;
        Py_XDECREF(pair);
    }
    return bad ? -1 : 0;
}

/* ------------------------------------------------------------------ stopping */

static void stop_handle(const handle *h, int by)
{
    if (h->net)
        atomic_fetch_add(&h->net->stops, by);
    for (Py_ssize_t i = 0, n = h->others ? PyList_Size(h->others) : 0; i < n; i++)
        stop_handle(DATA(handle, PyList_GetItem(h->others, i)), by);
}

/* The handle of an item of a list of files and tensors; NULL: the item is neither. */
static const handle *listed_handle(const state *st, PyObject *item)
{
    if (Py_TYPE(item) == st->handle_type)
        return DATA(handle, item);
    return Py_TYPE(item) == st->tensor_type ? DATA(tensor, item)->h : NULL;
}

void net_stop(const work *w, int by)
{
    if (w->h)
        stop_handle(w->h, by);
    for (Py_ssize_t i = 0, n = w->kept ? PyList_Size(w->kept) : 0; i < n; i++) {
        const handle *h = listed_handle(w->st, PyList_GetItem(w->kept, i));
        if (h)
            stop_handle(h, by);
    }
}

bool net_used(const work *w)
{
    bool used = w->h && w->h->far;
    for (Py_ssize_t i = 0, n = w->kept ? PyList_Size(w->kept) : 0; !used && i < n; i++) {
        const handle *h = listed_handle(w->st, PyList_GetItem(w->kept, i));
        used = h && h->far;
    }
    return used;
}

/* ------------------------------------------------------------------- reading */

tnf_status handle_run(handle *h, work_fn run, void *ctx, tnf_error *error)
{
    tnf_status status = TNF_OK;
    if (h->far) {
        work w = { .h = h };
        return work_run(run, ctx, &w, &status, error) < 0 ? TNF_ECANCELLED : status;
    }
    PyThreadState *save = PyEval_SaveThread();
    status = run(ctx, error);
    PyEval_RestoreThread(save);
    return status;
}

typedef struct reading {
    const tnf_part *part;
    void *dst;
    size_t n;
} reading;

static tnf_status run_reading(void *ctx, tnf_error *error)
{
    const reading *r = ctx;
    return tnf_read_part(r->dst, r->n, r->part, 0, error);
}

tnf_status handle_read(handle *h, const tnf_part *part, void *dst, size_t n, tnf_error *error)
{
    reading r = { part, dst, n };
    return handle_run(h, run_reading, &r, error);
}

/* ------------------------------------------------------------------- showing */

PyObject *path_shown(const char *path)
{
    size_t n = strlen(path) + 1;
    char *text = PyMem_Malloc(n);
    if (!text)
        return PyErr_NoMemory();
    n = tnf_show_url(text, n, path);
    PyObject *shown = PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)n);
    PyMem_Free(text);
    return shown;
}

/* shown(path): the path or URL without secrets; is_url(path): is it a URL? */
PyObject *net_shown(PyObject *module, PyObject *path)
{
    PyObject *bytes = NULL;
    (void)module;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    PyObject *shown = path_shown(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return shown;
}

PyObject *net_is_url(PyObject *module, PyObject *path)
{
    PyObject *bytes = NULL;
    (void)module;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    bool url = tnf_is_url(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return PyBool_FromLong(url);
}

/* ------------------------------------------------------------------ fetching */

typedef struct fetching {
    const char *url, *folder;
    tnf_fetch_options how;
    tnf_url_options remote;
    PyInterpreterState *interp;
    PyObject *files; /* a list of (name, bytes, fetched now) */
    work work;
} fetching;

static bool fetch_progress(void *ctx, uint64_t done, uint64_t total)
{
    fetching *f = ctx;
    return work_progress(&f->work, done, total);
}

static void on_file(void *ctx, const char *name, uint64_t bytes, bool fetched)
{
    fetching *f = ctx;
    gil g;
    gil_enter(&g, f->interp);
    PyObject *item = Py_BuildValue("NKO", PyUnicode_DecodeFSDefault(name),
                                   (unsigned long long)bytes, fetched ? Py_True : Py_False);
    if (!item || PyList_Append(f->files, item) < 0)
        PyErr_Clear(); /* out of memory; the file is complete nevertheless */
    Py_XDECREF(item);
    gil_leave(&g);
}

static tnf_status run_fetch(void *ctx, tnf_error *e)
{
    const fetching *f = ctx;
    return tnf_fetch(f->url, f->folder, &f->how, e);
}

static PyObject *fetch_go(state *st, fetching *f, net *far)
{
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    net_options(far, &f->remote);
    f->how.remote = &f->remote;
    f->how.progress = fetch_progress;
    f->how.file = on_file;
    f->how.ctx = f;
    f->work.bytes = UINT64_MAX; /* always on a thread, so that Ctrl-C works */
    if (work_run(run_fetch, f, &f->work, &status, &e) < 0)
        return NULL;
    PyObject *warnings = PyList_New(0), *result = NULL;
    if (warnings && status != TNF_OK) {
        PyObject *shown = path_shown(f->url);
        raise_error(st, status, &e, shown);
        Py_XDECREF(shown);
    } else if (warnings && net_warnings(far, warnings) == 0) {
        result = Py_BuildValue("OO", f->files, warnings);
    }
    Py_XDECREF(warnings);
    return result;
}

/* fetch(url, folder, {"replace", "progress", "options"}) -> (files, warnings) */
PyObject *net_fetch(PyObject *module, PyObject *args)
{
    PyObject *url = NULL, *folder = NULL, *options, *result = NULL;
    if (!PyArg_ParseTuple(args, "O&O&O!", PyUnicode_FSConverter, &url, PyUnicode_FSConverter,
                          &folder, &PyDict_Type, &options))
        return NULL;
    fetching f = { .url = PyBytes_AsString(url),
                   .folder = PyBytes_AsString(folder),
                   .how = TNF_FETCH_INIT,
                   .remote = TNF_URL_INIT,
                   .interp = PyInterpreterState_Get(),
                   .files = PyList_New(0) };
    PyObject *arena = PyList_New(0);
    net *far = net_new();
    f.work.progress = option_value(options, "progress");
    if (!far)
        PyErr_NoMemory();
    else if (f.files && arena && option_flag(options, "replace", &f.how.replace) == 0 &&
             option_pairs(options, "options", arena, &f.how.options, &f.how.noptions) == 0)
        result = fetch_go(state_of(module), &f, far);
    net_free(far);
    Py_XDECREF(arena);
    Py_XDECREF(f.files);
    Py_DECREF(url);
    Py_DECREF(folder);
    return result;
}
