/* SPDX-License-Identifier: MIT */
/* Records and their names. */
#include "base/named.h"

#include "base/error.h"

#include <string.h>

static tnf_str record_name(const void *ctx, uint32_t position)
{
    tnf_str name;
    memcpy(&name, tnf_named_at(ctx, position), sizeof name);
    return name;
}

void tnf_named_init(tnf_named *list, size_t size, const tnf_allocator *alloc, uint64_t max)
{
    list->size = size;
    tnf_buf_init(&list->records, alloc, max);
    tnf_hash_init(&list->names, alloc, record_name, list);
}

void tnf_named_free(tnf_named *list)
{
    tnf_hash_free(&list->names);
    tnf_buf_free(&list->records);
}

uint32_t tnf_named_count(const tnf_named *list)
{
    return (uint32_t)(list->records.n / list->size);
}

uint32_t tnf_named_find(const tnf_named *list, tnf_str name)
{
    return tnf_hash_find(&list->names, name.p, name.n);
}

void *tnf_named_at(const tnf_named *list, uint32_t position)
{
    return list->records.p + position * list->size;
}

tnf_status tnf_named_add(tnf_named *list, const void *record, uint32_t *previous, tnf_error *e)
{
    size_t before = list->records.n;
    *previous = TNF_HASH_NONE;
    if (tnf_named_count(list) >= TNF_HASH_NONE - 1)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the list has too many entries");
    tnf_buf_put(&list->records, record, list->size);
    TNF_TRY(tnf_buf_status(&list->records, "the list of names", e));
    if (!tnf_hash_add(&list->names, tnf_named_count(list) - 1, false, previous))
        return tnf_no_memory("a list of names", e);
    if (*previous != TNF_HASH_NONE)
        list->records.n = before;
    return TNF_OK;
}
