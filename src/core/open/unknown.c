/* SPDX-License-Identifier: MIT */
/* Names the kind of a file that no format recognises. Mostly a download has failed; sometimes it is
 * a real format that this version cannot read. The message says what it is and what to do. */
#include "core/core.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct known {
    const char *magic;
    uint8_t n;
    tnf_status status;
    const char *sentence;
};

#define M(text) text, sizeof text - 1

#define FAISS                                                                                      \
    "this is a faiss index, which is not supported: extract its vectors with reconstruct_n() "     \
    "first"

static const struct known known[] = {
    { M("GGUF"), TNF_EUNSUPPORTED, "this is a GGUF file, which this build does not support" },
    { M("lmgg"), TNF_EUNSUPPORTED,
      "this is a GGML file from before GGUF: convert it with a llama.cpp of that time" },
    { M("fmgg"), TNF_EUNSUPPORTED,
      "this is a GGMF file from before GGUF: convert it with a llama.cpp of that time" },
    { M("tjgg"), TNF_EUNSUPPORTED,
      "this is a GGJT file from before GGUF: convert it with a llama.cpp of that time" },
    { M("algg"), TNF_EUNSUPPORTED,
      "this is a GGLA adapter from before GGUF: convert it with a llama.cpp of that time" },
    { M("PK\3\4"), TNF_EUNSUPPORTED,
      "this is a ZIP archive of no format that this build supports" },
    { M("PK\5\6"), TNF_EUNSUPPORTED, "this is an empty ZIP archive" },
    { M("\x1f\x8b"), TNF_EUNSUPPORTED, "this is gzip-compressed: run gunzip on it first" },
    { M("\x28\xb5\x2f\xfd"), TNF_EUNSUPPORTED, "this is zstd-compressed: run unzstd on it first" },
    { M("\xfd"
        "7zXZ"),
      TNF_EUNSUPPORTED, "this is xz-compressed: run unxz on it first" },
    { M("BZh"), TNF_EUNSUPPORTED, "this is bzip2-compressed: run bunzip2 on it first" },
    { M("\x93NUMPY"), TNF_EUNSUPPORTED,
      "this is a NumPy .npy file, which this build does not support" },
    { M("\x89HDF\r\n\x1a\n"), TNF_EUNSUPPORTED,
      "this is an HDF5 file, which this build does not support" },
    { M("\xff\xfe"), TNF_EFORMAT,
      "this begins with a UTF-16 byte order mark: it is text, without tensors" },
    { M("\xfe\xff"), TNF_EFORMAT,
      "this begins with a UTF-16 byte order mark: it is text, without tensors" },
    { M("\x7f"
        "ELF"),
      TNF_EFORMAT, "this is a program (ELF)" },
    { M("PAR1"), TNF_EUNSUPPORTED,
      "this is a Parquet file, which is not supported: write its columns as .npy with pyarrow "
      "first" },
    { M("ARROW1"), TNF_EUNSUPPORTED,
      "this is an Arrow IPC file, which is not supported: write its columns as .npy with pyarrow "
      "first" },
    { M("FEA1"), TNF_EUNSUPPORTED,
      "this is a Feather file, which is not supported: write its columns as .npy with pyarrow "
      "first" },
    { M("IxF2"), TNF_EUNSUPPORTED, FAISS },
    { M("IxFI"), TNF_EUNSUPPORTED, FAISS },
    { M("IxFl"), TNF_EUNSUPPORTED, FAISS },
    { M("IxMp"), TNF_EUNSUPPORTED, FAISS },
    { M("IxM2"), TNF_EUNSUPPORTED, FAISS },
    { M("IxPT"), TNF_EUNSUPPORTED, FAISS },
    { M("IwFl"), TNF_EUNSUPPORTED, FAISS },
    { M("IwPQ"), TNF_EUNSUPPORTED, FAISS },
    { M("IHNf"), TNF_EUNSUPPORTED, FAISS },
    { M("MATLAB 5.0 MAT-file"), TNF_EUNSUPPORTED,
      "this is a MATLAB level 5 file, which is not supported: save it with -v7.3, which is HDF5" },
    { M("\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), TNF_EUNSUPPORTED,
      "this is an MXNet parameter file, which is not supported" },
    { M("7767517\n"), TNF_EUNSUPPORTED,
      "this is the graph of an ncnn model, which is not supported" },
    { M("SQLite format 3"), TNF_EUNSUPPORTED, "this is an SQLite database" },
    { M("%PDF-"), TNF_EFORMAT, "this is a PDF document" },
    { M("\x89PNG"), TNF_EFORMAT, "this is a PNG picture" },
    { M("<?xml"), TNF_EFORMAT,
      "this is an XML document, perhaps an error page saved instead of the file: download it "
      "again" },
};

/* Formats without a mark of their own, by their extensions: the last guess. */
static const struct {
    const char *ext, *sentence;
} by_name[] = {
    { "caffemodel", "this may be a Caffe model, which is not supported" },
    { "mlmodel", "this may be a Core ML model, which is not supported" },
    { "ort",
      "this may be an ONNX Runtime model (.ort), which is not supported: use the .onnx that it was "
      "made from" },
    { "task", "this may be a MediaPipe bundle: unpack it with unzip, and open the .tflite in it" },
    { "nemo", "this may be a NeMo archive: unpack it with tar, and open the checkpoint in it" },
    { "weights", "these may be Darknet weights, which are not supported: they need their .cfg" },
    { "params", "this may be an MXNet parameter file, which is not supported" },
    { "ann",
      "this may be an Annoy index, which contains neither the number nor the type of its vectors" },
    { "engine", "this may be a TensorRT engine, whose tensors other programs cannot read" },
    { "plan", "this may be a TensorRT engine, whose tensors other programs cannot read" },
    { "pdmodel", "this may be a Paddle program: its weights are in .pdiparams or .pdparams" },
    { "pdiparams", "this may be a Paddle inference parameter file, which is not supported" },
};

#define LFS "version https://git-lfs"

static bool starts_with(const tnf_probe *p, size_t at, const char *text)
{
    size_t n = strlen(text);
    if (p->nhead < at || p->nhead - at < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tnf_lower_case((char)p->head[at + i]) != tnf_lower_case(text[i]))
            return false;
    return true;
}

static bool has_text(const tnf_probe *p, const char *text)
{
    for (size_t i = 0; i < p->nhead; i++)
        if (starts_with(p, i, text))
            return true;
    return false;
}

/* The size line of a git-LFS pointer, or 0. */
static unsigned long long lfs_size(const tnf_probe *p)
{
    char text[512];
    size_t n = p->nhead < sizeof text - 1 ? p->nhead : sizeof text - 1;
    memcpy(text, p->head, n);
    text[n] = 0;
    const char *line = strstr(text, "\nsize ");
    return line ? strtoull(line + 6, NULL, 10) : 0;
}

static tnf_status lfs_pointer(const tnf_probe *p, tnf_error *e)
{
    unsigned long long size = lfs_size(p);
    if (size)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "this is a git-LFS pointer, not the file itself, which has %llu bytes: run "
                        "'git lfs pull'",
                        size);
    return tnf_fail(e, TNF_EFORMAT, 0,
                    "this is a git-LFS pointer, not the file itself: run 'git lfs pull'");
}

static bool all_zero(const tnf_probe *p)
{
    for (size_t i = 0; i < p->nhead; i++)
        if (p->head[i])
            return false;
    return true;
}

/* A pickle begins with its protocol, 2 to 5. */
static bool is_pickle(const tnf_probe *p)
{
    return p->nhead >= 2 && p->head[0] == 0x80 && p->head[1] >= 2 && p->head[1] <= 5;
}

/* Text that begins with a bracket. The check for text is needed, since a binary number of eight
 * bytes, such as 0x7b, may begin with that byte, too. */
static bool is_json(const tnf_probe *p, size_t at)
{
    for (size_t i = 0; i < p->nhead && i < at + 8; i++)
        if (p->head[i] < 0x20 && !isspace(p->head[i]))
            return false;
    return starts_with(p, at, "{") || starts_with(p, at, "[");
}

static size_t first_letter(const tnf_probe *p)
{
    size_t at = 0;
    while (at < p->nhead && isspace(p->head[at]))
        at++;
    return at;
}

static bool is_html(const tnf_probe *p)
{
    size_t at = first_letter(p);
    return starts_with(p, at, "<!doctype html") || starts_with(p, at, "<html") ||
           starts_with(p, at, "<head");
}

/* FlatBuffers have their mark after four bytes. */
static bool is_ort(const tnf_probe *p)
{
    return p->nhead >= 8 && memcmp(p->head + 4, "ORTM", 4) == 0;
}

/* Blobs of Core ML: u32 count, u32 2, zeros up to byte 64, then EF BE AD DE for each blob. */
static bool is_coreml(const tnf_probe *p)
{
    static const uint8_t mark[4] = { 0xEF, 0xBE, 0xAD, 0xDE };
    return p->nhead >= 68 && memcmp(p->head + 64, mark, 4) == 0 && tnf_le32(p->head + 4) == 2;
}

/* Marks that are not at the start, and archives that their extension identifies. */
static const char *other_mark(const tnf_probe *p)
{
    bool zip = p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0;
    if (is_ort(p))
        return "this is an ONNX Runtime model (.ort), which is not supported: use the .onnx that "
               "it "
               "was made from";
    if (is_coreml(p))
        return "these are the weights of a Core ML model (weight.bin of an .mlpackage), which are "
               "not supported";
    if (zip && strcmp(p->ext, "task") == 0)
        return "this is a MediaPipe bundle: unpack it with unzip, and open the .tflite in it";
    if (zip && strcmp(p->ext, "mlpackage") == 0)
        return "this is an archived Core ML package, which is not supported";
    return NULL;
}

static const struct known *by_magic(const tnf_probe *p)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (p->nhead >= known[i].n && memcmp(p->head, known[i].magic, known[i].n) == 0)
            return &known[i];
    return NULL;
}

/* The byte order mark of UTF-16 has two bytes, which may also be a number. So two more must fit. */
static bool is_utf16(const tnf_probe *p)
{
    return p->nhead >= 4 && (p->head[2] == 0 || p->head[3] == 0);
}

bool tnf_surely_unknown(const tnf_probe *p)
{
    size_t at = first_letter(p);
    const struct known *magic = by_magic(p);
    if (magic && magic->n == 2 && p->head[0] >= 0xfe)
        return is_utf16(p);
    return (p->size > 0 && all_zero(p)) || starts_with(p, 0, LFS) || is_html(p) || by_magic(p) ||
           is_pickle(p) || is_json(p, at) || is_ort(p) || is_coreml(p);
}

tnf_status tnf_unknown_file(const tnf_probe *p, tnf_error *e)
{
    if (p->size == 0)
        return tnf_fail(e, TNF_ETRUNCATED, 0, "the file is empty");
    if (starts_with(p, 0, LFS))
        return lfs_pointer(p, e);
    size_t at = first_letter(p);
    if (is_html(p))
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "this is an HTML page, perhaps an error or login page saved instead of the "
                        "file: download it again");
    if (starts_with(p, 0, "<?xml") && has_text(p, "<net "))
        return tnf_fail(
            e, TNF_EUNSUPPORTED, 0,
            "this is the graph of an OpenVINO model, which is not supported: its weights are "
            "in the .bin next to it");
    const struct known *magic = by_magic(p);
    const char *other = other_mark(p);
    if (other)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0, "%s", other);
    if (magic)
        return tnf_fail(e, magic->status, 0, "%s", magic->sentence);
    if (is_pickle(p))
        return tnf_fail(
            e, TNF_EUNSUPPORTED, 0,
            "this is a Python pickle (perhaps an old PyTorch file), which this version does "
            "not support");
    if (is_json(p, at))
        return tnf_fail(
            e, TNF_EFORMAT, at,
            "this is JSON text, but not the index of a model: perhaps a server's error message");
    if (p->size < 8)
        return tnf_fail(e, TNF_ETRUNCATED, p->size,
                        "the file has only %llu bytes, too few for any format",
                        (unsigned long long)p->size);
    if (all_zero(p))
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the file begins with zeros only: perhaps an unfinished download");
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
        if (strcmp(p->ext, by_name[i].ext) == 0)
            return tnf_fail(e, TNF_EUNSUPPORTED, 0, "%s", by_name[i].sentence);
    return tnf_fail(e, TNF_EUNSUPPORTED, 0, "unrecognised file format");
}

tnf_status tnf_unknown_folder(const char *path, tnf_error *e)
{
    static const char end[] = ".mlpackage";
    size_t n = strlen(path), m = sizeof end - 1;
    while (n > 0 && path[n - 1] == '/')
        n--;
    if (n > m && memcmp(path + n - m, end, m) == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "this is a Core ML package, which is not supported");
    return TNF_OK;
}
