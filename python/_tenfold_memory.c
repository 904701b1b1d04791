/* SPDX-License-Identifier: MIT */
/* Open files and blocks of memory, which may outlive Python and have atomic reference counts; and
 * the table of types. This source does not need the GIL. */
#include "_tenfold.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct hold {
    atomic_size_t count;
    tnf_file *file;
    int fd; /* the descriptor that the file reads from, owned by the hold; -1: none */
    net *far;
};

hold *hold_new(tnf_file *file, int fd, net *far)
{
    hold *h = malloc(sizeof *h);
    if (h) {
        atomic_init(&h->count, 1);
        h->file = file;
        h->fd = fd;
        h->far = far;
    }
    return h;
}

hold *hold_take(hold *h)
{
    atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
    return h;
}

void hold_drop(hold *h)
{
    if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) != 1)
        return;
    tnf_close(h->file);
    if (h->fd >= 0)
        close(h->fd);
    net_free(h->far); /* the file used it until it was closed */
    free(h);
}

const tnf_file *hold_file(const hold *h)
{
    return h->file;
}

/* ------------------------------------------------------------------- blocks */

/*   | counted | shape, strides | …to an address that is a multiple of 64 | data |
 * Large data begin at a huge page, which saves a page fault for each 4 KiB. */
typedef struct counted {
    block public;
    atomic_size_t count;
    void *separate;              /* data in a separate allocation, or NULL */
    void (*release)(void *lent); /* data that belong to `lent`, or NULL */
    void *lent;
} counted;

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, WORTH_HUGE = 4 << 20 };

block *block_new(int rank, size_t nbytes)
{
    size_t head = sizeof(counted) + 2 * (size_t)rank * sizeof(Py_ssize_t);
    size_t align = nbytes >= WORTH_HUGE ? HUGE_PAGE : ALIGNMENT;
    if (nbytes > PTRDIFF_MAX - head - HUGE_PAGE)
        return NULL;
    counted *b = NULL;
    uint8_t *data = NULL;
    void *place = NULL;
    if (align == ALIGNMENT) {
        /* Aligned by hand: posix_memalign() takes longer than a small copy. */
        b = malloc(head + nbytes + ALIGNMENT);
        if (!b)
            return NULL;
        uintptr_t end = (uintptr_t)b + head;
        data = (uint8_t *)b + head + (ALIGNMENT - end % ALIGNMENT) % ALIGNMENT;
    } else {
        b = malloc(head);
        if (!b || posix_memalign(&place, align, nbytes) != 0) {
            free(b);
            return NULL;
        }
        data = place;
#ifdef MADV_HUGEPAGE
        madvise(data, nbytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    }
    b->public.rank = rank;
    b->public.shape = (Py_ssize_t *)(void *)(b + 1);
    b->public.strides = b->public.shape + rank;
    b->public.data = data;
    b->public.nbytes = nbytes;
    b->separate = align == ALIGNMENT ? NULL : place;
    b->release = NULL;
    atomic_init(&b->count, 1);
    return &b->public;
}

block *block_over(int rank, const void *data, size_t nbytes, void (*release)(void *lent),
                  void *lent)
{
    block *b = block_new(rank, 0);
    if (b) {
        b->data = (uint8_t *)(uintptr_t)data;
        b->nbytes = nbytes;
        ((counted *)(void *)b)->release = release;
        ((counted *)(void *)b)->lent = lent;
    }
    return b;
}

block *block_take(block *b)
{
    atomic_fetch_add_explicit(&((counted *)(void *)b)->count, 1, memory_order_relaxed);
    return b;
}

void block_drop(block *b)
{
    counted *c = (counted *)(void *)b;
    if (!b || atomic_fetch_sub_explicit(&c->count, 1, memory_order_acq_rel) != 1)
        return;
    if (c->release)
        c->release(c->lent);
    free(c->separate);
    free(c);
}

/* -------------------------------------------------------------------- types */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE(format) "<" format
#else
#define LE(format) format
#endif

/* Codes of DLPack 1.1: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 8 and up narrow floats.
 */
enum { KIND_F32 = 1 };
static const kind kinds[] = {
    { "f64", LE("d"), LE("Q"), NULL, 2, 64, 8 },
    [KIND_F32] = { "f32", LE("f"), LE("I"), NULL, 2, 32, 4 },
    { "f16", LE("e"), LE("H"), NULL, 2, 16, 2 },
    { "bf16", NULL, LE("H"), "bfloat16", 4, 16, 2 },
    { "i64", LE("q"), LE("Q"), NULL, 0, 64, 8 },
    { "i32", LE("i"), LE("I"), NULL, 0, 32, 4 },
    { "i16", LE("h"), LE("H"), NULL, 0, 16, 2 },
    { "i8", "b", "B", NULL, 0, 8, 1 },
    { "u64", LE("Q"), LE("Q"), NULL, 1, 64, 8 },
    { "u32", LE("I"), LE("I"), NULL, 1, 32, 4 },
    { "u16", LE("H"), LE("H"), NULL, 1, 16, 2 },
    { "u8", "B", "B", NULL, 1, 8, 1 },
    { "bool", "?", "B", NULL, 6, 8, 1 },
    { "i128", NULL, NULL, NULL, 0, 128, 16 }, /* Python's integers */
    { "u128", NULL, NULL, NULL, 1, 128, 16 },
    { "c64", LE("Zf"), LE("Q"), NULL, 5, 64, 8 },
    { "c128", LE("Zd"), NULL, NULL, 5, 128, 16 },
    { "f8_e4m3fn", NULL, "B", "float8_e4m3fn", 10, 8, 1 },
    { "f8_e4m3fnuz", NULL, "B", "float8_e4m3fnuz", 11, 8, 1 },
    { "f8_e5m2", NULL, "B", "float8_e5m2", 12, 8, 1 },
    { "f8_e5m2fnuz", NULL, "B", "float8_e5m2fnuz", 13, 8, 1 },
    { "f8_e8m0", NULL, "B", "float8_e8m0fnu", 14, 8, 1 },
    { "f6_e2m3", NULL, NULL, "float6_e2m3fn", 0, 0, 0 },
    { "f6_e3m2", NULL, NULL, "float6_e3m2fn", 0, 0, 0 },
    { "f4_e2m1", NULL, NULL, "float4_e2m1fn", 17, 4, 0 },
    { "i4", NULL, NULL, "int4", 0, 0, 0 },
    { "u4", NULL, NULL, "uint4", 0, 0, 0 },
    { "i2", NULL, NULL, "int2", 0, 0, 0 },
    { "u2", NULL, NULL, "uint2", 0, 0, 0 },
    { "bit", NULL, NULL, "", 0, 0, 0 }, /* numpy's uint8 */
};

const kind *kind_of(const tnf_type *type)
{
    if (type == tnf_type_of(TNF_F32)) /* the most frequent type */
        return &kinds[KIND_F32];
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].id[0] == type->id[0] && !strcmp(kinds[i].id, type->id))
            return &kinds[i];
    }
    return NULL;
}

/* The native formats `l`, `L`, `n` and `N` depend on the machine, so their width decides. */
static const char *format_id(char c, Py_ssize_t size)
{
    static const struct {
        char letter;
        Py_ssize_t size;
        const char *id;
    } all[] = {
        { 'd', 8, "f64" }, { 'f', 4, "f32" }, { 'e', 2, "f16" },  { 'q', 8, "i64" },
        { 'l', 8, "i64" }, { 'l', 4, "i32" }, { 'n', 8, "i64" },  { 'i', 4, "i32" },
        { 'h', 2, "i16" }, { 'b', 1, "i8" },  { 'Q', 8, "u64" },  { 'L', 8, "u64" },
        { 'L', 4, "u32" }, { 'N', 8, "u64" }, { 'I', 4, "u32" },  { 'H', 2, "u16" },
        { 'B', 1, "u8" },  { 'c', 1, "u8" },  { '?', 1, "bool" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].letter == c && all[i].size == size)
            return all[i].id;
    }
    return NULL;
}

const tnf_type *type_of_format(const char *format, Py_ssize_t itemsize, bool *swap)
{
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1;
    bool is_little = little;
    format = format ? format : "B";
    if (*format == '<' || *format == '>' || *format == '!') {
        is_little = *format == '<';
        format++;
    } else if (*format == '=' || *format == '@' || *format == '|') {
        format++;
    }
    *swap = !is_little && itemsize > 1;
    if (!strcmp(format, "Zf"))
        return tnf_type_named("c64");
    if (!strcmp(format, "Zd") && itemsize == 16)
        return tnf_type_named("c128");
    const char *id = strlen(format) == 1 ? format_id(*format, itemsize) : NULL;
    return id ? tnf_type_named(id) : NULL;
}

/* Expands elements of 1 to 7 bits to one byte each: lowest bits first, as in the files. */
block *block_unpack(const block *packed, const tnf_type *type)
{
    size_t n = 1;
    for (int i = 0; i < packed->rank; i++)
        n *= (size_t)packed->shape[i];
    block *out = block_new(packed->rank, n);
    if (!out)
        return NULL;
    const uint64_t bits = type->bits;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = i * bits, byte = at / 8, shift = at % 8;
        unsigned value = packed->data[byte];
        if (shift + bits > 8)
            value |= (unsigned)packed->data[byte + 1] << 8;
        out->data[i] = (uint8_t)((value >> shift) & ((1u << bits) - 1));
    }
    size_t stride = 1;
    for (int i = packed->rank; i-- > 0;) {
        out->shape[i] = packed->shape[i];
        out->strides[i] = (Py_ssize_t)stride;
        stride *= (size_t)packed->shape[i];
    }
    return out;
}
