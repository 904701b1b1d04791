/* SPDX-License-Identifier: MIT */
/* Array: memory of the extension with a type and a shape. Reads return it. numpy uses it without a
 * copy through the buffer protocol, other packages through DLPack. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

PyObject *array_make(state *st, const tnf_type *type, block *b)
{
    array *a = b ? PyObject_New(array, st->array_type) : NULL;
    if (!a) {
        block_drop(b);
        return b ? NULL : PyErr_NoMemory();
    }
    a->st = st;
    a->type = type;
    a->kind = kind_of(type);
    a->block = b;
    a->readonly = false;
    a->form = TYPED;
    a->foreign = NULL;
    a->managed = NULL;
    return AS_OBJECT(a);
}

static void array_free(PyObject *self)
{
    array *a = DATA(array, self);
    PyTypeObject *type = Py_TYPE(self);
    block_drop(a->block);
    if (a->foreign)
        a->foreign(a->managed);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------- buffer */

static bool array_plain(const block *b, size_t width)
{
    for (int i = b->rank; i-- > 0;) {
        if (b->shape[i] > 1 && b->strides[i] != (Py_ssize_t)width)
            return false;
        width *= (size_t)b->shape[i];
    }
    return true;
}

static int buffer_refused(const array *a, const char *format, const kind *k, int flags)
{
    if (!format)
        PyErr_Format(PyExc_BufferError,
                     "the buffer protocol has no format for %s; use .numpy(), .tobytes() or DLPack",
                     a->type->id);
    else if ((flags & PyBUF_WRITABLE) && a->readonly)
        PyErr_SetString(PyExc_BufferError, "the array is read-only");
    else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !array_plain(a->block, k->width))
        PyErr_SetString(PyExc_BufferError, "the array is not in C order");
    else
        return 0;
    return -1;
}

static int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
    array *a = DATA(array, self);
    const kind *k = a->kind;
    bool flat = a->form == FLAT;
    const char *format = flat ? "B" : !k ? NULL : a->form == RAW ? k->raw : k->format;
    view->obj = NULL;
    if (!flat && buffer_refused(a, format, k, flags) < 0)
        return -1;
    a->flat = (Py_ssize_t)a->block->nbytes;
    view->buf = a->block->data;
    view->obj = Py_NewRef(self);
    view->len = a->flat;
    view->itemsize = flat ? 1 : k->width;
    view->readonly = a->readonly;
    view->ndim = flat ? 1 : a->block->rank;
    view->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format : NULL;
    view->shape = !(flags & PyBUF_ND) ? NULL : flat ? &a->flat : a->block->shape;
    view->strides = (flags & PyBUF_STRIDES) != PyBUF_STRIDES ? NULL
                    : flat                                   ? &view->itemsize
                                                             : a->block->strides;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

/* -------------------------------------------------------------------- numpy */

/* Capsules are faster than buffers, which need a memoryview. Only versioned capsules can mark
 * memory as read-only, and numpy requests them since 2.1. */
static int find_taker(state *st, PyObject *numpy)
{
    PyObject *version = PyObject_GetAttrString(numpy, "__version__");
    const char *text = version ? PyUnicode_AsUTF8AndSize(version, NULL) : NULL;
    char *end = NULL;
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1; /* capsules have native byte order */
    long major = text ? strtol(text, &end, 10) : 0;
    long minor = end && *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    Py_XDECREF(version);
    if (!text)
        return -1;
    if (little && (major > 2 || (major == 2 && minor >= 1)))
        st->take = PyObject_GetAttrString(numpy, "from_dlpack");
    PyErr_Clear();
    return 0;
}

PyObject *numpy_asarray(state *st)
{
    if (!st->asarray) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        if (!numpy && !PyErr_ExceptionMatches(PyExc_ImportError))
            return NULL;
        PyErr_Clear();
        st->asarray = numpy ? PyObject_GetAttrString(numpy, "asarray") : Py_NewRef(Py_None);
        if (numpy && st->asarray && find_taker(st, numpy) < 0)
            Py_CLEAR(st->asarray);
        Py_XDECREF(numpy);
    }
    return st->asarray;
}

PyObject *numpy_over(state *st, PyObject *object, const kind *k, bool lent)
{
    enum {
        NUMBERS = 6,
        BFLOAT = 4
    }; /* numpy supports the DLPack codes up to NUMBERS, except BFLOAT */
    PyObject *how = st->take && lent && k->code <= NUMBERS && k->code != BFLOAT ? st->take
                                                                                : st->asarray;
    return PyObject_CallFunctionObjArgs(how, object, (PyObject *)NULL);
}

/* The numpy dtype of a type that only ml_dtypes has; borrowed. */
static PyObject *find_dtype(state *st, const kind *k, const char *name)
{
    PyObject *found = PyDict_GetItemString(st->dtypes, k->id);
    if (found)
        return found;
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    PyObject *scalar = module ? PyObject_GetAttrString(module, k->ml) : NULL;
    PyObject *numpy = scalar ? PyImport_ImportModule("numpy") : NULL;
    PyObject *dtype = numpy ? PyObject_CallMethod(numpy, "dtype", "O", scalar) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(scalar);
    Py_XDECREF(numpy);
    if (dtype && PyDict_SetItemString(st->dtypes, k->id, dtype) == 0) {
        Py_DECREF(dtype);
        return dtype; /* the dict keeps it alive */
    }
    Py_XDECREF(dtype);
    PyErr_Clear();
    return raise_text(st, TNF_EUNSUPPORTED,
                      "'%s' is %s; install ml_dtypes, or use .torch(), .bytes(), or "
                      ".numpy(astype=\"f32\")",
                      name ? name : "the array", k->id);
}

/* The same bytes as a numpy array: read as unsigned numbers, then viewed with the real type. Takes
 * ownership of the array. */
static PyObject *array_viewed(array *a, const kind *k, const char *name)
{
    PyObject *dtype = *k->ml ? find_dtype(a->st, k, name) : NULL;
    PyObject *numbers = NULL, *result = NULL;
    if (!dtype && *k->ml)
        return NULL;
    if (k->width == 0) {
        block *b = block_unpack(a->block, a->type);
        PyObject *bytes = array_make(a->st, tnf_type_named("u8"), b);
        numbers = bytes ? PyObject_CallFunctionObjArgs(a->st->asarray, bytes, (PyObject *)NULL)
                        : NULL;
        Py_XDECREF(bytes);
    } else {
        a->form = RAW;
        numbers = PyObject_CallFunctionObjArgs(a->st->asarray, AS_OBJECT(a), (PyObject *)NULL);
    }
    if (!numbers || !dtype)
        return numbers;
    result = PyObject_CallMethod(numbers, "view", "O", dtype);
    Py_DECREF(numbers);
    return result;
}

static bool is_wide_integer(const tnf_type *type)
{
    return type->bits == 128 && type->number != TNF_NUMBER_COMPLEX && kind_of(type);
}

static PyObject *array_tolist(PyObject *self, PyObject *ignored);
static PyObject *array_shape(PyObject *self, void *ignored);

/* Integers of 16 bytes as Python's, in an array of objects: numpy itself makes such arrays of large
 * integers. */
static PyObject *array_objects(PyObject *arr)
{
    PyObject *list = array_tolist(arr, NULL), *shape = list ? array_shape(arr, NULL) : NULL;
    PyObject *numpy = shape ? PyImport_ImportModule("numpy") : NULL;
    PyObject *made = numpy ? PyObject_CallMethod(numpy, "array", "Os", list, "object") : NULL;
    /* The list of an array without elements has no later dimensions. */
    PyObject *result = made ? PyObject_CallMethod(made, "reshape", "O", shape) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(shape);
    Py_XDECREF(numpy);
    Py_XDECREF(made);
    return result;
}

PyObject *array_to_numpy(PyObject *arr, const char *name)
{
    array *a = arr ? DATA(array, arr) : NULL;
    PyObject *result = NULL;
    PyObject *asarray = arr ? numpy_asarray(a->st) : NULL;
    if (!asarray) {
        Py_XDECREF(arr);
        return NULL;
    }
    if (asarray == Py_None)
        return arr;
    const kind *k = a->kind;
    if (k && k->format)
        result = numpy_over(a->st, arr, k, !a->foreign && a->block->nbytes > 0);
    else if (k && k->ml)
        result = array_viewed(a, k, name);
    else if (is_wide_integer(a->type))
        result = array_objects(arr);
    else
        raise_text(a->st, TNF_EUNSUPPORTED, "'%s' is %s, which numpy does not have; use .bytes()",
                   name ? name : "the array", a->type->id);
    Py_DECREF(arr);
    return result;
}

static PyObject *array_numpy(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    array *a = DATA(array, self);
    PyObject *found = numpy_asarray(a->st);
    if (found == Py_None)
        return PyErr_SetString(PyExc_ImportError, "numpy is not installed"), NULL;
    if (a->kind && a->kind->format)
        return array_to_numpy(Py_NewRef(self), NULL);
    /* A second Array on the same block: numpy alone gets the other form of the buffer. */
    PyObject *other = found ? array_make(a->st, a->type, block_take(a->block)) : NULL;
    return other ? array_to_numpy(other, NULL) : NULL;
}

/* --------------------------------------------------------- other methods */

static PyObject *array_tobytes(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    array *a = DATA(array, self);
    return PyBytes_FromStringAndSize((const char *)a->block->data, (Py_ssize_t)a->block->nbytes);
}

/* The element that is `at` bytes after the first; elements of less than a byte are counted. */
static PyObject *element_object(const array *a, Py_ssize_t at)
{
    char text[TNF_INTEGER_TEXT];
    double d[2];
    bool bytes = a->kind && a->kind->width;
    const uint8_t *p = a->block->data + (bytes ? at : 0);
    size_t i = bytes ? 0 : (size_t)at;
    if (tnf_type_integer(text, sizeof text, a->type, p, i) > 0)
        return PyLong_FromString(text, NULL, 10);
    if (!tnf_type_decode(d, a->type, p, i, 1))
        return raise_text(a->st, TNF_EUNSUPPORTED, "elements of the type %s are not numbers",
                          a->type->id);
    return a->type->number == TNF_NUMBER_COMPLEX ? PyComplex_FromDoubles(d[0], d[1])
                                                 : PyFloat_FromDouble(d[0]);
}

static PyObject *nested_list(const array *a, int axis, Py_ssize_t at)
{
    if (axis == a->block->rank)
        return element_object(a, at);
    PyObject *list = PyList_New(a->block->shape[axis]);
    for (Py_ssize_t i = 0; list && i < a->block->shape[axis]; i++) {
        PyObject *item = nested_list(a, axis + 1, at + i * a->block->strides[axis]);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *array_tolist(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    const array *a = DATA(array, self);
    const kind *k = a->kind;
    if (!k || !k->format || k->code == 5) /* memoryview does not support complex numbers */
        return nested_list(a, 0, 0);
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    return list;
}

static PyObject *array_shape(PyObject *self, void *ignored)
{
    (void)ignored;
    const block *b = DATA(array, self)->block;
    PyObject *tuple = PyTuple_New(b->rank);
    for (int i = 0; tuple && i < b->rank; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(b->shape[i]));
    return tuple;
}

static PyObject *array_dtype(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyUnicode_FromString(DATA(array, self)->type->id);
}

/* "F" if the first dimension varies fastest and the last does not; otherwise "C". */
static PyObject *array_order(PyObject *self, void *ignored)
{
    (void)ignored;
    const block *b = DATA(array, self)->block;
    const kind *k = DATA(array, self)->kind;
    return PyUnicode_FromString(array_plain(b, k && k->width ? k->width : 1) ? "C" : "F");
}

static PyObject *array_nbytes(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromSize_t(DATA(array, self)->block->nbytes);
}

/* All bytes as one run of u8, for callers that choose the type: a second Array on the same block.
 */
static PyObject *array_raw(PyObject *self, void *ignored)
{
    (void)ignored;
    array *a = DATA(array, self);
    if (a->foreign)
        return PyErr_SetString(PyExc_BufferError, "the memory belongs to another object"), NULL;
    PyObject *flat = array_make(a->st, a->type, block_take(a->block));
    if (!flat)
        return NULL;
    DATA(array, flat)->form = FLAT;
    PyObject *view = PyMemoryView_FromObject(flat);
    Py_DECREF(flat);
    return view;
}

static PyObject *array_repr(PyObject *self)
{
    PyObject *shape = array_shape(self, NULL);
    PyObject *text = shape ? PyUnicode_FromFormat("tenfold.Array(dtype=%s, shape=%R)",
                                                  DATA(array, self)->type->id, shape)
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyMethodDef array_methods[] = {
    { "numpy", array_numpy, METH_NOARGS, "The same memory as a numpy array." },
    { "tobytes", array_tobytes, METH_NOARGS, "The bytes, in the order of the memory." },
    { "tolist", array_tolist, METH_NOARGS, "The numbers as nested lists." },
    { "__dlpack__", FAST_KEYWORDS(array_dlpack), "A capsule of DLPack." },
    { "__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU." },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef array_members[] = {
    { "shape", array_shape, NULL, "A tuple.", NULL },
    { "dtype", array_dtype, NULL, "The id of the type: 'f32', 'bf16' …", NULL },
    { "order", array_order, NULL, "'C' or 'F'.", NULL },
    { "nbytes", array_nbytes, NULL, "Bytes of all elements.", NULL },
    { "raw", array_raw, NULL, "The bytes as a memoryview of u8, without a copy.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot array_slots[] = {
    { Py_tp_dealloc, array_free },
    { Py_tp_repr, array_repr },
    { Py_tp_methods, array_methods },
    { Py_tp_getset, array_members },
    { Py_bf_getbuffer, array_buffer },
    DOC("Memory with a type and a shape. Reads return it if numpy is not installed."),
    { 0, NULL }
};
PyType_Spec array_spec = { .name = "tenfold.Array",
                           .basicsize = sizeof(array),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                    Py_TPFLAGS_IMMUTABLETYPE,
                           .slots = array_slots };
