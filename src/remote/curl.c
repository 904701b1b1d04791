/* SPDX-License-Identifier: MIT */
#include "remote/curl.h"

#ifdef TENFOLD_CURL

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#ifdef __APPLE__
static const char *const libraries[] = { "libcurl.4.dylib", "/usr/lib/libcurl.4.dylib" };
#else
static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
#endif

static tnf_curl loaded;
static bool usable;

/* ISO C knows no way from an object's address to a function's; POSIX has them be of one kind. */
static bool find_symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *library)
{
    return find_symbol(library, "curl_global_init", &loaded.global_init) &&
           find_symbol(library, "curl_easy_init", &loaded.easy_init) &&
           find_symbol(library, "curl_easy_setopt", &loaded.setopt) &&
           find_symbol(library, "curl_easy_perform", &loaded.perform) &&
           find_symbol(library, "curl_easy_getinfo", &loaded.getinfo) &&
           find_symbol(library, "curl_easy_reset", &loaded.reset) &&
           find_symbol(library, "curl_easy_cleanup", &loaded.cleanup) &&
           find_symbol(library, "curl_slist_append", &loaded.append) &&
           find_symbol(library, "curl_slist_free_all", &loaded.free_all) &&
           find_symbol(library, "curl_easy_strerror", &loaded.strerror);
}

/* It is never unloaded: other libraries may use it by then. */
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
                    "reading over the network needs libcurl (Debian: libcurl4)");
}

#else

tnf_status tnf_curl_load(const tnf_curl **out, tnf_error *e)
{
    *out = NULL;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "this build has no network: use the ordinary build, or download the file");
}

#endif
