/* SPDX-License-Identifier: MIT */
/* Python pickles of protocols 0 to 5 as data. A pickle is a program for a stack machine; this
 * machine only builds a tree that describes the program. Nothing is imported, called or
 * constructed: a global is a name, and a call is a node with a name, arguments and a state.
 *
 *   80 02 | } q0 X "w" q1 c "m\nf\n" q2 K 1 85 R s | .
 *
 *   DICT ── TEXT "w"
 *        └─ CALL ── GLOBAL m.f
 *                └─ TUPLE ── INT 1
 *
 * Nodes have identity: an object that the memo returns twice is one node, and a container may
 * contain itself. Text and bytes are borrowed from the pickle if it contains them unchanged. Time
 * and memory are proportional to the bytes; nothing here recurses.
 */
#ifndef TNF_WIRE_PICKLE_H
#define TNF_WIRE_PICKLE_H

#include "base/arena.h"
#include <tenfold/types.h>

typedef enum tnf_pickle_kind {
    TNF_PICKLE_NONE,
    TNF_PICKLE_BOOL,  /* as.i: 0 or 1 */
    TNF_PICKLE_INT,   /* as.i */
    TNF_PICKLE_BIG,   /* beyond 64 bits: as.s, n bytes of two's complement, little-endian */
    TNF_PICKLE_FLOAT, /* as.f, all its bits */
    TNF_PICKLE_TEXT,  /* as.s: UTF-8, which may contain lone surrogates */
    TNF_PICKLE_BYTES,
    TNF_PICKLE_BYTEARRAY,
    TNF_PICKLE_LIST,  /* as.items, n of them */
    TNF_PICKLE_TUPLE, /* the same */
    TNF_PICKLE_DICT,  /* as.items: key, value, key, value …; n is twice the number of pairs */
    TNF_PICKLE_SET,
    TNF_PICKLE_FROZENSET,
    TNF_PICKLE_GLOBAL,    /* as.global */
    TNF_PICKLE_CALL,      /* as.call */
    TNF_PICKLE_PERSISTENT /* as.items[0]: the id */
} tnf_pickle_kind;

typedef struct tnf_pickle_node {
    uint8_t kind; /* a tnf_pickle_kind */
    uint8_t op;   /* the opcode that made it */
    bool python2; /* TEXT or BYTES: a str of Python 2, which did not distinguish them */
    uint8_t seen; /* 0; free for code that walks over the tree */
    uint32_t at;  /* position of that opcode in the pickle */
    size_t n;     /* bytes, items */
    union {
        int64_t i;
        double f;
        const char *s;
        struct tnf_pickle_node **items;
        const struct tnf_pickle_global *global;
        struct tnf_pickle_call *call;
    } as;
    uint32_t number; /* 0; free for code that walks over the tree */
    uint32_t memo;   /* 0; for writers: the entry of the memo, counted from 1 */
} tnf_pickle_node;

/* A class or function by name. */
typedef struct tnf_pickle_global {
    tnf_str module, name;                 /* as in Python 3: builtins.list */
    tnf_str written_module, written_name; /* as in the pickle: __builtin__.list */
    bool computed;                        /* its name is the result of a call, and so unknown */
    bool dotted; /* Python looks up the parts of the name, each in the one before */
} tnf_pickle_global;

/* A call that would have been made: REDUCE, NEWOBJ, NEWOBJ_EX, OBJ or INST by node->op. */
typedef struct tnf_pickle_call {
    tnf_pickle_node *callee;
    tnf_pickle_node *args;   /* a TUPLE, or a CALL whose result would have been one */
    tnf_pickle_node *kwargs; /* of NEWOBJ_EX, or NULL */
    tnf_pickle_node *state;  /* the argument of BUILD, or NULL */
    tnf_pickle_node *list;   /* a LIST: items that would have been appended (to a set: added) */
    tnf_pickle_node *dict;   /* a DICT: items that would have been set by key */
} tnf_pickle_call;

/* The list and the dict of a call that gets no items: n is 0. It must not be written to. */
tnf_pickle_node *tnf_pickle_no_items(void);

typedef struct tnf_pickle_log {
    tnf_pickle_node **nodes;
    size_t n;
} tnf_pickle_log;

typedef struct tnf_pickle {
    tnf_pickle_node *root;
    size_t used;            /* bytes up to and including STOP */
    unsigned protocol;      /* the highest in a PROTO opcode; 0 if there is none */
    tnf_pickle_log globals; /* in the order of the pickle; after a failure: those before it */
    tnf_pickle_log calls;   /* in the order in which they would have been made */
    tnf_pickle_log persistent;
} tnf_pickle;

/* Reads one pickle from the beginning of n bytes; `base` is their position in the file, for
 * messages. Nodes are in the arena, and borrow from the bytes, which must live as long. Fails with
 * TNF_EFORMAT, TNF_ETRUNCATED (no STOP), TNF_EUNSUPPORTED, TNF_ELIMIT, TNF_ENOMEM; *out then
 * contains everything before the failure. */
tnf_status tnf_pickle_read(tnf_pickle *out, const void *bytes, size_t n, uint64_t base,
                           tnf_arena *arena, tnf_error *e);

/* The item of a dict with a text key; NULL if there is none. If a key is there twice, the last item
 * is returned. */
tnf_pickle_node *tnf_pickle_get(const tnf_pickle_node *dict, const char *key);
bool tnf_pickle_is_text(const tnf_pickle_node *node, const char *text);
/* Is the node the class or function with this Python 3 name? */
bool tnf_pickle_is_global(const tnf_pickle_node *node, const char *module, const char *name);
/* Is the node a call of the class or function with this name? */
bool tnf_pickle_is_call(const tnf_pickle_node *node, const char *module, const char *name);
/* The i-th argument of a call, or NULL. */
tnf_pickle_node *tnf_pickle_arg(const tnf_pickle_node *call, size_t i);

/* Writes the node as Python 3 prints it, shortened to fit: for messages. Always NUL-terminated. */
void tnf_pickle_show(char *out, size_t size, const tnf_pickle_node *node);

/* pickle_text.c, for the machine: values in lines of text. */
typedef struct tnf_pickle_line {
    tnf_str text; /* without the line feed */
    tnf_arena *arena;
    uint64_t at; /* for messages */
    tnf_error *e;
} tnf_pickle_line;

tnf_status tnf_pickle_integer(tnf_pickle_node *out, const tnf_pickle_line *line);
tnf_status tnf_pickle_decimal(double *out, const tnf_pickle_line *line);
tnf_status tnf_pickle_quoted(tnf_pickle_node *out, const tnf_pickle_line *line);
tnf_status tnf_pickle_unicode(tnf_pickle_node *out, const tnf_pickle_line *line);
/* An int of n bytes of two's complement: INT where it fits. */
void tnf_pickle_int_bytes(tnf_pickle_node *out, const uint8_t *bytes, size_t n);
/* Is it UTF-8, apart from lone surrogates? */
bool tnf_pickle_text_valid(const char *p, size_t n);
/* A BIG in decimal digits, with its sign; false: no memory. */
bool tnf_pickle_big_text(tnf_str *out, const tnf_pickle_node *big, tnf_arena *arena);

/* pickle_danger.c. A GLOBAL is dangerous if calling it would run code or commands, touch files or
 * the network, or fetch attributes by name. It is plain if it is one of the values and data classes
 * of Python and NumPy. A CALL is also dangerous if it calls the result of a call. */
bool tnf_pickle_dangerous(const tnf_pickle_node *global);
bool tnf_pickle_plain(const tnf_pickle_node *global);
bool tnf_pickle_call_dangerous(const tnf_pickle_node *call);

/* pickle_names.c: converts a Python 2 name to the Python 3 name. */
void tnf_pickle_rename(tnf_pickle_global *global);

#endif
