/* SPDX-License-Identifier: MIT */
/* Pickles of an archive that this reader does not need, but that a program may load: unused records
 * of any name, and records whose own header differs from the directory. */
#include "formats/pytorch/ptzip.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define MOST  ((uint64_t)64 << 20) /* largest record that is checked for pickles */
/* Limit for all of them: ALL plus RATIO times the size of the file. */
#define ALL   ((uint64_t)16 << 20)
#define RATIO 4u

bool tnf_pt_in_folder(const pt_record *r, const char *folder)
{
    size_t n = strlen(folder);
    return r->name.n > n && memcmp(r->name.p, folder, n) == 0;
}

bool tnf_pt_is_pickle_name(tnf_str name)
{
    return (name.n >= 4 && memcmp(name.p + name.n - 4, ".pkl", 4) == 0) ||
           (name.n >= 10 && memcmp(name.p + name.n - 10, ".debug_pkl", 10) == 0);
}

/* Audits a pickle that this reader does not need, but that a program may load. */
static tnf_status audit_record(pt_zip *z, pt_record *r, tnf_error *e)
{
    tnf_cur c;
    tnf_pickle p;
    tnf_error said;
    const char *name = tnf_arena_str(z->f->r->arena, r->name.p, r->name.n);
    if (!name)
        return tnf_arena_fail(z->f->r->arena, "a record", e);
    TNF_TRY(tnf_pt_read_record(z, r, PT_MAX_PICKLE, &c, e));
    uint64_t base = tnf_where(&c);
    tnf_status status = tnf_pickle_read(&p, c.p, tnf_left(&c), base, z->f->r->scratch, &said);
    if (status == TNF_ENOMEM)
        return tnf_fail(e, status, base, "%s", said.message);
    if (status != TNF_OK)
        tnf_warn(z->f->r, said.offset, "%.60s: %.150s", name, said.message);
    return tnf_pt_audit(z->f, &p, name, base, e);
}

/* Checks a record that may be a pickle, whatever its name is. Its header is compared with the
 * directory, since a program that reads only one of them sees another file. *yes: the record begins
 * like a pickle of protocol 2 or later; older pickles are reported only if they name something. */
static tnf_status scan_record(pt_zip *z, pt_record *r, bool *yes, tnf_error *e)
{
    uint8_t head[4];
    tnf_cur c;
    tnf_error said = { .offset = TNF_NO_OFFSET };
    *yes = false;
    if (r->member->size < sizeof head)
        return tnf_pt_locate_record(z, r, e);
    tnf_status status = tnf_pt_read_head(z, r, head, sizeof head, &said);
    if (status != TNF_OK && !tnf_is_file_fault(status))
        return tnf_fail(e, status, said.offset, "%s", said.message);
    if (status != TNF_OK)
        return tnf_pt_locate_record(z, r, e); /* verify() reads its bytes */
    bool archive = memcmp(head, "PK\3\4", 4) == 0;
    if (!archive && !tnf_pt_may_be_pickle(head, sizeof head))
        return TNF_OK;
    z->f->scanned += r->member->size < MOST ? r->member->size : 0;
    if (z->f->scanned > ALL + RATIO * z->from.size) {
        tnf_warn(z->f->r, r->offset,
                 "%s may be a pickle, but was not checked, because there are too many such records",
                 TNF_QUOTED(r->name));
        return TNF_OK;
    }
    status = tnf_pt_read_record(z, r, MOST, &c, &said);
    if (status != TNF_OK && !tnf_is_file_fault(status))
        return tnf_fail(e, status, said.offset, "%s", said.message);
    *yes = head[0] == 0x80 && head[1] >= 2;
    r->used = false;
    r->compared = false; /* verify() reads it again: it may be damaged */
    if (status != TNF_OK) {
        tnf_warn(z->f->r, said.offset, "%.150s", said.message);
        return TNF_OK;
    }
    const char *name = tnf_arena_str(z->f->r->arena, r->name.p, r->name.n);
    if (!name)
        return tnf_arena_fail(z->f->r->arena, "a record", e);
    z->f->scan_left += tnf_left(&c);
    return tnf_pt_scan(z->f, (tnf_str) { (const char *)c.p, tnf_left(&c) }, tnf_where(&c), name, e);
}

static bool is_known_record(const pt_record *r)
{
    static const char *const known[] = { "version", ".data/version", "model.json",
                                         ".data/serialization_id" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tnf_str_is(r->name, known[i]))
            return true;
    return r->name.p[r->name.n - 1] == '/' || tnf_pt_in_folder(r, "code/") ||
           tnf_pt_in_folder(r, "extra/");
}

tnf_status tnf_pt_check_others(pt_zip *z, tnf_error *e)
{
    unsigned long unused = 0;
    const pt_record *first = NULL;
    for (uint32_t i = 0; i < tnf_named_count(&z->records); i++) {
        pt_record *r = tnf_named_at(&z->records, i);
        if (r->used)
            continue;
        bool pickle = tnf_pt_is_pickle_name(r->name), known = is_known_record(r);
        tnf_status status = TNF_OK;
        if (pickle)
            status = audit_record(z, r, e);
        else if (!known || r->member->size >= 4)
            status = scan_record(z, r, &pickle, e);
        bool lost = status != TNF_OK && tnf_lose(z->f->r, status, e);
        if (!lost)
            TNF_TRY(status);
        if (!pickle && !known && !lost)
            first = unused++ ? first : r;
    }
    if (unused)
        tnf_warn(z->f->r, first->member->at, "%lu record%s unused, the first is %s", unused,
                 unused == 1 ? " is" : "s are", TNF_QUOTED(first->name));
    return TNF_OK;
}

/* Adds the names that a pickle with differing headers would call to the message. */
void tnf_pt_name_hidden_calls(pt_zip *z, pt_record *r, tnf_error *e)
{
    uint8_t head[30];
    tnf_pickle p;
    char names[100];
    tnf_reader *reader = z->f->r;
    uint64_t size = r->member->size < 1 << 20 ? r->member->size : 1 << 20;
    if (!e || r->member->method != TNF_ZIP_STORED ||
        z->from.fetch(z->from.ctx, r->member->header, head, sizeof head, NULL) != TNF_OK)
        return;
    uint64_t at = r->member->header + 30 + tnf_le16(head + 26) + tnf_le16(head + 28);
    uint8_t *bytes = tnf_arena_raw(reader->scratch, size + 1);
    if (!bytes || z->from.fetch(z->from.ctx, at, bytes, (size_t)size, NULL) != TNF_OK)
        return;
    (void)tnf_pickle_read(&p, bytes, (size_t)size, at, reader->scratch, NULL);
    (void)tnf_pt_audit(z->f, &p, "data.pkl", at, NULL);
    tnf_pt_name_calls(names, sizeof names, &p, reader->scratch);
    size_t n = strlen(e->message);
    if (names[0])
        snprintf(e->message + n, sizeof e->message - n, "; its pickle names %s", names);
}
