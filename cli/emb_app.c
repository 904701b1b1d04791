/* SPDX-License-Identifier: MIT */
/* Shows the application data of points, which is MessagePack, as JSON. */
#include "emb.h"

static bool put_tree(json *j, tnf_builder *memory, tnf_str bytes)
{
    tnf_value value;
    tnf_error error;
    if (tnf_builder_unpack(&value, memory, bytes.p, bytes.n, &error) != TNF_OK)
        return false;
    json_value(j, &value);
    return true;
}

void emb_json_app(json *j, tnf_str bytes)
{
    tnf_builder *memory = NULL;
    tnf_error error;
    if (bytes.n == 0) {
        json_null(j);
        return;
    }
    if (tnf_builder_new(&memory, NULL, &error) != TNF_OK || !put_tree(j, memory, bytes))
        json_bytes(j, bytes.p, bytes.n);
    tnf_builder_free(memory);
}
