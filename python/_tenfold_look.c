/* SPDX-License-Identifier: MIT */
/* The attributes of a Tensor, and its strings and bytes. */
#include "_tenfold.h"
#include <string.h>

static const tnf_type *tensor_type_of(const tensor *t)
{
    if (t->part)
        return t->part->type;
    return t->object->nparts > 0 ? t->object->parts[0].type : NULL;
}

static PyObject *get_name(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    return t->part ? PyUnicode_FromString(t->part->role) : str_of(t->object->name);
}

static PyObject *get_shape(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    if (!t->part)
        return shape_tuple(t->object->shape, t->object->rank);
    uint64_t n = t->part->nbytes;
    if (t->part->type && t->part->type->bits)
        n = n * 8 / t->part->type->bits;
    return shape_tuple(&n, 1);
}

static PyObject *get_dtype(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    const tnf_type *type = tensor_type_of(t);
    if (!t->part && t->object->nparts != 1)
        return Py_NewRef(Py_None); /* each part has a type of its own */
    return type ? PyUnicode_FromString(type->id) : Py_NewRef(Py_None);
}

static PyObject *get_nbytes(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    uint64_t n = 0;
    for (uint16_t i = 0; !t->part && i < t->object->nparts; i++)
        n += t->object->parts[i].nbytes;
    return PyLong_FromUnsignedLongLong(t->part ? t->part->nbytes : n);
}

static PyObject *get_size(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    const tnf_type *type = tensor_type_of(t);
    if (!t->part)
        return PyLong_FromUnsignedLongLong(tnf_elements(t->object));
    return PyLong_FromUnsignedLongLong(type && type->bits ? t->part->nbytes * 8 / type->bits
                                                          : t->part->nbytes);
}

static PyObject *get_ndim(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    return PyLong_FromUnsignedLong(t->part ? 1 : t->object->rank);
}

static PyObject *get_order(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    return PyUnicode_FromString(!t->part && t->object->order == TNF_ORDER_F ? "F" : "C");
}

static PyObject *get_layout(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    return PyUnicode_FromString(t->part ? "part" : tnf_layout_id(t->object->layout));
}

static PyObject *get_attrs(PyObject *self, void *typed)
{
    const tensor *t = DATA(tensor, self);
    return value_to_python(t->part ? NULL : t->object->attrs, typed != NULL);
}

static PyObject *get_parts(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    PyObject *dict = PyDict_New();
    for (uint16_t i = 0; dict && !t->part && i < t->object->nparts; i++) {
        const tnf_part *part = &t->object->parts[i];
        PyObject *one = tensor_make(t->h, t->object, part);
        if (!one || PyDict_SetItemString(dict, part->role, one) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(one);
    }
    return dict;
}

/* (path, offset, stored bytes, encoding) of the only part; None if the file does not contain it as
 * a run of bytes. */
static PyObject *get_location(PyObject *self, void *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    const tnf_part *part = t->part ? t->part : t->object->nparts == 1 ? t->object->parts : NULL;
    if (!part || (part->payload != TNF_AT && part->payload != TNF_ENCODED))
        return Py_NewRef(Py_None);
    return Py_BuildValue("OKKs", t->h->path ? t->h->path : Py_None,
                         (unsigned long long)part->offset, (unsigned long long)part->stored,
                         part->payload == TNF_AT ? "raw" : tnf_codec_name(part->codec));
}

/* ------------------------------------------------------------------ strings */

static PyObject *one_string(const char *p, size_t n, bool bytes)
{
    return bytes ? PyBytes_FromStringAndSize(p, (Py_ssize_t)n) : str_of((tnf_str) { p, n });
}

/* An offset of a string: little-endian, like all data of tensors. */
static uint64_t read_offset(const void *offsets, uint64_t i)
{
    const uint8_t *p = (const uint8_t *)offsets + 8 * i;
    uint64_t value = 0;
    for (int k = 7; k >= 0; k--)
        value = value << 8 | p[k];
    return value;
}

static PyObject *mapped_strings(const tnf_strings *s, bool bytes)
{
    PyObject *list = PyList_New((Py_ssize_t)s->count);
    const uint8_t *at = s->base;
    for (uint64_t i = 0; list && i < s->count; i++) {
        uint64_t n;
        if (s->prefix) {
            n = (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
                (uint64_t)at[3] << 24;
            at += s->prefix;
        } else {
            uint64_t begin = read_offset(s->offsets, i);
            at = s->base + begin;
            n = read_offset(s->offsets, i + 1) - begin;
        }
        PyObject *item = one_string((const char *)at, (size_t)n, bytes);
        at += n + s->suffix;
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Reads both parts, since the strings cannot be mapped. tnf_strings_map() has checked the layout
 * before, but not the offsets. */
static PyObject *read_strings(const tensor *t, bool bytes)
{
    const tnf_part *offsets = tnf_object_part(t->object, "offsets");
    const tnf_part *text = tnf_object_part(t->object, "bytes");
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!offsets || !text || !offsets->type || strcmp(offsets->type->id, "u64") != 0)
        return raise_text(t->h->st, TNF_EUNSUPPORTED, "'%.60s' is not a tensor of strings",
                          t->object->name.p);
    block *o = block_new(0, (size_t)offsets->nbytes), *b = block_new(0, (size_t)text->nbytes);
    tnf_status status = o && b ? TNF_OK : TNF_ENOMEM;
    if (status == TNF_OK)
        status = handle_read(t->h, offsets, o->data, o->nbytes, &e);
    if (status == TNF_OK)
        status = handle_read(t->h, text, b->data, b->nbytes, &e);
    PyObject *list = NULL;
    if (status != TNF_OK) {
        raise_error(t->h->st, status, &e, t->h->path);
    } else {
        uint64_t count = o->nbytes / 8 ? o->nbytes / 8 - 1 : 0;
        list = PyList_New((Py_ssize_t)count);
        for (uint64_t i = 0; list && i < count; i++) {
            PyObject *item = NULL;
            uint64_t begin = read_offset(o->data, i), end = read_offset(o->data, i + 1);
            if (begin <= end && end <= b->nbytes)
                item = one_string((const char *)b->data + begin, (size_t)(end - begin), bytes);
            else
                raise_text(t->h->st, TNF_EFORMAT, "string %llu is outside of the part 'bytes'",
                           (unsigned long long)i);
            if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
                Py_CLEAR(list);
        }
    }
    block_drop(o);
    block_drop(b);
    return list;
}

static PyObject *tensor_strings(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *names[] = { "bytes", NULL };
    const tensor *t = DATA(tensor, self);
    tnf_strings s = TNF_STRINGS_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    int bytes = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p", (char **)(uintptr_t)names, &bytes) ||
        handle_ready(t->h) < 0)
        return NULL;
    if (t->part || strncmp(tnf_layout_id(t->object->layout), "strings", 7) != 0)
        return raise_text(t->h->st, TNF_EUNSUPPORTED, "'%.60s' has the layout %s and no strings",
                          t->object->name.p, tnf_layout_id(t->object->layout));
    tnf_status status = tnf_strings_map(&s, t->object, &e);
    if (status == TNF_OK)
        return mapped_strings(&s, bytes);
    if (status == TNF_EUNSUPPORTED)
        return read_strings(t, bytes);
    return raise_error(t->h->st, status, &e, t->h->path);
}

/* -------------------------------------------------------------------- bytes */

static PyObject *tensor_tobytes(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    const tensor *t = DATA(tensor, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (handle_ready(t->h) < 0)
        return NULL;
    const tnf_part *part = tensor_bytes(t);
    PyObject *bytes = part ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)part->nbytes) : NULL;
    if (!bytes)
        return NULL;
    char *p = PyBytes_AsString(bytes);
    tnf_status status = handle_read(t->h, part, p, (size_t)part->nbytes, &e);
    if (status == TNF_OK)
        return bytes;
    Py_DECREF(bytes);
    return raise_error(t->h->st, status, &e, t->h->path);
}

static PyObject *tensor_read_into(PyObject *self, PyObject *target)
{
    const tensor *t = DATA(tensor, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    Py_buffer view;
    if (handle_ready(t->h) < 0)
        return NULL;
    const tnf_part *part = tensor_bytes(t);
    if (!part || PyObject_GetBuffer(target, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    tnf_status status = TNF_EINVAL;
    if ((uint64_t)view.len != part->nbytes) {
        PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, the tensor has %llu", view.len,
                     (unsigned long long)part->nbytes);
    } else {
        status = handle_read(t->h, part, view.buf, (size_t)view.len, &e);
    }
    PyBuffer_Release(&view);
    if (status != TNF_OK)
        return raise_error(t->h->st, status, &e, t->h->path);
    return Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------ by Python */

/* Calls a function of tenfold/_more.py, for methods that are simpler in Python. */
static PyObject *more_call(const char *function, PyObject *self, PyObject *other)
{
    PyObject *module = PyImport_ImportModule("tenfold._more");
    PyObject *result = module
                           ? PyObject_CallMethod(module, function, other ? "OO" : "O", self, other)
                           : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *tensor_torch(PyObject *self, PyObject *args)
{
    PyObject *device = Py_None;
    return PyArg_ParseTuple(args, "|O", &device) ? more_call("tensor_torch", self, device) : NULL;
}

/* The result of get_slice() in safetensors has these names. */
static PyObject *tensor_get_shape(PyObject *self, PyObject *ignored)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *list = shape ? PySequence_List(shape) : NULL;
    (void)ignored;
    Py_XDECREF(shape);
    return list;
}

static PyObject *tensor_get_dtype(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return more_call("tensor_get_dtype", self, NULL);
}

static PyObject *tensor_html(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return more_call("tensor_html", self, NULL);
}

static PyObject *tensor_array_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *names[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", (char **)(uintptr_t)names, &dtype, &copy))
        return NULL;
    PyObject *made = tensor_numpy(self, &copy, 1, NULL);
    if (!made || dtype == Py_None)
        return made;
    PyObject *cast = PyObject_CallMethod(made, "astype", "O", dtype);
    Py_DECREF(made);
    return cast;
}

PyObject *tensor_repr(PyObject *self)
{
    PyObject *name = get_name(self, NULL), *shape = get_shape(self, NULL);
    PyObject *dtype = get_dtype(self, NULL), *layout = get_layout(self, NULL), *text = NULL;
    if (name && shape && dtype && layout)
        text = dtype == Py_None || PyUnicode_CompareWithASCIIString(layout, "dense") != 0
                   ? PyUnicode_FromFormat("tenfold.Tensor(%R, layout=%U, shape=%R)", name, layout,
                                          shape)
                   : PyUnicode_FromFormat("tenfold.Tensor(%R, dtype=%U, shape=%R)", name, dtype,
                                          shape);
    Py_XDECREF(name);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(layout);
    return text;
}

PyMethodDef tensor_methods[] = {
    { "numpy", FAST_KEYWORDS(tensor_numpy),
      "numpy(copy=None, writable=False, astype=None): as a numpy array." },
    { "read", tensor_read, METH_NOARGS, "All elements as a tenfold.Array with memory of its own." },
    { "slice", tensor_slice, METH_O, "As [], but always as a tenfold.Array." },
    { "bytes", tensor_tobytes, METH_NOARGS, "The bytes: decoded, little-endian." },
    { "read_into", tensor_read_into, METH_O, "Reads the bytes into a writable buffer." },
    { "strings", KEYWORDS(tensor_strings),
      "strings(bytes=False): the strings of a tensor of strings." },
    { "torch", tensor_torch, METH_VARARGS, "torch(device=None): as a torch tensor." },
    { "_repr_html_", tensor_html, METH_NOARGS, "A small table for notebooks." },
    { "__array__", KEYWORDS(tensor_array_method), "For numpy." },
    { "get_shape", tensor_get_shape, METH_NOARGS, "The shape as a list: safetensors' name." },
    { "get_dtype", tensor_get_dtype, METH_NOARGS, "'F32' and so on: safetensors' name." },
    { "__dlpack__", FAST_KEYWORDS(tensor_dlpack), "A capsule of DLPack." },
    { "__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU." },
    { NULL, NULL, 0, NULL },
};
static char yes; /* only its address is used */
PyGetSetDef tensor_members[] = {
    { "name", get_name, NULL, "The name; for a part, its role.", NULL },
    { "shape", get_shape, NULL, "A tuple.", NULL },
    { "dtype", get_dtype, NULL, "The id of the type, 'f32' …; None if the parts differ.", NULL },
    { "nbytes", get_nbytes, NULL, "Bytes after decoding.", NULL },
    { "size", get_size, NULL, "Number of elements.", NULL },
    { "ndim", get_ndim, NULL, "Number of dimensions.", NULL },
    { "order", get_order, NULL, "'C' or 'F': the order in the file.", NULL },
    { "layout", get_layout, NULL, "'dense', 'strings/1' …", NULL },
    { "attrs", get_attrs, NULL, "The attributes.", NULL },
    { "attrs_typed", get_attrs, NULL, "The attributes with the exact types of numbers.", &yes },
    { "parts", get_parts, NULL, "A dict of the parts by role.", NULL },
    { "location", get_location, NULL, "(path, offset, stored, encoding), or None.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
