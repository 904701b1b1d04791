/* SPDX-License-Identifier: MIT */
/* The same request gives the same file. Every valid fixture, and every model of support/features.h,
 * is converted to every format that can be written, in each of these ways:
 *
 *   tnf_convert() plain │ select "*" │ exclude nothing │ a rename that renames nothing │ beside an
 *   empty file, as merge does │ tnf_save() of a builder, if no vectors have to change
 *
 * each of them once as a real run, once as a dry run, and once with losses allowed: status, plan
 * and bytes are the same each time. */
#include "support/features.h"
#include "support/model.h"
#include <tenfold/convert.h>

#ifdef __SANITIZE_ADDRESS__
#define STEP 9u /* a sample of the fixtures, because this is slow and other tests read all */
#else
#define STEP 1u
#endif

static unsigned long pairs, written, refused, changed;

/* The outcome of one way. */
struct outcome {
    tnf_status status;
    tnf_sink *sink; /* NULL: nothing is written */
    char *plan;     /* a line for each item */
    size_t n;
    FILE *to;
    bool vectors; /* the vectors had to change */
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    struct outcome *o = ctx;
    fprintf(o->to, "%d %s %.*s: %s%s\n", item->fate, item->kind, (int)item->name.n, item->name.p,
            item->reason ? item->reason : "", item->unasked ? " (unasked)" : "");
}

static void begin_outcome(struct outcome *o, bool dry)
{
    *o = (struct outcome) { 0 };
    o->to = open_memstream(&o->plan, &o->n);
    MUST(o->to != NULL);
    if (!dry)
        MUST(tnf_sink_memory(&o->sink, NULL) == TNF_OK);
}

static void end_outcome(struct outcome *o)
{
    tnf_sink_close(o->sink);
    free(o->plan);
}

static tnf_status same_name(void *ctx, tnf_str *out, tnf_str name, tnf_error *error)
{
    char *copy = ctx; /* a different pointer to the same text */
    (void)error;
    if (name.n >= 4096)
        return TNF_OK;
    memcpy(copy, name.p, name.n);
    copy[name.n] = 0;
    *out = (tnf_str) { copy, name.n };
    return TNF_OK;
}

enum way { PLAIN, SELECT, EXCLUDE, RENAME, MERGE, SAVE, WAYS };
static const char *const ways[] = { "plain", "select", "exclude", "rename", "merge", "tnf_save" };

static void save_builder(struct outcome *o, const tnf_file *file, const tnf_save_options *save,
                         tnf_error *error)
{
    tnf_builder *b;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    o->status = tnf_builder_add_file(b, file, error);
    if (o->status == TNF_OK)
        o->status = tnf_save_sink(b, o->sink, save, error);
    tnf_builder_free(b);
}

static void convert_file(struct outcome *o, enum way way, const tnf_file *file,
                         const tnf_save_options *save, tnf_error *error)
{
    static const char *const all[] = { "*" }, *const none[] = { "no tensor is called so" };
    static char names[4096];
    tnf_builder *nothing;
    tnf_file *empty;
    tnf_report *report;
    tnf_convert_options how = TNF_CONVERT_INIT;
    MUST(tnf_builder_new(&nothing, NULL, NULL) == TNF_OK);
    MUST(tnf_open_builder(&empty, nothing, NULL, NULL) == TNF_OK);
    const tnf_file *files[] = { file, empty };
    how.save = save;
    how.sink = o->sink;
    how.select = way == SELECT ? all : NULL;
    how.nselect = way == SELECT;
    how.exclude = way == EXCLUDE ? none : NULL;
    how.nexclude = way == EXCLUDE;
    how.rename = way == RENAME ? same_name : NULL;
    how.rename_ctx = names;
    o->status = tnf_convert(&report, files, way == MERGE ? 2 : 1, NULL, &how, error);
    size_t items = 0;
    for (size_t i = 0; report && i < 4; i++)
        items += report->counts[i];
    for (size_t i = 0; report && i < report->nitems; i++)
        o->vectors = o->vectors ||
                     strstr(tnf_report_item(report, i)->reason, "rows of words") != NULL;
    CHECK(report && report->format && strcmp(report->format, save->format) == 0, "no format");
    CHECK(!report || report->renamed == 0, "something was renamed");
    fflush(o->to);
    size_t lines = 0;
    for (size_t i = 0; i < o->n; i++)
        lines += o->plan[i] == '\n';
    CHECK(items <= lines, "the report has %zu items, the plan %zu", items, lines);
    tnf_report_free(report);
    tnf_close(empty);
    tnf_builder_free(nothing);
}

static void take_way(struct outcome *o, enum way way, const tnf_file *file, const char *format,
                     bool allow, bool dry)
{
    tnf_error error;
    begin_outcome(o, dry);
    tnf_save_options save = { .size = sizeof save, .format = format, .plan = note_item, .ctx = o };
    save.allow_loss = allow;
    save.dry_run = dry;
    if (way == SAVE)
        save_builder(o, file, &save, &error);
    else
        convert_file(o, way, file, &save, &error);
    check_error(o->status, &error);
    fclose(o->to);
}

static void compare_outcomes(const struct outcome *a, const struct outcome *b, bool bytes)
{
    CHECK(a->status == b->status, "%s, not %s", tnf_status_name(b->status),
          tnf_status_name(a->status));
    CHECK(a->n == b->n && memcmp(a->plan, b->plan, a->n) == 0, "another plan:\n%s\nnot\n%s",
          b->plan, a->plan);
    if (!bytes || a->status != TNF_OK)
        return;
    tnf_str x = tnf_sink_bytes(a->sink), y = tnf_sink_bytes(b->sink);
    CHECK(x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0), "other bytes");
}

/* Does only tnf_convert() know which rows belong there? */
static bool is_about_vectors(const tnf_file *file, const char *format)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    MUST(tnf_format_named(&f, format));
    return (f.folds != TNF_FOLD_NONE || f.unfolds != TNF_FOLD_NONE) &&
           tnf_find(file, "embeddings") && tnf_find(file, "vocab");
}

static void try_pair(const tnf_file *file, const char *label, const char *format, bool allow)
{
    struct outcome plain, dry, other;
    check_doing("%s as %s%s", label, format, allow ? ", with losses" : "");
    take_way(&plain, PLAIN, file, format, allow, false);
    take_way(&dry, PLAIN, file, format, allow, true);
    compare_outcomes(&plain, &dry, false);
    for (enum way way = SELECT; way < WAYS; way++) {
        if (way == SAVE && is_about_vectors(file, format))
            continue;
        check_doing("%s as %s%s by %s", label, format, allow ? ", with losses" : "", ways[way]);
        take_way(&other, way, file, format, allow, false);
        compare_outcomes(&plain, &other, true);
        end_outcome(&other);
    }
    pairs++;
    written += plain.status == TNF_OK;
    refused += plain.status == TNF_ELOSSY;
    changed += dry.vectors;
    end_outcome(&dry);
    end_outcome(&plain);
}

static void try_file(const tnf_file *file, const char *label)
{
    for (size_t i = 0; writable_format(i); i++) {
        try_pair(file, label, writable_format(i), false);
        try_pair(file, label, writable_format(i), true);
    }
}

int main(void)
{
    struct feature f;
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i += STEP) {
        const struct fixture *x = &fixtures.list[i];
        tnf_file *file;
        tnf_error error;
        tnf_open_options o = { .size = sizeof o, .lenient = true, .format = x->format };
        check_doing("%s", x->label);
        if (CHECK(tnf_open(&file, x->path, &o, &error) == TNF_OK, "%s", error.message))
            try_file(file, x->label);
        tnf_close(file);
    }
    for (size_t n = 0; feature_at(&f, n); n++) {
        tnf_file *file;
        MUST(tnf_open_builder(&file, f.builder, NULL, NULL) == TNF_OK);
        try_file(file, f.name);
        tnf_close(file);
        tnf_builder_free(f.builder);
    }
    CHECK(changed > 0 && written > 0 && refused > 0, "nothing of a kind was tried");
    printf("%lu pairs by %d ways: %lu written, %lu refused, %lu with other vectors\n", pairs, WAYS,
           written, refused, changed);
    return check_end("one_way");
}
