/* SPDX-License-Identifier: MIT */
/* PyTorch checkpoints: shared by the containers (zip, legacy, tar) and the readers of object trees.
 *
 *   container ──> pickle ──> tree of nodes ──> tensors by path, values, calls
 *            └──> storages: runs of bytes, by key
 *
 * A tensor is a view of a storage: an offset, a shape and strides. See docs/formats/pytorch.md.
 */
#ifndef TNF_FORMATS_PYTORCH_PT_H
#define TNF_FORMATS_PYTORCH_PT_H

#include "base/named.h"
#include "format.h"
#include "wire/pickle.h"

#define PT_RANK     64u /* torch's limit of dimensions */
#define PT_PARTS    4u
#define PT_INNER    8u /* most nested tensors */
/* A record that torch ignores: a JSON map of texts. */
#define PT_METADATA "extra/tenfold.json"
#define PT_DEEPEST  500u /* most nested containers */

/* An element type and its names in torch. */
typedef struct pt_type {
    const char *storage; /* "FloatStorage", or NULL: no class */
    const char *name;    /* "float32" */
    const char *id;      /* "f32" */
    uint8_t width;       /* bytes of an element */
    uint8_t axis; /* 0, or length of a last dimension that represents one element (complex32) */
    bool doubled; /* an element becomes two along the last dimension */
    bool packed;  /* elements share bytes in torch's own way: only listed */
    bool kept;    /* its name goes into pytorch.dtype */
} pt_type;

const pt_type *tnf_pt_type_of_storage(tnf_str class_name);
const pt_type *tnf_pt_type_named(tnf_str name);
/* torch's type for one of Tenfold's; NULL: none. */
const pt_type *tnf_pt_type_for(const tnf_type *type);

/* A run of bytes, of which tensors are views. */
typedef struct pt_storage {
    tnf_str key;             /* must be first, for tnf_named */
    uint64_t offset, stored; /* its bytes in the file, once it is located */
    uint64_t size;           /* decoded */
    uint64_t header;         /* zip: index of the member; see the container */
    const uint8_t *memory;   /* the bytes, if the file does not have them plainly */
    bool deflated, big;
    bool located;
    bool has_crc;
    uint8_t crc[4]; /* big-endian */
    bool listed;    /* some tensor is a view of it */
    bool spanned;   /* some tensor covers all of it */
    bool summed;    /* and has its digest */
    const tnf_digest *digest;
    tnf_pickle_node *key_node; /* in the tree that is written again */
} pt_storage;

/* A call or a name in a pickle. */
typedef struct pt_call {
    tnf_str name; /* must be first, for tnf_named: "posix.system" */
    const char *pickle;
    uint64_t offset;       /* of the first one in the file */
    uint64_t named, calls; /* how often named, how often called */
    uint8_t danger;        /* a pt_danger */
    bool called;
    const char *args; /* arguments of the first call */
} pt_call;

typedef enum pt_danger { PT_KNOWN, PT_PLAIN, PT_UNKNOWN, PT_DANGEROUS } pt_danger;

/* A part that only this format can produce: gathered by strides, with bytes reversed or signs
 * changed. */
typedef struct pt_gather {
    const pt_storage *storage;
    uint64_t start; /* offset of the first element in the storage */
    uint32_t rank;  /* of shape and stride, after contiguous dimensions were joined */
    uint32_t width; /* bytes that move together */
    uint32_t swap;  /* width of a number stored big-endian, or 1 */
    const uint64_t *shape, *stride; /* stride in bytes */
    uint8_t sign;   /* numbers that change their sign: 1 the even ones, 2 the odd ones */
    uint8_t number; /* bytes of such a number */
} pt_gather;

/* The bytes of a storage from a tensor's first to its last. */
typedef struct pt_span {
    const pt_storage *storage;
    uint64_t begin, end;
} pt_span;

/* A record that verify() compares with its CRC. */
typedef struct pt_sum {
    tnf_str name;
    uint64_t offset, stored, size;
    uint32_t crc;
    bool deflated;
    tnf_fetch_fn fetch; /* reads the file that contains the record; NULL: the file itself */
    void *ctx;
    uint64_t base; /* base offset, for messages */
} pt_sum;

/* The reader's state: r->state. */
typedef struct pt_file {
    tnf_reader *r;
    tnf_named storages;
    pt_gather *gathers;
    size_t ngathers, gathers_capacity;
    pt_call *calls; /* set once all pickles are read */
    size_t ncalls;
    pt_span *spans; /* while tensors are read: spans that do not cover a storage */
    size_t nspans, spans_capacity;
    pt_sum *sums;
    size_t nsums, sums_room;
    tnf_value slack; /* an array of maps, or empty */
    const char *slack_text;
    tnf_named call_list;           /* while pickles are read */
    uint64_t left;                 /* bytes that values of nodes may still take. Shared nodes expand
                                    * to more than fits, so the budget grows with the pickles */
    uint64_t scan_left;            /* bytes that tnf_pt_scan_call() may still scan */
    uint64_t scanned;              /* bytes of unused records that were scanned */
    uint64_t base;                 /* file offset of the current pickle */
    const tnf_pickle_node *source; /* legacy: the class whose source text is in the file */
    const char *kind;
    /* Finds the bytes of a storage. */
    tnf_status (*locate)(struct pt_file *f, pt_storage *s, tnf_error *e);
    void *container;
    tnf_str own_id;     /* its id, if Tenfold wrote the file from another format and its order means
                         * nothing; else p is NULL */
    const char *folder; /* prefix of keys in the pickle: "data/" */
    tnf_str window;     /* while it is read: bytes of the file, and their offset */
    uint64_t window_at;
    struct pt_tensor *spare[PT_INNER + 1]; /* see tnf_pt_spare() */
    unsigned nested;                       /* depth of nested files */
    unsigned pickles;                      /* number of pickles that were read */
    bool danger;                           /* a pickle names something dangerous */
    bool refused;                          /* by torch.load(weights_only=True) */
    bool cut;                              /* values were cut off by `left` */
    bool failed;                           /* the file cannot be read */
    bool big;
    bool blind; /* only shapes and types are needed; there are no storages */
} pt_file;

/* A strided view. */
typedef struct pt_dense {
    const pt_type *type;
    pt_storage *storage;   /* NULL: no bytes */
    uint64_t start, limit; /* the allowed bytes of the storage */
    uint64_t offset;       /* in elements, from start */
    uint32_t rank;
    uint64_t shape[PT_RANK], stride[PT_RANK];
    bool conj, neg;
    bool fortran; /* numpy: the complete array is column-major */
    const char *location;
    uint64_t at; /* for messages */
    tnf_pickle_node *node;
} pt_dense;

static inline bool tnf_pt_is_empty(const pt_dense *d)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->shape[i] == 0)
            return true;
    return false;
}

typedef struct pt_tensor {
    const char *layout; /* "dense" … */
    const char *roles[PT_PARTS];
    pt_dense parts[PT_PARTS];
    uint32_t nparts, rank;
    const uint64_t *shape; /* of the tensor; NULL: that of its only part */
    const char *kind;      /* "storage", "numpy", "meta", or NULL */
    const char *qscheme;
    double scale;
    int64_t zero_point, axis;
    bool requires_grad, parameter, coalesced, says_coalesced;
    const tnf_pickle_node *state;
} pt_tensor;

/* tensor.c: is the node a tensor? */
bool tnf_pt_is_tensor(const tnf_pickle_node *node);
/* Is it a function of torch that rebuilds tensors? */
bool tnf_pt_is_rebuilt(const tnf_pickle_node *global);
/* Memory for the current tensor, or for one nested in it. Tensors are large, so all share it. NULL:
 * out of memory. */
pt_tensor *tnf_pt_spare(pt_file *f, uint32_t depth);
tnf_status tnf_pt_resolve(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
/* A mention of a storage, ("storage", …): the storage, and the fields of the mention. */
typedef struct pt_mention {
    pt_storage *storage;
    const pt_type *type;
    tnf_str key;
    uint64_t start, numel; /* of the view, in elements */
    uint64_t whole;        /* elements of the storage */
    const char *location;
} pt_mention;
bool tnf_pt_is_storage(const tnf_pickle_node *node);
/* Does not look up the storages of the file. */
tnf_status tnf_pt_mention(pt_mention *out, const tnf_pickle_node *node, tnf_arena *arena,
                          tnf_error *e);

/* sparse.c: facts about the shapes of a sparse tensor's parts that their sizes do not imply. */
tnf_status tnf_pt_sparse_facts(tnf_attrs *attrs, const pt_tensor *t, tnf_arena *arena,
                               tnf_error *e);

/* numpy.c: arrays and scalars of NumPy inside pickles. */
bool tnf_pt_is_array(const tnf_pickle_node *node);
bool tnf_pt_is_scalar(const tnf_pickle_node *node);
tnf_status tnf_pt_array(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
bool tnf_pt_scalar(tnf_value *out, const tnf_pickle_node *node);
/* The bytes that a node stands for: BYTES, or _codecs.encode(text, "latin1"). p is NULL: not
 * bytes. */
tnf_status tnf_pt_bytes(tnf_str *out, const tnf_pickle_node *node, tnf_arena *arena, tnf_error *e);

/* gather.c */
tnf_status tnf_pt_add_part(tnf_part *out, tnf_order *order, pt_file *f, const pt_dense *d,
                           bool may_be_f, tnf_error *e);
/* Makes n complete elements of a tensor, from the element `first` on. */
typedef tnf_status (*pt_elements_fn)(const void *ctx, uint64_t first, uint64_t n, uint8_t *dst,
                                     tnf_error *e);
/* Makes bytes [offset, offset + n). Incomplete elements at the edges go through a buffer; an
 * element has 16 bytes at most. */
tnf_status tnf_pt_elements(pt_elements_fn make, const void *ctx, size_t width, uint64_t offset,
                           void *dst, size_t n, tnf_error *e);
/* Gathers bytes [offset, offset + n) from a storage that `fetch` reads. */
tnf_status tnf_pt_gather_from(const pt_gather *g, tnf_fetch_fn fetch, void *ctx, uint64_t offset,
                              void *dst, size_t n, tnf_error *e);
tnf_status tnf_pt_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* walk.c: all tensors of a tree by path, and pytorch.values. */
tnf_status tnf_pt_walk(pt_file *f, tnf_pickle_node *root, const char *prefix, size_t bytes,
                       tnf_error *e);
/* The tensors of a tree with their names, in the order of the walk. */
typedef struct pt_named {
    tnf_str name;
    tnf_pickle_node *node;
    const tnf_object *object; /* for the writer */
} pt_named;
tnf_status tnf_pt_names(pt_named **out, size_t *n, tnf_pickle_node *root, size_t bytes,
                        tnf_arena *arena, tnf_error *e);

/* forms.c: classifies nodes for the walk. A node's `seen` has the progress of the walk, then
 * flags. */
enum { PT_NEW, PT_ENTERED, PT_COUNTED, PT_STATE = 3 };
#define PT_LOOKED        4u /* tnf_pt_mark_holders() visited it */
#define PT_HOLDS         8u /* has a tensor below it */
#define PT_ASKED_SCALARS 16u
#define PT_SCALARS       32u /* a list of only scalars */
#define PT_ASKED_PAIRS   64u
#define PT_PAIRS         128u /* a list of only pairs */

typedef enum pt_form { PT_TENSOR, PT_VALUE, PT_CONTAINER } pt_form;
pt_form tnf_pt_form(const tnf_pickle_node *node);
/* Does the walk enter the node? It also enters tensors whose attributes hold other tensors. */
bool tnf_pt_has_children(const tnf_pickle_node *node, pt_form form);
/* Marks all nodes below this one that have tensors below them. */
tnf_status tnf_pt_mark_holders(tnf_pickle_node *root, tnf_arena *scratch, tnf_error *e);
bool tnf_pt_holds(const tnf_pickle_node *node);
/* The argument of a call of a dict class: a DICT, or a LIST or TUPLE of pairs; or NULL. */
const tnf_pickle_node *tnf_pt_pairs(const tnf_pickle_node *call);
/* The attributes of an object: its state is a dict, or a pair of a dict or None and a dict. */
size_t tnf_pt_state_dicts(const tnf_pickle_node *state, const tnf_pickle_node *out[2]);
/* The states of a tensor in addition to its data: attributes, arguments of unknown functions. */
#define PT_STATES 8u
size_t tnf_pt_tensor_states(const tnf_pickle_node *tensor, const tnf_pickle_node *out[PT_STATES]);

/* values.c */
/* Limits of bytes for a file's values: a fixed amount, plus so many per byte of its pickles. */
#define PT_VALUES       ((uint64_t)1 << 20)
#define PT_VALUES_RATIO 32u
tnf_status tnf_pt_value(tnf_value *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
/* Removes wrappers: torch.Size((2, 3)), set([…]), build_intlist([…]). */
const tnf_pickle_node *tnf_pt_unwrap(const tnf_pickle_node *node);
bool tnf_pt_is_dict_class(const tnf_pickle_node *call);
/* The global's name, "torch.float16", in the arena; NULL: out of memory. */
const char *tnf_pt_global_name(const tnf_pickle_node *global, tnf_arena *arena);

/* calls.c: the audit. */
pt_danger tnf_pt_danger(const tnf_pickle_node *global);
tnf_status tnf_pt_audit(pt_file *f, const tnf_pickle *p, const char *name, uint64_t base,
                        tnf_error *e);
tnf_status tnf_pt_audit_done(pt_file *f, tnf_error *e);
/* scan.c: scans bytes that may be pickles, or an archive of pickles; base: their file offset. */
bool tnf_pt_may_be_pickle(const uint8_t *p, size_t n);
tnf_status tnf_pt_scan(pt_file *f, tnf_str bytes, uint64_t base, const char *name, tnf_error *e);
tnf_status tnf_pt_scan_source(pt_file *f, uint64_t at, uint64_t end, const char *name,
                              tnf_error *e);
tnf_status tnf_pt_scan_call(pt_file *f, const tnf_pickle_node *call, const char *name,
                            uint64_t base, tnf_error *e);
/* calls.c, except tnf_pt_verify(), which is in pytorch.c. */
void tnf_pt_report_calls(const pt_file *f, tnf_tell tell, void *ctx);
void tnf_pt_name_calls(char *out, size_t size, const tnf_pickle *p, tnf_arena *arena);
tnf_status tnf_pt_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

void tnf_pt_notes(const tnf_reader *r, void (*note)(void *ctx, const char *key, const tnf_value *v),
                  void *ctx);

/* The same for an index, from the pytorch.calls of its shards. */
void tnf_pt_index_notes(const tnf_reader *r,
                        void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx);

/* sums.c. Is it a fault of one record, rather than of memory, a limit or the device? */
bool tnf_pt_is_damage(tnf_status status);
tnf_status tnf_pt_check_sums(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);
/* For a storage of an archive at `base` in another file. Its bytes are assembled or gathered, so no
 * part has its digest, and verify() must compare the record with its CRC. */
tnf_status tnf_pt_keep_inner_sum(pt_file *f, const pt_storage *s, tnf_fetch_fn fetch, void *ctx,
                                 uint64_t base, tnf_error *e);
/* slack.c: which bytes of storages belong to tensors, and which do not. */
tnf_status tnf_pt_note_span(pt_file *f, pt_storage *s, uint64_t begin, uint64_t end, tnf_error *e);
tnf_status tnf_pt_slack_done(pt_file *f, tnf_error *e);
/* Lists storages that the pickle names, but no listed tensor uses, as unreadable. So no conversion
 * drops them silently. */
tnf_status tnf_pt_list_others(pt_file *f, const tnf_pickle *p, tnf_error *e);
/* Adds an unreadable tensor with the name, shape and attributes of `object`; warns. */
tnf_status tnf_pt_add_unreadable(pt_file *f, const tnf_object *object, const char *why, uint64_t at,
                                 tnf_error *e);
/* Marks the storages of a tensor that is listed as unreadable. */
void tnf_pt_mark_listed(pt_file *f, const tnf_pickle_node *tensor);

/* Reads one pickle as data. Its calls are recorded even if it fails. */
tnf_status tnf_pt_pickle(pt_file *f, tnf_pickle *out, tnf_cur *c, const char *name, tnf_error *e);
/* For a pickle that could not be read: returns its status; the message lists what it names. */
tnf_status tnf_pt_bad_pickle(pt_file *f, const tnf_pickle *p, const char *name, tnf_status status,
                             tnf_error *e);

/* Reads a file of any container, and does what all containers share. */
typedef tnf_status (*pt_index_fn)(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index(tnf_reader *r, pt_index_fn index, tnf_error *e);

/* The containers. */
tnf_status tnf_pt_index_legacy(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index_tar(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index_zip(pt_file *f, tnf_error *e);

/* tree.c: keeps the structure, to be written again. */
tnf_status tnf_pt_keep_tree(pt_file *f, tnf_pickle *p, tnf_error *e);
/* write.c */
tnf_status tnf_pt_write(tnf_writer *w, tnf_error *e);

/* Reads a pickle of unknown length at *at and moves *at to its end. */
tnf_status tnf_pt_next_pickle(pt_file *f, tnf_pickle *out, uint64_t *at, uint64_t end,
                              const char *name, tnf_error *e);
/* Adds a storage, unless its key exists. */
tnf_status tnf_pt_add_storage(pt_file *f, const pt_storage *s, tnf_error *e);
pt_storage *tnf_pt_find_storage(const pt_file *f, tnf_str key);

#endif
