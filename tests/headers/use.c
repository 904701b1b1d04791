/* SPDX-License-Identifier: MIT */
/* What a user's first lines look like must compile without a warning, as C99 and as C++. */
#include <tenfold/build.h>
#include <tenfold/diff.h>
#include <tenfold/emb.h>
#include <tenfold/params.h>
#include <tenfold/points.h>
#include <tenfold/primitiv.h>
#include <tenfold/repair.h>
#include <tenfold/shards.h>
#include <tenfold/stat.h>
#include <tenfold/tenfold.h>

int use(const char *path);
int sizes(void);

/* Every struct that carries its size: all of it set, and nothing to warn of. */
int sizes(void)
{
    tnf_read_options read = TNF_READ_INIT;
    tnf_verify_options verify = TNF_VERIFY_INIT;
    tnf_hash_options hash = TNF_HASH_INIT;
    tnf_diff_options diff = TNF_DIFF_INIT;
    tnf_emb_options emb = TNF_EMB_INIT;
    tnf_emb_query query = TNF_EMB_QUERY_INIT;
    tnf_emb_change change = TNF_EMB_CHANGE_INIT;
    tnf_quantize_options quantize = TNF_QUANTIZE_INIT;
    tnf_params_options params = TNF_PARAMS_INIT;
    tnf_points_options points = TNF_POINTS_INIT;
    tnf_primitiv_bind_options bind = TNF_PRIMITIV_BIND_INIT;
    tnf_salvage_options salvage = TNF_SALVAGE_INIT;
    tnf_merge_options merge = TNF_MERGE_INIT;
    tnf_split_options split = TNF_SPLIT_INIT;
    tnf_stat_options stat = TNF_STAT_INIT;
    return (int)(read.size + verify.size + hash.size + diff.size + emb.size + query.size +
                 change.size + quantize.size + params.size + points.size + bind.size +
                 salvage.size + merge.size + split.size + stat.size);
}

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
