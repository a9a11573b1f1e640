/* A growing text and C's number conversions, without stdio. */
#include "ftb_emit.h"

#include <stdlib.h>

const char ftb_digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
                                  "555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
const uint64_t ftb_powers_of_ten[20] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000,
    10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
    UINT64_C(10000000000000000000)};
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

/* Digits are written where they stay: a copy of what was just written in pieces would wait for it. */
void ftb_put_decimal(ftb_text *text, uint64_t value)
{
    unsigned n = ftb_decimal_size(value);
    char *p = ftb_room(text, n);
    if (FTB_LIKELY(p != NULL)) {
        ftb_decimal_before(p + n, value);
        text->len += n;
    }
}

void ftb_put_signed(ftb_text *text, int64_t value)
{
    if (value < 0)
        ftb_put_char(text, '-');
    ftb_put_decimal(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
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

/* Eight hexadecimal digits, of which the first `n` in memory are the last n: the nibbles, each in a byte of its own, become
 * characters all at once. */
static uint64_t last_digits(uint32_t value, unsigned n, bool upper)
{
    uint64_t x = value;
    x = (x & 0xffff0000) << 16 | (x & 0xffff);
    x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t is_letter = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    x += UINT64_C(0x3030303030303030) + is_letter * ((upper ? 'A' : 'a') - '0' - 10);
    return FTB_HOST_BIG ? x << 8 * (8 - n) : __builtin_bswap64(x) >> 8 * (8 - n);
}

void ftb_put_hex(ftb_text *text, uint64_t value, int min_digits, bool upper)
{
    unsigned n = value == 0 ? 1 : (unsigned)(67 - __builtin_clzll(value)) / 4;
    if ((int)n < min_digits)
        n = min_digits < 16 ? (unsigned)min_digits : 16;
    char *p = ftb_room(text, 16);
    if (FTB_UNLIKELY(p == NULL))
        return;
    text->len += n;
    if (n > 8) {
        uint64_t high = last_digits((uint32_t)(value >> 32), n - 8, upper);
        memcpy(p, &high, 8);
        p += n - 8;
        n = 8;
    }
    uint64_t low = last_digits((uint32_t)value, n, upper);
    memcpy(p, &low, 8);
}

void ftb_put_number(ftb_text *text, uint64_t spec, int64_t value, bool is_signed, int width, int precision)
{
    char digits[24];
    char prefix[3];
    char *end = digits + sizeof digits, *first;
    unsigned flags = FTB_SPEC_FLAGS(spec), base = FTB_SPEC_BASE(spec);
    bool kernel = flags & FTB_SPEC_KERNEL, upper = flags & FTB_SPEC_UPPER;
    size_t prefix_size = 0;
    bool negative = is_signed && value < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;

    if (base == 10)
        first = ftb_decimal_before(end, magnitude);
    else
        first = power_of_two_before(end, magnitude, base == 8 ? 3 : 4, upper);
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
