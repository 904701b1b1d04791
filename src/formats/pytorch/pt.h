/* SPDX-License-Identifier: MIT */
/* PyTorch checkpoints: what the containers (zip, legacy, tar) and the readers of their object trees
 * share.
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

#define PT_RANK     64u /* as many dimensions as torch has */
#define PT_PARTS    4u
#define PT_INNER    8u /* tensors within tensors */
/* A record that torch does not look at: a JSON map of texts. */
#define PT_METADATA "extra/tenfold.json"
#define PT_DEEPEST  500u /* containers within containers that are followed */

/* An element type as torch calls it. */
typedef struct pt_type {
    const char *storage; /* "FloatStorage", or NULL: it has no class of its own */
    const char *name;    /* "float32" */
    const char *id;      /* "f32" */
    uint8_t width;       /* bytes of an element */
    uint8_t axis; /* 0, or a last dimension of that many elements stands for one (complex32) */
    bool doubled; /* an element is two of ours, along the last dimension */
    bool packed;  /* elements share bytes in a way of torch's own: listed only */
    bool kept;    /* its name goes into pytorch.dtype */
} pt_type;

const pt_type *tnf_pt_type_of_storage(tnf_str class_name);
const pt_type *tnf_pt_type_named(tnf_str name);
/* What torch has for a type of ours; NULL: nothing. */
const pt_type *tnf_pt_type_for(const tnf_type *type);

/* A run of bytes that tensors are views of. */
typedef struct pt_storage {
    tnf_str key;             /* first, for tnf_named */
    uint64_t offset, stored; /* its bytes in the file, once it is located */
    uint64_t size;           /* decoded */
    uint64_t header;         /* zip: which member; see the container */
    const uint8_t *memory;   /* not in the file as they are: here */
    bool deflated, big;
    bool located;
    bool has_crc;
    uint8_t crc[4]; /* big-endian */
    bool listed;    /* a tensor is of it */
    bool spanned;   /* a tensor has all of it */
    bool summed;    /* and its digest */
    const tnf_digest *digest;
    tnf_pickle_node *key_node; /* of the tree that is written again */
} pt_storage;

/* A call or a name that stands in a pickle. */
typedef struct pt_call {
    tnf_str name; /* first, for tnf_named: "posix.system" */
    const char *pickle;
    uint64_t offset;       /* in the file, of the first */
    uint64_t named, calls; /* how often */
    uint8_t danger;        /* a pt_danger */
    bool called;
    const char *args; /* of the first call */
} pt_call;

typedef enum pt_danger { PT_KNOWN, PT_PLAIN, PT_UNKNOWN, PT_DANGEROUS } pt_danger;

/* A part that only this format can produce: bytes gathered by strides, turned, of other signs. */
typedef struct pt_gather {
    const pt_storage *storage;
    uint64_t start;                 /* of the first element, in the storage */
    uint32_t rank;                  /* of these, with dimensions that follow each other joined */
    uint32_t width;                 /* bytes that move together */
    uint32_t turn;                  /* bytes of a number that is stored big-endian, or 1 */
    const uint64_t *shape, *stride; /* stride in bytes */
    uint8_t sign;   /* which numbers change their sign: 1 the even ones, 2 the odd ones */
    uint8_t number; /* bytes of such a number */
} pt_gather;

/* Bytes of a storage from the first to the last of a tensor's. */
typedef struct pt_span {
    const pt_storage *storage;
    uint64_t begin, end;
} pt_span;

/* A record that verify compares with its CRC. */
typedef struct pt_sum {
    tnf_str name;
    uint64_t offset, stored, size;
    uint32_t crc;
    bool deflated;
    tnf_fetch_fn fetch; /* what it lies in is read by this; NULL: it is the file */
    void *ctx;
    uint64_t base; /* of that, for messages */
} pt_sum;

/* The reader's state: r->state. */
typedef struct pt_file {
    tnf_reader *r;
    tnf_named storages;
    pt_gather *gathers;
    size_t ngathers, gathers_capacity;
    pt_call *calls; /* once all pickles are read */
    size_t ncalls;
    pt_span *spans; /* while tensors are read, of those that have not all */
    size_t nspans, spans_capacity;
    pt_sum *sums;
    size_t nsums, sums_room;
    tnf_value slack; /* an array of maps, or empty */
    const char *slack_text;
    tnf_named call_list;           /* while they are read */
    uint64_t left;                 /* bytes of values that may still be made of nodes: shared ones
                                    * stand for more than fit, so it grows with the pickles */
    uint64_t scan_left;            /* bytes that tnf_pt_scan_call() may still look at */
    uint64_t scanned;              /* bytes of records that nothing uses, looked at */
    uint64_t base;                 /* of the pickle whose nodes are looked at */
    const tnf_pickle_node *source; /* legacy: the class whose source text stands in the file */
    const char *kind;
    /* Finds the bytes of a storage. */
    tnf_status (*locate)(struct pt_file *f, pt_storage *s, tnf_error *e);
    void *container;
    tnf_str ours;       /* its id, if it was written here from another format and its order means
                         * nothing; else p is NULL */
    const char *folder; /* in front of the keys that a pickle has: "data/" */
    tnf_str window;     /* while it is read: of the file, and where */
    uint64_t window_at;
    struct pt_tensor *spare[PT_INNER + 1]; /* while it is read: see tnf_pt_spare() */
    unsigned nested;                       /* files within files that are looked at */
    unsigned pickles;                      /* that were looked at */
    bool danger;                           /* something dangerous is named */
    bool refused;                          /* by torch.load(weights_only=True) */
    bool cut;                              /* there were more values than `left` allows */
    bool failed;                           /* the file cannot be read */
    bool big;
    bool blind; /* there are no storages: only shapes and types are wanted */
} pt_file;

/* A strided view. */
typedef struct pt_dense {
    const pt_type *type;
    pt_storage *storage;   /* NULL: it has no bytes */
    uint64_t start, limit; /* the bytes of the storage that it may use */
    uint64_t offset;       /* in elements, from start */
    uint32_t rank;
    uint64_t shape[PT_RANK], stride[PT_RANK];
    bool conj, neg;
    bool fortran; /* numpy: all of it, columns first */
    const char *location;
    uint64_t at; /* for messages */
    tnf_pickle_node *node;
} pt_dense;

typedef struct pt_tensor {
    const char *layout; /* "dense" … */
    const char *roles[PT_PARTS];
    pt_dense parts[PT_PARTS];
    uint32_t nparts, rank;
    const uint64_t *shape; /* of the whole: NULL: of its only part */
    const char *kind;      /* "storage", "numpy", "meta", or NULL */
    const char *qscheme;
    double scale;
    int64_t zero_point, axis;
    bool requires_grad, parameter, coalesced, says_coalesced;
    const tnf_pickle_node *state;
} pt_tensor;

/* types.c, tensor.c: what a node is. */
bool tnf_pt_is_tensor(const tnf_pickle_node *node);
/* Is it one of torch's functions that rebuild tensors? */
bool tnf_pt_is_rebuilt(const tnf_pickle_node *global);
/* Room for a tensor that is looked at, or for one within it: they are large, so it is the same for
 * all. NULL: no memory. */
pt_tensor *tnf_pt_spare(pt_file *f, uint32_t depth);
tnf_status tnf_pt_resolve(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
/* The storage of ("storage", …); *type and *numel as it is named there. */
typedef struct pt_mention {
    pt_storage *storage;
    const pt_type *type;
    tnf_str key;
    uint64_t start, numel; /* of its view, in elements */
    uint64_t whole;        /* elements of the storage */
    const char *location;
} pt_mention;
bool tnf_pt_is_storage(const tnf_pickle_node *node);
/* Without a look at the storages of the file. */
tnf_status tnf_pt_mention(pt_mention *out, const tnf_pickle_node *node, tnf_arena *arena,
                          tnf_error *e);

/* sparse.c: what the sizes of the parts of a sparse tensor do not tell of their shapes. */
tnf_status tnf_pt_sparse_facts(tnf_attrs *attrs, const pt_tensor *t, tnf_arena *arena,
                               tnf_error *e);

/* numpy.c: arrays and scalars of NumPy inside pickles. */
bool tnf_pt_is_array(const tnf_pickle_node *node);
bool tnf_pt_is_scalar(const tnf_pickle_node *node);
tnf_status tnf_pt_array(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
bool tnf_pt_scalar(tnf_value *out, const tnf_pickle_node *node);
/* The bytes that a node stands for: BYTES, or _codecs.encode(text, "latin1"). p is NULL: none. */
tnf_status tnf_pt_bytes(tnf_str *out, const tnf_pickle_node *node, tnf_arena *arena, tnf_error *e);

/* gather.c */
tnf_status tnf_pt_add_part(tnf_part *out, tnf_order *order, pt_file *f, const pt_dense *d,
                           bool may_be_f, tnf_error *e);
/* Bytes [offset, offset + n) of what is gathered, from a storage that `fetch` reads. */
tnf_status tnf_pt_gather_from(const pt_gather *g, tnf_fetch_fn fetch, void *ctx, uint64_t offset,
                              void *dst, size_t n, tnf_error *e);
tnf_status tnf_pt_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* walk.c: all tensors of a tree by path, and pytorch.values. */
tnf_status tnf_pt_walk(pt_file *f, tnf_pickle_node *root, const char *prefix, size_t bytes,
                       tnf_error *e);
/* Names of the tensors of a tree, in the order of the walk. */
typedef struct pt_named {
    tnf_str name;
    tnf_pickle_node *node;
    const tnf_object *object; /* for the writer */
} pt_named;
tnf_status tnf_pt_names(pt_named **out, size_t *n, tnf_pickle_node *root, size_t bytes,
                        tnf_arena *arena, tnf_error *e);

/* forms.c: what a node is to the walk. In `seen` of a node: how far the walk is, then flags. */
enum { PT_NEW, PT_ENTERED, PT_COUNTED, PT_STATE = 3 };
#define PT_LOOKED        4u /* tnf_pt_mark_holders() was there */
#define PT_HOLDS         8u /* a tensor is below it */
#define PT_ASKED_SCALARS 16u
#define PT_SCALARS       32u /* a list of nothing but scalars */
#define PT_ASKED_PAIRS   64u
#define PT_PAIRS         128u /* a list of nothing but pairs */

typedef enum pt_form { PT_TENSOR, PT_VALUE, PT_CONTAINER } pt_form;
pt_form tnf_pt_form(const tnf_pickle_node *node);
/* Does the walk go into it? Into a tensor, too, whose attributes hold others. */
bool tnf_pt_has_children(const tnf_pickle_node *node, pt_form form);
/* Notes for all nodes below this one whether tensors are below them. */
tnf_status tnf_pt_mark_holders(tnf_pickle_node *root, tnf_arena *scratch, tnf_error *e);
bool tnf_pt_holds(const tnf_pickle_node *node);
/* The DICT, or the LIST or TUPLE of pairs, that a call of a dict class makes it of; or NULL. */
const tnf_pickle_node *tnf_pt_pairs(const tnf_pickle_node *call);
/* The attributes of an object: its state is a dict, or a pair of a dict or None and a dict. */
size_t tnf_pt_state_dicts(const tnf_pickle_node *state, const tnf_pickle_node *out[2]);
/* What a tensor is given beside its data: attributes, arguments for a function nobody knows. */
#define PT_STATES 8u
size_t tnf_pt_tensor_states(const tnf_pickle_node *tensor, const tnf_pickle_node *out[PT_STATES]);

/* values.c */
/* Bytes that values may take of a file, however small it is, and for each byte of its pickles. */
#define PT_VALUES       ((uint64_t)1 << 20)
#define PT_VALUES_RATIO 32u
tnf_status tnf_pt_value(tnf_value *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e);
tnf_value tnf_pt_int_value(int64_t i);
/* Wrappers that stand for what they hold: torch.Size((2, 3)), set([…]), build_intlist([…]). */
const tnf_pickle_node *tnf_pt_unwrap(const tnf_pickle_node *node);
bool tnf_pt_is_dict_class(const tnf_pickle_node *call);
/* The global's name, "torch.float16", in the arena; NULL: no memory. */
const char *tnf_pt_global_name(const tnf_pickle_node *global, tnf_arena *arena);

/* calls.c: the audit. */
pt_danger tnf_pt_danger(const tnf_pickle_node *global);
tnf_status tnf_pt_audit(pt_file *f, const tnf_pickle *p, const char *name, uint64_t base,
                        tnf_error *e);
tnf_status tnf_pt_audit_done(pt_file *f, tnf_error *e);
/* scan.c: bytes that may be pickles, or an archive of some; base: where they are in the file. */
bool tnf_pt_may_be_pickle(const uint8_t *p, size_t n);
tnf_status tnf_pt_scan(pt_file *f, tnf_str bytes, uint64_t base, const char *name, tnf_error *e);
tnf_status tnf_pt_scan_source(pt_file *f, uint64_t at, uint64_t end, const char *name,
                              tnf_error *e);
tnf_status tnf_pt_scan_call(pt_file *f, const tnf_pickle_node *call, const char *name,
                            uint64_t base, tnf_error *e);
void tnf_pt_tell_calls(const pt_file *f, tnf_tell tell, void *ctx);
void tnf_pt_name_calls(char *out, size_t size, const tnf_pickle *p, tnf_arena *arena);
tnf_status tnf_pt_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

void tnf_pt_notes(const tnf_reader *r, void (*note)(void *ctx, const char *key, const tnf_value *v),
                  void *ctx);

/* The same of an index, by the pytorch.calls of its shards. */
void tnf_pt_index_notes(const tnf_reader *r,
                        void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx);

/* sums.c. Is it a fault of one record, rather than of memory, a limit or the device? */
bool tnf_pt_is_damage(tnf_status status);
tnf_status tnf_pt_check_sums(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);
/* A storage of an archive that lies in another file, from `base` on: its bytes are put together
 * with others, or gathered, so that verify compares the record with its CRC. */
tnf_status tnf_pt_keep_inner_sum(pt_file *f, const pt_storage *s, tnf_fetch_fn fetch, void *ctx,
                                 uint64_t base, tnf_error *e);
/* slack.c: what tensors have of storages, and what none has. */
tnf_status tnf_pt_note_span(pt_file *f, pt_storage *s, uint64_t begin, uint64_t end, tnf_error *e);
tnf_status tnf_pt_slack_done(pt_file *f, tnf_error *e);
/* Storages that the pickle names and no listed tensor is of: each is listed as what cannot be read,
 * so that no conversion leaves it out in silence. */
tnf_status tnf_pt_list_others(pt_file *f, const tnf_pickle *p, tnf_error *e);
/* Name, shape and attributes are `object`'s; warns. */
tnf_status tnf_pt_add_unreadable(pt_file *f, const tnf_object *object, const char *why, uint64_t at,
                                 tnf_error *e);
/* The storages of a tensor that is listed as unreadable. */
void tnf_pt_mark_listed(pt_file *f, const tnf_pickle_node *tensor);

/* One pickle: read as data, its calls noted whatever becomes of it. */
tnf_status tnf_pt_pickle(pt_file *f, tnf_pickle *out, tnf_cur *c, const char *name, tnf_error *e);
/* Of a pickle that could not be read: its status again; the message tells what it names. */
tnf_status tnf_pt_bad_pickle(pt_file *f, const tnf_pickle *p, const char *name, tnf_status status,
                             tnf_error *e);

/* A file of any container: reads it, and what is told of all of them. */
typedef tnf_status (*pt_index_fn)(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index(tnf_reader *r, pt_index_fn index, tnf_error *e);

/* The containers. */
tnf_status tnf_pt_index_legacy(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index_tar(pt_file *f, tnf_error *e);
tnf_status tnf_pt_index_zip(pt_file *f, tnf_error *e);

/* tree.c: the structure, to be written again. */
tnf_status tnf_pt_keep_tree(pt_file *f, tnf_pickle *p, tnf_error *e);
tnf_status tnf_pt_write(tnf_writer *w, tnf_error *e);

/* A pickle from a place of the file on, whose length nobody knows; *at moves behind it. */
tnf_status tnf_pt_next_pickle(pt_file *f, tnf_pickle *out, uint64_t *at, uint64_t end,
                              const char *name, tnf_error *e);
/* Adds a storage by its key unless it is there. */
tnf_status tnf_pt_add_storage(pt_file *f, const pt_storage *s, tnf_error *e);
pt_storage *tnf_pt_find_storage(const pt_file *f, tnf_str key);

#endif
