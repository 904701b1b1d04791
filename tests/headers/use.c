/* SPDX-License-Identifier: MIT */
/* What a user's first lines look like must compile without a warning, as C99 and as C++. */
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

int use(const char *path);

int use(const char *path)
{
    tnf_error error;
    tnf_open_options open = TNF_OPEN_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_file *file = NULL;
    tnf_builder *builder = NULL;
    int ok = 1;

    open.lenient = true;
    save.replace = true;
    if (tnf_open(&file, path, &open, &error) != TNF_OK)
        return 0;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK ||
        tnf_builder_add_file(builder, file, &error) != TNF_OK ||
        tnf_save(builder, path, &save, &error) != TNF_OK)
        ok = 0;
    tnf_builder_free(builder);
    tnf_close(file);
    return ok;
}
