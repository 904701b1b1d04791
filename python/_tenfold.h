/* SPDX-License-Identifier: MIT */
/**
 * Declarations shared by the sources of the extension.
 *
 *     File ──> Handle ──> hold ──> tnf_file          Tensor ──> Handle
 *                │                   ^               Array  ──> block (its own memory)
 *                └─ bytes, objects   │
 *                   of Python        └── DLPack capsules: they hold a count of `hold` or `block`
 *
 * A closed File releases its Handle, and the Handle refuses new reads. The C file stays open until
 * the last tensor, array or capsule that points into it is gone. `hold` and `block` have atomic
 * reference counts and do not use Python, since the deleter of a capsule may run on any thread,
 * without the GIL, and after the end of the interpreter.
 */
#ifndef TENFOLD_PYTHON_H
#define TENFOLD_PYTHON_H

/* One binary serves all versions, but a Python without a GIL has no limited API before 3.15. */
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

/* These three macros alone define the layout of objects and the access to it. They are to be
 * changed where PyObject is opaque and the data of an object follow it. */
#define OBJECT_HEAD        PyObject_HEAD
#define DATA(type, object) ((type *)(void *)(object))
#define AS_OBJECT(pointer) ((PyObject *)(void *)(pointer))

/** The state of one interpreter: the extension has no static data that changes. */
typedef struct state {
    PyTypeObject *handle_type, *file_type, *tensor_type, *array_type, *emb_type, *points_type,
        *params_type, *form_type, *lent_type;
    PyObject *make_error; /**< tenfold._errors.make */
    PyObject *values;     /**< the module tenfold._values, or NULL */
    PyObject *asarray;    /**< numpy.asarray, or NULL; Py_None: numpy is not installed */
    PyObject *take;       /**< numpy.from_dlpack if it supports versions, or NULL */
    PyObject *dtypes;     /**< id -> numpy dtype, for types without a buffer format */
} state;

enum { MOST_RANK = 64 };

/* ------------------------------------------------------------------ memory */

/** An open C file with a reference count. */
typedef struct hold hold;
/** Collects the warnings of a remote file, and ends its waits. */
typedef struct net net;
/** Takes ownership of the file, of the descriptor that it reads from (-1: none) and of its `net`
 * (or NULL). */
hold *hold_new(tnf_file *file, int fd, net *far);
hold *hold_take(hold *h);
void hold_drop(hold *h);
const tnf_file *hold_file(const hold *h);

/** Aligned memory with the shape and strides of its elements, and a reference count. */
typedef struct block {
    int rank;
    Py_ssize_t *shape, *strides; /**< in bytes */
    uint8_t *data;
    size_t nbytes;
} block;
block *block_new(int rank, size_t nbytes);
/** A block over other memory, which `release` gives back: on any thread, with or without the GIL.
 */
block *block_over(int rank, const void *data, size_t nbytes, void (*release)(void *lent),
                  void *lent);
block *block_take(block *b);
void block_drop(block *b);

/** The names of an element type in Python, numpy and DLPack. */
typedef struct kind {
    const char *id;
    const char *format; /**< of the buffer protocol; NULL: none */
    const char *raw;    /**< the format of the same bytes as unsigned numbers */
    const char *ml;     /**< in ml_dtypes, or NULL */
    uint8_t code, bits; /**< of DLPack; bits 0: none */
    uint8_t width;      /**< bytes of an element in memory; 0: less than a byte */
} kind;
const kind *kind_of(const tnf_type *type);
/** The type of a buffer format, and whether its bytes must be swapped; NULL: unknown format. */
const tnf_type *type_of_format(const char *format, Py_ssize_t itemsize, bool *swap);

/* ------------------------------------------------------------------ objects */

typedef struct handle {
    OBJECT_HEAD
    state *st;
    hold *hold;
    bool closed;          /**< no new reads */
    bool of_python;       /**< the bytes are memory of Python; capsules get copies */
    bool compat;          /**< errors are worded as those of safetensors */
    bool quick;           /**< small copies are made from the mapping, without a system call */
    Py_buffer buffer;     /**< of a bytes-like source */
    PyObject *object;     /**< a file object, or NULL */
    PyObject *others;     /**< a list of merged handles, or NULL */
    tnf_builder *builder; /**< merges them */
    PyObject *path;       /**< its name in messages, without secrets; or NULL */
    net *net;             /**< of a URL; owned by the hold, as soon as there is one; or NULL */
    bool far;             /**< reads may wait for a server */
} handle;

typedef struct tensor {
    OBJECT_HEAD
    handle *h;
    const tnf_object *object;
    const tnf_part *part; /**< a single part of the tensor; NULL: the whole tensor */
} tensor;

typedef struct array {
    OBJECT_HEAD
    state *st;
    const tnf_type *type;
    const kind *kind; /**< of the type, or NULL */
    block *block;
    bool readonly;
    enum { TYPED, RAW, FLAT } form; /**< of its buffer: its own type, unsigned numbers, or bytes */
    Py_ssize_t flat;                /**< number of bytes */
    void (*foreign)(void *managed); /**< frees `managed`, which is memory imported by DLPack */
    void *managed;
} array;

int handle_ready(handle *h); /**< 0, or -1 with "File is closed" */
PyObject *tensor_make(handle *h, const tnf_object *object, const tnf_part *part);
/** Takes ownership of the block, also on failure. */
PyObject *array_make(state *st, const tnf_type *type, block *b);
/** numpy.asarray, borrowed; None if numpy is not installed; NULL with an error. */
PyObject *numpy_asarray(state *st);
/** A numpy array over the memory of an Array or Tensor, whose buffer or capsule cannot fail. */
PyObject *numpy_over(state *st, PyObject *object, const kind *k, bool lent);
/** The numpy array of an Array, or the Array itself if numpy is not installed. Takes ownership of
 *  the Array. */
PyObject *array_to_numpy(PyObject *arr, const char *name);
/** Returns the rank of a tensor or part, and its shape and strides in the file; -1 with an error.
 * The arrays have MOST_RANK elements. */
int tensor_form(const tensor *t, Py_ssize_t *shape, Py_ssize_t *strides);
/** A block for all of a tensor or part; NULL with an error. */
block *tensor_block(const tensor *t);
const tnf_part *tensor_bytes(
    const tensor *t); /**< its only part; NULL with an error if it has several */
PyObject *shape_tuple(const uint64_t *shape, uint32_t rank);
/** Expands elements of less than a byte to one byte each. */
block *block_unpack(const block *packed, const tnf_type *type);

/* Functions that read the elements of a tensor; _tenfold_look.c has those for its description. */
/** The mapped bytes of a small part, if the handle allows it; NULL: read the part instead. */
const void *quick_view(const handle *h, const tnf_part *part, size_t n);
PyObject *tensor_array(const tensor *t); /**< all elements, as an Array */
PyObject *tensor_read(PyObject *self, PyObject *ignored);
PyObject *tensor_numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *tensor_slice(PyObject *self, PyObject *key);
PyObject *tensor_repr(PyObject *self);
extern PyMethodDef tensor_methods[];
extern PyGetSetDef tensor_members[];

/* ------------------------------------------------------------------- errors */

/** Raises the error of the library; returns NULL. */
void *raise_error(state *st, tnf_status status, const tnf_error *error, PyObject *path);
/** Turns the exception of this thread into an error message, "what: ValueError: …": it may be a
 * thread of the library, where nobody would see the exception. */
tnf_status fail_exception(tnf_error *e, uint64_t offset, const char *what);
/** Raises a tenfold.Error of that status with a text of the extension; returns NULL. */
void *raise_text(state *st, tnf_status status, const char *format, ...) TNF_PRINTF(3, 4);
PyObject *str_of(tnf_str s); /**< UTF-8 with surrogateescape */
/** The bytes of a str that str_of() made. The caller releases *owner. */
int text_of(PyObject *str, tnf_str *out, PyObject **owner);

/* ------------------------------------------------------------------ long work */

/** Work that may take long. It runs on a thread of its own, while the caller's thread checks for
 *  signals and reports the progress ten times a second. */
typedef struct work work;
typedef tnf_status (*work_fn)(void *ctx, tnf_error *error);
/** `progress` may be NULL or None. `bytes` is the approximate amount of work: short work without a
 *  progress function runs on the caller's thread. -1: a Python exception is set (the callback
 *  failed, or Ctrl-C) and the work has been stopped. */
int work_run(work_fn run, void *ctx, work *w, tnf_status *status, tnf_error *error);
struct work {
    PyObject *progress;
    uint64_t bytes;
    const handle *h; /**< a file that the work reads, or NULL */
    PyObject *kept;  /**< a list with more such files and with tensors of files, or NULL */
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
/** Appends the warnings of the server; -1 with an error. */
int net_warnings(net *far, PyObject *list);
/** 1: stops the waits of all files that the work reads; -1: the stopped work has ended. */
void net_stop(const work *w, int by);
/** May the work wait for a server? */
bool net_used(const work *w);
/** Calls a function that reads from the file, without the GIL, so that Ctrl-C can end it. If this
 *  returns TNF_ECANCELLED, an exception may be set, which raise_error() does not replace. */
tnf_status handle_run(handle *h, work_fn run, void *ctx, tnf_error *error);
tnf_status handle_read(handle *h, const tnf_part *part, void *dst, size_t n, tnf_error *error);
/** The path or URL without its secrets, for messages. */
PyObject *path_shown(const char *path);
/** (offset or None, message) */
PyObject *warning_pair(const tnf_warning *w);
PyObject *net_shown(PyObject *module, PyObject *path);
PyObject *net_is_url(PyObject *module, PyObject *path);
PyObject *net_fetch(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------- values */

PyObject *value_to_python(const tnf_value *value, bool typed);
/** A value from Python; its memory belongs to `arena`, a list that keeps objects alive. */
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

/* ----------------------------------------------------------- other functions */

PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *array_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *dlpack_device(PyObject *self, PyObject *ignored);
PyObject *from_dlpack(PyObject *module, PyObject *object);

handle *handle_open(state *st, PyObject *source, PyObject *options);
handle *handle_of(state *st, PyObject *object); /**< of an open File, borrowed */

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

/* _tenfold_params.c */
PyObject *params_id(PyObject *module, PyObject *name);
PyObject *params_key(PyObject *module, PyObject *args);
PyObject *params_next_namespace(PyObject *module, PyObject *ignored);
PyObject *params_check_path(PyObject *module, PyObject *path);
PyObject *params_join_path(PyObject *module, PyObject *segments);
PyObject *params_config(PyObject *module, PyObject *file);

/* _tenfold_primitiv.c */
PyObject *primitiv_join(PyObject *module, PyObject *tuple);
PyObject *primitiv_split(PyObject *module, PyObject *name);
PyObject *primitiv_find(PyObject *module, PyObject *args);
PyObject *primitiv_load(PyObject *module, PyObject *args);
PyObject *primitiv_save(PyObject *module, PyObject *args);
PyObject *primitiv_save_shape(PyObject *module, PyObject *args);
PyObject *primitiv_save_optimizer(PyObject *module, PyObject *args);
PyObject *primitiv_optimizer(PyObject *module, PyObject *file);
PyObject *primitiv_config(PyObject *module, PyObject *args);

/** Options of a save, from a dict; `arena` keeps their texts. */
int save_options(tnf_save_options *out, PyObject *options, PyObject *arena);
/** Adds a value of Python to a builder under that name. */
int builder_add(state *st, tnf_builder *b, PyObject *name, PyObject *value, PyObject *arena);
/** A report as (format, counts, items). */
PyObject *report_tuple(const tnf_report *report);

/** A text for a slot, whose type is not const. */
#define DOC(text)                                                                                  \
    {                                                                                              \
        Py_tp_doc, (void *)(uintptr_t)(text)                                                       \
    }
/** A method with keywords. */
#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
/** The same, called without a tuple and a dict. */
#define FAST_KEYWORDS(function)                                                                    \
    (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

extern PyType_Spec file_spec, handle_spec, tensor_spec, array_spec, emb_spec, points_spec,
    params_spec, form_spec, lent_spec;

/** Memory that lives as long as the list `arena`, which gets a capsule of it. NULL with
 *  MemoryError. */
void *arena_take(PyObject *arena, size_t n);
/** The arguments of a FAST_KEYWORDS function: out[i] gets that of keys[i], or is not changed. The
 * first `most` may be positional. -1 with a TypeError. */
int take_arguments(PyObject **out, const char *const *keys, Py_ssize_t most, PyObject *const *args,
                   Py_ssize_t n, PyObject *names);
/** The UTF-8 of a str; the arena keeps it alive. */
const char *arena_text(PyObject *arena, PyObject *str);
/** A member of a dict of options, or NULL (also for None). */
PyObject *option_value(PyObject *options, const char *key);
int option_flag(PyObject *options, const char *key, bool *out);
int option_text(PyObject *options, const char *key, PyObject *arena, const char **out);
int option_count(PyObject *options, const char *key, uint64_t *out);
int option_pairs(PyObject *options, const char *key, PyObject *arena, const tnf_option **out,
                 size_t *n);
state *state_of(PyObject *module);

#endif
