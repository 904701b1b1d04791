/* SPDX-License-Identifier: MIT */
/* Changes VS files: appends and deletes points, compacts the file, sets its attributes. */
#include "_tenfold_points.h"
#include <stdlib.h>
#include <string.h>

typedef struct editing {
    tnf_point *batch;
    tnf_point_id *ids;
    size_t n;
    unsigned flags;
    tnf_value value;
    bool has_value;
    uint64_t deleted;
    uint64_t (*moves)[2];
    size_t nmoves, room;
    bool lost; /* moves, since memory was exhausted */
} editing;

/* ------------------------------------------------------------------- append */

/* A point from a line of JSON, or from the bytes of its vector. */
static int put_vector(points *p, tnf_point *out, PyObject *item, Py_buffer *view)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    Py_ssize_t n;
    *out = (tnf_point)TNF_POINT_INIT;
    if (PyUnicode_Check(item)) {
        const char *text = PyUnicode_AsUTF8AndSize(item, &n);
        tnf_status status = text ? tnf_points_parse(out, p->c, text, (size_t)n, &e) : TNF_EINVAL;
        return status == TNF_OK ? 0 : (raise_error(p->st, status, &e, NULL), -1);
    }
    if (PyObject_GetBuffer(item, view, PyBUF_SIMPLE) < 0)
        return -1;
    out->vector = view->buf;
    out->vector_n = (size_t)view->len;
    return 0;
}

/* Points from one buffer of all vectors, which the caller releases. */
static int put_matrix(const points *p, editing *d, PyObject *matrix, Py_buffer *view,
                      PyObject *arena)
{
    const tnf_space *s = tnf_points_space(p->c);
    size_t size = s ? (size_t)s->vector_bytes : 0;
    if (PyObject_GetBuffer(matrix, view, PyBUF_SIMPLE) < 0)
        return -1;
    if (size == 0 || (size_t)view->len % size)
        return raise_text(p->st, TNF_EINVAL, "%zd bytes are not vectors of %zu bytes", view->len,
                          size),
               -1;
    d->n = (size_t)view->len / size;
    d->batch = arena_take(arena, (d->n + 1) * sizeof *d->batch);
    for (size_t i = 0; d->batch && i < d->n; i++) {
        d->batch[i] = (tnf_point)TNF_POINT_INIT;
        d->batch[i].vector = (const char *)view->buf + i * size;
        d->batch[i].vector_n = size;
    }
    return d->batch ? 0 : -1;
}

static int put_list(points *p, editing *d, PyObject *list, Py_buffer *views, PyObject *arena)
{
    d->n = (size_t)PyTuple_Size(list);
    d->batch = arena_take(arena, (d->n + 1) * sizeof *d->batch);
    for (size_t i = 0; d->batch && i < d->n; i++) {
        if (put_vector(p, &d->batch[i], PyTuple_GetItem(list, (Py_ssize_t)i), &views[i]) < 0)
            return -1;
    }
    return d->batch ? 0 : -1;
}

/* Application data; None is a point without them. */
static int put_apps(editing *d, PyObject *apps, PyObject *arena)
{
    Py_ssize_t n = apps == Py_None ? 0 : PyTuple_Size(apps);
    if (apps == Py_None || n < 0)
        return apps == Py_None ? 0 : -1;
    if (n != (Py_ssize_t)d->n) {
        PyErr_Format(PyExc_ValueError, "there are %zd apps for %zu points", n, d->n);
        return -1;
    }
    tnf_value *values = arena_take(arena, (d->n + 1) * sizeof *values);
    for (size_t i = 0; values && i < d->n; i++) {
        PyObject *app = PyTuple_GetItem(apps, (Py_ssize_t)i);
        if (value_from_python(&values[i], app, arena) < 0)
            return -1;
        d->batch[i].value = app == Py_None ? NULL : &values[i];
    }
    return values ? 0 : -1;
}

static PyObject *id_list(const editing *d)
{
    PyObject *list = PyList_New((Py_ssize_t)d->n);
    for (size_t i = 0; list && i < d->n; i++) {
        PyObject *id = points_id_text(d->ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static tnf_status run_append(points *p, void *ctx, tnf_error *e)
{
    const editing *d = ctx;
    return tnf_points_append(d->ids, p->c, d->batch, d->n, e);
}

/* append(vectors, apps or None) -> ids. `vectors` is a buffer of all of them, or a tuple of
 * buffers and of lines of JSON; `apps` is a tuple. */
PyObject *points_append(PyObject *self, PyObject *args)
{
    points *p = DATA(points, self);
    PyObject *vectors, *apps, *result = NULL, *arena = NULL;
    editing d = { .n = 0 };
    if (!PyArg_ParseTuple(args, "OO", &vectors, &apps))
        return NULL;
    bool list = PyTuple_Check(vectors);
    size_t nviews = list ? (size_t)PyTuple_Size(vectors) : 1;
    Py_buffer *views = calloc(nviews + 1, sizeof *views);
    if (!views)
        return PyErr_NoMemory();
    if (points_enter(p) == 0) {
        if ((arena = PyList_New(0)) &&
            (list ? put_list(p, &d, vectors, views, arena)
                  : put_matrix(p, &d, vectors, views, arena)) == 0 &&
            put_apps(&d, apps, arena) == 0 &&
            (d.ids = arena_take(arena, (d.n + 1) * sizeof *d.ids)) &&
            points_call(p, run_append, &d) == 0)
            result = id_list(&d);
        points_leave(p);
    }
    for (size_t i = 0; i < nviews; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
    free(views);
    Py_XDECREF(arena);
    return result;
}

/* ------------------------------------------------------------------- delete */

static tnf_status run_delete(points *p, void *ctx, tnf_error *e)
{
    const editing *d = ctx;
    return tnf_points_delete(p->c, d->ids, d->n, d->flags, e);
}

/* delete(ids, shred, unchecked): a tuple of ids or, if unchecked, also of offsets */
PyObject *points_delete(PyObject *self, PyObject *args)
{
    points *p = DATA(points, self);
    PyObject *list, *arena = NULL;
    int shred, unchecked, bad = -1;
    editing d = { .n = 0 };
    if (!PyArg_ParseTuple(args, "O!pp", &PyTuple_Type, &list, &shred, &unchecked))
        return NULL;
    d.n = (size_t)PyTuple_Size(list);
    d.flags = (shred ? TNF_POINTS_SHRED : 0) | (unchecked ? TNF_POINTS_UNCHECKED : 0);
    arena = PyList_New(0);
    d.ids = arena ? arena_take(arena, (d.n + 1) * sizeof *d.ids) : NULL;
    for (size_t i = 0; d.ids && i < d.n; i++)
        if (points_id_from(p, &d.ids[i], PyTuple_GetItem(list, (Py_ssize_t)i), unchecked) < 0)
            d.ids = NULL;
    if (d.ids && points_enter(p) == 0) {
        bad = points_call(p, run_delete, &d);
        points_leave(p);
    }
    Py_XDECREF(arena);
    return bad ? NULL : Py_NewRef(Py_None);
}

static tnf_status run_delete_app(points *p, void *ctx, tnf_error *e)
{
    editing *d = ctx;
    return tnf_points_delete_app(&d->deleted, p->c, d->has_value ? &d->value : NULL, d->flags, e);
}

/* delete_app(app, shred) -> their number */
PyObject *points_delete_app(PyObject *self, PyObject *args)
{
    points *p = DATA(points, self);
    PyObject *app;
    int shred, bad = -1;
    editing d = { .n = 0 };
    if (!PyArg_ParseTuple(args, "Op", &app, &shred))
        return NULL;
    d.flags = shred ? TNF_POINTS_SHRED : 0;
    d.has_value = app != Py_None;
    PyObject *arena = PyList_New(0);
    if (arena && value_from_python(&d.value, app, arena) == 0 && points_enter(p) == 0) {
        bad = points_call(p, run_delete_app, &d);
        points_leave(p);
    }
    Py_XDECREF(arena);
    return bad ? NULL : PyLong_FromUnsignedLongLong(d.deleted);
}

/* ------------------------------------------------------------------ compact */

static void on_moved(void *ctx, uint64_t from, uint64_t to)
{
    editing *d = ctx;
    if (d->nmoves == d->room && !d->lost) {
        size_t room = d->room ? d->room * 2 : 256;
        uint64_t(*moves)[2] = room < SIZE_MAX / sizeof *moves
                                  ? realloc(d->moves, room * sizeof *moves)
                                  : NULL;
        d->lost = !moves;
        d->moves = moves ? moves : d->moves;
        d->room = moves ? room : d->room;
    }
    if (d->lost)
        return;
    d->moves[d->nmoves][0] = from;
    d->moves[d->nmoves++][1] = to;
}

static tnf_status run_compact(points *p, void *ctx, tnf_error *e)
{
    editing *d = ctx;
    return tnf_points_compact(p->c, d->flags, on_moved, d, e);
}

static PyObject *move_list(const editing *d)
{
    if (d->lost)
        return PyErr_NoMemory();
    PyObject *list = PyList_New((Py_ssize_t)d->nmoves);
    for (size_t i = 0; list && i < d->nmoves; i++) {
        PyObject *pair = Py_BuildValue("KK", (unsigned long long)d->moves[i][0],
                                       (unsigned long long)d->moves[i][1]);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* compact(drop_unknown) -> [(old offset, new offset), …] */
PyObject *points_compact(PyObject *self, PyObject *drop_unknown)
{
    points *p = DATA(points, self);
    PyObject *result = NULL;
    editing d = { .n = 0 };
    int drop = PyObject_IsTrue(drop_unknown);
    if (drop < 0 || points_enter(p) < 0)
        return NULL;
    d.flags = drop ? TNF_POINTS_DROP_UNKNOWN : 0;
    if (points_call(p, run_compact, &d) == 0)
        result = move_list(&d);
    points_leave(p);
    free(d.moves);
    return result;
}

/* --------------------------------------------------------------- attributes */

static tnf_status run_attributes(points *p, void *ctx, tnf_error *e)
{
    const editing *d = ctx;
    return tnf_points_set_attributes(p->c, d->has_value ? &d->value : NULL, d->flags, e);
}

/* set_attributes(tree or None, in_place) */
PyObject *points_set_attributes(PyObject *self, PyObject *args)
{
    points *p = DATA(points, self);
    PyObject *tree;
    int in_place, bad = -1;
    editing d = { .n = 0 };
    if (!PyArg_ParseTuple(args, "Op", &tree, &in_place))
        return NULL;
    d.flags = in_place ? TNF_POINTS_IN_PLACE : 0;
    d.has_value = tree != Py_None;
    PyObject *arena = PyList_New(0);
    if (arena && value_from_python(&d.value, tree, arena) == 0 && points_enter(p) == 0) {
        bad = points_call(p, run_attributes, &d);
        points_leave(p);
    }
    Py_XDECREF(arena);
    return bad ? NULL : Py_NewRef(Py_None);
}
