/* SPDX-License-Identifier: MIT */
/* Finds hidden pickles: bytes after another pickle, unused records and members, bytes that a pickle
 * passes to torch.load(). A program may load them, so their calls are reported. Other bytes are
 * ignored.
 *
 *   80 02 … .        a pickle since protocol 2
 *   c ( ] } …        perhaps an older one: counts if it is complete, or names something dangerous
 *   PK\3\4 …         an archive: its members are scanned
 */
#include "formats/pytorch/ptzip.h"

#include <string.h>

#define IN_ROW  64u /* most consecutive pickles */
#define NESTED  4u  /* most nested files */
#define MEMBERS 1000u
#define MOST    ((uint64_t)64 << 20)

bool tnf_pt_may_be_pickle(const uint8_t *p, size_t n)
{
    if (n < 4)
        return false;
    return (p[0] == 0x80 && p[1] <= 5) || memchr("(c]}lditSVUXKMJILFGN)", p[0], 21) != NULL;
}

static bool names_danger(const tnf_pickle *p)
{
    for (size_t i = 0; i < p->globals.n; i++)
        if (tnf_pickle_dangerous(p->globals.nodes[i]))
            return true;
    return false;
}

static tnf_status ignore_odd(void *ctx, tnf_status status, uint64_t at, const char *text,
                             tnf_error *e)
{
    (void)ctx, (void)status, (void)at, (void)text, (void)e;
    return TNF_OK; /* faults of the archive do not matter here */
}

/* Scans the members of an archive in memory. */
static tnf_status scan_zip(pt_file *f, tnf_str bytes, uint64_t base, const char *name, tnf_error *e)
{
    pt_zip *z = tnf_arena_alloc(f->r->scratch, sizeof *z);
    if (!z)
        return tnf_arena_fail(f->r->scratch, "an archive", e);
    z->f = f;
    z->from = (tnf_zip_from) { .fetch = tnf_memory_fetch,
                               .ctx = &bytes,
                               .size = bytes.n,
                               .arena = f->r->scratch,
                               .max_directory = bytes.n,
                               .max_members = MEMBERS,
                               .odd = ignore_odd };
    if (tnf_zip_read(&z->zip, &z->from, NULL) != TNF_OK)
        return TNF_OK;
    for (size_t i = 0; i < z->zip.n; i++) {
        pt_record record = { .name = z->zip.members[i].name, .member = &z->zip.members[i] };
        tnf_cur c;
        uint64_t size = record.member->size;
        if (size > f->scan_left || tnf_pt_read_record(z, &record, MOST, &c, NULL) != TNF_OK)
            continue;
        f->scan_left -= size;
        TNF_TRY(tnf_pt_scan(f, (tnf_str) { (const char *)c.p, tnf_left(&c) }, base, name, e));
    }
    return TNF_OK;
}

static tnf_status scan_pickles(pt_file *f, tnf_str bytes, uint64_t base, const char *name,
                               tnf_error *e)
{
    size_t at = 0;
    for (unsigned i = 0; i < IN_ROW && at < bytes.n; i++) {
        const uint8_t *here = (const uint8_t *)bytes.p + at;
        tnf_pickle p;
        if (!tnf_pt_may_be_pickle(here, bytes.n - at))
            break;
        tnf_status status = tnf_pickle_read(&p, here, bytes.n - at, base + at, f->r->scratch, NULL);
        if (status == TNF_ENOMEM)
            return tnf_arena_fail(f->r->scratch, "a pickle", e);
        if (names_danger(&p) || (status == TNF_OK && here[0] == 0x80))
            TNF_TRY(tnf_pt_audit(f, &p, name, base + at, e));
        else if (status == TNF_OK && p.used > 8 && p.globals.n)
            TNF_TRY(tnf_pt_audit(f, &p, name, base + at, e));
        if (status != TNF_OK)
            break;
        at += p.used;
    }
    return TNF_OK;
}

tnf_status tnf_pt_scan(pt_file *f, tnf_str bytes, uint64_t base, const char *name, tnf_error *e)
{
    tnf_status status = TNF_OK;
    uint64_t before = f->base;
    if (f->nested == NESTED)
        return TNF_OK;
    f->nested++;
    if (bytes.n >= 4 && memcmp(bytes.p, "PK\3\4", 4) == 0)
        status = scan_zip(f, bytes, base, name, e);
    else if (bytes.n)
        status = scan_pickles(f, bytes, base, name, e);
    f->nested--;
    f->base = before;
    return status;
}

tnf_status tnf_pt_scan_source(pt_file *f, uint64_t at, uint64_t end, const char *name, tnf_error *e)
{
    uint64_t n = end > at ? end - at : 0;
    n = n < f->r->limits.header_bytes ? n : f->r->limits.header_bytes;
    n = n < MOST ? n : MOST;
    uint8_t head[64];
    size_t few = n < sizeof head ? (size_t)n : sizeof head;
    TNF_TRY(tnf_source_read(f->r->source, at, head, few, e));
    bool zip = few >= 4 && memcmp(head, "PK\3\4", 4) == 0;
    if (!zip && !tnf_pt_may_be_pickle(head, few))
        return TNF_OK;
    uint8_t *bytes = tnf_arena_raw(f->r->scratch, n);
    if (!bytes)
        return tnf_arena_fail(f->r->scratch, "a pickle", e);
    TNF_TRY(tnf_source_read(f->r->source, at, bytes, (size_t)n, e));
    f->scan_left += n;
    return tnf_pt_scan(f, (tnf_str) { (const char *)bytes, (size_t)n }, at, name, e);
}

/* torch.storage._load_from_bytes(b"…") calls torch.load() with these bytes. */
tnf_status tnf_pt_scan_call(pt_file *f, const tnf_pickle_node *call, const char *name,
                            uint64_t base, tnf_error *e)
{
    const tnf_pickle_node *arg = tnf_pickle_is_call(call, "torch.storage", "_load_from_bytes")
                                     ? tnf_pickle_arg(call, 0)
                                     : NULL;
    tnf_str bytes;
    bool inner = arg && arg->kind == TNF_PICKLE_CALL;
    const tnf_pickle_node *text = inner ? tnf_pickle_arg(arg, 0) : arg;
    if (!text || (text->kind != TNF_PICKLE_TEXT && text->kind != TNF_PICKLE_BYTES) ||
        text->n > f->scan_left || f->nested == NESTED)
        return TNF_OK;
    f->scan_left -= text->n; /* the same bytes may be named many times */
    tnf_status status = tnf_pt_bytes(&bytes, arg, f->r->scratch, NULL);
    if (status == TNF_ENOMEM)
        return tnf_arena_fail(f->r->scratch, "bytes", e);
    return status == TNF_OK && bytes.p ? tnf_pt_scan(f, bytes, base + arg->at, name, e) : TNF_OK;
}
