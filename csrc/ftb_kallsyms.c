/* The text of /proc/kallsyms as columns (K:kallsyms.c s_show). */
#include "ftb_kallsyms.h"

#include "ftb_inline.h"

#include <stdbool.h>

#define ADDRESS_DIGITS 16

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hexadecimal number of at most so many digits; returns what follows, or NULL where there is none. */
static const char *read_address(const char *p, const char *end, uint64_t *address)
{
    const char *start = p;
    uint64_t value = 0;
    int digit;
    for (; p < end && (digit = digit_of(*p)) >= 0; p++) {
        if (p - start == ADDRESS_DIGITS)
            return NULL;
        value = value << 4 | (unsigned)digit;
    }
    *address = value;
    return p > start ? p : NULL;
}

/* One blank, or tab, before a bracket belongs to it; so do both, in this order. */
static const char *skip_before_bracket(const char *p, const char *end)
{
    const char *at = p;
    if (*at == ' ')
        at++;
    if (at < end && *at == '\t')
        at++;
    return at < end && *at == '[' ? at : p;
}

/* Copy a name with its module to `to`; returns the end, or NULL where this is more than one word. */
static char *copy_word(const char *p, const char *end, char *to)
{
    while (p < end) {
        p = skip_before_bracket(p, end);
        if (is_space(*p) || *p == 0)
            return NULL;
        *to++ = *p++;
    }
    return to;
}

/* The bracket that begins the module of a word, or the word itself. */
static char *bracket_of(char *word, char *end)
{
    char *p = end - 1;
    if (*p != ']')
        return word;
    while (p > word && *p != '[')
        p--;
    return p;
}

/* "NAME[MODULE]" becomes "NAME\0MODULE\0", and "NAME" "NAME\0\0"; returns the end. */
static char *split(char *word, char *end, const char **module)
{
    char *bracket = bracket_of(word, end);
    *module = NULL;
    if (bracket == word) {
        *end++ = 0;
        *end++ = 0;
    } else {
        *bracket = end[-1] = 0;
        if (bracket + 1 < end - 1)
            *module = bracket + 1;
    }
    return end;
}

static void push(ftb_column *column, const void *value, size_t size)
{
    memcpy(column->data + column->size, value, size);
    column->size += size;
}

static void read_line(const char *p, const char *end, ftb_kallsyms *out)
{
    uint64_t address;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    p = read_address(p, end, &address);
    if (p == NULL || end - p < 4 || p[0] != ' ' || is_space(p[1]) || p[1] == '[' || p[2] != ' ')
        return;
    if (skip_before_bracket(p + 2, end) != p + 2) /* the bracket has its blank, and there is no name */
        return;
    char *texts = (char *)out->texts.data, *word = texts + out->texts.size + 1;
    char *word_end = copy_word(p + 3, end, word);
    const char *module;
    if (word_end == NULL)
        return;
    word[-1] = ' ';
    out->texts.size = (size_t)(split(word, word_end, &module) - texts);
    push(&out->addresses, &address, sizeof address);
    push(&out->types, p + 1, 1);
    push(&out->names, &(int64_t){word - texts}, sizeof(int64_t));
    push(&out->modules, &(int64_t){module != NULL ? module - texts : -1}, sizeof(int64_t));
}

static size_t count_lines(const char *text, size_t size)
{
    const char *end = text + size, *p = text;
    size_t n = 1;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* A line that counts has five characters at least, and its texts are one shorter than it at the least. */
static int reserve(ftb_kallsyms *out, const char *text, size_t size)
{
    size_t lines = count_lines(text, size);
    if (lines > size / 5 + 1)
        lines = size / 5 + 1;
    if (ftb_column_reserve(&out->addresses, lines * sizeof(uint64_t)) != FTB_OK ||
        ftb_column_reserve(&out->types, lines) != FTB_OK ||
        ftb_column_reserve(&out->names, lines * sizeof(int64_t)) != FTB_OK ||
        ftb_column_reserve(&out->modules, lines * sizeof(int64_t)) != FTB_OK ||
        ftb_column_reserve(&out->texts, size + 8) != FTB_OK)
        return FTB_NO_MEMORY;
    return FTB_OK;
}

int ftb_kallsyms_read(const char *text, size_t size, ftb_kallsyms *out)
{
    while (size > 0 && text[size - 1] == 0)
        size--;
    if (reserve(out, text, size) != FTB_OK)
        return FTB_NO_MEMORY;
    const char *p = text, *end = text + size;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        read_line(p, newline != NULL ? newline : end, out);
        p = newline != NULL ? newline + 1 : end;
    }
    return FTB_OK;
}

void ftb_kallsyms_free(ftb_kallsyms *symbols)
{
    ftb_column_free(&symbols->addresses);
    ftb_column_free(&symbols->types);
    ftb_column_free(&symbols->names);
    ftb_column_free(&symbols->modules);
    ftb_column_free(&symbols->texts);
}
