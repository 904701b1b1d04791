/* SPDX-License-Identifier: MIT */
/* Every valid fixture A, and every model of support/features.h in every format A that can hold it,
 * through every format B that can be written:
 *
 *   A ─ plan ─> nothing lost? ─ save ─> B ─ open ─> the same model ─ save as A ─> A' the same model
 *                    └─ a loss: refused, and the plan says what would be lost
 *
 * If A has the bytes that its own writer makes, A' has the same bytes as A. Some writers follow
 * their source in the order of the tensors, or in how bytes are stored or spelled: then this is
 * only checked if B has kept these. If the writer makes a newer version of the format, A' is
 * compared with what the writer makes from A. */
#include "support/features.h"
#include "support/model.h"
#include "support/spelling.h"

static unsigned long whole, lossy, identical, canonical;

struct plan {
    unsigned items[4]; /* of each fate */
    bool wordless;     /* a loss has no reason */
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    struct plan *p = ctx;
    p->items[item->fate]++;
    p->wordless = p->wordless || (item->fate >= TNF_TRANSFORMED && !*item->reason);
}

/* Saves to memory and counts the items of the plan. NULL if it is refused. */
static tnf_sink *save_to_memory(const tnf_file *file, const char *format, bool allow, bool dry,
                                struct plan *plan, tnf_status *status, tnf_error *error)
{
    tnf_save_options o = { .size = sizeof o, .format = format, .plan = note_item, .ctx = plan };
    o.as_is = true;
    o.allow_loss = allow;
    o.dry_run = dry;
    *plan = (struct plan) { 0 };
    return save_as(file, &o, status, error);
}

/* Opens a file that we saved; it must open. */
static tnf_file *reopen_saved(const tnf_sink *sink, const char *format, bool lenient)
{
    tnf_error error;
    tnf_file *file;
    tnf_str bytes = tnf_sink_bytes(sink);
    tnf_open_options o = { .size = sizeof o, .format = format, .lenient = lenient };
    tnf_status status = open_bytes(&file, bytes.p, bytes.n, &o, &error);
    CHECK(status == TNF_OK, "what was saved as %s does not open: %s", format, error.message);
    return status == TNF_OK ? file : NULL;
}

static bool same_bytes(const tnf_sink *a, const tnf_sink *b)
{
    tnf_str x = tnf_sink_bytes(a), y = tnf_sink_bytes(b);
    return x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0);
}

/* Some formats hold exactly one tensor: they refuse to hold none, with a message. */
static bool needs_tensor(tnf_status status, const tnf_error *error)
{
    return status == TNF_EUNSUPPORTED && strstr(error->message, "exactly one");
}

/* A refused conversion would lose something and says so; it succeeds if losses are allowed. */
static void check_refusal(const tnf_file *a, const char *format)
{
    struct plan plan;
    tnf_status status;
    tnf_error error;
    tnf_sink *sink = save_to_memory(a, format, true, false, &plan, &status, &error);
    CHECK(plan.items[TNF_DROPPED] + plan.items[TNF_TRANSFORMED] > 0, "nothing would be lost");
    CHECK(!plan.wordless, "a loss without a reason");
    if (needs_tensor(status, &error)) {
        lossy++;
        return;
    }
    if (CHECK(status == TNF_OK, "with losses allowed: %s", error.message)) {
        tnf_file *b = reopen_saved(sink, format, true);
        if (b) {
            eat_listing(b);
            tnf_close(b);
        }
        tnf_sink_close(sink);
    }
    lossy++;
}

/* A fixture that is open, and the bytes and the model that its own format's writer makes from it;
 * both are NULL if the format cannot be written, or not without loss. */
struct one {
    const struct fixture *f;
    tnf_file *file, *own_file;
    tnf_sink *own;
    bool canonical, lenient;
};

static bool follows_source(const char *format)
{
    return strcmp(format, "ztensor0") == 0 || strcmp(format, "ztensor1") == 0;
}

/* The tensors are in the order of their source. For a model of ggml, the stash has their order if
 * the other format sorts tensors, except pytorch, which sorts only what has no tree. For other GGUF
 * files the order does not matter. */
static bool keeps_order(const tnf_file *a, const tnf_file *between)
{
    const char *format = tnf_file_info(a)->format;
    bool noted = tnf_value_get(tnf_file_info(a)->attrs, "gguf.general.architecture") != NULL &&
                 strcmp(tnf_file_info(between)->format, "pytorch") != 0;
    return (strcmp(format, "gguf") == 0 && !noted) || strcmp(format, "npz") == 0 ||
           strcmp(format, "flax") == 0;
}

static bool same_order(const tnf_file *a, const tnf_file *b)
{
    for (size_t i = 0; i < tnf_file_info(a)->objects; i++) {
        const tnf_object *x = tnf_at(a, i), *y = tnf_at(b, i);
        if (!y || x->name.n != y->name.n || memcmp(x->name.p, y->name.p, x->name.n) != 0)
            return false;
    }
    return true;
}

static bool same_digests(const tnf_digest *a, const tnf_digest *b)
{
    if (!a || !b || !a->algorithm || !b->algorithm)
        return a == b;
    return strcmp(a->algorithm, b->algorithm) == 0 && a->of_stored == b->of_stored;
}

/* A format may sort the parts of a tensor by role: their order is not content. */
static bool parts_alike(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x, *y;
    for (size_t i = 0; (x = tnf_at(a, i)) != NULL; i++)
        for (uint16_t p = 0; (y = tnf_find_n(b, x->name.p, x->name.n)) && p < x->nparts; p++)
            if (p >= y->nparts || strcmp(x->parts[p].role, y->parts[p].role) != 0)
                return false;
    return true;
}

/* Are the tensors in the same order, with the same encodings and digests? */
static bool stored_alike(const tnf_file *a, const tnf_file *b)
{
    for (size_t i = 0; i < tnf_file_info(a)->objects; i++) {
        const tnf_object *x = tnf_at(a, i), *y = tnf_at(b, i);
        if (!y || x->name.n != y->name.n || memcmp(x->name.p, y->name.p, x->name.n) != 0)
            return false;
        for (uint16_t p = 0; p < x->nparts; p++) {
            const tnf_part *q = tnf_object_part(y, x->parts[p].role);
            if (!q || q->payload != x->parts[p].payload || q->codec != x->parts[p].codec ||
                q->flags != x->parts[p].flags || !same_digests(q->digest, x->parts[p].digest))
                return false;
        }
    }
    return true;
}

/* Does B have column-major tensors that are row-major in A? A keeps this order, if it can. */
static bool turned_to_columns(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x;
    const tnf_can *can = &tnf_registry_find(tnf_file_info(a)->format)->can;
    if (!can->order_f || can->only_f)
        return false;
    for (size_t i = 0; (x = tnf_at(a, i)) != NULL; i++) {
        const tnf_object *y = tnf_find_n(b, x->name.p, x->name.n);
        if (y && x->order == TNF_ORDER_C && y->order == TNF_ORDER_F)
            return true;
    }
    return false;
}

/* B holds all of A: saves it as A again. */
static void check_way_back(const struct one *a, const tnf_file *b)
{
    struct plan plan;
    tnf_status status;
    tnf_error error;
    const char *format = tnf_file_info(a->file)->format;
    tnf_sink *sink = save_to_memory(b, format, false, false, &plan, &status, &error);
    if (!sink && status == TNF_ELOSSY && !spelled_alike(a->file, b))
        return; /* a type that the format only has under other names; this was one of them */
    if (!CHECK(sink != NULL, "no way back: %s", error.message))
        return;
    tnf_file *again = reopen_saved(sink, format, a->lenient);
    if (again) {
        model_check(a->own_file, again, true);
        tnf_close(again);
    }
    bool kept = parts_alike(a->file, b) && spelled_alike(a->file, b) &&
                !turned_to_columns(a->file, b) &&
                (!keeps_order(a->file, b) || same_order(a->file, b));
    if (a->canonical && kept && (!follows_source(format) || stored_alike(a->file, b))) {
        identical++;
        CHECK(same_bytes(a->own, sink), "A to B to A is not A to the byte");
    }
    tnf_sink_close(sink);
}

static void there_and_back(const struct one *a, const char *format)
{
    struct plan plan, dry;
    tnf_status status;
    tnf_error error;
    check_doing("%s as %s", a->f->label, format);
    tnf_sink *none = save_to_memory(a->file, format, false, true, &dry, &status, &error);
    if (none) {
        CHECK(tnf_sink_bytes(none).n == 0, "a dry run writes");
        tnf_sink_close(none);
    }
    tnf_sink *sink = save_to_memory(a->file, format, false, false, &plan, &status, &error);
    CHECK((sink != NULL) == (none != NULL), "the dry run says otherwise");
    CHECK(memcmp(plan.items, dry.items, sizeof plan.items) == 0, "the dry run plans otherwise");
    if (!sink) {
        CHECK(status == TNF_ELOSSY || status == TNF_EEXISTS || needs_tensor(status, &error),
              "%s: %s", tnf_status_name(status), error.message);
        if (status == TNF_ELOSSY)
            check_refusal(a->file, format);
        return;
    }
    CHECK(plan.items[TNF_DROPPED] + plan.items[TNF_TRANSFORMED] == 0, "it is lost all the same");
    whole++;
    tnf_file *b = reopen_saved(sink, format, a->lenient);
    if (b) {
        bool own = strcmp(format, tnf_file_info(a->file)->format) == 0;
        model_check(own ? a->own_file : a->file, b, true);
        model_check_hash(own ? a->own_file : a->file, b);
        check_doing("%s as %s and back", a->f->label, format);
        if (a->own_file)
            check_way_back(a, b);
        tnf_close(b);
    }
    tnf_sink_close(sink);
}

static void try_all(const struct fixture *f)
{
    struct plan plan;
    tnf_status status;
    tnf_error error;
    struct one a = { .f = f };
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    char path[4096];
    snprintf(path, sizeof path, "%s", f->path);
    if (!f->format)
        *strrchr(path, '/') = 0; /* for an index, its directory is opened */
    if (f->file.n < 2)
        o.format = f->format; /* a model of nothing, as some formats have it, says nothing itself */
    check_doing("%s", f->label);
    tnf_status opened = f->path == f->label /* made by this program */
                            ? open_bytes(&a.file, f->file.p, f->file.n, &o, &error)
                            : tnf_open(&a.file, path, &o, &error);
    if (!CHECK(opened == TNF_OK, "%s", error.message))
        return;
    const tnf_info *info = tnf_file_info(a.file);
    a.lenient = info->nwarnings > 0;
    a.own = save_to_memory(a.file, info->format, false, false, &plan, &status, &error);
    a.own_file = a.own ? reopen_saved(a.own, info->format, a.lenient) : NULL;
    if (a.own_file) {
        bool same = strcmp(info->version, tnf_file_info(a.own_file)->version) == 0;
        model_check(a.file, a.own_file, same);
        a.canonical = f->format && tnf_sink_bytes(a.own).n == f->file.n &&
                      (f->file.n == 0 ||
                       memcmp(tnf_sink_bytes(a.own).p, f->file.p, f->file.n) == 0);
        canonical += a.canonical;
    }
    static unsigned turn; /* under a sanitizer every second format; the next file has the others */
    for (size_t i = turn++ % check_share(2); writable_format(i); i += check_share(2))
        there_and_back(&a, writable_format(i));
    tnf_close(a.own_file);
    tnf_sink_close(a.own);
    tnf_close(a.file);
}

/* ------------------------------------------- models made by this program */

struct hashed {
    char name[64];
    uint8_t hash[32];
};

/* Converts the model in this format to all others; false if the format cannot hold the model. */
static bool try_feature(const struct feature *f, const char *format, struct hashed *h)
{
    struct plan plan = { 0 };
    tnf_error error;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = format, .plan = note_item, .ctx = &plan };
    char label[160];
    snprintf(label, sizeof label, "%s made as %s", f->name, format);
    check_doing("%s", label);
    MUST(tnf_sink_memory(&sink, NULL) == TNF_OK);
    tnf_status status = tnf_save_sink(f->builder, sink, &o, &error);
    check_error(status, &error);
    CHECK(status == TNF_OK || status == TNF_ELOSSY || needs_tensor(status, &error), "%s",
          error.message);
    CHECK(status != TNF_ELOSSY || (plan.items[TNF_DROPPED] + plan.items[TNF_TRANSFORMED] > 0),
          "refused without a loss");
    CHECK(!plan.wordless, "a loss without a reason");
    if (status == TNF_OK) {
        tnf_str bytes = tnf_sink_bytes(sink);
        tnf_file *file = reopen_saved(sink, format, false);
        uint8_t hash[32] = { 0 };
        tnf_hash_options one = { .size = sizeof one, .threads = 1 };
        CHECK(file && tnf_content_hash(hash, file, &one, &error) == TNF_OK, "%s", error.message);
        CHECK(!*h->name || memcmp(h->hash, hash, 32) == 0, "another content hash than elsewhere");
        memcpy(h->hash, hash, 32);
        snprintf(h->name, sizeof h->name, "%s", f->name);
        tnf_close(file);
        struct fixture made = { .path = label, .label = label, .format = format };
        made.file = (struct bytes) { (uint8_t *)(uintptr_t)bytes.p, bytes.n };
        try_all(&made);
    }
    tnf_sink_close(sink);
    return status == TNF_OK;
}

/* Different models have different hashes in any format. */
static void try_features(void)
{
    static struct hashed hashed[200];
    struct feature f;
    size_t n = 0, pairs = 0;
    for (; feature_at(&f, n); n++) {
        size_t taken = 0;
        MUST(n < sizeof hashed / sizeof *hashed);
        for (size_t i = 0; writable_format(i); i++)
            taken += try_feature(&f, writable_format(i), &hashed[n]);
        check_doing("%s", f.name);
        CHECK(taken > 0, "no format takes it");
        pairs += taken;
        for (size_t k = 0; k < n; k++)
            CHECK(memcmp(hashed[k].hash, hashed[n].hash, 32) != 0, "its hash is that of %s",
                  hashed[k].name);
        tnf_builder_free(f.builder);
    }
    printf("%zu models made, as %zu files\n", n, pairs);
}

int main(void)
{
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++)
        try_all(&fixtures.list[i]);
    try_features();
    printf("%zu files: %lu conversions without loss, %lu refused; %lu files canonical, %lu times "
           "identical after two conversions\n",
           fixtures.n, whole, lossy, canonical, identical);
    return check_end("roundtrip");
}
