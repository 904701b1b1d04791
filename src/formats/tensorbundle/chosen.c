/* SPDX-License-Identifier: MIT */
/* The file `checkpoint` of a directory, which names the checkpoint to open. It is a CheckpointState
 * in protobuf's text format:
 *
 *   model_checkpoint_path: "ckpt-2"
 *   all_model_checkpoint_paths: "ckpt-1"
 *   all_model_checkpoint_paths: "ckpt-2"
 *   last_preserved_timestamp: 1700000000.5
 */
#include "base/hex.h"
#include "formats/tensorbundle/bundle.h"

#include <string.h>

#define WANTED "model_checkpoint_path"

struct text {
    const char *p, *end;
};

static void skip_space(struct text *t)
{
    while (t->p < t->end) {
        if (*t->p == '#')
            while (t->p < t->end && *t->p != '\n')
                t->p++;
        else if (memchr(" \t\r\n,;", *t->p, 6))
            t->p++;
        else
            return;
    }
}

static tnf_str take_word(struct text *t)
{
    const char *from = t->p;
    while (t->p < t->end && !memchr(" \t\r\n,;#:\"'{}", *t->p, 12))
        t->p++;
    return (tnf_str) { from, (size_t)(t->p - from) };
}

/* Up to three digits of base 8, or two of base 16. */
static char take_code(struct text *t, int base, unsigned most)
{
    int value = 0;
    for (unsigned i = 0; i < most && t->p < t->end; i++, t->p++) {
        int digit = tnf_hex_digit(*t->p);
        if (digit < 0 || digit >= base)
            break;
        value = value * base + digit;
    }
    return (char)value;
}

static char take_escape(struct text *t)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    char c = *t->p;
    const char *known = memchr(from, c, sizeof from - 1);
    if (c >= '0' && c <= '7')
        return take_code(t, 8, 3);
    t->p++;
    if (c == 'x' || c == 'X')
        return take_code(t, 16, 2);
    return known ? to[known - from] : c;
}

/* Reads a quoted text into `room`, which has space for the rest; false: it has no end. */
static bool take_text(tnf_str *out, struct text *t, char *room)
{
    char quote = *t->p++;
    size_t n = 0;
    while (t->p < t->end && *t->p != quote) {
        char c = *t->p++;
        if (c == '\\' && t->p == t->end)
            return false;
        room[n++] = c == '\\' ? take_escape(t) : c;
    }
    *out = (tnf_str) { room, n };
    return t->p++ < t->end;
}

bool tnf_tb_chosen(tnf_str text, char *room, tnf_str *name)
{
    struct text t = { text.p, text.p + text.n };
    bool found = false;
    for (skip_space(&t); t.p < t.end; skip_space(&t)) {
        tnf_str key = take_word(&t), value;
        bool wanted = tnf_str_is(key, WANTED);
        skip_space(&t);
        if (key.n == 0 || t.p == t.end || *t.p++ != ':')
            return false;
        skip_space(&t);
        bool quoted = t.p < t.end && (*t.p == '"' || *t.p == '\'');
        if (quoted && !take_text(&value, &t, room))
            return false;
        if (!quoted)
            value = take_word(&t);
        if (value.n == 0 || (wanted && !quoted))
            return false;
        if (wanted) {
            *name = value;
            room += value.n; /* later texts go after it */
            found = true;
        }
    }
    return found;
}
