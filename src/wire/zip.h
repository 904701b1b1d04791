/* SPDX-License-Identifier: MIT */
/* Zip archives: which members there are and where their bytes lie, and the bytes around members
 * that are written. Nothing is decompressed here, and no file is read: bytes come by a callback.
 *
 *   [bytes in front] local header, name, extra, data [descriptor]   a member, any number of them
 *   …                directory: an entry for each
 *                    [zip64 end record, zip64 locator] end record, comment
 *
 * The directory says what there is. A member's own header is compared with its entry before its
 * data are used. A name is bytes, never a path.
 */
#ifndef TNF_WIRE_ZIP_H
#define TNF_WIRE_ZIP_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/build.h>
#include <tenfold/types.h>

enum { TNF_ZIP_STORED = 0, TNF_ZIP_DEFLATED = 8 };

/* ---------------------------------------------------------------- reading */

typedef struct tnf_zip_member {
    tnf_str name;           /* UTF-8 */
    tnf_str raw;            /* as it is in the file; another one only without the flag of UTF-8 */
    uint64_t at;            /* where its entry stands */
    uint64_t header, limit; /* of the member: where it begins, and before what it must end */
    uint64_t stored, size;  /* bytes of its data, and decompressed */
    uint32_t crc;           /* of the decompressed ones */
    uint16_t method, flags;
} tnf_zip_member;

/* What an archive is read from. */
typedef struct tnf_zip_from {
    tnf_fetch_fn fetch; /* n bytes at an offset */
    void *ctx;          /* of fetch */
    uint64_t size;      /* of the file */
    tnf_arena *arena;   /* for what is found */
    uint64_t max_directory, max_members;
    /* Is told what is illegal but what usual readers let pass: fails, or not. NULL: always fails.
     */
    tnf_status (*odd)(void *odd_ctx, tnf_status status, uint64_t at, const char *text,
                      tnf_error *e);
    void *odd_ctx;
} tnf_zip_from;

typedef struct tnf_zip {
    tnf_zip_member *members; /* in the order of the directory */
    size_t n;
    uint64_t prefix;         /* bytes in front of the archive */
    uint64_t directory, end; /* where the directory begins, and the end records */
    tnf_str comment;
} tnf_zip;

/* The directory. Refuses encrypted members, other methods than stored and deflated, names with NUL,
 * members that overlap each other or the directory, archives of several disks; and, as `odd`, bytes
 * in front of the archive or behind its end, and a name that is there twice. */
tnf_status tnf_zip_read(tnf_zip *out, const tnf_zip_from *from, tnf_error *e);
/* The same without a directory, for a file that was cut short: one header after the other, from the
 * first byte on, up to what is no member. The last one may end behind the file. */
tnf_status tnf_zip_walk(tnf_zip *out, const tnf_zip_from *from, tnf_error *e);
/* Where the data of a member begin, after its header was compared with its entry. */
tnf_status tnf_zip_locate(uint64_t *data, const tnf_zip_from *from, const tnf_zip_member *member,
                          tnf_error *e);
/* Does it look like an archive that begins at the first byte? */
bool tnf_zip_begins(const uint8_t *head, size_t n);

/* ---------------------------------------------------------------- writing */

typedef enum tnf_zip_style {
    /* As Python's zipfile with force_zip64: sizes and CRC in front of the data, so they must be
     * known, or put there later. */
    TNF_ZIP_PYTHON,
    /* As PyTorch: sizes and CRC behind the data, padding in an extra field in front of them. */
    TNF_ZIP_TORCH
} tnf_zip_style;

/* A member that is written. The caller keeps it for the directory. */
typedef struct tnf_zip_put {
    tnf_str name;          /* UTF-8 */
    uint64_t header;       /* where it begins */
    uint64_t stored, size; /* for TORCH the size must be known in front, and stored be equal */
    uint32_t crc;          /* for TORCH known behind */
    bool deflated;
    bool streamed;  /* PYTHON: to a pipe, with CRC and sizes behind the data */
    uint32_t align; /* TORCH: of its data; 0 or 1: none */
} tnf_zip_put;

/* What comes before the data, behind them, its entry in the directory, and the end of it all. */
void tnf_zip_put_local(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_behind(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_central(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_end(tnf_buf *b, tnf_zip_style style, uint64_t members, uint64_t directory,
                     uint64_t directory_n, tnf_str comment);
/* How many bytes tnf_zip_put_local() gives. */
uint64_t tnf_zip_local_size(tnf_zip_style style, const tnf_zip_put *m);

#endif
