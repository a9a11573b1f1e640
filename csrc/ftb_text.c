/* A growing text and C's number conversions, without stdio. */
#include "ftb_emit.h"

#include <stdlib.h>

static const char lower_digits[] = "0123456789abcdef";
static const char upper_digits[] = "0123456789ABCDEF";

int ftb_text_reserve(ftb_text *text, size_t more)
{
    if (more <= text->cap - text->len)
        return FTB_OK;
    size_t limit = text->limit ? text->limit : FTB_TEXT_LIMIT;
    if (text->status != FTB_OK || text->len > limit || more > limit - text->len)
        return text->status = FTB_NO_MEMORY;
    size_t want = text->len + more;
    size_t cap = text->cap > limit / 2 ? limit : text->cap * 2;
    if (cap < 4096)
        cap = 4096;
    if (cap < want)
        cap = want;
    char *data = realloc(text->data, cap);
    if (data == NULL)
        return text->status = FTB_NO_MEMORY;
    text->data = data;
    text->cap = cap;
    return FTB_OK;
}

void ftb_text_free(ftb_text *text)
{
    free(text->data);
    *text = (ftb_text){0};
}

int ftb_text_append(ftb_text *text, const char *data, size_t size)
{
    if (size > 0)
        ftb_put(text, data, size);
    return text->status;
}

void ftb_fill(ftb_text *text, char c, size_t n)
{
    char *p = ftb_room(text, n);
    if (p != NULL && n > 0) {
        memset(p, c, n);
        text->len += n;
    }
}

void ftb_put_decimal(ftb_text *text, uint64_t value)
{
    char *p = ftb_room(text, FTB_NUMBER_ROOM);
    if (FTB_LIKELY(p != NULL))
        text->len += (size_t)(ftb_decimal(p, value) - p);
}

void ftb_put_signed(ftb_text *text, int64_t value)
{
    char *p = ftb_room(text, FTB_NUMBER_ROOM);
    if (FTB_LIKELY(p != NULL))
        text->len += (size_t)(ftb_signed(p, value) - p);
}

static char *power_of_two_before(char *end, uint64_t value, int shift, bool upper)
{
    const char *digits = upper ? upper_digits : lower_digits;
    unsigned mask = (1u << shift) - 1;
    do {
        *--end = digits[value & mask];
        value >>= shift;
    } while (value != 0);
    return end;
}

void ftb_put_hex(ftb_text *text, uint64_t value, int min_digits, bool upper)
{
    unsigned n = (unsigned)(67 - __builtin_clzll(value | 1)) / 4;
    if ((int)n < min_digits)
        n = min_digits < 16 ? (unsigned)min_digits : 16;
    char *p = ftb_room(text, FTB_NUMBER_ROOM);
    if (FTB_LIKELY(p != NULL))
        text->len += (size_t)(ftb_hex_digits(p, value, n, upper) - p);
}

void ftb_put_number(ftb_text *text, uint64_t spec, int64_t value, bool is_signed, int width, int precision)
{
    char digits[FTB_NUMBER_ROOM];
    char prefix[3];
    char *end = digits + sizeof digits, *first;
    unsigned flags = FTB_SPEC_FLAGS(spec), base = FTB_SPEC_BASE(spec);
    bool kernel = flags & FTB_SPEC_KERNEL, upper = flags & FTB_SPEC_UPPER;
    size_t prefix_size = 0;
    bool negative = is_signed && value < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;

    if (base == 10) {
        first = digits;
        end = ftb_decimal(digits, magnitude);
    } else {
        first = power_of_two_before(end, magnitude, base == 8 ? 3 : 4, upper);
    }
    if (precision == 0 && magnitude == 0)
        first = end;
    if (is_signed && (negative || flags & (FTB_SPEC_PLUS | FTB_SPEC_SPACE)))
        prefix[prefix_size++] = negative ? '-' : flags & FTB_SPEC_PLUS ? '+' : ' ';
    if (flags & FTB_SPEC_ALT && base == 16 && (magnitude != 0 || kernel)) {
        prefix[prefix_size++] = '0';
        prefix[prefix_size++] = upper ? 'X' : 'x';
    } else if (flags & FTB_SPEC_ALT && base == 8 && magnitude != 0) {
        prefix[prefix_size++] = '0';
    }
    size_t count = (size_t)(end - first);
    size_t zeros = precision > 0 && (size_t)precision > count ? (size_t)precision - count : 0;
    size_t used = prefix_size + zeros + count;
    size_t blanks = width > 0 && (size_t)width > used ? (size_t)width - used : 0;
    if (flags & FTB_SPEC_ZERO && !(flags & FTB_SPEC_LEFT) && (precision < 0 || kernel)) {
        zeros += blanks;
        blanks = 0;
    }
    if (!(flags & FTB_SPEC_LEFT))
        ftb_fill(text, ' ', blanks);
    ftb_put(text, prefix, prefix_size);
    ftb_fill(text, '0', zeros);
    ftb_put(text, first, count);
    if (flags & FTB_SPEC_LEFT)
        ftb_fill(text, ' ', blanks);
}

void ftb_put_padded(ftb_text *text, const char *data, size_t n, int width, bool left)
{
    size_t blanks = width > 0 && (size_t)width > n ? (size_t)width - n : 0;
    if (!left)
        ftb_fill(text, ' ', blanks);
    ftb_put(text, data, n);
    if (left)
        ftb_fill(text, ' ', blanks);
}

void ftb_pad_since(ftb_text *text, size_t mark, int width, int precision, bool left)
{
    if (mark > text->len)
        return;
    size_t n = text->len - mark;
    if (precision >= 0 && n > (size_t)precision) {
        n = (size_t)precision;
        text->len = mark + n;
    }
    if (width <= 0 || n >= (size_t)width)
        return;
    size_t blanks = (size_t)width - n;
    ftb_fill(text, ' ', blanks);
    if (!left && text->status == FTB_OK) {
        memmove(text->data + mark + blanks, text->data + mark, n);
        memset(text->data + mark, ' ', blanks);
    }
}

uint32_t ftb_string_size(ftb_mem mem)
{
    const uint8_t *nul = mem.size > 0 ? memchr(mem.data, 0, mem.size) : NULL;
    return nul != NULL ? (uint32_t)(nul - mem.data) : mem.size;
}
