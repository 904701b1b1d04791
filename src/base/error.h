/* SPDX-License-Identifier: MIT */
/* Raising errors. Every fallible function returns tnf_status and takes a tnf_error last. */
#ifndef TNF_BASE_ERROR_H
#define TNF_BASE_ERROR_H

#include <tenfold/types.h>

/* Fills *e (which may be NULL) and returns status, so that `return tnf_fail(...)` reads well: the
 * public function under the name that this library uses. */
#define tnf_fail tnf_error_set
/* TNF_ENOMEM: "out of memory for <what>". */
tnf_status tnf_no_memory(const char *what, tnf_error *e);

/* The same for a failed system call: TNF_EIO (TNF_ENOTFOUND for a missing file, TNF_EEXISTS …),
 * with the system's message after ours. */
tnf_status tnf_fail_sys(tnf_error *e, int err, const char *format, ...) TNF_PRINTF(3, 4);

/* Fails with a rule that the format's specification names. `rule` is a literal; it is kept and
 * begins the message: "BlobAlignment: …". */
tnf_status tnf_fail_rule(tnf_error *e, const char *rule, tnf_status status, uint64_t offset,
                         const char *format, ...) TNF_PRINTF(5, 6);
/* Sets the rule of an existing error; the message does not change. */
void tnf_error_rule(tnf_error *e, const char *rule);

/* A pointer that the caller of the API must set: TNF_EINVAL if it is NULL. `what` is the name of
 * the parameter in the header. */
tnf_status tnf_null_given(const char *what, tnf_error *e);
static inline tnf_status tnf_need(const void *pointer, const char *what, tnf_error *e)
{
    return pointer ? TNF_OK : tnf_null_given(what, e);
}
/* The same for an array of n items, which may be NULL if there are none. */
static inline tnf_status tnf_need_array(const void *items, uint64_t n, const char *what,
                                        tnf_error *e)
{
    return items || n == 0 ? TNF_OK : tnf_null_given(what, e);
}
static inline tnf_status tnf_need_str(tnf_str s, const char *what, tnf_error *e)
{
    return tnf_need_array(s.p, s.n, what, e);
}

/* Puts "prefix: " before the message. */
void tnf_error_prefix(tnf_error *e, const char *prefix);

/* Copies n bytes of a name from a file for a message: escaped, shortened, in quotes. The result is
 * in `out` (at least 8 bytes) and is returned. */
const char *tnf_quote(char *out, size_t out_size, const char *name, size_t n);
/* For use inside tnf_fail(): TNF_QUOTED(name) with a tnf_str. */
#define TNF_QUOTED(str) tnf_quote((char[72]) { 0 }, 72, (str).p, (str).n)

/* The same without quotes, for a file name at the beginning of a message. */
const char *tnf_visible(char *out, size_t out_size, const char *name);
#define TNF_VISIBLE(name) tnf_visible((char[200]) { 0 }, 200, (name))

/* A number and the words for one or for many: "1 row", "5 rows". The words have at most 26 bytes;
 * the result is in `out` and is returned. */
const char *tnf_counted(char out[48], uint64_t n, const char *one, const char *many);
/* For use inside tnf_fail(). */
#define TNF_COUNTED(n, one, many) tnf_counted((char[48]) { 0 }, (n), (one), (many))
#define TNF_BYTES_ARE(n)          TNF_COUNTED((n), "byte is", "bytes are")
#define TNF_BYTES_FOLLOW(n)       TNF_COUNTED((n), "byte follows", "bytes follow")

/* Calls a function of the caller, which takes a tnf_error last and may leave it unset. *e (which
 * may be NULL) is written only if the function fails, and then always. A result that is no status
 * becomes TNF_EINVAL. */
#define TNF_CALL(status, e, function, ...)                                                         \
    do {                                                                                           \
        tnf_error tnf_call_error_;                                                                 \
        tnf_call_before(&tnf_call_error_);                                                         \
        (status) = (function)(__VA_ARGS__, &tnf_call_error_);                                      \
        if ((status) != TNF_OK)                                                                    \
            (status) = tnf_call_failed((e), (status), &tnf_call_error_);                           \
    } while (0)

/* Parts of the macro above: clear the error before the call, and set the error after a failure. */
static inline void tnf_call_before(tnf_error *e)
{
    e->status = TNF_OK;
    e->sys = 0;
    e->offset = TNF_NO_OFFSET;
    e->rule = NULL;
    e->message[0] = 0;
}
tnf_status tnf_call_failed(tnf_error *e, tnf_status status, const tnf_error *said);

/* Is a failure a fault of the file, rather than of the system or the call? */
static inline bool tnf_is_file_fault(tnf_status status)
{
    return status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST ||
           status == TNF_EUNSUPPORTED || status == TNF_ELIMIT;
}

#define TNF_TRY(expression)                                                                        \
    do {                                                                                           \
        tnf_status tnf_try_status_ = (expression);                                                 \
        if (tnf_try_status_ != TNF_OK)                                                             \
            return tnf_try_status_;                                                                \
    } while (0)

#endif
