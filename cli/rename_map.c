/* SPDX-License-Identifier: MIT */
/* Lists of new names, one per line:
 *
 *   # a remark
 *   lm_head.weight output.weight
 *   model.layers.{n}.mlp.up_proj{end} blk.{n}.ffn_up{end}
 *
 * {n} is a number between dots. In NEW, the first {n} is the first number of OLD, and so on. {end}
 * is ".weight", ".bias" or nothing. A name is looked up as it is, then with {n} for its numbers:
 *
 *   model.layers.7.mlp.up_proj.weight
 *   model.layers.{n}.mlp.up_proj.weight          then    …up_proj.weight{end}    then …up_proj{end}
 */
#include "rename_map.h"
#include "grow.h"
#include "out.h"
#define RENAME_TABLES_TEXT
#include "rename_tables.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER  "{n}"
#define END     "{end}"
#define NUMBERS 8u /* in a name */

typedef struct line {
    char *old, *new; /* old owns both */
    bool met;        /* a tensor has this name */
} line;

struct name_map {
    const char *given;
    line *lines; /* by old */
    size_t n, room;
    bool table;
    kept_name *kept; /* owns the new names */
};

/* -------------------------------------------------------------- names made */

void name_begin(name_maker *m)
{
    m->text = NULL;
    m->to = open_memstream(&m->text, &m->n);
}

const char *name_end(name_maker *m, kept_name **list)
{
    kept_name *name = fclose(m->to) == 0 ? malloc(sizeof *name + m->n + 1) : NULL;
    if (name) {
        memcpy(name->text, m->text, m->n + 1);
        name->next = *list;
        *list = name;
    }
    free(m->text);
    return name ? name->text : NULL;
}

void names_free(kept_name *list)
{
    for (kept_name *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

/* ------------------------------------------------------------------ reading */

static int by_old(const void *a, const void *b)
{
    return strcmp(((const line *)a)->old, ((const line *)b)->old);
}

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
        n++;
    return n;
}

/* Splits "OLD<tab>NEW"; returns false if the line has another form. */
static bool cut_line(line *out, char *text)
{
    size_t n = strcspn(text, "\t");
    if (!text[n])
        n = strcspn(text, " ");
    if (!text[n] || n == 0)
        return false;
    text[n] = 0;
    out->met = false;
    out->old = text;
    out->new = text + n + 1 + strspn(text + n + 1, " \t");
    return *out->new != 0;
}

/* Does OLD have every {n} and {end} that NEW needs? */
static bool can_fill(const line *l)
{
    return count_of(l->new, NUMBER) <= count_of(l->old, NUMBER) &&
           count_of(l->old, NUMBER) <= NUMBERS && count_of(l->new, END) <= count_of(l->old, END);
}

static int add_line(name_map *m, const char *text, size_t n, size_t number)
{
    line *more = grow_array(m->lines, m->n, &m->room, sizeof *more, 64);
    if (!more)
        return memory_error();
    m->lines = more;
    char *copy = strndup(text, n);
    if (!copy)
        return memory_error();
    bool whole = cut_line(&m->lines[m->n], copy), good = whole && can_fill(&m->lines[m->n]);
    if (good) {
        m->table = m->table || strstr(copy, NUMBER) || strstr(copy, END);
        m->n++;
        return EXIT_DONE;
    }
    free(copy);
    char why[80];
    snprintf(why, sizeof why, "line %zu %s", number,
             whole ? "has more {n} or {end} in NEW than in OLD" : "is not 'OLD NEW'");
    file_message(m->given, "", TNF_NO_OFFSET, why);
    return EXIT_USAGE;
}

static int add_text(name_map *m, const char *text, size_t n, size_t number)
{
    while (n > 0 && strchr("\r\n ", text[n - 1]))
        n--;
    return n > 0 && text[0] != '#' ? add_line(m, text, n, number) : EXIT_DONE;
}

static int read_file(name_map *m, const char *path)
{
    char *text = NULL;
    size_t room = 0, number = 0;
    int code = EXIT_DONE;
    FILE *f = fopen(path, "r");
    if (!f) {
        char why[256];
        snprintf(why, sizeof why, "cannot open: %s%s", strerror(errno),
                 strchr(path, '/') || strchr(path, '.') ? "" : "; built-in tables: " RENAME_TABLES);
        file_message(path, "", TNF_NO_OFFSET, why);
        return EXIT_IO;
    }
    for (ssize_t n; code == EXIT_DONE && (n = getline(&text, &room, f)) >= 0;)
        code = add_text(m, text, (size_t)n, ++number);
    if (code == EXIT_DONE && !feof(f))
        code = ferror(f) ? cannot_read(path, errno) : memory_error();
    free(text);
    fclose(f);
    return code;
}

static int read_table(name_map *m, const char *const *lines)
{
    int code = EXIT_DONE;
    for (size_t i = 0; code == EXIT_DONE && lines[i]; i++)
        code = add_text(m, lines[i], strlen(lines[i]), i + 1);
    return code;
}

static const char *const *table_named(const char *name)
{
    for (size_t i = 0; i < sizeof rename_tables / sizeof *rename_tables; i++)
        if (!strcmp(rename_tables[i].name, name))
            return rename_tables[i].lines;
    return NULL;
}

static int twice_named(const char *given, const char *old)
{
    char why[300];
    snprintf(why, sizeof why, "'%.250s' has two new names", old);
    file_message(given, "", TNF_NO_OFFSET, why);
    return EXIT_USAGE;
}

int name_map_open(name_map **out, const char *given)
{
    name_map *m = calloc(1, sizeof *m);
    *out = m;
    if (!m)
        return memory_error();
    m->given = given;
    const char *const *lines = table_named(given);
    int code = lines ? read_table(m, lines) : read_file(m, given);
    if (m->n > 1)
        qsort(m->lines, m->n, sizeof *m->lines, by_old);
    for (size_t i = 1; code == EXIT_DONE && i < m->n; i++)
        if (!strcmp(m->lines[i - 1].old, m->lines[i].old))
            code = twice_named(given, m->lines[i].old);
    return code;
}

void name_map_free(name_map *m)
{
    for (size_t i = 0; m && i < m->n; i++)
        free(m->lines[i].old);
    if (m) {
        names_free(m->kept);
        free(m->lines);
    }
    free(m);
}

/* ------------------------------------------------------------------ finding */

typedef struct numbers {
    const char *at[NUMBERS];
    size_t n[NUMBERS], count;
} numbers;

static line *find_line(const name_map *m, const char *old)
{
    return m->n ? bsearch(&(line) { .old = (char *)(uintptr_t)old }, m->lines, m->n,
                          sizeof *m->lines, by_old)
                : NULL;
}

/* Writes the name with {n} for numbers between dots; `out` needs strlen(name) * 3 + 16 bytes. */
static size_t generalize_name(char *out, numbers *found, const char *name)
{
    char *to = out;
    found->count = 0;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
        if (n > 0 && digits == n && found->count < NUMBERS) {
            found->at[found->count] = p;
            found->n[found->count++] = n;
            memcpy(to, NUMBER, sizeof NUMBER - 1);
            to += sizeof NUMBER - 1;
        } else {
            memcpy(to, p, n);
            to += n;
        }
        p += n;
        if (*p)
            *to++ = *p++;
    }
    *to = 0;
    return (size_t)(to - out);
}

static void write_name(FILE *to, const char *text, const numbers *found, const char *end)
{
    for (size_t k = 0; *text;) {
        if (!strncmp(text, NUMBER, sizeof NUMBER - 1) && k < found->count) {
            fwrite(found->at[k], 1, found->n[k], to);
            k++;
            text += sizeof NUMBER - 1;
        } else if (!strncmp(text, END, sizeof END - 1)) {
            fputs(end, to);
            text += sizeof END - 1;
        } else {
            putc(*text++, to);
        }
    }
}

/* Returns NULL if there is no memory. */
static const char *keep_name(name_map *m, const line *l, const numbers *found, const char *end)
{
    name_maker made;
    name_begin(&made);
    if (!made.to)
        return NULL;
    write_name(made.to, l->new, found, end);
    return name_end(&made, &m->kept);
}

/* Looks up the general form of a name with each possible end. `key` has room for {end}. */
static line *find_general(const name_map *m, char *key, size_t n, const char **end)
{
    static const char *const ends[] = { "", ".weight", ".bias" };
    *end = "";
    line *found = find_line(m, key);
    for (size_t i = 0; !found && i < sizeof ends / sizeof *ends; i++) {
        size_t less = strlen(ends[i]);
        if (less > n || strncmp(key + n - less, ends[i], less) != 0)
            continue;
        char tail[16] = "";
        memcpy(tail, key + n - less, less + 1);
        memcpy(key + n - less, END, sizeof END);
        found = find_line(m, key);
        *end = ends[i];
        memcpy(key + n - less, tail, less + 1);
    }
    return found;
}

bool name_map_find(name_map *m, const char **out, const char *name)
{
    numbers found;
    const char *end;
    *out = NULL;
    line *l = find_line(m, name);
    if (l) {
        l->met = true;
        *out = l->new;
        return true;
    }
    if (!m->table)
        return true;
    char *key = malloc(strlen(name) * 3 + 16);
    if (!key)
        return false;
    size_t n = generalize_name(key, &found, name);
    l = find_general(m, key, n, &end);
    if (l) {
        l->met = true;
        *out = keep_name(m, l, &found, end);
    }
    free(key);
    return !l || *out;
}

bool name_map_used(const name_map *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->lines[i].met)
            return true;
    return m->n == 0;
}

size_t name_map_unused(const name_map *m, const char **first)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (!m->lines[i].met && !strstr(m->lines[i].old, NUMBER) && !strstr(m->lines[i].old, END) &&
            n++ == 0)
            *first = m->lines[i].old;
    return n;
}

bool name_map_is_table(const name_map *m)
{
    return m->table;
}
