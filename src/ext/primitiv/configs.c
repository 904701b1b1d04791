/* SPDX-License-Identifier: MIT */
/* The configs of an optimizer: reading them by their keys, and setting all of them. */
#include "base/ieee.h"
#include "ext/primitiv/names.h"

#include <string.h>

/* ------------------------------------------------------------------- read */

static prim_configs file_configs(const tnf_file *file, bool floats)
{
    const tnf_info *info = tnf_file_info(file);
    return tnf_prim_configs_of(tnf_value_get(
        info ? info->attrs : NULL, floats ? "primitiv.float_configs" : "primitiv.uint_configs"));
}

static const tnf_value *find_config(const tnf_file *file, bool floats, tnf_str key)
{
    const prim_configs all = file_configs(file, floats);
    for (size_t i = 0; key.p && i < all.n; i++) {
        prim_config c;
        if (tnf_prim_config_at(&c, &all, i) && prim_same(c.key, key))
            return c.value;
    }
    return NULL;
}

static bool get_uint(uint32_t *out, const tnf_file *file, tnf_str key)
{
    const tnf_value *v = find_config(file, false, key);
    return v && tnf_prim_config_u32(v, out);
}

static bool get_float(float *out, const tnf_file *file, tnf_str key)
{
    bool rounded;
    const tnf_value *v = find_config(file, true, key);
    const uint32_t mode = tnf_enter_ieee(); /* a double is rounded */
    bool found = v && tnf_prim_config_f32(v, out, &rounded);
    tnf_leave_ieee(mode);
    return found;
}

static tnf_str whole_key(const char *key)
{
    return (tnf_str) { key, key ? strlen(key) : 0 };
}

bool tnf_primitiv_uint(uint32_t *out, const tnf_file *file, const char *key)
{
    return get_uint(out, file, whole_key(key));
}

bool tnf_primitiv_float(float *out, const tnf_file *file, const char *key)
{
    return get_float(out, file, whole_key(key));
}

static tnf_status need_keys(const tnf_primitiv_config *all, size_t n, const char *what,
                            tnf_error *e)
{
    TNF_TRY(tnf_need_array(all, n, what, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need(all[i].key.p, "key", e));
    return TNF_OK;
}

/* Gets the configs, or only checks that they are there. */
static tnf_status get_all(tnf_primitiv_config *all, size_t n, bool floats, bool check,
                          const tnf_file *file, tnf_error *e)
{
    for (size_t i = 0; i < n; i++) {
        tnf_primitiv_config c = all[i];
        if (floats ? !get_float(&c.f, file, c.key) : !get_uint(&c.u, file, c.key))
            return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "the optimizer has no %s config %s",
                            floats ? "float" : "integer", TNF_QUOTED(c.key));
        if (!check)
            all[i] = c;
    }
    return TNF_OK;
}

tnf_status tnf_primitiv_load_optimizer(tnf_primitiv_config *uints, size_t nuints,
                                       tnf_primitiv_config *floats, size_t nfloats,
                                       const char *path, tnf_error *e)
{
    tnf_file *file;
    TNF_TRY(need_keys(uints, nuints, "uints", e));
    TNF_TRY(need_keys(floats, nfloats, "floats", e));
    TNF_TRY(tnf_open(&file, path, NULL, e));
    tnf_status status = TNF_OK;
    for (int check = 1; check >= 0 && status == TNF_OK; check--) {
        status = get_all(uints, nuints, false, check, file, e);
        if (status == TNF_OK)
            status = get_all(floats, nfloats, true, check, file, e);
    }
    tnf_close(file);
    return status;
}

/* ------------------------------------------------------------------- class */

/* The class is the text before the first dot. Keys that all optimizers have do not name it. */
static bool class_of_key(tnf_str *out, tnf_str key)
{
    static const tnf_str every = TNF_STR("Optimizer");
    const char *dot = key.n ? memchr(key.p, '.', key.n) : NULL;
    if (!dot || dot == key.p)
        return false;
    *out = (tnf_str) { key.p, (size_t)(dot - key.p) };
    return !prim_same(*out, every);
}

bool tnf_primitiv_optimizer(tnf_str *out, const tnf_file *file)
{
    tnf_str found = { 0 };
    for (int floats = 0; floats < 2; floats++) {
        const prim_configs all = file_configs(file, floats);
        for (size_t i = 0; i < all.n; i++) {
            prim_config c;
            tnf_str name;
            if (!tnf_prim_config_at(&c, &all, i) || !class_of_key(&name, c.key))
                continue;
            if (found.p && !prim_same(found, name))
                return false;
            found = name;
        }
    }
    if (found.p)
        *out = found;
    return found.p != NULL;
}

/* ------------------------------------------------------------------- write */

static tnf_status set_configs(tnf_builder *b, const char *attr, const tnf_primitiv_config *from,
                              size_t n, bool floats, tnf_error *e)
{
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_buf members;
    tnf_buf_init(&members, &alloc, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        tnf_member m = { .key = from[i].key };
        if (floats)
            m.value = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = from[i].f };
        else
            m.value = (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = from[i].u };
        tnf_buf_put(&members, &m, sizeof m);
    }
    tnf_status status = tnf_buf_status(&members, "the configs", e);
    tnf_value map = { .kind = TNF_MAP, .n = n };
    map.as.members = (const tnf_member *)(const void *)members.p;
    if (status == TNF_OK)
        status = tnf_builder_set(b, NULL, attr, &map, e);
    tnf_buf_free(&members);
    return status;
}

tnf_status tnf_primitiv_set_optimizer(tnf_builder *b, const tnf_primitiv_config *uints,
                                      size_t nuints, const tnf_primitiv_config *floats,
                                      size_t nfloats, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(need_keys(uints, nuints, "uints", e));
    TNF_TRY(need_keys(floats, nfloats, "floats", e));
    const tnf_value type = tnf_value_string("optimizer");
    TNF_TRY(set_configs(b, "primitiv.uint_configs", uints, nuints, false, e));
    TNF_TRY(set_configs(b, "primitiv.float_configs", floats, nfloats, true, e));
    return tnf_builder_set(b, NULL, "primitiv.type", &type, e);
}
