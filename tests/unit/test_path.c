/* SPDX-License-Identifier: MIT */
/* The rule for paths from files: valid names, links that are followed, and only regular files are
 * opened. */
#include "../support/unit.h"
#include "container/path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[200];

static void put_file(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_folder(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *target, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(symlink(target, path), 0);
}

/* hub/blobs/{1a,2b}, hub/snapshots/r/{model -> blobs, shard -> blobs, …}, and a secret file next to
 * hub. */
static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tenfold-path-XXXXXX");
    assert_non_null(mkdtemp(folder));
    put_file("secret", "s");
    make_folder("hub");
    make_folder("hub/blobs");
    make_folder("hub/snapshots");
    make_folder("hub/snapshots/r");
    make_folder("hub/snapshots/r/sub");
    put_file("hub/blobs/1a", "model");
    put_file("hub/blobs/2b", "shard");
    put_file("hub/snapshots/r/plain", "plain");
    put_file("hub/snapshots/r/sub/deep", "deep");
    make_link("../../blobs/1a", "hub/snapshots/r/model");
    make_link("../../blobs/2b", "hub/snapshots/r/shard");
    make_link("../../../blobs/2b", "hub/snapshots/r/sub/shard");
    make_link("../../../secret", "hub/snapshots/r/out");
    make_link("/etc/passwd", "hub/snapshots/r/absolute");
    make_link("../../blobs/../../secret", "hub/snapshots/r/sly");
    make_link("../..", "hub/snapshots/r/up");
    make_link("sub/../plain", "hub/snapshots/r/inside");
    make_link("sub", "hub/snapshots/r/folder");
    make_link("loop", "hub/snapshots/r/loop");
    make_link("nowhere", "hub/snapshots/r/dangling");
    char path[400];
    snprintf(path, sizeof path, "%s/hub/snapshots/r/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static tnf_status open_name(const char *name, const char *model, char text[16], tnf_error *e)
{
    char in[300], path[400];
    int fd;
    snprintf(in, sizeof in, "%s/hub/snapshots/r", folder);
    snprintf(path, sizeof path, "%s/%s", in, model);
    tnf_status status = tnf_path_open(&fd, in, (tnf_str) { name, strlen(name) }, path, e);
    memset(text, 0, 16);
    if (status != TNF_OK)
        return status;
    assert_true(read(fd, text, 15) > 0);
    close(fd);
    return TNF_OK;
}

static void checks_names(void **state)
{
    tnf_error e;
    (void)state;
    static const char *const bad[] = { "",    "/a",   "a/",   "a//b",   ".",    "./a",
                                       "a/.", "..",   "../a", "a/../b", "a/..", "a\\b",
                                       "C:a", "c:/a", "a/C:", "a/c:b/d" };
    static const char *const good[] = {
        "a", "a/b", "...", "..a", "a..", ".a", "ab:c", "a/bc:d", "é"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tnf_path_check((tnf_str) { bad[i], strlen(bad[i]) }, &e), TNF_EFORMAT);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_ok(tnf_path_check((tnf_str) { good[i], strlen(good[i]) }, &e));
    assert_int_equal(tnf_path_check((tnf_str) { "a\0b", 3 }, &e), TNF_EFORMAT);
}

static void opens_regular_files(void **state)
{
    tnf_error e;
    char text[16];
    (void)state;
    assert_ok(open_name("plain", "plain", text, &e));
    assert_string_equal(text, "plain");
    assert_ok(open_name("sub/deep", "plain", text, &e));
    assert_string_equal(text, "deep");
    assert_fails(open_name("sub", "plain", text, &e), TNF_EINVAL);
    assert_fails(open_name("fifo", "plain", text, &e), TNF_EINVAL);
    assert_fails(open_name("plain/x", "plain", text, &e), TNF_ENOTFOUND);
    assert_fails(open_name("missing", "plain", text, &e), TNF_ENOTFOUND);
}

static void follows_links_inside(void **state)
{
    tnf_error e;
    char text[16];
    (void)state;
    assert_ok(open_name("inside", "plain", text, &e));
    assert_string_equal(text, "plain");
    assert_ok(open_name("folder/deep", "plain", text, &e));
    assert_string_equal(text, "deep");
    static const char *const out[] = { "out", "absolute", "sly", "up/blobs/1a" };
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        assert_fails(open_name(out[i], "model", text, &e), TNF_EFORMAT);
        assert_says("leads out");
    }
    assert_fails(open_name("loop", "plain", text, &e), TNF_EIO);
    assert_fails(open_name("dangling", "plain", text, &e), TNF_ENOTFOUND);
}

/* Links to the blobs are only followed if the model itself is such a link. */
static void blobs_of_a_hub(void **state)
{
    tnf_error e;
    char text[16];
    (void)state;
    assert_ok(open_name("shard", "model", text, &e));
    assert_string_equal(text, "shard");
    assert_ok(open_name("sub/shard", "model", text, &e));
    assert_string_equal(text, "shard");
    assert_fails(open_name("shard", "plain", text, &e), TNF_EFORMAT);
    assert_fails(open_name("shard", "out", text, &e), TNF_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checks_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opens_regular_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(follows_links_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blobs_of_a_hub, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
