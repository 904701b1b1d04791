/* SPDX-License-Identifier: MIT */
/* Reads points of VS files. A call copies a page of them under one lock of the file; then they
 * become Python objects. */
#include "_tenfold_points.h"
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- pages */

static bool page_grow(points_page *g, size_t more)
{
    if (g->n == g->room) {
        size_t room = g->room ? g->room * 2 : 64;
        points_entry *entries = room < SIZE_MAX / sizeof *entries
                                    ? realloc(g->entries, room * sizeof *entries)
                                    : NULL;
        if (!entries)
            return false;
        g->entries = entries;
        g->room = room;
    }
    if (more <= g->bytes_room - g->nbytes)
        return true;
    if (more > SIZE_MAX / 2 - g->nbytes)
        return false;
    size_t room = (g->nbytes + more) * 2;
    uint8_t *bytes = realloc(g->bytes, room);
    if (!bytes)
        return false;
    g->bytes = bytes;
    g->bytes_room = room;
    return true;
}

tnf_status points_take(void *ctx, const tnf_point *point, tnf_error *e)
{
    points_page *g = ctx;
    if (point->app.n > SIZE_MAX - point->vector_n || !page_grow(g, point->vector_n + point->app.n))
        return tnf_error_set(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a page of points");
    g->entries[g->n++] = (points_entry) { point->id, g->nbytes, point->vector_n, point->app.n };
    if (point->vector_n)
        memcpy(g->bytes + g->nbytes, point->vector, point->vector_n);
    g->nbytes += point->vector_n;
    if (point->app.n)
        memcpy(g->bytes + g->nbytes, point->app.p, point->app.n);
    g->nbytes += point->app.n;
    g->full = g->n >= g->most || g->nbytes >= g->most_bytes;
    return g->full ? TNF_ECANCELLED : TNF_OK;
}

void points_page_free(points_page *g)
{
    free(g->entries);
    free(g->bytes);
}

/* A bit for each element becomes a byte. */
static void put_row(uint8_t *to, const uint8_t *from, size_t n, bool bits)
{
    for (size_t i = 0; bits && i < n; i++)
        to[i] = from[i / 8] >> i % 8 & 1;
    if (!bits)
        memcpy(to, from, n);
}

/* The vectors of points [first, first + n) as an array of n × dims, or of dims if `row`. */
static PyObject *page_array(const points *p, const points_page *g, const tnf_space *s, size_t first,
                            size_t n, bool row)
{
    const kind *k = kind_of(s->type);
    bool bits = s->type->bits == 1;
    size_t width = bits ? 1 : k ? k->width : 0, row_n = (size_t)s->elements * width;
    int rank = (int)s->rank + !row;
    for (size_t i = 0; i < n; i++)
        if (g->entries[first + i].vector_n != s->vector_bytes)
            return raise_text(p->st, TNF_EFORMAT, "a vector has %zu bytes, not %llu",
                              g->entries[first + i].vector_n, (unsigned long long)s->vector_bytes);
    if (width == 0 || s->rank >= MOST_RANK)
        return raise_text(p->st, TNF_ELIMIT, "vectors of %u dimensions of the type %s are no array",
                          s->rank, s->type->id);
    block *b = row_n && n > (size_t)PY_SSIZE_T_MAX / row_n ? NULL : block_new(rank, n * row_n);
    if (!b)
        return PyErr_NoMemory();
    Py_ssize_t stride = (Py_ssize_t)width;
    for (int i = rank; i-- > 0;) {
        b->shape[i] = !row && i == 0 ? (Py_ssize_t)n : (Py_ssize_t)s->dims[i - !row];
        b->strides[i] = stride;
        stride *= b->shape[i];
    }
    for (size_t i = 0; i < n; i++) {
        const points_entry *from = &g->entries[first + i];
        put_row(b->data + i * row_n, g->bytes + from->at, row_n, bits);
    }
    return array_to_numpy(array_make(p->st, bits ? tnf_type_named("u8") : s->type, b), NULL);
}

/* The coordinates of a point that are not numbers. */
static PyObject *page_values(points *p, const points_page *g, size_t i)
{
    const points_entry *from = &g->entries[i];
    tnf_point point = TNF_POINT_INIT;
    const tnf_value *list = NULL;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    point.vector = g->bytes + from->at;
    point.vector_n = from->vector_n;
    tnf_status status = tnf_points_values(&list, p->c, &point, &e);
    if (status != TNF_OK)
        return raise_error(p->st, status, &e, p->path);
    return list ? value_to_python(list, false)
                : PyBytes_FromStringAndSize(point.vector, (Py_ssize_t)point.vector_n);
}

static PyObject *page_app(points *p, const points_page *g, size_t i)
{
    const points_entry *from = &g->entries[i];
    tnf_point point = TNF_POINT_INIT;
    const tnf_value *value = NULL;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    point.app = (tnf_str) { (const char *)g->bytes + from->at + from->vector_n, from->app_n };
    tnf_status status = tnf_points_value(&value, p->c, &point, &e);
    if (status != TNF_OK)
        return raise_error(p->st, status, &e, p->path);
    return value ? value_to_python(value, false) : Py_NewRef(Py_None);
}

PyObject *points_tuple(points *p, const points_page *g, bool rows)
{
    const tnf_space *s = tnf_points_space(p->c);
    bool numbers = s && s->type && kind_of(s->type);
    PyObject *ids = PyList_New((Py_ssize_t)g->n), *apps = PyList_New((Py_ssize_t)g->n);
    PyObject *vectors = numbers && !rows ? page_array(p, g, s, 0, g->n, false)
                                         : PyList_New((Py_ssize_t)g->n);
    for (size_t i = 0; ids && apps && vectors && i < g->n; i++) {
        Py_ssize_t at = (Py_ssize_t)i;
        PyObject *id = points_id_text(g->entries[i].id), *app = id ? page_app(p, g, i) : NULL;
        bool bad = !id || PyList_SetItem(ids, at, id) < 0 || !app ||
                   PyList_SetItem(apps, at, app) < 0;
        if (!bad && (rows || !numbers)) {
            PyObject *row = numbers ? page_array(p, g, s, i, 1, true) : page_values(p, g, i);
            bad = !row || PyList_SetItem(vectors, at, row) < 0;
        }
        if (bad)
            Py_CLEAR(ids);
    }
    if (ids && apps && vectors)
        return Py_BuildValue("NNN", ids, vectors, apps);
    Py_XDECREF(ids);
    Py_XDECREF(apps);
    Py_XDECREF(vectors);
    return NULL;
}

/* ------------------------------------------------------------------ reading */

typedef struct reading {
    points_page page;
    tnf_point_id id;
} reading;

static tnf_status run_page(points *p, void *ctx, tnf_error *e)
{
    reading *r = ctx;
    tnf_status status = tnf_points_after(p->c, r->id, points_take, &r->page, e);
    return r->page.full ? TNF_OK : status;
}

static tnf_status run_read(points *p, void *ctx, tnf_error *e)
{
    reading *r = ctx;
    tnf_point point;
    tnf_status status = tnf_points_read(&point, p->c, r->id, e);
    return status == TNF_OK ? points_take(&r->page, &point, e) : status;
}

/* page(after or None, most points, most bytes, rows) -> ((ids, vectors, apps), full) */
PyObject *points_read_page(PyObject *self, PyObject *args)
{
    points *p = DATA(points, self);
    PyObject *after, *tuple = NULL;
    Py_ssize_t most, most_bytes;
    int rows;
    reading r = { .page = { .n = 0 } };
    if (!PyArg_ParseTuple(args, "Onnp", &after, &most, &most_bytes, &rows) ||
        (after != Py_None && points_id_from(p, &r.id, after, false) < 0) || points_enter(p) < 0)
        return NULL;
    r.page.most = most > 0 ? (size_t)most : SIZE_MAX;
    r.page.most_bytes = most_bytes > 0 ? (size_t)most_bytes : SIZE_MAX;
    if (points_call(p, run_page, &r) == 0)
        tuple = points_tuple(p, &r.page, rows);
    points_leave(p);
    points_page_free(&r.page);
    return tuple ? Py_BuildValue("NO", tuple, r.page.full ? Py_True : Py_False) : NULL;
}

/* read(id) -> (ids, vectors, apps), lists of one */
PyObject *points_read(PyObject *self, PyObject *id)
{
    points *p = DATA(points, self);
    PyObject *tuple = NULL;
    reading r = { .page = { .most = SIZE_MAX, .most_bytes = SIZE_MAX } };
    if (points_id_from(p, &r.id, id, false) < 0 || points_enter(p) < 0)
        return NULL;
    if (points_call(p, run_read, &r) == 0)
        tuple = points_tuple(p, &r.page, true);
    points_leave(p);
    points_page_free(&r.page);
    return tuple;
}
