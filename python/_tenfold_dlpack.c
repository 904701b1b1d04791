/* SPDX-License-Identifier: MIT */
/* Exports and imports DLPack, as defined by its header 1.1.
 *
 *   capsule ──> managed tensor ──> block or hold (counted in C)
 *
 * The deleter uses no Python object: it may run on any thread, without the GIL, and after the end
 * of the interpreter. */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_legacy {
    dl_tensor tensor;
    void *ctx;
    void (*deleter)(struct dl_legacy *self);
} dl_legacy;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *ctx;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2, DL_CPU = 1 };

/* All data of one capsule in one allocation: both forms of it, the owner of the bytes, then shape
 * and strides. */
typedef struct export
{
    dl_versioned versioned;
    dl_legacy legacy;
    block *block;
    hold *hold;
    int64_t numbers[];
}
export;

static void export_free(export *x)
{
    block_drop(x->block);
    hold_drop(x->hold);
    free(x);
}

static void delete_versioned(dl_versioned *self)
{
    export_free(self->ctx);
}

static void delete_legacy(dl_legacy *self)
{
    export_free(self->ctx);
}

/* The destructor of a capsule. A consumer renames it; only an unused capsule has its first name. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_legacy *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    }
}

/* ----------------------------------------------------------------- requests */

typedef struct wanted {
    bool versioned;
    uint32_t minor;
    int copy; /* -1: if necessary, 0: never, 1: always */
} wanted;

static int wanted_version(wanted *out, PyObject *version)
{
    if (version == Py_None)
        return 0;
    long major = -1, minor = -1;
    if (PyTuple_Check(version) && PyTuple_Size(version) == 2) {
        major = PyLong_AsLong(PyTuple_GetItem(version, 0));
        minor = PyLong_AsLong(PyTuple_GetItem(version, 1));
    }
    if (major < 0 || minor < 0) {
        PyErr_SetString(PyExc_TypeError, "max_version must be a tuple of two integers");
        return -1;
    }
    out->versioned = major >= 1;
    out->minor = major > 1 || minor > 1 ? 1 : (uint32_t)minor;
    return 0;
}

static int wanted_device(PyObject *device)
{
    int type = DL_CPU, id = 0;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &id))
        return -1;
    if (type == DL_CPU)
        return 0;
    PyErr_SetString(PyExc_BufferError,
                    "the tensor is in CPU memory; it cannot be exported to another device");
    return -1;
}

static int wanted_parse(wanted *out, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const keys[] = { "max_version", "dl_device", "copy", "stream", NULL };
    PyObject *given[] = { Py_None, Py_None, Py_None, Py_None };
    *out = (wanted) { false, 0, -1 };
    if (take_arguments(given, keys, 0, args, n, names) < 0 || wanted_version(out, given[0]) < 0 ||
        wanted_device(given[1]) < 0)
        return -1;
    out->copy = given[2] == Py_None ? -1 : PyObject_IsTrue(given[2]);
    return 0;
}

/* -------------------------------------------------------------------- making */

typedef struct content {
    const tnf_type *type;
    int rank;
    const Py_ssize_t *shape, *strides; /* in bytes */
    const void *data;
    bool readonly, copied;
} content;

/* DLPack 1.0 has no narrow floats: its consumers get the bytes as unsigned numbers. */
static int export_dtype(dl_tensor *t, const content *c, const wanted *how)
{
    const kind *k = kind_of(c->type);
    if (!k || k->bits == 0) {
        PyErr_Format(PyExc_BufferError, "DLPack has no type for %s; use .bytes()",
                     c->type ? c->type->id : "it");
        return -1;
    }
    bool narrow = k->code >= 7 && (!how->versioned || how->minor < 1);
    if (narrow && k->width == 0) {
        PyErr_Format(PyExc_BufferError, "%s needs a consumer of DLPack 1.1; use .bytes()", k->id);
        return -1;
    }
    t->dtype.code = narrow ? 1 : k->code;
    t->dtype.bits = k->bits;
    t->dtype.lanes = 1;
    return k->width ? k->width : 1;
}

static void export_shape(dl_tensor *t, export *x, const content *c, int width, bool packed)
{
    uint64_t stride = 1;
    t->ndim = c->rank;
    t->shape = x->numbers;
    t->strides = x->numbers + c->rank + 1;
    for (int i = c->rank; i-- > 0;) {
        t->shape[i] = c->shape[i];
        t->strides[i] = packed ? (int64_t)stride : c->strides[i] / width;
        stride *= (uint64_t)c->shape[i];
    }
}

/* Takes ownership of block and hold. */
static PyObject *export_make(const content *c, const wanted *how, block *b, hold *h)
{
    export *x = malloc(sizeof *x + (2 * (size_t)c->rank + 2) * sizeof(int64_t));
    if (!x) {
        block_drop(b);
        hold_drop(h);
        return PyErr_NoMemory();
    }
    *x = (export) { .block = b, .hold = h };
    dl_tensor *t = how->versioned ? &x->versioned.tensor : &x->legacy.tensor;
    int width = export_dtype(t, c, how);
    if (width < 0) {
        export_free(x);
        return NULL;
    }
    bool empty = false;
    for (int i = 0; i < c->rank; i++)
        empty = empty || c->shape[i] == 0;
    t->data = empty ? NULL : (void *)(uintptr_t)c->data;
    t->device.type = DL_CPU;
    export_shape(t, x, c, width, kind_of(c->type)->width == 0);
    x->versioned.version.major = 1;
    x->versioned.version.minor = how->minor;
    x->versioned.flags = (c->readonly ? DL_READ_ONLY : 0) | (c->copied ? DL_IS_COPIED : 0);
    x->versioned.ctx = x->legacy.ctx = x;
    x->versioned.deleter = delete_versioned;
    x->legacy.deleter = delete_legacy;
    PyObject *capsule = how->versioned
                            ? PyCapsule_New(&x->versioned, "dltensor_versioned", drop_capsule)
                            : PyCapsule_New(&x->legacy, "dltensor", drop_capsule);
    if (!capsule)
        export_free(x);
    return capsule;
}

PyObject *dlpack_device(PyObject *self, PyObject *ignored)
{
    (void)self;
    (void)ignored;
    return Py_BuildValue("ii", DL_CPU, 0);
}

static PyObject *export_block(const tnf_type *type, block *b, const wanted *how, bool readonly,
                              bool copied)
{
    content c = { type, b->rank, b->shape, b->strides, b->data, readonly, copied };
    return export_make(&c, how, b, NULL);
}

static block *block_copy(const block *b)
{
    block *copy = block_new(b->rank, b->nbytes);
    if (copy) {
        memcpy(copy->shape, b->shape, (size_t)b->rank * sizeof *b->shape);
        memcpy(copy->strides, b->strides, (size_t)b->rank * sizeof *b->strides);
        memcpy(copy->data, b->data, b->nbytes);
    }
    return copy;
}

PyObject *array_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    array *a = DATA(array, self);
    wanted how;
    if (wanted_parse(&how, args, n, names) < 0)
        return NULL;
    if (a->foreign) {
        PyErr_SetString(PyExc_BufferError,
                        "the memory belongs to another object; export it from that object");
        return NULL;
    }
    /* The unversioned form has no flag for "read-only". */
    bool copy = how.copy == 1 || (a->readonly && !how.versioned);
    if (copy && how.copy == 0) {
        PyErr_SetString(PyExc_BufferError, "this array cannot be exported without a copy");
        return NULL;
    }
    block *b = copy ? block_copy(a->block) : block_take(a->block);
    return b ? export_block(a->type, b, &how, a->readonly && !copy, copy) : PyErr_NoMemory();
}

/* A view of the mapped file if that is possible and wanted; otherwise a copy. The unversioned form
 * has no flag for "read-only", and a file over memory of Python needs Python to live: both get
 * copies. */
PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    tensor *t = DATA(tensor, self);
    wanted how;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    const void *view = NULL;
    if (wanted_parse(&how, args, n, names) < 0 || handle_ready(t->h) < 0)
        return NULL;
    const tnf_part *part = tensor_bytes(t);
    if (!part)
        return NULL;
    bool lend = how.versioned && how.copy != 1 && !t->h->of_python &&
                tnf_map(&view, part, &e) == TNF_OK;
    if (!lend && how.copy == 0) {
        PyErr_SetString(PyExc_BufferError, "this tensor cannot be exported without a copy");
        return NULL;
    }
    if (lend) {
        Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
        int rank = tensor_form(t, shape, strides);
        content c = { part->type, rank, shape, strides, view, true, false };
        return rank < 0 ? NULL : export_make(&c, &how, NULL, hold_take(t->h->hold));
    }
    block *b = tensor_block(t);
    if (!b)
        return NULL;
    tnf_status status = handle_read(t->h, part, b->data, b->nbytes, &e);
    if (status != TNF_OK) {
        block_drop(b);
        return raise_error(t->h->st, status, &e, t->h->path);
    }
    return export_block(part->type, b, &how, false, true);
}

/* ------------------------------------------------------------------ importing */

static const tnf_type *import_type(uint8_t code, uint8_t bits)
{
    for (size_t i = 0; tnf_type_at(i); i++) {
        const kind *k = kind_of(tnf_type_at(i));
        if (k && k->bits == bits && k->code == code)
            return tnf_type_at(i);
    }
    return NULL;
}

static void foreign_versioned(void *managed)
{
    dl_versioned *m = managed;
    if (m->deleter)
        m->deleter(m);
}

static void foreign_legacy(void *managed)
{
    dl_legacy *m = managed;
    if (m->deleter)
        m->deleter(m);
}

/* An Array over the memory of another object. Its block has shape and strides, and borrows the
 * data.
 */
static PyObject *import_tensor(state *st, const dl_tensor *t, bool readonly)
{
    const tnf_type *type = t->dtype.lanes == 1 ? import_type(t->dtype.code, t->dtype.bits) : NULL;
    if (t->device.type != DL_CPU)
        return raise_text(st, TNF_EUNSUPPORTED, "the array is not in CPU memory");
    if (!type || t->ndim < 0 || t->ndim > MOST_RANK)
        return raise_text(st, TNF_EUNSUPPORTED,
                          "no element type matches DLPack's code %d with %d bits", t->dtype.code,
                          t->dtype.bits);
    block *b = block_new(t->ndim, 0);
    PyObject *made = array_make(st, type, b);
    if (!made)
        return NULL;
    const kind *k = kind_of(type);
    uint64_t stride = 1;
    for (int i = t->ndim; i-- > 0;) {
        b->shape[i] = (Py_ssize_t)t->shape[i];
        b->strides[i] = (Py_ssize_t)(t->strides ? t->strides[i] : (int64_t)stride) *
                        (k->width ? k->width : 1);
        stride *= (uint64_t)t->shape[i];
    }
    b->data = (uint8_t *)t->data + t->byte_offset;
    b->nbytes = (size_t)((stride * type->bits + 7) / 8);
    DATA(array, made)->readonly = readonly;
    return made;
}

PyObject *from_dlpack(PyObject *module, PyObject *object)
{
    state *st = state_of(module);
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *how = none ? Py_BuildValue("{s(ii)}", "max_version", 1, 1) : NULL;
    PyObject *capsule = how ? PyObject_Call(method, none, how) : NULL;
    if (how && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* it does not support versions */
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(how);
    if (!capsule)
        return NULL;
    PyObject *made = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        made = import_tensor(st, &m->tensor, m->flags & DL_READ_ONLY);
        if (made) {
            DATA(array, made)->foreign = foreign_versioned;
            DATA(array, made)->managed = m;
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
        }
    } else {
        dl_legacy *m = PyCapsule_GetPointer(capsule, "dltensor");
        made = m ? import_tensor(st, &m->tensor, false) : NULL;
        if (made) {
            DATA(array, made)->foreign = foreign_legacy;
            DATA(array, made)->managed = m;
            PyCapsule_SetName(capsule, "used_dltensor");
        }
    }
    Py_DECREF(capsule);
    return made;
}
