/* SPDX-License-Identifier: MIT */
/* Other metadata in the very header of a safetensors file, whose tensors stay where they are.
 *
 *   u64 n │ {"__metadata__":{…},…}     blanks │ data
 *          └── same n, other bytes ──────────┘
 *
 * The new header is made by the library's writer, which is stopped at the first byte of data;
 * opened together with the old data, it must give the same tensors at the same places. Then the
 * bytes that differ are written in one call. If those lie in one block of 4096 bytes, disks write
 * them whole or not at all; otherwise the old header is put beside the file first, and goes when
 * the new one is on the disk.
 */
#include "meta_save.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD  8u
#define BLOCK 4096u
#define MOST  (HEAD + 100000000u)

typedef struct header {
    uint8_t *p; /* with its length before it */
    size_t n, room;
    bool whole;
} header;

typedef struct place {
    const meta_change *c;
    header fresh, old;
    int fd;
    uint64_t size;
} place;

static uint64_t length_of(const uint8_t *p)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < HEAD; i++)
        n |= (uint64_t)p[i] << (8 * i);
    return n;
}

static bool grow(header *h, size_t room)
{
    uint8_t *p = room > h->room ? realloc(h->p, room) : h->p;
    h->p = p ? p : h->p;
    h->room = p && room > h->room ? room : h->room;
    return p != NULL;
}

/* Takes the header and then wants no more. */
static tnf_status take(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    header *h = ctx;
    if (h->n + n <= MOST && grow(h, h->n + n + 1)) {
        memcpy(h->p + h->n, bytes, n);
        h->n += n;
        h->whole = h->n >= HEAD && h->n - HEAD >= length_of(h->p);
        if (!h->whole)
            return TNF_OK;
        h->n = HEAD + (size_t)length_of(h->p);
    }
    *error = (tnf_error) { .status = TNF_ECANCELLED, .offset = TNF_NO_OFFSET };
    return TNF_ECANCELLED;
}

static bool make_header(place *p, tnf_error *error)
{
    static const tnf_sink_ops ops = { .version = TNF_SINK_OPS_VERSION, .write = take };
    static const tnf_option options[] = { { "order", "file" }, { "align", "1" } };
    tnf_save_options how = { .size = sizeof how, .format = "safetensors", .options = options };
    tnf_sink *sink;
    how.noptions = 2;
    if (tnf_sink_custom(&sink, &ops, &p->fresh, error) != TNF_OK)
        return false;
    tnf_status status = tnf_save_sink(p->c->editor->builder, sink, &how, error);
    tnf_sink_close(sink);
    return p->fresh.whole && (status == TNF_OK || status == TNF_ECANCELLED);
}

static bool read_old(place *p)
{
    uint8_t head[HEAD];
    p->size = p->c->in->info->size;
    p->fd = open(p->c->path, O_RDWR | O_CLOEXEC);
    if (p->fd < 0 || pread(p->fd, head, HEAD, 0) != HEAD || length_of(head) > MOST - HEAD)
        return false;
    p->old.n = HEAD + (size_t)length_of(head);
    return grow(&p->old, p->old.n) && pread(p->fd, p->old.p, p->old.n, 0) == (ssize_t)p->old.n;
}

/* --------------------------------------------------------------- comparing */

/* The file as it would be. */
static tnf_status read_both(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    const place *p = ctx;
    size_t k = 0;
    for (; k < n && offset + k < p->fresh.n; k++)
        ((uint8_t *)dst)[k] = p->fresh.p[offset + k];
    if (k == n || pread(p->fd, (uint8_t *)dst + k, n - k, (off_t)(offset + k)) == (ssize_t)(n - k))
        return TNF_OK;
    *error = (tnf_error) { .status = TNF_EIO, .offset = offset + k };
    return TNF_EIO;
}

static bool same_place(const tnf_object *a, const tnf_object *b)
{
    return b && a->nparts == 1 && b->nparts == 1 && a->parts->type == b->parts->type &&
           a->parts->offset == b->parts->offset && a->parts->nbytes == b->parts->nbytes &&
           a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

static bool same_tensors(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *o;
    size_t n = tnf_file_info(a)->objects;
    for (size_t i = 0; (o = tnf_at(a, i)); i++)
        if (!same_place(o, tnf_find_n(b, o->name.p, o->name.n)))
            return false;
    return n == tnf_file_info(b)->objects;
}

static bool stays(place *p)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_both };
    tnf_open_options how = { .size = sizeof how, .format = "safetensors" };
    tnf_error error;
    tnf_source *source;
    tnf_file *file = NULL;
    bool same = tnf_source_custom(&source, &ops, p, p->size, &error) == TNF_OK &&
                tnf_open_source(&file, source, &how, &error) == TNF_OK &&
                same_tensors(p->c->in->file, file);
    tnf_close(file);
    return same;
}

/* ----------------------------------------------------------------- writing */

static bool put_whole(int fd, const uint8_t *p, size_t n, uint64_t at)
{
    return pwrite(fd, p, n, (off_t)at) == (ssize_t)n && fsync(fd) == 0;
}

/* "FILE.header": what stood there, until the new header is on the disk. */
static bool keep_old(const place *p, const char *kept)
{
    int fd = open(kept, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && put_whole(fd, p->old.p, p->old.n, 0);
    if (fd >= 0 && close(fd) != 0)
        good = false;
    return good;
}

static bool write_header(const place *p)
{
    size_t first = HEAD, last = p->old.n;
    while (first < last && p->old.p[first] == p->fresh.p[first])
        first++;
    while (last > first && p->old.p[last - 1] == p->fresh.p[last - 1])
        last--;
    if (first == last)
        return true;
    bool one_block = first / BLOCK == (last - 1) / BLOCK;
    size_t room = strlen(p->c->path) + 8;
    char *kept = malloc(room);
    if (!kept)
        return false;
    snprintf(kept, room, "%s.header", p->c->path);
    bool good = (one_block || keep_old(p, kept)) &&
                put_whole(p->fd, p->fresh.p + first, last - first, first);
    if (good && !one_block)
        good = unlink(kept) == 0;
    free(kept);
    return good;
}

static int refuse(const meta_change *c, const char *why)
{
    char text[200];
    snprintf(text, sizeof text, "%s; without --in-place the file is written anew", why);
    file_message(c->path, "", TNF_NO_OFFSET, text);
    return EXIT_BAD;
}

static int work(place *p)
{
    tnf_error error;
    char why[120];
    if (!make_header(p, &error))
        return file_error(p->c->path, &error);
    if (!read_old(p)) {
        file_message(p->c->path, "", TNF_NO_OFFSET, strerror(errno));
        return EXIT_IO;
    }
    if (p->fresh.n > p->old.n) {
        snprintf(why, sizeof why,
                 "the header has no room for %zu bytes more (see the option reserve)",
                 p->fresh.n - p->old.n);
        return refuse(p->c, why);
    }
    if (!grow(&p->fresh, p->old.n))
        return usage_error("out of memory");
    memset(p->fresh.p + p->fresh.n, ' ', p->old.n - p->fresh.n);
    memcpy(p->fresh.p, p->old.p, HEAD);
    p->fresh.n = p->old.n;
    if (!stays(p))
        return refuse(p->c, "its tensors would have to move");
    if (write_header(p))
        return EXIT_DONE;
    file_message(p->c->path, "", TNF_NO_OFFSET, strerror(errno));
    return EXIT_IO;
}

int meta_place(const meta_change *c)
{
    place p = { .c = c, .fd = -1 };
    if (strcmp(c->in->info->format, "safetensors") != 0)
        return refuse(c, "this format leaves no room for changes in place");
    int code = work(&p);
    if (p.fd >= 0)
        close(p.fd);
    free(p.fresh.p);
    free(p.old.p);
    return code;
}
