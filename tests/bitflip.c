/* SPDX-License-Identifier: MIT */
/* Every one-bit flip of every small fixture: opened strictly and leniently, listed, read, verified,
 * and one in four saved in every format that can be written (all of them if TNF_FULL is set in the
 * environment). No crash, no byte handed out that is not in the file, and what we save we can open
 * again. */
#include "support/change.h"

#define SMALL 2048u

static unsigned long flips, opened, saved;

/* Saving what a flip made of a file: refused with a reason, or a file that opens. */
static void save_everywhere(const tnf_file *file, bool lenient)
{
    tnf_error error;
    if (tnf_file_info(file)->payload > OPEN_MAX_PAYLOAD)
        return;
    for (size_t i = 0; writable(i); i++) {
        tnf_status status;
        tnf_file *again;
        tnf_sink *sink = save_bytes(file, writable(i), true, &status, &error);
        if (!sink)
            continue;
        /* what broke a rule of its format before may still break it there */
        tnf_open_options o = { .size = sizeof o, .format = writable(i), .lenient = lenient };
        tnf_str bytes = tnf_sink_bytes(sink);
        saved++;
        status = open_bytes(&again, bytes.p, bytes.n, &o, &error);
        CHECK(status == TNF_OK, "our own %s does not open: %s", writable(i), error.message);
        if (status == TNF_OK)
            tnf_close(again);
        tnf_sink_close(sink);
    }
}

/* `again`: it was opened strictly already, and differs in nothing but what it warns of. */
static bool try_flip(struct change *c, bool lenient, bool save, bool again)
{
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = lenient };
    if (change_open(c, &file, &o, &error) != TNF_OK)
        return false;
    opened++;
    eat_listing(file);
    check_parts(file, change_bytes(c), c->n);
    if (!again)
        CHECK(verify_all(file, &error) == TNF_OK, "verify stops: %s", error.message);
    if (save)
        save_everywhere(file, lenient);
    tnf_close(file);
    return true;
}

/* Is the bit one of a tensor's data? Then nothing but that tensor's value can change, and one bit
 * of a byte stands for all. */
static bool *data_bytes(const struct fixture *f)
{
    bool *data = calloc(f->file.n ? f->file.n : 1, sizeof *data);
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    MUST(data != NULL);
    if (!f->format || open_bytes(&file, f->file.p, f->file.n, &o, &error) != TNF_OK)
        return data;
    for (size_t i = 0; tnf_at(file, i); i++) {
        const tnf_part *p = tnf_at(file, i)->parts;
        if (p->offset <= f->file.n && p->stored <= f->file.n - p->offset)
            memset(data + p->offset, true, (size_t)p->stored);
    }
    tnf_close(file);
    return data;
}

static void flip(const struct fixture *f, bool full)
{
    struct change c;
    bool *data = data_bytes(f);
    uint8_t *bytes = malloc(f->file.n);
    MUST(bytes != NULL);
    memcpy(bytes, f->file.p, f->file.n);
    change_begin(&c, f);
    for (size_t bit = 0; bit < 8 * f->file.n; bit++) {
        bool sampled = data[bit / 8] || (!full && !f->format); /* files on disk take their time */
        if (sampled && bit % 8 != (data[bit / 8] ? 7 : bit / 8 % 8))
            continue;
        check_doing("%s, bit %zu of byte %zu", f->label, bit % 8, bit / 8);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        change_set(&c, bytes, f->file.n);
        bool save = full || (bit + bit / 8) % 4 == 0;
        bool strict = try_flip(&c, false, save, false);
        bool lenient = try_flip(&c, true, save && !strict, strict);
        CHECK(lenient || !strict, "opens strictly, but not leniently");
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        flips++;
    }
    change_end(&c);
    free(bytes);
    free(data);
}

int main(void)
{
    size_t files = 0;
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++)
        if (fixtures.list[i].file.n <= SMALL) {
            flip(&fixtures.list[i], getenv("TNF_FULL") != NULL);
            files++;
        }
    printf("%zu files: %lu flips, opened %lu times, saved %lu times\n", files, flips, opened,
           saved);
    return check_end("bitflip");
}
