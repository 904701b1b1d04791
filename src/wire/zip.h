/* SPDX-License-Identifier: MIT */
/* Zip archives: the list of members and the positions of their bytes, and writing the bytes around
 * members. Nothing is decompressed here, and no file is read: a callback reads the bytes.
 *
 *   [bytes in front] local header, name, extra, data [descriptor]   a member, any number of them
 *   …                directory: an entry for each
 *                    [zip64 end record, zip64 locator] end record, comment
 *
 * The directory lists the members. A member's own header is compared with its entry before its data
 * is used. A name is bytes, never a path.
 */
#ifndef TNF_WIRE_ZIP_H
#define TNF_WIRE_ZIP_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/types.h>

enum { TNF_ZIP_STORED = 0, TNF_ZIP_DEFLATED = 8 };

/* ---------------------------------------------------------------- reading */

typedef struct tnf_zip_member {
    tnf_str name;           /* UTF-8 */
    tnf_str raw;            /* as in the file; differs only without the UTF-8 flag */
    uint64_t at;            /* position of its entry */
    uint64_t header, limit; /* position of the member, and the limit of its end */
    uint64_t stored, size;  /* bytes of its data, and decompressed bytes */
    uint32_t crc;           /* of the decompressed bytes */
    uint16_t method, flags;
} tnf_zip_member;

/* The origin of an archive. */
typedef struct tnf_zip_from {
    tnf_fetch_fn fetch; /* reads n bytes at an offset */
    void *ctx;          /* of fetch */
    uint64_t size;      /* of the file */
    tnf_arena *arena;   /* for the results */
    uint64_t max_directory, max_members;
    /* Called for illegal data that usual readers tolerate; may fail. NULL: always fails. */
    tnf_status (*odd)(void *odd_ctx, tnf_status status, uint64_t at, const char *text,
                      tnf_error *e);
    void *odd_ctx;
} tnf_zip_from;

typedef struct tnf_zip {
    tnf_zip_member *members; /* in the order of the directory */
    size_t n;
    uint64_t prefix;         /* bytes in front of the archive */
    uint64_t directory, end; /* positions of the directory and of the end records */
    tnf_str comment;
} tnf_zip;

/* Reads the directory. Refuses encrypted members, methods other than stored and deflated, names
 * with NUL, members that overlap each other or the directory, and archives of several disks. Calls
 * `odd` for bytes in front of the archive or after its end, and for duplicate names. */
tnf_status tnf_zip_read(tnf_zip *out, const tnf_zip_from *from, tnf_error *e);
/* The same without a directory, for a truncated file: one header after the other, from the first
 * byte on, until there is no further member. The last member may end after the end of the file. */
tnf_status tnf_zip_walk(tnf_zip *out, const tnf_zip_from *from, tnf_error *e);
/* The position of the data of a member. Its header is compared with its entry. */
tnf_status tnf_zip_locate(uint64_t *data, const tnf_zip_from *from, const tnf_zip_member *member,
                          tnf_error *e);
/* Does an archive seem to begin at the first byte? */
bool tnf_zip_begins(const uint8_t *head, size_t n);

/* ---------------------------------------------------------------- writing */

typedef enum tnf_zip_style {
    /* As Python's zipfile with force_zip64: sizes and CRC before the data, so they must be known,
     * or written there later. */
    TNF_ZIP_PYTHON,
    /* As PyTorch: sizes and CRC after the data, padding in an extra field before the data. */
    TNF_ZIP_TORCH
} tnf_zip_style;

/* A member to write. The caller keeps it for the directory. */
typedef struct tnf_zip_put {
    tnf_str name;    /* UTF-8 */
    uint64_t header; /* its position */
    uint64_t stored,
        size;     /* for TORCH the size must be known before the data, and equal `stored` */
    uint32_t crc; /* for TORCH known after the data */
    bool deflated;
    bool streamed;  /* PYTHON: to a pipe, with CRC and sizes after the data */
    uint32_t align; /* TORCH: alignment of its data; 0 or 1: none */
} tnf_zip_put;

/* Write the bytes before the data, the bytes after it, its entry in the directory, and the end of
 * the archive. */
void tnf_zip_put_local(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_behind(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_central(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m);
void tnf_zip_put_end(tnf_buf *b, tnf_zip_style style, uint64_t members, uint64_t directory,
                     uint64_t directory_n, tnf_str comment);
/* The number of bytes that tnf_zip_put_local() writes. */
uint64_t tnf_zip_local_size(tnf_zip_style style, const tnf_zip_put *m);

#endif
