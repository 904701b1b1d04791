/* SPDX-License-Identifier: MIT */
/* SHA-256 of libcrypto (OpenSSL), for comparison. The library is loaded if it is installed. Its
 * function is declared here, so that its headers are not needed. */
#ifndef TENFOLD_BENCH_EVP_H
#define TENFOLD_BENCH_EVP_H

#include "base/symbol.h"
#include "bench.h"

static const void *(*evp_sha256)(void);
static int (*evp_digest)(const void *bytes, size_t n, unsigned char *out, unsigned *size,
                         const void *kind, void *engine);

/* Returns false if it is not installed. */
static bool evp_load(void)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    return library && tnf_find_symbol(library, "EVP_sha256", &evp_sha256) &&
           tnf_find_symbol(library, "EVP_Digest", &evp_digest);
}

/* Returns the first byte of the digest. */
static uint8_t evp_hash(const uint8_t *bytes, size_t n)
{
    unsigned char out[64];
    if (evp_digest(bytes, n, out, NULL, evp_sha256(), NULL) != 1)
        bench_die("sha256");
    return out[0];
}

#endif
