/* SPDX-License-Identifier: MIT */
/* Tensors of strings in NumPy's files: padded to the longest if this is efficient, otherwise stored
 * as their parts; reading gives the same strings in both cases. */
#include "virtual_objects.h"

#include <tenfold/build.h>
#include <tenfold/io.h>

/* A file in memory. */
struct opened {
    uint8_t *bytes;
    size_t n;
    tnf_file *file;
};

static struct opened open_copy(const void *bytes, size_t n)
{
    struct opened o = { malloc(n + 1), n, NULL };
    tnf_source *source;
    memcpy(o.bytes, bytes, n);
    assert_ok(tnf_source_memory(&source, o.bytes, n, &e));
    assert_ok(tnf_open_source(&o.file, source, NULL, &e));
    return o;
}

static void discard_opened(struct opened *o)
{
    tnf_close(o->file);
    free(o->bytes);
}

static tnf_status save_as(struct opened *out, const tnf_builder *b, const char *format,
                          const char *key, const char *value, bool allow)
{
    tnf_sink *sink;
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_option option = { key, value };
    how.format = format;
    how.options = &option;
    how.noptions = key ? 1 : 0;
    how.allow_loss = allow;
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_status status = tnf_save_sink(b, sink, &how, &e);
    if (status == TNF_OK)
        *out = open_copy(tnf_sink_bytes(sink).p, tnf_sink_bytes(sink).n);
    tnf_sink_close(sink);
    return status;
}

/* Strings; the i-th ends at ends[i + 1] of the text. */
struct strings {
    tnf_part parts[2];
    tnf_object object;
    uint8_t *offsets;
};

static struct strings make_strings(const char *name, const char *text, const size_t *ends, size_t n)
{
    struct strings s = { .offsets = malloc(8 * (n + 1)) };
    for (size_t i = 0; i <= n; i++)
        tnf_put_le64(s.offsets + 8 * i, ends[i]);
    s.parts[0] = (tnf_part) { .role = "offsets",
                              .type = tnf_type_named("u64"),
                              .memory = s.offsets,
                              .nbytes = 8 * (n + 1),
                              .stored = 8 * (n + 1),
                              .payload = TNF_MEMORY };
    s.parts[1] = (tnf_part) { .role = "bytes",
                              .type = tnf_type_named("u8"),
                              .memory = text,
                              .nbytes = ends[n],
                              .stored = ends[n],
                              .payload = TNF_MEMORY };
    s.object.name = (tnf_str) { name, strlen(name) };
    s.object.layout = tnf_layout_by_id("strings/1");
    s.object.nparts = 2;
    return s;
}

static tnf_builder *builder_of(struct strings *s, const uint64_t *shape, uint32_t rank)
{
    tnf_builder *b;
    s->object.parts = s->parts;
    s->object.shape = shape;
    s->object.rank = rank;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &s->object, NULL, &e));
    return b;
}

static void same_strings(const tnf_file *file, const tnf_object *want)
{
    const tnf_object *o = tnf_find(file, want->name.p);
    assert_non_null(o);
    assert_string_equal(tnf_layout_id(o->layout), "strings/1");
    assert_int_equal(o->rank, want->rank);
    for (uint32_t d = 0; d < o->rank; d++)
        assert_int_equal(o->shape[d], want->shape[d]);
    assert_null(o->attrs);
    for (int i = 0; i < 2; i++)
        assert_holds(
            &(tnf_object) { .parts = &o->parts[i], .nparts = 1, .layout = &tnf_layout_dense },
            want->parts[i].memory, (size_t)want->parts[i].nbytes);
}

static bool has_bytes(const struct opened *o, const void *bytes, size_t n)
{
    for (size_t i = 0; i + n <= o->n; i++)
        if (memcmp(o->bytes + i, bytes, n) == 0)
            return true;
    return false;
}

#define HAS(o, text) has_bytes(o, text, sizeof(text) - 1)

static const size_t ends[] = { 0, 2, 4, 4, 7 };
static const char words[] = "tobenot";

static void padded_to_the_longest(void **state)
{
    (void)state;
    const struct {
        const uint64_t *shape;
        uint32_t rank;
    } shapes[] = { { SHAPE(4) }, { SHAPE(2, 2) }, { SHAPE(4, 1, 1) } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int deflated = 0; deflated < 2; deflated++) {
            struct strings s = make_strings("v", words, ends, 4);
            tnf_builder *b = builder_of(&s, shapes[i].shape, shapes[i].rank);
            struct opened o;
            assert_ok(save_as(&o, b, "npz", "compress", deflated ? "deflate" : "stored", false));
            same_strings(o.file, &s.object);
            assert_true(deflated || HAS(&o, "'descr': '|S3'"));
            assert_true(deflated || HAS(&o, "to\0be\0\0\0\0not"));
            tnf_builder_free(b);
            discard_opened(&o);
            free(s.offsets);
        }
}

static void one_and_none(void **state)
{
    (void)state;
    static const size_t one[] = { 0, 7 }, empty[] = { 0, 0, 0 }, none[] = { 0 };
    struct opened o;
    struct strings s = make_strings("v", words, one, 1);
    tnf_builder *b = builder_of(&s, NULL, 0);
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    assert_true(HAS(&o, "'|S7'"));
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
    s = make_strings("v", words, empty, 2); /* NumPy has no |S0 */
    b = builder_of(&s, SHAPE(2));
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    assert_true(HAS(&o, "'|S1'"));
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
    s = make_strings("v", words, none, 0);
    b = builder_of(&s, SHAPE(0));
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
}

/* A 0 at the end of a string would look like padding. One very long string would make all of them
 * long. */
static void parts_where_padding_is_bad(void **state)
{
    (void)state;
    static const size_t zero[] = { 0, 3, 5 };
    enum { MANY = 2000, LONG = 60000 };
    struct opened o;
    struct strings s = make_strings("v", "to\0be", zero, 2);
    tnf_builder *b = builder_of(&s, SHAPE(2));
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    assert_false(HAS(&o, "'|S"));
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
    char *text = malloc(MANY + LONG);
    size_t *places = malloc((MANY + 2) * sizeof *places);
    memset(text, 'x', MANY + LONG);
    for (size_t i = 0; i <= MANY; i++)
        places[i] = i;
    places[MANY + 1] = MANY + LONG;
    s = make_strings("v", text, places, MANY + 1);
    b = builder_of(&s, SHAPE(MANY + 1));
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    assert_false(HAS(&o, "'|S"));
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
    s = make_strings("v\xff", words, ends, 4); /* members have names in UTF-8 */
    b = builder_of(&s, SHAPE(4));
    assert_ok(save_as(&o, b, "npz", NULL, NULL, false));
    same_strings(o.file, &s.object);
    tnf_builder_free(b);
    discard_opened(&o);
    free(s.offsets);
    free(text);
    free(places);
}

/* Strings that are compressed, or that have their lengths before them. */
static void from_other_files(void **state)
{
    (void)state;
    static const char *const ways[][3] = { { "ztensor2", "encoding", "zstd" },
                                           { "finalfusion", NULL, NULL } };
    static const float rows[] = { 1, 0, 0, 1, 1, 0, 0, 1 };
    static const size_t three[] = { 0, 2, 4, 5, 7 };
    for (size_t i = 0; i < 2; i++) {
        struct strings s = make_strings("vocab", words, three, 4);
        tnf_builder *b = builder_of(&s, SHAPE(4)), *again;
        struct opened first, second;
        assert_ok(tnf_builder_add(b, "embeddings", tnf_type_named("f32"), 2,
                                  (const uint64_t[]) { 4, 2 }, rows, &e));
        assert_ok(save_as(&first, b, ways[i][0], ways[i][1], ways[i][2], true));
        assert_ok(tnf_builder_new(&again, NULL, &e));
        assert_ok(tnf_builder_add_object(again, tnf_find(first.file, "vocab"), NULL, &e));
        assert_ok(save_as(&second, again, "npz", NULL, NULL, true));
        same_strings(second.file, &s.object);
        assert_true(HAS(&second, "'|S2'"));
        tnf_builder_free(again);
        tnf_builder_free(b);
        discard_opened(&second);
        discard_opened(&first);
        free(s.offsets);
    }
}

/* Without a stash, the strings become bytes, which must be allowed. */
static void without_a_stash(void **state)
{
    (void)state;
    static const char *const ways[][3] = { { "npz", "stash", "no" }, { "npy", NULL, NULL } };
    for (size_t i = 0; i < 2; i++) {
        struct strings s = make_strings("arr_0", words, ends, 4);
        tnf_builder *b = builder_of(&s, SHAPE(4));
        struct opened o;
        assert_fails(save_as(&o, b, ways[i][0], ways[i][1], ways[i][2], false), TNF_ELOSSY);
        assert_says("its strings are padded to one length");
        assert_ok(save_as(&o, b, ways[i][0], ways[i][1], ways[i][2], true));
        const tnf_object *t = tnf_find(o.file, "arr_0");
        assert_int_equal(t->rank, 2);
        assert_holds(t, "to\0be\0\0\0\0not", 12);
        tnf_builder_free(b);
        discard_opened(&o);
        free(s.offsets);
    }
}

/* A wrong note is ignored, and the tensor is the one in the file. */
static void notes_that_lie(void **state)
{
    (void)state;
    static const char *const lies[][2] = {
        { "\"shape\":[3],\"parts\":[{\"role\":\"padded\",\"as\":\"v\"}]", "\"shape\":[4,3]" },
        { "\"shape\":[4,3],\"parts\":[{\"role\":\"padded\",\"as\":\"v\"}]", "\"shape\":[4,3]" },
        { "\"shape\":[4],\"parts\":[{\"role\":\"padded\",\"as\":\"x\"}]", "\"shape\":[4,3]" },
        { "\"shape\":[4],\"parts\":[{\"role\":\"padded\"}]", "\"shape\":[4,3]" },
        { "\"shape\":[12],\"parts\":[{\"role\":\"padded\",\"as\":\"v\"}]", "\"shape\":[12,0]" },
        { "\"shape\":[4],\"parts\":[{\"role\":\"padded\",\"as\":\"v\"}]",
          "" }, /* this note is right */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        bool lie = *lies[i][1] != 0, none = lie && strstr(lies[i][1], ",0]");
        char header[600], quoted[300];
        size_t k = 0;
        for (const char *p = lies[i][0]; *p; p++) {
            if (*p == '"')
                quoted[k++] = '\\';
            quoted[k++] = *p;
        }
        quoted[k] = 0;
        int n = snprintf(
            header, sizeof header,
            "{\"__metadata__\":{\"tenfold.stash\":\"{\\\"objects\\\":[{\\\"name\\\":"
            "\\\"v\\\",\\\"layout\\\":\\\"strings/1\\\",%s}]}\"},\"v\":{\"dtype\":\"U8\","
            "%s,\"data_offsets\":[0,%d]}}",
            quoted, lie ? lies[i][1] : "\"shape\":[4,3]", none ? 0 : 12);
        uint8_t bytes[700];
        tnf_put_le64(bytes, (uint64_t)n);
        memcpy(bytes + 8, header, (size_t)n);
        memcpy(bytes + 8 + n, "to\0be\0\0\0\0not", 12);
        struct opened o = open_copy(bytes, 8 + (size_t)n + (none ? 0 : 12));
        const tnf_object *v = tnf_find(o.file, "v");
        assert_non_null(v);
        assert_string_equal(tnf_layout_id(v->layout), lie ? "dense" : "strings/1");
        assert_int_equal(tnf_file_info(o.file)->nwarnings, lie);
        discard_opened(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_to_the_longest),
        cmocka_unit_test(one_and_none),
        cmocka_unit_test(parts_where_padding_is_bad),
        cmocka_unit_test(from_other_files),
        cmocka_unit_test(without_a_stash),
        cmocka_unit_test(notes_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
