/* SPDX-License-Identifier: MIT */
/* Answers completions while the user types: names of tensors or keys of metadata, one per line. If
 * the file cannot be read, the answer is empty, without a message. */
#include "cmd.h"
#include "out.h"
#include <stdlib.h>
#include <string.h>

#define MOST 20000u /* a longer list is of no use */

/* Skips names that cannot be typed: a name with control characters, or one that begins with '-',
 * which would be taken for an option. */
static void put_line(const char *p, size_t n)
{
    if (n == 0 || *p == '-')
        return;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t c;
        length = tnf_utf8_next(&c, p + i, n - i);
        if (length == 0 || tnf_must_escape(c))
            return;
    }
    fwrite(p, 1, n, stdout);
    putchar('\n');
}

static void put_tensors(const tnf_file *file)
{
    const tnf_object *o;
    for (size_t i = 0; i < MOST && (o = tnf_at(file, i)); i++)
        put_line(o->name.p, o->name.n);
}

/* The recursion is bounded, since readers limit the depth of trees. */
static void put_keys(const tnf_value *v, const char *parent)
{
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        size_t n = strlen(parent) + m->key.n + 2;
        char *path = malloc(n);
        if (!path)
            return;
        snprintf(path, n, "%s%s%.*s", parent, *parent ? "." : "", (int)m->key.n, m->key.p);
        put_line(path, strlen(path));
        put_keys(&m->value, path);
        free(path);
    }
}

int complete_names(int argc, char **argv)
{
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_file *file;
    how.incomplete = true;
    if (argc != 2)
        return EXIT_USAGE;
    if (tnf_open(&file, argv[1], &how, NULL) != TNF_OK)
        return EXIT_BAD;
    if (!strcmp(argv[0], "tensors"))
        put_tensors(file);
    else if (!strcmp(argv[0], "keys"))
        put_keys(tnf_file_info(file)->attrs, "");
    tnf_close(file);
    return EXIT_DONE;
}
