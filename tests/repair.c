/* SPDX-License-Identifier: MIT */
/* Every fixture is cut and damaged in many places, and salvaged. Nothing crashes; the result opens
 * and verifies, strictly if the file was only cut; and every tensor of the result is the
 * original's, equal to the bit (if a tensor grows row by row, its first rows). */
#include "support/change.h"
#include "support/memory.h"
#include <tenfold/repair.h>

static unsigned long refused, saved, tensors, whole;

struct told {
    unsigned long losses;
};

static void on_lost(void *ctx, const tnf_loss *loss)
{
    struct told *t = ctx;
    t->losses++;
    CHECK(loss->reason && *loss->reason, "a loss without a reason");
    eat_bytes(loss->name.p, loss->name.n);
    eat_bytes(loss->kind, strlen(loss->kind));
}

/* The saved file, in memory; NULL: nothing was saved. */
static tnf_sink *salvage_file(const tnf_file *file, bool *lossless)
{
    tnf_error error;
    tnf_builder *b;
    tnf_sink *sink = NULL;
    struct told told = { 0 };
    tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
    tnf_salvage_options how = { .size = sizeof how, .lost = on_lost, .ctx = &told };
    tnf_save_options save = { .size = sizeof save, .allow_loss = true, .as_is = true };
    save.format = tnf_file_info(file)->format;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    tnf_status status = tnf_salvage(&result, b, file, &how, &error);
    check_error(status, &error);
    CHECK(status == TNF_OK, "salvaging fails: %s", error.message);
    CHECK(told.losses == result.lost, "%lu losses told of %lu", told.losses,
          (unsigned long)result.lost);
    *lossless = result.lost == 0;
    if (status == TNF_OK && result.saved > 0) {
        MUST(tnf_sink_memory(&sink, NULL) == TNF_OK);
        status = tnf_save_sink(b, sink, &save, &error);
        check_error(status, &error);
        if (!CHECK(status == TNF_OK || status == TNF_EUNSUPPORTED || status == TNF_EINVAL,
                   "saving fails: %s", error.message) ||
            status != TNF_OK) {
            tnf_sink_close(sink);
            sink = NULL;
        }
    }
    tnf_builder_free(b);
    return sink;
}

static bool is_beginning(const tnf_part *part, const tnf_part *of)
{
    tnf_status a, b;
    if (!of || part->nbytes > of->nbytes || strcmp(part->type->id, of->type->id) != 0)
        return false;
    size_t n = (size_t)part->nbytes;
    if (part->type->bits < 8 && n < of->nbytes && n > 0)
        n--; /* the last byte may be shared with the next row */
    uint8_t *x = read_part(part, &a), *y = read_part(of, &b);
    bool same = x && y && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

/* If several tensors have one name, another of them is found when the last one is cut off. */
static bool is_in_file(const tnf_part *part, const struct bytes *file)
{
    tnf_status status;
    uint8_t *x = read_part(part, &status);
    bool found = false;
    for (size_t i = 0; x && !found && i + part->nbytes <= file->n; i++)
        found = memcmp(file->p + i, x, (size_t)part->nbytes) == 0;
    free(x);
    return found;
}

static void compare_tensors(const tnf_file *file, const tnf_file *original,
                            const struct bytes *bytes)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        const tnf_object *was = tnf_find_n(original, o->name.p, o->name.n);
        tensors++;
        if (!CHECK(was != NULL, "'%s' comes from nowhere", o->name.p))
            continue;
        bool grows = o->rank > 0 && was->rank == o->rank && o->shape[0] < was->shape[0];
        for (uint16_t k = 0; k < o->nparts; k++) {
            const tnf_part *p = tnf_object_part(was, o->parts[k].role);
            CHECK((is_beginning(&o->parts[k], p) && (grows || p->nbytes == o->parts[k].nbytes)) ||
                      is_in_file(&o->parts[k], bytes),
                  "'%s' is not what it was", o->name.p);
        }
    }
}

static void check_saved(tnf_sink *sink, const tnf_file *original, const char *format,
                        const struct bytes *file_bytes)
{
    tnf_error error;
    tnf_file *file;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_str bytes = tnf_sink_bytes(sink);
    tnf_open_options o = { .size = sizeof o, .format = format, .lenient = !original };
    tnf_status status = open_bytes(&file, bytes.p, bytes.n, &o, &error);
    saved++;
    if (!CHECK(status == TNF_OK, "what was saved does not open: %s", error.message))
        return;
    CHECK(tnf_verify(&result, file, NULL, &error) == TNF_OK && result.problems == 0,
          "what was saved does not verify");
    if (original)
        compare_tensors(file, original, file_bytes);
    tnf_close(file);
}

/* The status of a strict reader; TNF_OK if a cut file cannot be distinguished from a complete
 * one. */
static tnf_status open_strictly(const struct change *c)
{
    tnf_error error;
    tnf_file *file;
    tnf_status status = change_open(c, &file, NULL, &error);
    if (status == TNF_OK)
        tnf_close(file);
    return status;
}

/* In a tensor without bytes, nothing can be missing, although bytes around it may be. */
static bool has_empty(const tnf_file *file)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        for (uint16_t k = 0; k < o->nparts; k++)
            if (o->parts[k].nbytes == 0)
                return true;
    return false;
}

/* Opens the file in c and saves the intact tensors. If `original` is NULL, values may differ. If
 * the file is cut before `short_of`, that is lost, and must be reported. */
static void try_one(struct change *c, const tnf_file *original, bool short_of)
{
    tnf_error error;
    tnf_file *file;
    bool lossless;
    tnf_open_options o = { .size = sizeof o, .salvage = true };
    tnf_status status = change_open(c, &file, &o, &error);
    if (status != TNF_OK) {
        refused++;
        return;
    }
    eat_listing(file);
    check_parts(file, change_bytes(c), c->n);
    tnf_sink *sink = salvage_file(file, &lossless);
    if (sink)
        check_saved(sink, original, tnf_file_info(file)->format, &c->of->file);
    CHECK(!(lossless && short_of) || has_empty(file), "what is missing is not told");
    whole += lossless;
    tnf_sink_close(sink);
    tnf_close(file);
}

static void cut_and_damage(const struct fixture *f)
{
    struct change c, untouched;
    tnf_error error;
    tnf_file *original;
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    change_begin(&untouched, f);
    change_set(&untouched, f->file.p, f->file.n);
    if (change_open(&untouched, &original, &lenient, &error) != TNF_OK)
        MUST(!"a valid file opens");
    change_begin(&c, f);
    const size_t share = check_share(8), step = (f->file.n / 97 + 1) * share;
    for (size_t n = 0; n <= f->file.n; n += n < 64 || n + 64 > f->file.n ? share : step) {
        check_doing("%s cut at %zu", f->label, n);
        change_set(&c, f->file.p, n);
        tnf_status strict = open_strictly(&c);
        try_one(&c, strict == TNF_OK ? NULL : original, strict == TNF_ETRUNCATED);
    }
    for (size_t i = 0; i < f->file.n; i += (f->file.n / 61 + 1) * share) {
        check_doing("%s damaged at %zu", f->label, i);
        change_set(&c, f->file.p, f->file.n);
        c.bytes[i] ^= 0x55;
        if (*c.file)
            bytes_to_file(c.file, c.bytes, c.n);
        try_one(&c, NULL, false);
    }
    change_end(&c);
    tnf_close(original);
    change_end(&untouched);
}

/* The n-th allocation fails, from opening to the last tensor added. */
static void without_memory(const struct fixture *f, size_t cut)
{
    struct change c;
    tnf_error error;
    tnf_file *file;
    tnf_open_options plain = { .size = sizeof plain, .salvage = true };
    change_begin(&c, f);
    change_set(&c, f->file.p, cut);
    tnf_status expected = change_open(&c, &file, &plain, &error);
    if (expected == TNF_OK)
        tnf_close(file);
    for (uint64_t n = 1; n < 3000; n += check_share(8)) {
        struct memory_log log = { .fail_at = n };
        tnf_allocator allocator = memory_allocator(&log);
        tnf_builder *b = NULL;
        tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
        tnf_open_options o = { .size = sizeof o, .salvage = true, .allocator = allocator };
        check_doing("%s cut at %zu, allocation %llu", f->label, cut, (unsigned long long)n);
        tnf_status status = change_open(&c, &file, &o, &error);
        if (status == TNF_OK) {
            status = tnf_builder_new(&b, &allocator, &error);
            if (status == TNF_OK)
                status = tnf_salvage(&result, b, file, NULL, &error);
            tnf_builder_free(b);
            tnf_close(file);
        }
        CHECK(log.blocks == 0 && log.wrong_sizes == 0, "memory is lost");
        CHECK(status == expected || (status == TNF_ENOMEM && log.failed), "%s: %s",
              tnf_status_name(status), error.message);
        if (log.failed == 0)
            break;
    }
    change_end(&c);
}

int main(void)
{
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++) {
        const struct fixture *f = &fixtures.list[i];
        cut_and_damage(f);
        if (f->file.n < 20000)
            without_memory(f, f->file.n - f->file.n / 8);
    }
    printf("%zu files: %lu saved with %lu tensors, %lu of them whole, %lu refused\n", fixtures.n,
           saved, tensors, whole, refused);
    return check_end("repair");
}
