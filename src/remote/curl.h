/* SPDX-License-Identifier: MIT */
/* libcurl, loaded at first use. Its ABI has been stable since 7.16 (soname 4), so the few necessary
 * functions and numbers are declared here. The build needs no headers of libcurl, and a program
 * that never opens a URL never loads it. */
#ifndef TNF_REMOTE_CURL_H
#define TNF_REMOTE_CURL_H

#include "base/error.h"
#include <sys/socket.h>

/* Options: 0 and up take a long, 10000 a pointer, 20000 a function, 30000 a curl_off_t. */
enum {
    TNF_CURL_LOW_SPEED_LIMIT = 19,
    TNF_CURL_LOW_SPEED_TIME = 20,
    TNF_CURL_NOPROGRESS = 43,
    TNF_CURL_NOBODY = 44,
    TNF_CURL_UPLOAD = 46,
    TNF_CURL_POST = 47,
    TNF_CURL_FOLLOWLOCATION = 52,
    TNF_CURL_NETRC = 51,
    TNF_CURL_SSL_VERIFYPEER = 64,
    TNF_CURL_HTTPGET = 80,
    TNF_CURL_SSL_VERIFYHOST = 81,
    TNF_CURL_HTTP_VERSION = 84,
    TNF_CURL_BUFFERSIZE = 98,
    TNF_CURL_NOSIGNAL = 99,
    TNF_CURL_TCP_NODELAY = 121,
    TNF_CURL_TIMEOUT_MS = 155,
    TNF_CURL_CONNECTTIMEOUT_MS = 156,
    TNF_CURL_PROTOCOLS = 181,
    TNF_CURL_PATH_AS_IS = 234,
    TNF_CURL_SUPPRESS_CONNECT_HEADERS = 265,
    TNF_CURL_WRITEDATA = 10001,
    TNF_CURL_URL = 10002,
    TNF_CURL_READDATA = 10009,
    TNF_CURL_ERRORBUFFER = 10010,
    TNF_CURL_POSTFIELDS = 10015,
    TNF_CURL_HTTPHEADER = 10023,
    TNF_CURL_HEADERDATA = 10029,
    TNF_CURL_CUSTOMREQUEST = 10036,
    TNF_CURL_XFERINFODATA = 10057,
    TNF_CURL_CAINFO = 10065,
    TNF_CURL_NETRC_FILE = 10118,
    TNF_CURL_OPENSOCKETDATA = 10164,
    TNF_CURL_SEEKDATA = 10168,
    TNF_CURL_NOPROXY = 10177,
    TNF_CURL_PROTOCOLS_STR = 10318,
    TNF_CURL_WRITEFUNCTION = 20011,
    TNF_CURL_READFUNCTION = 20012,
    TNF_CURL_HEADERFUNCTION = 20079,
    TNF_CURL_OPENSOCKETFUNCTION = 20163,
    TNF_CURL_SEEKFUNCTION = 20167,
    TNF_CURL_XFERINFOFUNCTION = 20219,
    TNF_CURL_INFILESIZE_LARGE = 30115,
    TNF_CURL_POSTFIELDSIZE_LARGE = 30120
};

enum {
    TNF_CURL_INFO_STATUS = 0x200002,
    TNF_CURL_INFO_IP = 0x100020,
    TNF_CURL_INFO_PORT = 0x200028,
    TNF_CURL_HTTP_1_1 = 2,
    TNF_CURL_NETRC_OPTIONAL = 1,
    TNF_CURL_HTTP_AND_HTTPS = 3,
    TNF_CURL_ERROR_TEXT = 256,
    TNF_CURL_GLOBAL_ALL = 3,
    TNF_CURL_CANNOT_SEEK = 1,
    TNF_CURL_BAD_SOCKET = -1
};

/* Results of a transfer; only those that the code distinguishes. */
enum {
    TNF_CURLE_OK = 0,
    TNF_CURLE_URL = 3,
    TNF_CURLE_PROXY = 5,
    TNF_CURLE_HOST = 6,
    TNF_CURLE_CONNECT = 7,
    TNF_CURLE_STRANGE = 8,
    TNF_CURLE_PARTIAL = 18,
    TNF_CURLE_WRITE = 23,
    TNF_CURLE_MEMORY = 27,
    TNF_CURLE_TIMEOUT = 28,
    TNF_CURLE_TLS = 35,
    TNF_CURLE_ABORTED = 42,
    TNF_CURLE_EMPTY = 52,
    TNF_CURLE_SEND = 55,
    TNF_CURLE_RECEIVE = 56,
    TNF_CURLE_CLIENT_CERTIFICATE = 58,
    TNF_CURLE_CERTIFICATE = 60,
    TNF_CURLE_REWIND = 65,
    TNF_CURLE_STREAM = 92
};

struct tnf_curl_slist;

/* Has the layout of struct curl_sockaddr. */
typedef struct tnf_curl_address {
    int family, kind, protocol;
    unsigned n;
    struct sockaddr address;
} tnf_curl_address;

typedef struct tnf_curl {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*setopt)(void *easy, int option, ...);
    int (*perform)(void *easy);
    int (*getinfo)(void *easy, int info, ...);
    void (*reset)(void *easy);
    void (*cleanup)(void *easy);
    struct tnf_curl_slist *(*append)(struct tnf_curl_slist *list, const char *text);
    void (*free_all)(struct tnf_curl_slist *list);
    const char *(*strerror)(int code);
} tnf_curl;

/* Fails with TNF_EUNSUPPORTED if libcurl is missing, or if the build has no network support. */
tnf_status tnf_curl_load(const tnf_curl **out, tnf_error *e);

#endif
