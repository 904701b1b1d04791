/* SPDX-License-Identifier: MIT */
/* VS files: the base of tenfold/points.py. Opens and reads them. Several threads may use a handle,
 * one after the other. No thread waits for another one, or for a lock of the file, with the GIL. */
#include "_tenfold_points.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ----------------------------------------------------------------- entering */

/* Waits a tenth of a second at most. Called without the GIL. */
static bool take_handle(points *p, unsigned long me)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += until.tv_nsec >= 900000000;
    until.tv_nsec = (until.tv_nsec + 100000000) % 1000000000;
    pthread_mutex_lock(&p->mutex);
    if (p->busy)
        pthread_cond_timedwait(&p->freed, &p->mutex, &until);
    bool taken = !p->busy;
    if (taken) {
        p->busy = true;
        p->owner = me;
    }
    pthread_mutex_unlock(&p->mutex);
    return taken;
}

static bool is_own(points *p, unsigned long me)
{
    pthread_mutex_lock(&p->mutex);
    bool own = p->busy && p->owner == me;
    pthread_mutex_unlock(&p->mutex);
    return own;
}

int points_enter(points *p)
{
    unsigned long me = PyThread_get_thread_ident();
    if (p->process != getpid())
        return raise_text(p->st, TNF_EINVAL,
                          "Points were opened by another process; open them again"),
               -1;
    if (is_own(p, me)) /* by a finalizer, or a handler of a signal */
        return raise_text(p->st, TNF_EINVAL, "Points are in use by this thread"), -1;
    for (bool taken = false; !taken;) {
        PyThreadState *save = PyEval_SaveThread();
        taken = take_handle(p, me);
        PyEval_RestoreThread(save);
        if (!taken && PyErr_CheckSignals() < 0)
            return -1;
    }
    if (p->c)
        return 0;
    points_leave(p);
    return raise_text(p->st, TNF_EINVAL, "Points are closed"), -1;
}

void points_leave(points *p)
{
    pthread_mutex_lock(&p->mutex);
    p->busy = false;
    pthread_cond_signal(&p->freed);
    pthread_mutex_unlock(&p->mutex);
}

/* Called by the library while it works or waits for a lock. */
static bool go_on(void *ctx)
{
    points *p = ctx;
    PyEval_RestoreThread(p->save);
    int bad = PyErr_CheckSignals();
    p->save = PyEval_SaveThread();
    return bad == 0;
}

int points_call(points *p, points_fn run, void *ctx)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    p->save = PyEval_SaveThread();
    tnf_status status = run(p, ctx, &e);
    PyEval_RestoreThread(p->save);
    if (status == TNF_EUNSYNCED)
        return PyErr_WarnEx(PyExc_RuntimeWarning, e.message, 1);
    if (status == TNF_OK && !PyErr_Occurred())
        return 0;
    raise_error(p->st, status, &e, p->path);
    return -1;
}

/* ---------------------------------------------------------------------- ids */

PyObject *points_id_text(tnf_point_id id)
{
    char text[TNF_POINT_ID_TEXT];
    size_t n = tnf_point_id_text(text, id);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)n);
}

int points_id_from(points *p, tnf_point_id *out, PyObject *object, bool offset)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    Py_ssize_t n;
    if (offset && PyLong_Check(object)) {
        *out = (tnf_point_id) { PyLong_AsUnsignedLongLong(object), 0 };
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "the id of a point is a str like '16:0a1b2c3d', not %R",
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    const char *text = PyUnicode_AsUTF8AndSize(object, &n);
    tnf_status status = text ? tnf_point_id_parse(out, text, (size_t)n, &e) : TNF_EINVAL;
    if (status != TNF_OK)
        raise_error(p->st, status, &e, NULL);
    return status == TNF_OK ? 0 : -1;
}

/* ------------------------------------------------------------------ opening */

static int word_position(PyObject *options, const char *key, const char *const *words, int *out)
{
    PyObject *arena = PyList_New(0);
    const char *word = NULL;
    int bad = arena ? option_text(options, key, arena, &word) : -1;
    *out = 0;
    for (int i = 0; !bad && word && words[i]; i++) {
        if (!strcmp(word, words[i])) {
            *out = i;
            word = NULL;
        }
    }
    if (!bad && word) {
        PyErr_Format(PyExc_ValueError, "%s cannot be '%s'", key, word);
        bad = -1;
    }
    Py_XDECREF(arena);
    return bad;
}

static int open_options(tnf_points_options *out, PyObject *options)
{
    static const char *const packs[] = { "auto", "raw", "gzip", "snappy", NULL };
    bool sync = true, lock = true;
    int pack;
    PyObject *timeout = option_value(options, "timeout");
    double seconds = timeout ? PyFloat_AsDouble(timeout) : 0;
    if ((seconds < 0 && PyErr_Occurred()) || option_flag(options, "write", &out->write) < 0 ||
        option_flag(options, "sync", &sync) < 0 || option_flag(options, "lock", &lock) < 0 ||
        option_flag(options, "pack_app", &out->pack_app) < 0 ||
        option_flag(options, "msb", &out->varint_msb) < 0 ||
        word_position(options, "pack", packs, &pack) < 0)
        return -1;
    if (!(seconds >= 0 && seconds <= 4e6)) {
        PyErr_SetString(PyExc_ValueError, "timeout must be between 0 and 4000000 seconds");
        return -1;
    }
    out->pack = (tnf_points_pack)pack;
    out->sync = sync ? TNF_POINTS_SYNC : TNF_POINTS_NO_SYNC;
    out->timeout_ms = (uint32_t)(seconds * 1000);
    out->lock = !lock ? TNF_POINTS_NO_LOCK : timeout ? TNF_POINTS_TIMEOUT : TNF_POINTS_WAIT;
    return 0;
}

typedef struct opening {
    tnf_points_options how;
    tnf_space space; /* of a file to be created */
    bool create;
    PyObject *arena;
} opening;

static tnf_status run_open(points *p, void *ctx, tnf_error *e)
{
    const opening *o = ctx;
    const char *path = PyBytes_AsString(p->place);
    return o->create ? tnf_points_create(&p->c, path, &o->space, &p->how, e)
                     : tnf_points_open(&p->c, path, &p->how, e);
}

/* The space of a new file, from a dict. */
static int open_space(opening *o, state *st, PyObject *space)
{
    const char *resolution = NULL;
    PyObject *list = option_value(space, "dims"), *tree = option_value(space, "attributes");
    Py_ssize_t n = list ? PySequence_Size(list) : -1;
    uint64_t *dims = n < 0 ? NULL : arena_take(o->arena, ((size_t)n + 1) * sizeof *dims);
    tnf_value *attributes = dims ? arena_take(o->arena, sizeof *attributes) : NULL;
    if (!attributes || option_text(space, "resolution", o->arena, &resolution) < 0 ||
        (tree && value_from_python(attributes, tree, o->arena) < 0))
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        dims[i] = item ? PyLong_AsUnsignedLongLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    o->space = (tnf_space) { .size = sizeof o->space,
                             .dims = dims,
                             .rank = (uint32_t)n,
                             .scalar = n == 0,
                             .pack = o->how.pack == TNF_POINTS_SNAPPY,
                             .attributes = tree ? attributes : NULL };
    if (!strcmp(resolution, "string") || !strcmp(resolution, "json"))
        o->space.resolution = resolution;
    else if (!(o->space.type = tnf_type_spelled(resolution)))
        return raise_text(st, TNF_EINVAL, "there is no type '%.60s'", resolution), -1;
    return 0;
}

static points *points_alloc(PyTypeObject *type, state *st)
{
    points *p = PyObject_New(points, type);
    if (!p)
        return NULL;
    p->st = st;
    p->path = p->place = NULL;
    p->c = NULL;
    p->process = getpid();
    p->save = NULL;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->freed, NULL);
    p->busy = false;
    p->owner = 0;
    return p;
}

/* Points(path, options, space or None) */
static PyObject *points_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *path, *options, *space, *bytes = NULL;
    opening o = { .how = TNF_POINTS_INIT, .space = TNF_SPACE_INIT, .arena = PyList_New(0) };
    points *p = NULL;
    (void)kwargs;
    state *st = PyType_GetModuleState(type);
    if (st && o.arena && PyArg_ParseTuple(args, "OO!O", &path, &PyDict_Type, &options, &space) &&
        PyUnicode_FSConverter(path, &bytes) && open_options(&o.how, options) == 0 &&
        (space == Py_None || open_space(&o, st, space) == 0))
        p = points_alloc(type, st);
    if (p) {
        o.create = space != Py_None;
        p->how = o.how;
        p->how.go_on = go_on;
        p->how.go_on_ctx = p;
        p->place = Py_NewRef(bytes);
        p->path = path_shown(PyBytes_AsString(bytes));
        if (!p->path || points_call(p, run_open, &o) < 0)
            Py_CLEAR(p);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(o.arena);
    return AS_OBJECT(p);
}

static void points_free(PyObject *self)
{
    points *p = DATA(points, self);
    PyTypeObject *type = Py_TYPE(self);
    /* In a child process, a thread of the parent may have been inside the handle. */
    if (p->process == getpid() || !p->busy)
        tnf_points_close(p->c);
    pthread_cond_destroy(&p->freed);
    pthread_mutex_destroy(&p->mutex);
    Py_XDECREF(p->path);
    Py_XDECREF(p->place);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *points_close(PyObject *self, PyObject *ignored)
{
    points *p = DATA(points, self);
    (void)ignored;
    if (!p->c || p->process != getpid()) /* the handle of another process is freed at its end */
        return Py_NewRef(Py_None);
    if (points_enter(p) < 0) {
        if (p->c) /* not closed by another thread meanwhile */
            return NULL;
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    tnf_points_close(p->c);
    p->c = NULL;
    points_leave(p);
    return Py_NewRef(Py_None);
}

static PyObject *points_closed(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyBool_FromLong(DATA(points, self)->c == NULL);
}

static PyObject *points_path(PyObject *self, void *ignored)
{
    (void)ignored;
    return Py_NewRef(DATA(points, self)->path);
}

/* -------------------------------------------------------------------- space */

static PyObject *space_dict(const tnf_space *s)
{
    PyObject *attributes = s->attributes ? value_to_python(s->attributes, false)
                                         : Py_NewRef(Py_None);
    return Py_BuildValue("{szszsNsisisKsKsN}", "dtype", s->type ? s->type->id : NULL, "resolution",
                         s->resolution, "dims", shape_tuple(s->dims, s->rank), "pack", s->pack,
                         "paging", s->paging, "elements", (unsigned long long)s->elements,
                         "vector_bytes", (unsigned long long)s->vector_bytes, "attributes",
                         attributes);
}

/* space() -> a dict, or None */
static PyObject *points_space(PyObject *self, PyObject *ignored)
{
    points *p = DATA(points, self);
    (void)ignored;
    if (points_enter(p) < 0)
        return NULL;
    const tnf_space *s = tnf_points_space(p->c);
    PyObject *dict = s ? space_dict(s) : Py_NewRef(Py_None);
    points_leave(p);
    return dict;
}

static PyMethodDef points_methods[] = {
    { "close", points_close, METH_NOARGS, "Waits for other threads, and closes the file." },
    { "space", points_space, METH_NOARGS, "A dict, or None." },
    { "page", points_read_page, METH_VARARGS, "page(after, points, bytes, rows)" },
    { "read", points_read, METH_O, "read(id): (ids, vectors, apps)" },
    { "append", points_append, METH_VARARGS, "append(vectors, apps): ids" },
    { "delete", points_delete, METH_VARARGS, "delete(ids, shred, unchecked)" },
    { "delete_app", points_delete_app, METH_VARARGS, "delete_app(app, shred): their number" },
    { "compact", points_compact, METH_O, "compact(drop_unknown): [(old, new), …]" },
    { "set_attributes", points_set_attributes, METH_VARARGS, "set_attributes(tree, in_place)" },
    { "verify", points_verify, METH_NOARGS, "(dict, [(status, offset, message), …])" },
    { "salvage", points_salvage, METH_NOARGS, "((ids, vectors, apps), dict, damage or None)" },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef points_members[] = {
    { "closed", points_closed, NULL, "Is it closed?", NULL },
    { "path", points_path, NULL, "The path of the file.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot points_slots[] = { { Py_tp_new, points_new },
                                      { Py_tp_dealloc, points_free },
                                      { Py_tp_methods, points_methods },
                                      { Py_tp_getset, points_members },
                                      { 0, NULL } };
PyType_Spec points_spec = { .name = "tenfold._tenfold.Points",
                            .basicsize = sizeof(points),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = points_slots };
