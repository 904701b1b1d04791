/* SPDX-License-Identifier: MIT */
/* Paths as names and back: see path.h. */
#include "formats/primitiv/path.h"

prim_path tnf_prim_path_of(tnf_str name)
{
    return (prim_path) { .p = name.p, .end = name.p + name.n };
}

/* Reads a run of backslashes: how many it means, and whether the dot after it is data. */
static void read_run(prim_path *path)
{
    size_t n = 0;
    while (path->p < path->end && *path->p == '\\')
        path->p++, n++;
    bool counts = path->p < path->end && *path->p == '.';
    path->slashes = counts ? n / 2 : n;
    path->dot = counts && n % 2 == 1;
    path->p += path->dot;
}

int tnf_prim_path_next(prim_path *path)
{
    if (path->slashes == 0 && !path->dot && path->p < path->end && *path->p == '\\')
        read_run(path);
    if (path->slashes > 0) {
        path->slashes--;
        return '\\';
    }
    if (path->dot) {
        path->dot = false;
        return '.';
    }
    if (path->p == path->end)
        return PRIM_END;
    unsigned char byte = (unsigned char)*path->p++;
    return byte == '.' ? PRIM_NEXT : byte;
}

uint64_t tnf_prim_path_elements(tnf_str name)
{
    prim_path path = tnf_prim_path_of(name);
    uint64_t n = 1;
    for (int c; (c = tnf_prim_path_next(&path)) != PRIM_END;)
        n += c == PRIM_NEXT;
    return n;
}

static void put_slashes(prim_put put, void *to, size_t n)
{
    for (; n > 0; n--)
        put(to, '\\');
}

void tnf_prim_path_escape(tnf_str element, bool last, prim_put put, void *to)
{
    size_t run = 0; /* length of the current run of backslashes */
    for (size_t i = 0; i < element.n; i++) {
        if (element.p[i] == '.')
            put_slashes(put, to, run + 1);
        run = element.p[i] == '\\' ? run + 1 : 0;
        put(to, element.p[i]);
    }
    if (last)
        return;
    put_slashes(put, to, run);
    put(to, '.');
}

static void put_to_buf(void *to, char c)
{
    tnf_buf_u8(to, (uint8_t)c);
}

void tnf_prim_path_put(tnf_buf *name, tnf_str element, bool last)
{
    tnf_prim_path_escape(element, last, put_to_buf, name);
}

int tnf_prim_path_compare(const tnf_object *a, const tnf_object *b)
{
    prim_path x = tnf_prim_path_of(a->name), y = tnf_prim_path_of(b->name);
    int c, d;
    do {
        c = tnf_prim_path_next(&x);
        d = tnf_prim_path_next(&y);
    } while (c == d && c != PRIM_END);
    return c < d ? -1 : c > d;
}
