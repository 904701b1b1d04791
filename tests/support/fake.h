/* SPDX-License-Identifier: MIT */
/* A handle made by hand for a format that does not exist, to test the functions of the core that
 * formats call while they index. */
#ifndef TNF_SUPPORT_FAKE_H
#define TNF_SUPPORT_FAKE_H

#include "core/core.h"
#include "memory.h"
#include "unit.h"

struct fake {
    struct memory_log log;
    tnf_format format;
    tnf_arena scratch;
    tnf_file *file;
    tnf_reader *r;
    unsigned warned, traced;
    char warning[240], trace[240]; /* the last ones */
};

static inline void fake_warn(void *ctx, const tnf_warning *w)
{
    struct fake *f = ctx;
    f->warned++;
    snprintf(f->warning, sizeof f->warning, "%s", w->message);
}

static inline void fake_trace(void *ctx, uint64_t offset, const char *line)
{
    struct fake *f = ctx;
    (void)offset;
    f->traced++;
    snprintf(f->trace, sizeof f->trace, "%s", line);
}

/* A file of n bytes, ready to be indexed. */
static inline void fake_begin(struct fake *f, const void *bytes, size_t n, unsigned rules,
                              bool lenient)
{
    *f = (struct fake) { 0 };
    f->format = (tnf_format) { .name = "fake", .family = "fake", .rules = rules };
    tnf_allocator a = memory_allocator(&f->log);
    tnf_file *file = f->file = calloc(1, sizeof *file);
    file->alloc = a;
    file->format = &f->format;
    file->options.size = sizeof file->options;
    file->options.warn = fake_warn;
    file->options.trace = fake_trace;
    file->options.ctx = f;
    file->options.limits = (tnf_limits) { 1 << 20, 1 << 24, 1000, 8, 8, 100, 0, 0, { 0 } };
    tnf_arena_init(&file->arena, &a, 1 << 24);
    tnf_arena_init(&f->scratch, &a, 1 << 24);
    tnf_catalog_init(&file->catalog, &file->arena);
    file->text.arena = &file->arena;
    assert_int_equal(tnf_source_memory(&file->source, bytes, n, NULL), TNF_OK);
    file->reader = (tnf_reader) { .arena = &file->arena,
                                  .scratch = &f->scratch,
                                  .source = file->source,
                                  .catalog = &file->catalog,
                                  .limits = file->options.limits,
                                  .lenient = lenient,
                                  .file = file };
    file->origin.source = file->source;
    file->origin.format = &f->format;
    file->origin.reader = &file->reader;
    f->r = &file->reader;
}

static inline void fake_end(struct fake *f)
{
    tnf_catalog_free(&f->file->catalog);
    tnf_arena_free(&f->file->arena);
    tnf_arena_free(&f->scratch);
    tnf_source_close(f->file->source);
    free(f->file);
    assert_int_equal(f->log.blocks, 0);
    assert_int_equal(f->log.wrong_sizes, 0);
}

/* A u8 vector of n bytes at offset. */
static inline tnf_status fake_add(struct fake *f, const char *name, uint64_t offset, uint64_t n,
                                  tnf_error *e)
{
    tnf_dense d = { .name = { name, strlen(name) },
                    .type = tnf_type_of(TNF_U8),
                    .shape = &n,
                    .rank = 1,
                    .offset = offset,
                    .length = n,
                    .at = 1000 + offset };
    return tnf_add_dense(f->r, &d, e);
}

#endif
