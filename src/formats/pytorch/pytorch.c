/* SPDX-License-Identifier: MIT */
/* PyTorch checkpoints (.pt .pth .bin .ckpt), which are pickles with separate storages.
 *
 *   zip      50 4B 03 04 …   ROOT/data.pkl, ROOT/data/0 …     since 1.6; TorchScript, too
 *   legacy   80 02 8A 0A 6C FC 9C 46 F9 20 6A A8 50 19 2E …   five pickles, then storages
 *   tar      "ustar" at 257                                   before 0.1.10
 *
 * No byte of a pickle is executed: see wire/pickle.h. pytorch.calls lists what loading it in Python
 * would call.
 */
#include "formats/pytorch/write.h"

#include "wire/zip.h"

#include <string.h>

/* The magic as torch.save() itself writes it: protocol 2. */
static const uint8_t magic[] = { 0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e };

static bool named_so(const char *ext)
{
    return tnf_list_has("pt pth bin ckpt model pkl pickle", ext) && *ext;
}

/* Is the first member in a directory, as in all files of torch and in no .npz? */
static bool in_folder(const tnf_probe *p)
{
    size_t n = p->nhead >= 30 ? p->head[26] | (size_t)p->head[27] << 8 : 0;
    return n && p->nhead >= 30 + n && memchr(p->head + 30, '/', n);
}

/* Is the name of a tar's first member one of a checkpoint? */
static bool is_first_of_tar(const uint8_t *head)
{
    static const char *const names[] = { "sys_info", "pickle", "storages", "tensors" };
    const char *name = (const char *)head;
    name += strncmp(name, "./", 2) == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int probe_zip(const tnf_probe *p)
{
    if (!in_folder(p))
        return named_so(p->ext) ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
    if (tnf_head_holds(p, "/data.pkl") || tnf_head_holds(p, "/constants.pkl"))
        return TNF_PROBE_MAGIC;
    return named_so(p->ext) || tnf_head_holds(p, "/data/0") ? TNF_PROBE_STRUCTURE : TNF_PROBE_NO;
}

static int probe_pytorch(const tnf_probe *p)
{
    if (p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0)
        return probe_zip(p);
    if (p->nhead >= sizeof magic && memcmp(p->head, magic, sizeof magic) == 0)
        return TNF_PROBE_MAGIC;
    if (p->nhead && p->head[0] == 'L' && tnf_head_holds(p, "L119547037146038801333356L\n"))
        return TNF_PROBE_MAGIC;
    if (p->nhead >= 8 && memcmp(p->head, "PYTORCH1", 8) == 0)
        return TNF_PROBE_MAGIC;
    if (p->nhead >= 6 && memcmp(p->head, "7z\xbc\xaf\x27\x1c", 6) == 0)
        return named_so(p->ext) ? TNF_PROBE_EXTENSION
                                : TNF_PROBE_NO; /* index_kind() refuses it by name */
    if (p->nhead >= 264 && memcmp(p->head + 257, "ustar", 5) == 0)
        return is_first_of_tar(p->head) ? TNF_PROBE_STRUCTURE : TNF_PROBE_NO;
    if (p->nhead >= 2 && p->head[0] == 0x80 && p->head[1] >= 2 && p->head[1] <= 5)
        return TNF_PROBE_PLAUSIBLE; /* a pickle: refused with a list of what it would call */
    return named_so(p->ext) && p->nhead && p->head[p->nhead - 1] == '.' &&
                   strchr("(c]}", p->head[0])
               ? TNF_PROBE_EXTENSION
               : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- storages */

tnf_status tnf_pt_add_storage(pt_file *f, const pt_storage *s, tnf_error *e)
{
    uint32_t known;
    pt_storage copy = *s;
    const char *key = tnf_arena_str(f->r->arena, s->key.p, s->key.n);
    pt_storage *kept = tnf_arena_alloc(f->r->arena, sizeof *kept);
    if (!key || !kept)
        return tnf_arena_fail(f->r->arena, "a storage", e);
    copy.key.p = key;
    *kept = copy;
    struct kept_storage {
        tnf_str key;
        pt_storage *at;
    } row = { copy.key, kept };
    return tnf_named_add(&f->storages, &row, &known, e);
}

pt_storage *tnf_pt_find_storage(const pt_file *f, tnf_str key)
{
    char full[200];
    size_t n = f->folder ? strlen(f->folder) : 0;
    if (n) {
        if (n + key.n > sizeof full)
            return NULL;
        memcpy(full, f->folder, n);
        memcpy(full + n, key.p, key.n);
        key = (tnf_str) { full, n + key.n };
    }
    uint32_t i = tnf_named_find(&f->storages, key);
    struct kept_storage {
        tnf_str key;
        pt_storage *at;
    };
    return i == TNF_HASH_NONE ? NULL
                              : ((const struct kept_storage *)tnf_named_at(&f->storages, i))->at;
}

/* ---------------------------------------------------------------- reading */

static tnf_status index_kind(pt_file *f, tnf_error *e)
{
    const tnf_source *source = f->r->source;
    uint8_t head[264] = { 0 };
    size_t n = source->size < sizeof head ? (size_t)source->size : sizeof head;
    TNF_TRY(tnf_source_read(source, 0, head, n, e));
    if (n >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        return tnf_pt_index_zip(f, e);
    if (memcmp(head, "PYTORCH1", 8) == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0,
                        "this is a file of a preview of PyTorch 1.0, which is not supported");
    if (memcmp(head, "7z\xbc\xaf\x27\x1c", 6) == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0, "this is a 7z archive, not a file of PyTorch");
    return memcmp(head + 257, "ustar", 5) == 0 ? tnf_pt_index_tar(f, e) : tnf_pt_index_legacy(f, e);
}

tnf_status tnf_pt_index(tnf_reader *r, pt_index_fn index, tnf_error *e)
{
    pt_file *f = tnf_arena_alloc(r->arena, sizeof *f);
    if (!f)
        return tnf_arena_fail(r->arena, "the file", e);
    f->r = r;
    f->left = PT_VALUES;
    r->state = f;
    tnf_named_init(&f->storages, sizeof(tnf_str) + sizeof(void *), &r->scratch->alloc,
                   r->limits.memory);
    tnf_named_init(&f->call_list, sizeof(pt_call), &r->scratch->alloc, r->limits.memory);
    tnf_status status = index(f, e);
    if (f->cut)
        tnf_warn(r, TNF_NO_OFFSET,
                 "values other than tensors are shown in part: expanded, they are far larger than "
                 "the file");
    f->failed = status != TNF_OK;
    if (f->failed)
        (void)tnf_pt_audit_done(f, NULL); /* its calls are reported in any case */
    else
        status = tnf_pt_audit_done(f, e);
    if (status == TNF_OK)
        status = tnf_pt_slack_done(f, e);
    tnf_named_free(&f->call_list);
    tnf_named_free(&f->storages);
    return status;
}

static tnf_status index_pytorch(tnf_reader *r, tnf_error *e)
{
    return tnf_pt_index(r, index_kind, e);
}

tnf_status tnf_pt_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e)
{
    tnf_pt_report_calls(r->state, tell, ctx);
    return tnf_pt_check_sums(r, arena, tell, ctx, e);
}

/* ---------------------------------------------------------------- writing */

static const tnf_option_info write_options[] = {
    { "root", TNF_OPTION_TEXT, NULL, "",
      "directory of all records in the archive; default: as in the source, else archive" },
    { "align", TNF_OPTION_UINT, NULL, "64", "records begin at a multiple of this power of two" },
    { "crc", TNF_OPTION_BOOL, NULL, "yes", "compute checksums; torch itself never checks them" },
    { "class", TNF_OPTION_CHOICE, "dict|OrderedDict", "dict",
      "container of the tensors, if the source has none" },
    { 0 },
};

static tnf_fate takes_pytorch(const tnf_object *o, const char **reason)
{
    if (o->layout != &tnf_layout_dense)
        return TNF_NATIVE;
    *reason = "its quantizer is left out: its elements are not integers of 8 or 32 bits";
    if (tnf_value_get(o->attrs, "pytorch.qscheme") && !tnf_pt_is_quantized(o))
        return TNF_TRANSFORMED;
    bool halves = strcmp(o->parts[0].type->id, "f4_e2m1") == 0;
    *reason = "torch counts such elements in pairs along the last dimension";
    if (halves && (o->rank == 0 || o->shape[o->rank - 1] % 2))
        return TNF_DROPPED;
    *reason = "torch allows at most 64 dimensions";
    if (o->rank > PT_RANK)
        return TNF_DROPPED;
    *reason = "torch cannot count its elements in 63 bits";
    uint64_t elements = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        if (!tnf_ckd_mul(&elements, elements, o->shape[i] ? o->shape[i] : 1) ||
            elements > INT64_MAX)
            return TNF_DROPPED;
    return TNF_NATIVE;
}

/* A meta tensor has only a shape, which the tree describes completely. */
static bool is_bare(const tnf_object *o)
{
    const tnf_value *kind = tnf_value_get(o->attrs, "pytorch.kind");
    return tnf_value_is(kind, "meta");
}

/* Does the tensor have attributes that only the tree can store? */
static bool needs_tree(const tnf_object *o)
{
    static const char *const keys[] = { "pytorch.kind", "pytorch.device", "pytorch.dtype",
                                        "pytorch.state" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (tnf_value_get(o->attrs, keys[i]))
            return true;
    return false;
}

/* The tree is written only with all its tensors and no others. */
static tnf_status fits_pytorch(tnf_fit *fit, tnf_error *e)
{
    tnf_pickle p;
    pt_named *list;
    size_t n;
    const char *why;
    const tnf_catalog *c = fit->catalog;
    TNF_TRY(tnf_pt_open_tree(&p, &list, &n, c, "pytorch.tree", fit->scratch, &why, e));
    for (size_t i = 0; why && i < c->attrs.n; i++)
        if (tnf_str_is(c->attrs.members[i].key, "pytorch.tree"))
            fit->attrs[i] = (tnf_verdict) { TNF_DROPPED, why };
    bool tree = n > 0 && !why;
    for (size_t i = 0; !tree && i < c->n; i++)
        if (is_bare(&c->objects[i]) && c->objects[i].parts->flags & TNF_PART_UNREADABLE)
            fit->objects[i] = (tnf_verdict) {
                TNF_DROPPED, "it has no bytes, and without its tree it cannot be written"
            };
        else if (fit->objects[i].fate == TNF_NATIVE && needs_tree(&c->objects[i]))
            fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED,
                                              "without its tree it is written as a plain tensor" };
    return TNF_OK;
}

const tnf_format tnf_format_pytorch = {
    .name = "pytorch",
    .title = "PyTorch checkpoint",
    .extensions = "pt pth ckpt bin",
    .family = "pytorch",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool c64 c128 u16 u32 u64 f8_e4m3fn "
                      "f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0 f4_e2m1",
             .layouts = "dense sparse_coo/1 sparse_csr/1 torch.sparse_coo/1 torch.sparse_csr/1 "
                        "torch.sparse_csc/1 torch.sparse_bsr/1 torch.sparse_bsc/1 "
                        "torch.per_channel/1 torch.nested/1",
             .in_parts = tnf_pt_in_parts,
             .bare = is_bare,
             .zero_rank = true,
             .utf8_names = true,
             .attrs = TNF_HOLDS_TEXT,
             .file_attrs = "pytorch.metadata pytorch.tree pytorch.views pytorch.serialization_id "
                           "pytorch.root",
             .object_attrs = "pytorch.requires_grad pytorch.parameter pytorch.kind pytorch.device "
                             "pytorch.dtype pytorch.qscheme pytorch.scale pytorch.zero_point "
                             "pytorch.axis pytorch.state pytorch.coalesced pytorch.sparse_dims "
                             "pytorch.batch_dims pytorch.block_size",
             .derived = "pytorch.values pytorch.calls pytorch.version pytorch.byteorder "
                        "pytorch.protocol pytorch.alignment pytorch.storage pytorch.strides "
                        "pytorch.path pytorch.root=archive",
             .spelling = "pytorch.root pytorch.serialization_id pytorch.views",
             .takes = takes_pytorch,
             .fits = fits_pytorch },
    .write_options = write_options,
    .probe = probe_pytorch,
    .index = index_pytorch,
    .decode = tnf_pt_decode,
    .write = TNF_WRITES(tnf_pt_write),
    .verify = tnf_pt_verify,
    .notes = tnf_pt_notes,
    .shard_notes = tnf_pt_index_notes,
};
