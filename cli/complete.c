/* SPDX-License-Identifier: MIT */
/* Completions for bash, zsh and fish from the option tables. */
#include "out.h"
#include <string.h>

/* What may stand as the value of an option: its own words, or the formats there are. */
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

/* The first sentence of a help text, with a backslash before each of the characters `special` and
 * single quotes written as `quote`. */
static void sentence(FILE *to, const char *help, const char *special, const char *quote)
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

static void bash_cases(FILE *to)
{
    fputs("    case $command:$previous in\n", to);
    bash_values(to, "*", global_options);
    for (const command *const *c = commands; *c; c++) {
        bash_values(to, (*c)->name, (*c)->table);
        if ((*c)->alias)
            bash_values(to, (*c)->alias, (*c)->table);
    }
    fputs("    *)\n        case $current in\n        -*)\n            case $command in\n", to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "            %s%s%s) words='", (*c)->name, (*c)->alias ? " | " : "",
                (*c)->alias ? (*c)->alias : "");
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
    fputs("' ;;\n            esac ;;\n        esac ;;\n    esac\n", to);
}

static void bash(FILE *to)
{
    fputs("# Completion of tenfold for bash; made from its option tables.\n"
          "_tenfold()\n{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command= words= i\n"
          "    if [[ $current == = ]]; then\n"
          "        current=\n"
          "    elif [[ $previous == = ]]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        -* | = | auto | always | never) ;;\n"
          "        *)\n"
          "            command=${COMP_WORDS[i]}\n"
          "            break\n"
          "            ;;\n"
          "        esac\n"
          "    done\n",
          to);
    bash_cases(to);
    fputs("    local file= names=\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        [[ -z $file && -f ${COMP_WORDS[i]} ]] && file=${COMP_WORDS[i]}\n"
          "    done\n"
          "    if [[ -n $file ]]; then\n"
          "        case $previous:$command:$current in\n"
          "        --select:* | --exclude:* | --match:* | --tensor:* | --heat:*) names=tensors ;;\n"
          "        *:*:-*) ;;\n"
          "        *:cat:* | *:ls:* | *:list:*) names=tensors ;;\n"
          "        --rm:meta:* | --set:meta:* | *:meta:*) names=keys ;;\n"
          "        esac\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    if [[ -n $names && -z $words ]]; then\n"
          "        while IFS= read -r i; do\n"
          "            [[ $i == \"$current\"* ]] && COMPREPLY+=(\"$i\")\n"
          "        done < <(\"${COMP_WORDS[0]}\" --complete $names \"$file\" 2>/dev/null)\n"
          "    fi\n"
          "    if [[ -n $words ]]; then\n"
          "        while IFS= read -r i; do\n"
          "            COMPREPLY+=(\"$i\")\n"
          "        done < <(compgen -W \"$words\" -- \"$current\")\n"
          "    fi\n"
          "}\n"
          "complete -o default -o bashdefault -F _tenfold tenfold\n",
          to);
}

/* -------------------------------------------------------------------- zsh */

static void zsh_option(FILE *to, const opt *o)
{
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
    sentence(to, o->help, "[]:\\", "'\\''");
    putc(']', to);
    if (o->kind != OPT_FLAG) {
        fprintf(to, "%s%s:", o->kind == OPT_MAYBE ? "::" : ":", o->arg);
        if (o->words) {
            putc('(', to);
            each_word(to, o, " ");
            putc(')', to);
        }
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
        fputs("        '1:file:_files' '*:tensor:_tenfold_names tensors' ;;\n", to);
    } else if (c == &cmd_meta) {
        fputs("        '1:file:_files' '*:key:_tenfold_names keys' ;;\n", to);
    } else {
        fputs("        '*:file:_files' ;;\n", to);
    }
}

static void zsh(FILE *to)
{
    fputs("#compdef tenfold\n"
          "# Completion of tenfold for zsh; made from its option tables.\n"
          "# Names of tensors or keys of the first file on the line; and files.\n"
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
          "  [[ $1 == tensors ]] && _files\n"
          "}\n"
          "_tenfold() {\n"
          "  local context state state_descr line\n"
          "  typeset -A opt_args\n"
          "  local -a commands=(\n",
          to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "    '%s:", (*c)->name);
        sentence(to, (*c)->summary, ":\\", "'\\''");
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
    fprintf(to, "complete -c tenfold %s -l %s", condition, o->name);
    if (o->letter)
        fprintf(to, " -s %c", o->letter);
    if (o->words) {
        fputs(" -x -a '", to);
        each_word(to, o, " ");
        putc('\'', to);
    } else if (o->kind == OPT_TEXT || o->kind == OPT_LIST) {
        fputs(" -x", to);
    }
    fputs(" -d '", to);
    sentence(to, o->help, "\\", "\\'");
    fputs("'\n", to);
}

static void fish(FILE *to)
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
        sentence(to, (*c)->summary, "\\", "\\'");
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

bool completions(const char *kind, const char *dir)
{
    static const struct {
        const char *kind, *file;
        void (*write)(FILE *to);
    } shells[] = {
        { "bash", "tenfold.bash", bash },
        { "zsh", "_tenfold", zsh },
        { "fish", "tenfold.fish", fish },
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
