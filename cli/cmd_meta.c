/* SPDX-License-Identifier: MIT */
/* tenfold meta: shows and changes the attributes of a file or of a tensor. */
#include "meta_save.h"
#include <string.h>
#include <sys/stat.h>
#include <tenfold/value.h>
#include <unistd.h>

typedef struct options {
    input_options in;
    saving_options save;
    opt_list set, remove, retype;
    const char *tensor, *out, *as;
    bool json, types, string, in_place, shift, rewrite;
} options;

typedef struct job {
    const cli_state *cli;
    const options *options;
    input in;
    meta_editor editor;
    const tnf_value *before; /* the map that is shown or changed */
    tnf_value after;
} job;

/* -------------------------------------------------------------------- show */

static void put_text(const tnf_value *v)
{
    const char *p = v->as.s, *end = p + v->n;
    for (const char *line; p < end; p = line + 1) {
        line = memchr(p, '\n', (size_t)(end - p));
        line = line ? line : end;
        put_safe(stdout, p, (size_t)(line - p), false);
        putchar('\n');
    }
    if (v->n == 0)
        putchar('\n');
}

/* Shows types as {"KEY":"u32"} or as lines. A value that is not a map has a single type. */
static void show_types(const job *j, const tnf_value *v)
{
    json out = { stdout, false };
    char type[512];
    if (j->options->json && v->kind == TNF_MAP)
        json_open(&out, '{');
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        tnf_value_type(type, sizeof type, &m->value);
        if (j->options->json) {
            json_key_bytes(&out, m->key);
            json_text(&out, type);
        } else {
            put_name(stdout, m->key);
            printf(": %s\n", type);
        }
    }
    if (j->options->json && v->kind == TNF_MAP)
        json_close(&out, '}');
    tnf_value_type(type, sizeof type, v);
    if (v->kind != TNF_MAP && j->options->json)
        json_text(&out, type);
    else if (v->kind != TNF_MAP)
        fputs(type, stdout);
    if (v->kind != TNF_MAP || j->options->json)
        putchar('\n');
}

static void show_value(const job *j, const tnf_value *v)
{
    json out = { stdout, false };
    if (j->options->types) {
        show_types(j, v);
        return;
    }
    if (!j->options->json && v->kind == TNF_MAP && v->n > 0) {
        put_attrs(stdout, v, 0, true);
    } else if (!j->options->json && v->kind == TNF_STRING) {
        put_text(v);
    } else {
        json_value(&out, v);
        putchar('\n');
    }
}

static int tell_wrong(const job *j, const char *about)
{
    char text[512];
    if (j->editor.no_memory)
        return memory_error();
    if (about)
        snprintf(text, sizeof text, "%s: %s", about, j->editor.why);
    file_message(j->in.name, "", TNF_NO_OFFSET, about ? text : j->editor.why);
    return EXIT_USAGE;
}

static char *full_key(job *j, const char *text, size_t n, bool tree);

static int show_at(job *j, const char *key)
{
    tnf_value found;
    j->after = *j->before;
    const char *path = full_key(j, key, strlen(key), true);
    tnf_str given = { key, strlen(key) };
    if (!path || (!meta_get(&j->editor, &found, j->before, (tnf_str) { path, strlen(path) }) &&
                  !meta_find(&j->editor, &found, j->before, given)))
        return tell_wrong(j, NULL);
    show_value(j, &found);
    return EXIT_DONE;
}

/* ------------------------------------------------------------------ change */

static bool begins_with(const char *text, const char *with, const char *then)
{
    size_t n = strlen(with);
    return !strncmp(text, with, n) && !strncmp(text + n, then, strlen(then));
}

/* Is this an entry of a text map, such as "safetensors.metadata.author"? Its value is always text.
 * The first entry may have to create the map. */
static bool is_text_entry(const job *j, const char *key)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    return !j->options->tensor && tnf_format_named(&f, j->in.info->format) &&
           !strcmp(f.metadata, "text") && begins_with(key, f.family, ".metadata.");
}

/* Adds an empty map as an attribute, if there is none of that name. */
static bool make_map(job *j, const char *key, size_t n)
{
    const tnf_value empty = { .kind = TNF_MAP };
    tnf_member *members = meta_take(&j->editor, (j->after.n + 1) * sizeof *members);
    char *name = members ? meta_take(&j->editor, n) : NULL;
    if (!name)
        return false;
    memcpy(name, key, n);
    if (tnf_value_get(&j->after, name))
        return true;
    if (j->after.n > 0)
        memcpy(members, j->after.as.members, j->after.n * sizeof *members);
    members[j->after.n] = (tnf_member) { { name, n }, empty };
    j->after.as.members = members;
    j->after.n++;
    return true;
}

/* Does the key begin with a word that belongs to a format, or with an existing attribute? */
static bool is_owned(const job *j, const char *key)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    bool owned = begins_with(key, "tenfold", ".");
    for (size_t i = 0; !owned && tnf_format_at(&f, i); i++)
        owned = begins_with(key, f.family, ".") || begins_with(key, f.name, ".");
    for (size_t i = 0; !owned && i < j->after.n; i++) {
        tnf_str rest;
        owned = meta_begins((tnf_str) { key, strlen(key) }, j->after.as.members[i].key, &rest);
    }
    return owned;
}

/* The full key for a key that the user gave. If the format's reader puts a prefix before every key,
 * a plain key gets the prefix. If the format has a text map, a plain key goes into the map, where
 * other programs see it: "author" becomes "safetensors.metadata.author". A JSON tree is not text,
 * so it does not go into the map. */
static char *full_key(job *j, const char *text, size_t n, bool tree)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    bool known = !j->options->tensor && tnf_format_named(&f, j->in.info->format);
    size_t more = known && f.prefix ? strlen(f.prefix) : 0;
    char *key = meta_take(&j->editor, more + n + 80);
    if (!key)
        return NULL;
    memcpy(key, text, n);
    if (!known || (more && !strncmp(key, f.prefix, more)) || tnf_value_get(&j->after, key))
        return key;
    if (more) {
        memcpy(key, f.prefix, more);
        memcpy(key + more, text, n);
    } else if (!tree && strcmp(f.metadata, "text") == 0 && !is_owned(j, key)) {
        snprintf(key, n + 80, "%.60s.metadata.%.*s", f.family, (int)n, text);
    }
    return key;
}

/* Refuses to give the value of a text map another type. */
static bool check_text_type(job *j, const char *key, const char *type)
{
    return strcmp(type, "string") == 0 || !is_text_entry(j, key) ||
           meta_fail(&j->editor, "'%s' can only be a text in this format, not %s", key, type);
}

static bool retype_one(job *j, const char *setting)
{
    const char *equals = strchr(setting, '=');
    char *key = full_key(j, setting, (size_t)(equals - setting), false);
    tnf_value found, fresh, changed;
    tnf_str path = { key, key ? strlen(key) : 0 };
    if (!key || !meta_get(&j->editor, &found, &j->after, path) ||
        !check_text_type(j, key, equals + 1) ||
        !meta_retype(&j->editor, &fresh, &found, equals + 1) ||
        !meta_put(&j->editor, &changed, &j->after, path, &fresh))
        return false;
    j->after = changed;
    return true;
}

static bool make_text_map(job *j, const char *key)
{
    return make_map(j, key, (size_t)(strstr(key, ".metadata.") - key) + strlen(".metadata"));
}

/* The names of attributes that are JSON in this format. */
static const char *json_attrs(const job *j)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    return !j->options->tensor && tnf_format_named(&f, j->in.info->format) ? f.json : NULL;
}

/* Prepares setting a value in an attribute that is JSON: its type may change, and the attribute may
 * not exist yet. */
static bool prepare_json(job *j, const char *key)
{
    tnf_str name, rest;
    tnf_value old;
    j->editor.any_type = meta_in_json(json_attrs(j), (tnf_str) { key, strlen(key) }, &name, &rest);
    if (!j->editor.any_type || !rest.p)
        return true;
    return make_map(j, key, name.n) && meta_get(&j->editor, &old, &j->after, name) &&
           (old.kind == TNF_MAP || old.kind == TNF_ARRAY ||
            meta_fail(&j->editor, "'%.*s' is neither a map nor an array", (int)name.n, name.p));
}

/* Attributes that are JSON: integers whose width was requested fit it, but it cannot be stored. */
static bool forget_widths(job *j)
{
    const tnf_value all = j->after;
    for (size_t i = 0; i < all.n; i++) {
        const tnf_member *m = &all.as.members[i];
        tnf_str name, rest;
        tnf_value plain, changed;
        if (!meta_in_json(json_attrs(j), m->key, &name, &rest) || rest.p)
            continue;
        if (!meta_as_json(&j->editor, &plain, &m->value) ||
            !meta_put(&j->editor, &changed, &j->after, m->key, &plain))
            return false;
        j->after = changed;
    }
    return true;
}

static bool set_one(job *j, const char *setting)
{
    const char *equals = strchr(setting, '=');
    bool tree = !j->options->string && (equals[1] == '{' || equals[1] == '[');
    char *key = full_key(j, setting, (size_t)(equals - setting), tree);
    if (!key)
        return false;
    bool entry = is_text_entry(j, key);
    tnf_value changed;
    if (j->options->as && !check_text_type(j, key, j->options->as))
        return false;
    j->editor.as_text = j->options->string || entry;
    if ((entry && !make_text_map(j, key)) || !prepare_json(j, key) ||
        !meta_set(&j->editor, &changed, &j->after, (tnf_str) { key, strlen(key) }, equals + 1))
        return false;
    j->after = changed;
    return true;
}

static int change_attrs(job *j)
{
    const options *o = j->options;
    j->after = *j->before;
    for (size_t i = 0; i < o->remove.n; i++) {
        tnf_value changed;
        const char *name = full_key(j, o->remove.items[i], strlen(o->remove.items[i]), false);
        tnf_str key = { name, name ? strlen(name) : 0 };
        if (!name || !meta_remove(&j->editor, &changed, &j->after, key))
            return tell_wrong(j, NULL);
        j->after = changed;
    }
    tnf_value as;
    if (o->as && !meta_type_named(&j->editor, &as, o->as, strlen(o->as)))
        return tell_wrong(j, NULL);
    j->editor.as = o->as ? &as : NULL;
    for (size_t i = 0; i < o->set.n; i++)
        if (!set_one(j, o->set.items[i]))
            return tell_wrong(j, o->set.items[i]);
    j->editor.as = NULL;
    for (size_t i = 0; i < o->retype.n; i++)
        if (!retype_one(j, o->retype.items[i]))
            return tell_wrong(j, o->retype.items[i]);
    return forget_widths(j) ? EXIT_DONE : tell_wrong(j, NULL);
}

/* -------------------------------------------------------------------- save */

/* Options of the writer need a new file. */
static meta_where where_to(const options *o)
{
    if (o->shift)
        return META_SHIFT;
    if (o->in_place)
        return META_IN_PLACE;
    bool anew = o->rewrite || o->out || o->save.reserve || o->save.writer.n > 0 || o->save.no_sync;
    return anew ? META_ANEW : META_WHERE_IT_FITS;
}

static int save_changes(job *j)
{
    const options *o = j->options;
    format_options writer;
    if (!format_options_parse(&writer, &o->save.writer, "--option") ||
        !format_options_add(&writer, "reserve", o->save.reserve))
        return EXIT_USAGE;
    const meta_change c = { .editor = &j->editor,
                            .in = &j->in,
                            .tensor = o->tensor,
                            .before = j->before,
                            .after = &j->after,
                            .path = o->out ? o->out : j->in.path,
                            .lenient = o->in.lenient,
                            .where = where_to(o) };
    tnf_save_options how = { .size = sizeof how };
    how.options = writer.items;
    how.noptions = writer.n;
    how.replace = !o->out || o->save.force;
    how.no_sync = o->save.no_sync;
    int code = meta_save(&c, &how);
    format_options_free(&writer);
    return code;
}

/* A model in several files cannot be rewritten as one file. */
static bool is_one_file(const input *in)
{
    struct stat s;
    return strcmp(in->path, "-") != 0 && in->info->shards == 0 &&
           (stat(in->path, &s) != 0 || S_ISREG(s.st_mode));
}

static int change_and_save(job *j)
{
    if (!j->options->out && !is_one_file(&j->in)) {
        file_message(
            j->in.name, "", TNF_NO_OFFSET,
            "this is not a single file, so it cannot be rewritten; choose another output with -o");
        return EXIT_USAGE;
    }
    int code = change_attrs(j);
    if (code != EXIT_DONE)
        return code;
    if (!j->options->out && meta_equal(j->before, &j->after)) {
        if (j->cli->verbose && !j->cli->quiet)
            file_message(j->in.name, "", TNF_NO_OFFSET, "nothing to change");
        return EXIT_DONE;
    }
    return save_changes(j);
}

/* ----------------------------------------------------------------- command */

static bool has_changes(const options *o)
{
    return o->set.n > 0 || o->remove.n > 0 || o->retype.n > 0;
}

/* Checks that each text is KEY=…. `what` names the value in the message. */
static int check_pairs(const opt_list *list, const char *option, const char *what)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strchr(list->items[i], '=') || list->items[i][0] == '=')
            return usage_error("meta: --%s takes KEY=%s, not '%s'", option, what, list->items[i]);
    return EXIT_DONE;
}

/* Do the options require a new file? */
static bool writes_anew(const options *o)
{
    return o->out || o->save.writer.n || o->save.reserve || o->save.no_sync || o->rewrite;
}

/* Checks the options of a call that changes something. */
static int check_changes(const options *o, int argc)
{
    int code = check_pairs(&o->set, "set", "VALUE");
    if (code == EXIT_DONE)
        code = check_pairs(&o->retype, "retype", "TYPE");
    if (code != EXIT_DONE)
        return code;
    if (argc > 1)
        return usage_error("meta: KEY cannot be combined with --set or --rm");
    if (o->json || o->types)
        return usage_error("meta: --%s cannot be combined with --set or --rm",
                           o->json ? "json" : "types");
    return EXIT_DONE;
}

static int check_usage(const options *o, int argc)
{
    bool changes = has_changes(o), inside = o->in_place || o->shift;
    int code = changes ? check_changes(o, argc) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    if (o->as && o->set.n == 0)
        return usage_error("meta: --as needs --set, since --as is the type of new values");
    if (inside && writes_anew(o))
        return usage_error("meta: --%s cannot be combined with an output file, options of "
                           "the writer, --reserve, --rewrite or --no-sync",
                           o->in_place ? "in-place" : "shift");
    if (!changes && (inside || writes_anew(o) || o->string || o->save.force))
        return usage_error("meta: there is nothing to write without --set or --rm");
    return EXIT_DONE;
}

/* Chooses the map that is shown or changed. */
static int choose_map(job *j)
{
    static const tnf_value none = { .kind = TNF_MAP };
    const char *name = j->options->tensor;
    j->before = j->in.info->attrs;
    if (!name)
        return EXIT_DONE;
    const tnf_object *o = tnf_find(j->in.file, name);
    if (!o) {
        snprintf(j->editor.why, sizeof j->editor.why, "no tensor '%s'", name);
        return tell_wrong(j, NULL);
    }
    j->before = o->attrs ? o->attrs : &none;
    return EXIT_DONE;
}

static int meta_input(job *j, int argc, char **argv)
{
    tnf_error error;
    int code = choose_map(j);
    if (code != EXIT_DONE)
        return code;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    j->editor.narrow = tnf_format_named(&f, j->in.info->format) && f.narrow;
    if (tnf_builder_new(&j->editor.builder, NULL, &error) != TNF_OK)
        return file_error(j->in.name, &error);
    if (has_changes(j->options))
        code = change_and_save(j);
    else if (argc > 1)
        code = show_at(j, argv[1]);
    else
        show_value(j, j->before);
    tnf_builder_free(j->editor.builder);
    meta_end(&j->editor);
    return code;
}

static int run_meta(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    int code = check_usage(o, argc);
    if (code != EXIT_DONE)
        return code;
    job j = { .cli = cli, .options = o };
    input_options in = o->in;
    bool change = has_changes(o);
    if (change)
        code = input_undo(cli, argv[0], NULL);
    if (code != EXIT_DONE)
        return code;
    in.to_change = change && !o->out;
    code = input_open(&j.in, cli, &in, argv[0]);
    if (code == EXIT_DONE)
        code = meta_input(&j, argc, argv);
    input_close(&j.in);
    return code;
}

static const opt table[] = {
    { "set", 's', OPT_LIST, offsetof(options, set), "KEY=VALUE", NULL,
      "Set an attribute. VALUE is JSON if it is valid JSON, else a text. May be repeated." },
    { "rm", 0, OPT_LIST, offsetof(options, remove), "KEY", NULL,
      "Remove an attribute, before anything is set. May be repeated." },
    { "as", 0, OPT_TEXT, offsetof(options, as), "TYPE", NULL,
      "The type of every VALUE that is set: u8 ... u64, i8 ... i64, f32, f64, bool, string, bytes, "
      "array<u32> ..." },
    { "retype", 0, OPT_LIST, offsetof(options, retype), "KEY=TYPE", NULL,
      "Give an attribute another type that can hold its value; done after all other changes. May "
      "be repeated." },
    { "string", 0, OPT_FLAG, offsetof(options, string), NULL, NULL,
      "Every VALUE is a text, even if it is valid JSON or the old value was not a text." },
    { "tensor", 0, OPT_TEXT, offsetof(options, tensor), "NAME", NULL,
      "Show or change the attributes of this tensor instead of those of the file." },
    { "output", 'o', OPT_TEXT, offsetof(options, out), "OUT", NULL,
      "Write the changed file to OUT and do not change FILE." },
    FORCE_OPTION(options, save, "Replace OUT if it exists."),
    { "in-place", 0, OPT_FLAG, offsetof(options, in_place), NULL, NULL,
      "Change FILE in place or not at all; if it is impossible, report why. Hard links of the "
      "file show the change, too." },
    { "shift", 0, OPT_FLAG, offsetof(options, shift), NULL, NULL,
      "GGUF: change FILE in place; if there is no room, let the file system (ext4, XFS) insert "
      "blocks in front of the tensors, so that nothing is copied. Dangerous while a program has "
      "FILE open or mapped: the tensors move, so the program reads wrong bytes. For other formats "
      "the same as --in-place." },
    { "rewrite", 0, OPT_FLAG, offsetof(options, rewrite), NULL, NULL,
      "Write a new file even if FILE could be changed in place." },
    RESERVE_OPTION(options, save),
    WRITER_OPTION(options, save, "option", 0),
    NO_SYNC_OPTION(options, save),
    { "types", 0, OPT_FLAG, offsetof(options, types), NULL, NULL,
      "Print the exact types of the attributes, or of the value at KEY, instead of the values." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON document: the attributes, or the value at KEY." },
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "FILE"),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold meta model.safetensors", "all metadata" },
    { "tenfold meta model.bin gptrs.config.config.num_layers", "one value" },
    { "tenfold meta adam.primitiv --set primitiv.float_configs.Adam.alpha=0.01",
      "change one, in its own type" },
    { "tenfold meta model.safetensors --set safetensors.metadata.author=me --rm "
      "safetensors.metadata.note",
      "several at once" },
    { "tenfold meta model.safetensors --set safetensors.metadata.author=me --reserve 4K",
      "and reserve space, so that later changes are made in place" },
    { "tenfold meta model.gguf --set general.name=Mine --shift",
      "a longer text in a file of 40 GB, without copying it" },
    { 0 },
};

const command cmd_meta = {
    .name = "meta",
    .args = "FILE [KEY]",
    .summary = "show or change the metadata of a file",
    .about =
        "Shows the attributes of a file, or the attribute at KEY. With --set and --rm, changes "
        "them.\n\nKEY is a path with dots. A key may contain dots itself: at each level the "
        "longest matching key is used. Items of an array are counted from 0, list.2 or list[2]; "
        "the number after the last item adds one. KEY may also lead into a JSON document, such as "
        "a model's config; a change there keeps the rest of its text. To show a value, the last "
        "words of its key are enough if only one key ends with them.\n\nSome formats (safetensors) "
        "have a map of texts that other programs read. A plain key, such as author, is set in that "
        "map.\n\nA changed attribute keeps its exact type (u32, f32 ...); a value that does not "
        "fit is refused. A new key gets the type of its neighbours if they all have the same type. "
        "Otherwise whole numbers become u64 or i64, and other numbers f64. In formats whose "
        "programs need exact types, whole numbers become the first of u32, i32, u64 and i64 that "
        "holds them, and other numbers f32. The attributes of a VS file are JSON: any value "
        "replaces "
        "any other, and integers have no width. Bytes are written as "
        "{\"$bytes\":\"base64\"}.\n\nThe "
        "file is changed in place if nothing has to move and the file has no hard links: only "
        "bytes that differ are written, and tensors are not read. Otherwise a new file is written "
        "in the same format and form, and replaces the old one when it is complete. If nothing "
        "changes, the file is not touched.\n\nA change in place inside one sector of 512 bytes is "
        "a single write. For a larger change, the old bytes are kept in .FILE.tenfold-undo until "
        "the new ones are on the disk. If the machine stops in between, the file cannot be opened "
        "until the next change, or 'tenfold repair FILE', has put the old bytes back.\n\nIf the "
        "format has no place for an attribute, nothing is written and the exit code is 5.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 2,
    .run = run_meta,
};
