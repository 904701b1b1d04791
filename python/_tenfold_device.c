/* SPDX-License-Identifier: MIT */
/* Loads tensors to a GPU, for tenfold/_device.py. A device is opened once and never closed, since
 * tensors in its memory may outlive all objects here. A load keeps its requests alive, and by them
 * the files. */
#include "_tenfold.h"

#include <stdlib.h>
#include <string.h>
#include <tenfold/device.h>

static const char device_name[] = "tenfold.device", load_name[] = "tenfold.load";

typedef struct running {
    tnf_load *load;
    PyObject *requests, *device;
    size_t n;
} running;

/* ----------------------------------------------------------------- devices */

PyObject *device_open(PyObject *module, PyObject *name)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_device *d = NULL;
    PyObject *text = PyUnicode_AsUTF8String(name);
    if (!text)
        return NULL;
    const char *which = PyBytes_AsString(text);
    PyThreadState *save = PyEval_SaveThread(); /* the driver may need a second to start */
    tnf_status status = tnf_device_open(&d, which, NULL, &e);
    PyEval_RestoreThread(save);
    Py_DECREF(text);
    if (status != TNF_OK)
        return raise_error(state_of(module), status, &e, NULL);
    return PyCapsule_New(d, device_name, NULL);
}

PyObject *device_info(PyObject *module, PyObject *device)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_device_info info = TNF_DEVICE_INFO_INIT;
    tnf_device *d = PyCapsule_GetPointer(device, device_name);
    if (!d)
        return NULL;
    tnf_status status = tnf_device_look(&info, d, &e);
    if (status != TNF_OK)
        return raise_error(state_of(module), status, &e, NULL);
    return Py_BuildValue("{ss ss si si sK sK sK}", "name", info.name, "uuid", info.uuid, "ordinal",
                         info.ordinal, "numa_node", info.numa_node, "memory_total",
                         (unsigned long long)info.memory_total, "memory_free",
                         (unsigned long long)info.memory_free, "pinned",
                         (unsigned long long)info.pinned);
}

PyObject *device_trim(PyObject *module, PyObject *device)
{
    tnf_device *d = PyCapsule_GetPointer(device, device_name);
    (void)module;
    if (!d)
        return NULL;
    tnf_device_trim(d);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- requests */

/* (Tensor, key or None, type or None, Tensor of scales or None, address, bytes) */
static int request_parse(state *st, tnf_device_request *out, PyObject *item, tnf_slice **slices)
{
    PyObject *t, *key, *as, *scales;
    unsigned long long address, n;
    if (!PyArg_ParseTuple(item, "O!OOOKK", st->tensor_type, &t, &key, &as, &scales, &address, &n))
        return -1;
    const tensor *of = DATA(tensor, t);
    if (handle_ready(of->h) < 0)
        return -1;
    *out = (tnf_device_request) { .object = of->object, .part = of->part };
    out->dst = (void *)(uintptr_t)address;
    out->dst_bytes = (size_t)n;
    if (as != Py_None) {
        PyObject *text = PyUnicode_AsUTF8String(as);
        out->as = text ? tnf_type_spelled(PyBytes_AsString(text)) : NULL;
        Py_XDECREF(text);
        if (!out->as)
            return PyErr_Occurred() ? -1
                                    : (PyErr_Format(PyExc_ValueError, "unknown type %R", as), -1);
    }
    if (scales != Py_None) {
        if (Py_TYPE(scales) != st->tensor_type)
            return PyErr_SetString(PyExc_TypeError, "scales must be a Tensor"), -1;
        out->scales = DATA(tensor, scales)->object;
    }
    if (key == Py_None)
        return 0;
    selection s;
    if (selection_parse(&s, of->h, key, of->object->shape, of->object->rank) < 0)
        return -1;
    if (s.list)
        return PyErr_SetString(PyExc_IndexError, "a list of rows is not supported on a GPU"), -1;
    *slices = malloc((of->object->rank + 1) * sizeof **slices);
    if (!*slices)
        return PyErr_NoMemory(), -1;
    memcpy(*slices, s.slices, of->object->rank * sizeof **slices);
    out->slices = *slices;
    return 0;
}

/* (type, shape, bytes) of the result of a request. */
PyObject *device_form(PyObject *module, PyObject *args)
{
    PyObject *t, *key, *as;
    state *st = state_of(module);
    if (!PyArg_ParseTuple(args, "O!OO", st->tensor_type, &t, &key, &as))
        return NULL;
    const tensor *of = DATA(tensor, t);
    const tnf_part *part = of->part ? of->part : of->object->parts;
    const tnf_type *type = part ? part->type : NULL;
    selection s = { .rank = 0 };
    if (handle_ready(of->h) < 0)
        return NULL;
    if (key == Py_None) {
        key = Py_Ellipsis;
    }
    if (selection_parse(&s, of->h, key, of->object->shape, of->object->rank) < 0)
        return NULL;
    if (as != Py_None) {
        PyObject *text = PyUnicode_AsUTF8String(as);
        type = text ? tnf_type_spelled(PyBytes_AsString(text)) : NULL;
        Py_XDECREF(text);
    }
    if (!type)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "unknown type %R", as);
    uint64_t elements = 1, shape[MOST_RANK];
    for (int i = 0; i < s.rank; i++) {
        shape[i] = (uint64_t)s.shape[i];
        elements *= shape[i];
    }
    PyObject *tuple = shape_tuple(shape, (uint32_t)s.rank);
    return tuple ? Py_BuildValue("sNK", type->id, tuple,
                                 (unsigned long long)((elements * type->bits + 7) / 8))
                 : NULL;
}

/* ------------------------------------------------------------------- loads */

static void running_free(PyObject *capsule)
{
    running *r = PyCapsule_GetPointer(capsule, load_name);
    if (!r)
        return;
    PyThreadState *save = PyEval_SaveThread();
    tnf_load_free(r->load);
    PyEval_RestoreThread(save);
    Py_XDECREF(r->requests);
    Py_XDECREF(r->device);
    free(r);
}

static int load_options(tnf_load_options *out, PyObject *options)
{
    uint64_t threads = 0, after = 0, bytes = 0;
    bool each = false, direct = false, exact = false;
    if (option_count(options, "threads", &threads) < 0 ||
        option_count(options, "after", &after) < 0 || option_count(options, "block", &bytes) < 0 ||
        option_flag(options, "each", &each) < 0 || option_flag(options, "direct", &direct) < 0 ||
        option_flag(options, "exact", &exact) < 0 ||
        option_flag(options, "has_after", &out->has_after) < 0)
        return -1;
    out->threads = (unsigned)threads;
    out->block = (size_t)bytes;
    out->after = (void *)(uintptr_t)after;
    out->alloc = each ? TNF_DEVICE_EACH : TNF_DEVICE_ARENA;
    out->read = exact    ? TNF_DEVICE_READ_EXACT
                : direct ? TNF_DEVICE_READ_DIRECT
                         : TNF_DEVICE_READ_AUTO;
    return 0;
}

static PyObject *running_new(running *r, PyObject *keep, PyObject *device);

static void free_requests(tnf_device_request *requests, tnf_slice **slices, size_t n)
{
    for (size_t i = 0; slices && i < n; i++)
        free(slices[i]);
    free(slices);
    free(requests);
}

/* (device, [request], options, keep). The load keeps `keep` alive: the memory that it writes. */
PyObject *device_start(PyObject *module, PyObject *args)
{
    PyObject *device, *list, *options, *keep;
    state *st = state_of(module);
    tnf_load_options how = TNF_LOAD_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!PyArg_ParseTuple(args, "OO!OO", &device, &PyList_Type, &list, &options, &keep))
        return NULL;
    tnf_device *d = PyCapsule_GetPointer(device, device_name);
    if (!d || load_options(&how, options) < 0)
        return NULL;
    size_t n = (size_t)PyList_Size(list);
    tnf_device_request *requests = calloc(n + 1, sizeof *requests);
    tnf_slice **slices = calloc(n + 1, sizeof *slices);
    running *r = calloc(1, sizeof *r);
    bool fine = requests && slices && r;
    if (!fine)
        PyErr_NoMemory();
    for (size_t i = 0; fine && i < n; i++)
        fine = request_parse(st, &requests[i], PyList_GetItem(list, (Py_ssize_t)i), &slices[i]) ==
               0;
    tnf_status status = TNF_OK;
    if (fine) {
        PyThreadState *save = PyEval_SaveThread();
        status = tnf_device_start(&r->load, d, requests, n, &how, &e);
        PyEval_RestoreThread(save);
    }
    free_requests(requests, slices, n);
    if (!fine || status != TNF_OK) {
        free(r);
        return fine ? raise_error(st, status, &e, NULL) : NULL;
    }
    r->n = n;
    PyObject *both = PyTuple_Pack(2, list, keep);
    if (!both) {
        tnf_load_free(r->load);
        free(r);
        return NULL;
    }
    PyObject *capsule = running_new(r, both, device);
    Py_DECREF(both);
    return capsule;
}

/* ----------------------------------------------------------- complete files */

/* Memory that Python allocates: `allocate` returns the address of n bytes. */
struct slabs {
    PyObject *allocate;
    struct slab {
        uint64_t base, n;
    } * all;
    size_t n, last;
};

static void *slab_take(void *ctx, tnf_device *d, size_t n)
{
    struct slabs *s = ctx;
    (void)d;
    PyGILState_STATE held = PyGILState_Ensure();
    struct slab *more = realloc(s->all, (s->n + 1) * sizeof *more);
    PyObject *address = NULL;
    uint64_t base = 0;
    if (more) {
        s->all = more;
        address = PyObject_CallFunction(s->allocate, "n", (Py_ssize_t)n);
        base = address ? PyLong_AsUnsignedLongLong(address) : 0;
        base = PyErr_Occurred() ? 0 : base;
        if (base)
            s->all[s->n++] = (struct slab) { base, n };
    }
    Py_XDECREF(address);
    PyGILState_Release(held);
    return (void *)(uintptr_t)base;
}

/* No-op: Python frees a slab with the last tensor in it. */
static void slab_give(void *ctx, tnf_device *d, void *p, size_t n)
{
    (void)ctx, (void)d, (void)p, (void)n;
}

/* The slab that contains an address. It is usually the slab of the previous call. */
static size_t slab_find(struct slabs *s, uint64_t at)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t k = (s->last + i) % s->n;
        if (at >= s->all[k].base && at - s->all[k].base < s->all[k].n)
            return s->last = k;
    }
    return 0;
}

/* [(name, type, shape, bytes, order, slab, place)] */
static PyObject *placed_tensors(const tnf_file *file, const tnf_load *load, struct slabs *s)
{
    size_t n = tnf_file_info(file)->objects;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        const tnf_object *o = tnf_at(file, i);
        uint64_t at = (uint64_t)(uintptr_t)tnf_load_at(load, i);
        size_t slab = at ? slab_find(s, at) : 0;
        PyObject *name = str_of(o->name), *shape = shape_tuple(o->shape, o->rank), *item = NULL;
        if (name && shape)
            item = Py_BuildValue("OsOKsnK", name, o->parts->type->id, shape,
                                 (unsigned long long)o->parts->nbytes,
                                 o->order == TNF_ORDER_F ? "F" : "C", (Py_ssize_t)slab,
                                 (unsigned long long)(at ? at - s->all[slab].base : 0));
        Py_XDECREF(name);
        Py_XDECREF(shape);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* 1: every tensor is dense, with a type from the set; 0: some are not; -1: an error. */
static int plain_file(tnf_device_request *requests, const tnf_file *file, size_t n, PyObject *types)
{
    const tnf_type *known = NULL;
    for (size_t i = 0; i < n; i++) {
        const tnf_object *o = tnf_at(file, i);
        requests[i].object = o;
        if (o->nparts != 1 || strcmp(tnf_layout_id(o->layout), "dense") != 0 || !o->parts->type)
            return 0;
        if (o->parts->type == known)
            continue;
        PyObject *id = PyUnicode_FromString(o->parts->type->id);
        int there = id ? PyDict_Contains(types, id) : -1;
        Py_XDECREF(id);
        if (there != 1)
            return there;
        known = o->parts->type;
    }
    return 1;
}

static PyObject *running_new(running *r, PyObject *keep, PyObject *device)
{
    r->requests = Py_NewRef(keep);
    r->device = Py_NewRef(device);
    PyObject *capsule = PyCapsule_New(r, load_name, running_free);
    if (!capsule) {
        tnf_load_free(r->load);
        Py_DECREF(keep);
        Py_DECREF(device);
        free(r);
    }
    return capsule;
}

/* Loads all tensors of a file; the list of them is made while they are read. The load keeps `keep`
 * alive: the file and the slabs. */
PyObject *device_start_file(PyObject *module, PyObject *args)
{
    PyObject *device, *of, *types, *options, *keep, *list = NULL, *result = NULL;
    state *st = state_of(module);
    struct slabs slabs = { 0 };
    tnf_load_options how = TNF_LOAD_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!PyArg_ParseTuple(args, "OOO!OOO", &device, &of, &PyDict_Type, &types, &slabs.allocate,
                          &options, &keep))
        return NULL;
    tnf_device *d = PyCapsule_GetPointer(device, device_name);
    handle *h = d ? handle_of(st, of) : NULL;
    if (!h || load_options(&how, options) < 0)
        return NULL;
    const tnf_file *file = hold_file(h->hold);
    size_t n = tnf_file_info(file)->objects;
    tnf_device_request *requests = calloc(n + 1, sizeof *requests);
    running *r = calloc(1, sizeof *r);
    int plain = requests && r ? plain_file(requests, file, n, types) : (PyErr_NoMemory(), -1);
    if (plain == 1) {
        how.allocate = slab_take;
        how.release = slab_give;
        how.ctx = &slabs;
        PyThreadState *save = PyEval_SaveThread();
        tnf_status status = tnf_device_start(&r->load, d, requests, n, &how, &e);
        PyEval_RestoreThread(save);
        if (status != TNF_OK && !PyErr_Occurred())
            raise_error(st, status, &e, NULL);
        plain = status == TNF_OK ? 1 : -1;
    }
    free(requests);
    if (plain == 1) {
        r->n = n;
        PyObject *capsule = running_new(r, keep, device);
        list = capsule ? placed_tensors(file, r->load, &slabs) : NULL;
        result = list ? Py_BuildValue("OO", capsule, list) : NULL;
        Py_XDECREF(list);
        Py_XDECREF(capsule);
    } else {
        free(r);
    }
    free(slabs.all);
    return plain == 0 ? Py_NewRef(Py_None) : result;
}

/* -------------------------------------------------------------------- waiting */

static running *running_of(PyObject *args, PyObject **rest)
{
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "OO", &capsule, rest))
        return NULL;
    return PyCapsule_GetPointer(capsule, load_name);
}

/* An index, or None for all; SIZE_MAX - 1 with an error. */
static size_t index_of(const running *r, PyObject *index)
{
    if (index == Py_None)
        return TNF_LOAD_ALL;
    size_t i = PyLong_AsSize_t(index);
    if (!PyErr_Occurred() && i >= r->n)
        PyErr_SetString(PyExc_IndexError, "the load has no such tensor");
    return PyErr_Occurred() ? SIZE_MAX - 1 : i;
}

PyObject *device_wait(PyObject *module, PyObject *args)
{
    PyObject *index;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    running *r = running_of(args, &index);
    size_t i = r ? index_of(r, index) : SIZE_MAX - 1;
    if (i == SIZE_MAX - 1)
        return NULL;
    PyThreadState *save = PyEval_SaveThread();
    tnf_status status = tnf_load_wait(r->load, i, &e);
    PyEval_RestoreThread(save);
    if (status != TNF_OK)
        return raise_error(state_of(module), status, &e, NULL);
    Py_RETURN_NONE;
}

/* Ends a load early. Afterwards it does not read or write any more. */
PyObject *device_stop(PyObject *module, PyObject *capsule)
{
    running *r = PyCapsule_GetPointer(capsule, load_name);
    (void)module;
    if (!r)
        return NULL;
    PyThreadState *save = PyEval_SaveThread();
    tnf_load_cancel(r->load);
    tnf_status ignored = tnf_load_wait(r->load, TNF_LOAD_ALL, NULL);
    PyEval_RestoreThread(save);
    (void)ignored;
    Py_RETURN_NONE;
}

/* (address, bytes, 0 stored or 1 made on the device or 2 on the host) */
PyObject *device_at(PyObject *module, PyObject *args)
{
    PyObject *index;
    running *r = running_of(args, &index);
    size_t i = r ? index_of(r, index) : SIZE_MAX - 1;
    tnf_load_made made = TNF_LOAD_STORED;
    (void)module;
    if (i == SIZE_MAX - 1)
        return NULL;
    unsigned long long n = tnf_load_bytes(&made, r->load, i);
    return Py_BuildValue("KKi", (unsigned long long)(uintptr_t)tnf_load_at(r->load, i), n, made);
}

PyObject *device_report(PyObject *module, PyObject *capsule)
{
    tnf_load_report report = TNF_LOAD_REPORT_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    running *r = PyCapsule_GetPointer(capsule, load_name);
    if (!r)
        return NULL;
    tnf_status status = tnf_load_tell(&report, r->load, &e);
    if (status != TNF_OK)
        return raise_error(state_of(module), status, &e, NULL);
    return Py_BuildValue("{sK sK sK sK sI sI sK}", "bytes", (unsigned long long)report.bytes,
                         "bytes_read", (unsigned long long)report.bytes_read, "copies",
                         (unsigned long long)report.copies, "pinned",
                         (unsigned long long)report.pinned, "threads", report.threads, "direct",
                         report.direct, "transformed", (unsigned long long)report.transformed);
}
