/* SPDX-License-Identifier: MIT */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };

static void start(plan *p, plan_style style, const cli_state *cli)
{
    *p = (plan) { .style = style, .cli = cli, .json = { stdout, false }, .open = true };
    if (style == PLAN_KEEP)
        p->kept = open_memstream(&p->kept_text, &p->kept_n);
    if (style != PLAN_JSON)
        return;
    json_open(&p->json, '{');
    json_key(&p->json, "in");
}

static void ends(plan *p, const char *out, const char *format)
{
    json_key(&p->json, "out");
    json_text(&p->json, out);
    json_key(&p->json, "format");
    json_text(&p->json, format);
    json_key(&p->json, "items");
    json_open(&p->json, '[');
}

void plan_begin(plan *p, plan_style style, const cli_state *cli, const char *in, const char *out,
                const char *format)
{
    start(p, style, cli);
    if (style != PLAN_JSON)
        return;
    json_text(&p->json, in);
    ends(p, out, format);
}

void plan_begin_many(plan *p, plan_style style, const cli_state *cli, char *const *in, size_t n,
                     const char *out, const char *format)
{
    start(p, style, cli);
    if (style != PLAN_JSON)
        return;
    json_open(&p->json, '[');
    for (size_t i = 0; i < n; i++)
        json_text(&p->json, in[i]);
    json_close(&p->json, ']');
    ends(p, out, format);
}

static void item_line(FILE *to, const tnf_plan_item *item)
{
    fprintf(to, "  %-11s %-9s ", fates[item->fate], item->kind);
    put_name(to, item->name);
    if (item->reason && *item->reason) {
        fputs(": ", to);
        put_safe(to, item->reason, strlen(item->reason), false);
    }
    putc_unlocked('\n', to);
}

static void item_json(json *j, const tnf_plan_item *item)
{
    json_line(j);
    json_open(j, '{');
    json_key(j, "fate");
    json_text(j, fates[item->fate]);
    json_key(j, "kind");
    json_text(j, item->kind);
    json_key(j, "name");
    json_str(j, item->name);
    json_key(j, "reason");
    json_text(j, item->reason);
    json_close(j, '}');
}

static bool is_told(const plan *p, const tnf_plan_item *item)
{
    return p->told && item->fate == TNF_NATIVE && strcmp(item->kind, "tensor") == 0 &&
           item->name.n == strlen(p->told) && memcmp(item->name.p, p->told, item->name.n) == 0;
}

/* What was changed unasked is told when it is done. */
static void keep_note(plan *p, const tnf_plan_item *item)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = p->nnotes < PLAN_NOTES ? open_memstream(&text, &n) : NULL;
    if (!to)
        return;
    put_name(to, item->name);
    fputs(": ", to);
    fputs(item->reason, to);
    fclose(to);
    if (text)
        p->notes[p->nnotes++] = text;
}

void plan_item(plan *p, const tnf_plan_item *item)
{
    if (is_told(p, item))
        return;
    if (item->unasked && p->style == PLAN_KEEP)
        keep_note(p, item);
    p->counts[item->fate]++;
    bool simple = item->fate == TNF_NATIVE;
    switch (p->style) {
    case PLAN_KEEP:
        if (p->kept && item->fate >= TNF_TRANSFORMED)
            item_line(p->kept, item);
        break;
    case PLAN_VERBOSE:
        item_line(stderr, item);
        break;
    case PLAN_TEXT:
        if (!simple || p->cli->verbose)
            item_line(stdout, item);
        break;
    case PLAN_JSON:
        item_json(&p->json, item);
        break;
    }
}

void plan_end(plan *p)
{
    if (!p->open)
        return;
    p->open = false;
    if (p->style == PLAN_TEXT) {
        const char *between = "";
        for (size_t i = 0; i < 4; i++)
            if (p->counts[i] > 0) {
                printf("%s%zu %s", between, p->counts[i], fates[i]);
                between = ", ";
            }
        puts(*between ? "" : "nothing to write");
    } else if (p->style == PLAN_JSON) {
        json_close(&p->json, ']');
        json_close(&p->json, '}');
        putchar('\n');
    }
    flush_out();
}

void plan_refused(plan *p)
{
    if (!p->kept)
        return;
    fflush(p->kept);
    if (p->kept_n > 0)
        fwrite(p->kept_text, 1, p->kept_n, stderr);
}

void plan_notes(const plan *p, const char *name)
{
    for (size_t i = 0; i < p->nnotes && !p->cli->quiet; i++)
        file_message(name, "note: ", TNF_NO_OFFSET, p->notes[i]);
}

void plan_free(plan *p)
{
    for (size_t i = 0; i < p->nnotes; i++)
        free(p->notes[i]);
    p->nnotes = 0;
    if (p->kept)
        fclose(p->kept);
    free(p->kept_text);
    p->kept = NULL;
    p->kept_text = NULL;
}
