/* SPDX-License-Identifier: MIT */
/* Files of many members, of which a format need not know what kind they are: members have names,
 * sizes and perhaps a CRC; their bytes lie in a source, as they are or deflated.
 *
 *   zip      all members in one source: a stored one can be mapped where it is
 *   folder   each member is a file and a source of its own
 *   far      the same of another machine, by whoever can list and open what is there
 */
#ifndef TNF_CONTAINER_CONTAINER_H
#define TNF_CONTAINER_CONTAINER_H

#include "base/arena.h"
#include "codec/codec.h"
#include "io/source.h"
#include "wire/zip.h"
#include <tenfold/tenfold.h>

typedef struct tnf_content {
    tnf_str name;          /* UTF-8 in a zip archive, any bytes in a folder; never a path */
    uint64_t at;           /* where it is named, for messages */
    uint64_t stored, size; /* bytes it takes, and decompressed */
    uint32_t crc;          /* of the decompressed ones */
    bool has_crc, deflated;
    bool directory; /* its name ends in a slash: nothing is in it */
} tnf_content;

/* Where the bytes of a member are. */
typedef struct tnf_content_place {
    const tnf_source *source;
    uint64_t offset, stored;
    tnf_codec codec; /* TNF_CODEC_RAW or TNF_CODEC_DEFLATE */
} tnf_content_place;

/* What a container is opened with. */
typedef struct tnf_container_how {
    tnf_arena *arena; /* all of it lives there */
    uint64_t max_directory, max_members;
    /* As in tnf_zip_from: is told what is illegal but usual readers let pass. May be NULL. */
    tnf_status (*odd)(void *ctx, tnf_status status, uint64_t at, const char *text, tnf_error *e);
    void *ctx;
    bool walk; /* zip: without its directory, which is damaged */
} tnf_container_how;

typedef struct tnf_container {
    const tnf_content *members; /* zip: in the order of the directory; folder: by name */
    size_t n;
    tnf_str comment; /* of a zip archive */
    struct tnf_container_state *state;
} tnf_container;

/* The source must stay. */
tnf_status tnf_container_zip(tnf_container *out, const tnf_source *source,
                             const tnf_container_how *how, tnf_error *e);
/* All files below a folder; "" is where we are. They are opened by the rule of container/path.h,
 * for which `model` is the path of a file in it, or NULL. Their sources live as long as it does. */
tnf_status tnf_container_folder(tnf_container *out, const char *path, const char *model,
                                const tnf_container_how *how, tnf_error *e);
/* A file that a far folder lists: its name, which is not checked, and its size. */
typedef tnf_status (*tnf_far_file_fn)(void *to, const char *name, uint64_t size, tnf_error *e);
/* Whoever lists a folder and opens its files, the latter by any thread. Must stay with its ctx. */
typedef struct tnf_far_folder {
    tnf_status (*list)(void *ctx, tnf_far_file_fn take, void *to, tnf_error *e);
    tnf_status (*open)(void *ctx, tnf_source **out, tnf_str name, tnf_error *e);
    void *ctx;
} tnf_far_folder;
tnf_status tnf_container_far(tnf_container *out, const tnf_far_folder *from,
                             const tnf_container_how *how, tnf_error *e);
void tnf_container_close(tnf_container *c);
/* n bytes of a file of a folder, from `offset` on, by any thread and also after the folder was
 * placed: it is opened for this alone, and must still be as long as it was. */
tnf_status tnf_folder_fetch(const tnf_container *c, size_t i, uint64_t offset, void *dst, size_t n,
                            tnf_error *e);

/* Position of a member, or SIZE_MAX. Of several of one name it is the last. */
size_t tnf_container_find(const tnf_container *c, tnf_str name);
/* Where member i is; what stands in front of it, or how long it is, is compared with what the
 * container says. One thread at a time. */
tnf_status tnf_container_place(tnf_content_place *out, const tnf_container *c, size_t i,
                               tnf_error *e);
/* n bytes of a member, decompressed, from `offset` on. Only a short way into a deflated one. */
tnf_status tnf_container_read(const tnf_content_place *place, const tnf_content *member,
                              uint64_t offset, void *dst, size_t n, tnf_error *e);
/* A member's header, its name and its first bytes follow one another in an archive: they are read
 * together, for a call to the system costs more than the bytes. */
typedef struct tnf_content_near {
    const tnf_source *source;
    uint64_t at;
    size_t n;
    uint8_t bytes[1024];
} tnf_content_near;
tnf_status tnf_container_place_near(tnf_content_place *out, tnf_content_near *near,
                                    const tnf_container *c, size_t i, tnf_error *e);
/* Its first n bytes, after it was placed so. */
tnf_status tnf_container_head(const tnf_content_near *near, const tnf_content_place *place,
                              const tnf_content *member, void *dst, size_t n, tnf_error *e);
/* All of it, block by block. */
tnf_status tnf_container_scan(const tnf_content_place *place, const tnf_content *member,
                              tnf_take_fn take, void *ctx, tnf_error *e);

/* Tells a source over the network which bytes opening its members will need: their headers. */
void tnf_container_expect(const tnf_source *source, const tnf_zip *zip);

#endif
