/* SPDX-License-Identifier: MIT */
/* Adds Python values to a builder as tensors.
 *
 *   Tensor                   tnf_builder_add_object(): copied from file to file
 *   buffer, Array            contiguous: its memory as it is; else element by element in C order
 *   (type, function, shape)  called while saving, for tensors larger than memory
 *   anything else            tenfold._values.plain() converts it to one of these
 *
 * All strides and byte orders are supported; the values stay the same. */
#include "_tenfold.h"
#include <string.h>

/* ------------------------------------------------------------------- strides */

/* Memory with strides, read in C order. It lives in the arena of the call. */
typedef struct strided {
    const uint8_t *data;
    int rank;
    size_t width; /* of an element */
    bool swap;
    const Py_ssize_t *shape, *strides;
} strided;

static void copy_element(const strided *s, uint8_t *dst, const uint8_t *src)
{
    size_t half = s->swap ? s->width : 0;
    if (!s->swap) {
        memcpy(dst, src, s->width);
        return;
    }
    for (size_t i = 0; i < half; i++)
        dst[i] = src[half - 1 - i];
}

/* The address of element number i. */
static const uint8_t *element_at(const strided *s, uint64_t i)
{
    const uint8_t *p = s->data;
    for (int axis = s->rank; axis-- > 0;) {
        uint64_t n = (uint64_t)s->shape[axis];
        p += (Py_ssize_t)(i % n) * s->strides[axis];
        i /= n;
    }
    return p;
}

static tnf_status fetch_strided(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const strided *s = ctx;
    uint8_t *out = dst;
    uint8_t element[16];
    (void)e;
    int last = s->rank - 1;
    while (n > 0) {
        uint64_t i = offset / s->width;
        size_t skip = (size_t)(offset % s->width);
        const uint8_t *p = element_at(s, i);
        uint64_t run = last >= 0 ? (uint64_t)s->shape[last] - i % (uint64_t)s->shape[last] : 1;
        /* A run along the last dimension, element by element. */
        while (run-- > 0 && n > 0) {
            size_t take = s->width - skip < n ? s->width - skip : n;
            copy_element(s, element, p);
            memcpy(out, element + skip, take);
            out += take;
            offset += take;
            n -= take;
            skip = 0;
            p += last >= 0 ? s->strides[last] : 0;
        }
    }
    return TNF_OK;
}

static bool is_plain(const strided *s)
{
    size_t stride = s->width;
    for (int i = s->rank; i-- > 0;) {
        if (s->shape[i] > 1 && s->strides[i] != (Py_ssize_t)stride)
            return false;
        stride *= (size_t)s->shape[i];
    }
    return !s->swap;
}

/* ------------------------------------------------------------------ functions */

typedef struct stream {
    PyInterpreterState *interp;
    PyObject *function; /* borrowed: the arena keeps it alive */
} stream;

static tnf_status fetch_stream(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const stream *s = ctx;
    tnf_status status = TNF_OK;
    gil g;
    memset(dst, 0, n); /* bytes that the function leaves out must not expose old memory */
    gil_enter(&g, s->interp);
    PyObject *view = PyMemoryView_FromMemory(dst, (Py_ssize_t)n, PyBUF_WRITE);
    PyObject *answer = view ? PyObject_CallFunction(s->function, "KO", (unsigned long long)offset,
                                                    view)
                            : NULL;
    if (!answer)
        status = fail_exception(e, offset, "the function that provides the bytes failed");
    /* The function may have kept the view, which must not be used for freed memory. */
    PyObject *released = view ? PyObject_CallMethod(view, "release", NULL) : NULL;
    if (!released && status == TNF_OK)
        status = fail_exception(e, offset, "the function that provides the bytes failed");
    PyErr_Clear();
    Py_XDECREF(view);
    Py_XDECREF(answer);
    Py_XDECREF(released);
    gil_leave(&g);
    return status;
}

/* -------------------------------------------------------------------- adding */

typedef struct adding {
    state *st;
    tnf_builder *b;
    PyObject *arena;
    const char *name;
} adding;

static int check_added(const adding *a, tnf_status status, const tnf_error *e)
{
    if (status == TNF_OK)
        return 0;
    raise_error(a->st, status, e, NULL);
    return -1;
}

static int add_strided(const adding *a, const tnf_type *type, const strided *from)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    uint64_t shape[MOST_RANK];
    bool empty = false;
    for (int i = 0; i < from->rank; i++) {
        shape[i] = (uint64_t)from->shape[i];
        empty = empty || shape[i] == 0;
    }
    if (empty || is_plain(from))
        return check_added(a,
                           tnf_builder_add(a->b, a->name, type, (uint32_t)from->rank, shape,
                                           empty ? (const void *)"" : from->data, &e),
                           &e);
    strided *s = arena_take(a->arena, sizeof *s);
    Py_ssize_t *numbers = arena_take(a->arena, 2 * MOST_RANK * sizeof *numbers);
    if (!s || !numbers)
        return -1;
    *s = *from;
    if (type->number == TNF_NUMBER_COMPLEX && s->swap)
        return raise_text(a->st, TNF_EUNSUPPORTED,
                          "'%.60s': complex numbers in big-endian order are not supported",
                          a->name),
               -1;
    s->shape = numbers;
    s->strides = numbers + MOST_RANK;
    for (int i = 0; i < from->rank; i++) {
        numbers[i] = from->shape[i];
        numbers[MOST_RANK + i] = from->strides[i];
    }
    return check_added(a,
                       tnf_builder_add_stream(a->b, a->name, type, (uint32_t)from->rank, shape,
                                              fetch_strided, s, &e),
                       &e);
}

static void free_buffer(PyObject *capsule)
{
    Py_buffer *view = PyCapsule_GetPointer(capsule, "tenfold.buffer");
    PyBuffer_Release(view);
    PyMem_Free(view);
}

/* A buffer that the arena keeps until it is freed. */
static const Py_buffer *keep_buffer(PyObject *arena, PyObject *value)
{
    Py_buffer *view = PyMem_Calloc(1, sizeof *view);
    if (!view)
        return (void *)PyErr_NoMemory();
    if (PyObject_GetBuffer(value, view, PyBUF_RECORDS_RO) < 0) {
        PyMem_Free(view);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(view, "tenfold.buffer", free_buffer);
    int bad = !capsule || PyList_Append(arena, capsule) < 0;
    Py_XDECREF(capsule);
    return bad ? NULL : view;
}

/* Are the elements references to objects of Python? Their addresses are no numbers. */
static bool has_objects(const Py_buffer *view)
{
    return view->format && strchr(view->format, 'O');
}

static int add_buffer(const adding *a, const Py_buffer *view, const tnf_type *type)
{
    bool swap = false;
    const tnf_type *own = type_of_format(view->format, view->itemsize, &swap);
    if (!type)
        type = own;
    if (!type)
        return raise_text(a->st, TNF_EUNSUPPORTED,
                          "'%.60s': Unknown dtype \"%s\": no element type matches it", a->name,
                          view->format ? view->format : "?"),
               -1;
    if ((uint64_t)view->itemsize * 8 != type->bits || has_objects(view)) {
        PyErr_Format(PyExc_ValueError, "'%s': elements of %zd bytes are not of the type %s",
                     a->name, view->itemsize, type->id);
        return -1;
    }
    strided s = { view->buf, view->ndim, (size_t)view->itemsize, swap, view->shape, view->strides };
    if (view->ndim > MOST_RANK)
        return raise_text(a->st, TNF_ELIMIT, "'%.60s' has %d dimensions", a->name, view->ndim), -1;
    return add_strided(a, type, &s);
}

static int add_array(const adding *a, PyObject *value)
{
    const array *arr = DATA(array, value);
    const kind *k = kind_of(arr->type);
    const block *b = arr->block;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (k && k->width) {
        strided s = { b->data, b->rank, k->width, false, b->shape, b->strides };
        return add_strided(a, arr->type, &s);
    }
    uint64_t shape[MOST_RANK];
    for (int i = 0; i < b->rank; i++)
        shape[i] = (uint64_t)b->shape[i];
    return check_added(
        a, tnf_builder_add(a->b, a->name, arr->type, (uint32_t)b->rank, shape, b->data, &e), &e);
}

/* One part from (type, contiguous buffer). */
static int take_part(const adding *a, tnf_part *out, PyObject *role, PyObject *pair)
{
    const char *id;
    PyObject *content;
    if (!PyTuple_Check(pair)) {
        PyErr_Format(PyExc_TypeError, "a part of '%s' must be a tuple (type, buffer)", a->name);
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "sO", &id, &content))
        return -1;
    const char *text = arena_text(a->arena, role);
    const tnf_type *type = tnf_type_named(id);
    const Py_buffer *view = text && type ? keep_buffer(a->arena, content) : NULL;
    if (!view || !PyBuffer_IsContiguous(view, 'C')) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "a part of '%s' is not a contiguous buffer of type '%s'",
                         a->name, id);
        return -1;
    }
    *out = (tnf_part) { .role = text,
                        .type = type,
                        .payload = TNF_MEMORY,
                        .memory = view->buf,
                        .stored = (uint64_t)view->len,
                        .nbytes = (uint64_t)view->len };
    return 0;
}

/* ("strings/1", {role: (type, buffer)}, shape): a tensor that is not dense. The builder checks its
 * layout. */
static int add_parts(const adding *a, const char *id, PyObject *roles, const uint64_t *dims,
                     Py_ssize_t rank)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    Py_ssize_t n = PyDict_Size(roles), at = 0, i = 0;
    const tnf_layout *layout = tnf_layout_by_id(id);
    tnf_part *parts = arena_take(a->arena, (size_t)n * sizeof *parts + 1);
    uint64_t *shape = arena_take(a->arena, ((size_t)rank + 1) * sizeof *shape);
    tnf_object *object = arena_take(a->arena, sizeof *object);
    PyObject *role, *part;
    if (!parts || !shape || !object)
        return -1;
    if (!layout || n > UINT16_MAX) {
        PyErr_Format(PyExc_ValueError, "unknown layout '%s'", id);
        return -1;
    }
    while (PyDict_Next(roles, &at, &role, &part))
        if (take_part(a, &parts[i++], role, part) < 0)
            return -1;
    memcpy(shape, dims, (size_t)rank * sizeof *shape);
    *object = (tnf_object) { .name = { a->name, strlen(a->name) },
                             .shape = shape,
                             .layout = layout,
                             .parts = parts,
                             .rank = (uint32_t)rank,
                             .nparts = (uint16_t)n };
    return check_added(a, tnf_builder_add_object(a->b, object, a->name, &e), &e);
}

/* The dimensions in a sequence. Returns their number, or -1. */
static Py_ssize_t take_shape(PyObject *shape, uint64_t *dims)
{
    Py_ssize_t rank = PySequence_Size(shape);
    for (Py_ssize_t i = 0; i < rank && i < MOST_RANK; i++) {
        PyObject *item = PySequence_GetItem(shape, i);
        dims[i] = item ? PyLong_AsUnsignedLongLong(item) : 0;
        Py_XDECREF(item);
    }
    if (rank > MOST_RANK && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a shape has at most %d dimensions", MOST_RANK);
    return PyErr_Occurred() ? -1 : rank;
}

/* A buffer of elements that are already packed. */
static int add_packed(const adding *a, const tnf_type *type, PyObject *content,
                      const uint64_t *dims, Py_ssize_t rank)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    const Py_buffer *view = keep_buffer(a->arena, content);
    uint64_t bits = type->bits;
    for (Py_ssize_t i = 0; i < rank; i++)
        bits *= dims[i];
    if (!view)
        return -1;
    if (has_objects(view)) {
        PyErr_Format(PyExc_ValueError, "'%s' is an array of objects, not of the type %s", a->name,
                     type->id);
        return -1;
    }
    if ((uint64_t)view->len != (bits + 7) / 8) {
        PyErr_Format(PyExc_ValueError, "'%s' needs %llu bytes, but its buffer has %zd", a->name,
                     (unsigned long long)(bits + 7) / 8, view->len);
        return -1;
    }
    return check_added(a, tnf_builder_add(a->b, a->name, type, (uint32_t)rank, dims, view->buf, &e),
                       &e);
}

static PyObject *values_module(state *st)
{
    if (!st->values)
        st->values = PyImport_ImportModule("tenfold._values");
    return st->values;
}

static int add_typed(const adding *a, PyObject *tuple);

/* Integers of 16 bytes, which no buffer of numpy has: Python's, in a list or an array of objects.
 */
static int add_wide(const adding *a, const tnf_type *type, PyObject *content)
{
    PyObject *values = values_module(a->st);
    PyObject *typed = values
                          ? PyObject_CallMethod(values, "wide", "ssO", a->name, type->id, content)
                          : NULL;
    int bad = !typed || PyList_Append(a->arena, typed) < 0 || add_typed(a, typed) < 0;
    Py_XDECREF(typed);
    return bad ? -1 : 0;
}

static bool has_width(PyObject *content, Py_ssize_t width)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(content) ||
        PyObject_GetBuffer(content, &view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    bool has = view.itemsize == width && !has_objects(&view);
    PyBuffer_Release(&view);
    return has;
}

/* ("bf16", buffer or function, shape or None): the caller names the type. Or a layout and its
 * parts, as in add_parts(). */
static int add_typed(const adding *a, PyObject *tuple)
{
    const char *id;
    PyObject *content, *shape;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    uint64_t dims[MOST_RANK];
    if (!PyArg_ParseTuple(tuple, "sOO", &id, &content, &shape))
        return -1;
    Py_ssize_t rank = shape == Py_None ? 0 : take_shape(shape, dims);
    if (rank < 0)
        return -1;
    if (PyDict_Check(content))
        return add_parts(a, id, content, dims, rank);
    const tnf_type *type = tnf_type_named(id);
    if (!type) {
        PyErr_Format(PyExc_ValueError, "unknown type '%s'", id);
        return -1;
    }
    bool wide = type->bits == 128 && type->number != TNF_NUMBER_COMPLEX;
    if (shape == Py_None && wide && !has_width(content, 16))
        return add_wide(a, type, content);
    if (shape == Py_None) {
        const Py_buffer *view = keep_buffer(a->arena, content);
        return view ? add_buffer(a, view, type) : -1;
    }
    if (PyObject_CheckBuffer(content))
        return add_packed(a, type, content, dims, rank);
    stream *s = arena_take(a->arena, sizeof *s);
    if (!s)
        return -1;
    *s = (stream) { PyInterpreterState_Get(), content };
    return check_added(
        a, tnf_builder_add_stream(a->b, a->name, type, (uint32_t)rank, dims, fetch_stream, s, &e),
        &e);
}

static PyObject *make_plain(const adding *a, PyObject *name, PyObject *value)
{
    PyObject *values = values_module(a->st);
    return values ? PyObject_CallMethod(values, "plain", "OO", name, value) : NULL;
}

static int add_value(const adding *a, PyObject *name, PyObject *value, bool again)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (Py_TYPE(value) == a->st->tensor_type) {
        const tensor *t = DATA(tensor, value);
        if (handle_ready(t->h) < 0)
            return -1;
        if (!t->part)
            return check_added(a, tnf_builder_add_object(a->b, t->object, a->name, &e), &e);
    }
    if (Py_TYPE(value) == a->st->array_type)
        return add_array(a, value);
    if (PyTuple_Check(value) && PyTuple_Size(value) == 3)
        return add_typed(a, value);
    if (PyObject_CheckBuffer(value)) {
        const Py_buffer *view = keep_buffer(a->arena, value);
        bool swap;
        if (view && type_of_format(view->format, view->itemsize, &swap))
            return add_buffer(a, view, NULL);
        if (view && again)
            return add_buffer(a, view, NULL);
        PyErr_Clear();
    }
    if (again) {
        PyErr_Format(PyExc_TypeError, "'%s' cannot be saved: its type is %R", a->name,
                     (PyObject *)Py_TYPE(value));
        return -1;
    }
    PyObject *plain = make_plain(a, name, value);
    int bad = !plain || PyList_Append(a->arena, plain) < 0 || add_value(a, name, plain, true) < 0;
    Py_XDECREF(plain);
    return bad ? -1 : 0;
}

int builder_add(state *st, tnf_builder *b, PyObject *name, PyObject *value, PyObject *arena)
{
    adding a = { st, b, arena, arena_text(arena, name) };
    if (!a.name || PyList_Append(arena, value) < 0)
        return -1;
    return add_value(&a, name, value, false);
}
