/* SPDX-License-Identifier: MIT */
/**
 * What the sources of the extension share.
 *
 *     File ──> Handle ──> hold ──> tnf_file          Tensor ──> Handle
 *                │                   ^               Array  ──> block (its own memory)
 *                └─ bytes, objects   │
 *                   of Python        └── DLPack capsules: they count on `hold` or `block`
 *
 * A File that is closed lets go of its Handle, and the Handle says "no new reads". The C file stays
 * until the last tensor, array or capsule that points into it is gone. `hold` and `block` are
 * counted by atomics and know nothing of Python, since the deleter of a capsule may run on any
 * thread, without the GIL, and after the interpreter.
 */
#ifndef TENFOLD_PYTHON_H
#define TENFOLD_PYTHON_H

/* One file for all versions; but a Python without a GIL has no limited API before 3.15. */
#if !defined(Py_LIMITED_API) && !defined(TENFOLD_FULL_API)
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <tenfold/build.h>
#include <tenfold/convert.h>
#include <tenfold/diff.h>
#include <tenfold/emb.h>
#include <tenfold/remote.h>
#include <tenfold/repair.h>
#include <tenfold/shards.h>
#include <tenfold/stat.h>
#include <tenfold/tenfold.h>
#include <tenfold/value.h>

/* How objects are laid out and reached is said here alone: where PyObject is opaque, the data of an
 * object follow it and these three change. */
#define OBJECT_HEAD        PyObject_HEAD
#define DATA(type, object) ((type *)(void *)(object))
#define AS_OBJECT(pointer) ((PyObject *)(void *)(pointer))

/** Of one interpreter: nothing in the extension is static and changes. */
typedef struct state {
    PyTypeObject *handle_type, *file_type, *tensor_type, *array_type, *emb_type;
    PyObject *make_error; /**< tenfold._errors.make */
    PyObject *values;     /**< the module tenfold._values, or NULL */
    PyObject *asarray;    /**< numpy.asarray, or NULL; Py_None: there is no numpy */
    PyObject *take;       /**< numpy.from_dlpack where it knows versions, or NULL */
    PyObject *dtypes;     /**< id -> numpy dtype, for types that have no buffer format */
} state;

enum { MOST_RANK = 64 };

/* ------------------------------------------------------------------ memory */

/** An open C file, counted. */
typedef struct hold hold;
/** What a file of another machine tells while it is read, and what ends its waiting. */
typedef struct net net;
/** Takes the file over, a descriptor that it reads from (-1: none) and what it tells (or NULL). */
hold *hold_new(tnf_file *file, int fd, net *far);
hold *hold_take(hold *h);
void hold_drop(hold *h);
const tnf_file *hold_file(const hold *h);

/** Aligned memory with the shape and strides of what is in it, counted. */
typedef struct block {
    int rank;
    Py_ssize_t *shape, *strides; /**< in bytes */
    uint8_t *data;
    size_t nbytes;
} block;
block *block_new(int rank, size_t nbytes);
block *block_take(block *b);
void block_drop(block *b);

/** How Python, numpy and DLPack call a type of ours. */
typedef struct kind {
    const char *id;
    const char *format; /**< of the buffer protocol; NULL: it has none */
    const char *raw;    /**< the format of the same bytes as unsigned numbers */
    const char *ml;     /**< in ml_dtypes, or NULL */
    uint8_t code, bits; /**< of DLPack; bits 0: it has none */
    uint8_t width;      /**< bytes of an element in memory; 0: less than a byte */
} kind;
const kind *kind_of(const tnf_type *type);
/** The type of a buffer format, and whether its bytes must be swapped; NULL: there is none. */
const tnf_type *type_of_format(const char *format, Py_ssize_t itemsize, bool *swap);

/* ------------------------------------------------------------------ objects */

typedef struct handle {
    OBJECT_HEAD
    state *st;
    hold *hold;
    bool closed;      /**< no new reads */
    bool of_python;   /**< its bytes are memory of Python: capsules get copies */
    bool compat;      /**< errors in safetensors' words */
    bool quick;       /**< small copies are made from the mapping, without a call of the system */
    Py_buffer buffer; /**< of a bytes-like source */
    PyObject *object; /**< a file object, or NULL */
    PyObject *others; /**< a list of handles that are merged, or NULL */
    tnf_builder *builder; /**< what merges them */
    PyObject *path;       /**< what messages call it, without secrets; or NULL */
    net *net;             /**< of a URL: of the hold, once there is one; or NULL */
    bool far;             /**< reads may wait for another machine */
} handle;

typedef struct tensor {
    OBJECT_HEAD
    handle *h;
    const tnf_object *object;
    const tnf_part *part; /**< one part alone, asked for by its role; NULL: the tensor */
} tensor;

typedef struct array {
    OBJECT_HEAD
    state *st;
    const tnf_type *type;
    const kind *kind; /**< of the type, or NULL */
    block *block;
    bool readonly;
    enum { TYPED, RAW, FLAT } form; /**< of its buffer: as it is, as unsigned numbers, as bytes */
    Py_ssize_t flat;                /**< number of bytes */
    void (*foreign)(void *managed); /**< frees `managed`: memory that came by DLPack */
    void *managed;
} array;

int handle_ready(handle *h); /**< 0, or -1 with "File is closed" */
PyObject *tensor_make(handle *h, const tnf_object *object, const tnf_part *part);
/** Takes the block over, also when it fails. */
PyObject *array_make(state *st, const tnf_type *type, block *b);
/** numpy.asarray, borrowed; None if there is no numpy; NULL with an error. */
PyObject *numpy_asarray(state *st);
/** numpy's array over an object of ours whose buffer or capsule cannot fail. */
PyObject *numpy_over(state *st, PyObject *object, const kind *k, bool lent);
/** An array for numpy, or itself where there is no numpy. Takes the array over. */
PyObject *array_to_numpy(PyObject *arr, const char *name);
/** Shape and strides of a tensor or part as it lies in the file: its rank, or -1 with an error.
 *  There is room for MOST_RANK of them. */
int tensor_form(const tensor *t, Py_ssize_t *shape, Py_ssize_t *strides);
/** A block for a tensor or part that is read whole; NULL with an error. */
block *tensor_block(const tensor *t);
const tnf_part *tensor_bytes(
    const tensor *t); /**< the one part that it has; or an error and NULL */
PyObject *shape_tuple(const uint64_t *shape, uint32_t rank);
/** The elements of a type with less than a byte, one byte each. */
block *block_unpack(const block *packed, const tnf_type *type);

/* What reads the numbers of a tensor; what only looks at it is in _tenfold_look.c. */
/** The mapped bytes of a part that is small and wanted quickly; NULL: read it. */
const void *quick_view(const handle *h, const tnf_part *part, size_t n);
PyObject *tensor_array(const tensor *t); /**< all of it, as an Array */
PyObject *tensor_read(PyObject *self, PyObject *ignored);
PyObject *tensor_numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *tensor_slice(PyObject *self, PyObject *key);
PyObject *tensor_repr(PyObject *self);
extern PyMethodDef tensor_methods[];
extern PyGetSetDef tensor_members[];

/* ------------------------------------------------------------------- errors */

/** Raises what the library said; returns NULL. */
void *raise_error(state *st, tnf_status status, const tnf_error *error, PyObject *path);
/** Raises a tenfold.Error of that status with a text of ours; returns NULL. */
void *raise_text(state *st, tnf_status status, const char *format, ...) TNF_PRINTF(3, 4);
PyObject *str_of(tnf_str s); /**< UTF-8 with surrogateescape */
/** The bytes of a str as str_of() made it; *owner is released by the caller. */
int text_of(PyObject *str, tnf_str *out, PyObject **owner);

/* ------------------------------------------------------------------ long work */

/** Work that may take long: it runs on a thread of its own while the caller's thread looks for
 *  signals and tells the progress ten times a second. */
typedef struct work work;
typedef tnf_status (*work_fn)(void *ctx, tnf_error *error);
/** `progress` may be NULL or None. `bytes` is about how much is to do: short work without a
 *  progress function runs where it is. -1: an exception of Python is set (the callback failed, or
 *  Ctrl-C) and the work has been stopped. */
int work_run(work_fn run, void *ctx, work *w, tnf_status *status, tnf_error *error);
struct work {
    PyObject *progress;
    uint64_t bytes;
    const handle *h; /**< a file that is read, or NULL */
    PyObject *kept;  /**< a list with more of them, and with tensors of them, or NULL */
    const state *st; /**< needed with `kept` */
    void *inside;    /**< used by work_run() */
};
/** A tnf_progress_fn; ctx is the work. */
bool work_progress(void *ctx, uint64_t done, uint64_t total);

/** The GIL for a callback, from any thread. */
typedef struct gil {
    PyInterpreterState *interp;
    PyGILState_STATE state;
    PyThreadState *made;
} gil;
void gil_enter(gil *g, PyInterpreterState *interp);
void gil_leave(gil *g);

/* ----------------------------------------------------------------- the network */

net *net_new(void);
void net_free(net *far);
void net_options(net *far, tnf_url_options *out);
/** Appends what the server warned of; -1 with an error. */
int net_warnings(net *far, PyObject *list);
/** 1: nothing of what the work reads waits any more; -1: that work has ended. */
void net_stop(const work *w, int by);
/** May the work wait for another machine? */
bool net_used(const work *w);
/** Without the GIL, and so that Ctrl-C ends it: a call that reads from the file. Where it returns
 *  TNF_ECANCELLED, an exception may be set, which raise_error() leaves. */
tnf_status handle_run(handle *h, work_fn run, void *ctx, tnf_error *error);
tnf_status handle_read(handle *h, const tnf_part *part, void *dst, size_t n, tnf_error *error);
/** As it may be told: a URL without its secrets. */
PyObject *path_shown(const char *path);
/** (offset or None, message) */
PyObject *warning_pair(const tnf_warning *w);
PyObject *net_shown(PyObject *module, PyObject *path);
PyObject *net_is_url(PyObject *module, PyObject *path);
PyObject *net_fetch(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------- values */

PyObject *value_to_python(const tnf_value *value, bool typed);
/** A value from Python; its memory is in `arena`, a list that keeps what must stay. */
int value_from_python(tnf_value *out, PyObject *object, PyObject *arena);

/* -------------------------------------------------------------------- slices */

typedef struct selection {
    tnf_slice slices[MOST_RANK];
    int rank; /**< of the result */
    Py_ssize_t shape[MOST_RANK];
    PyObject *list; /**< rows to gather along the first dimension (borrowed), or NULL */
} selection;
int selection_parse(selection *out, const handle *h, PyObject *key, const uint64_t *shape,
                    uint32_t rank);

/* -------------------------------------------------------------------- the rest */

PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *array_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *dlpack_device(PyObject *self, PyObject *ignored);
PyObject *from_dlpack(PyObject *module, PyObject *object);

handle *handle_open(state *st, PyObject *source, PyObject *options);
handle *handle_of(state *st, PyObject *object); /**< of a File that is open, borrowed */

PyObject *do_save(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_convert(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_repair(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_edit(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_verify(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_hash(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_diff(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_stat(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *do_formats(PyObject *module, PyObject *ignored);

/* _tenfold_device.c */
PyObject *device_open(PyObject *module, PyObject *name);
PyObject *device_info(PyObject *module, PyObject *device);
PyObject *device_trim(PyObject *module, PyObject *device);
PyObject *device_form(PyObject *module, PyObject *args);
PyObject *device_start(PyObject *module, PyObject *args);
PyObject *device_start_file(PyObject *module, PyObject *args);
PyObject *device_stop(PyObject *module, PyObject *capsule);
PyObject *device_wait(PyObject *module, PyObject *args);
PyObject *device_at(PyObject *module, PyObject *args);
PyObject *device_report(PyObject *module, PyObject *capsule);

/* _tenfold_jobs.c */
PyObject *job_plan(PyObject *module, PyObject *options);
PyObject *job_parse(PyObject *module, PyObject *text);
PyObject *job_info(PyObject *module, PyObject *capsule);
PyObject *job_do(PyObject *module, PyObject *args);
PyObject *job_finish(PyObject *module, PyObject *args);
PyObject *job_abort(PyObject *module, PyObject *args);

/** Options of a save, from a dict; `arena` keeps their texts. */
int save_options(tnf_save_options *out, PyObject *options, PyObject *arena);
/** Adds a value of Python to a builder under that name. */
int builder_add(state *st, tnf_builder *b, PyObject *name, PyObject *value, PyObject *arena);
/** A report as (format, counts, items). */
PyObject *report_tuple(const tnf_report *report);

/** A text in a slot, which is not declared const. */
#define DOC(text)                                                                                  \
    {                                                                                              \
        Py_tp_doc, (void *)(uintptr_t)(text)                                                       \
    }
/** A method with keywords. */
#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
/** The same without a tuple and a dict. */
#define FAST_KEYWORDS(function)                                                                    \
    (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

extern PyType_Spec file_spec, handle_spec, tensor_spec, array_spec, emb_spec;

/** Memory that lives as long as a list of Python: a capsule in it. NULL with MemoryError. */
void *arena_take(PyObject *arena, size_t n);
/** The arguments of a FAST_KEYWORDS function: out[i] is that of keys[i], or stays as it is. The
 * first `most` may come without their names. -1 with a TypeError. */
int take_arguments(PyObject **out, const char *const *keys, Py_ssize_t most, PyObject *const *args,
                   Py_ssize_t n, PyObject *names);
/** The UTF-8 of a str, which the arena keeps. */
const char *arena_text(PyObject *arena, PyObject *str);
/** A member of a dict of options, or NULL (also for None). */
PyObject *option(PyObject *options, const char *key);
int option_flag(PyObject *options, const char *key, bool *out);
int option_text(PyObject *options, const char *key, PyObject *arena, const char **out);
int option_count(PyObject *options, const char *key, uint64_t *out);
int option_pairs(PyObject *options, const char *key, PyObject *arena, const tnf_option **out,
                 size_t *n);
state *state_of(PyObject *module);

#endif
