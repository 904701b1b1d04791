/* SPDX-License-Identifier: MIT */
/* Flips single bits of every small fixture: every bit of a header, a sample of the rest. The file
 * is opened strictly and leniently, listed, read and verified; one in four is saved, each time in
 * the next format that can be written. Nothing crashes, no bytes are returned that are not in the
 * file, and every file that we save can be opened.
 *
 * There are millions of flips, so an evenly spread share is tried. The share is smaller under a
 * sanitizer, which makes each flip ten times as slow. If TNF_FULL is set in the environment, all
 * flips are tried. */
#include "support/change.h"

#define SMALL 2048u  /* every bit of the header */
#define LARGE 10000u /* one bit of each byte of it */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUDGET 12000u
#else
#define BUDGET 250000u
#endif

static unsigned long flips, opened, saved;

/* Saves a file with a flipped bit: either it is refused with a reason, or the result opens. */
static void save_somehow(const tnf_file *file, bool lenient)
{
    static size_t turn;
    tnf_error error;
    tnf_status status;
    tnf_file *again;
    const char *format = writable_format(turn++);
    if (!format)
        format = writable_format(0), turn = 1;
    if (tnf_file_info(file)->payload > OPEN_MAX_PAYLOAD)
        return;
    tnf_sink *sink = save_bytes(file, format, true, &status, &error);
    if (!sink)
        return;
    /* a file that broke a rule of its format may still break it after saving */
    tnf_open_options o = { .size = sizeof o, .format = format, .lenient = lenient };
    tnf_str bytes = tnf_sink_bytes(sink);
    saved++;
    status = open_bytes(&again, bytes.p, bytes.n, &o, &error);
    CHECK(status == TNF_OK, "our own %s does not open: %s", format, error.message);
    tnf_close(again);
    tnf_sink_close(sink);
}

/* `again`: the file was already opened strictly; only its warnings differ now. */
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
        save_somehow(file, lenient);
    tnf_close(file);
    return true;
}

/* How many bits of a byte are flipped. In the data of a tensor only a value can change, so one bit
 * is enough. In long padding, a few bytes are enough. */
enum { ALL, ONE, RARE };

static uint8_t *weights_of(const struct fixture *f)
{
    uint8_t *weight = calloc(f->file.n ? f->file.n : 1, 1);
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    MUST(weight != NULL);
    for (size_t i = 0, run = 0; i < f->file.n; i++) {
        run = i && f->file.p[i] == f->file.p[i - 1] ? run + 1 : 0;
        weight[i] = run >= 64 ? RARE : ALL;
    }
    if (!f->format || open_bytes(&file, f->file.p, f->file.n, &o, &error) != TNF_OK)
        return weight;
    for (size_t i = 0; tnf_at(file, i); i++) {
        const tnf_object *t = tnf_at(file, i);
        const tnf_part *p = t->parts;
        if (t->nparts && p->offset <= f->file.n && p->stored <= f->file.n - p->offset)
            memset(weight + p->offset, ONE, (size_t)p->stored);
    }
    tnf_close(file);
    return weight;
}

/* Should this bit be flipped? */
static bool is_wanted(const struct fixture *f, const uint8_t *weight, size_t bit)
{
    size_t byte = bit / 8;
    if (weight[byte] == RARE)
        return byte % 61 == 0 && bit % 8 == byte / 61 % 8;
    if (weight[byte] == ONE)
        return bit % 8 == 7;
    return (f->format && f->file.n <= SMALL) || bit % 8 == byte % 8; /* files on disk are slow */
}

static void flip_one(struct change *c, uint8_t *bytes, size_t bit)
{
    check_doing("%s, bit %zu of byte %zu", c->of->label, bit % 8, bit / 8);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    change_set(c, bytes, c->of->file.n);
    bool save = flips % 4 == 0;
    bool strict = try_flip(c, false, save, false);
    bool lenient = try_flip(c, true, save && !strict, strict);
    CHECK(lenient || !strict, "opens strictly, but not leniently");
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    flips++;
}

/* Flips every `share`-th of the wanted bits; share 0 only counts them. `seen` counts over all
 * fixtures. */
static void flip_bits(const struct fixture *f, unsigned long share, unsigned long *seen)
{
    struct change c;
    uint8_t *weight = weights_of(f), *bytes = malloc(f->file.n ? f->file.n : 1);
    MUST(bytes != NULL);
    memcpy(bytes, f->file.p, f->file.n);
    if (share)
        change_begin(&c, f);
    for (size_t bit = 0; bit < 8 * f->file.n; bit++)
        if (is_wanted(f, weight, bit) && ++*seen && share && *seen % share == 0)
            flip_one(&c, bytes, bit);
    if (share)
        change_end(&c);
    free(bytes);
    free(weight);
}

int main(void)
{
    unsigned long all = 0, seen = 0;
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++)
        if (fixtures.list[i].file.n <= LARGE)
            flip_bits(&fixtures.list[i], 0, &all);
    unsigned long share = getenv("TNF_FULL") || all <= BUDGET ? 1 : all / BUDGET + 1;
    for (size_t i = 0; i < fixtures.n; i++)
        if (fixtures.list[i].file.n <= LARGE)
            flip_bits(&fixtures.list[i], share, &seen);
    printf("%lu of %lu flips, opened %lu times, saved %lu times\n", flips, all, opened, saved);
    return check_end("bitflip");
}
