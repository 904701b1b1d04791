/* SPDX-License-Identifier: MIT */
/* No byte comes out that was not in the file: every fixture, good or bad, and many damaged ones are
 * converted to every format with fresh memory filled with one byte, then with another. If the two
 * outputs differ, one has bytes of memory in it. */
#include "support/open.h"
#include <malloc.h>

#define DAMAGES 6

static unsigned long converted, refused;

/* The saved file, made with memory that is not zero; NULL if the file does not open or cannot be
 * saved. */
static tnf_sink *save_poisoned(const struct bytes *file, const char *to, int poison)
{
    tnf_error error;
    tnf_file *opened;
    tnf_status status;
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    (void)mallopt(M_PERTURB, poison); /* sanitizers have their own allocator */
    if (open_bytes(&opened, file->p, file->n, &lenient, &error) != TNF_OK)
        return NULL;
    tnf_sink *sink = tnf_file_info(opened)->payload <= OPEN_MAX_PAYLOAD
                         ? save_bytes(opened, to, true, &status, &error)
                         : NULL;
    tnf_close(opened);
    return sink;
}

static void try_one(const struct bytes *file, const char *to)
{
    tnf_sink *a = save_poisoned(file, to, 0xa5), *b = save_poisoned(file, to, 0x3c);
    CHECK((a != NULL) == (b != NULL), "it depends on memory whether it can be saved");
    if (a && b) {
        tnf_str x = tnf_sink_bytes(a), y = tnf_sink_bytes(b);
        CHECK(x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0), "bytes of memory come out");
    }
    converted += a != NULL;
    refused += a == NULL;
    tnf_sink_close(a);
    tnf_sink_close(b);
}

/* Unchanged, cut short, and with changed bytes. */
static void try_damaged(const struct fixture *f, size_t damage)
{
    struct bytes file = f->file;
    uint8_t *copy = malloc(file.n + 1);
    MUST(copy != NULL);
    memcpy(copy, file.p, file.n);
    file.p = copy;
    if (damage % 2 == 1)
        file.n -= file.n * damage / (DAMAGES + 2);
    if (damage > 1 && file.n > 0)
        file.p[(damage * 2654435761u) % file.n] ^= (uint8_t)(1u << damage);
    for (size_t i = 0; writable_format(i); i++) {
        check_doing("%s (%zu) as %s", f->label, damage, writable_format(i));
        try_one(&file, writable_format(i));
    }
    free(copy);
}

int main(void)
{
    fixtures_find(TNF_TESTS_DIR "/formats", "/valid/");
    fixtures_find(TNF_TESTS_DIR "/formats", "/reject/");
    MUST(fixtures.n > 0);
    for (size_t i = 0; i < fixtures.n; i++)
        for (size_t damage = 0; damage < DAMAGES && fixtures.list[i].file.n <= 1 << 20; damage++)
            try_damaged(&fixtures.list[i], damage);
    printf("%zu files: %lu conversions, %lu refused\n", fixtures.n, converted, refused);
    return check_end("poison");
}
