/* SPDX-License-Identifier: MIT */
/* Converts attribute trees from C to Python and back. Plain trees have Python's own types; typed
 * trees give the exact type of each number: ("u32", 7). */
#include "_tenfold.h"
#include <string.h>

static PyObject *leaf_plain(const tnf_value *v)
{
    switch (v->kind) {
    case TNF_BOOL:
        return PyBool_FromLong(v->as.b);
    case TNF_INT:
        return PyLong_FromLongLong(v->as.i);
    case TNF_UINT:
        return PyLong_FromUnsignedLongLong(v->as.u);
    case TNF_FLOAT:
        return PyFloat_FromDouble(v->dtype == TNF_F32 ? (double)v->as.f32 : v->as.f64);
    case TNF_STRING:
        return str_of((tnf_str) { v->as.s, v->n });
    case TNF_BYTES:
        return PyBytes_FromStringAndSize(v->as.s, (Py_ssize_t)v->n);
    default:
        return Py_NewRef(Py_None);
    }
}

static PyObject *json_plain(const tnf_value *v)
{
    PyObject *json = PyImport_ImportModule("json");
    PyObject *text = json ? str_of((tnf_str) { v->as.s, v->n }) : NULL;
    PyObject *tree = text ? PyObject_CallMethod(json, "loads", "O", text) : NULL;
    Py_XDECREF(json);
    Py_XDECREF(text);
    return tree;
}

static PyObject *array_plain(const tnf_value *v, bool typed)
{
    PyObject *list = PyList_New((Py_ssize_t)v->n);
    for (size_t i = 0; list && i < v->n; i++) {
        PyObject *item = value_to_python(&v->as.items[i], typed);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *map_plain(const tnf_value *v, bool typed)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < v->n; i++) {
        PyObject *key = str_of(v->as.members[i].key);
        PyObject *item = key ? value_to_python(&v->as.members[i].value, typed) : NULL;
        if (!item || PyDict_SetItem(dict, key, item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return dict;
}

PyObject *value_to_python(const tnf_value *v, bool typed)
{
    if (!v)
        return PyDict_New();
    if (v->kind == TNF_ARRAY || v->kind == TNF_MAP) {
        if (Py_EnterRecursiveCall(" in attributes"))
            return NULL;
        PyObject *tree = v->kind == TNF_ARRAY ? array_plain(v, typed) : map_plain(v, typed);
        Py_LeaveRecursiveCall();
        return tree;
    }
    if (v->kind == TNF_JSON && !typed)
        return json_plain(v);
    if (v->kind == TNF_JSON)
        return Py_BuildValue("sN", "json", str_of((tnf_str) { v->as.s, v->n }));
    bool number = v->kind == TNF_INT || v->kind == TNF_UINT || v->kind == TNF_FLOAT;
    if (typed && number)
        return Py_BuildValue("sN", tnf_type_of((tnf_dtype)v->dtype)->id, leaf_plain(v));
    return leaf_plain(v);
}

/* --------------------------------------------------------------- from Python */

static int from_number(tnf_value *out, PyObject *object)
{
    int overflow = 0;
    PyObject *whole = PyNumber_Index(object);
    if (!whole)
        return -1;
    int64_t i = PyLong_AsLongLongAndOverflow(whole, &overflow);
    if (overflow > 0)
        *out = tnf_value_uint(PyLong_AsUnsignedLongLong(whole));
    else if (overflow < 0)
        PyErr_SetString(PyExc_OverflowError, "an integer attribute has at most 64 bits");
    else
        *out = tnf_value_int(i);
    Py_DECREF(whole);
    return PyErr_Occurred() ? -1 : 0;
}

static int from_list(tnf_value *out, PyObject *object, PyObject *arena)
{
    Py_ssize_t n = PySequence_Size(object);
    tnf_value *items = n < 0 ? NULL : arena_take(arena, (size_t)n * sizeof *items);
    for (Py_ssize_t i = 0; items && i < n; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        if (!item || PyList_Append(arena, item) < 0 ||
            value_from_python(&items[i], item, arena) < 0)
            items = NULL;
        Py_XDECREF(item);
    }
    *out = tnf_value_array(items, (size_t)n);
    return items ? 0 : -1;
}

static int from_dict(tnf_value *out, PyObject *object, PyObject *arena)
{
    PyObject *pairs = PyMapping_Items(object);
    Py_ssize_t n = pairs ? PyList_Size(pairs) : -1;
    tnf_member *members = n < 0 ? NULL : arena_take(arena, (size_t)n * sizeof *members);
    if (pairs && PyList_Append(arena, pairs) < 0)
        members = NULL;
    for (Py_ssize_t i = 0; members && i < n; i++) {
        PyObject *pair = PyList_GetItem(pairs, i), *owner = NULL;
        if (text_of(PyTuple_GetItem(pair, 0), &members[i].key, &owner) < 0 ||
            (owner && PyList_Append(arena, owner) < 0) ||
            value_from_python(&members[i].value, PyTuple_GetItem(pair, 1), arena) < 0)
            members = NULL;
        Py_XDECREF(owner);
    }
    Py_XDECREF(pairs);
    *out = tnf_value_map(members, (size_t)n);
    return members ? 0 : -1;
}

static int from_text(tnf_value *out, PyObject *object, PyObject *arena)
{
    tnf_str text;
    PyObject *owner = NULL;
    int bad = text_of(object, &text, &owner) < 0 || (owner && PyList_Append(arena, owner) < 0);
    Py_XDECREF(owner);
    *out = tnf_value_text(text.p, bad ? 0 : text.n);
    return bad ? -1 : PyList_Append(arena, object);
}

static int from_tree(tnf_value *out, PyObject *object, PyObject *arena)
{
    if (Py_EnterRecursiveCall(" in attributes"))
        return -1;
    int bad = PyList_Check(object) || PyTuple_Check(object) ? from_list(out, object, arena)
                                                            : from_dict(out, object, arena);
    Py_LeaveRecursiveCall();
    return bad;
}

int value_from_python(tnf_value *out, PyObject *object, PyObject *arena)
{
    *out = (tnf_value) { .kind = TNF_NULL };
    if (object == Py_None)
        return 0;
    if (PyBool_Check(object)) {
        *out = tnf_value_bool(object == Py_True);
        return 0;
    }
    if (PyUnicode_Check(object))
        return from_text(out, object, arena);
    if (PyFloat_Check(object)) {
        *out = tnf_value_float(PyFloat_AsDouble(object));
        return 0;
    }
    if (PyBytes_Check(object)) {
        *out = tnf_value_bytes(PyBytes_AsString(object), (size_t)PyBytes_Size(object));
        return PyList_Append(arena, object);
    }
    if (PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object))
        return from_tree(out, object, arena);
    if (PyIndex_Check(object))
        return from_number(out, object);
    PyErr_Format(PyExc_TypeError, "%R cannot be an attribute", (PyObject *)Py_TYPE(object));
    return -1;
}
