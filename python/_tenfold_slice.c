/* SPDX-License-Identifier: MIT */
/* Converts the key of tensor[key] to tnf_slices: by numpy's rules, or by those of safetensors for
 * its replacement, with the same error messages. */
#include "_tenfold.h"
#include <stdio.h>
#include <string.h>

typedef struct indices {
    const handle *h;
    const uint64_t *shape;
    uint32_t rank;
    PyObject *items[MOST_RANK + 2]; /* borrowed, of the key */
    Py_ssize_t n;
    Py_ssize_t ellipsis; /* its place, or -1 */
} indices;

static int index_error(const indices *x, const char *text)
{
    if (x->h->compat)
        raise_text(x->h->st, TNF_EINVAL, "%s", text);
    else
        PyErr_SetString(PyExc_IndexError, text);
    return -1;
}

/* safetensors quotes slices and shape in its messages: "Error during slicing [2:, 20] with …". */
static void quote_item(char *out, size_t n, PyObject *item)
{
    size_t used = strlen(out);
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(item)) {
        snprintf(out + used, n - used, "%zd", PyLong_AsSsize_t(item));
        return;
    }
    PyObject *a = PyObject_GetAttrString(item, "start"), *b = PyObject_GetAttrString(item, "stop");
    if (PySlice_Unpack(item, &start, &stop, &step) == 0) {
        if (a != Py_None)
            snprintf(out + used, n - used, "%zd", start);
        used = strlen(out);
        snprintf(out + used, n - used, ":");
        used = strlen(out);
        if (b != Py_None)
            snprintf(out + used, n - used, "%zd", stop);
        used = strlen(out);
        if (step != 1)
            snprintf(out + used, n - used, ":%zd", step);
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
}

static int slicing_error(const indices *x, const char *why)
{
    char text[160] = "Error during slicing [";
    size_t used;
    bool first = true;
    for (Py_ssize_t i = 0; i < x->n; i++) {
        if (i == x->ellipsis)
            continue;
        used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s", first ? "" : ", ");
        quote_item(text, sizeof text, x->items[i]);
        first = false;
    }
    used = strlen(text);
    snprintf(text + used, sizeof text - used, "] with shape [");
    for (uint32_t i = 0; i < x->rank; i++) {
        used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%llu", i ? ", " : "",
                 (unsigned long long)x->shape[i]);
    }
    PyErr_Clear();
    raise_text(x->h->st, TNF_EINVAL, "%s]: %s", text, why);
    return -1;
}

/* ------------------------------------------------------------------ one item */

static int take_number(const indices *x, tnf_slice *out, PyObject *item, uint32_t axis)
{
    char text[96];
    PyObject *whole = PyNumber_Index(item);
    Py_ssize_t i = whole ? PyLong_AsSsize_t(whole) : -1;
    Py_XDECREF(whole);
    if (i == -1 && PyErr_Occurred())
        return -1;
    Py_ssize_t size = (Py_ssize_t)x->shape[axis];
    if (i >= -size && i < size) {
        *out = (tnf_slice) { i < 0 ? i + size : i, 1, 1, true };
        return 0;
    }
    if (x->h->compat && i >= 0) {
        snprintf(text, sizeof text, "index %zd out of bounds for tensor dimension #%u of size %zd",
                 i, axis, size);
        return slicing_error(x, text);
    }
    if (x->h->compat)
        snprintf(text, sizeof text, "Invalid index %zd for dimension %u of size %zd", i, axis,
                 size);
    else
        snprintf(text, sizeof text, "index %zd is out of bounds for axis %u with size %zd", i, axis,
                 size);
    return index_error(x, text);
}

/* safetensors does not clip: a range beyond the dimension, or an empty range at its end, is an
 * error there. It cannot read negative ends at all; here they mean the same as in numpy. */
static int check_range(const indices *x, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step,
                       uint32_t axis)
{
    char text[96];
    Py_ssize_t size = (Py_ssize_t)x->shape[axis], bad = -1;
    if (step < 0 || start < 0 || stop < 0)
        return 0;
    if (stop != PY_SSIZE_T_MAX && stop > size)
        bad = stop - 1;
    if (start >= size && (start > 0 || size > 0))
        bad = start;
    if (bad < 0)
        return 0;
    snprintf(text, sizeof text, "index %zd out of bounds for tensor dimension #%u of size %zd", bad,
             axis, size);
    return slicing_error(x, text);
}

static int take_range(const indices *x, tnf_slice *out, PyObject *item, uint32_t axis)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
        if (!x->h->compat || !PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
        return index_error(x, "Slice step must be a positive integer, got 0");
    }
    if (x->h->compat && check_range(x, start, stop, step, axis) < 0)
        return -1;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)x->shape[axis], &start, &stop, step);
    *out = (tnf_slice) { count > 0 ? start : 0, step, (uint64_t)count, false };
    return 0;
}

static int take_item(const indices *x, tnf_slice *out, PyObject *item, uint32_t axis, Py_ssize_t at)
{
    char text[96];
    if (PySlice_Check(item))
        return take_range(x, out, item, axis);
    if (PyIndex_Check(item) && (x->h->compat || !PyBool_Check(item)))
        return take_number(x, out, item, axis);
    if (x->h->compat) {
        snprintf(text, sizeof text,
                 "Unsupported slice index at position %zd: expected slice, int, or ellipsis", at);
        return index_error(x, text);
    }
    return index_error(x, PyBool_Check(item)
                              ? "True and False are not valid indices; use 1 and 0"
                              : "only integers, slices, ellipsis, and one list of rows in front "
                                "are valid indices");
}

/* -------------------------------------------------------------------- the key */

static int key_items(indices *x, PyObject *key)
{
    x->ellipsis = -1;
    x->n = 1;
    x->items[0] = key;
    if (PyTuple_Check(key)) {
        x->n = PyTuple_Size(key);
        if (x->n > MOST_RANK + 1)
            return index_error(x, "too many indices for tensor");
        for (Py_ssize_t i = 0; i < x->n; i++)
            x->items[i] = PyTuple_GetItem(key, i);
    }
    for (Py_ssize_t i = 0; i < x->n; i++) {
        if (x->items[i] != Py_Ellipsis)
            continue;
        if (x->ellipsis >= 0)
            return index_error(x, x->h->compat
                                      ? "Only one ellipsis (...) is allowed in slice index"
                                      : "an index can only have a single ellipsis ('...')");
        x->ellipsis = i;
    }
    return 0;
}

/* A list in front selects these rows. */
static int key_list(indices *x, selection *out)
{
    PyObject *first = x->n > 0 ? x->items[0] : NULL;
    if (!first || !(PyList_Check(first) ||
                    (!PyIndex_Check(first) && !PySlice_Check(first) && first != Py_Ellipsis &&
                     PySequence_Check(first) && !PyUnicode_Check(first) && !PyBytes_Check(first))))
        return 0;
    Py_ssize_t n = PySequence_Size(first);
    if (n < 0)
        return -1;
    if (x->h->compat && n > 0)
        return index_error(x, "Non empty lists are not implemented");
    if (x->rank == 0)
        return index_error(x, "too many indices for tensor: tensor is 0-dimensional");
    out->list = first;
    return 0;
}

static int key_known(const indices *x)
{
    for (Py_ssize_t i = 0; x->h->compat && i < x->n; i++) {
        if (PySlice_Check(x->items[i]) || PyIndex_Check(x->items[i]) || i == x->ellipsis)
            continue;
        tnf_slice none;
        return take_item(x, &none, x->items[i], 0, i);
    }
    return 0;
}

int selection_parse(selection *out, const handle *h, PyObject *key, const uint64_t *shape,
                    uint32_t rank)
{
    indices x = { .h = h, .shape = shape, .rank = rank };
    out->list = NULL;
    out->rank = 0;
    if (rank > MOST_RANK)
        return raise_text(h->st, TNF_ELIMIT, "a slice has at most %d dimensions", MOST_RANK), -1;
    if (key_items(&x, key) < 0 || key_list(&x, out) < 0 || (!out->list && key_known(&x) < 0))
        return -1;
    Py_ssize_t given = x.n - (x.ellipsis >= 0);
    if (given > (Py_ssize_t)rank) {
        if (h->compat)
            return slicing_error(&x, "more slicing indexes than dimensions in tensor");
        PyErr_Format(PyExc_IndexError,
                     "too many indices for tensor: tensor is %u-dimensional, but %zd were indexed",
                     rank, given);
        return -1;
    }
    Py_ssize_t skip = (Py_ssize_t)rank - given, before = x.ellipsis >= 0 ? x.ellipsis : given;
    for (uint32_t axis = 0; axis < rank; axis++) {
        Py_ssize_t at = (Py_ssize_t)axis;
        tnf_slice *slice = &out->slices[axis];
        if (shape[axis] > PY_SSIZE_T_MAX)
            return raise_text(h->st, TNF_ELIMIT, "a dimension is too large for an array"), -1;
        if (at >= before + skip)
            at = at - skip + (x.ellipsis >= 0);
        else if (at >= before)
            at = -1;
        if (at < 0 || (at == 0 && out->list))
            *slice = (tnf_slice) { 0, 1, shape[axis], false };
        else if (take_item(&x, slice, x.items[at], axis, at) < 0)
            return -1;
        if (!slice->drop)
            out->shape[out->rank++] = (Py_ssize_t)slice->count;
    }
    if (out->list)
        out->shape[0] = PySequence_Size(out->list);
    return 0;
}
