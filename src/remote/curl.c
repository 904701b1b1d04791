/* SPDX-License-Identifier: MIT */
#include "remote/curl.h"

#ifdef TENFOLD_CURL

#include "base/symbol.h"

#include <pthread.h>

#ifdef __APPLE__
static const char *const libraries[] = { "libcurl.4.dylib", "/usr/lib/libcurl.4.dylib" };
#else
static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
#endif

static tnf_curl loaded;
static bool usable;

static bool find_all(void *library)
{
    return tnf_find_symbol(library, "curl_global_init", &loaded.global_init) &&
           tnf_find_symbol(library, "curl_easy_init", &loaded.easy_init) &&
           tnf_find_symbol(library, "curl_easy_setopt", &loaded.setopt) &&
           tnf_find_symbol(library, "curl_easy_perform", &loaded.perform) &&
           tnf_find_symbol(library, "curl_easy_getinfo", &loaded.getinfo) &&
           tnf_find_symbol(library, "curl_easy_reset", &loaded.reset) &&
           tnf_find_symbol(library, "curl_easy_cleanup", &loaded.cleanup) &&
           tnf_find_symbol(library, "curl_slist_append", &loaded.append) &&
           tnf_find_symbol(library, "curl_slist_free_all", &loaded.free_all) &&
           tnf_find_symbol(library, "curl_easy_strerror", &loaded.strerror);
}

/* libcurl is never unloaded, since other libraries may use it by then. */
static void load_once(void)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !usable; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        usable = find_all(library) && loaded.global_init(TNF_CURL_GLOBAL_ALL) == TNF_CURLE_OK;
        if (!usable)
            dlclose(library);
    }
}

tnf_status tnf_curl_load(const tnf_curl **out, tnf_error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    *out = &loaded;
    if (usable)
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "network access needs libcurl, which was not found (Debian: libcurl4)");
}

#else

tnf_status tnf_curl_load(const tnf_curl **out, tnf_error *e)
{
    *out = NULL;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "this build has no network support; use the ordinary build, or download the "
                    "file");
}

#endif
