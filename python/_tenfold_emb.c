/* SPDX-License-Identifier: MIT */
/* Embeddings: the base of tenfold/embeddings.py. Words are passed as str, vectors are returned as
 * Arrays, and hits as lists of (word, score, row). */
#include "_tenfold.h"
#include <stdlib.h>
#include <string.h>

typedef struct embeddings {
    OBJECT_HEAD
    state *st;
    handle *h; /* keeps the file open */
    tnf_emb *emb;
} embeddings;

typedef struct emb_opening {
    embeddings *self;
    const tnf_emb_options *how;
} emb_opening;

static tnf_status run_emb_open(void *ctx, tnf_error *e)
{
    const emb_opening *o = ctx;
    return tnf_emb_open(&o->self->emb, hold_file(o->self->h->hold), o->how, e);
}

static PyObject *emb_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *file, *options = NULL, *arena = PyList_New(0);
    tnf_emb_options how = TNF_EMB_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    uint64_t threads = 0;
    (void)kwargs;
    state *st = PyType_GetModuleState(type);
    handle *h = NULL;
    embeddings *self = NULL;
    if (st && arena && PyArg_ParseTuple(args, "O|O!", &file, &PyDict_Type, &options) &&
        option_text(options, "embeddings", arena, &how.embeddings) == 0 &&
        option_text(options, "vocab", arena, &how.vocab) == 0 &&
        option_text(options, "kernel", arena, &how.kernel) == 0 &&
        option_flag(options, "no_index", &how.no_index) == 0 &&
        option_count(options, "threads", &threads) == 0)
        h = handle_of(st, file);
    how.threads = (unsigned)threads;
    if (h)
        self = PyObject_New(embeddings, type);
    if (self) {
        self->st = st;
        self->h = DATA(handle, Py_NewRef(AS_OBJECT(h)));
        self->emb = NULL;
        emb_opening o = { self, &how };
        tnf_status status = handle_run(h, run_emb_open, &o, &e);
        if (status != TNF_OK) {
            raise_error(st, status, &e, h->path);
            Py_CLEAR(self);
        }
    }
    Py_XDECREF(arena);
    return AS_OBJECT(self);
}

static void emb_free(PyObject *self)
{
    embeddings *m = DATA(embeddings, self);
    PyTypeObject *type = Py_TYPE(self);
    tnf_emb_close(m->emb);
    Py_XDECREF(AS_OBJECT(m->h));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *emb_info(PyObject *self, void *ignored)
{
    static const char *const subwords[] = { "none", "bucket", "fasttext", "explicit", "floret" };
    const tnf_emb_info *i = tnf_emb_describe(DATA(embeddings, self)->emb);
    (void)ignored;
    return Py_BuildValue(
        "{sKsKsnsssIsIsKsOsOsOsKsssNsN}", "words", (unsigned long long)i->words, "rows",
        (unsigned long long)i->rows, "dims", (Py_ssize_t)i->dims, "subwords", subwords[i->subwords],
        "min_n", i->min_n, "max_n", i->max_n, "buckets", (unsigned long long)i->buckets,
        "quantized", i->quantized ? Py_True : Py_False, "has_norms",
        i->has_norms ? Py_True : Py_False, "has_words", i->has_words ? Py_True : Py_False,
        "duplicates", (unsigned long long)i->duplicates, "kernel", i->kernel, "embeddings",
        str_of(i->embeddings->name), "vocab",
        i->vocab ? str_of(i->vocab->name) : Py_NewRef(Py_None));
}

/* --------------------------------------------------------------------- words */

static PyObject *emb_find(PyObject *self, PyObject *word)
{
    tnf_str text;
    PyObject *owner;
    if (text_of(word, &text, &owner) < 0)
        return NULL;
    uint64_t row = tnf_emb_find(DATA(embeddings, self)->emb, text);
    Py_XDECREF(owner);
    return row == TNF_NO_ROW ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(row);
}

static PyObject *emb_word(PyObject *self, PyObject *row)
{
    unsigned long long i = PyLong_AsUnsignedLongLong(row);
    if (PyErr_Occurred())
        return NULL;
    tnf_str word = tnf_emb_word(DATA(embeddings, self)->emb, i);
    return word.p ? str_of(word) : Py_NewRef(Py_None);
}

static PyObject *emb_words(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    const tnf_emb *emb = DATA(embeddings, self)->emb;
    const tnf_emb_info *info = tnf_emb_describe(emb);
    PyObject *list = PyList_New(info->has_words ? (Py_ssize_t)info->words : 0);
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *word = str_of(tnf_emb_word(emb, (uint64_t)i));
        if (!word || PyList_SetItem(list, i, word) < 0)
            Py_CLEAR(list);
    }
    return list;
}

typedef struct ngrams {
    PyObject *list;
} ngrams;

static tnf_status take_ngram(void *ctx, tnf_str ngram, uint64_t row, tnf_error *e)
{
    ngrams *n = ctx;
    PyObject *place = row == TNF_NO_ROW ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(row);
    PyObject *item = Py_BuildValue("NN", str_of(ngram), place);
    int bad = !item || PyList_Append(n->list, item) < 0;
    Py_XDECREF(item);
    return bad ? tnf_error_set(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory") : TNF_OK;
}

static PyObject *emb_ngrams(PyObject *self, PyObject *word)
{
    const embeddings *m = DATA(embeddings, self);
    tnf_str text;
    PyObject *owner;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (text_of(word, &text, &owner) < 0)
        return NULL;
    ngrams n = { PyList_New(0) };
    tnf_status status = n.list ? tnf_emb_ngrams(m->emb, text, take_ngram, &n, &e) : TNF_ENOMEM;
    Py_XDECREF(owner);
    if (status == TNF_OK)
        return n.list;
    Py_XDECREF(n.list);
    return raise_error(m->st, status, &e, m->h->path);
}

/* A list of str as texts; `kept` keeps their memory alive. */
static tnf_str *word_list(PyObject *list, size_t *n, PyObject *kept)
{
    Py_ssize_t count = PySequence_Size(list);
    tnf_str *words = count < 0 ? NULL : arena_take(kept, ((size_t)count + 1) * sizeof *words);
    for (Py_ssize_t i = 0; words && i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i), *owner = NULL;
        if (!item || PyList_Append(kept, item) < 0 || text_of(item, &words[i], &owner) < 0 ||
            (owner && PyList_Append(kept, owner) < 0))
            words = NULL;
        Py_XDECREF(item);
        Py_XDECREF(owner);
    }
    *n = words ? (size_t)count : 0;
    return words;
}

/* -------------------------------------------------------------------- vectors */

static PyObject *found_list(const tnf_emb_found *found, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *row = found[i].row == TNF_NO_ROW ? Py_NewRef(Py_None)
                                                   : PyLong_FromUnsignedLongLong(found[i].row);
        PyObject *item = Py_BuildValue("ONOd", found[i].found ? Py_True : Py_False, row,
                                       found[i].known ? Py_True : Py_False, (double)found[i].norm);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static block *matrix_block(size_t rows, size_t dims)
{
    block *b = dims && rows > SIZE_MAX / 4 / dims ? NULL : block_new(2, rows * dims * 4);
    if (!b)
        return (void *)PyErr_NoMemory();
    b->shape[0] = (Py_ssize_t)rows;
    b->shape[1] = (Py_ssize_t)dims;
    b->strides[0] = (Py_ssize_t)dims * 4;
    b->strides[1] = 4;
    return b;
}

/* vectors(words) -> (Array of n x dims, [(found, row, known, norm), …]) */
static PyObject *emb_vectors(PyObject *self, PyObject *list)
{
    const embeddings *m = DATA(embeddings, self);
    size_t n = 0, dims = tnf_emb_describe(m->emb)->dims;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *kept = PyList_New(0), *result = NULL;
    tnf_str *words = kept ? word_list(list, &n, kept) : NULL;
    tnf_emb_found *found = words ? arena_take(kept, (n + 1) * sizeof *found) : NULL;
    block *b = found ? matrix_block(n, dims) : NULL;
    if (b) {
        PyThreadState *save = PyEval_SaveThread();
        tnf_status status = tnf_emb_vectors((float *)(void *)b->data, found, m->emb, words, n, &e);
        PyEval_RestoreThread(save);
        if (status == TNF_OK) {
            result = Py_BuildValue("NN", array_make(m->st, tnf_type_of(TNF_F32), b),
                                   found_list(found, n));
        } else {
            block_drop(b);
            raise_error(m->st, status, &e, m->h->path);
        }
    }
    Py_XDECREF(kept);
    return result;
}

/* rows(list of row numbers) -> Array. Rows are as stored; quantized rows are reconstructed. */
static PyObject *emb_rows(PyObject *self, PyObject *list)
{
    const embeddings *m = DATA(embeddings, self);
    size_t dims = tnf_emb_describe(m->emb)->dims;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    Py_ssize_t n = PySequence_Size(list);
    block *b = n < 0 ? NULL : matrix_block((size_t)n, dims);
    tnf_status status = TNF_OK;
    for (Py_ssize_t i = 0; b && status == TNF_OK && i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        PyObject *whole = item ? PyNumber_Index(item) : NULL;
        uint64_t row = whole ? PyLong_AsUnsignedLongLong(whole) : 0;
        Py_XDECREF(item);
        Py_XDECREF(whole);
        status = PyErr_Occurred()
                     ? TNF_EINVAL
                     : tnf_emb_row((float *)(void *)b->data + (size_t)i * dims, m->emb, row, &e);
    }
    if (b && status == TNF_OK)
        return array_make(m->st, tnf_type_of(TNF_F32), b);
    block_drop(b);
    return b ? raise_error(m->st, status, &e, m->h->path) : NULL;
}

/* -------------------------------------------------------------------- queries */

typedef struct querying {
    const embeddings *m;
    tnf_emb_query query;
    const tnf_str *words;
    const float *vectors;
    size_t n;
    int what; /* 0 nearest, 1 similar, 2 analogy */
    tnf_emb_hit *hits;
    size_t *counts;
    tnf_emb_found *found;
} querying;

static tnf_status run_query(void *ctx, tnf_error *e)
{
    querying *a = ctx;
    if (a->what == 0)
        return tnf_emb_nearest(a->hits, a->counts, a->m->emb, a->vectors, a->n, &a->query, e);
    if (a->what == 1)
        return tnf_emb_similar(a->hits, a->counts, a->found, a->m->emb, a->words, a->n, &a->query,
                               e);
    return tnf_emb_analogy(a->hits, a->counts, a->found, a->m->emb, a->words, a->n, &a->query, e);
}

static int query_metric(tnf_metric *out, PyObject *options, PyObject *kept)
{
    static const char *const words[] = { "cosine", "angular", "dot", "l2" };
    const char *word = NULL;
    if (option_text(options, "metric", kept, &word) < 0)
        return -1;
    for (int i = 0; word && i < 4; i++) {
        if (!strcmp(word, words[i])) {
            *out = (tnf_metric)i;
            return 0;
        }
    }
    if (word)
        PyErr_Format(PyExc_ValueError, "metric must be cosine, angular, dot or l2, not '%s'", word);
    return word ? -1 : 0;
}

static int query_skip(querying *a, PyObject *options, PyObject *kept)
{
    PyObject *skip = option_value(options, "skip");
    Py_ssize_t n = skip ? PySequence_Size(skip) : 0;
    uint64_t *rows = n > 0 ? arena_take(kept, (size_t)n * sizeof *rows) : NULL;
    if (n < 0 || (n > 0 && !rows))
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(skip, i);
        rows[i] = item ? PyLong_AsUnsignedLongLong(item) : 0;
        Py_XDECREF(item);
    }
    a->query.skip = rows;
    a->query.nskip = (size_t)n;
    return PyErr_Occurred() ? -1 : 0;
}

static int query_options(querying *a, PyObject *options, PyObject *kept)
{
    uint64_t k = 10, threads = 0;
    if (option_count(options, "k", &k) < 0 || option_count(options, "threads", &threads) < 0 ||
        option_flag(options, "keep_asked", &a->query.keep_asked) < 0 ||
        option_flag(options, "raw", &a->query.raw) < 0 ||
        query_metric(&a->query.metric, options, kept) < 0 || query_skip(a, options, kept) < 0)
        return -1;
    uint64_t all = tnf_emb_describe(a->m->emb)->words;
    a->query.k = (size_t)(k < all ? k : all);
    a->query.threads = (unsigned)threads;
    return 0;
}

static PyObject *hits_list(const querying *a)
{
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && i < a->n; i++) {
        PyObject *list = PyList_New(0);
        for (size_t j = 0; list && j < a->counts[i]; j++) {
            const tnf_emb_hit *hit = &a->hits[i * a->query.k + j];
            PyObject *word = hit->word.p ? str_of(hit->word) : Py_NewRef(Py_None);
            PyObject *item = Py_BuildValue("NdK", word, hit->score, (unsigned long long)hit->row);
            if (!item || PyList_Append(list, item) < 0)
                Py_CLEAR(list);
            Py_XDECREF(item);
        }
        if (!list || PyList_Append(all, list) < 0)
            Py_CLEAR(all);
        Py_XDECREF(list);
    }
    return all;
}

static PyObject *query_go(querying *a, PyObject *options, PyObject *kept)
{
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (query_options(a, options, kept) < 0)
        return NULL;
    size_t room = a->n * a->query.k + 1;
    a->hits = arena_take(kept, room * sizeof *a->hits);
    a->counts = a->hits ? arena_take(kept, (a->n + 1) * sizeof *a->counts) : NULL;
    a->found = a->counts ? arena_take(kept, (3 * a->n + 1) * sizeof *a->found) : NULL;
    if (!a->found)
        return NULL;
    if (a->query.k > 0 && a->n > 0) {
        PyThreadState *save = PyEval_SaveThread();
        status = run_query(a, &e);
        PyEval_RestoreThread(save);
    }
    if (status != TNF_OK)
        return raise_error(a->m->st, status, &e, a->m->h->path);
    size_t nfound = a->what == 0 ? 0 : a->what == 1 ? a->n : 3 * a->n;
    return Py_BuildValue("NN", hits_list(a), found_list(a->found, nfound));
}

static PyObject *query_words(PyObject *self, PyObject *args, int what)
{
    PyObject *list, *options, *kept = PyList_New(0), *result = NULL;
    querying a = { .m = DATA(embeddings, self), .query = TNF_EMB_QUERY_INIT, .what = what };
    size_t n = 0;
    if (kept && PyArg_ParseTuple(args, "OO!", &list, &PyDict_Type, &options)) {
        a.words = word_list(list, &n, kept);
        a.n = what == 2 ? n / 3 : n;
        if (a.words)
            result = query_go(&a, options, kept);
    }
    Py_XDECREF(kept);
    return result;
}

static PyObject *emb_similar(PyObject *self, PyObject *args)
{
    return query_words(self, args, 1);
}

static PyObject *emb_analogy(PyObject *self, PyObject *args)
{
    return query_words(self, args, 2);
}

/* nearest(buffer of f32, n x dims in C order, options) */
static PyObject *emb_nearest(PyObject *self, PyObject *args)
{
    PyObject *matrix, *options, *kept, *result = NULL;
    Py_buffer view;
    querying a = { .m = DATA(embeddings, self), .query = TNF_EMB_QUERY_INIT };
    size_t dims = tnf_emb_describe(a.m->emb)->dims;
    if (!PyArg_ParseTuple(args, "OO!", &matrix, &PyDict_Type, &options) ||
        PyObject_GetBuffer(matrix, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (dims == 0 || (size_t)view.len % (dims * 4) != 0) {
        PyErr_Format(PyExc_ValueError, "each vector must have %zd numbers", (Py_ssize_t)dims);
    } else {
        a.vectors = view.buf;
        a.n = (size_t)view.len / (dims * 4);
        kept = PyList_New(0);
        result = kept ? query_go(&a, options, kept) : NULL;
        Py_XDECREF(kept);
    }
    PyBuffer_Release(&view);
    return result;
}

/* ------------------------------------------------------------------- quantize */

typedef struct quantizing {
    const embeddings *m;
    tnf_builder *builder;
    const char *path;
    tnf_quantize_options how;
    tnf_quantized out;
    tnf_save_options save;
    work work;
} quantizing;

static tnf_status run_quantize(void *ctx, tnf_error *e)
{
    quantizing *q = ctx;
    tnf_status status = tnf_emb_quantize(&q->out, q->builder, q->m->emb, &q->how, e);
    return status == TNF_OK ? tnf_save(q->builder, q->path, &q->save, e) : status;
}

static int quantize_options(quantizing *q, PyObject *options, PyObject *kept)
{
    static const char *const methods[] = { "pq", "opq", "gaussian_opq" };
    const char *method = NULL;
    uint64_t bits = 0, pieces = 0, iterations = 0, attempts = 0, threads = 0;
    if (option_text(options, "method", kept, &method) < 0 ||
        option_count(options, "bits", &bits) < 0 ||
        option_count(options, "subquantizers", &pieces) < 0 ||
        option_count(options, "iterations", &iterations) < 0 ||
        option_count(options, "attempts", &attempts) < 0 ||
        option_count(options, "seed", &q->how.seed) < 0 ||
        option_count(options, "threads", &threads) < 0 ||
        option_flag(options, "as_is", &q->how.as_is) < 0 ||
        save_options(&q->save, options, kept) < 0)
        return -1;
    for (int i = 0; method && i < 3; i++) {
        if (!strcmp(method, methods[i]))
            q->how.method = (tnf_quantizer)i;
    }
    q->how.bits = (unsigned)bits;
    q->how.subquantizers = (unsigned)pieces;
    q->how.iterations = (unsigned)iterations;
    q->how.attempts = (unsigned)attempts;
    q->how.threads = (unsigned)threads;
    q->how.progress = work_progress;
    q->how.ctx = &q->work;
    q->work.progress = option_value(options, "progress");
    q->work.h = q->m->h;
    q->work.bytes = UINT64_MAX; /* takes long for any file */
    return 0;
}

static PyObject *emb_quantize(PyObject *self, PyObject *args)
{
    PyObject *path, *options, *bytes = NULL, *kept = PyList_New(0), *result = NULL;
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    quantizing q = { .m = DATA(embeddings, self),
                     .how = TNF_QUANTIZE_INIT,
                     .out = TNF_QUANTIZED_INIT,
                     .save = TNF_SAVE_INIT };
    if (kept && PyArg_ParseTuple(args, "OO!", &path, &PyDict_Type, &options) &&
        PyUnicode_FSConverter(path, &bytes) && quantize_options(&q, options, kept) == 0 &&
        tnf_builder_new(&q.builder, NULL, &e) == TNF_OK) {
        q.path = PyBytes_AsString(bytes);
        if (work_run(run_quantize, &q, &q.work, &status, &e) == 0) {
            if (status == TNF_OK || status == TNF_EUNSYNCED)
                result = Py_BuildValue("{sKsnsIsIsdsd}", "rows", (unsigned long long)q.out.rows,
                                       "dims", (Py_ssize_t)q.out.dims, "bits", q.out.bits,
                                       "subquantizers", q.out.subquantizers, "cosine", q.out.cosine,
                                       "euclidean", q.out.euclidean);
            else
                raise_error(q.m->st, status, &e, path);
        }
    }
    tnf_builder_free(q.builder);
    Py_XDECREF(bytes);
    Py_XDECREF(kept);
    return result;
}

static PyMethodDef emb_methods[] = {
    { "find", emb_find, METH_O, "The row of a word, or None." },
    { "word", emb_word, METH_O, "The word of a row, or None." },
    { "words", emb_words, METH_NOARGS, "A list of all words." },
    { "ngrams", emb_ngrams, METH_O, "A list of (n-gram, row)." },
    { "vectors", emb_vectors, METH_O, "(Array, [(found, row, known, norm), …])" },
    { "rows", emb_rows, METH_O, "Rows by number, as an Array." },
    { "similar", emb_similar, METH_VARARGS, "similar(words, options)" },
    { "analogy", emb_analogy, METH_VARARGS, "analogy(words, options): three words each" },
    { "nearest", emb_nearest, METH_VARARGS, "nearest(matrix, options)" },
    { "quantize", emb_quantize, METH_VARARGS, "quantize(path, options)" },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef emb_members[] = {
    { "info", emb_info, NULL, "A dict that describes the embeddings.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot emb_slots[] = { { Py_tp_new, emb_new },
                                   { Py_tp_dealloc, emb_free },
                                   { Py_tp_methods, emb_methods },
                                   { Py_tp_getset, emb_members },
                                   { 0, NULL } };
PyType_Spec emb_spec = { .name = "tenfold._tenfold.Embeddings",
                         .basicsize = sizeof(embeddings),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = emb_slots };
