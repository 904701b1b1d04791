/* SPDX-License-Identifier: MIT */
/* Writes a file with other attributes. A trial in memory first checks that the new attributes are
 * read back unchanged. Then the file itself is changed, in place if possible. */
#include "meta_save.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TRIAL_BYTES ((uint64_t)16 << 20) /* smaller files are tried with all tensors */

/* The search begins at the likely position of the key, since a change moves few keys. */
static const tnf_value *find_member(const tnf_value *map, tnf_str key, size_t likely)
{
    size_t n = map ? map->n : 0;
    size_t at = n == 0 ? 0 : likely == 0 ? n - 1 : (likely - 1) % n;
    for (size_t i = 0; i < n; i++, at = at + 1 == n ? 0 : at + 1) {
        const tnf_member *m = &map->as.members[at];
        if (m->key.n == key.n && !memcmp(m->key.p, key.p, key.n))
            return &m->value;
    }
    return NULL;
}

static bool same_value(const tnf_value *a, const tnf_value *b)
{
    return a && b ? meta_equal(a, b) : a == b;
}

/* Applies new, changed and removed attributes to the builder. */
static tnf_status apply_change(const meta_change *c, tnf_builder *b, tnf_error *error)
{
    tnf_status status = TNF_OK;
    const tnf_str name = { c->tensor, c->tensor ? strlen(c->tensor) : 0 };
    const tnf_str *owner = c->tensor ? &name : NULL;
    for (size_t i = 0; status == TNF_OK && i < c->before->n; i++) {
        const tnf_member *m = &c->before->as.members[i];
        if (!find_member(c->after, m->key, i))
            status = tnf_builder_set_n(b, owner, m->key, NULL, error);
    }
    for (size_t i = 0; status == TNF_OK && i < c->after->n; i++) {
        const tnf_member *m = &c->after->as.members[i];
        if (!same_value(find_member(c->before, m->key, i), &m->value))
            status = tnf_builder_set_n(b, owner, m->key, &m->value, error);
    }
    return status;
}

/* ------------------------------------------------------------------- trial */

/* Adds everything of a small file; of a large one only the attributes and the changed tensor. */
static tnf_status fill_trial(const meta_change *c, tnf_builder *b, tnf_error *error)
{
    const tnf_value *attrs = c->in->info->attrs;
    if (c->in->info->payload <= TRIAL_BYTES)
        return tnf_builder_add_file(b, c->in->file, error);
    tnf_status status = TNF_OK;
    if (c->tensor)
        status = tnf_builder_add_object(b, tnf_find(c->in->file, c->tensor), NULL, error);
    for (size_t i = 0; status == TNF_OK && i < attrs->n; i++)
        status = tnf_builder_set_n(b, NULL, attrs->as.members[i].key, &attrs->as.members[i].value,
                                   error);
    return status;
}

static const tnf_value *attrs_of(const tnf_file *file, const char *tensor)
{
    const tnf_object *o = tensor ? tnf_find(file, tensor) : NULL;
    return !tensor ? tnf_file_info(file)->attrs : o ? o->attrs : NULL;
}

/* The first key that was not read back as expected, or none: p is NULL. */
static tnf_str lost_key(const meta_change *c, const tnf_value *now)
{
    for (size_t i = 0; i < c->before->n; i++) {
        tnf_str key = c->before->as.members[i].key;
        if (!find_member(c->after, key, i) && find_member(now, key, i))
            return key;
    }
    for (size_t i = 0; i < c->after->n; i++) {
        const tnf_member *m = &c->after->as.members[i];
        if (!same_value(find_member(c->before, m->key, i), &m->value) &&
            !same_value(find_member(now, m->key, i), &m->value))
            return m->key;
    }
    return (tnf_str) { NULL, 0 };
}

static bool reads_back(const meta_change *c, tnf_str bytes)
{
    tnf_open_options how = { .size = sizeof how, .lenient = c->lenient };
    tnf_source *source;
    tnf_file *file = NULL;
    tnf_error error;
    how.format = c->in->info->format;
    tnf_status status = tnf_source_memory(&source, bytes.p, bytes.n, &error);
    if (status == TNF_OK)
        status = tnf_open_source(&file, source, &how, &error);
    if (status != TNF_OK)
        return meta_fail(c->editor, "the changed file could not be read: %s", error.message);
    tnf_str lost = lost_key(c, attrs_of(file, c->tensor));
    if (lost.p)
        meta_message(c->editor,
                     "'%.*s' cannot be set, since its value follows from the rest of the file",
                     (int)shown_bytes(lost.p, lost.n, 160), lost.p);
    tnf_close(file);
    return !lost.p;
}

/* Returns false if the attributes would not be read back. If the trial itself fails, saving reports
 * the error later. */
static bool try_change(const meta_change *c, const tnf_save_options *save)
{
    tnf_builder *b;
    tnf_sink *sink = NULL;
    tnf_error error;
    bool good = true;
    tnf_save_options how = { .size = sizeof how, .format = save->format, .allow_loss = true };
    how.options = save->options;
    how.noptions = save->noptions;
    how.like = save->like;
    const tnf_object *o = c->tensor ? tnf_find(c->in->file, c->tensor) : NULL;
    if (o && object_bytes(o) > TRIAL_BYTES)
        return true;
    if (tnf_builder_new(&b, NULL, &error) != TNF_OK)
        return true;
    if (tnf_sink_memory(&sink, &error) == TNF_OK && fill_trial(c, b, &error) == TNF_OK &&
        apply_change(c, b, &error) == TNF_OK && tnf_save_sink(b, sink, &how, &error) == TNF_OK)
        good = reads_back(c, tnf_sink_bytes(sink));
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return good;
}

/* -------------------------------------------------------------------- save */

/* A change in place would also be visible under other hard links, so the user must request it. */
static bool has_one_name(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_nlink == 1;
}

/* Returns TNF_EUNSUPPORTED if a change in place is impossible; then nothing has changed. */
static tnf_status in_place(const meta_change *c, const tnf_save_options *how, tnf_error *error)
{
    if (c->where == META_ANEW || (c->where == META_WHERE_IT_FITS && !has_one_name(c->path)))
        return TNF_EUNSUPPORTED;
    tnf_save_options o = *how;
    o.shift = c->where == META_SHIFT;
    return tnf_save_in_place(c->editor->builder, c->path, &o, error);
}

static bool only_in_place(const meta_change *c)
{
    return c->where == META_IN_PLACE || c->where == META_SHIFT;
}

static tnf_status save_to(const meta_change *c, const tnf_save_options *how, saving *s,
                          tnf_error *error)
{
    stop_state before;
    stop_catch(&before);
    progress_begin(&s->progress, c->in->cli);
    tnf_status status = in_place(c, how, error);
    bool anew = status == TNF_EUNSUPPORTED && !only_in_place(c);
    if (anew)
        status = tnf_save(c->editor->builder, c->path, how, error);
    progress_end(&s->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    if (was_done(status) && c->in->cli->verbose && !c->in->cli->quiet)
        file_message(c->path, "", TNF_NO_OFFSET, anew ? "rewritten" : "changed in place");
    return status;
}

/* A dry run first checks that nothing is lost. So the trial may allow losses, which come only from
 * its own limits. */
static tnf_status rehearse_save(const meta_change *c, const tnf_save_options *how, tnf_error *error)
{
    tnf_save_options dry = *how;
    dry.dry_run = true;
    tnf_status status = tnf_builder_add_file(c->editor->builder, c->in->file, error);
    if (status == TNF_OK)
        status = apply_change(c, c->editor->builder, error);
    return status == TNF_OK ? tnf_save(c->editor->builder, c->path, &dry, error) : status;
}

static bool has_reserve(const char *format)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    const tnf_option_info *o = tnf_format_named(&f, format) ? f.write_options : NULL;
    while (o && o->name && strcmp(o->name, "reserve") != 0)
        o++;
    return o && o->name;
}

/* Reports why a change in place was impossible, and the alternatives. */
static int refuse_in_place(const meta_change *c, const tnf_error *error)
{
    char text[400];
    bool room = has_reserve(c->in->info->format);
    snprintf(text, sizeof text, "%s; without --%s the file is rewritten%s", error->message,
             c->where == META_SHIFT ? "shift" : "in-place",
             room ? ", and --reserve SIZE leaves room for later changes" : "");
    file_message(c->path, "", TNF_NO_OFFSET, text);
    return EXIT_BAD;
}

/* Prints the plan to stderr, or collects it in memory until the change is refused. */
static void on_plan(void *ctx, const tnf_plan_item *item)
{
    const saving *s = ctx;
    if (s->kept ? item->fate >= TNF_TRANSFORMED : s->cli->verbose)
        plan_line(s->kept ? s->kept : stderr, item);
}

int meta_save(const meta_change *c, tnf_save_options *how)
{
    saving s = { .cli = c->in->cli };
    tnf_error error;
    char *refused = NULL;
    size_t n = 0;
    how->format = c->in->info->format;
    how->like = c->in->file;
    how->plan = on_plan;
    how->progress = saving_progress;
    how->ctx = &s;
    s.kept = s.cli->verbose ? NULL : open_memstream(&refused, &n);
    tnf_status status = rehearse_save(c, how, &error);
    if (s.kept)
        fclose(s.kept);
    if (status == TNF_ELOSSY && refused)
        fwrite(refused, 1, n, stderr);
    free(refused);
    how->plan = NULL; /* the plan was reported already */
    if (status == TNF_OK && !try_change(c, how)) {
        file_message(c->in->name, "", TNF_NO_OFFSET, c->editor->why);
        return EXIT_LOSSY;
    }
    bool ready = status == TNF_OK;
    if (ready)
        status = save_to(c, how, &s, &error);
    if (ready && status == TNF_EUNSUPPORTED && only_in_place(c))
        return refuse_in_place(c, &error);
    if (status != TNF_EEXISTS)
        return status == TNF_OK       ? EXIT_DONE
               : status == TNF_ELOSSY ? loss_error(c->path, &error)
                                      : file_error(c->path, &error);
    file_message(c->path, "", TNF_NO_OFFSET, "already exists; use --force to replace it");
    return EXIT_IO;
}
