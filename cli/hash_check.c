/* SPDX-License-Identifier: MIT */
/* Reads a manifest of hashes and reports differences. */
#include "hash_check.h"
#include "grow.h"
#include "out.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void hash_text(char out[HASH_TEXT], const uint8_t hash[32])
{
    memcpy(out, "sha256:", HASH_PREFIX);
    hex_text(out + HASH_PREFIX, hash, 32);
}

/* ---------------------------------------------------------------- reading */

/* Skips 64 digits and two blanks; returns NULL if the line does not begin with them. */
static char *parse_hex(char hex[65], char *line)
{
    if (strspn(line, "0123456789abcdefABCDEF") != 64 || strncmp(line + 64, "  ", 2) != 0)
        return NULL;
    for (size_t i = 0; i < 64; i++)
        hex[i] = (char)(line[i] >= 'A' && line[i] <= 'F' ? line[i] - 'A' + 'a' : line[i]);
    hex[64] = 0;
    return line + 66;
}

static const char no_memory[] = "out of memory";

/* Returns an error message for the line, or NULL. */
static const char *add_item(hash_list *l, char *line)
{
    hash_item item = { 0 };
    char *name = parse_hex(item.hex, line + sizeof HASH_LINE - 1);
    if (!name)
        return "expected a hash and a name";
    hash_item *items = grow_array(l->items, l->n, &l->room, sizeof *items, 16);
    if (!items)
        return no_memory;
    l->items = items;
    if (!(item.name = strdup(name)))
        return no_memory;
    item.n = unescape_text(item.name);
    l->items[l->n++] = item;
    return NULL;
}

static const char *add_leaf(hash_list *l, char *line)
{
    hash_leaf leaf = { 0 };
    hash_item *item = l->n ? &l->items[l->n - 1] : NULL;
    char *offset = parse_hex(leaf.hex, line + sizeof HASH_LEAF - 1), *name = NULL;
    if (offset && *offset >= '0' && *offset <= '9')
        leaf.offset = strtoull(offset, &name, 10);
    if (!name || strncmp(name, "  ", 2) != 0)
        return "expected a hash, an offset and a name";
    size_t n = unescape_text(name += 2);
    if (!item || n <= item->n || memcmp(name, item->name, item->n) != 0 || name[item->n] != '#')
        return "the line of a leaf must follow the line of its tensor";
    hash_leaf *leaves = grow_array(item->leaves, item->nleaves, &item->room, sizeof *leaves, 16);
    if (!leaves)
        return no_memory;
    item->leaves = leaves;
    if (!(leaf.role = strdup(name + item->n + 1)))
        return no_memory;
    item->leaves[item->nleaves++] = leaf;
    l->leaves = true;
    return NULL;
}

static const char *add_line(hash_list *l, char *line)
{
    char hex[65];
    if (strncmp(line, HASH_LINE, sizeof HASH_LINE - 1) == 0)
        return add_item(l, line);
    if (strncmp(line, HASH_LEAF, sizeof HASH_LEAF - 1) == 0)
        return add_leaf(l, line);
    if (parse_hex(hex, line))
        return "the hash has the old version 1; make the manifest again with this version of "
               "tenfold";
    if (line[0] == 'v' && line[1] >= '0' && line[1] <= '9')
        return "the hash has an unsupported version; this version of tenfold supports version 2";
    return "expected a hash and a name";
}

static int by_name(const void *a, const void *b)
{
    const hash_item *x = a, *y = b;
    return compare_texts((tnf_str) { x->name, x->n }, (tnf_str) { y->name, y->n });
}

static int by_place(const void *a, const void *b)
{
    const hash_leaf *x = a, *y = b;
    int c = strcmp(x->role, y->role);
    return c ? c : x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort_list(hash_list *l)
{
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_name);
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].nleaves)
            qsort(l->items[i].leaves, l->items[i].nleaves, sizeof *l->items[i].leaves, by_place);
}

static int read_lines(hash_list *out, FILE *from, const char *path)
{
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t n;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && (n = getline(&line, &room, from)) > 0) {
        number++;
        line[n - (line[n - 1] == '\n')] = 0;
        const char *wrong = add_line(out, line);
        if (wrong) {
            char text[160];
            if (wrong == no_memory) {
                code = memory_error();
                break;
            }
            snprintf(text, sizeof text, "line %zu: %s", number, wrong);
            file_message(shown_path(path), "", TNF_NO_OFFSET, text);
            code = EXIT_BAD;
        }
    }
    free(line);
    return code;
}

int hash_list_read(hash_list *out, const char *path)
{
    *out = (hash_list) { 0 };
    bool standard = strcmp(path, "-") == 0;
    FILE *from = standard ? stdin : fopen(path, "r");
    if (!from)
        return cannot_open(path, errno);
    int code = read_lines(out, from, path);
    if (code == EXIT_DONE && !feof(from))
        code = ferror(from) ? cannot_read(path, errno) : memory_error();
    if (!standard)
        fclose(from);
    sort_list(out);
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
    for (size_t i = 0; i < list->n; i++) {
        hash_item *item = &list->items[i];
        for (size_t k = 0; k < item->nleaves; k++)
            free(item->leaves[k].role);
        free(item->leaves);
        free(item->name);
    }
    free(list->items);
}

/* -------------------------------------------------------------- reporting */

static hash_item *find_item(const hash_list *l, tnf_str name)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        hash_item *item = &l->items[middle];
        int c = compare_texts(name, (tnf_str) { item->name, item->n });
        if (c == 0)
            return item;
        if (c < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void hash_list_found(hash_list *l, tnf_str name, const char *hex)
{
    hash_item *item = find_item(l, name);
    if (!item) {
        l->unlisted++;
        return;
    }
    item->differs = item->differs || strcmp(item->hex, hex + HASH_PREFIX) != 0;
    item->found = true;
}

void hash_list_found_leaf(hash_list *l, const tnf_leaf *leaf, const char *hex)
{
    hash_item *item = find_item(l, leaf->object->name);
    hash_leaf key = { .offset = leaf->offset }, *at = NULL;
    char *role = item && item->nleaves ? strdup(leaf->part->role) : NULL;
    if (!role)
        return;
    key.role = role;
    at = bsearch(&key, item->leaves, item->nleaves, sizeof key, by_place);
    free(role);
    if (!at) {
        item->unlisted += leaf->nbytes;
        return;
    }
    at->found = true;
    at->nbytes = leaf->nbytes;
    at->differs = strcmp(at->hex, hex + HASH_PREFIX) != 0;
}

static void put_line(const cli_state *cli, const hash_item *item, bool ok, const char *what)
{
    if (ok && cli->quiet)
        return;
    put_safe(stdout, item->name, item->n, true);
    printf(": %s%s%s\n", paint_code(cli, ok ? PAINT_GREEN : PAINT_RED), what,
           paint_code(cli, PAINT_OFF));
}

int hash_item_tell(const cli_state *cli, const hash_item *item, const char *hex)
{
    bool ok = strcmp(item->hex, hex + HASH_PREFIX) == 0;
    put_line(cli, item, ok, ok ? "ok" : "DIFFERS");
    return ok ? EXIT_DONE : EXIT_DIFFERS;
}

/* The end of a run of leaves with the same result. */
static size_t run_end(const hash_item *item, size_t i)
{
    const hash_leaf *first = &item->leaves[i];
    while (++i < item->nleaves && item->leaves[i].found == first->found &&
           item->leaves[i].differs == first->differs &&
           strcmp(item->leaves[i].role, first->role) == 0)
        ;
    return i;
}

/* Reports which bytes of a tensor differ, as far as the manifest has leaves of it. */
static void tell_leaves(const hash_item *item)
{
    for (size_t i = 0, end; i < item->nleaves; i = end) {
        const hash_leaf *first = &item->leaves[i], *last;
        end = run_end(item, i);
        last = &item->leaves[end - 1];
        if (first->found && !first->differs)
            continue;
        fputs("  ", stdout);
        put_safe(stdout, first->role, strlen(first->role), true);
        if (first->found)
            printf(": bytes %" PRIu64 " to %" PRIu64 " differ\n", first->offset,
                   last->offset + last->nbytes - 1);
        else
            printf(": bytes from %" PRIu64 " on are missing\n", first->offset);
    }
    if (item->unlisted)
        printf("  %" PRIu64 " byte%s not in the manifest\n", item->unlisted,
               item->unlisted == 1 ? " is" : "s are");
}

int hash_list_tell(const cli_state *cli, hash_list *l)
{
    bool all = l->unlisted == 0;
    for (size_t i = 0; i < l->n; i++) {
        const hash_item *item = &l->items[i];
        bool ok = item->found && !item->differs;
        put_line(cli, item, ok, ok ? "ok" : item->found ? "DIFFERS" : "MISSING");
        if (item->found && !ok)
            tell_leaves(item);
        all = all && ok;
    }
    if (l->unlisted)
        printf("%zu tensor%s not in the manifest\n", l->unlisted,
               l->unlisted == 1 ? " is" : "s are");
    return all ? EXIT_DONE : EXIT_DIFFERS;
}
