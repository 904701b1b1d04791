/* SPDX-License-Identifier: MIT */
/* Detection: exactly one format claims each fixture, for any name of the file. No format claims
 * random bytes, or fixtures whose beginning is destroyed. */
#include "core/core.h"
#include "support/files.h"

#define RANDOM 10000

/* The best score, and the format with it; NULL if there is none. *ties is the number of other
 * formats with the same score. */
static const tnf_format *best_of(const void *p, size_t n, const char *ext, int *score,
                                 unsigned *ties)
{
    tnf_probe probe = { .head = p, .size = n, .ext = ext };
    const tnf_format *best = NULL;
    probe.nhead = n < TNF_PROBE_HEAD ? n : TNF_PROBE_HEAD;
    probe.ntail = n < TNF_PROBE_TAIL ? n : TNF_PROBE_TAIL;
    probe.tail = (const uint8_t *)p + (n - probe.ntail);
    *score = 0;
    *ties = 0;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        int s = f->caps & TNF_CAN_READ ? f->probe(&probe) : 0;
        CHECK(s >= 0 && s <= TNF_PROBE_MAGIC, "%s gives %d", f->name, s);
        if (s > *score) {
            best = f;
            *score = s;
            *ties = 0;
        } else if (s > 0 && s == *score) {
            ++*ties;
        }
    }
    return best;
}

/* A fixture is in the directory of its format, or of the family that its format belongs to. */
static bool right_place(const struct fixture *f, const tnf_format *format)
{
    size_t n = strcspn(f->label, "/");
    return strncmp(f->label, format->name, n) == 0 || strncmp(f->label, format->family, n) == 0;
}

static void claimed_once(const struct fixture *f)
{
    static const char *const names[] = { "", "bin", "txt", "safetensors", "gten", "zt" };
    char own[16];
    int score;
    unsigned ties;
    const tnf_format *best = best_of(f->file.p, f->file.n, tnf_extension(own, f->path), &score,
                                     &ties);
    check_doing("%s", f->label);
    if (!CHECK(best != NULL, "no format claims it"))
        return;
    CHECK(ties == 0, "%s and %u others give %d", best->name, ties, score);
    CHECK(right_place(f, best), "%s claims it", best->name);
    for (size_t i = 0; i < sizeof names / sizeof *names && score >= TNF_PROBE_STRUCTURE; i++) {
        const tnf_format *other = best_of(f->file.p, f->file.n, names[i], &score, &ties);
        CHECK(other == best && ties == 0, "as .%s it is claimed by %s, %u ties", names[i],
              other ? other->name : "none", ties);
    }
}

static void claimed_by_none(const void *p, size_t n)
{
    int score;
    unsigned ties;
    const tnf_format *best = best_of(p, n, "", &score, &ties);
    CHECK(best == NULL, "%s claims it with %d", best ? best->name : "", score);
    tnf_source *source;
    tnf_error error;
    const tnf_format *found;
    MUST(tnf_source_memory(&source, p, n, NULL) == TNF_OK);
    tnf_status status = tnf_probe_source(&found, source, "", &error);
    CHECK(status != TNF_OK, "the core finds a format all the same");
    check_error(status, &error);
    tnf_source_close(source);
}

static void random_bytes(void)
{
    uint64_t rng = 42;
    static uint64_t words[700];
    for (int i = 0; i < RANDOM; i++) {
        size_t n = (size_t)(next_random(&rng) % sizeof words);
        for (size_t k = 0; k < (n + 7) / 8; k++)
            words[k] = next_random(&rng);
        check_doing("random bytes %d, %zu of them", i, n);
        uint8_t *exact = malloc(n ? n : 1);
        MUST(exact != NULL);
        memcpy(exact, words, n);
        claimed_by_none(exact, n);
        free(exact);
    }
}

static void without_a_beginning(const struct fixture *f)
{
    uint64_t rng = 43;
    uint8_t *copy = malloc(f->file.n ? f->file.n : 1);
    MUST(copy != NULL);
    for (int k = 0; k < 20; k++) {
        memcpy(copy, f->file.p, f->file.n);
        for (size_t i = 0; i < 16 && i < f->file.n; i++)
            copy[i] = (uint8_t)(next_random(&rng) | 0x80); /* nor any text */
        check_doing("%s with another beginning (%d)", f->label, k);
        claimed_by_none(copy, f->file.n);
    }
    free(copy);
}

int main(void)
{
    fixtures_find(TNF_TESTS_DIR "/formats", "/valid/");
    MUST(fixtures.n > 0);
    for (size_t i = 0; i < fixtures.n; i++) {
        claimed_once(&fixtures.list[i]);
        if (!strstr(fixtures.list[i].label, "user_block")) /* it may begin with any bytes */
            without_a_beginning(&fixtures.list[i]);
    }
    random_bytes();
    return check_end("probe");
}
