/* SPDX-License-Identifier: MIT */
#include "plan.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };

void plan_line(FILE *out, const tnf_plan_item *item)
{
    wrapped_text f;
    FILE *to = wrap_begin(&f, out);
    fprintf(to, "  %-11s %-9s ", fates[item->fate], item->kind);
    put_name(to, item->name);
    if (item->reason && *item->reason) {
        fputs(": ", to);
        put_safe(to, item->reason, strlen(item->reason), false);
    }
    putc_unlocked('\n', to);
    wrap_end(&f, 4);
}

void plan_text(const tnf_report *report, const cli_state *cli)
{
    const char *between = "";
    for (size_t i = 0; i < report->nitems; i++)
        if (tnf_report_item(report, i)->fate != TNF_NATIVE || tnf_report_item(report, i)->note ||
            cli->verbose)
            plan_line(stdout, tnf_report_item(report, i));
    for (size_t i = 0; i < 4; i++)
        if (report->counts[i] > 0) {
            printf("%s%zu %s", between, report->counts[i], fates[i]);
            between = ", ";
        }
    puts(*between ? "" : "nothing to write");
}

static void put_item(json *j, const tnf_plan_item *item)
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

void plan_json(const tnf_report *report, char *const *in, size_t n, bool list, const char *out)
{
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "in");
    if (list)
        json_open(&j, '[');
    for (size_t i = 0; i < n; i++)
        json_text(&j, in[i]);
    if (list)
        json_close(&j, ']');
    json_key(&j, "out");
    json_text(&j, out);
    json_key(&j, "format");
    json_text(&j, report->format);
    json_key(&j, "items");
    json_open(&j, '[');
    for (size_t i = 0; i < report->nitems; i++)
        put_item(&j, tnf_report_item(report, i));
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

void plan_refused(const tnf_report *report)
{
    for (size_t i = 0; i < report->nitems; i++)
        if (tnf_report_item(report, i)->fate >= TNF_TRANSFORMED)
            plan_line(stderr, tnf_report_item(report, i));
}

static void put_note(const tnf_plan_item *item, const char *name)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return;
    put_name(to, item->name);
    fputs(": ", to);
    fputs(item->reason, to);
    fclose(to);
    if (text)
        file_message(name, item->late ? "warning: " : "note: ", TNF_NO_OFFSET, text);
    free(text);
}

void plan_notes(const tnf_report *report, const char *name)
{
    for (size_t i = 0; i < report->nitems; i++) {
        const tnf_plan_item *item = tnf_report_item(report, i);
        if (item->unasked || item->late || item->note)
            put_note(item, name);
    }
}
