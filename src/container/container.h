/* SPDX-License-Identifier: MIT */
/* Containers: files of many members behind one interface, so that a format need not know the kind
 * of container. Members have names, sizes and optionally a CRC; their bytes are in a source, plain
 * or deflated.
 *
 *   zip      all members in one source: a stored member can be mapped
 *   folder   a directory: each member is a file and a source of its own
 *   remote   the same on another machine, through functions that list and open its files
 */
#ifndef TNF_CONTAINER_CONTAINER_H
#define TNF_CONTAINER_CONTAINER_H

#include "base/arena.h"
#include "codec/codec.h"
#include "io/source.h"
#include "wire/zip.h"
#include <tenfold/tenfold.h>

typedef struct tnf_container_member {
    tnf_str name;          /* UTF-8 in a zip archive, any bytes in a directory; never a path */
    uint64_t at;           /* the position of its entry, for messages */
    uint64_t stored, size; /* bytes in the container, and decompressed bytes */
    uint32_t crc;          /* of the decompressed bytes */
    bool has_crc, deflated;
    bool directory; /* its name ends in a slash: it has no content */
} tnf_container_member;

/* The place of the bytes of a member. */
typedef struct tnf_member_place {
    const tnf_source *source;
    uint64_t offset, stored;
    tnf_codec codec; /* TNF_CODEC_RAW or TNF_CODEC_DEFLATE */
} tnf_member_place;

/* Options for opening a container. */
typedef struct tnf_container_how {
    tnf_arena *arena; /* for all its memory */
    uint64_t max_directory, max_members;
    /* As in tnf_zip_from: called for illegal data that usual readers tolerate. May be NULL. */
    tnf_status (*odd)(void *ctx, tnf_status status, uint64_t at, const char *text, tnf_error *e);
    void *ctx;
    bool walk; /* zip: ignore its directory, which is damaged */
} tnf_container_how;

typedef struct tnf_container {
    const tnf_container_member
        *members; /* zip: in the order of its directory; folder: sorted by name */
    size_t n;
    tnf_str comment; /* of a zip archive */
    struct tnf_container_state *state;
} tnf_container;

/* The source must outlive the container. */
tnf_status tnf_container_zip(tnf_container *out, const tnf_source *source,
                             const tnf_container_how *how, tnf_error *e);
/* All files below a directory; "" is the current directory. They are opened by the rule of
 * container/path.h; `model` is the path of a file in the directory, or NULL. Their sources live as
 * long as the container. */
tnf_status tnf_container_folder(tnf_container *out, const char *path, const char *model,
                                const tnf_container_how *how, tnf_error *e);
/* Receives a file of a remote directory: its name, which is not checked, and its size. */
typedef tnf_status (*tnf_container_file_fn)(void *to, const char *name, uint64_t size,
                                            tnf_error *e);
/* Lists a remote directory and opens its files; any thread may open. It and its ctx must outlive
 * the container. */
typedef struct tnf_remote_directory {
    tnf_status (*list)(void *ctx, tnf_container_file_fn take, void *to, tnf_error *e);
    tnf_status (*open)(void *ctx, tnf_source **out, tnf_str name, tnf_error *e);
    void *ctx;
} tnf_remote_directory;
tnf_status tnf_container_remote(tnf_container *out, const tnf_remote_directory *from,
                                const tnf_container_how *how, tnf_error *e);
void tnf_container_close(tnf_container *c);
/* Reads n bytes of a file of a directory, from `offset` on; any thread may call it, even after the
 * file was placed. The file is opened for this call only, and its size must not have changed. */
tnf_status tnf_folder_fetch(const tnf_container *c, size_t i, uint64_t offset, void *dst, size_t n,
                            tnf_error *e);

/* Position of a member, or SIZE_MAX. If several have that name, the last one. */
size_t tnf_container_find(const tnf_container *c, tnf_str name);
/* Finds the bytes of member i, and compares its own header or its length with what the container
 * says. One thread at a time. */
tnf_status tnf_container_place(tnf_member_place *out, const tnf_container *c, size_t i,
                               tnf_error *e);
/* Reads n decompressed bytes of a member, from `offset` on. In a deflated member, only near its
 * beginning. */
tnf_status tnf_container_read(const tnf_member_place *place, const tnf_container_member *member,
                              uint64_t offset, void *dst, size_t n, tnf_error *e);
/* In an archive, a member's header, its name and its first bytes follow each other. They are read
 * together, since a system call costs more than the bytes. */
typedef struct tnf_member_near {
    const tnf_source *source;
    uint64_t at;
    size_t n;
    uint8_t bytes[1024];
} tnf_member_near;
tnf_status tnf_container_place_near(tnf_member_place *out, tnf_member_near *near,
                                    const tnf_container *c, size_t i, tnf_error *e);
/* The first n bytes of a member that was placed this way. */
tnf_status tnf_container_head(const tnf_member_near *near, const tnf_member_place *place,
                              const tnf_container_member *member, void *dst, size_t n,
                              tnf_error *e);
/* Passes on the complete member, block by block. */
tnf_status tnf_container_scan(const tnf_member_place *place, const tnf_container_member *member,
                              tnf_take_fn take, void *ctx, tnf_error *e);

/* Announces to a source over the network which bytes opening its members will need: their
 * headers. */
void tnf_container_expect(const tnf_source *source, const tnf_zip *zip);

#endif
