/* SPDX-License-Identifier: MIT */
/* Generates completions for bash, zsh and fish from the option tables. */
#include "out.h"
#include <string.h>

/* Writes the possible values of an option: its own words, or all formats. */
static void each_word(FILE *to, const opt *o, const char *between)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    const char *word, *before = "";
    size_t n;
    if (*o->words == '@') {
        unsigned can = strcmp(o->words, "@writable") == 0 ? TNF_CAN_WRITE : TNF_CAN_READ;
        for (size_t i = 0; tnf_format_at(&f, i); i++) {
            if (!(f.caps & can))
                continue;
            fprintf(to, "%s%s", before, f.name);
            before = between;
        }
        return;
    }
    for (size_t i = 0; (n = opt_word(o->words, i, &word)) > 0; i++) {
        fprintf(to, "%s%.*s", before, (int)n, word);
        before = between;
    }
}

/* Writes the first sentence of a help text. Each of the characters `special` gets a backslash, and
 * a single quote is written as `quote`. */
static void put_sentence(FILE *to, const char *help, const char *special, const char *quote)
{
    const char *stop = strstr(help, ". ");
    size_t n = stop ? (size_t)(stop - help) : strlen(help);
    if (n > 0 && help[n - 1] == '.')
        n--;
    for (size_t i = 0; i < n; i++) {
        if (help[i] == '\'') {
            fputs(quote, to);
            continue;
        }
        if (strchr(special, help[i]))
            putc('\\', to);
        putc(help[i], to);
    }
}

/* ------------------------------------------------------------------- bash */

static void bash_names(FILE *to, const opt *table)
{
    for (const opt *o = table; o && o->name && o->help; o++) {
        if (o->letter)
            fprintf(to, " -%c", o->letter);
        fprintf(to, " --%s", o->name);
    }
}

static void bash_values(FILE *to, const char *name, const opt *table)
{
    for (const opt *o = table; o && o->name && o->help; o++) {
        if (!o->words)
            continue;
        fprintf(to, "    %s:--%s", name, o->name);
        if (o->letter)
            fprintf(to, " | %s:-%c", name, o->letter);
        fputs(") words='", to);
        each_word(to, o, " ");
        fputs("' ;;\n", to);
    }
}

/* The kind of an option's value, which the name of its argument determines. */
typedef enum value_kind { VALUE_OTHER, VALUE_FILE, VALUE_TENSOR, VALUE_KEY } value_kind;

static value_kind kind_of_value(const opt *o)
{
    static const char files[] = "FILE|OUT|DIR|PATH|MANIFEST|PLAN|MODEL|MAP";
    if (o->words || (o->kind != OPT_TEXT && o->kind != OPT_LIST))
        return VALUE_OTHER;
    if (!strcmp(o->arg, "GLOB") || !strcmp(o->name, "heat") || !strcmp(o->name, "tensor"))
        return VALUE_TENSOR;
    if (!strcmp(o->name, "set") || !strcmp(o->name, "rm"))
        return VALUE_KEY;
    return opt_position(files, o->arg, strlen(o->arg)) >= 0 ? VALUE_FILE : VALUE_OTHER;
}

/* Writes "--select) names=tensors ;;" for each option, and letter, with values of that kind. */
static void bash_kinds(FILE *to, value_kind kind, const char *does)
{
    for (const command *const *c = commands; *c; c++)
        for (const opt *o = (*c)->table; o && o->name && o->help; o++) {
            if (kind_of_value(o) != kind)
                continue;
            fprintf(to, "    %s:--%s", (*c)->name, o->name);
            if (o->letter)
                fprintf(to, " | %s:-%c", (*c)->name, o->letter);
            fprintf(to, ") %s ;;\n", does);
        }
}

static void bash_cases(FILE *to)
{
    fputs("    case $command:$previous in\n", to);
    bash_values(to, "*", global_options);
    for (const command *const *c = commands; *c; c++)
        bash_values(to, (*c)->name, (*c)->table);
    bash_kinds(to, VALUE_TENSOR, "names=tensors");
    bash_kinds(to, VALUE_KEY, "names=keys");
    bash_kinds(to, VALUE_FILE, "return");
    fputs("    *)\n        case $current in\n        -*)\n            case $command in\n", to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "            %s) words='", (*c)->name);
        bash_names(to, (*c)->table);
        fputs("' ;;\n", to);
    }
    fputs("            esac\n            words=\"$words", to);
    bash_names(to, global_options);
    fputs("\" ;;\n        *)\n            case $command in\n            '' | help) words='", to);
    for (const command *const *c = commands; *c; c++)
        fprintf(to, "%s%s", (*c)->name, c[1] ? " " : "");
    static const opt any = { .words = "@formats" };
    fputs("' ;;\n            formats) words='", to);
    each_word(to, &any, " ");
    fputs("' ;;\n"
          "            cat | ls) names=tensors ;;\n"
          "            meta) names=keys ;;\n"
          "            esac ;;\n        esac ;;\n    esac\n",
          to);
}

/* The script parses the line itself, since bash breaks words at ':' and '=' and keeps their quotes.
 * Names come from untrusted files, so every offered word is quoted, and no part of the line is ever
 * expanded. */
static const char bash_parse[] =
    "# Splits the line into args (without quotes) and the word at the cursor: raw (as typed),\n"
    "# current (without quotes), quote (the open one), mark (where readline's own word begins).\n"
    "_tenfold_parse()\n{\n"
    "    local line=$1 i c\n"
    "    for ((i = 0; i < ${#line}; i++)); do\n"
    "        c=${line:i:1}\n"
    "        if [[ $quote == \"'\" && $c != \"'\" ]]; then\n"
    "            raw+=$c current+=$c\n"
    "        elif [[ -n $quote && $c == \"$quote\" ]]; then\n"
    "            raw+=$c quote= closed=yes\n"
    "        elif [[ $c == \\\\ ]]; then\n"
    "            raw+=${line:i:2} i=$((i + 1)) c=${line:i:1}\n"
    "            [[ -n $quote && $c != [\\\\\\\"\\$\\`] ]] && current+=\\\\\n"
    "            current+=$c\n"
    "        elif [[ -n $quote ]]; then\n"
    "            raw+=$c current+=$c\n"
    "        elif [[ $c == [\\'\\\"] ]]; then\n"
    "            quote=$c raw+=$c mark=${#raw}\n"
    "        elif [[ $c == [[:space:]\\;\\|\\&\\<\\>\\(\\)] ]]; then\n"
    "            [[ -n $raw ]] && args+=(\"$current\")\n"
    "            raw= current= closed= mark=0\n"
    "        else\n"
    "            raw+=$c current+=$c\n"
    "            [[ $COMP_WORDBREAKS == *\"$c\"* ]] && mark=${#raw}\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "# Offers a word, quoted as the line needs it, without the beginning that readline keeps.\n"
    "_tenfold_offer()\n{\n"
    "    local word\n"
    "    case $quote in\n"
    "    \\') [[ $1 == *\\'* ]] && return; word=$quote$1 ;;\n"
    "    \\\") [[ $1 == *[\\\\\\\"\\$\\`!]* ]] && return; word=$quote$1 ;;\n"
    "    *) printf -v word %q \"$1\" ;;\n"
    "    esac\n"
    "    word=$lead$word\n"
    "    [[ ${word:0:mark} == \"${raw:0:mark}\" ]] && COMPREPLY+=(\"${word:mark}\")\n"
    "}\n";

static const char bash_begin[] =
    "_tenfold()\n{\n"
    "    local raw= current= quote= closed= mark=0 lead= previous= command= words= names= file= i\n"
    "    local -a args=()\n"
    "    local IFS=$' \\t\\n'\n"
    "    COMPREPLY=()\n"
    "    _tenfold_parse \"${COMP_LINE:0:COMP_POINT}\"\n"
    "    [[ -n $closed ]] && return\n"
    "    while [[ ${args[0]-} == *=* ]]; do\n"
    "        args=(\"${args[@]:1}\")\n"
    "    done\n"
    "    ((${#args[@]} > 0)) && previous=${args[${#args[@]} - 1]}\n"
    "    if [[ $raw == --*=* ]]; then\n"
    "        lead=${raw%%=*}= previous=${raw%%=*} current=${current#*=}\n"
    "    fi\n"
    "    for i in \"${args[@]:1}\"; do\n"
    "        case $command:$i in\n"
    "        *:-* | :auto | :always | :never | :[0-9]*) continue ;;\n"
    "        esac\n"
    "        [[ $i == '~/'* ]] && i=$HOME/${i:2}\n"
    "        if [[ -z $command ]]; then\n"
    "            command=$i\n"
    "        elif [[ -z $file && -f $i ]]; then\n"
    "            file=$i\n"
    "        fi\n"
    "    done\n"
    "    [[ $command == list ]] && command=ls\n";

static const char bash_end[] =
    "    if [[ -n $names && -n $file ]]; then\n"
    "        while IFS= read -r i; do\n"
    "            [[ $i == \"$current\"* ]] && _tenfold_offer \"$i\"\n"
    "        done < <(\"${1:-tenfold}\" --complete $names \"$file\" 2>/dev/null)\n"
    "    fi\n"
    "    if [[ -n $words ]]; then\n"
    "        for i in $words; do\n"
    "            [[ $i == \"$current\"* ]] && _tenfold_offer \"$i\"\n"
    "        done\n"
    "    fi\n"
    "}\n"
    "complete -o default -o bashdefault -F _tenfold tenfold\n";

static void complete_bash(FILE *to)
{
    fputs("# Completion of tenfold for bash; made from its option tables.\n", to);
    fputs(bash_parse, to);
    fputs(bash_begin, to);
    bash_cases(to);
    fputs(bash_end, to);
}

/* -------------------------------------------------------------------- zsh */

static void zsh_option(FILE *to, const opt *o)
{
    /* With a blank in front, _arguments calls the action with these words only. */
    static const char *const zsh_actions[] = { "", "_files", " _tenfold_names tensors only",
                                               " _tenfold_names keys" };
    const char *equals = o->kind == OPT_FLAG ? "" : o->kind == OPT_MAYBE ? "=-" : "=";
    fputs("        ", to);
    if (o->letter && o->kind == OPT_LIST)
        fputs("'*'", to);
    else if (o->letter)
        fprintf(to, "'(-%c --%s)'", o->letter, o->name);
    if (o->letter)
        fprintf(to, "{-%c%s,--%s%s}", o->letter, o->kind == OPT_FLAG ? "" : "+", o->name, equals);
    else
        fprintf(to, "'%s--%s%s'", o->kind == OPT_LIST ? "*" : "", o->name, equals);
    fputs("'[", to);
    put_sentence(to, o->help, "[]:\\", "'\\''");
    putc(']', to);
    if (o->kind != OPT_FLAG) {
        fprintf(to, "%s%s:", o->kind == OPT_MAYBE ? "::" : ":", o->arg);
        if (o->words) {
            putc('(', to);
            each_word(to, o, " ");
            putc(')', to);
        }
        fputs(zsh_actions[kind_of_value(o)], to);
    }
    fputs("' \\\n", to);
}

static void zsh_arguments(FILE *to, const command *c)
{
    static const opt any = { .words = "@formats" };
    fprintf(to, "    %s%s%s)\n      _arguments -s -S \\\n", c->name, c->alias ? "|" : "",
            c->alias ? c->alias : "");
    for (const opt *o = c->table; o && o->name && o->help; o++)
        zsh_option(to, o);
    for (const opt *o = global_options; o->name; o++)
        zsh_option(to, o);
    if (c == &cmd_formats) {
        fputs("        '1:format:(", to);
        each_word(to, &any, " ");
        fputs(")' ;;\n", to);
    } else if (c == &cmd_help) {
        fputs("        '1:command:(", to);
        for (const command *const *x = commands; *x; x++)
            fprintf(to, "%s%s", x == commands ? "" : " ", (*x)->name);
        fputs(")' ;;\n", to);
    } else if (c == &cmd_cat || c == &cmd_ls) {
        fputs("        '1:file:_files' '*:tensor: _tenfold_names tensors' ;;\n", to);
    } else if (c == &cmd_meta) {
        fputs("        '1:file:_files' '*:key: _tenfold_names keys' ;;\n", to);
    } else {
        fputs("        '*:file:_files' ;;\n", to);
    }
}

static void complete_zsh(FILE *to)
{
    fputs("#compdef tenfold\n"
          "# Completion of tenfold for zsh; made from its option tables.\n"
          "# Names of tensors, or keys, of the first file on the line; also files.\n"
          "_tenfold_names() {\n"
          "  local word\n"
          "  local -a names\n"
          "  for word in ${words[2,CURRENT-1]}; do\n"
          "    if [[ -f ${(Q)word} ]]; then\n"
          "      names=(${(f)\"$(command tenfold --complete $1 ${(Q)word} 2>/dev/null)\"})\n"
          "      compadd -a names\n"
          "      break\n"
          "    fi\n"
          "  done\n"
          "  [[ $1 == tensors && -z $2 ]] && _files\n"
          "}\n"
          "_tenfold() {\n"
          "  local context state state_descr line\n"
          "  typeset -A opt_args\n"
          "  local -a commands=(\n",
          to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "    '%s:", (*c)->name);
        put_sentence(to, (*c)->summary, ":\\", "'\\''");
        fputs("'\n", to);
    }
    fputs("  )\n  _arguments -C -s -S \\\n", to);
    for (const opt *o = global_options; o->name; o++)
        zsh_option(to, o);
    fputs("        '1:command:->command' \\\n"
          "        '*::argument:->argument'\n"
          "  case $state in\n"
          "  command) _describe command commands ;;\n"
          "  argument)\n"
          "    case $words[1] in\n",
          to);
    for (const command *const *c = commands; *c; c++)
        zsh_arguments(to, *c);
    fputs("    esac ;;\n"
          "  esac\n"
          "}\n"
          "_tenfold \"$@\"\n",
          to);
}

/* ------------------------------------------------------------------- fish */

static void fish_option(FILE *to, const char *condition, const opt *o)
{
    static const char *const fish_values[] = { " -x", " -r -F",
                                               " -x -a '(__tenfold_names tensors)'",
                                               " -x -a '(__tenfold_names keys)'" };
    fprintf(to, "complete -c tenfold %s -l %s", condition, o->name);
    if (o->letter)
        fprintf(to, " -s %c", o->letter);
    if (o->words) {
        fputs(" -x -a '", to);
        each_word(to, o, " ");
        putc('\'', to);
    } else if (o->kind == OPT_TEXT || o->kind == OPT_LIST) {
        fputs(fish_values[kind_of_value(o)], to);
    }
    fputs(" -d '", to);
    put_sentence(to, o->help, "\\", "\\'");
    fputs("'\n", to);
}

static void complete_fish(FILE *to)
{
    static const opt any = { .words = "@formats" };
    fputs("# Completion of tenfold for fish; made from its option tables.\n"
          "function __tenfold_names --description 'tensors or keys of the first file on the line'\n"
          "    for word in (commandline -opc)[3..-1]\n"
          "        if test -f $word\n"
          "            command tenfold --complete $argv[1] $word 2>/dev/null\n"
          "            return\n"
          "        end\n"
          "    end\n"
          "end\n"
          "complete -c tenfold -n '__fish_seen_subcommand_from cat ls list' -a '(__tenfold_names "
          "tensors)'\n"
          "complete -c tenfold -n '__fish_seen_subcommand_from meta' -a '(__tenfold_names keys)'\n",
          to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "complete -c tenfold -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_sentence(to, (*c)->summary, "\\", "\\'");
        fputs("'\n", to);
    }
    for (const opt *o = global_options; o->name; o++)
        fish_option(to, "", o);
    for (const command *const *c = commands; *c; c++) {
        char condition[128];
        snprintf(condition, sizeof condition, "-n '__fish_seen_subcommand_from %s%s%s'", (*c)->name,
                 (*c)->alias ? " " : "", (*c)->alias ? (*c)->alias : "");
        for (const opt *o = (*c)->table; o && o->name && o->help; o++)
            fish_option(to, condition, o);
    }
    fputs("complete -c tenfold -n '__fish_seen_subcommand_from formats' -f -a '", to);
    each_word(to, &any, " ");
    fputs("'\ncomplete -c tenfold -n '__fish_seen_subcommand_from help' -f -a '", to);
    for (const command *const *c = commands; *c; c++)
        fprintf(to, "%s%s", c == commands ? "" : " ", (*c)->name);
    fputs("'\n", to);
}

bool write_completions(const char *kind, const char *dir)
{
    static const struct {
        const char *kind, *file;
        void (*write)(FILE *to);
    } shells[] = {
        { "bash", "tenfold.bash", complete_bash },
        { "zsh", "_tenfold", complete_zsh },
        { "fish", "tenfold.fish", complete_fish },
    };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shells[i].kind, kind)) {
            FILE *to = generated_file(dir, shells[i].file);
            if (!to)
                return false;
            shells[i].write(to);
            return fclose(to) == 0;
        }
    return false;
}
