/* SPDX-License-Identifier: MIT */
/* Tensor: the name, type and shape of a tensor in an open file. Its elements are read on demand. A
 * part of a tensor ("scales", "offsets" …) is a Tensor of one dimension. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

PyObject *tensor_make(handle *h, const tnf_object *object, const tnf_part *part)
{
    tensor *t = PyObject_New(tensor, h->st->tensor_type);
    if (!t)
        return NULL;
    t->h = DATA(handle, Py_NewRef(AS_OBJECT(h)));
    t->object = object;
    t->part = part;
    return AS_OBJECT(t);
}

static void tensor_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(AS_OBJECT(DATA(tensor, self)->h));
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool tensor_dense(const tensor *t)
{
    return t->part || !strcmp(tnf_layout_id(t->object->layout), "dense");
}

const tnf_part *tensor_bytes(const tensor *t)
{
    if (t->part)
        return t->part;
    if (t->object->nparts == 1 && tensor_dense(t))
        return t->object->parts;
    return raise_text(
        t->h->st, TNF_EUNSUPPORTED, "'%.60s' has the layout %s; use one of its parts (.parts)%s",
        t->object->name.p, tnf_layout_id(t->object->layout),
        strncmp(tnf_layout_id(t->object->layout), "strings", 7) != 0 ? "" : ", or .strings()");
}

/* -------------------------------------------------------------------- shape */

PyObject *shape_tuple(const uint64_t *shape, uint32_t rank)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
    for (uint32_t i = 0; tuple && i < rank; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromUnsignedLongLong(shape[i]));
    return tuple;
}

static uint64_t part_elements(const tnf_part *part)
{
    return part->type && part->type->bits ? part->nbytes * 8 / part->type->bits : part->nbytes;
}

int tensor_form(const tensor *t, Py_ssize_t *shape, Py_ssize_t *strides)
{
    const tnf_part *part = tensor_bytes(t);
    if (!part)
        return -1;
    const kind *k = kind_of(part->type);
    /* Unsigned: the dimensions of a tensor without elements may have a product that overflows. */
    uint64_t stride = k && k->width ? k->width : 1;
    if (t->part) {
        shape[0] = (Py_ssize_t)part_elements(part);
        strides[0] = (Py_ssize_t)stride;
        return 1;
    }
    uint32_t rank = t->object->rank;
    if (rank > MOST_RANK)
        return raise_text(t->h->st, TNF_ELIMIT, "arrays have at most %d dimensions", MOST_RANK), -1;
    for (uint32_t n = 0; n < rank; n++) {
        uint32_t i = t->object->order == TNF_ORDER_F ? n : rank - 1 - n;
        if (t->object->shape[i] > PY_SSIZE_T_MAX)
            return raise_text(t->h->st, TNF_ELIMIT, "a dimension is too large for an array"), -1;
        shape[i] = (Py_ssize_t)t->object->shape[i];
        strides[i] = (Py_ssize_t)stride;
        stride *= t->object->shape[i];
    }
    return (int)rank;
}

block *tensor_block(const tensor *t)
{
    Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
    int rank = tensor_form(t, shape, strides);
    if (rank < 0)
        return NULL;
    block *b = block_new(rank, (size_t)tensor_bytes(t)->nbytes);
    if (!b)
        return (void *)PyErr_NoMemory();
    memcpy(b->shape, shape, (size_t)rank * sizeof *shape);
    memcpy(b->strides, strides, (size_t)rank * sizeof *strides);
    return b;
}

/* ------------------------------------------------------------- complete reads */

/* A system call takes longer than copying a few kilobytes. With access "mmap" these are copied from
 * the mapping, as in safetensors; if the file is truncated in the meantime, that raises SIGBUS,
 * which "pread" never does. */
const void *quick_view(const handle *h, const tnf_part *part, size_t n)
{
    enum { SMALL = 32 << 10 };
    const void *view = NULL;
    tnf_error e;
    return h->quick && n <= SMALL && part->payload == TNF_AT && tnf_map(&view, part, &e) == TNF_OK
               ? view
               : NULL;
}

PyObject *tensor_array(const tensor *t)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    block *b = tensor_block(t);
    if (!b)
        return NULL;
    const tnf_part *part = tensor_bytes(t);
    const void *view = quick_view(t->h, part, b->nbytes);
    if (view) {
        memcpy(b->data, view, b->nbytes);
        return array_make(t->h->st, part->type, b);
    }
    tnf_status status = handle_read(t->h, part, b->data, b->nbytes, &e);
    if (status == TNF_OK)
        return array_make(t->h->st, part->type, b);
    block_drop(b);
    return raise_error(t->h->st, status, &e, t->h->path);
}

PyObject *tensor_read(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return handle_ready(DATA(tensor, self)->h) < 0 ? NULL : tensor_array(DATA(tensor, self));
}

/* Read-only views of the mapped file where possible; the Tensor keeps the file open. */
static int tensor_buffer(PyObject *self, Py_buffer *view, int flags)
{
    tensor *t = DATA(tensor, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    const void *mapped = NULL;
    view->obj = NULL;
    if (handle_ready(t->h) < 0)
        return -1;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "a tensor of a file is read-only; .numpy(copy=True) "
                                           "returns a writable copy");
        return -1;
    }
    const tnf_part *part = tensor_bytes(t);
    const kind *k = part ? kind_of(part->type) : NULL;
    if (!part || !k || !k->format) {
        PyErr_Clear();
        PyErr_Format(PyExc_BufferError,
                     "the buffer protocol has no format for %s; use .numpy(), .bytes() or DLPack",
                     part && part->type ? part->type->id : tnf_layout_id(t->object->layout));
        return -1;
    }
    block *b;
    if (tnf_map(&mapped, part, &e) == TNF_OK) {
        Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
        int rank = tensor_form(t, shape, strides);
        b = rank < 0 ? NULL : block_new(rank, 0);
        if (b) {
            memcpy(b->shape, shape, (size_t)rank * sizeof *shape);
            memcpy(b->strides, strides, (size_t)rank * sizeof *strides);
            b->data = (uint8_t *)(uintptr_t)mapped;
            b->nbytes = (size_t)part->nbytes;
        } else if (rank >= 0) {
            PyErr_NoMemory();
        }
    } else {
        b = tensor_block(t);
        tnf_status status = b ? handle_read(t->h, part, b->data, b->nbytes, &e) : TNF_OK;
        if (status != TNF_OK) {
            block_drop(b);
            b = raise_error(t->h->st, status, &e, t->h->path);
        }
    }
    if (!b)
        return -1;
    bool plain = t->part || t->object->order == TNF_ORDER_C || t->object->rank < 2;
    if (!plain && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        block_drop(b);
        PyErr_SetString(PyExc_BufferError, "the tensor is stored column by column; use .numpy()");
        return -1;
    }
    view->buf = b->data;
    view->obj = Py_NewRef(self);
    view->len = (Py_ssize_t)b->nbytes;
    view->itemsize = k->width;
    view->readonly = 1;
    view->ndim = b->rank;
    view->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)k->format : NULL;
    view->shape = (flags & PyBUF_ND) ? b->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? b->strides : NULL;
    view->suboffsets = NULL;
    view->internal = b;
    return 0;
}

static void tensor_release(PyObject *self, Py_buffer *view)
{
    (void)self;
    block_drop(view->internal);
}

/* -------------------------------------------------------------------- numpy */

/* A new block for the elements of `from`, each of `width` bytes, in the same order; *n: their
 * number.
 */
static block *widened_block(const block *from, size_t old, size_t width, size_t *n)
{
    *n = 1;
    for (int i = 0; i < from->rank; i++)
        *n *= (size_t)from->shape[i];
    block *b = block_new(from->rank, *n * width);
    /* Only the width of an element changes, so the strides are scaled. */
    for (int i = 0; b && i < b->rank; i++) {
        b->shape[i] = from->shape[i];
        b->strides[i] = from->strides[i] / (Py_ssize_t)old * (Py_ssize_t)width;
    }
    return b;
}

/* Elements as floats of 4 or 8 bytes; false if they are not numbers. Called without the GIL. */
static bool widen_elements(void *out, size_t width, const tnf_type *type, const void *data,
                           size_t n)
{
    double some[256];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < 256 ? n - at : 256;
        if (!tnf_type_decode(some, type, data, at, m))
            return false;
        for (size_t i = 0; i < m; i++) {
            if (width == 8)
                ((double *)out)[at + i] = some[i];
            else
                ((float *)out)[at + i] = (float)some[i];
        }
    }
    return true;
}

static PyObject *make_widened(const array *a, const tnf_type *type)
{
    const kind *k = kind_of(a->type);
    size_t old = k && k->width ? k->width : 1, width = type->bits / 8, n;
    block *b = widened_block(a->block, old, width, &n);
    if (!b)
        return PyErr_NoMemory();
    PyThreadState *save = PyEval_SaveThread();
    bool ok = widen_elements(b->data, width, a->type, a->block->data, n);
    PyEval_RestoreThread(save);
    if (ok)
        return array_make(a->st, type, b);
    block_drop(b);
    return raise_text(a->st, TNF_EUNSUPPORTED, "elements of the type %s are not numbers",
                      a->type->id);
}

/* Numbers of any type as f32 or f64, for which ml_dtypes is not needed. Takes ownership of the
 * array.
 */
static PyObject *widened_array(PyObject *arr, const char *wanted)
{
    const tnf_type *type = tnf_type_named(wanted);
    if (!arr)
        return NULL;
    const array *a = DATA(array, arr);
    PyObject *made = NULL;
    if ((type == tnf_type_of(TNF_F32) || type == tnf_type_of(TNF_F64)) &&
        a->type->number != TNF_NUMBER_COMPLEX)
        made = make_widened(a, type);
    else
        PyErr_SetString(PyExc_ValueError,
                        "astype must be 'f32' or 'f64', and complex numbers are not supported");
    Py_DECREF(arr);
    return made;
}

enum { SURE_RANK = 32 }; /* every numpy version supports this many dimensions */

/* If the buffer protocol fails, numpy drops the reason and calls __array__, which would lead back
 * here. So the steps that can fail come first. */
static PyObject *view_numpy(const tensor *t, PyObject *self)
{
    Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
    PyObject *asarray = numpy_asarray(t->h->st);
    int rank = asarray ? tensor_form(t, shape, strides) : -1;
    if (rank < 0)
        return NULL;
    if (asarray == Py_None)
        return PyErr_SetString(PyExc_ImportError, "numpy is not installed"), NULL;
    if (rank <= SURE_RANK)
        return numpy_over(t->h->st, self, kind_of(tensor_bytes(t)->type),
                          !t->h->of_python && tensor_bytes(t)->nbytes > 0);
    PyObject *plain = PyMemoryView_FromObject(self);
    PyObject *made = plain ? PyObject_CallFunctionObjArgs(asarray, plain, (PyObject *)NULL) : NULL;
    Py_XDECREF(plain);
    return made;
}

/* Is a capsule the best way? It has a view where that is possible, otherwise a copy, and it reports
 * errors. */
static bool by_capsule(const tensor *t, const tnf_part *part, const kind *k)
{
    state *st = t->h->st;
    return k && k->format && !t->h->of_python && part->nbytes > 0 && t->object->rank <= SURE_RANK &&
           numpy_asarray(st) && st->take;
}

PyObject *tensor_numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const keys[] = { "copy", "writable", "astype", NULL };
    tensor *t = DATA(tensor, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *given[] = { Py_None, Py_False, Py_None };
    const void *mapped;
    if (take_arguments(given, keys, 3, args, n, names) < 0 || handle_ready(t->h) < 0)
        return NULL;
    PyObject *copy = given[0];
    int writable = given[1] == Py_False ? 0 : PyObject_IsTrue(given[1]);
    const char *astype = given[2] == Py_None ? NULL : PyUnicode_AsUTF8AndSize(given[2], NULL);
    if (writable < 0 || (given[2] != Py_None && !astype))
        return NULL;
    const tnf_part *part = tensor_bytes(t);
    const kind *k = part ? kind_of(part->type) : NULL;
    if (!part)
        return NULL;
    if (astype && part->type && strcmp(astype, part->type->id) != 0)
        return array_to_numpy(widened_array(tensor_array(t), astype), t->object->name.p);
    int wanted = copy == Py_None ? -1 : PyObject_IsTrue(copy);
    if (wanted == -1 && !writable && by_capsule(t, part, k))
        return numpy_over(t->h->st, self, k, true);
    bool view = wanted != 1 && !writable && k && k->format && tnf_map(&mapped, part, &e) == TNF_OK;
    if (wanted == 0 && !view)
        return PyErr_SetString(PyExc_ValueError, "this tensor cannot be read without a copy"), NULL;
    if (view)
        return view_numpy(t, self);
    return array_to_numpy(tensor_array(t), t->object->name.p);
}

/* ------------------------------------------------------------------- slices */

typedef struct slicing {
    const tensor *t;
    selection *what;
    block *b;
    const Py_ssize_t *rows; /* row numbers of a list, or NULL */
    size_t row_bytes;
} slicing;

static tnf_status read_rows(slicing *s, tnf_error *e)
{
    for (Py_ssize_t i = 0; i < s->what->shape[0]; i++) {
        s->what->slices[0] = (tnf_slice) { s->rows[i], 1, 1, false };
        tnf_status status = tnf_read_slice(s->b->data + (size_t)i * s->row_bytes, s->row_bytes,
                                           s->t->object, s->what->slices, e);
        if (status != TNF_OK)
            return status;
    }
    return TNF_OK;
}

static Py_ssize_t *list_rows(const tensor *t, PyObject *list, Py_ssize_t n)
{
    Py_ssize_t size = (Py_ssize_t)t->object->shape[0];
    Py_ssize_t *rows = malloc(((size_t)n + 1) * sizeof *rows);
    if (!rows)
        return (void *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        Py_ssize_t row = item ? PyNumber_AsSsize_t(item, PyExc_IndexError) : -1;
        bool odd = item && PyBool_Check(item);
        Py_XDECREF(item);
        if (!PyErr_Occurred() && (odd || row < -size || row >= size))
            PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis 0 with size %zd",
                         row, size);
        if (PyErr_Occurred()) {
            free(rows);
            return NULL;
        }
        rows[i] = row < 0 ? row + size : row;
    }
    return rows;
}

/* One line of the last dimension. */
static void copy_line(uint8_t *out, const uint8_t *p, ptrdiff_t step, size_t n, size_t width)
{
    if (step == (ptrdiff_t)width) {
        memcpy(out, p, n * width);
        return;
    }
    for (; n > 0; n--, out += width, p += step)
        memcpy(out, p, width);
}

/* Copies line by line from the mapping; false if that is not possible. */
static bool slice_quick(const tensor *t, const selection *what, block *b)
{
    const kind *k = kind_of(t->object->parts->type);
    const uint8_t *view = k && k->width && !what->list
                              ? quick_view(t->h, t->object->parts, b->nbytes)
                              : NULL;
    Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
    uint64_t at[MOST_RANK];
    if (!view || tensor_form(t, shape, strides) < 0)
        return false;
    int rank = (int)t->object->rank, last = rank - 1;
    const tnf_slice *s = what->slices;
    for (int i = 0; i < rank; i++) {
        at[i] = 0;
        view += s[i].start * strides[i];
    }
    size_t n = rank ? (size_t)s[last].count : 1, width = k->width;
    ptrdiff_t step = rank ? (ptrdiff_t)(s[last].step * strides[last]) : 0;
    for (uint8_t *out = b->data, *end = out + b->nbytes; out < end; out += n * width) {
        copy_line(out, view, step, n, width);
        for (int i = last; i-- > 0;) {
            view += s[i].step * strides[i];
            if (++at[i] < s[i].count)
                break;
            view -= (int64_t)s[i].count * s[i].step * strides[i];
            at[i] = 0;
        }
    }
    return true;
}

static tnf_status run_slice(void *ctx, tnf_error *e)
{
    slicing *s = ctx;
    return s->rows ? read_rows(s, e)
                   : tnf_read_slice(s->b->data, s->b->nbytes, s->t->object, s->what->slices, e);
}

static PyObject *slice_array(const tensor *t, selection *what)
{
    const tnf_type *type = t->object->parts->type;
    const kind *k = kind_of(type);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    size_t n = 1;
    for (int i = 0; i < what->rank; i++) {
        size_t times = (size_t)what->shape[i];
        if (times && n > SIZE_MAX / 128 / times)
            return PyErr_NoMemory(); /* even if a later dimension is 0 */
        n *= times;
    }
    slicing s = { .t = t, .what = what };
    size_t bytes = (size_t)((n * type->bits + 7) / 8);
    if (what->list) {
        if (type->bits % 8 != 0)
            return raise_text(t->h->st, TNF_EUNSUPPORTED, "a list of rows is not supported for %s",
                              type->id);
        s.row_bytes = what->shape[0] ? bytes / (size_t)what->shape[0] : 0;
        Py_ssize_t *rows = list_rows(t, what->list, what->shape[0]);
        s.rows = rows;
        if (!rows)
            return NULL;
    }
    s.b = block_new(what->rank, bytes);
    size_t stride = k && k->width ? k->width : 1;
    for (int i = what->rank; s.b && i-- > 0;) {
        s.b->shape[i] = what->shape[i];
        s.b->strides[i] = (Py_ssize_t)stride;
        stride *= (size_t)what->shape[i];
    }
    tnf_status status = s.b ? TNF_OK : TNF_ENOMEM;
    if (s.b && !s.rows && slice_quick(t, what, s.b))
        return array_make(t->h->st, type, s.b);
    if (s.b && bytes > 0)
        status = handle_run(t->h, run_slice, &s, &e);
    free((void *)(uintptr_t)s.rows);
    if (status == TNF_OK)
        return array_make(t->h->st, type, s.b);
    block_drop(s.b);
    return raise_error(t->h->st, status, &e, t->h->path);
}

static PyObject *tensor_select(const tensor *t, PyObject *key)
{
    selection what;
    if (handle_ready(t->h) < 0)
        return NULL;
    if (t->part) { /* parts are short, and this is rare: read the whole part */
        PyObject *all = array_to_numpy(tensor_array(t), t->part->role);
        PyObject *some = all ? PyObject_GetItem(all, key) : NULL;
        Py_XDECREF(all);
        return some;
    }
    if (!tensor_bytes(t) ||
        selection_parse(&what, t->h, key, t->object->shape, t->object->rank) < 0)
        return NULL;
    return slice_array(t, &what);
}

static PyObject *tensor_item(PyObject *self, PyObject *key)
{
    const tensor *t = DATA(tensor, self);
    PyObject *arr = tensor_select(t, key);
    return t->part ? arr : array_to_numpy(arr, t->object->name.p);
}

/* The same as an Array, for callers that do not need a numpy array. */
PyObject *tensor_slice(PyObject *self, PyObject *key)
{
    return tensor_select(DATA(tensor, self), key);
}

static Py_ssize_t tensor_len(PyObject *self)
{
    const tensor *t = DATA(tensor, self);
    if (t->part)
        return (Py_ssize_t)part_elements(t->part);
    if (t->object->rank > 0)
        return (Py_ssize_t)t->object->shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no len()");
    return -1;
}

static PyType_Slot tensor_slots[] = {
    { Py_tp_dealloc, tensor_free },
    { Py_tp_repr, tensor_repr },
    { Py_tp_methods, tensor_methods },
    { Py_tp_getset, tensor_members },
    { Py_mp_subscript, tensor_item },
    { Py_mp_length, tensor_len },
    { Py_bf_getbuffer, tensor_buffer },
    { Py_bf_releasebuffer, tensor_release },
    DOC("A tensor of an open file. Its elements are read on demand."),
    { 0, NULL }
};
PyType_Spec tensor_spec = { .name = "tenfold.Tensor",
                            .basicsize = sizeof(tensor),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                     Py_TPFLAGS_IMMUTABLETYPE,
                            .slots = tensor_slots };
