/* SPDX-License-Identifier: MIT */
/* Reading a manifest of hashes and telling what differs from it. */
#include "hash_check.h"
#include "out.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void hash_text(char out[HASH_TEXT], const uint8_t hash[32])
{
    memcpy(out, "sha256:", HASH_PREFIX);
    for (size_t i = 0; i < 32; i++)
        snprintf(out + HASH_PREFIX + 2 * i, 3, "%02x", hash[i]);
}

/* ---------------------------------------------------------------- reading */

static bool parse_line(hash_item *item, char *line)
{
    size_t hex = strspn(line, "0123456789abcdefABCDEF");
    if (hex != 64 || strncmp(line + 64, "  ", 2) != 0)
        return false;
    for (size_t i = 0; i < 64; i++)
        item->hex[i] = (char)(line[i] >= 'A' && line[i] <= 'F' ? line[i] - 'A' + 'a' : line[i]);
    item->hex[64] = 0;
    item->name = strdup(line + 66);
    item->n = item->name ? unescape(item->name) : 0;
    return item->name != NULL;
}

static bool add_line(hash_list *l, char *line)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        hash_item *more = realloc(l->items, room * sizeof *more);
        if (!more)
            return false;
        l->items = more;
        l->room = room;
    }
    l->items[l->n] = (hash_item) { 0 };
    if (!parse_line(&l->items[l->n], line))
        return false;
    l->n++;
    return true;
}

static int compare(const char *a, size_t an, const char *b, size_t bn)
{
    int c = memcmp(a, b, an < bn ? an : bn);
    return c ? c : an < bn ? -1 : an > bn;
}

static int by_name(const void *a, const void *b)
{
    const hash_item *x = a, *y = b;
    return compare(x->name, x->n, y->name, y->n);
}

int hash_list_read(hash_list *out, const char *path)
{
    *out = (hash_list) { 0 };
    bool standard = strcmp(path, "-") == 0;
    FILE *from = standard ? stdin : fopen(path, "r");
    if (!from) {
        file_message(path, "", TNF_NO_OFFSET, strerror(errno));
        return EXIT_IO;
    }
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t n;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && (n = getline(&line, &room, from)) > 0) {
        number++;
        line[n - (line[n - 1] == '\n')] = 0;
        if (!add_line(out, line)) {
            char text[80];
            snprintf(text, sizeof text, "line %zu is not a hash and a name", number);
            file_message(shown_path(path), "", TNF_NO_OFFSET, text);
            code = EXIT_BAD;
        }
    }
    if (code == EXIT_DONE && !feof(from)) {
        file_message(shown_path(path), "", TNF_NO_OFFSET, strerror(errno));
        code = EXIT_IO;
    }
    free(line);
    if (!standard)
        fclose(from);
    if (out->n)
        qsort(out->items, out->n, sizeof *out->items, by_name);
    return code;
}

bool hash_list_has_file(const hash_list *l)
{
    struct stat st;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].name, "-") == 0 || stat(l->items[i].name, &st) == 0)
            return true;
    return false;
}

void hash_list_free(hash_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].name);
    free(list->items);
}

/* ---------------------------------------------------------------- telling */

void hash_list_found(hash_list *l, tnf_str name, const char *hex)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        hash_item *item = &l->items[middle];
        int c = compare(name.p, name.n, item->name, item->n);
        if (c == 0) {
            item->differs = item->differs || strcmp(item->hex, hex + HASH_PREFIX) != 0;
            item->found = true;
            return;
        }
        if (c < 0)
            high = middle;
        else
            low = middle + 1;
    }
    l->unlisted++;
}

static void put_line(const cli_state *cli, const hash_item *item, bool ok, const char *what)
{
    if (ok && cli->quiet)
        return;
    put_safe(stdout, item->name, item->n, true);
    printf(": %s%s%s\n", painted(cli, ok ? PAINT_GREEN : PAINT_RED), what, painted(cli, PAINT_OFF));
}

int hash_item_tell(const cli_state *cli, const hash_item *item, const char *hex)
{
    bool ok = strcmp(item->hex, hex + HASH_PREFIX) == 0;
    put_line(cli, item, ok, ok ? "ok" : "DIFFERS");
    return ok ? EXIT_DONE : EXIT_DIFFERS;
}

int hash_list_tell(const cli_state *cli, const hash_list *l)
{
    bool all = l->unlisted == 0;
    for (size_t i = 0; i < l->n; i++) {
        const hash_item *item = &l->items[i];
        bool ok = item->found && !item->differs;
        put_line(cli, item, ok, ok ? "ok" : item->found ? "DIFFERS" : "MISSING");
        all = all && ok;
    }
    if (l->unlisted)
        printf("%zu tensor%s not in the manifest\n", l->unlisted,
               l->unlisted == 1 ? " is" : "s are");
    return all ? EXIT_DONE : EXIT_DIFFERS;
}
