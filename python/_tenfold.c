/* SPDX-License-Identifier: MIT */
/* The module: its types and functions, its state for each interpreter. */
#include "_tenfold.h"
#include <string.h>

state *state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

static PyObject *get_types(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && tnf_type_at(i); i++) {
        const tnf_type *t = tnf_type_at(i);
        PyObject *item = Py_BuildValue("sI", t->id, t->bits);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* Memory at an address, for TensorSpec of safetensors. The caller keeps it alive. */
static PyObject *borrow_memory(PyObject *module, PyObject *args)
{
    unsigned long long address;
    Py_ssize_t n;
    static char nothing[1];
    (void)module;
    if (!PyArg_ParseTuple(args, "Kn", &address, &n))
        return NULL;
    if (n < 0 || (n > 0 && address == 0)) {
        PyErr_SetString(PyExc_ValueError, "the address or the size is invalid");
        return NULL;
    }
    return PyMemoryView_FromMemory(n == 0 ? nothing : (char *)(uintptr_t)address, n, PyBUF_READ);
}

static PyObject *undo_edit(PyObject *module, PyObject *path)
{
    PyObject *bytes = NULL;
    bool undone = false;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    tnf_status status = tnf_undo(&undone, PyBytes_AsString(bytes), &e);
    Py_DECREF(bytes);
    if (status != TNF_OK)
        return raise_error(state_of(module), status, &e, path);
    return PyBool_FromLong(undone);
}

static PyMethodDef module_methods[] = {
    { "save", KEYWORDS(do_save), "save(items, path, options)" },
    { "convert", KEYWORDS(do_convert), "convert(files, path, options)" },
    { "repair", KEYWORDS(do_repair), "repair(file, path, options)" },
    { "edit", KEYWORDS(do_edit), "edit(file, path, set, tensor, options)" },
    { "verify", KEYWORDS(do_verify), "verify(file, values, canonical, threads, progress)" },
    { "hash", KEYWORDS(do_hash), "hash(file, tensors, threads, progress)" },
    { "diff", KEYWORDS(do_diff), "diff(a, b, options)" },
    { "stat", KEYWORDS(do_stat), "stat(file, names, bins, threads, progress)" },
    { "formats", do_formats, METH_NOARGS, "A list of dicts." },
    { "types", get_types, METH_NOARGS, "A list of (id, bits)." },
    { "undo", undo_edit, METH_O, "Undoes an interrupted edit of that file." },
    { "shown", net_shown, METH_O, "shown(path): a URL without its secrets." },
    { "is_url", net_is_url, METH_O, "is_url(path): is it read over the network?" },
    { "fetch", net_fetch, METH_VARARGS, "fetch(url, folder, options): (files, warnings)" },
    { "borrow", borrow_memory, METH_VARARGS, "borrow(address, n): a memoryview." },
    { "from_dlpack", from_dlpack, METH_O, "An Array over the memory of another object." },
    { "device_open", device_open, METH_O, "device_open(name): a device." },
    { "device_info", device_info, METH_O, "device_info(device): a dict." },
    { "device_trim", device_trim, METH_O, "device_trim(device): frees pinned memory." },
    { "device_form", device_form, METH_VARARGS, "device_form(tensor, key, type)" },
    { "device_start", device_start, METH_VARARGS, "device_start(device, requests, options, keep)" },
    { "device_start_file", device_start_file, METH_VARARGS,
      "device_start_file(device, file, types, allocate, options, keep): (load, tensors) or None" },
    { "device_stop", device_stop, METH_O, "device_stop(load): ends the load early." },
    { "device_wait", device_wait, METH_VARARGS, "device_wait(load, index or None)" },
    { "device_at", device_at, METH_VARARGS, "device_at(load, index): (address, bytes, made)" },
    { "device_report", device_report, METH_O, "device_report(load): a dict." },
    { "job_plan", job_plan, METH_O, "job_plan(options): a job." },
    { "job_parse", job_parse, METH_O, "job_parse(text): a job." },
    { "job_info", job_info, METH_O, "job_info(job): (text, dict)." },
    { "job_do", job_do, METH_VARARGS, "job_do(job, part, options): a receipt." },
    { "job_finish", job_finish, METH_VARARGS, "job_finish(job, options): JSON." },
    { "job_abort", job_abort, METH_VARARGS, "job_abort(job, options)" },
    { "params_id", params_id, METH_O, "params_id(name): 16 bytes." },
    { "params_key", params_key, METH_VARARGS, "params_key(namespace, base id): 16 bytes." },
    { "params_next_namespace", params_next_namespace, METH_NOARGS, "16 bytes." },
    { "params_check_path", params_check_path, METH_O, "Raises an error if the path is invalid." },
    { "params_join_path", params_join_path, METH_O, "params_join_path(segments): a path." },
    { "params_config", params_config, METH_O, "params_config(file): options." },
#ifdef TENFOLD_PRIMITIV
    { "primitiv_join", primitiv_join, METH_O, "primitiv_join(path): the name of its tensor." },
    { "primitiv_split", primitiv_split, METH_O, "primitiv_split(name): a path." },
    { "primitiv_find", primitiv_find, METH_VARARGS, "primitiv_find(file, path, statistic)" },
    { "primitiv_load", primitiv_load, METH_VARARGS,
      "primitiv_load(file, items, need_all, allow_extra, missing, extra)" },
    { "primitiv_save", primitiv_save, METH_VARARGS, "primitiv_save(path, items, options)" },
    { "primitiv_save_shape", primitiv_save_shape, METH_VARARGS,
      "primitiv_save_shape(path, dims, batch, options)" },
    { "primitiv_save_optimizer", primitiv_save_optimizer, METH_VARARGS,
      "primitiv_save_optimizer(path, uints, floats, options)" },
    { "primitiv_optimizer", primitiv_optimizer, METH_O, "The class of an optimizer, or None." },
    { "primitiv_config", primitiv_config, METH_VARARGS, "primitiv_config(file, key, float)" },
#endif
    { NULL, NULL, 0, NULL },
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, bool show)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && show && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int module_exec(PyObject *module)
{
    state *st = state_of(module);
    PyObject *errors = PyImport_ImportModule("tenfold._errors");
    if (!errors)
        return -1;
    st->make_error = PyObject_GetAttrString(errors, "make");
    Py_DECREF(errors);
    st->dtypes = PyDict_New();
    st->handle_type = add_type(module, &handle_spec, false);
    st->file_type = add_type(module, &file_spec, true);
    st->tensor_type = add_type(module, &tensor_spec, true);
    st->array_type = add_type(module, &array_spec, true);
    st->emb_type = add_type(module, &emb_spec, true);
    st->params_type = add_type(module, &params_spec, true);
    st->form_type = add_type(module, &form_spec, false);
    st->lent_type = add_type(module, &lent_spec, true);
    if (!st->make_error || !st->dtypes || !st->handle_type || !st->file_type || !st->tensor_type ||
        !st->array_type || !st->emb_type || !st->params_type || !st->form_type || !st->lent_type)
        return -1;
#ifdef TENFOLD_POINTS
    st->points_type = add_type(module, &points_spec, true);
    if (!st->points_type)
        return -1;
#endif
    return PyModule_AddStringConstant(module, "version", tnf_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    state *st = state_of(module);
    Py_VISIT((PyObject *)st->handle_type);
    Py_VISIT((PyObject *)st->file_type);
    Py_VISIT((PyObject *)st->tensor_type);
    Py_VISIT((PyObject *)st->array_type);
    Py_VISIT((PyObject *)st->emb_type);
    Py_VISIT((PyObject *)st->points_type);
    Py_VISIT((PyObject *)st->params_type);
    Py_VISIT((PyObject *)st->form_type);
    Py_VISIT((PyObject *)st->lent_type);
    Py_VISIT(st->make_error);
    Py_VISIT(st->values);
    Py_VISIT(st->asarray);
    Py_VISIT(st->take);
    Py_VISIT(st->dtypes);
    return 0;
}

static int module_clear(PyObject *module)
{
    state *st = state_of(module);
    Py_CLEAR(st->handle_type);
    Py_CLEAR(st->file_type);
    Py_CLEAR(st->tensor_type);
    Py_CLEAR(st->array_type);
    Py_CLEAR(st->emb_type);
    Py_CLEAR(st->points_type);
    Py_CLEAR(st->params_type);
    Py_CLEAR(st->form_type);
    Py_CLEAR(st->lent_type);
    Py_CLEAR(st->make_error);
    Py_CLEAR(st->values);
    Py_CLEAR(st->asarray);
    Py_CLEAR(st->take);
    Py_CLEAR(st->dtypes);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

/* Slots that 3.11 lacks, by their numbers in later versions: a GIL for each interpreter, and
 * support for a Python without a GIL. An older Python would refuse them. */
enum { MULTIPLE_INTERPRETERS = 3, GIL_SLOT = 4 };
static PyModuleDef_Slot old_slots[] = { { Py_mod_exec, module_exec }, { 0, NULL } };
static PyModuleDef_Slot slots_312[] = { { Py_mod_exec, module_exec },
                                        { MULTIPLE_INTERPRETERS, (void *)2 },
                                        { 0, NULL } };
static PyModuleDef_Slot slots_313[] = { { Py_mod_exec, module_exec },
                                        { MULTIPLE_INTERPRETERS, (void *)2 },
                                        { GIL_SLOT, (void *)1 },
                                        { 0, NULL } };
#define DEFINE(name, which)                                                                        \
    static struct PyModuleDef name = {                                                             \
        PyModuleDef_HEAD_INIT, "tenfold._tenfold", "Tensor files, in C.",                          \
        sizeof(state),         module_methods,     which,                                          \
        module_traverse,       module_clear,       module_free                                     \
    }
DEFINE(module_311, old_slots);
DEFINE(module_312, slots_312);
DEFINE(module_313, slots_313);

PyMODINIT_FUNC PyInit__tenfold(void);
PyMODINIT_FUNC PyInit__tenfold(void)
{
    if (Py_Version >= 0x030D0000)
        return PyModuleDef_Init(&module_313);
    return PyModuleDef_Init(Py_Version >= 0x030C0000 ? &module_312 : &module_311);
}
